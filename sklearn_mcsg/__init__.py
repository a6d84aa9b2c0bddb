"""Model comparison for groups of vectors, scikit-learn compatible.

A group is a set of vectors: the word vectors of a sentence, the frames of a sound, the items of a basket. The
similarity of two groups says whether one model generated both, or two.
"""

from sklearn_mcsg._version import __version__
from sklearn_mcsg._word_vectors import load_word_vectors
from sklearn_mcsg.baselines import SIF, MeanVector, WordMoversDistance
from sklearn_mcsg.clustering import ModelComparisonClustering
from sklearn_mcsg.criteria import AIC, BIC, CRITERIA, TIC, BayesFactor, Criterion
from sklearn_mcsg.duplicates import find_duplicates
from sklearn_mcsg.explanation import Explanation, explain_texts
from sklearn_mcsg.groups import Groups, validate_groups
from sklearn_mcsg.likelihoods import (
    LIKELIHOODS,
    DiagonalGaussian,
    Fit,
    FullGaussian,
    Likelihood,
    SphericalGaussian,
    Statistics,
    VonMisesFisher,
)
from sklearn_mcsg.neighbors import GroupNeighbors
from sklearn_mcsg.pairs import PairSimilarity
from sklearn_mcsg.priors import NormalGamma, NormalWishart
from sklearn_mcsg.similarity import ModelComparisonSimilarity, model_comparison_similarity
from sklearn_mcsg.text import EmbeddingVectorizer, make_text_similarity

__all__ = [
    "AIC",
    "BIC",
    "CRITERIA",
    "LIKELIHOODS",
    "SIF",
    "TIC",
    "BayesFactor",
    "Criterion",
    "DiagonalGaussian",
    "EmbeddingVectorizer",
    "Explanation",
    "Fit",
    "FullGaussian",
    "GroupNeighbors",
    "Groups",
    "Likelihood",
    "MeanVector",
    "ModelComparisonClustering",
    "ModelComparisonSimilarity",
    "NormalGamma",
    "NormalWishart",
    "PairSimilarity",
    "SphericalGaussian",
    "Statistics",
    "VonMisesFisher",
    "WordMoversDistance",
    "__version__",
    "explain_texts",
    "find_duplicates",
    "load_word_vectors",
    "make_text_similarity",
    "model_comparison_similarity",
    "validate_groups",
]
