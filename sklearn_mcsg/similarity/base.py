"""`GroupSimilarity`: the base class of estimators that compare groups, with the protocol `ComparesGroups`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, ClassVar, Generic, Self, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import check_out
from sklearn_mcsg._memory import count_within
from sklearn_mcsg.engine.outputs import choose_output
from sklearn_mcsg.groups import Groups, GroupsLike, check_same_length, check_same_width
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.arrays import ArrayKind, are_dispatched, check_same_place, host_dtype, kind_of, result_kind
from sklearn_mcsg.groups.regroup import without_labels
from sklearn_mcsg.similarity._fitted import FittedGroupsMixin, clear_same
from sklearn_mcsg.similarity.calibration import CalibrationMixin
from sklearn_mcsg.similarity.estimator import Fitted, GroupsEstimator, LearntT, PreparedT, SummariesT, join_summaries
from sklearn_mcsg.storage import register

__all__ = ["GroupSimilarity"]


class GroupSimilarity(
    CalibrationMixin,
    FittedGroupsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    GroupsEstimator,
    ABC,
    Generic[LearntT, SummariesT, PreparedT],
):
    """Base class of estimators that compare groups; subclass it to add a similarity.

    A subclass has a parameter `output`, lists its outputs in `outputs`, and defines `compare`. It can also define
    `summarize` to keep less than all vectors of each group, `learn` to learn from a corpus, `prepare` to turn summaries
    into the form that is compared, and `compare_rows` to compare single pairs faster. The base class adds the rest:
    `fit`, `partial_fit`, `transform`, `pairwise`, `paired`, use in `GroupNeighbors`, `find_duplicates` and
    `PairSimilarity`, and storage under the name of the class.

    `summarize` and `prepare` must return objects that have a length and can be indexed by slices and integer arrays,
    such as arrays, `Groups` and `Statistics`.

    Examples
    --------
    The Hausdorff distance: the largest distance from a vector to its nearest vector in the other group:

    >>> import numpy as np
    >>> from scipy.spatial.distance import directed_hausdorff
    >>> from sklearn_mcsg import GroupNeighbors, GroupSimilarity
    >>> class Hausdorff(GroupSimilarity):
    ...     outputs = ("distance",)
    ...     def __init__(self, output="distance"):
    ...         self.output = output
    ...     def compare(self, learnt, left, right, output, dtype, out=None):
    ...         pairs = [[max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) for b in right] for a in left]
    ...         return np.array(pairs, dtype=dtype)
    >>> X = [[[0.0], [1.0]], [[0.5]], [[9.0], [8.0]]]
    >>> Hausdorff().pairwise(X)
    array([[0. , 0.5, 8. ],
           [0.5, 0. , 8.5],
           [8. , 8.5, 0. ]])
    >>> GroupNeighbors(Hausdorff(), n_neighbors=1).fit(X).kneighbors(return_distance=False).ravel()
    array([1, 0, 0])
    """

    outputs: ClassVar[tuple[str, ...]] = ("similarity", "distance")
    _takes_arrays: ClassVar[bool] = False  # whether it compares arrays of other libraries than NumPy
    _parameter_constraints: ClassVar[dict] = {}
    output: str
    n_groups_: int

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    # Methods for subclasses to define -----------------------------------------------------------------------------

    @abstractmethod
    def compare(
        self,
        learnt: LearntT,
        left: PreparedT,
        right: PreparedT,
        output: str,
        dtype: np.dtype,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compare all pairs of two prepared collections; return a matrix.

        If `right` is the same object as `left`, the matrix is symmetric. A subclass may write the matrix to `out`, if
        it is given, or return a new array.
        """

    def compare_rows(
        self, learnt: LearntT, left: PreparedT, right: PreparedT, output: str, dtype: np.dtype
    ) -> np.ndarray:
        """Compare two prepared collections row by row."""
        pairs = ((left[i : i + 1], right[i : i + 1]) for i in range(len(left)))
        return np.array([self.compare(learnt, a, b, output, dtype)[0, 0] for a, b in pairs], dtype=dtype)

    def summarize(self, learnt: LearntT, groups: Groups) -> SummariesT:
        """Reduce groups to the data that is kept of them; by default, all vectors."""
        return cast(SummariesT, without_labels(groups))

    def start(self, output: str | None = None) -> LearntT:
        """State before `fit`; raise NotFittedError if `output` needs something learnt from a corpus."""
        return cast(LearntT, None)

    def learn(self, summaries: SummariesT) -> LearntT:
        """Learn from the summaries of a corpus; the other methods receive the result as `learnt`."""
        return self.start()

    def carry(self, learnt: LearntT, summaries: SummariesT | None) -> LearntT:
        """What was learnt, without the corpus if it refers to that: for other groups, or for a worker with a few."""
        return learnt

    def prepare(self, learnt: LearntT, summaries: SummariesT, output: str) -> PreparedT:
        """Turn summaries into the form that `compare` takes."""
        return cast(PreparedT, summaries)

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Keep the groups for `transform`, and learn from them if the parameters require it.

        Parameters
        ----------
        X : groups
            The corpus, in any form that `validate_groups` takes.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._validate_params()
        learnt = self.start()
        groups = self._read_groups(X, self._takes_arrays)
        self._set_fitted(self.summarize(learnt, groups), host_dtype(groups.output_dtype))
        self._keep_features(X, groups)
        return self

    def partial_fit(self, X: GroupsLike, y: object = None) -> Self:
        """Append groups to the fitted ones.

        The result is the same as one `fit` on all groups: everything learnt from the corpus is learnt again from all
        groups so far, so results that depend on it change.

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
        if not self._is_fitted:
            return self.fit(X)
        self._validate_params()
        self._check_unchanged()
        groups = self._read(X)
        added = self.summarize(self._fitted.learnt, groups)
        dtype = np.result_type(self._fitted.dtype, host_dtype(groups.output_dtype))
        self._set_fitted(join_summaries([self._fitted.summaries, added]), dtype)
        return self

    def with_groups(self, X: GroupsLike) -> Self:
        """A copy that keeps other groups. Nothing is learnt from them: all that was learnt stays as it is.

        Parameters
        ----------
        X : groups
            The groups to keep.

        Returns
        -------
        similarity : object
        """
        check_is_fitted(self)
        self._check_unchanged()
        groups = self.validate(X)
        learnt = self._learnt_for(self.output)
        summaries = self.summarize(learnt, groups)
        other = copy(self)
        other._set_fitted(summaries, groups.output_dtype, self.carry(learnt, summaries))
        return other

    def transform(self, X: GroupsLike) -> np.ndarray:
        """Compare groups with the fitted ones.

        Parameters
        ----------
        X : groups
            Groups to compare.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, `n_groups_`)
            The chosen `output` for each pair; estimators with ``metric="precomputed"`` need one that is a distance.
        """
        check_is_fitted(self)
        return self._with_index(X, self.compare_with_fitted(self._read(X)))

    def fit_transform(self, X: GroupsLike, y: object = None) -> np.ndarray:
        """Fit to groups and compare them with each other: ``fit(X).pairwise(X)`` in one pass.

        Parameters
        ----------
        X : groups
            The corpus.
        y : None
            Ignored.

        Returns
        -------
        matrix : ndarray of shape (n_groups, n_groups)
            The chosen `output` for each pair; estimators with ``metric="precomputed"`` need one that is a distance.
        """
        self.fit(X)
        learnt = self._learnt_for(self.output)
        groups = self._fitted_groups(learnt, self.output)
        dtype: Any = kind_of(X) if are_dispatched(X) else self._fitted.dtype
        return self._with_index(X, self.compare(learnt, groups, groups, self.output, dtype))

    def pairwise(
        self, X: GroupsLike, Y: GroupsLike | None = None, *, output: str | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Compare all pairs of groups.

        Works before `fit` unless something has to be learnt from a corpus.

        Parameters
        ----------
        X : groups
            Groups along the rows.
        Y : groups, default=None
            Groups along the columns; ``None`` means `X`.
        output : str, default=None
            Overrides the parameter `output`. Estimators with ``metric="precomputed"`` need one that is a distance.
        out : ndarray of shape (n_groups_X, n_groups_Y), default=None
            Array to write the matrix to, for example a memory map. Its dtype must be that of the result: float32 if
            all vectors are float32, and float64 otherwise.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, n_groups_Y)
        """
        learnt, left, right, output, dtype = self._prepare_both(X, Y, output)
        if out is None:
            return self.compare(learnt, left, right, output, dtype)
        if isinstance(dtype, ArrayKind):
            raise TypeError("out is for NumPy arrays only: the result for other arrays is a new array on their device.")
        check_out(out, (len(left), len(right)), dtype)
        result = self.compare(learnt, left, right, output, dtype, out)
        if result is not out:
            out[:] = result
        return out

    def pairwise_chunked(
        self,
        X: GroupsLike,
        Y: GroupsLike | None = None,
        *,
        output: str | None = None,
        reduce_func: Callable | None = None,
    ) -> Iterator[Any]:
        """Compare all pairs of groups, a few rows of the matrix at a time.

        Chunks of rows fit into ``sklearn.get_config()["working_memory"]``, as in
        `sklearn.metrics.pairwise_distances_chunked`.

        Parameters
        ----------
        X : groups
            Groups along the rows.
        Y : groups, default=None
            Groups along the columns; ``None`` means `X`.
        output : str, default=None
            Overrides the parameter `output`.
        reduce_func : callable, default=None
            Called as ``reduce_func(chunk, start)`` with the chunk and the index of its first row. Its result is
            yielded in place of the chunk.

        Yields
        ------
        chunk : ndarray of shape (n_rows, n_groups_Y), or the result of `reduce_func`

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> X = np.random.default_rng(0).normal(size=(5, 4, 3))
        >>> def nearest(chunk, start):
        ...     return chunk.argmax(axis=1)
        >>> np.concatenate(list(ModelComparisonSimilarity().pairwise_chunked(X, reduce_func=nearest)))
        array([0, 1, 2, 3, 4])
        """
        learnt, left, right, output, dtype = self._prepare_both(X, Y, output, arrays=False)

        def chunks() -> Iterator[Any]:
            for batch in gen_batches(len(left), count_within(dtype.itemsize * len(right))):
                chunk = self.compare(learnt, left[batch], right, output, dtype)
                if Y is None:
                    clear_same(chunk, np.arange(batch.start, batch.stop), np.arange(len(right)), output)
                yield chunk if reduce_func is None else reduce_func(chunk, batch.start)

        return chunks()

    def paired(self, X: GroupsLike, Y: GroupsLike, *, output: str | None = None) -> np.ndarray:
        """Compare groups row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.
        output : str, default=None
            Overrides the parameter `output`.

        Returns
        -------
        values : ndarray of shape (n_groups,)
        """
        learnt, left, right, output, dtype = self._prepare_both(X, Y, output, paired=True)
        return self.compare_rows(learnt, left, right, output, dtype)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the columns of `transform`, one for each fitted group.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only used to check feature names against those seen in `fit`. The name of a single column that holds groups
            of several features is also accepted.

        Returns
        -------
        names : ndarray of str
        """
        column_of_groups = input_features is not None and len(input_features) == 1 != self.n_features_in_
        return super().get_feature_names_out(None if column_of_groups else input_features)

    def _validate_params(self) -> None:
        super()._validate_params()
        choose_output(self.output, self.outputs)

    @property
    def _n_features_out(self) -> int:
        return self.n_groups_

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "_fitted")

    def _learnt_for(self, output: str) -> LearntT:
        """The learnt state or, before `fit`, the result of `start`."""
        return self._fitted.learnt if self._is_fitted else self.start(output)

    def _check_unchanged(self) -> None:
        """Raise if parameters have changed so that the kept summaries are no longer valid."""

    def _set_fitted(self, summaries: SummariesT, dtype: np.dtype, learnt: LearntT | None = None) -> None:
        """Learn, unless `learnt` is given; set fitted attributes only after everything that can fail."""
        learnt = self.learn(summaries) if learnt is None else learnt
        prepared = self.prepare(learnt, summaries, self.output)
        self._fitted = Fitted(summaries, dtype, learnt, prepared, self.output)
        self.n_groups_ = len(summaries)

    def _fitted_groups(self, learnt: LearntT, output: str) -> PreparedT:
        """The fitted groups, prepared for an output."""
        kept = self._fitted
        return kept.prepared if output == kept.output else self.prepare(learnt, kept.summaries, output)

    def _read(self, X: GroupsLike, name: str = "X") -> Any:
        """Validated groups, or `ArrayGroups` if X holds arrays of another library that the similarity takes."""
        self._validate_params()
        return self._read_groups(X, self._takes_arrays, name, self._is_fitted)

    def _prepare_groups(self, learnt: LearntT, groups: Groups, output: str) -> PreparedT:
        return self.prepare(learnt, self.summarize(learnt, groups), output)

    def _prepare_with_fitted(self, groups: Groups) -> tuple[LearntT, PreparedT, PreparedT, np.dtype]:
        """The learnt state, the given and the fitted groups, both prepared, and the dtype of the result."""
        learnt = self._learnt_for(self.output)
        left, right = self._prepare_groups(learnt, groups, self.output), self._fitted_groups(learnt, self.output)
        return learnt, left, right, result_kind(_kind_of_results(groups), self._fitted.dtype)

    def _prepare_both(
        self, X: GroupsLike, Y: GroupsLike | None, output: str | None, paired: bool = False, arrays: bool = True
    ) -> tuple[LearntT, PreparedT, PreparedT, str, Any]:
        """The learnt state, both prepared sides, the output and the dtype; without `Y`, both sides are one object.

        Everything is validated before anything is computed.
        """
        self._validate_params()
        output = choose_output(self.output if output is None else output, self.outputs).name
        learnt = self._learnt_for(output)
        read = self._read if arrays else self.validate
        left = read(X)
        if Y is None:
            prepared = self._prepare_groups(learnt, left, output)
            return learnt, prepared, prepared, output, _kind_of_results(left)
        right = read(Y, "Y")
        check_same_width(left, right)
        kinds = _kind_of_results(left), _kind_of_results(right)
        check_same_place(*kinds)
        if paired:
            check_same_length(left, right)
        one, other = (self._prepare_groups(learnt, groups, output) for groups in (left, right))
        return learnt, one, other, output, result_kind(*kinds)


def _kind_of_results(groups: Groups | ArrayGroups) -> np.dtype | ArrayKind:
    """Library, device and precision of results for `ArrayGroups`; for `Groups`, the precision."""
    return groups.kind if isinstance(groups, ArrayGroups) else groups.output_dtype
