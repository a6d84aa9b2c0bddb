"""GroupModel with chance: random pairs for p-values and thresholds, permutations for a single pair."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import check_positive_integer, check_share
from sklearn_mcsg.engine.learnt import Learnt
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.groups.regroup import divided
from sklearn_mcsg.storage import register

_BLOCK = 2**20  # distances of random pairs per block
FEW_GROUPS = 50  # fewer give rough p-values, and no level of duplicates
_PAIRS_PER_DEGREE = 4.4  # random pairs per degree of freedom of a standard deviation estimated from two quantiles
_ROUNDING = 1e-9  # of distances that are equal, but were computed in different ways


class PermutationTest(NamedTuple):
    """Similarity of two groups, and the share of divisions of their vectors that are not more similar."""

    similarity: float
    pvalue: float


@register
@dataclass(frozen=True, eq=False)
class NullDistribution:
    """Distances of random pairs, sorted by size: n m / (n + m) for groups of weight n and m.

    Small groups are more similar by chance, so a pair is compared with random pairs of similar size.
    """

    size: np.ndarray
    distance: np.ndarray
    output: str
    power: int

    @classmethod
    def of(cls, size: np.ndarray, distance: np.ndarray, output: str = "distance", power: int = 3) -> NullDistribution:
        order = np.argsort(size, kind="stable")
        return cls(size[order], distance[order], output, power)

    def p_value(self, size: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Share of random pairs of similar size that are at least as near; never 0."""
        starts, views = self._windows(size)
        step = max(1, _BLOCK // self.window)
        distance = distance + _ROUNDING * np.abs(distance)
        counts = [
            (views[starts[i : i + step]] <= distance[i : i + step, None]).sum(axis=1)
            for i in range(0, len(starts), step)
        ]
        return (1 + np.concatenate(counts)) / (1 + self.window)

    def threshold(self, size: np.ndarray, level: float) -> np.ndarray:
        """Distance below which a share `level` of random pairs of similar size lies, duplicates not counted.

        A distance of random pairs is a sum of squares, close to a multiple of a chi-squared variable, whose cube root
        is close to normal (Wilson and Hilferty 1931); `centered`, a cosine, is close to normal itself. So let z be the
        distance to the power 1/p, with p = `power`. In a normal distribution with median m, the
        16 % quantile q is one standard deviation below m. Hence sd = m - q, and the quantile of z at `level` is
        m + ppf(level) (m - q), to be raised to the power p. Median and 16 % quantile are far from the tail, so the
        estimate extends to levels that no sample reaches, and neither the pair that is asked about nor a few duplicates
        change it. The threshold is at least a millionth of the median.

        The error of sd matters in the tail. The asymptotic variances of the two quantiles and their covariance give
        m - q the variance 2.2 sd² / n for n random pairs, which a sample standard deviation has with n / 4.4 degrees of
        freedom. So ppf is that of Student's t with n / 4.4 degrees of freedom.
        """
        power = self.power
        starts, views = self._windows(size)
        distinct, place = np.unique(starts, return_inverse=True)
        step = max(1, _BLOCK // self.window)
        parts = [
            np.quantile(views[distinct[i : i + step]], [norm.cdf(-1), 0.5], axis=1)
            for i in range(0, len(distinct), step)
        ]
        low, middle = np.maximum(np.concatenate(parts, axis=1), 0) ** (1 / power)
        limit = np.maximum(middle + student.ppf(level, self.window / _PAIRS_PER_DEGREE) * (middle - low), 0) ** power
        return np.maximum(limit, 1e-6 * middle**power)[place].reshape(np.shape(size))

    def check_level(self, level: float) -> None:
        """Raise unless `level` is a share that p-values can reach."""
        check_share(level, "level")
        if level * (1 + self.window) < 1:
            raise ValueError(
                f"level={level} is below the smallest p-value that {self.window} random pairs can give: calibrate "
                f"with n_pairs={int(np.ceil(10 / level))} or more, and enough groups for that many pairs."
            )

    def check(self) -> None:
        """Raise unless all parts are what `of` makes of them, as those from a file may not be."""
        fits = self.size.ndim == 1 and self.size.shape == self.distance.shape and len(self.size) > 0
        numeric = self.size.dtype.kind == self.distance.dtype.kind == "f" and isinstance(self.power, int)
        if not (fits and numeric and self.power > 0 and (np.diff(self.size) >= 0).all() and self.output in OUTPUTS):
            raise ValueError("the random pairs do not fit together")

    @property
    def window(self) -> int:
        """Number of random pairs that a pair is compared with."""
        if self.size[0] == self.size[-1]:
            return len(self.size)
        return min(max(100, len(self.size) // 10), len(self.size))

    def _windows(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start of the window of random pairs nearest in size, and all windows of distances."""
        middle = (np.searchsorted(self.size, size, "left") + np.searchsorted(self.size, size, "right")) // 2
        starts = np.clip(middle - self.window // 2, 0, len(self.size) - self.window)
        return starts, np.lib.stride_tricks.sliding_window_view(self.distance, self.window)


class CalibrationMixin:
    """Thresholds for a similarity of groups: p-values against random pairs."""

    def calibrate(
        self: Any,
        X: GroupsLike | None = None,
        *,
        n_pairs: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """Compare random pairs of groups, to give `p_value` and `similar` a null distribution.

        Parameters
        ----------
        X : groups, default=None
            Groups to draw pairs from; ``None`` means the fitted groups. Use groups of the same domain as the pairs to
            test: p-values calibrated on another domain are too small.
        n_pairs : int, default=20_000
            Number of random pairs.
        random_state : int, RandomState instance or None, default=None
            Determines the pairs; ``None`` means the estimator's own `random_state`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> rng = np.random.default_rng(0)
        >>> X = [rng.normal(rng.normal(scale=3, size=5), 1, size=(8, 5)) for _ in range(200)]
        >>> model = ModelComparisonSimilarity(random_state=0).fit(X).calibrate()
        >>> model.similar(X[:2], [X[0] + 0.1, X[100]])
        array([ True, False])
        """
        check_is_fitted(self)
        self._validate_params()
        check_positive_integer(n_pairs, "n_pairs")
        learnt = self._learnt_for(self.output)
        if X is None:
            groups = self._fitted_groups(learnt, self.output)
        else:
            groups = self._prepare_groups(learnt, self.validate(X), self.output)

        def compare(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return self._distances_of_rows(learnt, groups[left], groups[right])

        random_state = getattr(self, "random_state", None) if random_state is None else random_state
        power = self.null_power(self.output)
        null = null_distribution(
            compare, self.sizes(groups), n_pairs, check_random_state(random_state), self.output, power
        )
        self._fitted = replace(self._fitted, null=null)
        return self

    def p_value(self: Any, X: GroupsLike, Y: GroupsLike) -> np.ndarray:
        """Share of random pairs of similar size that are at least as near as each given pair, row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.

        Returns
        -------
        p : ndarray of shape (n_groups,)
            Small for pairs that are nearer than most random pairs.
        """
        null = self._calibrated()
        learnt, left, right, *_ = self._prepare_both(X, Y, None, paired=True)
        size = pair_size(self.sizes(left), self.sizes(right))
        return null.p_value(size, self._distances_of_rows(learnt, left, right))

    @property
    def n_random_pairs(self: Any) -> int:
        """Number of random pairs that a pair is compared with, once calibrated."""
        return self._calibrated().window

    def similar(self: Any, X: GroupsLike, Y: GroupsLike, *, level: float = 0.01) -> np.ndarray:
        """Whether the p-value of each pair is at most `level`, row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.
        level : float, default=0.01
            Accepted rate of false positives: random pairs that are called similar.

        Returns
        -------
        similar : ndarray of shape (n_groups,) of bool
        """
        self._calibrated().check_level(level)
        return self.p_value(X, Y) <= level

    def sizes(self, prepared: Any) -> np.ndarray:
        """What distances of prepared groups depend on by chance: nothing, unless a subclass says otherwise."""
        return np.ones(len(prepared))

    def null_power(self, output: str) -> int:
        """The power of a normal variable that distances of random pairs resemble."""
        return 1

    def duplicate_limits(self: Any, level: float) -> Callable[[slice], np.ndarray]:
        """Largest distances of duplicates among the fitted groups, once calibrated.

        Parameters
        ----------
        level : float
            Accepted rate of random pairs that are called duplicates.

        Returns
        -------
        limits : callable
            Returns the limits for a slice of rows of the matrix of all pairs.
        """
        null, size = self._calibrated(), self._fitted_sizes()
        return lambda rows: null.threshold(pair_size(size[rows, None], size), level)

    def _fitted_sizes(self: Any) -> np.ndarray:
        return self.sizes(self._fitted_groups(self._learnt_for(self.output), self.output))

    def _distances_of_rows(self: Any, learnt: Any, left: Any, right: Any) -> np.ndarray:
        values = self.compare_rows(learnt, left, right, self.output, np.dtype(np.float64))
        return OUTPUTS[self.output].as_distance(values)

    def _calibrated(self: Any) -> NullDistribution:
        null = self._fitted.null if hasattr(self, "_fitted") else None
        if null is None or null.output != self.output:
            raise NotFittedError("p_value and similar need random pairs in the chosen output: call calibrate first.")
        return null


def null_distribution(
    compare: Callable[[np.ndarray, np.ndarray], np.ndarray],
    size: np.ndarray,
    n_pairs: int,
    random_state: np.random.RandomState,
    output: str,
    power: int,
) -> NullDistribution:
    """Compare random pairs of groups: `compare` returns their distances from the indices of both sides."""
    if len(size) < 2:
        raise ValueError("calibrate needs at least two groups to draw pairs from.")
    if len(size) < FEW_GROUPS:
        warnings.warn(f"Only {len(size)} groups to calibrate with: p-values will be rough.", stacklevel=3)
    left, right = random_pairs(len(size), n_pairs, random_state)
    return NullDistribution.of(pair_size(size[left], size[right]), compare(left, right), output, power)


def pair_size(n: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Size of a pair, on which random distances depend: half the harmonic mean of the groups' weights."""
    return n * m / (n + m)


def random_pairs(n_groups: int, n_pairs: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs of different groups, or all pairs if there are at most `n_pairs`."""
    if n_groups * (n_groups - 1) // 2 <= n_pairs:
        return np.triu_indices(n_groups, 1)
    left = random_state.randint(n_groups, size=n_pairs)
    return left, (left + random_state.randint(1, n_groups, size=n_pairs)) % n_groups


def permutation_test(
    learnt: Learnt, a: Groups, b: Groups, n_permutations: int, random_state: np.random.RandomState
) -> PermutationTest:
    """Compare the similarity of two groups with that of random divisions of their vectors."""
    similarity = OUTPUTS["similarity"]
    given, values = (
        learnt.comparison.row_by_row(learnt.prepare(left, similarity), learnt.prepare(right, similarity), similarity)
        for left, right in ((a, b), divisions(a, b, n_permutations, random_state))
    )
    at_most = int((values <= given[0] + 1e-9 * np.abs(values).max()).sum())
    return PermutationTest(float(given[0]), at_most / len(values))


def divisions(a: Groups, b: Groups, n_permutations: int, random_state: np.random.RandomState) -> tuple[Groups, Groups]:
    """Divide the vectors of two groups into groups of the same sizes: in all ways, or as given and at random."""
    pooled = Groups.concatenate([a, b])
    n, total = a.n_rows, pooled.n_rows
    if comb(total, n) <= n_permutations:
        chosen = np.array(list(combinations(range(total), n)))
        orders = np.array([np.concatenate([rows, np.setdiff1d(np.arange(total), rows)]) for rows in chosen])
    else:
        drawn = [random_state.permutation(total) for _ in range(n_permutations)]
        orders = np.array([np.arange(total), *drawn])
    return divided(pooled, orders[:, :n]), divided(pooled, orders[:, n:])
