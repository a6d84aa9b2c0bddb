"""The base class of estimators of groups, the protocol of estimators that compare groups, and the state they keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._sklearn import get_output_config
from sklearn_mcsg.groups import Groups, GroupsLike, Rows, validate_groups
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.arrays import are_dispatched
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.similarity.calibration import NullDistribution


class GroupsEstimator(BaseEstimator):
    """An estimator whose samples are groups, with their validation."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_groups(self, X: GroupsLike, name: str = "X") -> Groups:
        return validate_groups(X, allow_empty=getattr(self, "prior_strength", 0) > 0, name=name)

    def _check_fitted_groups(self, X: Any, name: str = "X") -> Groups:
        """Validate groups, and check their features against the fitted ones; names, if any, before values."""
        named = hasattr(X, "columns") and (X.shape[1] > 1 or self.n_features_in_ == 1)
        if named:
            validate_data(self, X, reset=False, skip_check_array=True)
        groups = self._check_groups(X, name)
        if not named:
            validate_data(self, groups.vectors, reset=False, skip_check_array=True)
        return groups

    def _read_groups(self, X: Any, arrays: bool, name: str = "X", fitted: bool = False) -> Any:
        """Validate groups; if `arrays`, those of other libraries than NumPy become `ArrayGroups`."""
        if not arrays or not are_dispatched(X):
            return self._check_fitted_groups(X, name) if fitted else self._check_groups(X, name)
        groups = ArrayGroups.read(X, allow_empty=getattr(self, "prior_strength", 0) > 0, name=name)
        if fitted:
            validate_data(self, groups.vectors, reset=False, skip_check_array=True)
        return groups

    def _keep_features(self, X: Any, groups: Any) -> None:
        """Remember the number of features and their names."""
        named = hasattr(X, "columns") and X.shape[1] == groups.n_features
        validate_data(self, X if named else groups.vectors, reset=True, skip_check_array=True)

    def _stored_features(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        return {"n_features_in_": self.n_features_in_, "feature_names_in_": names}

    def _restore_features(self, state: dict[str, Any]) -> None:
        width, names = state["n_features_in_"], state["feature_names_in_"]
        check_positive_integer(width, "n_features_in_")
        if names is not None:
            if len(names) != width or not all(isinstance(name, str) for name in names):
                raise ValueError(f"feature_names_in_ must hold {width} names")
            self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = width

    def _with_index(self, X: GroupsLike, matrix: np.ndarray) -> Any:
        """A matrix with the row labels of the data frame that the groups come from, if pandas output is set."""
        if not isinstance(X, Groups) or X.index is None:
            return matrix
        if get_output_config("transform", self)["dense"] != "pandas":
            return matrix
        import pandas as pd

        return pd.DataFrame(matrix, index=X.index, copy=False)


LearntT = TypeVar("LearntT")  # what `learn` returns
SummariesT = TypeVar("SummariesT", bound="Indexable")  # what `summarize` returns
PreparedT = TypeVar("PreparedT", bound="Indexable")  # what `prepare` returns


class Indexable(Protocol):
    """One row per group: arrays, `Groups` and `Statistics` are such."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Rows, /) -> Self: ...


@dataclass(frozen=True, eq=False)
class Fitted(Generic[LearntT, SummariesT, PreparedT]):
    """State that an estimator keeps after `fit`."""

    summaries: SummariesT  # the groups, as returned by `summarize`
    dtype: np.dtype  # precision of results
    learnt: LearntT  # as returned by `learn`
    prepared: PreparedT  # the groups, prepared for `output`
    output: str  # the output at the time of `fit`
    null: NullDistribution | None = None  # distances of random pairs, once calibrated


def join_summaries(parts: list[Any]) -> Any:
    """Join the summaries of two collections."""
    kind = type(parts[0])
    return kind.concatenate(parts) if issubclass(kind, Groups | Statistics) else np.concatenate(parts)


@runtime_checkable
class ComparesGroups(Protocol):
    """Protocol of similarities for `GroupNeighbors` and `find_duplicates`; `GroupSimilarity` implements it.

    Attributes
    ----------
    n_groups_ : int
        Number of fitted groups.
    higher_is_nearer : bool
        Whether larger values mean more similar groups.
    """

    n_groups_: int
    higher_is_nearer: bool

    def fit(self, X: GroupsLike) -> object:
        """Keep the groups to compare with."""

    def partial_fit(self, X: GroupsLike) -> object:
        """Append groups to the fitted ones."""

    def keep_fitted(self, kept: np.ndarray) -> object:
        """Keep only some of the fitted groups."""

    def validate(self, X: GroupsLike) -> Groups:
        """Turn queries into `Groups`, or raise an error."""

    def compare_with_fitted(self, groups: Groups) -> np.ndarray:
        """Compare groups with all fitted ones: one row per group, one column per fitted group."""

    def compare_with_candidates(self, groups: Groups, candidates: np.ndarray) -> np.ndarray:
        """Compare each group with its own candidates among the fitted groups: one value per candidate."""

    def compare_fitted(self, rows: Rows, columns: Rows | None = None) -> np.ndarray:
        """Compare fitted groups with other fitted groups, or with all: shape (n_rows, n_columns)."""


def _has(estimator: Any, name: str) -> bool:
    """Whether an estimator has an attribute, without computing a property."""
    return hasattr(type(estimator), name) or name in vars(estimator)


def check_compares_groups(similarity: Any) -> None:
    """Raise unless a similarity has what the protocol `ComparesGroups` asks for."""
    names = {*dir(ComparesGroups), *ComparesGroups.__annotations__} - {*dir(Protocol), "n_groups_"}
    missing = sorted(name for name in names if not name.startswith("_") and not _has(similarity, name))
    if missing:
        raise TypeError(
            f"similarity must compare groups, or be a pipeline that ends with a similarity, but "
            f"{type(similarity).__name__} has no {missing[0]}. Subclass GroupSimilarity to add a similarity."
        )


def with_similarity(estimator: Any) -> Any:
    """An estimator whose last step compares groups, in place of one that embeds them."""
    before, last = split_pipeline(estimator)
    if not hasattr(last, "as_similarity"):
        return estimator
    similarity = last.as_similarity()
    return similarity if before is None else Pipeline([*estimator.steps[:-1], (estimator.steps[-1][0], similarity)])


def similarity_of(last: Any, groups: Groups) -> Any:
    """A fitted last step as a similarity of groups: that of an embedding keeps the embeddings of the groups."""
    return last.as_similarity(groups) if hasattr(last, "as_similarity") else last


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """The steps of a pipeline before the last one, or None, and the last step."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    before = estimator[:-1] if len(estimator) > 1 else None
    return before, estimator[-1]
