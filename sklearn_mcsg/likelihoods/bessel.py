"""Special functions of the von Mises-Fisher distribution, stable for any dimension and concentration.

With nu = d/2 - 1, all of them follow from one function and its two derivatives:

    f(kappa)   = log(I_nu(kappa) / kappa^nu)                log-normaliser, up to a constant
    f'(kappa)  = I_{nu+1}(kappa) / I_nu(kappa) = A_d        mean resultant length
    f''(kappa) = 1 - A_d^2 - (d - 1) A_d / kappa            its slope

`scipy.special.ive` underflows for realistic values (d = 768, kappa <= 50). If nu and kappa are both small, the
power series (DLMF 10.25.2) is used, whose terms are all positive. Otherwise the uniform expansion (DLMF 10.41.3) is
used, written with s = sqrt(nu^2 + kappa^2) so that nu = 0 is not a special case:

    f(kappa) = s - nu log(nu + s) - log(2 pi s)/2 + log sum_k U_k(nu/s) / nu^k.

Its derivatives are taken term by term, so that nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval2d
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import gammaln

_Function: TypeAlias = Callable[[np.ndarray, float], np.ndarray]  # of kappa and nu
_UNIFORM_FROM = 45.0  # s from which the expansion reaches double precision
_UNIFORM_TERMS = 14
_SERIES_TERMS = 90
_ARC_NODES = 512.0  # per unit of the variable


def log_normalizer(kappa: ArrayLike, n_features: int) -> np.ndarray:
    """Logarithm of the integral of exp(kappa (mu.x - 1)) over the unit sphere.

    The factor exp(-kappa) keeps the difference from the term kappa R of the log-likelihood exact for large kappa.
    """
    nu = n_features / 2 - 1
    return _by_regime(kappa, nu, _uniform_log, _series_log) + n_features / 2 * np.log(2 * np.pi)


def mean_length(kappa: ArrayLike, n_features: int) -> np.ndarray:
    """Mean resultant length A_d(kappa) of a von Mises-Fisher distribution."""
    return _by_regime(kappa, n_features / 2 - 1, _uniform_slope, _series_slope)


def mean_length_derivative(kappa: ArrayLike, n_features: int) -> np.ndarray:
    """Derivative A_d'(kappa): the variance of the projection on the mean direction."""
    return _by_regime(kappa, n_features / 2 - 1, _uniform_curvature, _series_curvature)


def approximate_concentration(length: ArrayLike, n_features: int) -> np.ndarray:
    """Banerjee's approximation R (d - R^2) / (1 - R^2) of the maximum-likelihood concentration."""
    length = np.asarray(length, dtype=np.float64)
    return length * (n_features - length**2) / ((1 - length) * (1 + length))


def concentration(length: ArrayLike, n_features: int) -> np.ndarray:
    """Maximum-likelihood concentration: the root of A_d(kappa) = length, for 0 <= length < 1.

    Newton's method starts from Banerjee's approximation. It converges at once, because A_d is concave and the start is
    close.
    """
    length = np.asarray(length, dtype=np.float64)
    kappa = np.asarray(approximate_concentration(length, n_features))
    for _ in range(20):
        excess = mean_length(kappa, n_features) - length
        step = excess / mean_length_derivative(kappa, n_features)
        kappa = kappa - step
        if np.all((np.abs(step) <= 1e-9 * kappa) | (np.abs(excess) <= 1e-15)):  # the next step is below rounding
            break
    return kappa


def arc_length(kappa: ArrayLike, n_features: int) -> np.ndarray:
    """Integral of sqrt(A_d') from 0 to kappa: the length of a change of concentration in the Fisher metric.

    In the variable t = log(1 + kappa / d) the integrand is smooth, from a constant at 0 to another at infinity.
    """
    position = np.log1p(np.asarray(kappa, dtype=np.float64) / n_features)
    return _arc_length_spline(n_features, float(np.ceil(position.max(initial=0) + 1)))(position)


