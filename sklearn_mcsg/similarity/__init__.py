"""Similarity: estimators that compare groups, and what chance says about their values.

In come groups; out go matrices of similarities or distances, p-values and explanations.
Other rooms take the comparer behind an estimator, not the estimator.
"""

from sklearn_mcsg.engine.comparison import Comparison
from sklearn_mcsg.similarity.base import GroupSimilarity, fitted_comparer
from sklearn_mcsg.similarity.baselines import SIF, MeanVector, WordMoversDistance
from sklearn_mcsg.similarity.model import ModelComparisonSimilarity, model_comparison_similarity
from sklearn_mcsg.similarity.pairs import PairSimilarity

__all__ = [
    "SIF",
    "Comparison",
    "GroupSimilarity",
    "MeanVector",
    "ModelComparisonSimilarity",
    "PairSimilarity",
    "WordMoversDistance",
    "fitted_comparer",
    "model_comparison_similarity",
]
