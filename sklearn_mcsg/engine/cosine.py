"""Cosines of vectors at unit length, as similarities or distances."""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import COSINES, count_within


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
    for batch in gen_batches(len(values), count_within(values.itemsize * len(right), COSINES)):
        block = values[batch]
        np.clip(block, -1, 1, out=block)
        if output == "distance":
            np.subtract(1, block, out=block)
    if right is left and output == "distance":
        np.fill_diagonal(values, 0)
    return values


def compare_unit_rows(left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
    """Compare unit vectors row by row; the cosine with a zero vector is 0.

    One minus the cosine is half the squared length of the difference, which keeps its digits where vectors are close.
    """
    apart = left - right
    distances = 0.5 * np.einsum("ij,ij->i", apart, apart)
    distances[~(left.any(axis=1) & right.any(axis=1))] = 1
    return distances if output == "distance" else 1 - distances
