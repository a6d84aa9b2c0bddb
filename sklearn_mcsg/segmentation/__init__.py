"""Segmentation: a sequence is cut where two models are better than one.

In comes one sequence of vectors or groups; out go boundaries and the models of the segments.
"""

from sklearn_mcsg.segmentation._null import check_one_rule, fewest_permutations
from sklearn_mcsg.segmentation._segmenter import ModelComparisonSegmenter

__all__ = ["ModelComparisonSegmenter", "check_one_rule", "fewest_permutations"]
