"""The base class of estimators whose samples are groups, and the way from an estimator to its comparer."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._sklearn import get_output_config
from sklearn_mcsg.engine.capabilities import new_model
from sklearn_mcsg.engine.comparer import ComparesGroups
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.groups import Groups, GroupsLike, validate_groups
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.arrays import are_dispatched

E = TypeVar("E")


def snapshot(estimator: E) -> E:
    """An estimator as it is at this moment.

    Methods that only read begin with ``self = snapshot(self)``: parameters and fitted attributes then belong together,
    whatever other threads set meanwhile. What belongs together is set by one call, ``self.__dict__.update(...)``.
    """
    now = object.__new__(type(estimator))
    now.__dict__.update(estimator.__dict__)
    return now


class GroupsEstimator(BaseEstimator):
    """An estimator whose samples are groups, with their validation."""

    _takes_rows = False  # whether groups of one vector are usual, so that the rows of a table give no warning

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _new_model(self, balanced: bool = False) -> GroupModel:
        """The model of a group from the parameters of the estimator, before anything is learnt."""
        names = ("likelihood", "criterion", "reg_covar", "prior_strength", "penalty_scale")
        return new_model(**{name: getattr(self, name) for name in names}, balanced=balanced)

    def _check_groups(self, X: GroupsLike, name: str = "X") -> Groups:
        return validate_groups(X, allow_empty=self._allows_empty, name=name, rows=self._takes_rows)

    @property
    def _allows_empty(self) -> bool:
        """Whether groups may have no vectors: pseudo-vectors stand for them."""
        return getattr(self, "prior_strength", 0) > 0

    def _check_fitted_groups(self, X: Any, name: str = "X") -> Groups:
        """Validate groups, and check their features against the fitted ones; names, if any, before values."""
        is_frame = hasattr(X, "shape") and hasattr(X, "columns")  # a lazy frame has no shape
        named = is_frame and (X.shape[1] > 1 or self.n_features_in_ == 1)
        if named:
            validate_data(self, X, reset=False, skip_check_array=True)
        groups = self._check_groups(X, name)
        if not named:
            self._check_width(groups)
        return groups

    def _check_width(self, groups: Any) -> None:
        """Raise unless validated groups have as many features as the fitted ones."""
        validate_data(self, groups.vectors, reset=False, skip_check_array=True)

    def _read_groups(self, X: Any, *, arrays: bool, fitted: bool, name: str = "X") -> Any:
        """Validate groups; if `arrays`, those of other libraries than NumPy become `ArrayGroups`."""
        if not arrays or not are_dispatched(X):
            return self._check_fitted_groups(X, name) if fitted else self._check_groups(X, name)
        groups = ArrayGroups.read(X, allow_empty=self._allows_empty, name=name, rows=self._takes_rows)
        if fitted:
            self._check_width(groups)
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
        index = X.index if isinstance(X, Groups) else None
        if index is None or get_output_config("transform", self)["dense"] != "pandas":
            return matrix
        return import_extra("pandas", "Pandas output").DataFrame(matrix, index=index, copy=False)


class GroupsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GroupsEstimator):
    """A transformer of groups, which keeps single precision."""

    def __mcsg_groups__(self, X: GroupsLike) -> Groups:
        """Groups to compare or to embed, validated."""
        self = snapshot(self)
        check_is_fitted(self)
        return self._check_fitted_groups(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """The steps of a pipeline before the last one, or None, and the last step."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    return estimator[:-1] if len(estimator) > 1 else None, estimator[-1]


def check_compares_groups(estimator: Any) -> None:
    """Raise unless an estimator compares groups."""
    if not isinstance(estimator, ComparesGroups):
        raise TypeError(
            f"similarity must compare groups, or be a pipeline that ends with an estimator that does, such as "
            f"ModelComparisonSimilarity or GroupEmbedding, but {type(estimator).__name__} does not. To compare groups "
            f"in a way of your own, subclass Comparison and pass it to GroupSimilarity."
        )
