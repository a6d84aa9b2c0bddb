"""Conjugate priors for the Bayes factor, given by the user or learnt from a corpus.

A learnt prior is empirical Bayes by moments: its mean is the corpus mean, its precision on a group's mean the
ratio of the variance within groups to the variance between them, its shape the spread of the groups' own
variances, and its scale the mean variance within groups. All of it comes from the groups' statistics in closed
form, so it does not depend on their order, nor on whether they came at once or in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["NormalGamma", "NormalWishart"]

_KAPPA_RANGE = 1e-3, 1e3
_ALPHA_MAX = 100.0  # where a Gamma's spread is too small to be told from none


@dataclass(frozen=True, eq=False)
class NormalGamma:
    """Normal-Gamma prior: precision ~ Gamma(alpha, rate=beta), mean ~ Normal(mean, 1 / (kappa precision)).

    For `DiagonalGaussian` it holds for each feature on its own; for `SphericalGaussian` all features share
    one precision.

    Parameters
    ----------
    mean : float or array-like of shape (n_features,)
        Prior mean.
    kappa : float
        Number of vectors the prior mean is worth.
    alpha : float
        Shape of the precision.
    beta : float or array-like of shape (n_features,)
        Rate of the precision; a single number for `SphericalGaussian`.

    Examples
    --------
    >>> from sklearn_mcsg import DiagonalGaussian, ModelComparisonSimilarity, NormalGamma
    >>> likelihood = DiagonalGaussian(prior=NormalGamma(mean=0, kappa=1, alpha=2, beta=1))
    >>> similarity = ModelComparisonSimilarity(likelihood, "bayes")
    >>> similarity.pairwise([[[0.0], [1.0]], [[0.5]]]).round(3)
    array([[1.091, 0.813],
           [0.813, 0.661]])
    """

    mean: float | np.ndarray
    kappa: float
    alpha: float
    beta: float | np.ndarray

    def __post_init__(self) -> None:
        _check_positive(self, "kappa", "alpha", "beta")


@dataclass(frozen=True, eq=False)
class NormalWishart:
    """Normal-Wishart prior: precision ~ Wishart(inverse(scatter), dof), mean ~ Normal(mean, inverse(kappa precision)).

    Parameters
    ----------
    mean : float or array-like of shape (n_features,)
        Prior mean.
    kappa : float
        Number of vectors the prior mean is worth.
    dof : float
        Degrees of freedom, greater than n_features - 1.
    scatter : array-like of shape (n_features, n_features)
        Inverse scale matrix, symmetric positive definite: the scatter of the vectors the prior is worth.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import FullGaussian, ModelComparisonSimilarity, NormalWishart
    >>> prior = NormalWishart(mean=0, kappa=1, dof=4, scatter=np.eye(2))
    >>> ModelComparisonSimilarity(FullGaussian(prior=prior), "bayes").pairwise([[[0.0, 1.0]]]).shape
    (1, 1)
    """

    mean: float | np.ndarray
    kappa: float
    dof: float
    scatter: np.ndarray

    def __post_init__(self) -> None:
        _check_positive(self, "kappa", "dof")
        scatter = np.asarray(self.scatter, dtype=np.float64)
        if scatter.ndim != 2 or scatter.shape[0] != scatter.shape[1] or not np.allclose(scatter, scatter.T):
            raise ValueError(f"scatter must be a symmetric matrix, got shape {scatter.shape}.")
        if self.dof <= len(scatter) - 1:
            raise ValueError(f"dof must be greater than n_features - 1 = {len(scatter) - 1}, got {self.dof}.")
        if np.linalg.eigvalsh(scatter)[0] <= 0:
            raise ValueError("scatter must be positive definite.")


def check_prior(prior: object, kind: type, n_features: int, scales: int) -> None:
    """Raise unless a given prior is of the right kind and fits the number of features."""
    if prior is None:
        return
    if not isinstance(prior, kind):
        raise TypeError(f"prior must be a {kind.__name__} for this likelihood, got {type(prior).__name__}.")
    shapes = {"mean": (n_features,), "beta": (scales,), "scatter": (n_features, n_features)}
    for name, shape in shapes.items():
        value = np.asarray(getattr(prior, name, 0.0), dtype=np.float64)
        if value.shape not in ((), shape):
            raise ValueError(f"{name} of the prior must have shape {shape}, got {value.shape}.")
        if not np.isfinite(value).all():
            raise ValueError(f"{name} of the prior must be finite.")


def _check_positive(prior: NormalGamma | NormalWishart, *names: str) -> None:
    for name in names:
        value = np.asarray(getattr(prior, name), dtype=np.float64)
        if not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"{name} of a {type(prior).__name__} prior must be positive, got {getattr(prior, name)}.")


def learn_shape(
    n: np.ndarray, within: np.ndarray, between: np.ndarray, noise: float, features: int = 1
) -> tuple[float, float, np.ndarray]:
    """Precision of the mean, shape of the variances and mean variance within groups.

    Parameters
    ----------
    n : ndarray of shape (n_groups,)
        Weight of each group.
    within : ndarray of shape (n_groups, n_scales)
        Scatter within each group.
    between : ndarray of shape (n_scales,)
        Scatter of the group means about the corpus mean, weighted by `n`.
    noise : float
        Variance of the observation noise, `reg_covar`.
    features : int, default=1
        Number of features that share each scale.
    """
    several = within.any(axis=1)
    # n - 1 from two vectors on; weights may sum to less, and then half of them is free
    freedom = features * np.maximum(n[several] - 1, n[several] / 2)
    total = features * n.sum()
    variance = (within[several].sum(axis=0) / freedom.sum() if several.any() else between / total) + noise
    if not (np.isfinite(variance) & (variance > 0)).all():
        raise ValueError(
            "The learnt prior is degenerate: some feature does not vary within any group, or varies beyond double "
            "precision. Set reg_covar > 0, rescale the vectors, or give the likelihood a prior of its own."
        )
    if not several.any():
        return 1.0, 2.0, variance
    spread = (between / variance).mean() / total - features * np.count_nonzero(n) / total
    kappa = np.clip(1 / max(spread, 1 / _KAPPA_RANGE[1]), *_KAPPA_RANGE)
    ratio = ((within[several] / variance) ** 2).mean(axis=1) / (freedom + 2)
    alpha = 2 + 1 / max(ratio.sum() / freedom.sum() - 1, 1 / (_ALPHA_MAX - 2))
    return float(kappa), float(alpha), variance
