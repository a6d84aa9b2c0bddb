"""Likelihoods: the generative models of groups, one file for each.

A likelihood turns groups into sufficient statistics, pools the statistics of two groups, and measures how well its best
model fits them. The rest of the library does not depend on the choice of likelihood. The tests run over the registry
`LIKELIHOODS`: every law is checked for every entry.

Observation noise: every vector stands for a small distribution around it, normal with variance `reg_covar` or, for
directions, von Mises-Fisher with concentration 1 / `reg_covar`. All moments keep a closed form, and groups of one
vector or with a constant feature need no special case.
"""

from sklearn_mcsg.likelihoods.base import Fit, Likelihood, Unions
from sklearn_mcsg.likelihoods.diagonal import DiagonalGaussian
from sklearn_mcsg.likelihoods.full import FullGaussian
from sklearn_mcsg.likelihoods.priors import NormalGamma, NormalWishart
from sklearn_mcsg.likelihoods.spherical import SphericalGaussian
from sklearn_mcsg.likelihoods.statistics import Statistics
from sklearn_mcsg.likelihoods.vmf import VonMisesFisher

__all__ = [
    "LIKELIHOODS",
    "DiagonalGaussian",
    "Fit",
    "FullGaussian",
    "Likelihood",
    "NormalGamma",
    "NormalWishart",
    "SphericalGaussian",
    "Statistics",
    "Unions",
    "VonMisesFisher",
]

LIKELIHOODS = {
    "diag": DiagonalGaussian,
    "spherical": SphericalGaussian,
    "full": FullGaussian,
    "vmf": VonMisesFisher,
}
