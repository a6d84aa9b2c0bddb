"""Explanation: why two groups are similar, vector by vector or pair by pair.

In come two groups and the model that compares them, or the parts of their vectors in an embedding.
Out goes an `Explanation` whose parts sum to the similarity.
"""

from sklearn_mcsg.explanation._base import Explanation, pair_labels
from sklearn_mcsg.explanation._models import explain_boundary, explain_groups
from sklearn_mcsg.explanation._pairs import PairExplanation
from sklearn_mcsg.explanation._vectors import BoundaryExplanation, FeatureChange, VectorExplanation

__all__ = [
    "BoundaryExplanation",
    "Explanation",
    "FeatureChange",
    "PairExplanation",
    "VectorExplanation",
    "explain_boundary",
    "explain_groups",
    "pair_labels",
]
