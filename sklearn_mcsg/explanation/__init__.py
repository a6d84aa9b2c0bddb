"""Explanation: why two groups are similar, vector by vector.

In come two groups and the model or the embedding that compares them; out goes an explanation whose parts sum to the
similarity.
"""

from sklearn_mcsg.explanation._models import Explanation, explain_boundary, explain_groups, pair_labels
from sklearn_mcsg.explanation._pairs import PairExplanation

__all__ = ["Explanation", "PairExplanation", "explain_boundary", "explain_groups", "pair_labels"]
