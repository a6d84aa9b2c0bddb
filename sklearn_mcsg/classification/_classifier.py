"""Classification of groups: a class is the pooled model of its groups."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d, gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._memory import count_within
from sklearn_mcsg._sklearn import Interval
from sklearn_mcsg.classification._classes import PooledClasses
from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.engine.results import in_precision
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.groups.checks import is_missing, refuse_masks
from sklearn_mcsg.likelihoods import Likelihood
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.similarity.estimator import GroupsEstimator, snapshot
from sklearn_mcsg.storage import MmapMode, load, register, save

_SHARED = ("likelihood", "criterion", "reg_covar", "prior_strength", "penalty_scale", "n_jobs", "verbose")


def _can_leave_out(classifier: Any) -> bool:
    """Whether groups can be left out of classes; raise AttributeError if not."""
    likelihood = classifier.likelihood
    if isinstance(likelihood, Likelihood) and not likelihood.defines("unpool"):
        raise AttributeError(
            f"{type(likelihood).__name__} defines no unpool: groups cannot be left out of a class, so there are no "
            f"probabilities and no thresholds, and no group can be removed."
        )
    return True


@register
class ModelComparisonClassifier(ClassifierMixin, GroupsEstimator):
    """Classify groups of vectors: a class is one model, fitted to all vectors of its groups.

    A group belongs to the class from which it has the smallest divergence: that is, to the class whose model describes
    its vectors with the least loss compared to a model of their own. With ``reject=True``, a group that no class
    describes well enough belongs to none.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf", "trend"} or Likelihood, default="diag"
        The model of a group: see `ModelComparisonSimilarity`. Classes have the same model. For frames of audio and
        sensors, ``"full"`` is often better.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion: see `ModelComparisonSimilarity`. The prior of ``"bayes"`` is learnt from the classes.
    reject : bool, default=False
        Whether groups may be rejected: `predict` returns `reject_label` for those that are farther from every class
        than its threshold.
    level : float, default=0.05
        Accepted rate of false positives: groups of a known class that are rejected. It determines the thresholds.
    reject_label : object, default=None
        Label of rejected groups; ``None`` means ``"none"`` if the classes are strings and -1 otherwise.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. It allows groups of one vector and constant features. A
        warning says if it outweighs the variances of the vectors, which are then in too small a unit.
    prior_strength : float, default=1.0
        Number of pseudo-vectors in each model. They have the mean and variance of all classes together and are added to
        every group and class. They keep models of few vectors from overfitting. With a positive value, groups may be
        empty.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty.
    n_calibration : int, default=512
        Thresholds and probabilities are learnt from the first groups of each class, at most this many.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. They are threads, or workers of the active joblib backend.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of int of shape (n_classes,)
        Number of groups of each class.
    likelihood_ : Likelihood
        The likelihood, with its prior if the criterion uses one.
    thresholds_ : ndarray of shape (n_classes,)
        Largest divergence of an accepted group from each class, at the present `level`.
    n_features_in_ : int
        Width of the vectors seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when `X` was a data frame.

    See Also
    --------
    GroupEmbedding : Groups as vectors, for any classifier; often more accurate than one model per class.
    GroupNeighbors : Nearest groups, for classes that one model does not describe.
    Groups.pooled : The groups of each class as one group.

    Notes
    -----
    Models are additive. `fit` reads the vectors once, `partial_fit` adds groups and `remove` takes groups out, and in
    either case the result equals a single `fit`, up to rounding. Apart from the first `n_calibration` groups of each
    class, what is kept does not depend on the number of groups, except with ``"tic"``: likelihoods other than
    ``"diag"`` then keep the vectors.

    Thresholds and probabilities are learnt from these first groups, each left out of its own class. Thresholds are
    prediction bounds of their divergences, which a power transform makes nearly normal. Probabilities are
    proportional to ``exp(-temperature * divergence)``; the temperature maximises the likelihood of their labels.
    Both are computed when they are first needed. Classes are assumed to be equally frequent.

    The model of a group and a class together contains the pseudo-vectors once, and their own likelihood is subtracted.
    So a divergence may be negative: the class then describes the group better than the pseudo-vectors do.

    A feature that hardly varies within one class, but does within others, outweighs the other features. A warning names
    it if its variance within the class is a hundred times smaller than that of the other features, each as a share of
    its variance within all classes.

    Parameters changed after `fit` take effect at the next `fit`, except `reject`, `level`, `reject_label`, `n_jobs` and
    `verbose`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import ModelComparisonClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["low", "high"], 20)
    >>> X = [rng.normal(0 if label == "low" else 2, size=(rng.integers(5, 12), 3)) for label in y]
    >>> classifier = ModelComparisonClassifier(reject=True).fit(X, y)
    >>> new = [rng.normal(mean, size=(8, 3)) for mean in (0, 2, 9)]
    >>> classifier.predict(new)
    array(['low', 'high', 'none'], dtype='<U4')
    >>> classifier.predict_proba(new[:2]).round(2)
    array([[0.01, 0.99],
           [0.99, 0.01]])
    >>> classifier.remove(X[:2], y[:2]).class_count_
    array([19, 19])
    """

    _takes_rows = True
    _parameter_constraints: ClassVar[dict] = {
        **{name: ModelComparisonSimilarity._parameter_constraints[name] for name in _SHARED},
        "reject": ["boolean"],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "reject_label": "no_validation",
        "n_calibration": [Count(2)],
    }
    _pooled: PooledClasses
    _fixed: np.ndarray | None

    def __init__(
        self,
        likelihood: str | Likelihood = "diag",
        criterion: str | Criterion = "aic",
        *,
        reject: bool = False,
        level: float = 0.05,
        reject_label: object = None,
        reg_covar: float = 1e-6,
        prior_strength: float = 1.0,
        penalty_scale: float = 1.0,
        n_calibration: int = 512,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.criterion = criterion
        self.reject = reject
        self.level = level
        self.reject_label = reject_label
        self.reg_covar = reg_covar
        self.prior_strength = prior_strength
        self.penalty_scale = penalty_scale
        self.n_calibration = n_calibration
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: GroupsLike, y: ArrayLike) -> Self:
        """Fit one model per class.

        Parameters
        ----------
        X : groups
            The groups, in any form that `validate_groups` takes.
        y : array-like of shape (n_groups,)
            The label of each group.

        Returns
        -------
        self : ModelComparisonClassifier
        """
        return self._fit(X, y, None)

    def partial_fit(self, X: GroupsLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Add groups to the classes. The result equals a single `fit` on all groups so far.

        Parameters
        ----------
        X : groups
            Further groups.
        y : array-like of shape (n_groups,)
            The label of each group.
        classes : array-like of shape (n_classes,), default=None
            All labels there will be; other labels are then refused. Without it, new labels make new classes. Only the
            first call uses it; later calls may repeat it.

        Returns
        -------
        self : ModelComparisonClassifier
        """
        if not hasattr(self, "_pooled"):
            return self._fit(X, y, classes)
        self._validate_params()
        groups, labels = self._check_labelled(X, y, fitted=True)
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={_shown(np.unique(classes))} are not those of the first call, {_shown(self.classes_)}: leave "
                f"classes out, or call fit to start again."
            )
        if self._fixed is not None:
            _check_known(labels, self._fixed, "classes")
        added = self._pool(groups, labels, self._pooled.n_calibration)
        self.__dict__.update(self._learnt(self._pooled.merged(added), self._fixed))
        self._warn_of_still_features(stacklevel=2)
        return self

    @available_if(_can_leave_out)
    def remove(self, X: GroupsLike, y: ArrayLike) -> Self:
        """Remove groups from the classes. The result equals a `fit` without them, up to rounding.

        A class whose last group is removed vanishes, unless `classes` was given to `partial_fit`. If there have been
        more than `n_calibration` groups in a class, thresholds and probabilities are learnt from those left of the
        first groups.

        Parameters
        ----------
        X : groups
            Groups that were fitted.
        y : array-like of shape (n_groups,)
            The label of each group: the one it was fitted with.

        Returns
        -------
        self : ModelComparisonClassifier
        """
        check_is_fitted(self, "_pooled")
        groups, labels = self._check_labelled(X, y, fitted=True)
        pooled = self._pooled
        _check_known(labels, pooled.labels, "the fitted classes")
        if pooled.statistics.keeps_vectors:
            raise ValueError(
                f"With {type(pooled.start.criterion).__name__}, {type(pooled.start.likelihood).__name__} keeps the "
                f"vectors themselves, and groups cannot be removed: call fit without them, or choose criterion='aic'."
            )
        gone = self._pool(groups, labels, len(groups))
        fitted = pooled.counts[np.searchsorted(pooled.labels, gone.labels)]
        if (gone.counts > fitted).any():
            i = int(np.argmax(gone.counts > fitted))
            what = f"{gone.counts[i]} groups with the label {gone.labels.tolist()[i]!r}"
            raise ValueError(f"{what} cannot be removed: only {fitted[i]} were fitted.")
        if gone.counts.sum() == pooled.counts.sum():
            raise ValueError("No group would be left: call fit with other groups instead.")
        self.__dict__.update(self._learnt(pooled.without(gone), self._fixed))
        return self

    def _fit(self, X: GroupsLike, y: ArrayLike, classes: ArrayLike | None) -> Self:
        self._validate_params()
        if self.reject:
            _can_leave_out(self)
        groups, labels = self._check_labelled(X, y, fitted=False)
        fixed = None if classes is None else np.unique(_check_labels(classes, "classes", labels))
        if fixed is not None:
            _check_known(labels, fixed, "classes")
        pooled = PooledClasses.of(self._new_model(), groups, labels, self.prior_strength, self.n_calibration)
        learnt = self._learnt(pooled, fixed)
        self._keep_features(X, groups)
        self.__dict__.update(learnt)
        self._warn_of_still_features(stacklevel=3)
        return self

    def _warn_of_still_features(self, stacklevel: int) -> None:
        """Warn of features that hardly vary within some class but do within others."""
        shares = self._pooled.still_features()
        concerned = ~np.isnan(shares).all(axis=0)
        if not concerned.any():
            return
        row, column = np.unravel_index(np.nanargmin(shares), shares.shape)
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        warnings.warn(
            f"{concerned.sum()} of {len(concerned)} features hardly vary within some class, but do within others: the "
            f"variance of feature {names[column]} within class {self._pooled.labels.tolist()[row]!r} is "
            f"{shares[row, column]:.0e} of that within all classes. Such features outweigh the others. Leave them out, "
            f"or set reg_covar to the variance of differences that mean nothing.",
            stacklevel=stacklevel + 1,
        )

    def _pool(self, groups: Groups, labels: np.ndarray, n_calibration: int) -> PooledClasses:
        """New groups, pooled as the fitted ones are."""
        return PooledClasses.of(self._pooled.start, groups, labels, self._pooled.prior_strength, n_calibration)

    def _learnt(self, pooled: PooledClasses, fixed: np.ndarray | None) -> dict[str, Any]:
        """Fitted attributes, with everything that predictions need; may fail, so nothing is kept before."""
        classes = pooled.labels if fixed is None else fixed
        self._label_of_rejected(classes)
        counts = np.zeros(len(classes), dtype=int)
        counts[np.searchsorted(classes, pooled.labels)] = pooled.counts
        return {
            "likelihood_": pooled.model.likelihood,  # which learns
            "classes_": classes,
            "class_count_": counts,
            "_pooled": pooled,
            "_fixed": fixed,
        }

    def decision_function(self, X: GroupsLike) -> np.ndarray:
        """Negative divergence of each group from each class; minus infinity for classes without groups.

        Parameters
        ----------
        X : groups
            Groups.

        Returns
        -------
        decision : ndarray of shape (n_groups, n_classes), or (n_groups,) for two classes
            For two classes, the divergence from the first minus that from the second.
        """
        self = snapshot(self)
        decision = self._by_class(self._check_query(X), -np.inf, np.negative)
        return decision[:, 1] - decision[:, 0] if len(self.classes_) == 2 else decision

    @available_if(_can_leave_out)
    def predict_proba(self, X: GroupsLike) -> np.ndarray:
        """Probability of each class, calibrated by leaving groups out of their classes.

        Parameters
        ----------
        X : groups
            Groups.

        Returns
        -------
        probabilities : ndarray of shape (n_groups, n_classes)
        """
        self = snapshot(self)
        groups = self._check_query(X)
        temperature = self._pooled.temperature
        return self._by_class(groups, 0, lambda divergences: softmax(-temperature * divergences, axis=1))

    def predict(self, X: GroupsLike) -> np.ndarray:
        """Find the class of each group.

        Parameters
        ----------
        X : groups
            Groups.

        Returns
        -------
        labels : ndarray of shape (n_groups,)
            The nearest class or, with ``reject=True``, the nearest among those whose threshold the group meets, and
            `reject_label` if there are none.
        """
        self = snapshot(self)
        groups = self._check_query(X)
        label = self._label_of_rejected(self.classes_)
        known = self._pooled.labels
        thresholds = self._pooled.thresholds(self.level) if self.reject else np.inf
        nearest, rejected = np.empty(len(groups), dtype=int), np.empty(len(groups), dtype=bool)
        for batch, divergences in self._divergences(groups):
            accepted = divergences <= thresholds
            rejected[batch] = ~accepted.any(axis=1)
            nearest[batch] = np.where(accepted, divergences, np.inf).argmin(axis=1)
        if not self.reject:
            return known[nearest]
        same_kind = isinstance(label, str) == (known.dtype.kind == "U")
        labels = known.astype(np.result_type(known, np.array([label])) if same_kind else object)[nearest]
        labels[rejected] = label
        return labels

    @property
    def thresholds_(self) -> np.ndarray:
        """Largest divergence of an accepted group from each class; NaN for classes without groups."""
        check_is_fitted(self, "_pooled")
        _can_leave_out(self)
        thresholds = np.full(len(self.classes_), np.nan)
        thresholds[np.searchsorted(self.classes_, self._pooled.labels)] = self._pooled.thresholds(self.level)
        return thresholds

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the classifier in a folder of plain arrays and JSON, which cannot run code when loaded.

        Parameters
        ----------
        path : str or path-like
            The folder of the saved classifier; one that is there is replaced.
        """
        check_is_fitted(self, "_pooled")
        save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap_mode: MmapMode = None) -> Self:
        """Open a saved classifier.

        Parameters
        ----------
        path : str or path-like
            The folder of the saved classifier.
        mmap_mode : {"r", "c"}, default=None
            Leave the arrays on disk and read them as needed, as in `numpy.load`. Checksums are then not verified.

        Returns
        -------
        classifier : ModelComparisonClassifier
        """
        return load(path, cls, mmap_mode)

    def _by_class(self, groups: Groups, missing: float, value_of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of the divergences from all classes, with another value for classes without groups."""
        result = np.full((len(groups), len(self.classes_)), missing, dtype=groups.output_dtype)
        columns = np.searchsorted(self.classes_, self._pooled.labels)
        for batch, divergences in self._divergences(groups):
            result[batch, columns] = in_precision(value_of(divergences), result.dtype)
        return result

    def _divergences(self, groups: Groups) -> Iterator[tuple[slice, np.ndarray]]:
        """Divergences from the classes that have groups, in batches of bounded size."""
        row_nbytes = 8 * len(self._pooled.labels) + 4 * self._pooled.examples.row_nbytes
        for batch in gen_batches(len(groups), count_within(row_nbytes)):
            yield batch, self._pooled.divergences(groups[batch], batch.start, self.n_jobs, self.verbose)

    def _check_query(self, X: GroupsLike) -> Groups:
        check_is_fitted(self, "_pooled")
        return self._check_fitted_groups(X)

    def _check_labelled(self, X: GroupsLike, y: Any, fitted: bool) -> tuple[Groups, np.ndarray]:
        """Validated groups and one label for each."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        groups = self._check_fitted_groups(X) if fitted else self._check_groups(X)
        labels = _check_labels(y, "y", self.classes_ if fitted else None)
        if len(labels) != len(groups):
            raise ValueError(f"y must hold one label per group: got {len(labels)} labels for {len(groups)} groups.")
        return groups, labels

    def _label_of_rejected(self, classes: np.ndarray) -> Any:
        """The label of rejected groups; raise if it is a class."""
        label = ("none" if classes.dtype.kind == "U" else -1) if self.reject_label is None else self.reject_label
        if self.reject and any(label == known for known in classes.tolist()):
            raise ValueError(f"reject_label={label!r} is a class: set another reject_label.")
        return label

    def __mcsg_state__(self) -> dict[str, Any]:
        return {**self._stored_features(), "pooled": self._pooled, "fixed": self._fixed}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        self._restore_features(state)
        self.__dict__.update(self._learnt(state["pooled"], state["fixed"]))

    def __mcsg_check__(self) -> None:
        self._validate_params()
        check_is_fitted(self, "_pooled")
        self._pooled.check(self.n_features_in_)


def _check_labels(values: Any, name: str, others: np.ndarray | None) -> np.ndarray:
    """Labels as a 1-d array of strings or of numbers, as other labels are."""
    _check_present(values, name)
    labels = column_or_1d(values, warn=True)
    assert_all_finite(labels, input_name=name)
    strings = {isinstance(label, str) for label in labels.tolist()}
    if len(strings) > 1 or (others is not None and strings != {others.dtype.kind == "U"}):
        raise ValueError(
            f"{name} must hold labels of one kind, strings or numbers, the same in every call: convert them first."
        )
    labels = labels.astype(str) if strings == {True} else labels
    if labels.dtype.kind not in "biuU":
        check_classification_targets(labels)
    return labels


def _check_present(values: Any, name: str) -> None:
    """Raise if labels are masked or missing."""
    refuse_masks(values, name)
    given = np.array(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)
    if given.ndim != 1 or given.dtype.kind not in "fOmM":
        return
    missing = [i for i, label in enumerate(given) if is_missing(label)]
    if missing:
        raise ValueError(
            f"{name} contains NaN or None: {len(missing)} of {len(given)} labels are missing, the first at position "
            f"{missing[0]}. Leave out what has no label, or give it a label of its own."
        )


def _check_known(labels: np.ndarray, known: np.ndarray, where: str) -> None:
    """Raise if a label is not known."""
    unknown = ~np.isin(labels, known)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ValueError(f"The label {labels.tolist()[i]!r} of group {i} is not among {where}, {_shown(known)}.")


def _shown(labels: np.ndarray) -> str:
    """Some labels, as text."""
    more = f", ... ({len(labels)} in all)" if len(labels) > 10 else ""
    return f"[{', '.join(map(repr, labels[:10].tolist()))}{more}]"
