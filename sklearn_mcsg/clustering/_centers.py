"""Centres of clusters of points, and the distances of points to them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sklearn_mcsg.engine.cosine import compare_unit_rows, unit_length


def centers_of(points: np.ndarray, labels: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Mean of the points of each cluster, at unit length if the points are."""
    members = sparse.csr_array((np.ones(len(points), points.dtype), (labels, np.arange(len(points)))))
    sums = members @ points
    return unit_length(sums) if by_cosine else sums / members.sum(axis=1)[:, None]


def distances_of_rows(points: np.ndarray, others: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Distances row by row: Euclidean, or one minus the cosine."""
    return compare_unit_rows(points, others, "distance") if by_cosine else np.linalg.norm(points - others, axis=1)
