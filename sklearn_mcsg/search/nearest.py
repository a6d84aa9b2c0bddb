"""Search for the nearest groups or points: by comparison with all of them, or with approximate candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches, gen_even_slices

from sklearn_mcsg._extras import has_extra
from sklearn_mcsg._memory import CANDIDATES, QUERIES, ROWS, count_within
from sklearn_mcsg.engine.comparer import Comparer, Shard
from sklearn_mcsg.engine.comparison import ModelComparison
from sklearn_mcsg.engine.parallel import ONE_BLAS_THREAD, progress, run, shares_memory
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.search.candidates import CandidateIndex, import_faiss

_EXACT_UP_TO = 100_000  # groups for which `auto` compares each query with all

Nearest = tuple[np.ndarray, np.ndarray]  # distances and indices, one row per query


def check_algorithm(algorithm: str) -> None:
    """Raise if a search is to be approximate and faiss is not installed."""
    if algorithm == "approximate":
        import_faiss()


def learn_candidates(
    comparer: Comparer, algorithm: str, verbose: int, n_jobs: int | None = None
) -> CandidateIndex | None:
    """Compressed points of the groups of a comparer, if searches are to be approximate."""
    few = len(comparer) <= _EXACT_UP_TO
    if algorithm == "exact" or (algorithm == "auto" and (few or not has_extra("faiss"))):
        return None
    space = comparer.comparison.point_space(comparer.name)
    if space is not None:
        return CandidateIndex.learnt_from(space, comparer.summaries, verbose, n_jobs)
    if algorithm == "auto":
        return None
    sized = isinstance(comparer.comparison, ModelComparison) and not comparer.output.can_be_embedded
    why = f"its output {comparer.name!r} depends on the sizes of groups" if sized else "it has no points"
    raise ValueError(
        f"algorithm='approximate' cannot find candidates for this similarity, because {why}: choose "
        f"output='centered' or 'divergence' of a ModelComparisonSimilarity whose likelihood has coordinates, or a "
        f"GroupEmbedding, or algorithm='exact'."
    )


def candidates_for(k: int, n_candidates: int | None) -> int:
    """Number of candidates to find k nearest groups among: as given, or else ten per neighbour and at least 100."""
    return max(k, n_candidates or max(100, 10 * k))


@dataclass(frozen=True, eq=False)
class Search:
    """A comparer, ready to be searched.

    Queries are validated groups, or an array with the indices of kept groups, which are not their own neighbours.

    Attributes
    ----------
    comparer : Comparer
        The groups, and how they are compared.
    index : CandidateIndex or None
        The points to find candidates among; None for an exact search.
    n_candidates : int or None
        Number of candidates per query; None means ten per neighbour, and at least 100.
    n_jobs : int or None
        Number of jobs.
    verbose : int
        Whether to show a progress bar.
    """

    comparer: Comparer
    index: CandidateIndex | None
    n_candidates: int | None
    n_jobs: int | None = None
    verbose: int = 0

    def __len__(self) -> int:
        return len(self.comparer)

    def nearest(self, queries: Groups | np.ndarray, k: int, *, exact: bool = False) -> Nearest:
        """The k nearest groups of each query, sorted by distance and then by index."""
        n_candidates = candidates_for(k, self.n_candidates)
        exact = exact or self.index is None or n_candidates >= len(self) - 1
        if exact and self._sends_shards:
            return self._in_shards(queries, k)
        if exact or self.index is None:
            return _stacked(smallest(rows, k) for rows, _ in self.distance_blocks(queries, np.inf))
        return _stacked(self._among_candidates(self.index, queries, k, n_candidates))

    def nearest_with_self(self, k: int) -> Nearest:
        """The k nearest groups of each kept group, the group itself first."""
        every = np.arange(len(self))
        if k == 1 or (self.index is None and not self._sends_shards):
            return _stacked(self._rows_with_self(every, k))
        distances, indices = self.nearest(every, k - 1)
        own = self.comparer.output.as_distance(self.comparer.compare_among_candidates(every, every[:, None]))
        return np.hstack([own, distances]), np.hstack([every[:, None], indices])

    def _rows_with_self(self, every: np.ndarray, k: int) -> Iterator[Nearest]:
        for rows, own in self.distance_blocks(every, -np.inf):
            distances, indices = smallest(rows, k)
            distances[:, 0] = own
            yield distances, indices

    def distance_blocks(self, queries: Groups | np.ndarray, self_distance: float) -> Iterator[Nearest]:
        """Blocks of rows of distances to all groups.

        The distance of a kept group to itself is replaced by `self_distance`; the second array holds those replaced.
        """
        comparer, as_distance = self.comparer, self.comparer.output.as_distance
        for batch in gen_batches(len(queries), count_within(8 * len(self), ROWS)):
            if isinstance(queries, Groups):
                yield as_distance(comparer.compare_with(queries[batch])), np.empty(0)
                continue
            rows = as_distance(comparer.compare_among(queries[batch]))
            own = np.arange(len(rows)), queries[batch]
            apart = rows[own]
            rows[own] = self_distance
            yield rows, apart

    @property
    def _sends_shards(self) -> bool:
        """Whether workers are other processes, which the groups must be sent to."""
        return not shares_memory(2, self.n_jobs)

    def _in_shards(self, queries: Groups | np.ndarray, k: int) -> Nearest:
        """The nearest groups, found by workers that each receive one part of the groups and return its nearest ones."""
        n = len(self)
        slices = list(gen_even_slices(n, min(n, effective_n_jobs(self.n_jobs))))
        own = None if isinstance(queries, Groups) else queries
        sign = -1 if self.comparer.output.higher_is_nearer else 1
        shards = zip(self.comparer.shards(queries, slices), slices, strict=True)
        tasks = ((shard, len(queries), part, own, k, sign) for shard, part in shards)
        parts = sorted(run(_nearest_in_shard, tasks, len(slices), self.n_jobs), key=lambda found: found[0])
        return nearest_of(k, *(nearest for _, nearest in parts))

    def _among_candidates(
        self, index: CandidateIndex, queries: Groups | np.ndarray, k: int, n_candidates: int
    ) -> Iterator[Nearest]:
        """The k nearest groups of each query among its candidates, a batch of queries at a time."""
        comparer = self.comparer
        step = min(QUERIES, count_within(16 * n_candidates * len(index.axes.mean), CANDIDATES))
        with progress(self.verbose, len(queries), "searching", " queries") as advance:
            for batch in gen_batches(len(queries), step):
                if isinstance(queries, Groups):
                    points = index.points(comparer.comparison.summarize(queries[batch]))
                    found = np.sort(index.search(points, n_candidates, self.n_jobs), axis=1)
                    values = comparer.compare_with_candidates(queries[batch], found)
                else:
                    rows = queries[batch]
                    points = index.decoded(rows, self.n_jobs)
                    found = _without(index.search(points, n_candidates + 1, self.n_jobs), rows)
                    values = comparer.compare_among_candidates(rows, found)
                distances, columns = smallest(comparer.output.as_distance(values), k)
                advance(len(values))
                yield distances, np.take_along_axis(found, columns, axis=1)


def nearest_points(points: np.ndarray, k: int, n_jobs: int | None = None) -> Nearest:
    """Euclidean distances and indices of the k nearest other points of each point."""
    with ONE_BLAS_THREAD:  # as this search does itself, but not for several threads that overlap
        found = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=n_jobs).fit(points)
        distances, neighbours = found.kneighbors()
    return distances.astype(points.dtype, copy=False), neighbours


def _stacked(found: Iterator[Nearest]) -> Nearest:
    distances, indices = zip(*found, strict=True)
    return np.concatenate(distances), np.concatenate(indices)


def _nearest_in_shard(
    shard: Shard, n_queries: int, part: slice, own: np.ndarray | None, k: int, sign: int
) -> tuple[int, Nearest]:
    """The first index of a shard, and its k groups nearest to each query."""
    start, n = part.start, part.stop - part.start
    found = []
    for rows in gen_batches(n_queries, count_within(8 * n, ROWS)):
        distances = sign * shard.compare(rows)
        if own is not None:
            mine = (own[rows] >= start) & (own[rows] < start + n)
            distances[mine, own[rows][mine] - start] = np.inf
        found.append(smallest(distances, min(k, n)))
    values, indices = _stacked(iter(found))
    return start, (values, start + indices)


def nearest_of(k: int, *parts: Nearest) -> Nearest:
    """The k nearest groups, from those of consecutive parts of a corpus."""
    distances, indices = (np.hstack(arrays) for arrays in zip(*parts, strict=True))
    values, columns = smallest(distances, min(k, distances.shape[1]))
    return values, np.take_along_axis(indices, columns, axis=1)


def _without(found: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Candidates of kept groups without the group itself or, if it is not among them, without the last one."""
    kept = found != rows[:, None]
    kept[kept.all(axis=1), -1] = False
    return np.sort(found[kept].reshape(len(found), -1), axis=1)


def smallest(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and columns of each row's k smallest entries, sorted by value and then by column."""
    columns = np.argpartition(matrix, k - 1, axis=1)[:, :k]
    largest = np.take_along_axis(matrix, columns, axis=1).max(axis=1)
    tied = np.flatnonzero((matrix <= largest[:, None]).sum(axis=1) > k)
    for row in tied:
        near = np.flatnonzero(matrix[row] <= largest[row])
        columns[row] = near[np.argsort(matrix[row, near], kind="stable")[:k]]
    columns.sort(axis=1)
    values = np.take_along_axis(matrix, columns, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(columns, order, axis=1)
