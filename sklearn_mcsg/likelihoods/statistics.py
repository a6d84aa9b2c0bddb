"""Sufficient statistics of groups, one row per group, and how they are pooled.

Moments are centred, because E[x^2] - E[x]^2 cancels, and accumulated in float64 whatever the precision of the vectors.
Pooling two groups does not use their vectors again, with one exception: if a criterion needs fourth moments that have
no small sufficient statistic, the statistics keep the vectors as `Part`s, by reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from sklearn_mcsg.groups import Groups, Rows
from sklearn_mcsg.groups.blocks import block_rows, blocks, pieces
from sklearn_mcsg.groups.regroup import packed, united
from sklearn_mcsg.storage import register

_PRODUCTS = 2**17  # products of vectors and means at a time
_NUMBERS = 2**20  # numbers of these vectors
_NOTHING = 1e-14  # share of a group's weight or scatter that rounding may leave when its vectors are removed


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

    def map_arrays(self, function: Callable[[Any], Any]) -> Self:
        """The statistics with a function applied to each array; what all groups share is kept."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{name: function(value) for name, value in found.items() if hasattr(value, "shape")})

    def without_vectors(self) -> Self:
        """The same statistics without the vectors that some keep by reference."""
        light: dict[str, Any] = {"parts": ()}
        return replace(self, **light) if getattr(self, "parts", ()) else self

    def with_vectors(self, *sources: Statistics) -> Self:
        """The same statistics with the vectors that others keep of the same groups."""
        kept: dict[str, Any] = {"parts": tuple(part for source in sources for part in getattr(source, "parts", ()))}
        return replace(self, **kept) if kept["parts"] else self

    def compact(self) -> Self:
        """The same statistics, of groups pooled many times, in a form that does not grow with the number of times."""
        parts = getattr(self, "parts", ())
        if len(parts) < 2:
            return self
        rows = Groups.concatenate([part.rows for part in parts])
        owners = np.tile(np.arange(len(self)), len(parts))
        joined: dict[str, Any] = {"parts": (Part(united(rows, owners, len(self))),)}
        return replace(self, **joined)

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

    def __mcsg_check__(self) -> None:
        """Raise unless all parts are numbers that describe the same number of groups."""
        parts = {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), np.ndarray)}
        if any(part.dtype.kind != "f" for part in parts.values()):
            raise ValueError("statistics that are not floating-point numbers")
        lengths = {name: len(part) for name, part in parts.items()}
        if set(lengths.values()) != {len(self)} or self.mean.ndim != 2:
            raise ValueError(f"statistics of different numbers of groups: {lengths}")
        if not (self.n >= 0).all():
            raise ValueError("groups of negative weight")

    @property
    def row_nbytes(self) -> int:
        """Bytes that the statistics of one group may take."""
        return sum(_row_nbytes(getattr(self, f.name)) for f in fields(self))


@register
@dataclass(frozen=True, eq=False)
class Part:
    """Vectors that belong to the groups of some statistics, and the noise around each of them.

    `noise` is None for observed vectors. For pseudo-vectors of a prior it describes their distribution, in the
    form that the likelihood uses. `values` are a few numbers for each vector, if `Likelihood.for_pairs` computed them
    in advance, and `centre` is the point that they refer to.
    """

    rows: Groups
    noise: Any = None
    values: Groups | None = None
    centre: Any = None

    def __getitem__(self, key: Rows) -> Part:
        return replace(self, rows=self.rows[key], values=None if self.values is None else self.values[key])

    def with_values(
        self,
        function: Callable[[np.ndarray, Groups, slice], list[np.ndarray]],
        n_values: int,
        centre: np.ndarray | None = None,
    ) -> Part:
        """The part with the numbers that a function of vectors, groups and their owners gives, piece by piece."""
        rows, start = self.rows, 0
        values = np.empty((rows.n_rows, n_values))
        for owners, piece in pieces(rows, block_rows(rows)):
            values[start : start + piece.n_rows] = np.column_stack(function(piece.rows(), piece, owners))
            start += piece.n_rows
        return replace(self, values=Groups(values, rows.offsets), centre=centre)


def joined(*parts: Part) -> tuple[Part, ...]:
    """Parts of groups that are pooled; the numbers computed in advance referred to the groups' own means."""
    return tuple(replace(part, values=None, centre=None) for part in parts)


def removed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts with negative weights: sums over them undo the sums over the same vectors."""
    rows = (part.rows for part in parts)
    return tuple(Part(packed(r.vectors, r.offsets, r.indices, -r.row_weights)) for r in rows)


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


def by_blocks(groups: Groups, moments: Callable[[Groups], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Moments of groups, computed for blocks that fit into the working memory; larger groups in pieces.

    `moments` returns weights, means and centred power sums, as `merge_moments` takes them.
    """
    joined: tuple[np.ndarray, ...] = ()
    for block in blocks(groups):
        some = groups[block]
        if some.n_rows > block_rows(some):  # a single group
            parts = reduce(merge_moments, (moments(piece) for _, piece in pieces(some, block_rows(some))))
        else:
            parts = moments(some)
        joined = joined or tuple(np.empty((len(groups), *part.shape[1:])) for part in parts)
        for whole, part in zip(joined, parts, strict=True):
            whole[block] = part
    return joined


