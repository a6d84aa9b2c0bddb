"""Nearest neighbours of all points: by comparing all pairs or, if there are many, by an inverted file.

    points --k-means of a sample--> centres --the nearest--> lists of at most 512 points
    each point --the 96 lists with the nearest centres--> its nearest points among their members

Each point is compared with at most 49,152 others, so time is close to linear in the number of points; only comparing
all points with all centres is not. Nothing is random, and the number of jobs changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import CANDIDATES, COSINES, count_within
from sklearn_mcsg.engine.parallel import ONE_BLAS_THREAD, progress, run
from sklearn_mcsg.search.nearest import Nearest, smallest, without_self

_EXACT_POINTS = 50_000  # points whose neighbours are found by comparing all pairs
_LIST = 512  # most points of a list, and their mean number for each centre
_PROBES = 96  # lists that each point is compared with
_BLOCK = 2**14  # points that are compared at a time, so that hundreds of them share a list
_TRAINING = 32  # points for each centre that k-means uses
_ROUNDS = 4  # of k-means: lists need not be the best ones


def nearest_points(points: np.ndarray, k: int, n_jobs: int | None = None, verbose: int = 0) -> Nearest:
    """Euclidean distances and indices of the k nearest neighbours of each point, which is not its own.

    Above 50,000 points they are found among the members of near lists. Beside points and neighbours, this takes the
    memory of a tenth of the points, and about 200 MiB for each job.
    """
    if len(points) <= _EXACT_POINTS:
        with ONE_BLAS_THREAD:  # as this search does itself, but not for several threads that overlap
            found = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=n_jobs).fit(points).kneighbors()
        return found[0].astype(points.dtype, copy=False), found[1]
    lists = _Lists.of(points)
    distances, neighbours = np.empty((len(points), k), points.dtype), np.empty((len(points), k), np.int32)
    blocks = list(gen_batches(len(points), _BLOCK))
    tasks = ((lists, points, lists.members[block], k) for block in blocks)
    with progress(verbose, len(points), "neighbours", " groups") as advance:
        for rows, *found in run(_nearest_in_lists, tasks, len(blocks), n_jobs):
            distances[rows], neighbours[rows] = found
            advance(len(rows))
    return distances, neighbours


@dataclass(frozen=True, eq=False)
class _Lists:
    """Points in lists of near ones.

    Attributes
    ----------
    centres : ndarray of shape (n_lists, n_components)
        The centre of each list. If more points are near a centre than a list holds, several lists have it.
    members : ndarray of shape (n_points,)
        The points of all lists, one list after the other.
    starts : ndarray of shape (n_lists + 1,)
        Where each list begins among them, and where the last one ends.
    """

    centres: np.ndarray
    members: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> Self:
        """Divide points among centres; no list is empty."""
        centres = _centres(points, -(-len(points) // _LIST))
        labels = nearest_centres(points, centres, 1)[:, 0]
        sizes = np.bincount(labels, minlength=len(centres))
        n_lists = -(-sizes // _LIST)
        first = np.repeat(np.cumsum(n_lists) - n_lists, n_lists)
        starts = np.repeat(np.cumsum(sizes) - sizes, n_lists) + _LIST * (np.arange(len(first)) - first)
        members = np.argsort(labels, kind="stable").astype(np.int32)
        return cls(np.repeat(centres, n_lists, axis=0), members, np.append(starts, len(points)))


def _centres(points: np.ndarray, n_centres: int) -> np.ndarray:
    """Centres by a few rounds of k-means, for a sample that is spread evenly over the points."""
    some = points[np.linspace(0, len(points) - 1, min(len(points), _TRAINING * n_centres)).astype(int)]
    centres = some[np.linspace(0, len(some) - 1, n_centres).astype(int)]
    for _ in range(_ROUNDS):
        labels = nearest_centres(some, centres, 1)[:, 0]
        members = sparse.csr_array((np.ones(len(some), some.dtype), (labels, np.arange(len(some)))))
        sizes = np.bincount(labels)
        used = np.flatnonzero(sizes)
        centres[used] = (members @ some)[used] / sizes[used, None]
    return centres


def nearest_centres(points: np.ndarray, centres: np.ndarray, n: int) -> np.ndarray:
    """The n nearest centres of each point, in any order."""
    middle = centres.mean(axis=0)
    centres = centres - middle
    halves = 0.5 * np.einsum("ij,ij->i", centres, centres)
    nearest = np.empty((len(points), n), np.int32)
    for batch in gen_batches(len(points), count_within(points.itemsize * len(centres), COSINES)):
        squares = (points[batch] - middle) @ centres.T
        np.subtract(halves, squares, out=squares)  # halved, and without what is the same for all centres
        nearest[batch] = np.argpartition(squares, n - 1, axis=1)[:, :n]
    return nearest


def _nearest_in_lists(
    lists: _Lists, points: np.ndarray, rows: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some points, and the distances and indices of the nearest neighbours of each among the members of near lists."""
    given = points[rows]
    n_probes = min(max(_PROBES, k + 1), len(lists.centres))  # no list is empty, so there are enough members
    probes = nearest_centres(given, lists.centres, n_probes)
    by_list = np.argsort(probes, axis=None, kind="stable")
    places, first = np.unique(probes.ravel()[by_list], return_index=True)
    squares = np.full((len(rows), k + 1), np.inf, points.dtype)  # one more, which may be the point itself
    found = np.full((len(rows), k + 1), -1, np.int32)
    for place, some in zip(places, np.split(by_list // n_probes, first[1:]), strict=True):
        members = lists.members[lists.starts[place] : lists.starts[place + 1]]
        left, right = (side - lists.centres[place] for side in (given[some], points[members]))  # short: digits are kept
        near = left @ (-2 * right.T)
        near += np.einsum("ij,ij->i", left, left)[:, None]
        near += np.einsum("ij,ij->i", right, right)
        changed = (near < squares[some, -1:]).any(axis=1)
        some, near = some[changed], near[changed]
        both = np.hstack([squares[some], near])
        columns = np.argpartition(both, k, axis=1)[:, : k + 1]
        squares[some] = np.take_along_axis(both, columns, axis=1)
        both = np.hstack([found[some], np.broadcast_to(members, near.shape)])
        found[some] = np.take_along_axis(both, columns, axis=1)
    return rows, *_compared(points, rows, without_self(found, rows))


def _compared(points: np.ndarray, rows: np.ndarray, found: np.ndarray) -> Nearest:
    """Distances of some points to those found for each, and these, sorted by distance and then by index."""
    distances = np.empty(found.shape, points.dtype)
    for batch in gen_batches(len(rows), count_within(points.itemsize * found.shape[1] * points.shape[1], CANDIDATES)):
        apart = points[found[batch]]
        apart -= points[rows[batch], None]
        distances[batch] = np.sqrt(np.einsum("...i,...i->...", apart, apart))
    distances, columns = smallest(distances, found.shape[1])
    return distances, np.take_along_axis(found, columns, axis=1)
