"""One part of a corpus on a worker: its index, the queries that come to it, and its folder.

    groups --> PartIndex --queries_of--> Queries --> nearest_in_part, in every part
               PartIndex --write_part--> CorpusPart in a folder --load_part--> PartIndex or PartOnDisk

Everything here runs on workers, and is sent to them by name.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg import storage
from sklearn_mcsg._extras import has_extra
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import CANDIDATES, QUERIES, ROWS, count_within
from sklearn_mcsg.embedding import GroupEmbedding, comparer_of_points
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.results import Target
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.search.candidates import CandidateIndex
from sklearn_mcsg.search.nearest import Nearest, learn_candidates, smallest


@dataclass(frozen=True, eq=False)
class PartIndex:
    """The groups of one part, ready to be searched.

    Attributes
    ----------
    comparer : Comparer
        The groups, and how they are compared; without the corpus that was learnt from.
    candidates : CandidateIndex or None
        The points to find candidates among; None for an exact search.
    """

    comparer: Comparer
    candidates: CandidateIndex | None

    def __len__(self) -> int:
        return len(self.comparer)

    def __sizeof__(self) -> int:
        """Bytes to move, which Dask asks for: it then moves queries to the index, not the index to queries."""
        return _nbytes(self)


@dataclass(frozen=True, eq=False)
class PartOnDisk:
    """A saved part whose arrays stay on disk: whoever receives it opens it there when it is used.

    Attributes
    ----------
    place : tuple
        The arguments of `open_part`.
    """

    place: tuple

    @lazy
    def _index(self) -> PartIndex:
        return open_part(*self.place)

    @property
    def comparer(self) -> Comparer:
        """The groups, and how they are compared."""
        return self._index.comparer

    @property
    def candidates(self) -> CandidateIndex | None:
        """The points to find candidates among."""
        return self._index.candidates

    def __len__(self) -> int:
        return len(self._index)

    def __getstate__(self) -> dict[str, Any]:
        """State to pickle: without the arrays."""
        return {"place": self.place}


@dataclass(frozen=True, eq=False)
class Queries:
    """Groups that are compared with those of every part.

    Attributes
    ----------
    prepared : object
        The groups, prepared for the output.
    summaries : object or None
        What is kept of them, to find candidates; without it, a search is exact.
    output : str
        Name of the output.
    dtype : dtype
        Precision of results.
    first : int or None
        Index of the first group in the corpus, if they are indexed: then they are not their own neighbours.
    """

    prepared: Any
    summaries: Any
    output: str
    dtype: np.dtype
    first: int | None

    @classmethod
    def of(cls, comparer: Comparer, some: slice, first: int | None = None, *, with_summaries: bool) -> Self:
        """Some groups of a comparer, copied: the product of an array with a view of itself is rounded differently."""
        rows = np.arange(some.start, some.stop)
        prepared = comparer.prepared[rows]
        is_same = comparer.prepared is comparer.summaries
        summaries = (prepared if is_same else comparer.summaries[rows]) if with_summaries else None
        return cls(prepared, summaries, comparer.name, comparer.dtype, first)

    def __len__(self) -> int:
        return len(self.prepared)

    def __sizeof__(self) -> int:
        return _nbytes(self)


def _nbytes(value: Any) -> int:
    """Size of an object that is sent. Arrays are not copied to find it."""
    from distributed.protocol.pickle import dumps

    buffers: list[pickle.PickleBuffer] = []
    return len(dumps(value, buffer_callback=buffers.append)) + sum(buffer.raw().nbytes for buffer in buffers)


def block_size(comparer: Comparer) -> int:
    """Number of groups that are sent at a time, judged by the size of the first ones."""
    first = slice(0, QUERIES)
    prepared = comparer.prepared[first]
    return count_within(_nbytes((prepared, comparer.summaries[first])) // len(prepared), ROWS)


# Search --------------------------------------------------------------------------------------------------------------


def index_part(groups: GroupsLike, similarity: Any, algorithm: str) -> PartIndex:
    """Index the groups of a part."""
    comparer = similarity.__mcsg_comparer__(similarity.__mcsg_groups__(groups))
    return PartIndex(_light(comparer), learn_candidates(comparer, algorithm, 0))


def _light(comparer: Comparer) -> Comparer:
    return replace(comparer, comparison=comparer.comparison.without_corpus())


def facts_of(index: PartIndex | PartOnDisk) -> tuple[int, int]:
    """Number of groups, and how many of them are sent at a time."""
    return len(index), block_size(index.comparer)


def queries_of(index: PartIndex | PartOnDisk, some: slice, first: int) -> Queries:
    """Some groups of a part as queries; the first of them has the index `first` in the corpus."""
    return Queries.of(index.comparer, some, first, with_summaries=index.candidates is not None)


def nearest_in_part(
    index: PartIndex | PartOnDisk, queries: Queries, start: int, k: int, n_candidates: int | None
) -> Nearest:
    """The groups of a part that are nearest to each query; its first group has the index `start` in the corpus.

    Without a number of candidates, the search is exact.
    """
    if queries.output != index.comparer.name:
        raise ValueError(
            f"The output of similarity_ has changed from {index.comparer.name!r} to {queries.output!r} since the parts "
            f"were indexed: call fit again."
        )
    first, found = queries.first, []
    for rows, distances, groups in _compared(index, queries, n_candidates):
        if first is not None and start <= first < start + len(index):
            own = first - start + np.arange(rows.start, rows.stop)
            distances[groups == own[:, None]] = np.inf
        values, columns = smallest(distances, min(k, distances.shape[1]))
        found.append((values, start + np.take_along_axis(groups, columns, axis=1)))
    values, indices = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return values, indices


def _compared(
    index: PartIndex | PartOnDisk, queries: Queries, n_candidates: int | None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Batches of queries, their distances to groups of a part, and these groups: all, or the candidates of each."""
    comparer, candidates = index.comparer, index.candidates if has_extra("faiss") else None
    comparison, name, as_distance = comparer.comparison, comparer.name, comparer.output.as_distance
    target = Target(np.result_type(queries.dtype, comparer.dtype))
    if n_candidates is None or n_candidates >= len(index) - 1 or candidates is None or queries.summaries is None:
        every = np.arange(len(index))
        for rows in gen_batches(len(queries), count_within(8 * len(index), ROWS)):
            values = comparison.matrix(queries.prepared[rows], comparer.prepared, name, target)
            yield rows, as_distance(values), np.broadcast_to(every, values.shape)
        return
    step = min(QUERIES, count_within(16 * n_candidates * len(candidates.axes.mean), CANDIDATES))
    for rows in gen_batches(len(queries), step):
        points = candidates.points(queries.summaries[rows])
        found = np.sort(candidates.search(points, n_candidates + 1), axis=1)  # a query may be among them
        left = queries.prepared[np.repeat(np.arange(rows.start, rows.stop), found.shape[1])]
        values = comparison.row(left, comparer.prepared[found.ravel()], name, target)
        yield rows, as_distance(values.reshape(found.shape)), found


