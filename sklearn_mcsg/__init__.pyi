from . import (
    baselines,
    cli,
    clustering,
    criteria,
    datasets,
    duplicates,
    explanation,
    groups,
    likelihoods,
    neighbors,
    pairs,
    priors,
    report,
    similarity,
    summary,
    text,
)
from ._version import __version__
from ._word_vectors import load_word_vectors
from .baselines import SIF, MeanVector, WordMoversDistance
from .clustering import ModelComparisonClustering
from .criteria import AIC, BIC, CRITERIA, TIC, BayesFactor, Criterion
from .duplicates import find_duplicates
from .explanation import Explanation, explain_texts
from .groups import Groups, validate_groups
from .likelihoods import (
    LIKELIHOODS,
    DiagonalGaussian,
    Fit,
    FullGaussian,
    Likelihood,
    SphericalGaussian,
    Statistics,
    VonMisesFisher,
)
from .neighbors import GroupNeighbors
from .pairs import PairSimilarity
from .priors import NormalGamma, NormalWishart
from .similarity import ModelComparisonSimilarity, model_comparison_similarity
from .text import EmbeddingVectorizer, make_text_similarity

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
    "baselines",
    "cli",
    "clustering",
    "criteria",
    "datasets",
    "duplicates",
    "explain_texts",
    "explanation",
    "find_duplicates",
    "groups",
    "likelihoods",
    "load_word_vectors",
    "make_text_similarity",
    "model_comparison_similarity",
    "neighbors",
    "pairs",
    "priors",
    "report",
    "similarity",
    "summary",
    "text",
    "validate_groups",
]
