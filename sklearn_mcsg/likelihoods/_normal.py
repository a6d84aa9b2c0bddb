"""Functions shared by the three normal likelihoods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LOG_2PI = math.log(2 * math.pi)


def representable(variance: np.ndarray, least: float = 1e-304) -> np.ndarray:
    """Variances, with NaN where they are so small that they have lost digits; 0 stays 0."""
    return np.where((variance > 0) & (variance < least), np.nan, variance)


def normal_log_likelihood(statistics: Any, log_det: np.ndarray, n_features: int, copies: int = 1) -> np.ndarray:
    """Log-likelihood -n/2 (d ln 2 pi + ln det + d) at the maximum, from the log determinant, which may be overwritten.

    `copies` is the number of independent blocks of features, each with this log determinant.
    """
    return statistics.weighted(log_det, n_features * (LOG_2PI + 1), -0.5 * copies)


def outer_squares(x: np.ndarray, p: np.ndarray, y: np.ndarray, q: np.ndarray, factor: float) -> np.ndarray:
    """The matrix p + q + factor x.y in one matrix product, with p and q as two more features."""
    return np.column_stack([x, p, np.ones_like(p)]) @ np.column_stack([factor * y, np.ones_like(q), q]).T
