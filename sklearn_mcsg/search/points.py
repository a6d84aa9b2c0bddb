"""Nearest neighbours among points, exactly or among candidates."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

from sklearn_mcsg._extras import has_extra
from sklearn_mcsg._memory import CANDIDATES, count_within
from sklearn_mcsg.engine.coordinates import PointSpace
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.search.candidates import CandidateIndex

_EXACT_UP_TO = 50_000  # points whose neighbours are found by comparing all pairs
_CANDIDATES = 4  # for each neighbour, above


def nearest_points(
    points: np.ndarray, k: int, n_jobs: int | None = None, verbose: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Euclidean distances and indices of the k nearest neighbours of each point, which is not its own.

    Above 50,000 points they are found among candidates if faiss is installed.
    """
    if len(points) <= _EXACT_UP_TO or not has_extra("faiss"):
        return NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=n_jobs).fit(points).kneighbors()
    index = CandidateIndex.learnt_from(PointSpace(None, directions=False), points)
    distances, neighbours = np.empty((len(points), k), points.dtype), np.empty((len(points), k), np.int64)
    step = count_within(points.itemsize * _CANDIDATES * k * points.shape[1], CANDIDATES)
    with progress(verbose, len(points), "neighbours", " groups") as advance:
        for batch in gen_batches(len(points), step):
            rows = np.arange(batch.start, batch.stop)
            found = index.search(index.points(points[batch]), _CANDIDATES * k + 1, n_jobs)
            near = points[found]
            near -= points[batch, None]
            apart = np.sqrt(np.einsum("...i,...i->...", near, near))
            apart[found == rows[:, None]] = np.inf
            best = np.argpartition(apart, k - 1, axis=1)[:, :k]
            distances[batch] = np.take_along_axis(apart, best, axis=1)
            neighbours[batch] = np.take_along_axis(found, best, axis=1)
            advance(len(rows))
    return distances, neighbours
