"""P-values of several tests, corrected for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from sklearn_mcsg.groups.checks import as_array, check_numeric


def adjust_pvalues(pvalues: ArrayLike, method: str = "holm") -> np.ndarray:
    """Correct the p-values of a family of tests for their number.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        The p-values, one per test. Leave out tests that were not carried out.
    method : {"holm", "fdr"}, default="holm"
        How to correct p-values: ``"holm"`` bounds the chance that any test is a false alarm, whatever the dependence of
        the tests. ``"fdr"`` bounds the expected share of false alarms among all alarms (Benjamini and Hochberg), for
        tests that are independent or positively dependent; it finds more.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        Corrected p-values, at least as large as the given ones: compare them with the level.

    Notes
    -----
    Let the p-values be sorted, the smallest first, and m be their number. Holm multiplies the i-th by m + 1 - i, and
    none may be smaller than the one before it. Benjamini and Hochberg multiply it by m / i, and none may be larger than
    the one after it.

    Examples
    --------
    >>> from sklearn_mcsg import adjust_pvalues
    >>> adjust_pvalues([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    >>> adjust_pvalues([0.01, 0.04, 0.03], method="fdr")
    array([0.03, 0.04, 0.04])
    """
    values = check_numeric(as_array(pvalues, "pvalues"), "pvalues").astype(np.float64, copy=False)
    if values.ndim != 1:
        raise ValueError(f"pvalues must be one-dimensional, one per test, got shape {values.shape}.")
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"pvalues must lie between 0 and 1, got {values[i]:g} at position {i}. Leave out tests without a p-value."
        )
    if method == "holm":
        return _holm(values)
    if method == "fdr":
        return false_discovery_control(values) if len(values) else values
    raise ValueError(f"method must be 'holm' or 'fdr', got {method!r}.")


def _holm(values: np.ndarray) -> np.ndarray:
    order = np.argsort(values)
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1)
    return adjusted
