"""What estimators over groups share, and the state behind the model comparison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import validate_data

from sklearn_mcsg._pairwise import OUTPUTS, Comparison, Side
from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.groups import Groups, validate_groups
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood


class OverGroups(BaseEstimator):
    """An estimator whose samples are groups: how they are validated."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _check_groups(self, X: Any, name: str = "X") -> Groups:
        return validate_groups(X, allow_empty=getattr(self, "prior_strength", 0) > 0, name=name)

    def _check_fitted_groups(self, X: Any, name: str = "X") -> Groups:
        """Validate groups, their features against the fitted ones; names, if any, before values."""
        named = hasattr(X, "columns") and (X.shape[1] > 1 or self.n_features_in_ == 1)
        if named:
            validate_data(self, X, reset=False, skip_check_array=True)
        groups = self._check_groups(X, name)
        if not named:
            validate_data(self, groups.vectors, reset=False, skip_check_array=True)
        return groups

    def _keep_features(self, X: Any, groups: Groups) -> None:
        """Remember the number of features and their names."""
        named = hasattr(X, "columns") and X.shape[1] == groups.n_features
        validate_data(self, X if named else groups.vectors, reset=True, skip_check_array=True)


class GroupsEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OverGroups, ABC):
    """An estimator over groups whose `transform` compares them with the fitted ones."""

    output: str
    n_groups_: int
    _outputs: Collection[str]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`, one for each fitted group.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only used to validate feature names with those seen in `fit`; the name of a single column that holds
            groups of several features is accepted, too.

        Returns
        -------
        names : ndarray of str
        """
        column_of_groups = input_features is not None and len(input_features) == 1 != self.n_features_in_
        return super().get_feature_names_out(None if column_of_groups else input_features)

    @property
    def _n_features_out(self) -> int:
        return self.n_groups_

    @abstractmethod
    def _compare(self, groups: Groups) -> np.ndarray:
        """Validated groups with the fitted ones."""

    @abstractmethod
    def _compare_fitted(self, rows: slice) -> np.ndarray:
        """Some of the fitted groups with all of them."""

    @abstractmethod
    def _keep_fitted(self, kept: np.ndarray) -> None:
        """Forget the fitted groups that are not to be kept."""

    @abstractmethod
    def _get_stored(self) -> dict[str, Any]:
        """What was learnt, to be saved beside the parameters; nothing before `fit`."""

    @abstractmethod
    def _set_stored(self, state: dict[str, Any]) -> None:
        """Restore what was learnt."""

    def _stored_features(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": None if names is None else [str(name) for name in names],
        }

    def _restore_features(self, state: dict[str, Any]) -> None:
        self.n_features_in_ = state["n_features_in_"]
        if state["feature_names_in_"] is not None:
            self.feature_names_in_ = np.array(state["feature_names_in_"], dtype=object)

    def _indexed(self, X: Any, matrix: np.ndarray) -> Any:
        """A matrix with the row labels that groups made from a column of a frame have kept, if frames are asked for."""
        if getattr(X, "index", None) is None or not isinstance(X, Groups):
            return matrix
        if _get_output_config("transform", self)["dense"] != "pandas":
            return matrix
        import pandas as pd

        return pd.DataFrame(matrix, index=X.index, copy=False)

    def _choose_output(self, output: str | None) -> str:
        output = self.output if output is None else output
        if output not in self._outputs:
            raise ValueError(f"output must be one of {sorted(self._outputs)}, got {output!r}.")
        return output

    @staticmethod
    def _check_same_width(left: Groups, right: Groups, name: str = "Y") -> None:
        if left.n_features != right.n_features:
            raise ValueError(
                f"X has {left.n_features} features, but {name} has {right.n_features}: take the vectors of both from "
                f"one space."
            )

    @staticmethod
    def _check_same_length(left: Groups, right: Groups) -> None:
        if len(left) != len(right):
            raise ValueError(
                f"paired compares row by row and needs as many groups in Y as in X, got {len(left)} and {len(right)}. "
                f"For all pairs call pairwise."
            )


class ComparisonEstimator(GroupsEstimator):
    """What is learnt and kept by an estimator that compares groups.

    The fitted attributes are set together, once nothing can fail any more.
    """

    _outputs = OUTPUTS
    likelihood: str | Likelihood
    criterion: str | Criterion
    reg_covar: float
    prior_strength: float
    penalty_scale: float
    n_references: int
    random_state: Any
    n_jobs: int | None
    verbose: int

    def _new_comparison(self) -> Comparison:
        """What the parameters say, before anything is learnt."""
        likelihood = LIKELIHOODS[self.likelihood]() if isinstance(self.likelihood, str) else clone(self.likelihood)
        criterion = CRITERIA[self.criterion]() if isinstance(self.criterion, str) else clone(self.criterion)
        criterion.check(likelihood)
        comparison = Comparison(likelihood, criterion, self.reg_covar, self.penalty_scale)
        needs = {"pseudo_group": self.prior_strength > 0, "learn_prior": comparison.lacks_prior}
        for method, needed in needs.items():
            if needed and not likelihood.defines(method):
                remedy = "set prior_strength=0" if method == "pseudo_group" else "give it a prior"
                raise ValueError(f"{type(likelihood).__name__} defines no {method}: {remedy}.")
        return comparison

    def _learns(self, comparison: Comparison, output: str) -> list[str]:
        """What has to be learnt from a corpus."""
        wanted = {
            "prior_strength > 0": self.prior_strength > 0,
            f"criterion={self.criterion!r} without a prior": comparison.lacks_prior,
            "output='centered'": output == "centered",
        }
        return [reason for reason, needed in wanted.items() if needed]

    def _learn(self, comparison: Comparison, statistics: Any) -> Comparison:
        """Complete a comparison by what the corpus teaches."""
        reasons = self._learns(comparison, "similarity")
        if reasons and not statistics.n.any():
            raise ValueError(f"All groups are empty: there is nothing to learn for {' and '.join(reasons)}.")
        likelihood = comparison.likelihood
        with np.errstate(over="ignore", invalid="ignore"):
            if comparison.lacks_prior:
                likelihood = clone(likelihood).set_params(prior=likelihood.learn_prior(statistics))
            if self.prior_strength > 0:
                comparison = replace(comparison, pseudo=likelihood.pseudo_group(statistics, float(self.prior_strength)))
        return replace(comparison, likelihood=likelihood)

    def _set_fitted(
        self, comparison: Comparison, statistics: Any, dtype: np.dtype, chosen: np.ndarray | None = None
    ) -> Self:
        """Learn from all statistics, and set the fitted attributes once nothing can fail any more."""
        comparison = self._learn(comparison, statistics)
        if chosen is None:
            chosen = np.arange(len(statistics))
            if len(chosen) > self.n_references:
                random_state = check_random_state(self.random_state)
                chosen = np.sort(random_state.choice(len(chosen), self.n_references, replace=False))
        references = comparison.references(statistics[chosen]) if self.output == "centered" else None
        side = comparison.side(statistics, self.output, references)
        self.n_groups_ = len(statistics)
        self.likelihood_ = comparison.likelihood
        self.criterion_ = comparison.criterion
        self.references_ = chosen
        self._comparison = comparison
        self._fitted_key = self._model_key()
        self._null: Any = (None, None)  # not calibrated
        self._statistics = statistics
        self._side = self.output, side
        self._references = references
        self._dtype = dtype
        return self

    def _compare(self, groups: Groups) -> np.ndarray:
        left, right = self._prepare(groups, self.output), self._fitted_side(self.output)
        return self._active().all_pairs(left, right, self.output, np.result_type(groups.output_dtype, self._dtype))

    def _compare_fitted(self, rows: slice) -> np.ndarray:
        side = self._fitted_side(self.output)
        matrix = self._active().all_pairs(side[rows], side, self.output, self._dtype)
        if self.output != "similarity":
            matrix[np.arange(len(matrix)), np.arange(rows.start, rows.stop)] = 0
        return matrix

    def _keep_fitted(self, kept: np.ndarray) -> None:
        self._check_unchanged()
        self._set_fitted(self._new_comparison(), self._statistics[kept], self._dtype)

    def _get_stored(self) -> dict[str, Any]:
        if not hasattr(self, "_statistics"):
            return {}
        self._check_unchanged()
        learnt = {"statistics": self._statistics, "dtype": self._dtype, "references": self.references_}
        return {**learnt, "null": self._null, **self._stored_features()}

    def _set_stored(self, state: dict[str, Any]) -> None:
        self._set_fitted(self._new_comparison(), state["statistics"], state["dtype"], state["references"])
        self._null = state["null"]
        self._restore_features(state)

    def _active(self) -> Comparison:
        """The fitted comparison or, before `fit`, the parameters' one, with the number of jobs as it is now."""
        comparison = self._comparison if hasattr(self, "_comparison") else self._new_comparison()
        return replace(comparison, n_jobs=self.n_jobs, verbose=self.verbose)

    def _fitted_side(self, output: str) -> Side:
        """The fitted groups, prepared for an output."""
        if self._side[0] == output:
            return self._side[1]
        return self._active().side(self._statistics, output, self._reference_side(output))

    def _reference_side(self, output: str) -> Side | None:
        if output != "centered":
            return None
        if self._references is not None:
            return self._references
        return self._active().references(self._statistics[self.references_])

    def _prepare_sides(
        self, X: Any, Y: Any, output: str | None, paired: bool = False
    ) -> tuple[Side, Any, str, np.dtype]:
        """Both sides of a comparison, None on the right for `X` again, with the output and its precision.

        Everything is validated before anything is computed.
        """
        output = self._choose_output(output)
        left = self._read(X, output)
        if Y is None:
            return self._prepare(left, output), None, output, left.output_dtype
        right = self._read(Y, output, "Y")
        self._check_same_width(left, right)
        if paired:
            self._check_same_length(left, right)
        dtype = np.result_type(left.output_dtype, right.output_dtype)
        return self._prepare(left, output), self._prepare(right, output), output, dtype

    def _read(self, X: Any, output: str, name: str = "X") -> Groups:
        """Validate groups, and that everything there is to learn has been learnt."""
        self._validate_params()
        if hasattr(self, "_comparison"):
            return self._check_fitted_groups(X, name)
        reasons = self._learns(self._new_comparison(), output)
        if reasons:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet, and {' and '.join(reasons)} must be learnt "
                f"from a corpus. Call 'fit' with appropriate arguments before using this estimator."
            )
        return self._check_groups(X, name)

    def _prepare(self, groups: Groups, output: str) -> Side:
        """Statistics and criteria of validated groups, for an output."""
        comparison = self._active()
        return comparison.side(comparison.statistics(groups), output, self._reference_side(output))

    def _check_unchanged(self) -> None:
        if self._model_key() != self._fitted_key:
            raise ValueError("likelihood, criterion or reg_covar has changed since fit: call fit with all groups.")

    def _model_key(self) -> tuple:
        """What the kept statistics depend on."""
        parts = (self.likelihood, self.criterion)
        keys = (p if isinstance(p, str) else (type(p), joblib.hash(p.get_params())) for p in parts)
        return *keys, self.reg_covar
