"""Likelihoods: the generative models that groups are compared under.

A likelihood turns groups into sufficient statistics, pools the statistics of two groups, and says how well
its best model explains them. Nothing else in the library knows which likelihood it works with. The registry
`LIKELIHOODS` is also the tests' list: an entry enrols a likelihood in every law.

Observation noise: every vector stands for a small cloud around it, normal with variance `reg_covar` or, for
directions, von Mises-Fisher with concentration 1 / `reg_covar`. All moments keep a closed form, and groups of one
vector or with a constant feature need no special case.
"""

from sklearn_mcsg._gaussians import DiagonalGaussian, FullGaussian, SphericalGaussian
from sklearn_mcsg._likelihood import Fit, Likelihood
from sklearn_mcsg._statistics import Statistics
from sklearn_mcsg._vmf import VonMisesFisher

__all__ = [
    "LIKELIHOODS",
    "DiagonalGaussian",
    "Fit",
    "FullGaussian",
    "Likelihood",
    "SphericalGaussian",
    "Statistics",
    "VonMisesFisher",
]

LIKELIHOODS = {
    "diag": DiagonalGaussian,
    "spherical": SphericalGaussian,
    "full": FullGaussian,
    "vmf": VonMisesFisher,
}
