"""Model comparison for groups of vectors, scikit-learn compatible.

A group is a set of vectors: the word vectors of a sentence, the frames of a sound, the items of a basket. The
similarity of two groups says whether one model generated both, or two.
"""

from sklearn_mcsg._version import __version__
from sklearn_mcsg.criteria import AIC, BIC, CRITERIA, TIC, BayesFactor, Criterion
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
from sklearn_mcsg.priors import NormalGamma, NormalWishart
from sklearn_mcsg.similarity import ModelComparisonSimilarity, model_comparison_similarity

__all__ = [
    "AIC",
    "BIC",
    "CRITERIA",
    "LIKELIHOODS",
    "TIC",
    "BayesFactor",
    "Criterion",
    "DiagonalGaussian",
    "Fit",
    "FullGaussian",
    "Groups",
    "Likelihood",
    "ModelComparisonSimilarity",
    "NormalGamma",
    "NormalWishart",
    "SphericalGaussian",
    "Statistics",
    "VonMisesFisher",
    "__version__",
    "model_comparison_similarity",
    "validate_groups",
]
