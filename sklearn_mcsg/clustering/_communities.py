"""Communities of points: parts of the graph of nearest neighbours that have more edges inside than expected.

points --nearest neighbours--> graph --Louvain--> communities at a resolution
                                     --resolutions until the number is right--> k communities
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sklearn_mcsg.search.nearest import nearest_points

_STEPS = 20  # resolutions that are tried, at most, to find a number of communities


def neighbour_graph(
    points: np.ndarray, n_neighbors: int, n_jobs: int | None = None, *, by_cosine: bool
) -> sparse.csr_matrix:
    """The symmetric graph that joins two points if either is among the nearest of the other.

    The weight of an edge is the cosine of the points if they have unit length, and otherwise 1.
    """
    n = len(points)
    k = min(n_neighbors, n - 1)
    distances, neighbours = nearest_points(points, k, n_jobs)
    weights = np.maximum(1 - distances**2 / 2, 0) if by_cosine else np.ones_like(distances)
    graph = sparse.csr_matrix((weights.ravel(), neighbours.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    graph.eliminate_zeros()
    return graph.maximum(graph.T).tocsr()


def find_communities(graph: sparse.csr_matrix, resolution: float, seed: int) -> np.ndarray:
    """The community of each point by Louvain's method; a larger `resolution` finds more of them.

    All points of a graph without edges are one community.
    """
    from sknetwork.clustering import Louvain

    if not graph.nnz:
        return np.zeros(graph.shape[0], dtype=int)
    return Louvain(resolution, shuffle_nodes=True, random_state=seed).fit_predict(graph).astype(int)


def find_k_communities(graph: sparse.csr_matrix, k: int, seed: int) -> tuple[np.ndarray, float] | None:
    """A given number of communities, and the resolution that finds them.

    None if no resolution finds as many, or if resolution 1, which maximises modularity itself, finds more. If the
    number jumps over `k`, the smallest larger number is reduced to it by merging.
    """
    exponent = 0.0  # of 2: the resolution
    few, many = 0.0, np.inf  # exponents that find fewer communities and more
    more = None  # the communities at `many`
    for _ in range(_STEPS):
        labels = find_communities(graph, 2.0**exponent, seed)
        number = int(labels.max()) + 1
        if number == k:
            return labels, 2.0**exponent
        if number < k:
            few = exponent
        elif exponent == 0:
            return None
        else:
            many, more = exponent, labels
        exponent = few + 1 if more is None else (few + many) / 2
    return None if more is None else (_merged(graph, more, k), 2.0**many)


def modularity(graph: sparse.csr_matrix, labels: np.ndarray, resolution: float = 1.0) -> float:
    """Share of the edges' weight inside clusters, minus `resolution` times the share expected by the degrees."""
    between = _weights_between(graph, labels)
    return float(np.trace(between) - resolution * (between.sum(axis=1) ** 2).sum())


def _merged(graph: sparse.csr_matrix, labels: np.ndarray, k: int) -> np.ndarray:
    """Clusters merged to k of them, each time the two that change modularity most."""
    between = _weights_between(graph, labels)
    names = np.arange(len(between))
    while len(between) > k:
        gain = between - np.outer(between.sum(axis=1), between.sum(axis=1))
        np.fill_diagonal(gain, -np.inf)
        kept, gone = sorted(np.unravel_index(gain.argmax(), gain.shape))
        between[kept] += between[gone]
        between[:, kept] += between[:, gone]
        between = np.delete(np.delete(between, gone, axis=0), gone, axis=1)
        names[names == gone] = kept
        names[names > gone] -= 1
    return names[labels]


def _weights_between(graph: sparse.csr_matrix, labels: np.ndarray) -> np.ndarray:
    """Share of the weight of all edges that joins each two clusters."""
    member = sparse.csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    between = (member @ graph @ member.T).toarray()
    return between / max(between.sum(), np.finfo(float).tiny)
