"""Comparison with chance: distances of random pairs of groups, and what they say about a pair."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from sklearn_mcsg._checks import check_share
from sklearn_mcsg._memory import RANDOM_PAIRS
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.storage import register

FEW_GROUPS = 50  # fewer give rough p-values, and no level of duplicates
N_PAIRS = 20_000  # random pairs, where the user does not say how many
_PAIRS_PER_DEGREE = 4.4  # random pairs per degree of freedom of a standard deviation estimated from two quantiles
_ROUNDING = 1e-9  # of distances that are equal, but were computed in different ways


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

    def pvalue(self, size: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Share of random pairs of similar size that are at least as near; never 0."""
        starts, views = self._windows(size)
        step = max(1, RANDOM_PAIRS // self.window)
        rounding = max(_ROUNDING, 4 * float(np.finfo(distance.dtype).eps))
        distance = distance + rounding * np.abs(distance, dtype=np.float64)
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
        step = max(1, RANDOM_PAIRS // self.window)
        parts = [
            np.quantile(views[distinct[i : i + step]], [norm.cdf(-1), 0.5], axis=1)
            for i in range(0, len(distinct), step)
        ]
        low, middle = np.maximum(np.concatenate(parts, axis=1), 0) ** (1 / power)
        limit = np.maximum(middle + student.ppf(level, self.window / _PAIRS_PER_DEGREE) * (middle - low), 0) ** power
        return np.maximum(limit, 1e-6 * middle**power)[place].reshape(np.shape(size))

    def is_far_from(self, size: np.ndarray) -> np.ndarray:
        """Whether pairs are smaller or larger than all random pairs, by more than a quarter."""
        return (1.25 * size < self.size[0]) | (size > 1.25 * self.size[-1])

    def check_level(self, level: float) -> None:
        """Raise unless `level` is a share that p-values can reach."""
        check_share(level, "level")
        if level * (1 + self.window) < 1:
            raise ValueError(
                f"level={level} is below the smallest p-value that {self.window} random pairs can give: calibrate "
                f"with n_pairs={int(np.ceil(10 / level))} or more, and enough groups for that many pairs."
            )

    def __mcsg_check__(self) -> None:
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


def checked_null(null: Any) -> NullDistribution | None:
    """A null distribution from a file, or None; raise if it is something else."""
    if not isinstance(null, NullDistribution | None):
        raise TypeError(f"random pairs are kept as a {type(null).__name__}")
    return null


def pair_size(n: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Size of a pair, on which random distances depend: half the harmonic mean of the groups' weights."""
    total = n + m
    return n * m / np.where(total > 0, total, 1)


def warn_of_few_groups(n_groups: int, stacklevel: int) -> None:
    """Warn if random pairs come from few groups."""
    if n_groups < FEW_GROUPS:
        message = f"Only {n_groups} groups to calibrate with: p-values will be rough."
        warnings.warn(message, stacklevel=stacklevel + 1)


def random_pairs(n_groups: int, n_pairs: int, random_state: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs of different groups, or all pairs if there are at most `n_pairs`."""
    if n_groups * (n_groups - 1) // 2 <= n_pairs:
        return np.triu_indices(n_groups, 1)
    left = random_state.randint(n_groups, size=n_pairs)
    return left, (left + random_state.randint(1, n_groups, size=n_pairs)) % n_groups
