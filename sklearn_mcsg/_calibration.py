"""How often chance does as well: random pairs for a threshold, permutations for one pair."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._base import ComparisonEstimator
from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg.groups import Groups

_BLOCK = 2**20  # of null values looked at, at a time
_POWERS = {"centered": 1}  # of outputs that are no sums of squares, for which it is 3 (Wilson and Hilferty)


class PermutationTest(NamedTuple):
    """Similarity of two groups, and how often a random division of their vectors is as dissimilar."""

    similarity: float
    pvalue: float


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """Distances of random pairs, in order of the pairs' size: n m / (n + m) with n and m the weights of the groups.

    Short groups are easily similar, so a pair is held against those random pairs whose size is nearest to its own. The
    root of distances with exponent `power` is about normal.
    """

    size: np.ndarray
    distance: np.ndarray
    power: int = 3

    @classmethod
    def of(cls, size: np.ndarray, distance: np.ndarray, power: int = 3) -> NullDistribution:
        order = np.argsort(size, kind="stable")
        return cls(size[order], distance[order], power)

    def p_value(self, size: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Share of comparable random pairs that are at least as near, never 0."""
        starts, views = self._windows(size)
        step = max(1, _BLOCK // self.window)
        counts = [
            (views[starts[i : i + step]] <= distance[i : i + step, None]).sum(axis=1)
            for i in range(0, len(starts), step)
        ]
        return (1 + np.concatenate(counts)) / (1 + self.window)

    def threshold(self, size: np.ndarray, level: float) -> np.ndarray:
        """Distance below which a share `level` of comparable random pairs lies, not counting duplicates among them.

        The lower tail is that of a normal distribution of roots which has the median and the 16 % quantile of random
        pairs: it reaches far, and a few duplicates do not bend it. What is next to nothing beside the median always
        lies below.
        """
        starts, views = self._windows(size)
        distinct, place = np.unique(starts, return_inverse=True)
        step = max(1, _BLOCK // self.window)
        low, middle = norm.cdf(-1), 0.5
        parts = [
            np.quantile(views[distinct[i : i + step]], [low, middle], axis=1) for i in range(0, len(distinct), step)
        ]
        low, middle = np.maximum(np.concatenate(parts, axis=1), 0) ** (1 / self.power)
        limit = np.maximum(middle + norm.ppf(level) * (middle - low), 0) ** self.power
        return np.maximum(limit, 1e-6 * middle**self.power)[place].reshape(np.shape(size))

    @property
    def window(self) -> int:
        """Number of random pairs that a pair is held against."""
        return min(max(100, len(self.size) // 10), len(self.size))

    def _windows(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the random pairs nearest in size begin, and all runs of as many of their distances."""
        middle = (np.searchsorted(self.size, size, "left") + np.searchsorted(self.size, size, "right")) // 2
        starts = np.clip(middle - self.window // 2, 0, len(self.size) - self.window)
        return starts, np.lib.stride_tricks.sliding_window_view(self.distance, self.window)


class ThresholdMixin(ComparisonEstimator):
    """Thresholds that mean something: p-values against random pairs, and a permutation test of one pair."""

    def calibrate(self, X: Any = None, *, n_pairs: int = 20_000) -> Self:
        """Learn how near random pairs of groups are, so that `p_value` and `similar` can tell more than chance.

        Parameters
        ----------
        X : groups, default=None
            Groups to draw pairs from; ``None`` means the fitted ones.
        n_pairs : int, default=20_000
            Number of random pairs.

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
        side = self._fitted_side(self.output)
        if X is not None:
            side = self._prepare(self._read(X, self.output), self.output)
        if len(side) < 2:
            raise ValueError("calibrate needs at least two groups to draw pairs from.")
        if len(side) < 50:
            warnings.warn(f"{len(side)} groups are few to learn chance from: p-values will be rough.", stacklevel=2)
        left, right = random_pairs(len(side), n_pairs, check_random_state(self.random_state))
        values = self._active().row_by_row(side[left], side[right], self.output)
        size, distance = pair_size(side.n[left], side.n[right]), self._as_distance(values)
        self._null = self.output, NullDistribution.of(size, distance, _POWERS.get(self.output, 3))
        return self

    def p_value(self, X: Any, Y: Any) -> np.ndarray:
        """How often random pairs of about the same size are at least as near as each pair, row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.

        Returns
        -------
        p : ndarray of shape (n_groups,)
            Small for pairs that are more similar than chance makes them.
        """
        output, null = getattr(self, "_null", (None, None))
        if null is None or output != self.output:
            raise NotFittedError("p_value and similar need random pairs in the chosen output: call calibrate first.")
        left, right, _, _ = self._prepare_sides(X, Y, None, paired=True)
        values = self._active().row_by_row(left, right, self.output)
        return null.p_value(pair_size(left.n, right.n), self._as_distance(values))

    def similar(self, X: Any, Y: Any, *, level: float = 0.01) -> np.ndarray:
        """Whether pairs are more similar than all but a share `level` of random pairs of their size, row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.
        level : float, default=0.01
            How often random pairs may be called similar.

        Returns
        -------
        similar : ndarray of shape (n_groups,) of bool
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        p = self.p_value(X, Y)
        window = self._null[1].window
        if level * (1 + window) < 1:
            raise ValueError(
                f"level={level} is below the smallest p-value that {window} random pairs of a size allow: calibrate "
                f"with n_pairs={int(np.ceil(10 / level))} or more, on enough groups."
            )
        return p <= level

    def paired_test(self, a: Any, b: Any, *, n_permutations: int = 999) -> PermutationTest:
        """Test whether one distribution generated two groups, by dividing their vectors anew at random.

        Under that hypothesis all divisions are alike, so a p-value of 0.05 or less comes up in at most one of twenty
        tests, whatever the distribution. When there are no more divisions than `n_permutations`, all are looked at.

        Parameters
        ----------
        a, b : array-like of shape (n_vectors, n_features), or Groups of length 1
            The two groups.
        n_permutations : int, default=999
            Number of random divisions.

        Returns
        -------
        result : PermutationTest
            With `similarity` and `pvalue`, the share of divisions that are at most as similar.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> x = np.random.default_rng(0).normal(size=(12, 3))
        >>> ModelComparisonSimilarity(random_state=0).paired_test(x, x + 2).pvalue
        0.001
        """
        check_positive_integer(n_permutations, "n_permutations")
        one, other = (self._read(x if isinstance(x, Groups) else [x], "similarity") for x in (a, b))
        self._check_same_width(one, other)
        for groups in (one, other):
            if len(groups) != 1:
                raise ValueError(f"paired_test compares one group with one other, got {len(groups)} groups.")
        left, right = divisions(one, other, n_permutations, check_random_state(self.random_state))
        values = self.paired(left, right, output="similarity")
        given = float(self.paired(one, other, output="similarity")[0])
        at_most = int((values <= given + 1e-9 * np.abs(values).max()).sum())
        return PermutationTest(given, at_most / len(values))

    def _as_distance(self, values: np.ndarray) -> np.ndarray:
        return -values if self.output == "similarity" else values


def pair_size(n: np.ndarray, m: np.ndarray) -> np.ndarray:
    """What a pair's distance depends on by chance: half the harmonic mean of the groups' weights."""
    return n * m / (n + m)


def random_pairs(n_groups: int, n_pairs: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different groups: all of them, if there are no more."""
    if n_groups * (n_groups - 1) // 2 <= n_pairs:
        return np.triu_indices(n_groups, 1)
    left = random_state.randint(n_groups, size=n_pairs)
    return left, (left + random_state.randint(1, n_groups, size=n_pairs)) % n_groups


def divisions(a: Groups, b: Groups, n_permutations: int, random_state: np.random.RandomState) -> tuple[Groups, Groups]:
    """Divide the vectors of two groups into two of the same numbers: in all ways, or as given and at random."""
    pooled = Groups.concatenate([a, b])
    n, total = a.n_rows, pooled.n_rows
    if comb(total, n) <= n_permutations:
        chosen = np.array(list(combinations(range(total), n)))
        orders = np.array([np.concatenate([rows, np.setdiff1d(np.arange(total), rows)]) for rows in chosen])
    else:
        drawn = [random_state.permutation(total) for _ in range(n_permutations)]
        orders = np.array([np.arange(total), *drawn])
    return _select(pooled, orders[:, :n]), _select(pooled, orders[:, n:])


def _select(groups: Groups, rows: np.ndarray) -> Groups:
    """A group for each row of positions among all vectors."""
    indices: Any = rows if groups.indices is None else groups.indices[rows]
    weights = None if groups.weights is None else groups.weights[rows].ravel()
    offsets = np.arange(len(rows) + 1) * rows.shape[1]
    return Groups(groups.vectors, offsets, indices=indices.ravel(), weights=weights)
