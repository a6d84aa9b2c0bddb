"""Search of a corpus that lies in many parts, on a Dask cluster.

    part --load--> groups --statistics--> merged in a tree --> the embedding        (every part, twice)
    part --load--> groups --> an index, which stays on its worker                   (every part, once)
    queries --> all indexes --> the nearest of each part --> merged in a tree --> the nearest

Only what was learnt, queries and answers travel. Dask builds the index of a lost worker again from its part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._sklearn import HasMethods
from sklearn_mcsg.embedding import GroupEmbedding, fit_to_parts
from sklearn_mcsg.engine.comparer import ComparesGroups
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.search.nearest import Nearest, Search, check_algorithm, learn_candidates, nearest_of
from sklearn_mcsg.search.neighbors import GroupNeighbors, checked_n_neighbors

_FAN_IN = 8  # results that are merged at a time


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
        The fitted embedding, or the given similarity.
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
        self.load = load
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.n_candidates = n_candidates
        self.client = client

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
        parts = list(X)
        if not parts:
            raise ValueError("There are no parts to index: X must hold at least one, such as the name of a file.")
        check_algorithm(self.algorithm)
        similarity = GroupEmbedding() if self.similarity is None else self.similarity
        if not isinstance(similarity, ComparesGroups):
            raise TypeError(
                f"similarity must be a GroupEmbedding or a GroupSimilarity, got {type(similarity).__name__}: steps "
                f"before it, such as a vectorizer, belong in load."
            )
        cluster = _Cluster(self.client)
        load = cluster.send(_itself if self.load is None else self.load)
        if isinstance(similarity, GroupEmbedding) and not hasattr(similarity, "components_"):

            def reduce_parts(function: Callable, merge: Callable) -> Any:
                return cluster.merged([cluster.submit(_apply, function, load, part) for part in parts], merge)

            similarity = fit_to_parts(clone(similarity), reduce_parts)
        check_is_fitted(
            similarity, msg="%(name)s is not fitted, and only a GroupEmbedding learns from parts: fit it to a sample."
        )
        how = cluster.send(similarity), self.algorithm, self.n_candidates
        indexes = [cluster.submit(_apply, _index, load, part, *how) for part in parts]
        sizes = cluster.client.gather([cluster.submit(len, index) for index in indexes])
        self.similarity_, self.sizes_ = similarity, np.array(sizes)
        self._cluster, self._indexes = cluster, indexes
        return self

    @property
    def n_groups_(self) -> int:
        """Number of indexed groups."""
        return int(self.sizes_.sum())

    def kneighbors(
        self, X: GroupsLike, n_neighbors: int | None = None, return_distance: bool = True
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Find the nearest groups in all parts, sorted by distance and then by index.

        Parameters
        ----------
        X : groups
            Queries.
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
        check_is_fitted(self, "sizes_")
        k = checked_n_neighbors(self, n_neighbors, self.n_groups_)
        queries = self._cluster.send(self.similarity_.__mcsg_groups__(X))
        starts = np.cumsum(self.sizes_) - self.sizes_
        found = [
            self._cluster.submit(_nearest, index, queries, int(start), k)
            for index, start in zip(self._indexes, starts, strict=True)
        ]
        distances, indices = self._cluster.merged(found, partial(nearest_of, k))
        return (distances, indices) if return_distance else indices


class _Cluster:
    """What is asked of Dask: to send an object to every worker, to run tasks, and to merge their results in a tree."""

    def __init__(self, client: Any):
        distributed = import_extra("distributed", "PartitionedNeighbors")
        try:
            self.client = distributed.get_client() if client is None else client
        except ValueError as error:
            raise ValueError("There is no Dask client: create a distributed.Client, or pass one as client.") from error

    def send(self, value: Any) -> Any:
        """An object that each worker receives once, and that Dask does not take apart: the result of a task.

        It is made again if a worker is lost.
        """
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**50}):
            return self.submit(partial(_itself, value))

    def submit(self, function: Callable, *args: Any) -> Any:
        return self.client.submit(function, *args, pure=False)

    def merged(self, futures: list[Any], merge: Callable[..., Any]) -> Any:
        """The merged results of tasks; those that are ready together are merged where most of them lie."""
        while len(futures) > 1:
            batches = [futures[i : i + _FAN_IN] for i in range(0, len(futures), _FAN_IN)]
            futures = [self.submit(merge, *batch) if len(batch) > 1 else batch[0] for batch in batches]
        return futures[0].result()


def _itself(value: Any) -> Any:
    return value


def _apply(function: Callable[..., Any], load: Callable[[Any], GroupsLike], part: Any, *args: Any) -> Any:
    try:
        return function(load(part), *args)
    except Exception as error:
        error.add_note(f"This happened in the part {part!r:.200}.")
        raise


def _index(groups: GroupsLike, similarity: Any, algorithm: str, n_candidates: int | None) -> Search:
    comparer = similarity.__mcsg_comparer__(similarity.__mcsg_groups__(groups))
    return Search(comparer, learn_candidates(comparer, algorithm, 0), n_candidates)


def _nearest(index: Search, queries: Any, start: int, k: int) -> Nearest:
    distances, indices = index.nearest(queries, min(k, len(index)))
    return distances, start + indices