def mean_of(groups: Groups, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Total weight and weighted mean of each group, with mean 0 for groups without vectors."""
    n = groups.totals
    return n, groups.sum(vectors) / np.where(n > 0, n, 1)[:, None]


def mean_moments(block: Groups) -> tuple[np.ndarray, ...]:
    """Total weight and weighted mean of each group."""
    return mean_of(block, block.rows())


def centred_sums(groups: Groups, order: int) -> tuple[np.ndarray, ...]:
    """Weight, mean and centred power sums from the second to the given order, of each group and feature."""

    def block_sums(block: Groups) -> tuple[np.ndarray, ...]:
        vectors = block.rows()
        n, mean = mean_of(block, vectors)
        centred = vectors - np.repeat(mean, block.sizes, axis=0)
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

    def left_of(self, whole: np.ndarray, values: np.ndarray, signed: bool = False) -> np.ndarray:
        """Sums that are left of whole ones after vectors were removed: 0 where rounding alone leaves anything."""
        is_left = (self.n > 0).reshape(-1, *[1] * (values.ndim - 1))
        return np.where(is_left & (signed | (values > _NOTHING * whole)), values, 0)


def merge(a: Statistics, b: Statistics) -> Merge:
    """Pool weights and means, row by row."""
    return merge_means(a.n, a.mean, b.n, b.mean)


def merge_means(n: np.ndarray, mean: np.ndarray, m: np.ndarray, other: np.ndarray) -> Merge:
    """Pool weights and means of two collections, row by row."""
    total = n + m
    divisor = np.where(total > 0, total, 1)
    delta = other - mean
    right = m / divisor
    return Merge(total, mean + delta * right[:, None], delta, n / divisor, right, n * right)


def merge_moments(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Pool weights, means and centred power sums of orders 2 to 4, as many as are given, row by row (Pebay 2008)."""
    u = merge_means(*a[:2], *b[:2])
    if len(a) == 2:
        return u.n, u.mean
    square = u.delta**2
    m2 = a[2] + b[2] + u.between[:, None] * square
    if len(a) == 3:
        return u.n, u.mean, m2
    left, right, between = u.left[:, None], u.right[:, None], u.between[:, None]
    m3 = a[3] + b[3] + between * (left - right) * square * u.delta + 3 * u.delta * (left * b[2] - right * a[2])
    m4 = (
        a[4]
        + b[4]
        + between * (left**2 - left * right + right**2) * square**2
        + 6 * square * (left**2 * b[2] + right**2 * a[2])
        + 4 * u.delta * (left * b[3] - right * a[3])
    )
    return u.n, u.mean, m2, m3, m4


def unmerge(n: np.ndarray, mean: np.ndarray, m: np.ndarray, other: np.ndarray) -> Merge:
    """Weights and means of one collection without another, row by row: `merge_means` with negative weights."""
    u = merge_means(n, mean, -np.minimum(m, n), other)
    left = u.n > _NOTHING * n
    return replace(u, n=np.where(left, u.n, 0), mean=np.where(left[:, None], u.mean, 0))


def unmerge_moments(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Weights, means and centred power sums of `a` without `b`, row by row: they are additive, so signs do it."""
    u = unmerge(*a[:2], *b[:2])
    n, mean, *sums = b
    _, _, *sums = merge_moments(a, (-np.minimum(n, a[0]), mean, *(-power for power in sums)))
    sums = [u.left_of(whole, power, signed=i == 1) for i, (whole, power) in enumerate(zip(a[2:], sums, strict=True))]
    return u.n, u.mean, *sums


def sum_over_parts(parts: Sequence[Part], term: Callable[[np.ndarray, Groups, slice, Any], np.ndarray]) -> np.ndarray:
    """Weighted sum over each group's vectors of ``term(vectors, rows, owners, noise)``, in pieces of bounded size.

    `rows` are the vectors of a piece as groups, and `owners` the slice of the groups that they belong to. `term`
    returns one row per vector; its columns, if any, are summed separately.
    """
    total = np.zeros(())
    for part in parts:
        sums, whole = np.zeros(()), (slice(0, len(part.rows)), part.rows)
        for owners, rows in pieces(part.rows, block_rows(part.rows)) if part.rows.n_rows else (whole,):
            values = rows.sum(term(rows.rows(), rows, owners, part.noise))
            if not sums.shape:
                sums = np.zeros((len(part.rows), *values.shape[1:]))
            sums[owners] += values
        total = total + sums
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


def products_with_means(
    part: Part, means: np.ndarray, vectors: Callable[[Groups, slice, np.ndarray], np.ndarray]
) -> Iterator[tuple[slice, Groups, np.ndarray, np.ndarray]]:
    """Products of a part's vectors with means, in pieces that stay in the processor's cache.

    `vectors` is a function of a piece, the slice of groups that it belongs to, and the numbers of its vectors. Yields
    that slice, the piece, the numbers, and the products.
    """
    step = max(1, min(_PRODUCTS // len(means), _NUMBERS // part.rows.n_features))
    values: Any = part.values
    for (owners, piece), (_, some) in zip(pieces(part.rows, step), pieces(values, step), strict=True):
        numbers = some.rows()
        yield owners, piece, numbers, vectors(piece, owners, numbers) @ means.T
