"""The von Mises-Fisher functions against 60-digit arithmetic."""

import mpmath as mp
import numpy as np
import pytest

from sklearn_mcsg.likelihoods import bessel

DIMENSIONS = [2, 3, 4, 5, 10, 50, 88, 92, 100, 300, 768, 1024, 4096]
CONCENTRATIONS = [1e-6, 1e-3, 0.1, 1, 5, 20, 44.99, 45.01, 100, 383, 1e3, 1e4, 1e6, 1e9]
EPS = np.finfo(float).eps


def exact(d, kappa):
    """Log-normaliser without exp(kappa), mean length and its slope."""
    with mp.workdps(60):
        nu, kappa = mp.mpf(d) / 2 - 1, mp.mpf(kappa)
        bessel, above = mp.besseli(nu, kappa), mp.besseli(nu + 1, kappa)
        length = above / bessel
        log = mp.log(bessel) - nu * mp.log(kappa) - kappa + mp.mpf(d) / 2 * mp.log(2 * mp.pi)
        return log, length, 1 - length**2 - (d - 1) * length / kappa


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_functions_agree_with_mpmath(d, kappa):
    log, length, slope = exact(d, kappa)
    k = np.array([kappa])
    # the series loses about kappa ulps in 1 - A^2 - ..., the logarithm one ulp of its largest term
    assert abs(bessel.log_normalizer(k, d)[0] - log) <= 20 * EPS * max(1, kappa if kappa < 45 else 1, abs(log))
    assert abs(bessel.mean_length(k, d)[0] / length - 1) <= 10 * EPS
    cancellation = 1 / slope if np.hypot(d / 2 - 1, kappa) < 45 else 1
    assert abs(bessel.mean_length_derivative(k, d)[0] / slope - 1) <= 20 * EPS * max(1, cancellation)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_concentration_inverts_mean_length(d, kappa):
    _, length, slope = exact(d, kappa)
    # a rounding of the length moves its root by 1 / slope
    conditioning = max(1, float(length / (slope * kappa)))
    found = bessel.concentration(np.array([float(length)]), d)[0]
    assert abs(found / kappa - 1) <= 20 * EPS * conditioning


def test_limits_at_no_concentration():
    zero = np.zeros(1)
    assert bessel.concentration(zero, 5)[0] == 0
    assert bessel.mean_length(zero, 5)[0] == 0
    assert bessel.mean_length_derivative(zero, 5)[0] == pytest.approx(1 / 5, rel=1e-15)
    assert np.exp(bessel.log_normalizer(zero, 3)[0]) == pytest.approx(4 * np.pi, rel=1e-14)


def test_approximation_is_banerjees():
    assert bessel.approximate_concentration(0.5, 10) == pytest.approx(0.5 * (10 - 0.25) / 0.75, rel=1e-15)
