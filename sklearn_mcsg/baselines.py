"""What the paper compares with: means of vectors under the cosine, and optimal transport.

They take the same groups as `ModelComparisonSimilarity` and have the same methods, so that one replaces the other in a
pipeline, and weights, such as those of `EmbeddingVectorizer`, mean the same to all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_distances, cosine_similarity, paired_cosine_distances
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._base import GroupsEstimator
from sklearn_mcsg._pairwise import parallel, progress
from sklearn_mcsg.groups import Groups

__all__ = ["SIF", "MeanVector", "WordMoversDistance"]


class _Baseline(GroupsEstimator):
    """Fit, transform, pairwise and paired, from how two prepared collections compare."""

    _outputs = ("similarity", "distance")

    def _learn(self, fitted: Any) -> None:
        """Learn from prepared groups what comparing needs."""

    @abstractmethod
    def _prepare(self, groups: Groups) -> Any:
        """What of the groups is compared."""

    @abstractmethod
    def _all_pairs(self, left: Any, right: Any, output: str) -> np.ndarray:
        """All pairs; a right side of None is the left."""

    @abstractmethod
    def _row_by_row(self, left: Any, right: Any, output: str) -> np.ndarray:
        """Pairs of the same row."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the groups that `transform` compares with.

        Parameters
        ----------
        X : groups
            The corpus, in any form that `ModelComparisonSimilarity` takes.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._validate_params()
        groups = self._check_groups(X)
        self._set_fitted(self._prepare(groups))
        self._keep_features(X, groups)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Append groups to the fitted ones; the result is that of one `fit` on all.

        Parameters
        ----------
        X : groups
            Further groups.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        if not hasattr(self, "n_groups_"):
            return self.fit(X)
        added = self._prepare(self._read(X))
        join = Groups.concatenate if isinstance(added, Groups) else np.concatenate
        self._set_fitted(join([self._fitted, added]))
        return self

    def _set_fitted(self, fitted: Any) -> None:
        self._learn(fitted)
        self._fitted = fitted
        self.n_groups_ = len(fitted)

    def _compare(self, groups: Groups) -> np.ndarray:
        return self._all_pairs(self._prepare(groups), self._fitted, self.output)

    def _compare_fitted(self, rows: slice) -> np.ndarray:
        return self._all_pairs(self._fitted[rows], self._fitted, self.output)

    def _keep_fitted(self, kept: np.ndarray) -> None:
        self._set_fitted(self._fitted[kept])

    def _get_stored(self) -> dict[str, Any]:
        return {"fitted": self._fitted, **self._stored_features()} if hasattr(self, "n_groups_") else {}

    def _set_stored(self, state: dict[str, Any]) -> None:
        self._set_fitted(state["fitted"])
        self._restore_features(state)

    def transform(self, X: Any) -> np.ndarray:
        """Compare groups with the fitted ones.

        Parameters
        ----------
        X : groups
            Groups to compare.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, `n_groups_`)
        """
        check_is_fitted(self, "n_groups_")
        return self._indexed(X, self._compare(self._read(X)))

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to groups and compare them with each other.

        Parameters
        ----------
        X : groups
            The corpus.
        y : None
            Ignored.

        Returns
        -------
        matrix : ndarray of shape (n_groups, n_groups)
        """
        return self._indexed(X, self._all_pairs(self.fit(X)._fitted, None, self.output))

    def pairwise(self, X: Any, Y: Any = None, *, output: str | None = None) -> np.ndarray:
        """Compare all pairs of groups.

        Parameters
        ----------
        X : groups
            Groups along the rows.
        Y : groups, default=None
            Groups along the columns; ``None`` means `X`.
        output : {"similarity", "distance"}, default=None
            In place of the parameter `output`.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, n_groups_Y)
        """
        output = self._choose_output(output)
        left = self._read(X)
        if Y is None:
            return self._all_pairs(self._prepare(left), None, output)
        right = self._read(Y, "Y")
        self._check_same_width(left, right)
        return self._all_pairs(self._prepare(left), self._prepare(right), output)

    def paired(self, X: Any, Y: Any, *, output: str | None = None) -> np.ndarray:
        """Compare groups row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.
        output : {"similarity", "distance"}, default=None
            In place of the parameter `output`.

        Returns
        -------
        values : ndarray of shape (n_groups,)
        """
        output = self._choose_output(output)
        left, right = self._read(X), self._read(Y, "Y")
        self._check_same_width(left, right)
        self._check_same_length(left, right)
        return self._row_by_row(self._prepare(left), self._prepare(right), output)

    def _read(self, X: Any, name: str = "X") -> Groups:
        self._validate_params()
        return self._check_fitted_groups(X, name) if hasattr(self, "n_groups_") else self._check_groups(X, name)


class MeanVector(_Baseline):
    """Cosine of the groups' mean vectors (MWV).

    Parameters
    ----------
    output : {"similarity", "distance"}, default="similarity"
        The cosine, or one minus the cosine.

    Attributes
    ----------
    n_groups_ : int
        Number of fitted groups.
    n_features_in_ : int
        Width of the vectors.

    Examples
    --------
    >>> from sklearn_mcsg import MeanVector
    >>> MeanVector().pairwise([[[1.0, 0.0], [1.0, 2.0]], [[0.0, 1.0]]]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    _parameter_constraints: ClassVar[dict] = {"output": [StrOptions({"similarity", "distance"})]}

    def __init__(self, output: str = "similarity"):
        self.output = output

    def embed(self, X: Any) -> np.ndarray:
        """The vector that stands for each group.

        Parameters
        ----------
        X : groups
            Groups to embed.

        Returns
        -------
        embedding : ndarray of shape (n_groups, n_features)
        """
        return self._project(self._prepare(self._read(X)))

    def _prepare(self, groups: Groups) -> np.ndarray:
        return (_sums(groups) / groups.totals[:, None]).astype(groups.output_dtype)

    def _project(self, means: np.ndarray) -> np.ndarray:
        """What of the means is compared."""
        return means

    def _all_pairs(self, left: np.ndarray, right: np.ndarray | None, output: str) -> np.ndarray:
        compare = cosine_similarity if output == "similarity" else cosine_distances
        return compare(self._project(left), None if right is None else self._project(right))

    def _row_by_row(self, left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
        distances = paired_cosine_distances(self._project(left), self._project(right))
        return 1 - distances if output == "similarity" else distances


class SIF(MeanVector):
    """Cosine of weighted means, less the directions common to a corpus.

    Smooth inverse frequency [1]_: the weights are those of the groups, ``a / (a + p)`` with
    ``EmbeddingVectorizer(weighting="sif")``; a group's embedding is the sum of its weighted vectors over their number.

    Parameters
    ----------
    n_components : int, default=0
        Number of principal directions of the fitted embeddings, which are not centred, to be removed from all. One is
        SIF+PCA, and must be fitted before groups are compared.
    output : {"similarity", "distance"}, default="similarity"
        The cosine, or one minus the cosine.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The directions removed.
    n_groups_ : int
        Number of fitted groups.
    n_features_in_ : int
        Width of the vectors.

    References
    ----------
    .. [1] S. Arora, Y. Liang, T. Ma, "A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017.

    Examples
    --------
    >>> from sklearn_mcsg import SIF
    >>> X = [[[3.0, 0.1]], [[3.0, -0.2]], [[4.0, 0.3]]]
    >>> SIF(n_components=1).fit_transform(X).round(1)
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 0, None, closed="left")],
        **MeanVector._parameter_constraints,
    }

    def __init__(self, n_components: int = 0, output: str = "similarity"):
        super().__init__(output)
        self.n_components = n_components

    def _learn(self, fitted: np.ndarray) -> None:
        if self.n_components > min(fitted.shape):
            raise ValueError(
                f"n_components={self.n_components} is more than the {len(fitted)} groups of {fitted.shape[1]} "
                f"features have."
            )
        embedding = fitted.astype(np.float64, copy=False)
        _, vectors = np.linalg.eigh(embedding.T @ embedding) if self.n_components else (None, np.eye(fitted.shape[1]))
        self.components_ = vectors[:, ::-1][:, : self.n_components].T

    def _prepare(self, groups: Groups) -> np.ndarray:
        return (_sums(groups) / groups.sizes[:, None]).astype(groups.output_dtype)

    def _project(self, means: np.ndarray) -> np.ndarray:
        if not self.n_components:
            return means
        check_is_fitted(self, "components_")
        if len(self.components_) != self.n_components:
            raise ValueError("n_components has changed since fit: call fit again.")
        return (means - means @ self.components_.T @ self.components_).astype(means.dtype, copy=False)


class WordMoversDistance(_Baseline):
    """Least cost of moving one group's vectors to the other's: exact optimal transport.

    The cost of a move is the Euclidean distance; each group's weights share a mass of 1 [1]_. Needs POT:
    ``pip install "sklearn-mcsg[wmd]"``.

    Parameters
    ----------
    output : {"distance", "similarity"}, default="distance"
        The distance, or its negative.
    n_jobs : int, default=None
        Number of pairs computed at a time, as in joblib.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    n_groups_ : int
        Number of fitted groups.
    n_features_in_ : int
        Width of the vectors.

    References
    ----------
    .. [1] M. Kusner, Y. Sun, N. Kolkin, K. Weinberger, "From word embeddings to document distances", ICML 2015.

    Examples
    --------
    >>> from sklearn_mcsg import WordMoversDistance
    >>> WordMoversDistance().paired([[[0.0], [2.0]]], [[[1.0], [4.0]]])
    array([1.5])
    """

    _parameter_constraints: ClassVar[dict] = {
        "output": [StrOptions({"similarity", "distance"})],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(self, output: str = "distance", *, n_jobs: int | None = None, verbose: int = 0):
        self.output = output
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _prepare(self, groups: Groups) -> Groups:
        return groups.without_weightless()

    def _all_pairs(self, left: Groups, right: Groups | None, output: str) -> np.ndarray:
        symmetric = right is None
        right = left if right is None else right
        pairs = ((i, slice(i + 1 if symmetric else 0, len(right))) for i in range(len(left)))
        values = self._transport(left, right, pairs, len(left) * len(right) // (2 if symmetric else 1))
        matrix = np.zeros((len(left), len(right)), np.result_type(left.output_dtype, right.output_dtype))
        for row, columns, distances in values:
            matrix[row, columns] = distances
            if symmetric:
                matrix[columns, row] = distances
        return -matrix if output == "similarity" else matrix

    def _row_by_row(self, left: Groups, right: Groups, output: str) -> np.ndarray:
        values = np.empty(len(left), np.result_type(left.output_dtype, right.output_dtype))
        pairs = ((i, slice(i, i + 1)) for i in range(len(left)))
        for row, _, distances in self._transport(left, right, pairs, len(left)):
            values[row] = distances[0]
        return -values if output == "similarity" else values

    def _transport(
        self, left: Groups, right: Groups, pairs: Iterator[tuple[int, slice]], total: int
    ) -> Iterator[tuple[int, slice, list[float]]]:
        """Distances of a left group to some right groups, row after row."""
        _import_pot()
        tasks = (delayed(_distances)(i, j, left[i : i + 1], right[j]) for i, j in pairs)
        with progress(self.verbose, total) as advance:
            for row, columns, distances in parallel(self.n_jobs)(tasks):
                advance(len(distances))
                yield row, columns, distances


def _distances(row: int, columns: slice, left: Groups, right: Groups) -> tuple[int, slice, list[float]]:
    ot = _import_pot()
    source, mass = left.rows(), _masses(left)
    masses = _masses(right)
    distances = []
    for start, stop, target in zip(right.offsets[:-1], right.offsets[1:], right, strict=True):
        cost = cdist(source, target.astype(np.float64, copy=False))
        distances.append(float(ot.emd2(mass, masses[start:stop], cost, check_marginals=False)))
    return row, columns, distances


def _masses(groups: Groups) -> np.ndarray:
    """Weights that sum to 1 in each group."""
    weights = np.ones(groups.n_rows) if groups.weights is None else groups.weights
    return weights / groups.spread(groups.totals)


def _sums(groups: Groups) -> np.ndarray:
    """Weighted sum of each group's vectors, by blocks."""
    groups = groups.without_weightless()
    return np.concatenate([groups[block].sum(groups[block].rows()) for block in groups.blocks()])


def _import_pot() -> Any:
    try:
        import ot
    except ImportError as error:
        raise ImportError('WordMoversDistance needs the package POT: pip install "sklearn-mcsg[wmd]".') from error
    return ot
