"""What estimators that compare groups do with their fitted groups: the protocol `ComparesGroups`, and storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.points import PointSpace
from sklearn_mcsg.groups import Groups, GroupsLike, Rows
from sklearn_mcsg.likelihoods import Statistics


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the groups that a similarity is fitted to, with prepared queries: what one worker compares.

    Attributes
    ----------
    similarity : GroupSimilarity
        The similarity, without its groups.
    learnt : object
        What it learnt.
    queries : object
        The queries, prepared.
    groups : object or slice
        The groups, prepared; a slice if the queries are all fitted groups, and these are some of them.
    output : str
        The output.
    dtype : dtype
        Precision of the result.
    """

    similarity: Any
    learnt: Any
    queries: Any
    groups: Any
    output: str
    dtype: np.dtype

    def compare(self, rows: slice) -> np.ndarray:
        """Compare some queries with all groups of the shard."""
        groups = self.queries[self.groups] if isinstance(self.groups, slice) else self.groups
        return self.similarity.compare(self.learnt, self.queries[rows], groups, self.output, self.dtype)


class FittedGroupsMixin:
    """GroupModel with fitted groups, for the template `GroupSimilarity`."""

    @property
    def higher_is_nearer(self: Any) -> bool:
        """Whether larger values of the chosen output mean more similar groups."""
        return OUTPUTS[self.output].higher_is_nearer

    def validate(self: Any, X: GroupsLike, name: str = "X") -> Groups:
        """Turn any accepted input into `Groups` that can be compared, or raise an error.

        Parameters
        ----------
        X : groups
            Groups to compare.
        name : str, default="X"
            Name of the input in error messages.

        Returns
        -------
        groups : Groups
        """
        self._validate_params()
        return self._check_fitted_groups(X, name) if self._is_fitted else self._check_groups(X, name)

    def compare_with_fitted(self: Any, groups: Groups) -> np.ndarray:
        """Compare validated groups with all fitted ones.

        Parameters
        ----------
        groups : Groups
            Groups returned by `validate`.

        Returns
        -------
        matrix : ndarray of shape (n_groups, `n_groups_`)
        """
        learnt, left, right, dtype = self._prepare_with_fitted(groups)
        return self.compare(learnt, left, right, self.output, dtype)

    def compare_with_candidates(self: Any, groups: Groups, candidates: np.ndarray) -> np.ndarray:
        """Compare each validated group with its own candidates among the fitted groups.

        Parameters
        ----------
        groups : Groups
            Groups returned by `validate`.
        candidates : ndarray of int of shape (n_groups, n_candidates)
            Indices of fitted groups, one row per group.

        Returns
        -------
        values : ndarray of shape (n_groups, n_candidates)
        """
        learnt, left, right, dtype = self._prepare_with_fitted(groups)
        return self._compare_candidates(learnt, left, right, candidates, dtype)

    def compare_fitted_with_candidates(self: Any, rows: Rows, candidates: np.ndarray) -> np.ndarray:
        """Compare some fitted groups, each with its own candidates among the fitted groups.

        Parameters
        ----------
        rows : slice or ndarray of int
            The fitted groups.
        candidates : ndarray of int of shape (n_rows, n_candidates)
            Indices of fitted groups, one row per group.

        Returns
        -------
        values : ndarray of shape (n_rows, n_candidates)
        """
        learnt = self._learnt_for(self.output)
        groups = self._fitted_groups(learnt, self.output)
        values = self._compare_candidates(learnt, groups[rows], groups, candidates, self._fitted.dtype)
        if (same := OUTPUTS[self.output].diagonal) is not None:
            values[np.arange(self.n_groups_)[rows][:, None] == candidates] = same
        return values

    def _compare_candidates(
        self: Any, learnt: Any, left: Any, right: Any, candidates: np.ndarray, dtype: np.dtype
    ) -> np.ndarray:
        rows = np.repeat(np.arange(len(left)), candidates.shape[1])
        values = self.compare_rows(learnt, left[rows], right[candidates.ravel()], self.output, dtype)
        return values.reshape(candidates.shape)

    def shards(self: Any, queries: Groups | np.ndarray, slices: list[slice]) -> Iterator[Shard]:
        """Consecutive parts of the fitted groups, each with all that a worker needs to compare queries with it.

        Parameters
        ----------
        queries : Groups or ndarray of int
            Groups returned by `validate`, or indices of fitted groups.
        slices : list of slices
            The parts.

        Yields
        ------
        shard : Shard
        """
        if isinstance(queries, Groups):
            learnt, left, right, dtype = self._prepare_with_fitted(queries)
        else:
            learnt, dtype = self._learnt_for(self.output), self._fitted.dtype
            right = self._fitted_groups(learnt, self.output)
            left = right[queries]
        light = clone(self)
        if hasattr(light, "n_jobs"):
            light.set_params(n_jobs=1)
        learnt = self.carry(learnt, None)
        every = not isinstance(queries, Groups) and np.array_equal(queries, np.arange(self.n_groups_))
        for part in slices:
            yield Shard(light, learnt, left, part if every else right[part], self.output, dtype)

    def summaries(self: Any, groups: Groups | None = None) -> Any:
        """What is kept of groups: one row per group.

        Parameters
        ----------
        groups : Groups, default=None
            Groups returned by `validate`; ``None`` means the fitted groups.

        Returns
        -------
        summaries : object
            As `summarize` returns them.
        """
        check_is_fitted(self)
        return self._fitted.summaries if groups is None else self.summarize(self._learnt_for(self.output), groups)

    def point_space(self: Any) -> PointSpace | None:
        """Points whose distances order groups approximately as the chosen output does; None if there are none.

        `GroupNeighbors` finds candidates among these points when it searches approximately.
        """
        return None

    def compare_fitted(self: Any, rows: Rows, columns: Rows | None = None) -> np.ndarray:
        """Compare fitted groups with each other.

        Parameters
        ----------
        rows : slice or ndarray of int
            Fitted groups along the rows.
        columns : slice or ndarray of int, default=None
            Fitted groups along the columns; ``None`` means all.

        Returns
        -------
        matrix : ndarray of shape (n_rows, n_columns)
        """
        check_is_fitted(self)
        learnt = self._learnt_for(self.output)
        groups = self._fitted_groups(learnt, self.output)
        right = groups if columns is None else groups[columns]
        matrix = self.compare(learnt, groups[rows], right, self.output, self._fitted.dtype)
        every = np.arange(len(groups))
        return clear_same(matrix, every[rows], every if columns is None else every[columns], self.output)

    def keep_fitted(self: Any, kept: np.ndarray) -> Any:
        """Keep only some of the fitted groups, and learn again from them.

        Parameters
        ----------
        kept : ndarray of int
            Indices of the groups to keep.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._check_unchanged()
        self._set_fitted(self._fitted.summaries[kept], self._fitted.dtype)
        return self

    def __mcsg_state__(self: Any) -> dict[str, Any]:
        """Learnt state, to be saved with the parameters; empty before `fit`."""
        if not self._is_fitted:
            return {}
        self._check_unchanged()
        kept = {"summaries": self._fitted.summaries, "dtype": self._fitted.dtype, "null": self._fitted.null}
        return {**kept, **self._stored_features()}

    def __mcsg_restore__(self: Any, state: dict[str, Any]) -> None:
        """Restore the state returned by `__mcsg_state__`."""
        self._validate_params()
        summaries = state["summaries"]
        self._restore_features(state)
        if isinstance(summaries, Statistics) and summaries.n_features != self.n_features_in_:
            raise ValueError(f"statistics of {summaries.n_features} features instead of {self.n_features_in_}")
        if isinstance(summaries, np.ndarray) and (summaries.dtype.kind != "f" or summaries.ndim != 2):
            raise ValueError(f"groups are kept as {summaries.dtype} of shape {summaries.shape}")
        dtype, null = np.dtype(state["dtype"]), state["null"]
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"results cannot be in {dtype}")
        if null is not None:
            null.check()
        self._set_fitted(summaries, dtype, self._learn_from(state))
        self._fitted = replace(self._fitted, null=null)

    def _learn_from(self: Any, state: dict[str, Any]) -> Any:
        """Learn again from a stored state that was checked."""
        return self.learn(state["summaries"])


def clear_same(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray, output: str) -> np.ndarray:
    """Set the values of groups compared with themselves exactly, in a part of a symmetric matrix."""
    if (value := OUTPUTS[output].diagonal) is not None:
        matrix[rows[:, None] == columns] = value
    return matrix
