"""Segments of a sequence: cut it where two models are better than one."""

from __future__ import annotations

import warnings
from math import isqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.explanation import BoundaryExplanation, explain_boundary
from sklearn_mcsg.groups import Groups, GroupsLike, united
from sklearn_mcsg.likelihoods import LIKELIHOODS, FullGaussian, Likelihood, Statistics
from sklearn_mcsg.segmentation._intervals import interval
from sklearn_mcsg.segmentation._null import LEVEL, RandomOrders, check_one_rule
from sklearn_mcsg.segmentation._sequence import (
    Costs,
    SquaredError,
    Unpenalized,
    best_partition,
    best_partitions,
    choose_costs,
    position_penalty,
)
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.similarity.estimator import GroupsEstimator

_ERROR = "squared_error"
_CURVES = 6  # features that a plot shows
_MAX_FULL_FEATURES = 64  # the time for one segment grows with the cube
_SHARED = ("criterion", "penalty_scale", "prior_strength", "reg_covar", "verbose")


class ModelComparisonSegmenter(GroupsEstimator):
    """Cut a sequence into segments, where two models are better than one.

    The criterion of a partition is the sum over its segments of the information criterion of their models, plus a
    penalty for the position of each boundary. The partition is the best of all, found by dynamic programming.

    Parameters
    ----------
    likelihood : {"diag", "spherical", "full", "vmf", "trend", "squared_error"} or Likelihood, default="diag"
        The model of a group: here, of a segment. See `ModelComparisonSimilarity`. With ``"squared_error"`` segments
        differ in their means only; unless their number is given, a level decides. If samples are groups of several
        vectors, it is the model of a group, and the groups' embeddings are cut by their squared error.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="bic"
        The information criterion: see `ModelComparisonSimilarity`. ``"tic"`` is for ``"diag"`` and ``"trend"``
        only. The squared error has no criterion.
    n_segments : int or None, default=None
        Number of segments, for the best partition into this number. With ``None`` it is found: by `level` if there is
        one; otherwise it is the number whose best partition has the lowest criterion.
    level : float, default=None
        Accepted rate of false positives: the largest probability that a sequence without change is cut anywhere. A
        boundary must then gain more than the same rows do in random order, whatever their distribution is. It cannot be
        combined with `n_segments`. ``None`` means 0.05 if the squared error finds the number of segments.
    min_size : int, default=2
        Smallest number of rows in a segment.
    max_segments : int, default=50
        Largest number of segments, unless `n_segments` is a number.
    block_size : int, "auto" or "growing", default="auto"
        Number of consecutive rows that stay together in random order. Rows further apart than this should be nearly
        independent within a segment.

        - ``"auto"`` computes it from the autocorrelation of neighbouring rows; for groups of several vectors it is the
          same as ``"growing"``.
        - ``"growing"`` begins with 1 and keeps doubling while the segments found have at least 10 rows and 8 blocks on
          average. Use it for sentences, which resemble their neighbours at all distances.
    n_permutations : int, default=199
        Number of permutations: random orders of the rows.
    penalty_scale : float, default=1.0
        Factor on the criterion's penalty. It also multiplies the penalty for boundaries. Larger values give fewer
        segments.
    prior_strength : float, default=1.0
        Number of pseudo-vectors in each model. They have the mean and variance of the whole sequence. They keep models
        of few rows from overfitting, which AIC and BIC do not detect: with 0, far too many short segments are found.
        The squared error has no pseudo-vectors.
    reg_covar : float, default=1e-6
        Variance of the isotropic noise around each vector. It allows groups of one vector and constant features. A
        warning says if it outweighs the variances of the vectors, which are then in too small a unit.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the orders of rows. Pass an int for reproducible results.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    boundaries_ : ndarray of shape (`n_segments_` - 1,)
        Rows at which a new segment begins, without row 0.
    labels_ : ndarray of shape (n_samples,)
        The segment of each row, from 0 on.
    n_segments_ : int
        Number of segments.
    segments_ : Statistics
        Statistics of the segments: weights `n`, means `mean` and the scatter of the likelihood, one row per segment.
    evidence_ : ndarray
        Criterion of the best partition into k segments at ``evidence_[k - 1]``; lower is better. The length is the
        largest number for which it was computed: `n_segments`, `max_segments`, or the number found by the criterion. In
        the last case only the first and the last entry are computed, and the others are NaN.
    level_ : float or None
        The level that decided on the number of segments, if one did.
    penalty_ : float
        What a boundary has to gain: with a level, the gain that boundaries of the rows in random order exceed with this
        probability; without one, ``2 penalty_scale log(n_samples)``. It is 0 for the squared error with a given number
        of segments.
    pvalues_ : ndarray of shape (`n_segments_` - 1,)
        P-value of each boundary: the smallest level at which it is found, corrected for all places that it could have.
        Computed when first asked for.
    intervals_ : ndarray of shape (`n_segments_` - 1, 2)
        First and last row of the confidence interval of each boundary, which contains the true place with probability
        1 - level. Only with a level. Computed when first asked for.
    block_size_ : int
        Number of rows that stay together in random order. Without a level it is computed when first asked for.
    embedding_ : GroupEmbedding or None
        The fitted embedding, if samples are groups of several vectors.
    n_features_in_ : int
        Width of the vectors seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, when `X` was a data frame.

    See Also
    --------
    ModelComparisonClustering : Clusters of groups in any order.
    GroupEmbedding : Groups as points, which can be cut by their squared error.

    Notes
    -----
    Without a level, the penalty for a boundary is ``2 log(n_samples)``, the cost of encoding its position. Without it,
    criteria cut white noise, because at the best of many positions two models are better than one by chance.

    With a level, the penalty is the one that cuts a share `level` of sequences with the same rows in random order. If
    all orders are equally probable, the level holds for any distribution. A sequence of more than 1000 rows is compared
    with pieces of 1000 rows, at the level divided by the number of pieces, which is an approximation. If the sequence
    has other changes, the level of a further boundary is approximate, because random order mixes the segments. An
    interval has its level if the boundaries beside it are at their true places: it holds all rows that a permutation
    test of both sides does not reject.

    Each segment's model contains the pseudo-vectors of `prior_strength` once, and their own likelihood is subtracted
    from its criterion. A prior that ``"bayes"`` has to learn comes from blocks of consecutive rows, whose size is the
    square root of the number of rows.

    A number chosen by AIC, BIC or Bayes takes time linear in the number of rows if the segments' lengths are bounded,
    because starts that cannot be best any more are pruned, which does not change the result. Otherwise time is
    quadratic in the number of rows. Memory is linear in the number of rows. Beyond a few thousand rows the likelihoods
    above are computed in compiled code.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import ModelComparisonSegmenter
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (30, 3)), rng.normal(2, 1, (20, 3)), rng.normal(2, 4, (40, 3))])
    >>> segmenter = ModelComparisonSegmenter().fit(X)
    >>> segmenter.boundaries_
    array([30, 50])
    >>> segmenter.segments_.mean.round(1)[:, 0]
    array([-0.1,  1.6,  2. ])
    >>> ModelComparisonSegmenter(n_segments=3).fit_predict(X)[[0, 30, 50]]
    array([0, 1, 2])
    >>> segmenter = ModelComparisonSegmenter(level=0.05, random_state=0).fit(X)
    >>> segmenter.pvalues_
    array([0.005, 0.005])
    >>> segmenter.intervals_
    array([[29, 30],
           [50, 51]])
    """

    _takes_rows = True
    _parameter_constraints: ClassVar[dict] = {
        **{name: ModelComparisonSimilarity._parameter_constraints[name] for name in _SHARED},
        **{name: [Count()] for name in ("min_size", "max_segments", "n_permutations")},
        "likelihood": [StrOptions({*LIKELIHOODS, _ERROR}), Likelihood],
        "n_segments": [Count(), None],
        "level": [Interval(Real, 0, 1, closed="neither"), None],
        "block_size": [Count(), StrOptions({"auto", "growing"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        likelihood: str | Likelihood = "diag",
        criterion: str | Criterion = "bic",
        *,
        n_segments: int | None = None,
        level: float | None = None,
        min_size: int = 2,
        max_segments: int = 50,
        block_size: int | str = "auto",
        n_permutations: int = 199,
        penalty_scale: float = 1.0,
        prior_strength: float = 1.0,
        reg_covar: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.likelihood = likelihood
        self.criterion = criterion
        self.n_segments = n_segments
        self.level = level
        self.min_size = min_size
        self.max_segments = max_segments
        self.block_size = block_size
        self.n_permutations = n_permutations
        self.penalty_scale = penalty_scale
        self.prior_strength = prior_strength
        self.reg_covar = reg_covar
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Find the segments of a sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or groups
            The rows of the sequence in their order, or groups of vectors in order, such as the sentences of a text.
            Groups of one vector each are rows, with their weights.
        y : None
            Ignored.

        Returns
        -------
        self : ModelComparisonSegmenter
        """
        self._validate_params()
        check_one_rule(self.n_segments, self.level)
        groups = self._check_groups(X)
        self._check_length(len(groups))
        ragged = bool((groups.sizes != 1).any())
        if ragged or self.likelihood == _ERROR:
            start = GroupModel(SquaredError(), Unpenalized(), self.reg_covar, penalty_scale=0.0)
        else:
            start = self._new_model()
        if isinstance(start.likelihood, FullGaussian) and groups.n_features > _MAX_FULL_FEATURES:
            raise ValueError(
                f"likelihood='full' cuts sequences of at most {_MAX_FULL_FEATURES} features, got {groups.n_features}: "
                f"reduce them, for example by PCA, or choose likelihood='diag'."
            )
        embedding, sequence = self._embedded(groups) if ragged else (None, groups)
        sequence = start.placed(sequence)  # every row is in the middle of its own group
        rows = start.statistics(sequence)
        if isinstance(start.likelihood, SquaredError) and not rows.n.all():
            raise ValueError(
                f"Row {int(np.argmin(rows.n))} has weight 0, which squared errors do not allow: leave it out."
            )
        model = self._learnt(start, sequence)
        has_level = self.n_segments is None and (self.level is not None or isinstance(model.likelihood, SquaredError))
        orders = self._orders_of(model, rows, ragged)
        orders.check_blocks()
        if has_level and (why := orders.too_few()):
            raise ValueError(why)
        costs = orders.costs if has_level else choose_costs(model, rows)
        penalty = orders.null.penalty(orders.level) if has_level else position_penalty(model, len(rows))
        boundaries, evidence = self._find(costs.of(rows, penalty))
        sizes = np.diff([0, *boundaries, len(groups)])
        labels = np.repeat(np.arange(len(sizes)), sizes)
        segments = model.statistics(united(sequence, labels, len(sizes)))

        self._keep_features(X, groups)
        self.boundaries_ = boundaries
        self.labels_ = labels
        self.n_segments_ = len(sizes)
        self.segments_ = segments
        self.evidence_ = evidence
        self.level_ = orders.level if has_level else None
        self.penalty_ = penalty
        self.embedding_ = embedding
        self._sequence = sequence
        self._model = model
        self._orders = orders
        self._pvalues: np.ndarray | None = None
        self._intervals: np.ndarray | None = None
        return self

    def fit_predict(self, X: GroupsLike, y: object = None) -> np.ndarray:
        """Find the segments of a sequence and return the segment of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or groups
            The rows of the sequence in their order, or groups of vectors in order.
        y : None
            Ignored.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The segment of each row, from 0 on.
        """
        return self.fit(X).labels_

    @property
    def pvalues_(self) -> np.ndarray:
        check_is_fitted(self, "boundaries_")
        if self._pvalues is None:
            if why := self._orders.too_few():
                warnings.warn(why, stacklevel=2)
            gains = np.array([self._gain(i) for i in range(len(self.boundaries_))])
            self._pvalues = self._orders.pvalues(gains) if len(gains) else gains
        return self._pvalues

    @property
    def block_size_(self) -> int:
        check_is_fitted(self, "boundaries_")
        return self._orders.null.block_size

    @property
    def intervals_(self) -> np.ndarray:
        check_is_fitted(self, "boundaries_")
        if self.level_ is None:
            raise AttributeError("Intervals need a level: pass level=0.05.")
        if self._intervals is None:
            found = [interval(self._orders, *self._edges[i : i + 3].tolist()) for i in range(len(self.boundaries_))]
            self._intervals = np.array(found, dtype=np.intp).reshape(-1, 2)
        return self._intervals

    def explain(self, boundary: int) -> BoundaryExplanation:
        """Explain a boundary by the rows on both sides.

        Parameters
        ----------
        boundary : int
            Index into `boundaries_`.

        Returns
        -------
        explanation : BoundaryExplanation
            The similarity of the segments before and after the boundary: how much the criterion falls if they become
            one segment, so it is negative where the boundary lowers the criterion. The contribution of a row is
            negative if the model of its own segment fits it better than the model of both. Rows are labelled by their
            position. `changes` says which features changed, and how.
        """
        check_is_fitted(self, "boundaries_")
        if not isinstance(boundary, Integral) or not 0 <= boundary < len(self.boundaries_):
            n = len(self.boundaries_)
            raise ValueError(f"boundary must be an index into boundaries_, which has {n}, got {boundary!r}.")
        begin, _, end = self._edges[boundary : boundary + 3]
        two = self._beside(boundary)
        labels = [f"row {i}" for i in range(begin, end)]
        labelled = Groups(two.rows(), two.offsets, weights=two.weights, labels=labels, positions=two.positions)
        names = None if self.embedding_ is not None else self._feature_names()
        return explain_boundary(self._model, labelled, -self._gain(boundary), self.penalty_, names)

    def plot(self, ax: Any = None) -> Any:
        """Draw the sequence with its boundaries and the means of its segments.

        With a level, bands show the intervals of the boundaries, and their p-values stand above them. A sequence of
        more than 6 features is drawn along its 6 leading principal components.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; ``None`` makes a figure.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        check_is_fitted(self, "boundaries_")
        curves, means, names = self._curves()
        if ax is None:
            pyplot = import_extra("matplotlib.pyplot", "ModelComparisonSegmenter.plot")
            _, ax = pyplot.subplots(figsize=(8, 1.2 + 0.6 * len(names)), layout="constrained")
        edges = self._edges
        for begin, end in zip(edges[1:-1:2], edges[2::2], strict=False):
            ax.axvspan(begin - 0.5, end - 0.5, color="0.93", linewidth=0)
        for place, (curve, mean) in enumerate(zip(curves.T, means.T, strict=True)):
            ax.plot(curve - place, color="0.6", linewidth=0.8)
            ax.hlines(mean - place, edges[:-1] - 0.5, edges[1:] - 0.5, color="C0", linewidth=2)
        for boundary in self.boundaries_:
            ax.axvline(boundary - 0.5, color="C1", linewidth=1)
        if self.level_ is not None:
            self._draw_certainty(ax)
        ax.set_yticks(-np.arange(len(names)), names, parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_xlim(-0.5, len(curves) - 0.5)
        ax.set_xlabel("row")
        ax.set_title(f"{self.n_segments_} segments", fontsize="medium", loc="left")
        return ax

    def _draw_certainty(self, ax: Any) -> None:
        """Draw the intervals of boundaries and their p-values."""
        for boundary, (first, last), pvalue in zip(self.boundaries_, self.intervals_, self.pvalues_, strict=True):
            ax.axvspan(first - 0.5, last + 0.5, color="C1", alpha=0.25, linewidth=0)
            ax.annotate(
                f"p = {pvalue:.2g}",
                xy=(boundary - 0.5, 1.0),
                xycoords=ax.get_xaxis_transform(),
                xytext=(0, 2),
                textcoords="offset points",
                fontsize="x-small",
                ha="center",
            )

    @property
    def _edges(self) -> np.ndarray:
        """Where segments begin, and the number of rows."""
        return np.array([0, *self.boundaries_, len(self.labels_)])

    def _beside(self, boundary: int) -> Groups:
        """The segments before and after a boundary, as two groups."""
        begin, middle, end = self._edges[boundary : boundary + 3]
        return united(self._sequence[begin:end], np.repeat([0, 1], [middle - begin, end - middle]), 2)

    def _gain(self, boundary: int) -> float:
        """How much the criterion rises without a boundary, if boundaries have no penalty."""
        two = self._beside(boundary)
        separate, together = (self._model.pooled_information(self._model.statistics(x)) for x in (two, united(two)))
        return float(together.sum() - separate.sum())

    def _feature_names(self) -> list[str]:
        unnamed = [f"feature {i}" for i in range(self._sequence.n_features)]
        return [str(name) for name in getattr(self, "feature_names_in_", unnamed)]

    def _curves(self) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Features or components of each row and their means in each segment, in units of six deviations; names."""
        rows = self._sequence.rows() - self._sequence.rows().mean(axis=0)
        if rows.shape[1] > _CURVES:
            rows = rows @ np.linalg.svd(rows, full_matrices=False)[2][:_CURVES].T
            names = [f"component {i}" for i in range(rows.shape[1])]
        elif self.embedding_ is not None:
            names = [f"coordinate {i}" for i in range(rows.shape[1])]
        else:
            names = self._feature_names()
        scale = rows.std(axis=0)
        rows = rows / (6 * np.where(scale > 0, scale, 1))
        sums = np.add.reduceat(rows, [0, *self.boundaries_])
        return rows, sums / np.bincount(self.labels_)[:, None], names

    def _check_length(self, n: int) -> None:
        """Raise unless there are enough rows."""
        if n < 2 * self.min_size:
            raise ValueError(
                f"The sequence is too short: n_samples = {n}, but two segments of at least min_size={self.min_size} "
                f"rows need {2 * self.min_size}. A list of arrays is one sequence of groups; fit sequences one by one."
            )
        if isinstance(self.n_segments, Integral) and self.n_segments * self.min_size > n:
            raise ValueError(
                f"n_segments={self.n_segments} segments of at least min_size={self.min_size} rows need "
                f"{self.n_segments * self.min_size} rows, but the sequence has {n}."
            )

    def _embedded(self, groups: Groups) -> tuple[GroupEmbedding, Groups]:
        """Groups as points at unit length."""
        likelihood = "diag" if self.likelihood == _ERROR else self.likelihood
        embedding = GroupEmbedding(likelihood, prior_strength=self.prior_strength, reg_covar=self.reg_covar)
        points = unit_length(np.asarray(embedding.fit_transform(groups)))
        return embedding, Groups(points, np.arange(len(points) + 1))

    def _learnt(self, model: GroupModel, sequence: Groups) -> GroupModel:
        """The model with a prior and pseudo-vectors learnt from blocks of rows."""
        if isinstance(model.likelihood, SquaredError):
            return model
        n = len(sequence)
        block_of = np.arange(n) // max(self.min_size, isqrt(n))
        blocks = united(sequence, block_of, int(block_of[-1]) + 1)
        return model.learnt_from(model.statistics(blocks), self.prior_strength)

    def _orders_of(self, model: GroupModel, rows: Statistics, ragged: bool) -> RandomOrders:
        return RandomOrders(
            model,
            rows,
            min_size=self.min_size,
            block_size="growing" if ragged and self.block_size == "auto" else self.block_size,
            n_permutations=self.n_permutations,
            level=LEVEL if self.level is None else self.level,
            seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            verbose=self.verbose,
        )

    def _find(self, costs: Costs) -> tuple[np.ndarray, np.ndarray]:
        """Boundaries, and the criterion by number of segments."""
        if self.n_segments is not None:
            partitions, evidence = best_partitions(costs, self.min_size, self.n_segments, self.verbose)
            return partitions[-1], evidence
        n = len(costs.rows)
        most = min(self.max_segments, n // self.min_size)
        boundaries, criterion = best_partition(costs, self.min_size, self.verbose)
        if len(boundaries) >= most:
            partitions, evidence = best_partitions(costs, self.min_size, most, self.verbose)
            return partitions[int(np.argmin(evidence))], evidence
        evidence = np.full(len(boundaries) + 1, np.nan)
        evidence[0] = costs.beginnings(np.arange(n)[None])[0, -1] - costs.penalty
        evidence[-1] = criterion
        return boundaries, evidence
