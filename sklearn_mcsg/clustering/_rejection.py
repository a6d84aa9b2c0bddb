"""Points that no cluster explains: those farther from the centre of their cluster than its threshold.

    distances to the own centre --each point left out--> cube roots of squares --counted--> thresholds

Thresholds are learnt from all points, and outliers are among them. Medians and lower quantiles hardly depend on
outliers, so they tell which points are.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from sklearn_mcsg.clustering._points import PointClusters

_FEW = 10  # members: a cluster with fewer gets the quantiles of all clusters together
_QUANTILES = norm.cdf(-1), 0.5  # the first is one standard deviation below the second
_OUTLYING = 6.0  # standard deviations above the median
_ROUNDING = 8  # times the precision of the largest coordinate, so that equal points are never rejected


def reject_points(
    points: np.ndarray, clusters: PointClusters, level: float, by_cosine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Labels, with -1 for points that are farther from their cluster than its threshold, and the thresholds.

    A point that is alone in its cluster is accepted.
    """
    labels = clusters.labels.copy()
    left_out = left_out_distances(clusters.center_distances, labels, by_cosine)
    thresholds = thresholds_of(left_out, labels, len(clusters.centers), level, by_cosine=by_cosine)
    thresholds = (thresholds + _ROUNDING * np.finfo(points.dtype).eps * np.abs(points).max()).astype(points.dtype)
    labels[np.isfinite(left_out) & (left_out > thresholds[labels])] = -1
    return labels, thresholds


def left_out_distances(distances: np.ndarray, labels: np.ndarray, by_cosine: bool) -> np.ndarray:
    """Distances of points to the centre of the others of their cluster, from those to the centre of all of it.

    For means, x - (n c - x) / (n - 1) = (x - c) n / (n - 1). For directions, the sum s of a cluster has the length of
    the sum of its cosines, and without x the cosine is (s.x - 1) / |s - x|. Infinite for a point alone.
    """
    distances = distances.astype(np.float64)
    sizes = np.bincount(labels)[labels]
    with np.errstate(divide="ignore", invalid="ignore"):
        if not by_cosine:
            return np.where(sizes > 1, distances * sizes / (sizes - 1), np.inf)
        lengths = np.bincount(labels, 1 - distances)[labels]
        along = lengths * (1 - distances)
        rest = np.sqrt(np.maximum(lengths**2 - 2 * along + 1, 0))
        cosines = np.where(rest > 0, (along - 1) / rest, 0)
    return np.where(sizes > 1, 1 - np.clip(cosines, -1, 1), np.inf)


def thresholds_of(
    left_out: np.ndarray, labels: np.ndarray, n_clusters: int, level: float, *, by_cosine: bool
) -> np.ndarray:
    """Distances that a share `level` of the members of all clusters exceeds, outliers not counted.

    Parameters
    ----------
    left_out : ndarray of shape (n_points,)
        Distance of each point to the centre of the others of its cluster.
    labels : ndarray of shape (n_points,)
        The clusters.
    n_clusters : int
        Number of clusters.
    level : float
        The share.
    by_cosine : bool
        Whether distances are one minus the cosine, which is half a squared distance, or Euclidean.

    Notes
    -----
    The cube root of a sum of squares is close to normal (Wilson and Hilferty), and a normal variable with median m and
    16 % quantile q has the standard deviation m - q. These two are those of each cluster, or of all clusters together
    if it has few members. How far members lie above m, in units of m - q, is compared over all clusters: the threshold
    is the distance that a share `level` of them exceeds, counted, so that nothing depends on the tail of the normal
    distribution. Points beyond six units are outliers and do not count, because they would raise the threshold.
    """
    known = np.flatnonzero(np.isfinite(left_out))
    if not len(known):
        raise ValueError(
            "Every cluster has only one group: thresholds are learnt by leaving groups out. Set reject=False, or a "
            "smaller n_clusters."
        )
    power = 1 / 3 if by_cosine else 2 / 3
    roots = left_out**power
    low, middle = np.tile(np.quantile(roots[known], _QUANTILES)[:, None], n_clusters)
    for label in np.flatnonzero(np.bincount(labels, minlength=n_clusters) >= _FEW):
        low[label], middle[label] = np.quantile(roots[labels == label], _QUANTILES)
    spread = middle - low
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.nan_to_num(((roots - middle[labels]) / spread[labels])[known], nan=0.0)
    members = np.sort(above[above <= _OUTLYING])
    place = min(len(members), int(np.ceil((len(members) + 1) * (1 - level))))
    return np.maximum(middle + members[place - 1] * spread, 0) ** (1 / power)
