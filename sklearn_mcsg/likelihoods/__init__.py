"""Likelihoods: models of the vectors of a group, one file for each.

In come `Groups`; out go their sufficient statistics, the statistics of unions of groups, and how well a model fits.
The rest of the library does not depend on the choice of likelihood: the tests check every law for all `LIKELIHOODS`.

Observation noise: every vector stands for a small distribution around it, normal with variance `reg_covar` or, for
directions, von Mises-Fisher with concentration 1 / `reg_covar`. All moments keep a closed form, and groups of one
vector or with a constant feature need no special case.
"""

from sklearn_mcsg.likelihoods._base import (
    Fit,
    Likelihood,
    Segments,
    fit_pairs,
    load_kernels,
    load_segment_kernels,
    pooled_nbytes,
)
from sklearn_mcsg.likelihoods._diagonal import DiagonalGaussian
from sklearn_mcsg.likelihoods._full import FullGaussian
from sklearn_mcsg.likelihoods._priors import NormalGamma, NormalGammaTrend, NormalWishart
from sklearn_mcsg.likelihoods._spherical import SphericalGaussian
from sklearn_mcsg.likelihoods._statistics import Statistics, by_blocks
from sklearn_mcsg.likelihoods._trend import TrendGaussian
from sklearn_mcsg.likelihoods._vmf import VonMisesFisher

__all__ = [
    "LIKELIHOODS",
    "DiagonalGaussian",
    "Fit",
    "FullGaussian",
    "Likelihood",
    "NormalGamma",
    "NormalGammaTrend",
    "NormalWishart",
    "Segments",
    "SphericalGaussian",
    "Statistics",
    "TrendGaussian",
    "VonMisesFisher",
    "by_blocks",
    "fit_pairs",
    "load_kernels",
    "load_segment_kernels",
    "pooled_nbytes",
]

LIKELIHOODS = {
    "diag": DiagonalGaussian,
    "spherical": SphericalGaussian,
    "full": FullGaussian,
    "vmf": VonMisesFisher,
    "trend": TrendGaussian,
}
