"""`GroupSimilarity`: the estimator around a comparison of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import check_out
from sklearn_mcsg._memory import count_within
from sklearn_mcsg.engine.chance import checked_null, pair_size
from sklearn_mcsg.engine.comparer import Comparer, joined
from sklearn_mcsg.engine.comparison import Comparison
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.results import DOUBLE, Target
from sklearn_mcsg.groups import Groups, GroupsLike, check_same_length, check_same_width
from sklearn_mcsg.groups.array_groups import check_same_place
from sklearn_mcsg.groups.arrays import refuse_arrays
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.similarity.estimator import GroupsTransformer, snapshot
from sklearn_mcsg.similarity.pvalues import Calibrates
from sklearn_mcsg.storage import register


def fitted_comparer(estimator: Any, X: GroupsLike) -> Comparer:
    """Fit a similarity or an embedding to groups, and return the comparer of the groups."""
    refuse_arrays(X)
    estimator.fit(X)
    if isinstance(estimator, GroupSimilarity):
        return estimator.__mcsg_comparer__()
    return estimator.__mcsg_comparer__(X if isinstance(X, Groups) else estimator.__mcsg_groups__(X))


@register
class GroupSimilarity(GroupsTransformer, Calibrates):
    """Similarity of groups by a comparison of your own.

    It turns a `Comparison` into an estimator with `fit`, `partial_fit`, `transform`, `pairwise` and `paired`, which
    works in `GroupNeighbors`, `find_duplicates` and `PairSimilarity` and can be saved with an index.
    `ModelComparisonSimilarity` and the baselines are subclasses.

    Parameters
    ----------
    comparison : Comparison
        How groups are compared.
    output : str, default="distance"
        What to return for each pair: one of the comparison's `outputs`.

    Attributes
    ----------
    n_features_in_ : int
        Width of the vectors seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when `X` was a data frame.
    n_groups_ : int
        Number of fitted groups.

    See Also
    --------
    Comparison : The base class of comparisons, with the methods that one can define.

    Examples
    --------
    The distance of mean vectors, after the mean of the corpus has been removed and they were scaled to unit length:

    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from sklearn_mcsg import Comparison, GroupSimilarity
    >>> class CentredMeans(Comparison):
    ...     def summarize(self, groups):
    ...         return groups.sum(groups.rows()) / groups.totals[:, None]
    ...     def learn(self, summaries):
    ...         self.centre_ = summaries.mean(axis=0)
    ...         return self
    ...     def compare(self, left, right, output):
    ...         cosines = 1 - cdist(left - self.centre_, right - self.centre_, "cosine")
    ...         return cosines if output == "similarity" else 1 - cosines
    >>> X = [[[5.0, 1.0], [5.0, 2.0]], [[5.0, -1.0]], [[6.0, 1.0]]]
    >>> GroupSimilarity(CentredMeans()).fit(X).transform(X).round(1)
    array([[0. , 1.9, 0.7],
           [1.9, 0. , 1.8],
           [0.7, 1.8, 0. ]])
    """

    _parameter_constraints: ClassVar[dict] = {"comparison": [Comparison], "output": [str]}
    output: str
    n_groups_: int
    _comparer: Comparer

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    def __init__(self, comparison: Comparison, *, output: str = "distance"):
        self.comparison = comparison
        self.output = output

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Keep the groups for `transform`, and learn from them if the parameters require it.

        Parameters
        ----------
        X : groups
            The groups, in any form that `validate_groups` takes.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._fit(X)
        return self

    def _fit(self, X: GroupsLike) -> Target:
        """Fit, and return where results for these groups go."""
        self._validate_params()
        comparison = self._new_comparison()
        comparison.check_output(self.output)
        groups = self._read_groups(X, arrays=comparison.takes_arrays, fitted=False)
        comparer: Comparer = Comparer.learnt(comparison, comparison.summarize(groups), self.output, groups.output_dtype)
        self._keep_features(X, groups)
        self._keep(comparer)
        return Target.of(groups)

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
        comparison, fitted = self._new_comparison(), self._comparer
        groups = self._read(X, comparison)
        summaries = joined([fitted.summaries, comparison.summarize(groups)])
        dtype = np.result_type(fitted.dtype, groups.output_dtype)
        self._keep(Comparer.learnt(comparison, summaries, self.output, dtype))
        return self

    def with_groups(self, X: GroupsLike) -> Self:
        """A copy that keeps other groups. Nothing is learnt from them: what `fit` and `calibrate` learnt stays.

        Parameters
        ----------
        X : groups
            The groups to keep.

        Returns
        -------
        similarity : object
        """
        other = snapshot(self)
        check_is_fitted(other)
        other._validate_params()
        other._check_unchanged()
        null = other._null
        other._keep(other._comparer.in_output(other.output).keeping(other._check_fitted_groups(X)))
        other._null = null
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
        self = snapshot(self)
        comparer = self.__mcsg_comparer__()
        return self._with_index(X, comparer.compare_with(self._read(X, comparer.comparison)))

    def fit_transform(self, X: GroupsLike, y: object = None) -> np.ndarray:
        """Fit to groups and compare them with each other: ``fit(X).pairwise(X)`` in one pass.

        Parameters
        ----------
        X : groups
            The groups, in any form that `validate_groups` takes.
        y : None
            Ignored.

        Returns
        -------
        matrix : ndarray of shape (n_groups, n_groups)
            The chosen `output` for each pair; estimators with ``metric="precomputed"`` need one that is a distance.
        """
        target = self._fit(X)
        comparer = self.__mcsg_comparer__()
        matrix = comparer.comparison.matrix(comparer.prepared, comparer.prepared, comparer.name, target)
        return self._with_index(X, matrix)

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
            all vectors are float32 or float16, and float64 otherwise.

        Returns
        -------
        matrix : ndarray of shape (n_groups_X, n_groups_Y)
        """
        comparison, left, right, output, target = self._prepare_both(X, Y, output)
        if out is not None:
            if target.kind is not None:
                raise TypeError(
                    "out is for NumPy arrays only: the result for other arrays is a new array on their device."
                )
            check_out(out, (len(left), len(right)), target.dtype)
            target = replace(target, out=out)
        return comparison.matrix(left, right, output, target)

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
        comparison, left, right, output, target = self._prepare_both(X, Y, output, arrays=False)

        def chunks() -> Iterator[Any]:
            columns = np.arange(len(right))
            for batch in gen_batches(len(left), count_within(target.dtype.itemsize * len(right))):
                chunk = comparison.matrix(left[batch], right, output, target)
                if Y is None:
                    chunk = OUTPUTS[output].clear_same(chunk, columns[batch], columns)
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
        comparison, left, right, output, target = self._prepare_both(X, Y, output, paired=True)
        return comparison.row(left, right, output, target)

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
        is_column_of_groups = input_features is not None and len(input_features) == 1 and self.n_features_in_ > 1
        return super().get_feature_names_out(None if is_column_of_groups else input_features)

    # P-values -----------------------------------------------------------------------------------------------------

    def _sizes_and_distances(self, X: GroupsLike, Y: GroupsLike) -> tuple[np.ndarray, np.ndarray]:
        comparison, left, right, output, _ = self._prepare_both(X, Y, None, paired=True, arrays=False)
        size = pair_size(comparison.sizes(left), comparison.sizes(right))
        return size, OUTPUTS[output].as_distance(comparison.row(left, right, output, DOUBLE))

    # The comparer and its storage ---------------------------------------------------------------------------------

    def __mcsg_comparer__(self, groups: Groups | None = None) -> Comparer:
        """The comparer of the fitted groups in the present output, or of other groups, which are valid."""
        self = snapshot(self)
        check_is_fitted(self)
        self._validate_params()
        self._check_comparable()
        comparer = self._with_jobs(self._comparer.in_output(self.output))
        return comparer if groups is None else comparer.keeping(groups)

    def __mcsg_adopt__(self, comparer: Comparer) -> None:
        """Keep the groups and what was learnt from them in a comparer that came from this estimator."""
        self._check_unchanged()
        self._keep(comparer)

    def __mcsg_state__(self) -> dict[str, Any]:
        """What `fit` has learnt, for storage; empty before `fit`."""
        self = snapshot(self)
        if not self._is_fitted:
            return {}
        self._check_unchanged()
        comparer = self._comparer
        kept = {"summaries": comparer.summaries, "dtype": comparer.dtype, "null": self._null}
        return {**kept, **self._stored_features()}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Check what was stored, then learn from it again."""
        self._validate_params()
        self._restore_features(state)
        summaries, dtype = state["summaries"], np.dtype(state["dtype"])
        if isinstance(summaries, Statistics) and summaries.n_features != self.n_features_in_:
            raise ValueError(f"statistics of {summaries.n_features} features instead of {self.n_features_in_}")
        if isinstance(summaries, np.ndarray) and (summaries.dtype.kind != "f" or summaries.ndim != 2):
            raise ValueError(f"groups are kept as {summaries.dtype} of shape {summaries.shape}")
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"results cannot be in {dtype}")
        null = checked_null(state["null"])
        comparer: Comparer = Comparer.learnt(self._stored_comparison(state), summaries, self.output, dtype)
        self._keep(comparer)
        self._null = null

    def _stored_comparison(self, state: dict[str, Any]) -> Comparison:
        """The comparison that learns again from what was stored."""
        return self._new_comparison()

    # Plumbing -----------------------------------------------------------------------------------------------------

    def _new_comparison(self) -> Comparison:
        """The comparison that the parameters describe, before it has learnt anything."""
        return clone(self.comparison)

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "_comparer")

    @property
    def _n_features_out(self) -> int:
        return self.n_groups_

    def _keep(self, comparer: Comparer) -> None:
        """Set fitted attributes, once everything that can fail has succeeded, all at once."""
        self.__dict__.update(self._fitted_attributes(comparer))

    def _fitted_attributes(self, comparer: Comparer) -> dict[str, Any]:
        return {"_comparer": comparer, "_null": None, "n_groups_": len(comparer)}

    def _check_unchanged(self) -> None:
        """Raise if parameters have changed since `fit` so that the kept summaries are no longer valid."""

    def _check_comparable(self) -> None:
        """Raise if parameters have changed since `fit` so that what was learnt is no longer valid."""

    def _with_jobs(self, jobs: Any) -> Any:
        """A comparison or comparer with the present number of jobs."""
        return jobs.with_jobs(getattr(self, "n_jobs", None), getattr(self, "verbose", 0))

    def _comparison_for(self, output: str) -> Comparison:
        """The comparison, learnt if it was fitted, with everything that an output needs."""
        if self._is_fitted:
            self._check_comparable()
        comparison = self._comparer.comparison if self._is_fitted else self._new_comparison()
        return self._with_jobs(comparison.ready_for(output))

    def _read(self, X: GroupsLike, comparison: Comparison, name: str = "X", arrays: bool = True) -> Any:
        """Validated groups, or `ArrayGroups` if X holds arrays of another library that the comparison takes."""
        return self._read_groups(X, arrays=arrays and comparison.takes_arrays, fitted=self._is_fitted, name=name)

    def _prepare_both(
        self, X: GroupsLike, Y: GroupsLike | None, output: str | None, paired: bool = False, arrays: bool = True
    ) -> tuple[Comparison, Any, Any, str, Target]:
        """The comparison, both sides prepared, the output, and where results go; without `Y`, both sides are one.

        Everything is validated before anything is computed.
        """
        self = snapshot(self)
        self._validate_params()
        output = self.output if output is None else output
        comparison = self._comparison_for(output)
        groups = self._read(X, comparison, arrays=arrays)
        if Y is None:
            both = comparison.prepare(comparison.summarize(groups), output)
            return comparison, both, both, output, Target.of(groups)
        others = self._read(Y, comparison, "Y", arrays=arrays)
        check_same_width(groups, others)
        check_same_place(groups, others)
        if paired:
            check_same_length(groups, others)
        left, right = (comparison.prepare(comparison.summarize(side), output) for side in (groups, others))
        return comparison, left, right, output, Target.of(groups, others)
