"""Search of a corpus that lies in many parts, on a Dask cluster.

    part --load--> groups --statistics--> merged in a tree --> the embedding        (every part, twice)
    part --load--> groups --> an index, which stays on its worker                   (every part, once)
    queries --prepared--> all indexes --> the nearest of each part --> merged in a tree --> the nearest

Only what was learnt, prepared queries and answers travel. Dask builds the index of a lost worker again from its part.

    path/corpus/            the similarity, the parameters, the sizes of the parts and the token of their save
    path/parts-<token>/0    the first part, and so on: written by the workers that hold them
    path/.lock              held while one process saves

All of them are folders of `storage`. The one that names the token is replaced last, in one step.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg import storage
from sklearn_mcsg._memory import ROWS, count_within
from sklearn_mcsg._sklearn import HasMethods
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.comparer import ComparesGroups
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.search.nearest import candidates_for, check_algorithm, nearest_of
from sklearn_mcsg.search.neighbors import GroupNeighbors, checked_n_neighbors
from sklearn_mcsg.search.parts import (
    Queries,
    block_size,
    facts_of,
    index_part,
    load_part,
    nearest_in_part,
    queries_of,
    write_part,
)
from sklearn_mcsg.search.workers import Cluster, Parts, clone_with_client

_AHEAD = 4  # blocks of queries that are searched at a time
_TRIES = 100  # to load a corpus that others replace at the same time
_CORPUS = "corpus"
_TOKEN = re.compile("[0-9a-f]{16}")
_PARTS = re.compile(f"parts-{_TOKEN.pattern}")


@storage.register
class PartitionedNeighbors(BaseEstimator):
    """Nearest groups of a corpus in many parts, which the workers of a Dask cluster load, index and search.

    Parameters
    ----------
    similarity : GroupEmbedding or fitted similarity, default=None
        What compares groups; ``None`` means ``GroupEmbedding()``. An embedding that is not fitted learns from all
        parts. Any other similarity must be fitted, to a sample of the corpus for example.
    load : callable, default=None
        Function from a part, such as the name of a file, to groups. It runs on the workers, and is sent to each once,
        so it may hold a table of word vectors. ``None`` means that the parts are groups.
    n_neighbors : int, default=5
        Number of neighbours.
    algorithm : {"auto", "exact", "approximate"}, default="auto"
        How to search: as in `GroupNeighbors`, for each part.
    n_candidates : int, default=None
        Number of candidates for each query in an approximate search: as in `GroupNeighbors`, for each part.
    client : distributed.Client, default=None
        The cluster; ``None`` means the client created last.

    Attributes
    ----------
    similarity_ : estimator
        The fitted embedding, or a copy of the given similarity.
    sizes_ : ndarray of shape (n_parts,)
        Number of groups in each part. Indices of neighbours count through the parts, in the given order.

    Examples
    --------
    Parts that are files of texts, and a cluster on one machine::

        from pathlib import Path

        from distributed import Client
        from sklearn_mcsg import PartitionedNeighbors, make_text_embedding

        vectorizer, embedding = make_text_embedding()
        vectorizer.fit(["my puppy is ill"])  # opens the word vectors; nothing is learnt from the text

        def load(path):
            return vectorizer.transform(path.read_text(encoding="utf8").splitlines())

        client = Client(n_workers=4, threads_per_worker=1)
        index = PartitionedNeighbors(embedding, load=load).fit(sorted(Path("corpus").glob("*.txt")))
        distances, indices = index.kneighbors(vectorizer.transform(["my puppy is ill"]))
        index.save("index")  # and in another session, without reading any text:
        index = PartitionedNeighbors.load("index")
    """

    _parameter_constraints: ClassVar[dict] = {
        "similarity": [HasMethods(["fit"]), None],
        "load": [callable, None],
        **{name: GroupNeighbors._parameter_constraints[name] for name in ("n_neighbors", "algorithm", "n_candidates")},
        "client": [HasMethods(["submit", "gather"]), None],
    }

    def __init__(
        self,
        similarity: Any = None,
        *,
        load: Callable[[Any], GroupsLike] | None = None,
        n_neighbors: int = 5,
        algorithm: str = "auto",
        n_candidates: int | None = None,
        client: Any = None,
    ):
        self.similarity = similarity
        self.load = load  # type: ignore[assignment,method-assign]  # `load` of the class opens a saved corpus
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.n_candidates = n_candidates
        self.client = client

    def __sklearn_clone__(self) -> Self:
        return clone_with_client(self)

    def fit(self, X: Sequence[Any], y: object = None) -> Self:
        """Learn from all parts, and index each on a worker.

        Parameters
        ----------
        X : sequence
            The parts, in the form that `load` takes.
        y : None
            Ignored.

        Returns
        -------
        self : PartitionedNeighbors
        """
        self._validate_params()
        check_algorithm(self.algorithm)
        similarity = GroupEmbedding() if self.similarity is None else self.similarity
        if not isinstance(similarity, ComparesGroups):
            raise TypeError(
                f"similarity must be a GroupEmbedding or a GroupSimilarity, got {type(similarity).__name__}: steps "
                f"before it, such as a vectorizer, belong in load."
            )
        parts = Parts(X, self.load, Cluster(self.client, "PartitionedNeighbors", _call))
        if isinstance(similarity, GroupEmbedding) and not hasattr(similarity, "components_"):
            similarity = parts.fitted(similarity)
        check_is_fitted(
            similarity, msg="%(name)s is not fitted, and only a GroupEmbedding learns from parts: fit it to a sample."
        )
        similarity = copy(similarity)  # so that the given one may be fitted again
        self._keep(similarity, parts.cluster, parts.over(index_part, parts.cluster.send(similarity), self.algorithm))
        return self

    @property
    def n_groups_(self) -> int:
        """Number of indexed groups."""
        return int(self.sizes_.sum())

    def kneighbors(
        self, X: GroupsLike | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Find the nearest groups in all parts, sorted by distance and then by index.

        They are those that `GroupNeighbors` finds on one machine, up to the rounding of distances.

        Parameters
        ----------
        X : groups, default=None
            Queries; ``None`` means the indexed groups, each without itself as a neighbour. Then every part is compared
            with every other, and its points or statistics are sent to all workers, a block at a time.
        n_neighbors : int, default=None
            Overrides the parameter `n_neighbors`.
        return_distance : bool, default=True
            Whether to also return distances.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Only if `return_distance`.
        indices : ndarray of shape (n_queries, n_neighbors)
        """
        check_is_fitted(self, "similarity_")
        k = checked_n_neighbors(self, n_neighbors, self.n_groups_, leave_out_self=X is None)
        waiting: deque[Any] = deque()
        found = []
        for queries in self._indexed_queries(k) if X is None else self._new_queries(X, k):
            waiting.append(self._nearest(queries, k))
            if len(waiting) == _AHEAD:
                found.append(waiting.popleft().result())
        found.extend(future.result() for future in waiting)
        distances, indices = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return (distances, indices) if return_distance else indices

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index into a folder, as plain arrays and JSON; every worker writes the parts that it holds.

        The client and all workers must see the folder under the same path, as on a shared file system. An index that is
        there stays as it is until the new one is complete.

        Parameters
        ----------
        path : str or path-like
            The folder of the index; an index that is there is replaced.
        """
        check_is_fitted(self, "similarity_")
        folder, token = _absolute(path), secrets.token_hex(8)
        _check_place(folder)
        names = ("n_neighbors", "algorithm", "n_candidates")
        corpus = type(self)(self.similarity_, **{name: getattr(self, name) for name in names})
        corpus.sizes_, corpus._token = self.sizes_, token
        storage.check_storable(corpus)
        with storage.locked(folder) as is_locked:
            self._write(folder, corpus, is_locked)

    def _write(self, folder: Path, corpus: Self, is_locked: bool) -> None:
        """Write all parts, and then what names them; whatever is not named is removed.

        Where the file system has no locks, parts that are neither new nor replaced may be another process's.
        """
        replaced = _named(folder)
        parts = f"parts-{corpus._token}"
        if is_locked:
            _sweep(folder)
        (folder / parts).mkdir()
        try:
            self._cluster.gather(
                [
                    self._cluster.submit(write_part, index, str(folder / parts / str(place)), corpus._token, place)
                    for place, index in enumerate(self._indexes)
                ]
            )
            storage.save(folder / _CORPUS, corpus, note=corpus._token)
        finally:
            _sweep(folder, None if is_locked else {parts, replaced})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap_mode: storage.MmapMode = None, client: Any = None) -> Self:
        """Open a saved index: every worker opens some of the parts, and opens those of a lost worker again.

        The parts that were indexed are not read, and the parameter `load` is None.

        Parameters
        ----------
        path : str or path-like
            The folder of the index.
        mmap_mode : {"r", "c"}, default=None
            Leave the arrays on disk and read them as needed, as in `numpy.load`. Checksums are then not verified.
        client : distributed.Client, default=None
            The cluster; ``None`` means the client created last.

        Returns
        -------
        index : PartitionedNeighbors
        """
        folder, cluster = _absolute(path), Cluster(client, "PartitionedNeighbors", _call)
        if not (folder / _CORPUS).is_dir():
            raise FileNotFoundError(f"{folder} is not a saved PartitionedNeighbors: it has no folder {_CORPUS}.")
        for _ in range(_TRIES):
            index: Self = storage.load(folder / _CORPUS, cls, mmap_mode)
            try:
                return index._opened(folder, mmap_mode, cluster, client)
            except (OSError, ValueError):
                if storage.read_note(folder / _CORPUS) == index._token:  # otherwise it was replaced while it was read
                    raise
        raise OSError(f"{folder} was replaced {_TRIES} times while it was read.")

    def _opened(self, folder: Path, mmap_mode: storage.MmapMode, cluster: Cluster, client: Any) -> Self:
        """The index with its parts, which workers open."""
        check_algorithm(self.algorithm)
        self.client, sizes = client, self.sizes_
        how = cluster.send(self.similarity), mmap_mode
        places = [str(folder / f"parts-{self._token}" / str(place)) for place in range(len(sizes))]
        missing = [place for place, part in enumerate(places) if not Path(part).is_dir()]
        if missing:
            raise FileNotFoundError(f"{folder} is damaged and was not opened: part {missing[0]} is missing.")
        indexes = [
            cluster.submit(load_part, part, self._token, place, int(size), *how)
            for place, (part, size) in enumerate(zip(places, sizes, strict=True))
        ]
        self._keep(self.similarity, cluster, indexes)
        return self

    def __mcsg_state__(self) -> dict[str, Any]:
        """What `save` has to know about the parts."""
        return {"sizes": self.sizes_, "token": self._token} if hasattr(self, "_token") else {}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Check what was stored, and keep it."""
        self._validate_params()
        sizes, token = state["sizes"], state["token"]
        if not isinstance(self.similarity, ComparesGroups):
            raise TypeError(f"a {type(self.similarity).__name__} does not compare groups")
        check_is_fitted(self.similarity)
        if sizes.ndim != 1 or sizes.dtype.kind != "i" or not len(sizes) or sizes.min() < 1:
            raise ValueError(f"sizes of the parts are {sizes.dtype} of shape {sizes.shape}")
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"{token!r:.60} is not the token of a save")
        self.sizes_, self._token = sizes, token

    def _keep(self, similarity: Any, cluster: Cluster, indexes: list[Any]) -> None:
        """Set fitted attributes once all parts are indexed."""
        facts = cluster.gather([cluster.submit(facts_of, index) for index in indexes])
        sizes, self._block_sizes = zip(*facts, strict=True)
        self.similarity_, self.sizes_ = similarity, np.array(sizes)
        self._cluster, self._indexes = cluster, indexes

    def _indexed_queries(self, k: int) -> Iterator[Any]:
        """Blocks of all indexed groups, on the workers that hold them."""
        start = 0
        for index, size, at_a_time in zip(self._indexes, self.sizes_.tolist(), self._block_sizes, strict=True):
            for rows in gen_batches(size, min(at_a_time, _answers_at_a_time(k))):
                yield self._cluster.submit(queries_of, index, rows, start + rows.start)
            start += size

    def _new_queries(self, X: GroupsLike, k: int) -> Iterator[Any]:
        """Blocks of groups that are not indexed, prepared here and sent to all workers."""
        comparer = self.similarity_.__mcsg_comparer__(self.similarity_.__mcsg_groups__(X))
        for rows in gen_batches(len(comparer), min(block_size(comparer), _answers_at_a_time(k))):
            yield self._cluster.send(Queries.of(comparer, rows, with_summaries=True))

    def _nearest(self, queries: Any, k: int) -> Any:
        """The nearest groups of a block of queries, in the future."""
        n_candidates = None if self.algorithm == "exact" else candidates_for(k, self.n_candidates)
        starts = (np.cumsum(self.sizes_) - self.sizes_).tolist()
        found = [
            self._cluster.submit(nearest_in_part, index, queries, start, k, n_candidates)
            for index, start in zip(self._indexes, starts, strict=True)
        ]
        return self._cluster.merged(found, partial(nearest_of, k))


