"""How many clusters points have: as many as are found again in other points.

    points --halves, at random--> communities of each half, at many resolutions
           --the nearest centre of the other half--> agreement of both --> the number of clusters

Communities of one half place the points of the other half by the nearest centre, and the adjusted Rand index says how
well that agrees with the communities of the other half itself. Of all resolutions that agree nearly as well as the
best, the smallest decides: subdivisions that are as reproducible as the division are not clusters of their own.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_mcsg.clustering._centers import centers_of, nearest_center
from sklearn_mcsg.clustering._communities import find_communities, modularity, neighbour_graph

_RESOLUTIONS = 2.0 ** np.arange(-2, 6, 0.5)
_SPLITS = 4  # into halves
_MOST = 4000  # points that are split
FEWEST_SPLIT = 20  # points: halves of fewer have no communities
_NEARLY = 0.05  # below the best agreement
_PLAUSIBLE = 0.8  # share of the largest modularity that a number of clusters must have


def find_number(
    points: np.ndarray, n_neighbors: int, random_state: np.random.RandomState, n_jobs: int | None, *, by_cosine: bool
) -> int:
    """The number of clusters of points, as `GroupClustering` finds it.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_components)
        The points.
    n_neighbors : int
        Number of neighbours of each point in the graphs of the halves.
    random_state : RandomState
        Determines the halves.
    n_jobs : int or None
        Number of jobs.
    by_cosine : bool
        Whether points have unit length and are compared by the cosine.

    Returns
    -------
    number : int
    """
    n = len(points)
    if n == 1:
        return 1
    if n < FEWEST_SPLIT:
        graph = neighbour_graph(points, n_neighbors, n_jobs, by_cosine=by_cosine)
        return int(find_communities(graph, 1.0, 0).max()) + 1
    found = []
    for _ in range(_SPLITS):
        order = random_state.permutation(n)[:_MOST]
        halves = [points[half] for half in np.array_split(order, 2)]
        found.append(_agreement(halves, n_neighbors, n_jobs, by_cosine))
    agreement, quality, numbers = np.mean(found, axis=0)
    agreement[quality < _PLAUSIBLE * quality.max()] = -np.inf
    return max(1, round(numbers[np.flatnonzero(agreement >= agreement.max() - _NEARLY)[0]]))


def _agreement(halves: list[np.ndarray], n_neighbors: int, n_jobs: int | None, by_cosine: bool) -> np.ndarray:
    """Agreement of two halves, modularity and number of their communities, at each resolution."""
    graphs = [neighbour_graph(half, n_neighbors, n_jobs, by_cosine=by_cosine) for half in halves]
    rows = []
    for resolution in _RESOLUTIONS:
        labels = [find_communities(graph, resolution, 0) for graph in graphs]
        centers = [centers_of(half, own, by_cosine) for half, own in zip(halves, labels, strict=True)]
        placed = [nearest_center(halves[i], centers[1 - i]) for i in range(2)]
        agreement = [adjusted_rand_score(*pair) for pair in zip(labels, placed, strict=True)]
        quality = [modularity(*pair) for pair in zip(graphs, labels, strict=True)]
        rows.append([np.mean(agreement), np.mean(quality), np.mean([len(each) for each in centers])])
    return np.transpose(rows)
