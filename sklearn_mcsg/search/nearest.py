"""Search for the nearest groups: by comparison with all of them, or with approximate candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import gen_batches, gen_even_slices

from sklearn_mcsg._memory import count_within
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.parallel import progress, run, shares_memory
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.search import candidates
from sklearn_mcsg.search.candidates import CandidateIndex
from sklearn_mcsg.similarity._fitted import Shard
from sklearn_mcsg.similarity.model import ModelComparisonSimilarity

_EXACT_UP_TO = 100_000  # groups for which `auto` compares each query with all
_CHUNK_BYTES = 2**26  # size of a block of the distance matrix
_BATCH_BYTES = 2**25  # of the statistics of candidates at a time
_MOST_QUERIES = 256  # at a time, so that a search can be interrupted


def learn_candidates(similarity: Any, algorithm: str, verbose: int) -> CandidateIndex | None:
    """Compressed points of the groups of a fitted similarity, if searches are to be approximate."""
    few = similarity.n_groups_ <= _EXACT_UP_TO
    if algorithm == "exact" or (algorithm == "auto" and (few or not candidates.is_available())):
        return None
    space = similarity.point_space() if hasattr(similarity, "point_space") else None
    if space is not None:
        return CandidateIndex.learnt_from(space, similarity.summaries(), verbose)
    if algorithm == "auto":
        return None
    output = getattr(similarity, "output", None)
    sized = isinstance(similarity, ModelComparisonSimilarity) and not OUTPUTS[str(output)].can_be_embedded
    why = f"its output {output!r} depends on the sizes of groups" if sized else "it has no points"
    raise ValueError(
        f"algorithm='approximate' cannot find candidates for {type(similarity).__name__}, because {why}: choose "
        f"output='centered' or 'divergence' of a ModelComparisonSimilarity whose likelihood has coordinates, or a "
        f"GroupEmbedding, or algorithm='exact'."
    )


@dataclass(frozen=True, eq=False)
class Search:
    """A fitted similarity, ready to be searched.

    Queries are validated groups, or an array with the indices of fitted groups, which are not their own neighbours.

    Attributes
    ----------
    similarity : estimator
        The fitted similarity.
    index : CandidateIndex or None
        The points to find candidates among; None for an exact search.
    n_candidates : int or None
        Number of candidates per query; None means ten per neighbour, and at least 100.
    """

    similarity: Any
    index: CandidateIndex | None
    n_candidates: int | None

    @property
    def sign(self) -> int:
        """Factor that turns the output into a distance."""
        return -1 if self.similarity.higher_is_nearer else 1

    def nearest(self, queries: Groups | np.ndarray, k: int, *, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances of the k nearest groups of each query, sorted by distance and then by index."""
        n_candidates = max(k, self.n_candidates or max(100, 10 * k))
        exact = exact or self.index is None or n_candidates >= self.similarity.n_groups_ - 1
        if exact and self._sends_shards:
            return self._in_shards(queries, k)
        if exact or self.index is None:
            rows = self.distance_blocks(queries, np.inf)
            found: Iterator[tuple[np.ndarray, np.ndarray]] = (smallest(distances, k) for distances, _ in rows)
        else:
            found = self._among_candidates(self.index, queries, k, n_candidates)
        indices, distances = zip(*found, strict=True)
        return np.concatenate(indices), np.concatenate(distances)

    def nearest_with_self(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances of the k nearest groups of each fitted group, the group itself first."""
        every = np.arange(self.similarity.n_groups_)
        if k == 1 or (self.index is None and not self._sends_shards):
            found = []
            for distances, own in self.distance_blocks(every, -np.inf):
                indices, values = smallest(distances, k)
                values[:, 0] = own
                found.append((indices, values))
            indices, values = zip(*found, strict=True)
            return np.concatenate(indices), np.concatenate(values)
        indices, values = self.nearest(every, k - 1)
        own = self.sign * self.similarity.compare_fitted_with_candidates(every, every[:, None])
        return np.hstack([every[:, None], indices]), np.hstack([own, values])

    def distance_blocks(
        self, queries: Groups | np.ndarray, self_distance: float
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows of distances to all groups, and the distances of fitted groups to themselves that were replaced."""
        n = self.similarity.n_groups_
        for batch in gen_batches(len(queries), count_within(8 * n, _CHUNK_BYTES)):
            if isinstance(queries, Groups):
                yield self.sign * self.similarity.compare_with_fitted(queries[batch]), np.empty(0)
                continue
            distances = self.sign * self.similarity.compare_fitted(queries[batch])
            own = np.arange(len(distances)), queries[batch]
            apart = distances[own]
            distances[own] = self_distance
            yield distances, apart

    @property
    def _sends_shards(self) -> bool:
        """Whether workers are other processes, which the groups must be sent to."""
        n_jobs = getattr(self.similarity, "n_jobs", None)
        return hasattr(self.similarity, "shards") and not shares_memory(2, n_jobs)

    def _in_shards(self, queries: Groups | np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The nearest groups, found by workers that each receive one part of the groups and return its nearest ones."""
        n, n_jobs = self.similarity.n_groups_, getattr(self.similarity, "n_jobs", None)
        slices = list(gen_even_slices(n, min(n, effective_n_jobs(n_jobs))))
        own = None if isinstance(queries, Groups) else queries
        shards = zip(self.similarity.shards(queries, slices), slices, strict=True)
        tasks = ((shard, len(queries), part, own, k, self.sign) for shard, part in shards)
        parts = sorted(run(_nearest_in_shard, tasks, len(slices), n_jobs), key=lambda found: found[0])
        return nearest_of([(indices, distances) for _, indices, distances in parts], k)

    def _among_candidates(
        self, index: CandidateIndex, queries: Groups | np.ndarray, k: int, n_candidates: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The k nearest groups of each query among its candidates, a batch of queries at a time."""
        n_jobs = getattr(self.similarity, "n_jobs", None)
        step = min(_MOST_QUERIES, count_within(16 * n_candidates * len(index.axes.mean), _BATCH_BYTES))
        with progress(getattr(self.similarity, "verbose", 0), len(queries), "searching", " queries") as advance:
            for batch in gen_batches(len(queries), step):
                if isinstance(queries, Groups):
                    points = index.points(self.similarity.summaries(queries[batch]))
                    found = np.sort(index.search(points, n_candidates, n_jobs), axis=1)
                    values = self.similarity.compare_with_candidates(queries[batch], found)
                else:
                    rows = queries[batch]
                    found = _without(index.search(index.decoded(rows), n_candidates + 1, n_jobs), rows)
                    values = self.similarity.compare_fitted_with_candidates(rows, found)
                columns, distances = smallest(self.sign * values, k)
                advance(len(values))
                yield np.take_along_axis(found, columns, axis=1), distances


def _nearest_in_shard(
    shard: Shard, n_queries: int, part: slice, own: np.ndarray | None, k: int, sign: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """The first index of a shard, and indices and distances of its k groups nearest to each query."""
    start, n, found = part.start, part.stop - part.start, []
    for rows in gen_batches(n_queries, count_within(8 * n, _CHUNK_BYTES)):
        distances = sign * shard.compare(rows)
        if own is not None:
            mine = (own[rows] >= start) & (own[rows] < start + n)
            distances[mine, own[rows][mine] - start] = np.inf
        found.append(smallest(distances, min(k, n)))
    indices, values = zip(*found, strict=True)
    return start, start + np.concatenate(indices), np.concatenate(values)


def nearest_of(parts: list[tuple[np.ndarray, np.ndarray]], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and distances of the k nearest groups, from those of consecutive parts of a corpus."""
    indices, distances = (np.hstack(arrays) for arrays in zip(*parts, strict=True))
    columns, values = smallest(distances, min(k, distances.shape[1]))
    return np.take_along_axis(indices, columns, axis=1), values


def _without(found: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Candidates of fitted groups without the group itself or, if it is not among them, without the last one."""
    kept = found != rows[:, None]
    kept[kept.all(axis=1), -1] = False
    return np.sort(found[kept].reshape(len(found), -1), axis=1)


def smallest(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values of each row's k smallest entries, sorted by value and then by column."""
    columns = np.argpartition(matrix, k - 1, axis=1)[:, :k]
    largest = np.take_along_axis(matrix, columns, axis=1).max(axis=1)
    tied = np.flatnonzero((matrix <= largest[:, None]).sum(axis=1) > k)
    for row in tied:
        near = np.flatnonzero(matrix[row] <= largest[row])
        columns[row] = near[np.argsort(matrix[row, near], kind="stable")[:k]]
    columns.sort(axis=1)
    values = np.take_along_axis(matrix, columns, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def objects(arrays: list[np.ndarray]) -> np.ndarray:
    """An object array of arrays of different lengths."""
    result = np.empty(len(arrays), dtype=object)
    for i, array in enumerate(arrays):
        result[i] = array
    return result