@cache
def _arc_length_spline(n_features: int, end: float) -> CubicSpline:
    position = np.arange(int(end * _ARC_NODES) + 1) / _ARC_NODES
    slope = np.sqrt(mean_length_derivative(n_features * np.expm1(position), n_features))
    return CubicSpline(position, slope * n_features * np.exp(position)).antiderivative()


def _by_regime(kappa: ArrayLike, nu: float, uniform: _Function, series: _Function) -> np.ndarray:
    kappa = np.asarray(kappa, dtype=np.float64)
    small = np.hypot(nu, kappa) < _UNIFORM_FROM
    result = np.empty_like(kappa)
    result[small] = series(kappa[small], nu)
    result[~small] = uniform(kappa[~small], nu)
    return result


@cache
def _uniform_coefficients() -> np.ndarray:
    """Coefficients u[k, j] of U_k(p) / p^k = sum_j u[k, j] p^(2j), by the recurrence DLMF 10.41.9."""
    u = Polynomial([1.0])
    factor, weight = Polynomial([0, 0, 0.5, 0, -0.5]), Polynomial([1, 0, -5]) / 8
    table = np.zeros((_UNIFORM_TERMS, _UNIFORM_TERMS))
    for k in range(_UNIFORM_TERMS):
        coefficients = u.coef[k::2]
        table[k, : len(coefficients)] = coefficients
        u = factor * u.deriv() + (weight * u).integ()
    return table


def _uniform_sums(kappa: np.ndarray, nu: float) -> tuple[np.ndarray, ...]:
    """The expansion's sum and its first two derivatives in s."""
    s = np.hypot(nu, kappa)
    table = _uniform_coefficients()
    power = np.add.outer(np.arange(_UNIFORM_TERMS), 2 * np.arange(_UNIFORM_TERMS))  # exponent of 1/s in each term
    value, first, second = (
        polyval2d(1 / s, (nu / s) ** 2, table * factor) for factor in (1, -power, power * (power + 1))
    )
    return s, value, first / s, second / s**2


def _uniform_log(kappa: np.ndarray, nu: float) -> np.ndarray:
    s, value, _, _ = _uniform_sums(kappa, nu)
    return nu**2 / (s + kappa) - nu * np.log(nu + s) - 0.5 * np.log(2 * np.pi * s) + np.log(value)


def _uniform_slope(kappa: np.ndarray, nu: float) -> np.ndarray:
    s, value, first, _ = _uniform_sums(kappa, nu)
    return kappa * (1 / (nu + s) - 1 / (2 * s**2) + first / value / s)


def _uniform_curvature(kappa: np.ndarray, nu: float) -> np.ndarray:
    s, value, first, second = _uniform_sums(kappa, nu)
    g = first / value
    slope = second / value - g**2
    return nu / (s * (nu + s)) + (kappa - nu) * (kappa + nu) / (2 * s**4) + g * nu**2 / s**3 + slope * kappa**2 / s**2


def _series(kappa: np.ndarray, nu: float) -> np.ndarray:
    """sum_k (kappa^2/4)^k / (k! (nu+1)_k): I_nu(kappa) without its leading factor."""
    k = np.arange(1, _SERIES_TERMS)
    ratios = (kappa[..., None] ** 2 / 4) / (k * (nu + k))
    return 1 + np.cumprod(ratios, axis=-1).sum(-1)


def _series_log(kappa: np.ndarray, nu: float) -> np.ndarray:
    return np.log(_series(kappa, nu)) - nu * np.log(2) - gammaln(nu + 1) - kappa


def _series_ratio(kappa: np.ndarray, nu: float) -> np.ndarray:
    """A_d(kappa) / kappa, finite at 0."""
    return _series(kappa, nu + 1) / _series(kappa, nu) / (2 * (nu + 1))


def _series_slope(kappa: np.ndarray, nu: float) -> np.ndarray:
    return kappa * _series_ratio(kappa, nu)


def _series_curvature(kappa: np.ndarray, nu: float) -> np.ndarray:
    ratio = _series_ratio(kappa, nu)
    return 1 - (kappa * ratio) ** 2 - (2 * nu + 1) * ratio