# Storage -------------------------------------------------------------------------------------------------------------


@storage.register
@dataclass(frozen=True, eq=False)
class CorpusPart:
    """One part of a corpus, as it is stored.

    Attributes
    ----------
    token : str
        The same for all parts of one save.
    place : int
        Its place among the parts.
    summaries : object
        What is kept of its groups, as `Comparison.summarize` returns it.
    dtype : dtype
        Precision of results among the groups.
    candidates : CandidateIndex or None
        The points to find candidates among.
    """

    token: str
    place: int
    summaries: Any
    dtype: np.dtype
    candidates: CandidateIndex | None

    def __mcsg_check__(self) -> None:
        """Raise unless the candidates belong to the groups, and results have a precision."""
        if self.candidates is not None:
            self.candidates.check(len(self.summaries))
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"results cannot be in {self.dtype}")

    def comparer(self, similarity: Any) -> Comparer:
        """The comparer of the groups; raise unless they are of the kind that a fitted similarity compares."""
        if isinstance(similarity, GroupEmbedding):
            return comparer_of_points(similarity, np.asanyarray(self.summaries))
        fitted = similarity.__mcsg_comparer__()
        kinds = [_kind_of(summaries) for summaries in (self.summaries, fitted.summaries)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"groups are kept as {kinds[0]} instead of {kinds[1]}")
        return Comparer.of(fitted.comparison, self.summaries, fitted.name, self.dtype)


def _kind_of(summaries: Any) -> str:
    """What groups are kept as, with its width."""
    if isinstance(summaries, np.ndarray):
        return f"arrays of width {summaries.shape[1:]}"
    return f"{type(summaries).__name__} of width {getattr(summaries, 'n_features', None)}"


def write_part(index: PartIndex | PartOnDisk, folder: str, token: str, place: int) -> None:
    """Save a part, in a folder of one save that the client has made."""
    if not Path(folder).parent.is_dir():
        raise FileNotFoundError(
            f"Part {place} was not saved, because its worker does not see {Path(folder).parent}: choose a folder on a "
            f"file system that the client and all workers share."
        )
    part: Any = CorpusPart(token, place, index.comparer.summaries, index.comparer.dtype, index.candidates)
    try:
        storage.save(folder, part)
    except Exception as error:
        error.add_note(f"This happened in part {place}; an index that was saved before has not changed.")
        raise


def load_part(*place: Any) -> PartIndex | PartOnDisk:
    """Open a saved part now, or leave it on disk; the arguments are those of `open_part`."""
    mmap_mode = place[-1]
    return open_part(*place) if mmap_mode is None else PartOnDisk(place)


def open_part(
    folder: str, token: str, place: int, size: int, similarity: Any, mmap_mode: storage.MmapMode
) -> PartIndex:
    """Open a saved part, checked against what the index says about it."""
    try:
        part = storage.load(folder, CorpusPart, mmap_mode)
        if (part.token, part.place) != (token, place):
            raise ValueError(
                f"{folder} holds part {part.place} of the save {part.token:.16}, not part {place} of {token}."
            )
        comparer = part.comparer(similarity)
        if len(comparer) != size:
            raise ValueError(f"{folder} holds {len(comparer)} groups instead of {size}.")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"Part {place} is not at {folder}. All workers must see this folder; if the index was saved again since it "
            f"was loaded, load it again."
        ) from error
    except ValueError as error:
        raise ValueError(f"Part {place} cannot be opened: {str(error).rstrip('.')}.") from error
    return PartIndex(_light(comparer), part.candidates)
