"""How often chance does as well: random pairs for a threshold, permutations for one pair."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from sklearn_mcsg.engine.comparison import Prepared
from sklearn_mcsg.engine.learnt import Learnt
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.storage import register

_BLOCK = 2**20  # of null values looked at, at a time
_FEW_GROUPS = 50


class PermutationTest(NamedTuple):
    """Similarity of two groups, and how often a random division of their vectors is as dissimilar."""

    similarity: float
    pvalue: float


@register
@dataclass(frozen=True, eq=False)
class NullDistribution:
    """Distances of random pairs in one output, in order of the pairs' size: n m / (n + m) for groups of weight n and m.

    Short groups are easily similar, so a pair is compared with the random pairs whose size is nearest to its own.
    """

    size: np.ndarray
    distance: np.ndarray
    output: str

    @classmethod
    def of(cls, size: np.ndarray, distance: np.ndarray, output: str = "distance") -> NullDistribution:
        order = np.argsort(size, kind="stable")
        return cls(size[order], distance[order], output)

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

        A distance of random pairs is a sum of squares, close to a multiple of a chi-squared variable, whose cube root
        is close to normal (Wilson and Hilferty 1931); `centered`, a cosine, is close to normal itself. So let z be the
        distance to the power 1/p, with p = `null_power` of the output. A normal distribution with median m has its
        16 % quantile one standard deviation below, at q. Hence sd = m - q, and the quantile of z at `level` is
        m + ppf(level) (m - q), to be raised to the power p. Median and 16 % quantile are far from the tail, so the
        estimate reaches levels that no sample does, and a few duplicates do not move it. Distances below a millionth of
        the median are always below the threshold.
        """
        power = OUTPUTS[self.output].null_power
        starts, views = self._windows(size)
        distinct, place = np.unique(starts, return_inverse=True)
        step = max(1, _BLOCK // self.window)
        parts = [
            np.quantile(views[distinct[i : i + step]], [norm.cdf(-1), 0.5], axis=1)
            for i in range(0, len(distinct), step)
        ]
        low, middle = np.maximum(np.concatenate(parts, axis=1), 0) ** (1 / power)
        limit = np.maximum(middle + norm.ppf(level) * (middle - low), 0) ** power
        return np.maximum(limit, 1e-6 * middle**power)[place].reshape(np.shape(size))

    @property
    def window(self) -> int:
        """Number of random pairs that a pair is compared with."""
        return min(max(100, len(self.size) // 10), len(self.size))

    def _windows(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the random pairs nearest in size begin, and all runs of as many of their distances."""
        middle = (np.searchsorted(self.size, size, "left") + np.searchsorted(self.size, size, "right")) // 2
        starts = np.clip(middle - self.window // 2, 0, len(self.size) - self.window)
        return starts, np.lib.stride_tricks.sliding_window_view(self.distance, self.window)


def null_distribution(
    learnt: Learnt, groups: Prepared, n_pairs: int, random_state: np.random.RandomState
) -> NullDistribution:
    """Compare random pairs of prepared groups in the chosen output."""
    if len(groups) < 2:
        raise ValueError("calibrate needs at least two groups to draw pairs from.")
    if len(groups) < _FEW_GROUPS:
        warnings.warn(f"Only {len(groups)} groups to calibrate with: p-values will be rough.", stacklevel=3)
    left, right = random_pairs(len(groups), n_pairs, random_state)
    values = learnt.comparison.row_by_row(groups[left], groups[right], learnt.output)
    size = pair_size(groups.n[left], groups.n[right])
    return NullDistribution.of(size, learnt.output.as_distance(values), learnt.output.name)


def pair_size(n: np.ndarray, m: np.ndarray) -> np.ndarray:
    """What a pair's distance depends on by chance: half the harmonic mean of the groups' weights."""
    return n * m / (n + m)


def random_pairs(n_groups: int, n_pairs: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different groups: all of them, if there are no more."""
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
    """Divide the vectors of two groups into two of the same numbers: in all ways, or as given and at random."""
    pooled = Groups.concatenate([a, b])
    n, total = a.n_rows, pooled.n_rows
    if comb(total, n) <= n_permutations:
        chosen = np.array(list(combinations(range(total), n)))
        orders = np.array([np.concatenate([rows, np.setdiff1d(np.arange(total), rows)]) for rows in chosen])
    else:
        drawn = [random_state.permutation(total) for _ in range(n_permutations)]
        orders = np.array([np.arange(total), *drawn])
    return pooled.divided(orders[:, :n]), pooled.divided(orders[:, n:])
