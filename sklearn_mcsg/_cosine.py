"""Cosines of vectors at unit length, as similarities or distances."""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg.engine.blocks import count_within

_CACHE_BYTES = 2**21  # of a matrix that is finished while it is in the processor's cache


def unit_length(vectors: np.ndarray, rounding: float = 0.0) -> np.ndarray:
    """Vectors scaled to length 1, in the same precision; vectors without entries above `rounding` become zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = vectors / np.where(largest > rounding, largest, np.inf)  # so that squares neither overflow nor underflow
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    scaled /= np.where(length > 0, length, 1)[:, None]
    return scaled


def compare_units(left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
    """Compare all pairs of unit vectors; if `right` is `left`, the matrix is symmetric and takes half the time.

    Parameters
    ----------
    left, right : ndarrays of shape (n_left, n_features) and (n_right, n_features)
        Vectors at unit length.
    output : {"similarity", "distance"}
        The cosine, or one minus the cosine.
    """
    values = left @ right.T
    for batch in gen_batches(len(values), count_within(values.itemsize * len(right), _CACHE_BYTES)):
        _finish(values[batch], output)
    if right is left and output == "distance":
        np.fill_diagonal(values, 0)
    return values


def compare_unit_rows(left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
    """Compare unit vectors row by row."""
    return _finish(np.einsum("ij,ij->i", left, right), output)


def _finish(cosines: np.ndarray, output: str) -> np.ndarray:
    """Remove rounding beyond 1 and turn cosines into the output, in place."""
    np.clip(cosines, -1, 1, out=cosines)
    return np.subtract(1, cosines, out=cosines) if output == "distance" else cosines
