"""Conjugate priors of the normal likelihoods for the Bayes factor, given by the user or learnt from a corpus.

A learnt prior is an empirical Bayes estimate by the method of moments (`learn_shape`). It is a closed-form function of
the groups' statistics, so it does not depend on the order of the groups or on how they are divided into batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, multigammaln

from sklearn_mcsg.storage import register

LOG_2PI = float(np.log(2 * np.pi))
_KAPPA_RANGE = 1e-3, 1e3
_ALPHA_MAX = 100.0  # beyond it the variances of groups hardly differ


@register
@dataclass(frozen=True, eq=False)
class NormalGamma:
    """Normal-Gamma prior: precision ~ Gamma(alpha, rate=beta), mean ~ Normal(mean, 1 / (kappa precision)).

    For `DiagonalGaussian` it applies to each feature separately; for `SphericalGaussian` all features share
    one precision.

    Parameters
    ----------
    mean : float or array-like of shape (n_features,)
        Prior mean.
    kappa : float
        Weight of the prior mean, as a number of vectors.
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
        _take_lists(self)
        _check_positive(self, "kappa", "alpha", "beta")

    def united(
        self, n: np.ndarray, mean: np.ndarray, scatter: np.ndarray, features: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and scatters of groups united with the prior's own pseudo-vectors.

        The prior counts as `kappa` vectors at its mean with a scatter of ``2 beta``, so the united scatter is twice the
        posterior rate. Each scale is shared by `features` features.
        """
        weight = n[:, None]
        total = self.kappa + weight
        shift = mean - self.mean
        square = shift**2 if features == 1 else np.square(shift).sum(axis=1, keepdims=True)
        scatter = 2 * np.asarray(self.beta) + scatter + self.kappa * weight / total * square
        return total[:, 0], self.mean + weight / total * shift, scatter

    def log_evidence(self, statistics: Any, log_rate: np.ndarray, *, scales: int = 1, features: int = 1) -> np.ndarray:
        """Log evidence of groups from the logarithms of their posterior rates, summed over the scales."""

        def of_total(n: np.ndarray) -> np.ndarray:
            log_ratio = 0.5 * features * np.log(self.kappa / (self.kappa + n))
            log_gamma = gammaln(self.alpha + 0.5 * features * n) - gammaln(self.alpha)
            return scales * (log_ratio + log_gamma - 0.5 * features * n * LOG_2PI)

        prior_log_rate = np.broadcast_to(np.log(self.beta), scales).sum()
        alpha = self.alpha + 0.5 * features * statistics.n
        return statistics.of_total(of_total) + self.alpha * prior_log_rate - alpha * log_rate


@register
@dataclass(frozen=True, eq=False)
class NormalGammaTrend(NormalGamma):
    """Normal-Gamma prior of a line, for `TrendGaussian`: beside its value at place 0, the mean, it has a slope.

    Given the precision, slope ~ Normal(slope, 1 / (kappa_slope precision)), independent of the mean.

    Parameters
    ----------
    mean : float or array-like of shape (n_features,)
        Prior mean.
    kappa : float
        Weight of the prior mean, as a number of vectors.
    alpha : float
        Shape of the precision.
    beta : float or array-like of shape (n_features,)
        Rate of the precision.
    slope : float or array-like of shape (n_features,), default=0.0
        Prior slope: the change from the middle of a group to its end.
    kappa_slope : float, default=1.0
        Weight of the prior slope, as a sum of squared places. Those of n vectors sum to about n / 3.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity, NormalGammaTrend, TrendGaussian
    >>> likelihood = TrendGaussian(prior=NormalGammaTrend(mean=0, kappa=1, alpha=2, beta=1))
    >>> ModelComparisonSimilarity(likelihood, "bayes").pairwise([[[0.0], [1.0]], [[1.0], [0.0]]]).round(2)
    array([[1.79, 0.43],
           [0.43, 1.79]])
    """

    slope: float | np.ndarray = 0.0
    kappa_slope: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive(self, "kappa_slope")


@register
@dataclass(frozen=True, eq=False)
class NormalWishart:
    """Normal-Wishart prior: precision ~ Wishart(inverse(scatter), dof), mean ~ Normal(mean, inverse(kappa precision)).

    Parameters
    ----------
    mean : float or array-like of shape (n_features,)
        Prior mean.
    kappa : float
        Weight of the prior mean, as a number of vectors.
    dof : float
        Degrees of freedom, greater than n_features - 1.
    scatter : array-like of shape (n_features, n_features)
        Inverse scale matrix, symmetric positive definite: the scatter of the prior's pseudo-vectors.

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
        _take_lists(self)
        _check_positive(self, "kappa", "dof")
        scatter = np.asarray(self.scatter, dtype=np.float64)
        if (
            scatter.ndim != 2
            or not scatter.size
            or scatter.shape[0] != scatter.shape[1]
            or not np.isfinite(scatter).all()
            or not np.allclose(scatter, scatter.T)
        ):
            raise ValueError(f"scatter must be a symmetric matrix of finite numbers, got {self.scatter!r:.200}.")
        if self.dof <= len(scatter) - 1:
            raise ValueError(f"dof must be greater than n_features - 1 = {len(scatter) - 1}, got {self.dof}.")
        if np.linalg.eigvalsh(scatter)[0] <= 0:
            raise ValueError("scatter must be positive definite.")

    @property
    def _root(self) -> np.ndarray:
        return np.linalg.cholesky(np.asarray(self.scatter, dtype=np.float64))

    def whitened(self, x: np.ndarray) -> np.ndarray:
        """Vectors in coordinates where the prior's scatter is the identity."""
        root = self._root
        d = len(root)
        return solve_triangular(root, x.reshape(-1, d).T, lower=True).T.reshape(x.shape)

    def united(self, n: np.ndarray, mean: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and factors of groups united with the `kappa` vectors at the prior mean, whitened around it.

        The scatter of a united group is F^T F, where F are its factors. Adding the identity, which is the prior's own
        scatter, gives the posterior scatter.
        """
        total = self.kappa + n
        shift = self.whitened(mean - self.mean)
        bridge = np.sqrt(self.kappa * n / total)[:, None] * shift
        rows = np.concatenate([self.whitened(factors), bridge[:, None]], axis=1)
        return total, (n / total)[:, None] * shift, rows

    def log_evidence(self, statistics: Any, log_det: np.ndarray) -> np.ndarray:
        """Log evidence of groups from the log determinants of their posterior scatters minus that of the prior."""
        root, n = self._root, statistics.n
        d = len(root)

        def of_total(n: np.ndarray) -> np.ndarray:
            log_gamma = multigammaln(0.5 * (self.dof + n), d) - multigammaln(0.5 * self.dof, d)
            return log_gamma + 0.5 * d * (np.log(self.kappa / (self.kappa + n)) - n * np.log(np.pi))

        log_det_prior = 2 * np.log(np.diag(root)).sum()
        return statistics.of_total(of_total) - 0.5 * (n * log_det_prior + (self.dof + n) * log_det)


def representable(variance: np.ndarray, least: float = 1e-304) -> np.ndarray:
    """Variances, with NaN where they are so small that they have lost digits; 0 stays 0."""
    return np.where((variance > 0) & (variance < least), np.nan, variance)


def check_prior(prior: object, kind: type, n_features: int, scales: int) -> None:
    """Raise unless a given prior is of the right class and has the right number of features."""
    if prior is None:
        return
    if type(prior) is not kind:
        raise TypeError(f"prior must be a {kind.__name__} for this likelihood, got {type(prior).__name__}.")
    shapes = {"mean": (n_features,), "slope": (n_features,), "beta": (scales,), "scatter": (n_features, n_features)}
    for name, shape in shapes.items():
        value = np.asarray(getattr(prior, name, 0.0), dtype=np.float64)
        if value.shape not in ((), shape):
            raise ValueError(f"{name} of the prior must have shape {shape}, got {value.shape}.")
        if not np.isfinite(value).all():
            raise ValueError(f"{name} of the prior must be finite.")


def _take_lists(prior: NormalGamma | NormalWishart) -> None:
    """Turn lists and other array-likes that a prior was given into arrays."""
    for name, value in vars(prior).items():
        if not isinstance(value, Real | np.ndarray):
            object.__setattr__(prior, name, np.asarray(value, dtype=np.float64))


def _check_positive(prior: NormalGamma | NormalWishart, *names: str) -> None:
    for name in names:
        value = np.asarray(getattr(prior, name), dtype=np.float64)
        kind = type(prior).__name__
        if value.ndim and name != "beta":
            raise ValueError(f"{name} of a {kind} prior must be one number, got an array of shape {value.shape}.")
        if not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"{name} of a {kind} prior must be positive and finite, got {getattr(prior, name)}.")


def learn_shape(
    n: np.ndarray, within: np.ndarray, between: np.ndarray, noise: float, features: int = 1, location: int = 1
) -> tuple[float, float, np.ndarray]:
    """Estimate kappa, alpha and the mean variance within groups by the method of moments.

    Suppose a group has precision l ~ Gamma(alpha, beta), its mean is N(m, 1 / (kappa l)) and its n vectors are
    N(mean, 1 / l). Let v = E[1 / l] = beta / (alpha - 1) be the mean variance, and f a group's degrees of freedom.

    - The scatter within a group has expectation f / l. Hence v = sum(within) / sum(f).
    - Group means have variance (1 / kappa + 1 / n) / l around m. Hence sum(n deviation^2) = v (N / kappa + G) for
      G groups of N vectors in all, and 1 / kappa = between / (v N) - G / N.
    - The scatter within a group is chi-squared with f degrees of freedom, divided by l, so its square has expectation
      f (f + 2) E[1 / l^2], and E[1 / l^2] = v^2 (alpha - 1) / (alpha - 2). Hence
      sum(within^2 / (f + 2)) / (v^2 sum(f)) = 1 + 1 / (alpha - 2).

    Estimates are clipped, so that they stay finite if groups have few vectors or only one.

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
    location : int, default=1
        Number of parameters of location in each feature: 1 for a mean, 2 for a line.
    """
    several = within.any(axis=1)
    # n - location degrees of freedom or, for weights that sum to less than location + 1, n / (location + 1)
    freedom = features * np.maximum(n[several] - location, n[several] / (location + 1))
    total = features * n.sum()
    variance = (within[several].sum(axis=0) / freedom.sum() if several.any() else between / total) + noise
    if not (np.isfinite(variance) & (variance > 0)).all():
        raise ValueError(
            "The learnt prior is degenerate: some feature does not vary within any group, or varies beyond double "
            "precision. Set reg_covar > 0, rescale the vectors, or give the likelihood a prior of its own."
        )
    if not several.any():
        return 1.0, 2.0, variance
    kappa = learn_kappa(total, between / variance, features * int(np.count_nonzero(n)))
    ratio = ((within[several] / variance) ** 2).mean(axis=1) / (freedom + 2)
    alpha = 2 + 1 / max(ratio.sum() / freedom.sum() - 1, 1 / (_ALPHA_MAX - 2))
    return kappa, float(alpha), variance


def learn_kappa(total: float, between: np.ndarray, freedom: int) -> float:
    """Estimate the weight of a prior mean, from the scatter of estimates about it in units of their variance.

    `between` is the scatter of each scale, weighted by weights that sum to `total`.
    """
    inverse_kappa = between.mean() / total - freedom / total
    return float(np.clip(1 / max(inverse_kappa, 1 / _KAPPA_RANGE[1]), *_KAPPA_RANGE))
