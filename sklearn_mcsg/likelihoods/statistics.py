"""Sufficient statistics of groups, one row per group, and how they are pooled.

Moments are centred, because E[x^2] - E[x]^2 cancels, and accumulated in float64 whatever the precision of the vectors.
Pooling two groups does not use their vectors again, with one exception: if a criterion needs fourth moments that have
no small sufficient statistic, the statistics keep the vectors as `Part`s, by reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from sklearn_mcsg.groups import Groups, Rows
from sklearn_mcsg.storage import register

_PROJECTIONS = 2**19  # products of vectors and means at a time


@register
@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of many groups: arrays whose first axis runs over the groups.

    Likelihoods derive their own class from it. Fields that are arrays, `Groups`, or tuples of arrays or `Groups` are
    indexed and concatenated group by group; all other fields are shared by all groups.

    Attributes
    ----------
    n : ndarray of shape (n_groups,)
        Total weight of each group: its number of vectors when there are no weights.
    mean : ndarray of shape (n_groups, n_features)
        Weighted mean of its vectors; 0 for a group without vectors.
    """

    n: np.ndarray
    mean: np.ndarray

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    @property
    def n_features(self) -> int:
        return self.mean.shape[1]

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, key: Rows) -> Self:
        return replace(self, **{f.name: _take(getattr(self, f.name), key) for f in fields(self)})

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join statistics one after the other."""
        columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(parts[0])}
        return replace(parts[0], **{name: _concatenate(values) for name, values in columns.items()})

    def map_batches(self, function: Callable[[Self], Self], batches: Iterable[slice]) -> Self:
        """Apply a function to batches of groups, one after the other, and join the results.

        Results are copied where they belong as they come, so that no more than one of them is held twice.
        """
        joined: dict[str, Any] = {}
        for batch in batches:
            part = function(self[batch])
            for f in fields(part):
                value = getattr(part, f.name)
                if isinstance(value, np.ndarray):
                    joined.setdefault(f.name, np.empty((len(self), *value.shape[1:]), value.dtype))[batch] = value
                else:
                    joined.setdefault(f.name, []).append(value)
        whole = {name: _concatenate(value) if isinstance(value, list) else value for name, value in joined.items()}
        return replace(part, **whole)

    def weighted(self, values: np.ndarray, constant: float = 0.0, factor: float = 1.0) -> np.ndarray:
        """Values plus a constant, times a factor and the total weight; values may be overwritten."""
        return (values + constant) * (factor * self.n)

    def of_total(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of the total weights."""
        return function(self.n)

    @property
    def finite(self) -> np.ndarray:
        """Whether all numbers of each group are finite."""
        arrays = [value for f in fields(self) if isinstance(value := getattr(self, f.name), np.ndarray)]
        return np.logical_and.reduce([np.isfinite(a).reshape(len(self), -1).all(axis=1) for a in arrays])

    def check(self) -> None:
        """Raise unless all parts describe the same number of groups."""
        lengths = {f.name: len(value) for f in fields(self) if isinstance(value := getattr(self, f.name), np.ndarray)}
        if set(lengths.values()) != {len(self)} or self.mean.ndim != 2:
            raise ValueError(f"statistics of different numbers of groups: {lengths}")

    @property
    def row_nbytes(self) -> int:
        """Bytes that the statistics of one group may take."""
        return sum(_row_nbytes(getattr(self, f.name)) for f in fields(self))


@register
@dataclass(frozen=True, eq=False)
class Part:
    """Vectors that belong to the groups of some statistics, and the noise around each of them.

    `noise` is None for observed vectors. For pseudo-vectors of a prior it describes their distribution, in the
    form that the likelihood uses.
    """

    rows: Groups
    noise: Any = None

    def __getitem__(self, key: Rows) -> Part:
        return replace(self, rows=self.rows[key])


def _take(value: Any, key: Rows) -> Any:
    if isinstance(value, tuple):
        return tuple(item[key] for item in value)
    return value[key] if isinstance(value, np.ndarray | Groups) else value


def _concatenate(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, tuple):
        return tuple(_concatenate(list(items)) for items in zip(*values, strict=True))
    if isinstance(first, Part):
        return replace(first, rows=Groups.concatenate([part.rows for part in values]))
    if isinstance(first, Groups):
        return Groups.concatenate(values)
    return np.concatenate(values) if isinstance(first, np.ndarray) else first


