"""Nearest neighbours among groups: an index that can grow, shrink and be saved as plain arrays."""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg import storage
from sklearn_mcsg._checks import Count, check_number, check_positive_integer
from sklearn_mcsg._extras import has_extra
from sklearn_mcsg._sklearn import HasMethods, Interval, StrOptions
from sklearn_mcsg.embedding import GroupEmbedding, comparer_of_points
from sklearn_mcsg.engine.chance import N_PAIRS, warn_of_few_groups
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.search.indexed import IndexedGroups
from sklearn_mcsg.search.nearest import Nearest, Search, check_algorithm
from sklearn_mcsg.search.random_pairs import RandomPairs
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.similarity.estimator import GroupsTransformer, check_compares_groups, snapshot, split_pipeline


@storage.register
class GroupNeighbors(GroupsTransformer):
    """Nearest neighbours among groups, by any similarity.

    An exact search compares each query with all groups; it never holds the full distance matrix in memory. An
    approximate search finds candidates among compressed points of the groups, and compares each query with these only.
    The distances that it returns are exact.

    Parameters
    ----------
    similarity : estimator, default=None
        What compares groups: a similarity (`ModelComparisonSimilarity`, a baseline such as `MeanVector`, a
        `GroupSimilarity` with your own comparison), a `GroupEmbedding`, or a pipeline that ends with one of them.
        ``None`` means ``ModelComparisonSimilarity(output="distance")``. Its `output` is the distance; outputs that are
        higher for nearer groups are negated. An embedding is compared by one minus the cosine.
    n_neighbors : int, default=5
        Number of neighbours.
    algorithm : {"auto", "exact", "approximate"}, default="auto"
        How to search. ``"auto"`` is exact up to 100,000 groups. Above, it is approximate if the similarity has points
        (a `GroupEmbedding`, or a `ModelComparisonSimilarity` with output ``"divergence"`` or ``"centered"``) and faiss
        is installed (``pip install "sklearn-mcsg[large]"``).
    n_candidates : int, default=None
        Number of candidates for each query in an approximate search; ``None`` means ten per neighbour, and at least
        100. More candidates find more of the exact neighbours: see `recall`.
    mode : {"distance", "connectivity"}, default="distance"
        Values in the graph: distances, or ones.
    growth : float, default=2.0
        Factor by which the index may grow before it learns again. Its embedding, and the coordinates of its candidates,
        are then learnt from all groups; below 6000 groups sooner. ``None`` means never: nothing is kept to learn from,
        and an index that grows much finds worse neighbours.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. ``None`` means that of the similarity.
    verbose : int, default=0
        Whether to show progress bars; 0 leaves that to the similarity.

    Attributes
    ----------
    similarity_ : estimator
        The similarity or embedding, fitted to the indexed groups.
    n_groups_ : int
        Number of indexed groups.

    Notes
    -----
    An index over an embedding keeps, beside the points, what the embedding can learn from again: for each group 8 bytes
    per parameter of its model (two for each feature with ``"diag"``) or, where that is less, the groups themselves, as
    for texts on a shared table of word vectors. With ``growth=2``, learning again embeds each group about once more.

    Several threads may query one index. A thread that adds or removes groups replaces the index in one step: queries
    that have begun see the old groups.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import GroupNeighbors
    >>> X = [np.array([[0.0], [1.0], [2.0]]), np.array([[0.5], [1.5]]), np.array([[8.0], [9.0]])]
    >>> distances, indices = GroupNeighbors(n_neighbors=1).fit(X).kneighbors()
    >>> indices.ravel()
    array([1, 0, 1])
    >>> distances.ravel().round(2)
    array([ 0.52,  0.52, 16.19])
    """

    _index: IndexedGroups
    _random_pairs: RandomPairs
    _parameter_constraints: ClassVar[dict] = {
        "similarity": [HasMethods(["fit", "transform"]), None],
        "n_neighbors": [Count()],
        "algorithm": [StrOptions({"auto", "exact", "approximate"})],
        "n_candidates": [Count(), None],
        "mode": [StrOptions({"distance", "connectivity"})],
        "growth": [Interval(Real, 1, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        similarity: BaseEstimator | None = None,
        *,
        n_neighbors: int = 5,
        algorithm: str = "auto",
        n_candidates: int | None = None,
        mode: str = "distance",
        growth: float | None = 2.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.similarity = similarity
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.n_candidates = n_candidates
        self.mode = mode
        self.growth = growth
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Index groups.

        Parameters
        ----------
        X : groups, or input of the pipeline
            The groups to index.
        y : None
            Ignored.

        Returns
        -------
        self : GroupNeighbors
        """
        self._validate_params()
        check_algorithm(self.algorithm)
        similarity = ModelComparisonSimilarity(output="distance") if self.similarity is None else clone(self.similarity)
        jobs = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        self._keep(IndexedGroups.fitted(similarity, X, self.algorithm, self.growth is not None, **jobs))
        return self

    def partial_fit(self, X: GroupsLike, y: object = None) -> Self:
        """Add groups to the index; if that fails, the index does not change.

        A similarity learns from all groups. An embedding and the coordinates of candidates stay as they are until the
        index has grown by the factor `growth`, and then learn again from all groups. The steps of a pipeline before
        them are not fitted again.

        Parameters
        ----------
        X : groups, or input of the pipeline
            Further groups.
        y : None
            Ignored.

        Returns
        -------
        self : GroupNeighbors
        """
        if not hasattr(self, "_index"):
            return self.fit(X)
        self._validate_params()
        index = self._index
        jobs = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        self._keep(index.added(index.read(X), self.growth, self.algorithm, **jobs))
        return self

    def remove(self, indices: ArrayLike) -> Self:
        """Remove groups from the index; later groups move up.

        A similarity learns again from the remaining groups; an embedding and the coordinates of candidates stay as they
        are.

        Parameters
        ----------
        indices : array-like of int
            Indices of the groups to remove.

        Returns
        -------
        self : GroupNeighbors
        """
        index = self._fitted()
        n = len(index)
        indices = np.atleast_1d(np.asarray(indices))
        if not indices.size:
            return self
        if indices.ndim != 1 or indices.dtype.kind not in "iu" or not ((indices >= -n) & (indices < n)).all():
            raise ValueError(f"indices must be integers between 0 and {n - 1}, got {indices!r}.")
        kept = np.delete(np.arange(n), indices)
        if not len(kept):
            raise ValueError("At least one group must remain in the index: to start again, call fit.")
        self._keep(index.only(kept))
        return self

    @property
    def n_groups_(self) -> int:
        """Number of indexed groups."""
        return len(self._fitted())

    @property
    def n_features_in_(self) -> int:
        """Width of the vectors."""
        return self._fitted().last.n_features_in_

    @property
    def _n_features_out(self) -> int:
        return self.n_groups_

    def kneighbors(
        self,
        X: GroupsLike | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
        return_pvalue: bool = False,
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Find the nearest groups, sorted by distance and then by index.

        Parameters
        ----------
        X : groups, or input of the pipeline, default=None
            Queries; ``None`` means the indexed groups, each without itself as a neighbour.
        n_neighbors : int, default=None
            Overrides the parameter `n_neighbors`.
        return_distance : bool, default=True
            Whether to also return distances.
        return_pvalue : bool, default=False
            Whether to also return p-values. The random pairs that they need are drawn when they are first asked for,
            and again when the index has changed; `calibrate` draws others.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Only if `return_distance`.
        indices : ndarray of shape (n_queries, n_neighbors)
        pvalues : ndarray of shape (n_queries, n_neighbors)
            Only if `return_pvalue`: share of random pairs of a query and an indexed group, of similar size, that are at
            least as near. It is not the chance that a neighbour is wrong: by chance, the nearest of n groups has a
            p-value of about 1 / n.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import GroupNeighbors
        >>> rng = np.random.default_rng(0)
        >>> X = [rng.normal(rng.normal(scale=3, size=5), 1, size=(8, 5)) for _ in range(200)]
        >>> index = GroupNeighbors(n_neighbors=2).fit(X)
        >>> distances, indices, pvalues = index.kneighbors([X[7] + 0.1], return_pvalue=True)
        >>> int(indices[0, 0])
        7
        >>> pvalues.round(4)
        array([[0.0001, 0.0041]])
        """
        self = snapshot(self)
        index = self._fitted()
        k = checked_n_neighbors(self, n_neighbors, len(index), leave_out_self=X is None)
        queries = _queries(index, X)
        distances, indices = self._search(index).nearest(queries, k)
        found = (distances, indices) if return_distance else (indices,)
        if return_pvalue:
            warn_of_few_groups(len(index), stacklevel=2)
            asked = queries if isinstance(queries, Groups) else None
            found = *found, self._random_pairs.pvalues(asked, distances, indices)
        return found if len(found) > 1 else indices

    def calibrate(
        self,
        X: GroupsLike | None = None,
        *,
        n_pairs: int = N_PAIRS,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """Compare random pairs, to give the p-values of `kneighbors` a null distribution.

        If it is not called, the first p-values that are asked for do this with the defaults. Call it for queries that
        differ from the indexed groups, and for small p-values: n pairs give none below 10 / n, and there are no more
        random pairs than pairs of indexed groups, unless queries are given.

        Parameters
        ----------
        X : groups, or input of the pipeline, default=None
            Typical queries that are not indexed: each is compared with random indexed groups. ``None`` means the
            indexed groups. An embedding that has learnt from few groups places these further apart than new ones, so
            they are then compared in folds, by embeddings that have learnt from the others.
        n_pairs : int, default=20_000
            Number of random pairs.
        random_state : int, RandomState instance or None, default=None
            Determines what is random: pairs and folds. ``None`` means the similarity's own `random_state`, or 0 if it
            has none.

        Returns
        -------
        self : GroupNeighbors
        """
        check_positive_integer(n_pairs, "n_pairs")
        now = snapshot(self)
        index = now._fitted()
        queries = None if X is None else index.read(X)
        warn_of_few_groups(len(index), stacklevel=2)
        self._keep(index, now._random_pairs.calibrated(queries, n_pairs, random_state))
        return self

    def recall(
        self,
        X: GroupsLike | None = None,
        n_neighbors: int | None = None,
        *,
        n_queries: int = 200,
        random_state: int | np.random.RandomState | None = None,
    ) -> float:
        """Share of the exact nearest groups that `kneighbors` finds.

        Parameters
        ----------
        X : groups, or input of the pipeline, default=None
            Queries; ``None`` means a sample of the indexed groups.
        n_neighbors : int, default=None
            Overrides the parameter `n_neighbors`.
        n_queries : int, default=200
            Size of the sample of indexed groups.
        random_state : int, RandomState instance or None, default=None
            Determines what is random: the sample.

        Returns
        -------
        recall : float
            1 for an exact search.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import GroupEmbedding, GroupNeighbors
        >>> rng = np.random.default_rng(0)
        >>> X = [rng.normal(rng.normal(size=20), size=(5, 20)) for _ in range(500)]
        >>> GroupNeighbors(GroupEmbedding(), n_neighbors=10).fit(X).recall()
        1.0
        """
        index = self._fitted()
        k = checked_n_neighbors(self, n_neighbors, len(index), leave_out_self=X is None)
        check_positive_integer(n_queries, "n_queries")
        queries = _queries(index, X)
        if X is None:
            queries = np.sort(check_random_state(random_state).permutation(queries)[:n_queries])
        search = self._search(index)
        (_, found), (_, truth) = (search.nearest(queries, k, exact=exact) for exact in (False, True))
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]))

    def radius_neighbors(
        self, X: GroupsLike | None = None, radius: float = 1.0, return_distance: bool = True, sort_results: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Find all groups within a distance.

        Parameters
        ----------
        X : groups, or input of the pipeline, default=None
            Queries; ``None`` means the indexed groups, each without itself as a neighbour.
        radius : float, default=1.0
            Largest distance.
        return_distance : bool, default=True
            Whether to also return distances.
        sort_results : bool, default=False
            Whether to sort groups by distance; otherwise they are sorted by index.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of arrays
            Only if `return_distance`.
        indices : ndarray of shape (n_queries,) of arrays
        """
        check_number(radius, "radius")
        index = self._fitted()
        found = []
        for distances, _ in self._search(index).distance_blocks(_queries(index, X), self_distance=np.nan):
            for row in distances:
                near = np.flatnonzero(row <= radius)
                if sort_results:
                    near = near[np.argsort(row[near], kind="stable")]
                found.append((row[near], near))
        values, indices = (np.fromiter(arrays, dtype=object) for arrays in zip(*found, strict=True))
        return (values, indices) if return_distance else indices

    def kneighbors_graph(
        self, X: GroupsLike | None = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> sparse.csr_matrix:
        """The nearest groups as a sparse matrix.

        Parameters
        ----------
        X : groups, or input of the pipeline, default=None
            Queries; ``None`` means the indexed groups, each without itself as a neighbour.
        n_neighbors : int, default=None
            Overrides the parameter `n_neighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            Values in the graph: ones, or distances.

        Returns
        -------
        graph : csr_matrix of shape (n_queries, `n_groups_`)
            The entries of each row are sorted by distance.
        """
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}.")
        index = self._fitted()
        k = checked_n_neighbors(self, n_neighbors, len(index), leave_out_self=X is None)
        return _graph(self._search(index).nearest(_queries(index, X), k), len(index), mode)

    def transform(self, X: GroupsLike) -> sparse.csr_matrix:
        """Graph of the nearest indexed groups, in the form of scikit-learn's `KNeighborsTransformer`.

        Parameters
        ----------
        X : groups, or input of the pipeline
            Queries.

        Returns
        -------
        graph : csr_matrix of shape (n_queries, `n_groups_`)
            With ``mode="distance"`` there is one neighbour more than `n_neighbors`, because a group is its own nearest.
        """
        return self.kneighbors_graph(X, self.n_neighbors + (self.mode == "distance"), self.mode)

    def fit_transform(self, X: GroupsLike, y: object = None) -> sparse.csr_matrix:
        """Index groups and return their graph, in which each group is its own first neighbour.

        Parameters
        ----------
        X : groups, or input of the pipeline
            The groups to index.
        y : None
            Ignored.

        Returns
        -------
        graph : csr_matrix of shape (n_groups, n_groups)
        """
        index = self.fit(X)._fitted()
        k = checked_n_neighbors(self, self.n_neighbors + (self.mode == "distance"), len(index))
        return _graph(self._search(index).nearest_with_self(k), len(index), self.mode)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index into a folder, as plain arrays and JSON.

        Parameters
        ----------
        path : str or path-like
            The folder of the index; an index that is there is replaced.
        """
        check_is_fitted(self)
        storage.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap_mode: storage.MmapMode = None) -> Self:
        """Open a saved index.

        Parameters
        ----------
        path : str or path-like
            The folder of the index.
        mmap_mode : {"r", "c"}, default=None
            Leave the arrays on disk and read them as needed, as in `numpy.load`. Checksums are then not verified.

        Returns
        -------
        index : GroupNeighbors
        """
        return storage.load(path, cls, mmap_mode)

    def __mcsg_state__(self) -> dict[str, Any]:
        """What `fit` has learnt, for storage; an embedding keeps no groups, so its points are stored."""
        self = snapshot(self)
        index = self._fitted()
        return {
            "similarity_": index.similarity,
            "points": index.comparer.summaries if isinstance(index.last, GroupEmbedding) else None,
            "candidates_": index.candidates,
            "sources": index.sources,
            "n_learnt": index.n_learnt,
            "n_added": index.n_added,
            "sizes": index.sizes,
            "random_pairs": self._random_pairs.stored(),
        }

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Keep what was stored."""
        self._validate_params()
        last = split_pipeline(state["similarity_"])[1]
        check_compares_groups(last)
        embeds = isinstance(last, GroupEmbedding)
        comparer = comparer_of_points(last, state["points"]) if embeds else last.__mcsg_comparer__()
        learnt = (state[name] for name in ("sizes", "candidates_", "sources", "n_learnt", "n_added"))
        index = IndexedGroups(state["similarity_"], comparer, *learnt)
        self._keep(index, RandomPairs(index).restored(state["random_pairs"]))

    def __mcsg_check__(self) -> None:
        """Raise unless the index has everything that a query needs."""
        self._fitted().check()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_index")

    def _fitted(self) -> IndexedGroups:
        """The index as it is now. A method asks once, so that all it does refers to the same groups."""
        check_is_fitted(self)
        return self._index

    def _keep(self, index: IndexedGroups, random_pairs: RandomPairs | None = None) -> None:
        """Replace the index, once everything that can fail has succeeded; random pairs are new unless given."""
        self.__dict__.update(
            _index=index,
            _random_pairs=RandomPairs(index) if random_pairs is None else random_pairs,
            similarity_=index.similarity,
        )

    def _search(self, index: IndexedGroups) -> Search:
        """The search that the parameters describe; jobs are those of the index or of its similarity."""
        n_jobs = self.n_jobs or getattr(index.last, "n_jobs", None)
        verbose = self.verbose or getattr(index.last, "verbose", 0)
        exact = self.algorithm == "exact" or (self.algorithm == "auto" and not has_extra("faiss"))
        candidates = None if exact else index.candidates
        return Search(index.comparer.with_jobs(n_jobs, verbose), candidates, self.n_candidates, n_jobs, verbose)


def _queries(index: IndexedGroups, X: GroupsLike | None) -> Groups | np.ndarray:
    """Queries as validated groups, or the indices of all indexed groups."""
    if X is None:
        return np.arange(len(index))
    groups = index.read(X)
    if not groups.sizes.all():
        first = int(np.argmin(groups.sizes))
        warnings.warn(f"Query {first} is empty: its nearest groups say nothing about it.", stacklevel=3)
    return groups


def _graph(found: Nearest, n_groups: int, mode: str) -> sparse.csr_matrix:
    distances, indices = found
    if mode == "distance" and distances.min(initial=0) < 0:
        raise ValueError(
            "Negative distances cannot be in a graph: choose another output of the similarity, such as 'distance'."
        )
    data = distances.ravel() if mode == "distance" else np.ones(indices.size, distances.dtype)
    pointers = np.arange(0, indices.size + 1, indices.shape[1])
    return sparse.csr_matrix((data, indices.ravel(), pointers), shape=(len(indices), n_groups))


def groups_of(index: GroupNeighbors) -> IndexedGroups:
    """The groups behind an index, for p-values of queries that others draw."""
    return index._fitted()


def search_of(index: GroupNeighbors) -> Search:
    """The search behind an index, for uses that need whole rows of distances."""
    return index._search(index._fitted())


def checked_n_neighbors(index: Any, n_neighbors: int | None, n_groups: int, leave_out_self: bool = False) -> int:
    """The number of neighbours to find, by default that of the index; raise if there are fewer groups."""
    k = index.n_neighbors if n_neighbors is None else n_neighbors
    check_positive_integer(k, "n_neighbors")
    available = n_groups - leave_out_self
    if k > available:
        others = " besides the query itself" if leave_out_self else ""
        raise ValueError(f"n_neighbors={k} is more than the {available} indexed groups{others}: choose fewer.")
    return int(k)
