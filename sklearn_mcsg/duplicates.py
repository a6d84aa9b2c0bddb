"""Near-duplicates: sets of groups within a small distance of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator

from sklearn_mcsg._checks import check_number, check_share
from sklearn_mcsg._estimator import ComparesGroups
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.neighbors import GroupNeighbors

__all__ = ["find_duplicates"]


def find_duplicates(
    X: GroupsLike,
    *,
    threshold: float | None = None,
    level: float | None = None,
    similarity: ComparesGroups | BaseEstimator | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[np.ndarray]:
    """Find sets of groups that are near-duplicates of each other.

    Two groups are duplicates if their distance is at most the threshold. Duplicates of duplicates belong to one set.

    Parameters
    ----------
    X : groups, or input of the pipeline
        The groups.
    threshold : float, default=None
        Largest distance between duplicates, in the similarity's output.
    level : float, default=None
        Accepted rate of false duplicates among random pairs, in place of a threshold. The threshold then follows from
        `ModelComparisonSimilarity.calibrate`, extrapolated to small levels. Among n groups there are n (n - 1) / 2
        pairs: a level of 1e-5 gives one false pair among 450 groups.
    similarity : estimator, default=None
        As in `GroupNeighbors`.
    n_jobs : int, default=None
        Number of jobs.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    duplicates : list of ndarray
        Indices of each set of two groups or more, in increasing order.

    Examples
    --------
    >>> from sklearn_mcsg import find_duplicates
    >>> X = [[[0.0], [1.0]], [[8.0], [9.0]], [[1.0], [0.0]], [[8.0], [9.5]]]
    >>> find_duplicates(X, threshold=0.01)
    [array([0, 2])]
    >>> find_duplicates(X, threshold=1.0)
    [array([0, 2]), array([1, 3])]
    """
    if (threshold is None) == (level is None):
        raise ValueError("find_duplicates needs either a threshold or a level.")
    if threshold is not None:
        check_number(threshold, "threshold")
    index = GroupNeighbors(similarity, n_jobs=n_jobs, verbose=verbose).fit(X)
    limit = (lambda rows: threshold) if level is None else _limits(index.comparer(), level)
    n, start = index.n_samples_fit_, 0
    first = np.arange(n)  # the first group in each group's set
    for distances, _ in index.distance_blocks(self_distance=np.nan):
        rows, near = np.nonzero(distances <= limit(slice(start, start + len(distances))))
        rows, near = np.concatenate([rows + start, np.arange(n)]), np.concatenate([near, first])
        graph = sparse.csr_matrix((np.ones(len(rows), dtype=bool), (rows, near)), shape=(n, n))
        _, labels = connected_components(graph, directed=False)
        first = np.unique(labels, return_index=True)[1][labels]
        start += len(distances)
    order = np.argsort(first, kind="stable")
    sets = np.split(order, np.flatnonzero(np.diff(first[order])) + 1)
    return [members for members in sets if len(members) > 1]


def _limits(similarity: Any, level: float) -> Callable[[slice], np.ndarray]:
    """A function that gives the largest distances between duplicates, for a slice of rows."""
    check_share(level, "level")
    if not hasattr(similarity, "calibrate"):
        raise TypeError(f"{type(similarity).__name__} cannot be calibrated: give find_duplicates a threshold.")
    if similarity.higher_is_nearer:
        raise ValueError("level needs a distance: choose another output of the similarity, such as 'distance'.")
    return similarity.calibrate().duplicate_limits(level)