def _answers_at_a_time(k: int) -> int:
    """Number of queries whose answers from one part are sent at a time."""
    return count_within(16 * k, ROWS)


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def _absolute(path: str | os.PathLike[str]) -> Path:
    """A path that means the same to workers, whose working directory may be another."""
    return Path(os.path.abspath(path))


def _check_place(folder: Path) -> None:
    """Raise if a path holds anything other than a saved corpus, an empty folder or the rest of a killed save."""
    if not folder.exists():
        return
    parts, ours = [folder / _CORPUS], folder.is_dir()
    for entry in os.scandir(folder) if ours else ():
        if _PARTS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with suppress(FileNotFoundError):  # another process saves, and has removed it
                parts.extend(Path(part) for part in os.scandir(entry))
        ours &= entry.name in (_CORPUS, storage.LOCK) or (
            _PARTS.fullmatch(entry.name) is not None and not entry.is_symlink()
        )
    if not ours or not all(part.name.isdecimal() for part in parts[1:]):
        raise ValueError(
            f"{folder} exists and is not a saved PartitionedNeighbors: choose another path; nothing was written."
        )
    for part in parts:
        with suppress(FileNotFoundError):
            storage.check_place(part)


def _named(folder: Path) -> str | None:
    """The folder of the parts that the corpus names; None if it cannot be read."""
    try:
        return f"parts-{storage.read_note(folder / _CORPUS)}"
    except (OSError, ValueError):
        return None


def _sweep(folder: Path, removable: set[str | None] | None = None) -> None:
    """Remove parts that the corpus does not name: those of an earlier save, or of one that was killed."""
    named = _named(folder)
    if named is None:
        return
    for parts in folder.iterdir():
        if _PARTS.fullmatch(parts.name) and parts.name != named and (removable is None or parts.name in removable):
            shutil.rmtree(parts, ignore_errors=True)  # Windows keeps files that a reader has open
