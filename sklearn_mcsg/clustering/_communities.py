"""Communities of points: parts of the graph of nearest neighbours that have more edges inside than expected.

points --nearest neighbours--> graph --Louvain--> communities at each resolution
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from multiprocessing import current_process

import numpy as np
from joblib import effective_n_jobs
from joblib.externals.loky import ProcessPoolExecutor
from scipy import sparse

from sklearn_mcsg.search.inverted import nearest_points

_INTERRUPTED_UP_TO = 20_000  # points whose communities are found within a second


def find_communities(
    graph: sparse.csr_matrix, resolutions: Sequence[float], random_state: np.random.RandomState, n_jobs: int | None
) -> list[np.ndarray]:
    """Communities in a graph of nearest neighbours.

    Parameters
    ----------
    graph : csr_matrix of shape (n_points, n_points)
        The graph, as from `neighbour_graph`.
    resolutions : sequence of float
        Larger values find more communities.
    random_state : RandomState
        Determines the order in which communities grow.
    n_jobs : int or None
        Number of jobs.

    Returns
    -------
    labels : list of ndarrays of shape (n_points,)
        The communities at each resolution.
    """
    n_points = graph.shape[0]
    if not graph.nnz:
        return [np.zeros(n_points, dtype=int) for _ in resolutions]
    seed = int(random_state.randint(2**31))  # one: each resolution gives what it gives alone
    if n_points <= _INTERRUPTED_UP_TO or current_process().daemon:
        return [_louvain(graph, resolution, seed) for resolution in resolutions]
    # outside this process, so that Ctrl-C works: compiled code that runs for a minute ignores it
    executor = ProcessPoolExecutor(min(effective_n_jobs(n_jobs), len(resolutions)))
    try:
        return list(executor.map(_louvain, repeat(graph), resolutions, repeat(seed)))
    finally:
        executor.shutdown(kill_workers=True)


def _louvain(graph: sparse.csr_matrix, resolution: float, seed: int) -> np.ndarray:
    from sknetwork.clustering import Louvain

    return Louvain(resolution, shuffle_nodes=True, random_state=seed).fit_predict(graph).astype(int)


def neighbour_graph(
    points: np.ndarray, n_neighbors: int, n_jobs: int | None = None, verbose: int = 0, *, by_cosine: bool
) -> sparse.csr_matrix:
    """The symmetric graph that joins two points if either is among the nearest of the other.

    The weight of an edge is the cosine of the points if they have unit length, and otherwise 1.
    """
    n = len(points)
    k = min(n_neighbors, n - 1)
    distances, neighbours = nearest_points(points, k, n_jobs, verbose)
    weights = np.maximum(1 - distances**2 / 2, 0) if by_cosine else np.ones_like(distances)
    graph = sparse.csr_matrix((weights.ravel(), neighbours.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    graph.eliminate_zeros()
    return graph.maximum(graph.T).tocsr()
