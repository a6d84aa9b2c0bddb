"""Nearest neighbours among groups: an index that can grow, shrink and be saved as plain arrays."""

from __future__ import annotations

import os
import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg import storage
from sklearn_mcsg._checks import check_number, check_positive_integer
from sklearn_mcsg._extras import has_extra
from sklearn_mcsg._sklearn import HasMethods, Interval, StrOptions
from sklearn_mcsg.embedding import GroupEmbedding, comparer_of_points
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.search.candidates import CandidateIndex
from sklearn_mcsg.search.nearest import Search, check_algorithm, learn_candidates
from sklearn_mcsg.similarity import GroupSimilarity, ModelComparisonSimilarity, fitted_comparer
from sklearn_mcsg.similarity.estimator import GroupsTransformer, check_compares_groups, split_pipeline


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
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. Overrides that of the similarity.
    verbose : int, default=0
        Whether to show progress bars; overrides that of the similarity.

    Attributes
    ----------
    similarity_ : estimator
        The similarity or embedding, fitted to the indexed groups.
    n_groups_ : int
        Number of indexed groups.
    candidates_ : CandidateIndex or None
        The compressed points, if searches are approximate. They keep the coordinates of the groups that they were first
        learnt from; `partial_fit` and `remove` change the similarity only.

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

    _parameter_constraints: ClassVar[dict] = {
        "similarity": [HasMethods(["fit", "transform"]), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"auto", "exact", "approximate"})],
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "mode": [StrOptions({"distance", "connectivity"})],
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
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.similarity = similarity
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.n_candidates = n_candidates
        self.mode = mode
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
        before, last = split_pipeline(similarity)
        check_compares_groups(last)
        if before is not None:
            X = before.fit_transform(X)
            similarity = Pipeline([*before.steps, (similarity.steps[-1][0], last)])
        comparer = fitted_comparer(last, X)
        candidates = learn_candidates(comparer, self.algorithm, self.verbose)
        self.similarity_ = similarity
        self._keep(comparer, candidates)
        return self

    def partial_fit(self, X: GroupsLike, y: object = None) -> Self:
        """Add groups to the index; if that fails, the index does not change.

        The steps of a pipeline before the similarity are not fitted again.

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
        if not hasattr(self, "similarity_"):
            return self.fit(X)
        groups = self._last.__mcsg_groups__(self._transformed(X))
        comparer = self._comparer.added(groups)
        if self.candidates_ is None:
            candidates = learn_candidates(comparer, self.algorithm, self.verbose)
        else:
            candidates = self.candidates_.added(comparer.summaries[len(self._comparer) :])
        self._keep(comparer, candidates)
        return self

    def remove(self, indices: ArrayLike) -> Self:
        """Remove groups from the index; later groups move up.

        The similarity learns again from the remaining groups.

        Parameters
        ----------
        indices : array-like of int
            Indices of the groups to remove.

        Returns
        -------
        self : GroupNeighbors
        """
        n = self.n_groups_
        indices = np.atleast_1d(np.asarray(indices))
        if not indices.size:
            return self
        if indices.ndim != 1 or indices.dtype.kind not in "iu" or not ((indices >= -n) & (indices < n)).all():
            raise ValueError(f"indices must be integers between 0 and {n - 1}, got {indices!r}.")
        kept = np.delete(np.arange(n), indices)
        if not len(kept):
            raise ValueError("At least one group must remain in the index: to start again, call fit.")
        self._keep(self._comparer.only(kept), None if self.candidates_ is None else self.candidates_[kept])
        return self

    @property
    def n_groups_(self) -> int:
        """Number of indexed groups."""
        check_is_fitted(self, "similarity_")
        return len(self._comparer)

    @property
    def n_features_in_(self) -> int:
        """Width of the vectors."""
        return self._last.n_features_in_

    @property
    def _n_features_out(self) -> int:
        return self.n_groups_

    def kneighbors(
        self, X: GroupsLike | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Find the nearest groups, sorted by distance and then by index.

        Parameters
        ----------
        X : groups, or input of the pipeline, default=None
            Queries; ``None`` means the indexed groups, each without itself as a neighbour.
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
        k = checked_n_neighbors(self, n_neighbors, leave_out_self=X is None)
        distances, indices = self._search().nearest(self._queries(X), k)
        return (distances, indices) if return_distance else indices

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
        k = checked_n_neighbors(self, n_neighbors, leave_out_self=X is None)
        check_positive_integer(n_queries, "n_queries")
        queries = self._queries(X)
        if X is None:
            queries = np.sort(check_random_state(random_state).permutation(queries)[:n_queries])
        (_, found), (_, truth) = (self._search().nearest(queries, k, exact=exact) for exact in (False, True))
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
        found = []
        for distances, _ in self._search().distance_blocks(self._queries(X), self_distance=np.nan):
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
        distances, indices = self.kneighbors(X, n_neighbors)
        return self._graph(distances, indices, mode)

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
        self.fit(X)
        k = checked_n_neighbors(self, self.n_neighbors + (self.mode == "distance"))
        return self._graph(*self._search().nearest_with_self(k), self.mode)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index into a folder, as plain arrays and JSON.

        Parameters
        ----------
        path : str or path-like
            The folder of the index; an index that is there is replaced.
        """
        check_is_fitted(self, "similarity_")
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
        points = self._comparer.summaries if isinstance(self._last, GroupEmbedding) else None
        return {"similarity_": self.similarity_, "points": points, "candidates_": self.candidates_}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Keep what was stored."""
        self._validate_params()
        last = split_pipeline(state["similarity_"])[1]
        check_compares_groups(last)
        embeds = isinstance(last, GroupEmbedding)
        self._comparer = comparer_of_points(last, state["points"]) if embeds else last.__mcsg_comparer__()
        self.similarity_, self.candidates_ = state["similarity_"], state["candidates_"]

    def __mcsg_check__(self) -> None:
        """Raise unless the index has everything that a query needs."""
        check_is_fitted(self, "similarity_")
        if self.candidates_ is not None:
            self.candidates_.check(self.n_groups_)

    @property
    def _last(self) -> Any:
        """The similarity or embedding, without the pipeline steps before it."""
        check_is_fitted(self, "similarity_")
        return split_pipeline(self.similarity_)[1]

    def _keep(self, comparer: Comparer, candidates: CandidateIndex | None) -> None:
        """Replace the indexed groups, once everything that can fail has succeeded."""
        if isinstance(self._last, GroupSimilarity):
            self._last.__mcsg_adopt__(comparer)
        self._comparer, self.candidates_ = comparer, candidates

    def _search(self) -> Search:
        """The search that the parameters describe; jobs are those of the index or of its similarity."""
        n_jobs, verbose = (getattr(self, name) or getattr(self._last, name, None) for name in ("n_jobs", "verbose"))
        exact = self.algorithm == "exact" or (self.algorithm == "auto" and not has_extra("faiss"))
        comparer = self._comparer.with_jobs(n_jobs, verbose or 0)
        return Search(comparer, None if exact else self.candidates_, self.n_candidates, n_jobs, verbose or 0)

    def _transformed(self, X: GroupsLike) -> Any:
        """X, transformed by the pipeline steps before the similarity."""
        before = split_pipeline(self.similarity_)[0]
        return X if before is None else before.transform(X)

    def _queries(self, X: GroupsLike | None) -> Groups | np.ndarray:
        """Queries as validated groups, or the indices of all indexed groups."""
        if X is None:
            return np.arange(self.n_groups_)
        groups = self._last.__mcsg_groups__(self._transformed(X))
        if not groups.sizes.all():
            first = int(np.argmin(groups.sizes))
            warnings.warn(f"Query {first} is empty: its nearest groups say nothing about it.", stacklevel=3)
        return groups

    def _graph(self, distances: np.ndarray, indices: np.ndarray, mode: str) -> sparse.csr_matrix:
        if mode == "distance" and distances.min(initial=0) < 0:
            raise ValueError(
                "Negative distances cannot be in a graph: choose another output of the similarity, such as 'distance'."
            )
        data = distances.ravel() if mode == "distance" else np.ones(indices.size, distances.dtype)
        pointers = np.arange(0, indices.size + 1, indices.shape[1])
        return sparse.csr_matrix((data, indices.ravel(), pointers), shape=(len(indices), self.n_groups_))


def search_of(index: GroupNeighbors) -> Search:
    """The search behind an index, for uses that need whole rows of distances."""
    return index._search()


def checked_n_neighbors(index: Any, n_neighbors: int | None, leave_out_self: bool = False) -> int:
    """The number of neighbours to find, by default that of the index; raise unless it has so many groups."""
    k = index.n_neighbors if n_neighbors is None else n_neighbors
    check_positive_integer(k, "n_neighbors")
    available = index.n_groups_ - leave_out_self
    if k > available:
        others = " besides the query itself" if leave_out_self else ""
        raise ValueError(f"n_neighbors={k} is more than the {available} indexed groups{others}: choose fewer.")
    return int(k)
