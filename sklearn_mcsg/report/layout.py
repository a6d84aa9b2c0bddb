"""Layout of the map, on which neighbours are near each other."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.spatial import KDTree
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

_GAP = 0.015  # between two points, as a share of the map's width
_FEW_POINTS = 10  # fewer points are placed by classical scaling only


def map_of(distances: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Points in the unit square, with neighbours near each other and without overlaps."""
    n = len(distances)
    with threadpool_limits(1):  # sums over several threads differ from run to run
        points = _scaled(distances)
        deviation = points[:, 0].std()
        if n >= _FEW_POINTS and deviation > 0:
            start = (1e-4 / deviation * points).astype(np.float32)
            tsne = TSNE(perplexity=min(20, (n - 1) / 3), max_iter=500, metric="precomputed", init=start)
            tsne.random_state = random_state
            points = tsne.fit_transform(np.sqrt(distances)).astype(np.float64)
        points -= points.mean(axis=0)
        points = points @ np.linalg.eigh(points.T @ points)[1][:, ::-1]  # the longer side along the first axis
        return _fitted_into_unit(_apart(_fitted_into_unit(points)))


def _scaled(distances: np.ndarray) -> np.ndarray:
    """Classical scaling of squared distances to two dimensions."""
    n, points = len(distances), np.zeros((len(distances), 2))
    centred = distances - distances.mean(axis=0)
    centred = (centred.mean(axis=1, keepdims=True) - centred) / 2
    values, vectors = eigh(centred, subset_by_index=[max(0, n - 2), n - 1])
    points[:, : len(values)] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1]
    return points


def _fitted_into_unit(points: np.ndarray) -> np.ndarray:
    low, high = points.min(axis=0), points.max(axis=0)
    return 0.5 + (points - (low + high) / 2) / (max(high - low) or 1)


def _apart(points: np.ndarray) -> np.ndarray:
    """Move overlapping points apart."""
    angles = 2.4 * np.arange(len(points))
    points = points + 1e-6 * np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(50):
        left, right = KDTree(points).query_pairs(_GAP, output_type="ndarray").T
        offsets = points[left] - points[right]
        lengths = np.linalg.norm(offsets, axis=1, keepdims=True)
        steps = offsets * (_GAP - lengths) / (2 * lengths)
        np.add.at(points, left, steps)
        np.add.at(points, right, -steps)
    return points
