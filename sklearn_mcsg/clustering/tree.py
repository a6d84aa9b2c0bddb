"""A tree of clusters around a partition of points: finer below it, coarser above it.

    points of a cluster --Ward's linkage of a sample--> leaves --Ward's criterion--> the cluster
                                              clusters of the partition --the same--> the root

A cut at the number of clusters of the partition returns the partition. Memory is linear in the number of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.utils import check_array, check_consistent_length, check_random_state, gen_batches

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.clustering._dendrogram import tops_after

_SAMPLE = 2000  # points of a cluster that Ward's linkage divides; the others join the nearest leaf
_LEADING = 20  # coordinates of the points that the BIC sees
_NOISE = 1e-6  # variance added to that of every coordinate, so that equal points have a likelihood
_POINTS_PER_CLUSTER = 10  # at least, on average, for a number of clusters that the BIC may recommend


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A tree of clusters that contains a given partition.

    Attributes
    ----------
    leaf_of : ndarray of shape (n_points,)
        The leaf that each point belongs to.
    children : ndarray of shape (n_leaves - 1, 2)
        The two nodes of each merge. Merge ``t`` makes node ``n_leaves + t``.
    heights : ndarray of shape (n_leaves - 1,)
        Ward's criterion of each merge, in SciPy's units; made non-decreasing.
    n_clusters : int
        Number of clusters of the given partition.
    bic : ndarray of shape (n_leaves,)
        BIC of the cuts into 1, 2, ... clusters; lower is better.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg.clustering import ClusterTree
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(60) % 3
    >>> points = np.eye(3)[labels] + 0.1 * rng.normal(size=(60, 3))
    >>> tree = ClusterTree.around(points, labels, n_leaves=12)
    >>> np.array_equal(tree.cut(3), labels), len(np.unique(tree.cut(2))), tree.best_number
    (True, 2, 3)
    """

    leaf_of: np.ndarray
    children: np.ndarray
    heights: np.ndarray
    n_clusters: int
    bic: np.ndarray

    @classmethod
    def around(
        cls, points: Any, labels: Any, *, n_leaves: int = 200, random_state: int | np.random.RandomState | None = None
    ) -> ClusterTree:
        """Build the tree around a partition.

        Parameters
        ----------
        points : array-like of shape (n_points, n_components)
            The points, such as embeddings at unit length, with the leading components first.
        labels : array-like of shape (n_points,)
            The cluster of each point: 0, 1, ..., without gaps.
        n_leaves : int, default=200
            Number of leaves, or twice the number of clusters if that is more; at most the number of points.
        random_state : int, RandomState instance or None, default=None
            Determines the samples of large clusters.

        Returns
        -------
        tree : ClusterTree

        Notes
        -----
        Leaves are shared out by the sizes of the clusters. Merges inside clusters come first, in the order of their
        heights, and then those between clusters.
        """
        points, labels = _check_partition(points, labels)
        check_positive_integer(n_leaves, "n_leaves")
        rng = check_random_state(random_state)
        sizes = np.bincount(labels)
        k = len(sizes)
        shares = _shares(sizes, min(len(points), max(n_leaves, 2 * k)))
        first = np.concatenate([[0], np.cumsum(shares)])
        leaf_of = np.empty(len(points), np.intp)
        for label, members in enumerate(np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])):
            leaf_of[members] = first[label] + _divided(points[members], shares[label], rng)
        centres, weights = _centres(points, leaf_of, first[-1])
        children, heights = _merged(centres, weights, first)
        bic = _bic(points[:, :_LEADING], leaf_of, children)
        return cls(leaf_of, children, np.maximum.accumulate(heights), k, bic)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.bic)

    @property
    def best_number(self) -> int:
        """The number with the lowest BIC, of clusters with 10 points or more on average; 1 if no division lowers it."""
        most = min(self.n_leaves, max(1, len(self.leaf_of) // _POINTS_PER_CLUSTER))
        return 1 + int(np.argmin(self.bic[:most]))

    def cut(self, n_clusters: int) -> np.ndarray:
        """Cut the tree.

        Parameters
        ----------
        n_clusters : int
            Number of clusters, from 1 to `n_leaves`.

        Returns
        -------
        labels : ndarray of shape (n_points,)
            The largest cluster is 0. Of equally large clusters, the one with the first leaf comes first.
        """
        nodes = self.nodes(n_clusters)
        rank = np.empty(2 * self.n_leaves, np.intp)
        rank[nodes] = np.arange(n_clusters)
        return rank[tops_after(self.children, self.n_leaves - n_clusters)][self.leaf_of]

    def nodes(self, n_clusters: int) -> np.ndarray:
        """The nodes of the clusters of a cut.

        Parameters
        ----------
        n_clusters : int
            Number of clusters, from 1 to `n_leaves`.

        Returns
        -------
        nodes : ndarray of shape (`n_clusters`,)
            In the order of the labels that `cut` returns.
        """
        if not 1 <= n_clusters <= self.n_leaves:
            most = f"{self.n_leaves}, the number of leaves"
            raise ValueError(f"n_clusters must be between 1 and {most}, got {n_clusters}.")
        top = tops_after(self.children, self.n_leaves - n_clusters)
        sizes = np.bincount(top[self.leaf_of], minlength=2 * self.n_leaves)
        nodes, leaves = np.unique(top, return_index=True)
        return nodes[np.lexsort([leaves, -sizes[nodes]])]


def _check_partition(points: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    points = check_array(points, dtype=[np.float64, np.float32], input_name="points")
    labels = np.asarray(labels)
    check_consistent_length(points, labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be a 1-d array of integers, got shape {labels.shape}, dtype {labels.dtype}.")
    if labels.min() != 0 or len(np.unique(labels)) != labels.max() + 1:
        raise ValueError("labels must be 0, 1, ... without gaps: np.unique(labels, return_inverse=True) numbers them.")
    return points, labels


def _shares(sizes: np.ndarray, n_leaves: int) -> np.ndarray:
    """Leaves of each cluster: one each, the others in turn to the cluster with the largest leaves."""
    shares = np.ones(len(sizes), np.intp)
    waiting = [(-size, label) for label, size in enumerate(sizes.tolist())]
    heapify(waiting)
    for _ in range(n_leaves - len(sizes)):
        label = waiting[0][1]
        shares[label] += 1
        # a cluster whose leaves are single points has had its share
        heapreplace(waiting, (-sizes[label] / shares[label] if shares[label] < sizes[label] else 0, label))
    return shares


def _divided(points: np.ndarray, n_leaves: int, rng: np.random.RandomState) -> np.ndarray:
    """The leaf of each point of one cluster: Ward's linkage of a sample, and the nearest leaf for the others."""
    n = len(points)
    if n_leaves == 1:
        return np.zeros(n, np.intp)
    some = np.sort(rng.choice(n, max(_SAMPLE, n_leaves), replace=False)) if n > max(_SAMPLE, n_leaves) else np.arange(n)
    children = linkage(points[some], "ward")[:, :2].astype(np.intp)
    leaves = np.unique(tops_after(children, len(some) - n_leaves), return_inverse=True)[1]
    if len(some) == n:
        return leaves
    centres = _centres(points[some], leaves, n_leaves)[0].astype(points.dtype)
    halves = (centres**2).sum(axis=1) / 2
    found = np.concatenate([(halves - points[batch] @ centres.T).argmin(axis=1) for batch in gen_batches(n, POINTS)])
    found[some] = leaves  # so that no leaf is empty
    return found


def _centres(points: np.ndarray, leaf_of: np.ndarray, n_leaves: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres of leaves in double precision, and their numbers of points."""
    order = np.argsort(leaf_of, kind="stable")
    sizes = np.bincount(leaf_of, minlength=n_leaves)
    starts = np.cumsum(sizes) - sizes
    return np.add.reduceat(points[order], starts, axis=0, dtype=np.float64) / sizes[:, None], sizes.astype(np.float64)


def _merged(centres: np.ndarray, sizes: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All merges of leaves: those inside clusters, whose leaves begin at `first`, in order, then those between them."""
    n_leaves = len(sizes)
    wards = [_ward(centres[begin:end], sizes[begin:end]) for begin, end in pairwise(first)]
    inside = [(height, label, left, right) for label, ward in enumerate(wards) for left, right, height in ward]
    # within a cluster heights never fall, so sorting by height keeps the order of its merges
    inside.sort(key=lambda merge: merge[:2])
    nodes = [list(range(*edges)) for edges in pairwise(first)]
    children, heights = [], []
    for height, label, left, right in inside:
        children.append((nodes[label][left], nodes[label][right]))
        heights.append(height)
        nodes[label].append(n_leaves + len(children) - 1)
    weights = np.add.reduceat(sizes, first[:-1])
    tops = np.add.reduceat(sizes[:, None] * centres, first[:-1], axis=0) / weights[:, None]
    names = [of[-1] for of in nodes]
    for left, right, height in _ward(tops, weights):
        children.append((names[left], names[right]))
        heights.append(height)
        names.append(n_leaves + len(children) - 1)
    return np.array(children, np.intp).reshape(-1, 2), np.array(heights, np.float64)


def _ward(centres: np.ndarray, sizes: np.ndarray) -> list[tuple[int, int, float]]:
    """Ward's merges of weighted points in order of height, by chains of nearest neighbours in linear memory."""
    n = len(sizes)
    centres, sizes = np.vstack([centres, np.empty((n - 1, centres.shape[1]))]), np.append(sizes, np.zeros(n - 1))
    alive = np.arange(n)  # nodes that are not merged yet, in ascending order
    found: list[tuple[int, int, float]] = []
    chain: list[int] = []
    for t in range(n - 1):
        if not chain:
            chain.append(alive[0])
        while True:
            tip = chain[-1]
            others = alive[alive != tip]
            squares = ((centres[others] - centres[tip]) ** 2).sum(axis=1)
            costs = 2 * sizes[tip] * sizes[others] / (sizes[tip] + sizes[others]) * squares
            nearest = others[costs.argmin()]
            if len(chain) > 1 and costs[np.searchsorted(others, chain[-2])] <= costs.min():
                break  # two nodes that are nearest to each other
            chain.append(nearest)
        tip, other = chain.pop(), chain.pop()
        found.append((other, tip, float(np.sqrt(costs[np.searchsorted(others, other)]))))
        node, total = n + t, sizes[tip] + sizes[other]
        sizes[node], centres[node] = total, (sizes[tip] * centres[tip] + sizes[other] * centres[other]) / total
        alive = np.append(alive[(alive != tip) & (alive != other)], node)
    return _in_order(found, n)


def _in_order(merges: list[tuple[int, int, float]], n: int) -> list[tuple[int, int, float]]:
    """Merges sorted by height, with nodes renumbered; rounding never puts a merge before one that it needs."""
    heights = np.zeros(2 * n - 1)
    for t, (left, right, height) in enumerate(merges):
        heights[n + t] = max(height, heights[left], heights[right])
    name = np.arange(2 * n - 1)
    order = n + np.argsort(heights[n:], kind="stable")
    name[order] = np.arange(n, 2 * n - 1)
    pairs = (sorted(name[list(merges[node - n][:2])].tolist()) for node in order)
    return [(left, right, float(height)) for (left, right), height in zip(pairs, heights[order], strict=True)]


def _bic(points: np.ndarray, leaf_of: np.ndarray, children: np.ndarray) -> np.ndarray:
    """BIC of every cut, as a mixture of normals with one diagonal covariance, each point in its own cluster.

    A merge of clusters of a and b points adds ab / (a + b) (difference of the centres)**2 to the sums of squares.
    """
    n, (n_leaves, p) = len(points), (len(children) + 1, points.shape[1])
    centres, sizes = _centres(points, leaf_of, n_leaves)
    squares = ((points - centres[leaf_of]) ** 2).sum(axis=0, dtype=np.float64)
    entropy = float(sizes @ np.log(sizes / n))
    nodes = list(zip(sizes, centres, strict=True))
    bic = np.empty(n_leaves)
    for t in range(n_leaves):
        k = n_leaves - t
        normal = n * (np.log(2 * np.pi * (squares / n + _NOISE)) + 1).sum()
        bic[k - 1] = normal - 2 * entropy + np.log(n) * (k * p + p + k - 1)
        if k > 1:
            (a, left), (b, right) = nodes[children[t, 0]], nodes[children[t, 1]]
            squares = squares + a * b / (a + b) * (left - right) ** 2
            entropy += (a + b) * np.log((a + b) / n) - a * np.log(a / n) - b * np.log(b / n)
            nodes.append((a + b, (a * left + b * right) / (a + b)))
    return bic