def _row_nbytes(value: object) -> int:
    if isinstance(value, tuple):
        return sum(_row_nbytes(item) for item in value)
    if isinstance(value, Part):
        return _row_nbytes(value.rows)
    if isinstance(value, Groups):
        return 8 * value.n_features * int(value.sizes.max(initial=0))
    return value.nbytes // max(1, len(value)) if isinstance(value, np.ndarray) else 0


def by_blocks(groups: Groups, function: Callable[[Groups], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Apply a function to blocks of groups that fit into the working memory, and join the results."""
    joined: tuple[np.ndarray, ...] = ()
    for block in groups.blocks():
        parts = function(groups[block])
        joined = joined or tuple(np.empty((len(groups), *part.shape[1:])) for part in parts)
        for whole, part in zip(joined, parts, strict=True):
            whole[block] = part
    return joined


def mean_of(groups: Groups, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Total weight and weighted mean of each group, with mean 0 for groups without vectors."""
    n = groups.totals
    return n, groups.sum(vectors) / np.where(n > 0, n, 1)[:, None]


def centred_sums(groups: Groups, order: int) -> tuple[np.ndarray, ...]:
    """Weight, mean and centred power sums from the second to the given order, of each group and feature."""

    def block_sums(block: Groups) -> tuple[np.ndarray, ...]:
        vectors = block.rows()
        n, mean = mean_of(block, vectors)
        centred = vectors - block.repeat(mean)
        power, sums = centred, []
        for _ in range(2, order + 1):
            power = power * centred
            sums.append(block.sum(power))
        return n, mean, *sums

    return by_blocks(groups, block_sums)


@dataclass(frozen=True, eq=False)
class Merge:
    """The quantities that every pooling formula shares (Chan, Golub and LeVeque 1983)."""

    n: np.ndarray
    mean: np.ndarray
    delta: np.ndarray  # difference of the means
    left: np.ndarray  # share of the left group in the total weight
    right: np.ndarray
    between: np.ndarray  # n m / (n + m), the weight of the squared difference


def merge(a: Statistics, b: Statistics) -> Merge:
    """Pool weights and means, row by row."""
    n = a.n + b.n
    total = np.where(n > 0, n, 1)
    delta = b.mean - a.mean
    right = b.n / total
    return Merge(n, a.mean + delta * right[:, None], delta, a.n / total, right, a.n * right)


def sum_over_parts(parts: Sequence[Part], term: Callable[[np.ndarray, Groups, slice, Any], np.ndarray]) -> np.ndarray:
    """Weighted sum over each group's vectors of ``term(vectors, rows, block, noise)``, by blocks of groups.

    `term` returns one row per vector; its columns, if any, are summed separately.
    """
    total = np.zeros(())
    for part in parts:
        sums = []
        for block in part.rows.blocks():
            rows = part.rows[block]
            sums.append(rows.sum(term(rows.rows(), rows, block, part.noise)))
        total = total + np.concatenate(sums)
    return total


def corpus_mean(statistics: Statistics) -> tuple[float, np.ndarray, np.ndarray]:
    """Weight and mean of all groups together, and each group's deviation from that mean."""
    n = statistics.n.sum()
    mean = statistics.n @ statistics.mean / n
    return n, mean, statistics.mean - mean


def padded(collections: Sequence[Groups]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of parallel collections as one (n_groups, n_rows, n_features) array, and their weights.

    Missing rows are zero with weight 0.
    """
    arrays, weights = [], []
    for groups in collections:
        width = int(groups.sizes.max(initial=0))
        filled = np.arange(width) < groups.sizes[:, None]
        array = np.zeros((len(groups), width, groups.n_features))
        array[filled] = groups.rows()
        weight = np.zeros(filled.shape)
        weight[filled] = groups.row_weights
        arrays.append(array)
        weights.append(weight)
    return np.concatenate(arrays, axis=1), np.concatenate(weights, axis=1)


def sum_over_vectors(function: Callable, rows: Groups, near: Statistics, far: Statistics) -> np.ndarray:
    """Two sums over the vectors of each near group, for each far group, in pieces of bounded size.

    `function(piece, near, far, owners)` returns both sums for a piece of the rows and the near groups it belongs to.
    """
    sums = np.zeros((2, len(near), len(far)))
    for owners, piece in rows.pieces(max(1, _PROJECTIONS // len(far))):
        sums[:, owners] += function(piece, near[owners], far, owners)
    return sums
