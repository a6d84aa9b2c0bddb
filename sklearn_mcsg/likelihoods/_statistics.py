"""Sufficient statistics of groups, one row per group, and how they are pooled.

Moments are centred, because E[x^2] - E[x]^2 cancels, and accumulated in float64 whatever the precision of the vectors.
Pooling two groups does not use their vectors again, with one exception: if a criterion needs fourth moments that have
no small sufficient statistic, the statistics keep the vectors themselves, by reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from sklearn_mcsg._checks import check_not_negative
from sklearn_mcsg._memory import FACTORS, PRODUCTS, count_within
from sklearn_mcsg.groups import Groups, Rows, packed, united
from sklearn_mcsg.groups.blocks import block_rows, blocks, per_vector, pieces
from sklearn_mcsg.groups.regroup import without_labels
from sklearn_mcsg.storage import register

_NOTHING = 1e-14  # share of a group's weight or scatter that rounding may leave when its vectors are removed


class Weighted:
    """What has total weights `n`: one for each group, pair of groups or segment."""

    n: Any

    def weighted(self, values: np.ndarray, constant: float = 0.0, factor: float = 1.0) -> np.ndarray:
        """Values plus a constant, times a factor and the total weights; values may be overwritten."""
        return (values + constant) * (factor * self.n)

    def of_total(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of the total weights."""
        return function(self.n)


@register
@dataclass(frozen=True, eq=False)
class Statistics(Weighted):
    """Sufficient statistics of many groups: arrays whose first axis runs over the groups.

    Likelihoods derive their own class from it. Fields that are arrays, `Groups`, or tuples of arrays or `Groups` are
    indexed and concatenated group by group; all other fields are shared by all groups.

    Attributes
    ----------
    n : ndarray of shape (n_groups,)
        Total weight of each group: its number of vectors when there are no weights.
    mean : ndarray of shape (n_groups, n_features)
        Weighted mean of its vectors; 0 for a group without vectors.
    kept : tuple of KeptVectors, default=()
        Vectors of the same groups, for moments above the second order: a union keeps those of both groups apart.
    """

    n: np.ndarray
    mean: np.ndarray
    kept: tuple[KeptVectors, ...] = field(default=(), kw_only=True)

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
        return replace(self, **{name: _take(value, key) for name, value in self._fields().items()})

    @classmethod
    def concatenate(cls, collections: Sequence[Self]) -> Self:
        """Join statistics one after the other."""
        first = collections[0]
        columns = {f.name: [getattr(some, f.name) for some in collections] for f in fields(first)}
        return replace(first, **{name: _concatenate(values) for name, values in columns.items()})

    def map_arrays(self, function: Callable[[Any], Any]) -> Self:
        """The statistics with a function applied to each array; what all groups share is kept."""
        arrays = {name: value for name, value in self._fields().items() if hasattr(value, "shape")}
        return replace(self, **{name: function(value) for name, value in arrays.items()})

    @property
    def keeps_vectors(self) -> bool:
        """Whether the vectors of the groups are kept, because moments above the second order are needed."""
        return len(self.kept) > 0

    @property
    def has_fixed_size(self) -> bool:
        """Whether every group takes the same memory, so that a pooled group can be stored in the place of another."""
        return not any(isinstance(value, tuple | Groups) and len(value) for value in self._fields().values())

    def without_vectors(self) -> Self:
        """The same statistics without kept vectors."""
        return replace(self, kept=())

    def with_vectors(self, *sources: Self) -> Self:
        """The same statistics with the vectors that others keep of the same groups."""
        return replace(self, kept=tuple(kept for source in sources for kept in source.kept))

    def consolidated(self) -> Self:
        """The same statistics, of groups pooled many times, in a form that does not grow with the number of times."""
        if len(self.kept) < 2:
            return self
        joined = Groups.concatenate([kept.groups for kept in self.kept])
        owners = np.tile(np.arange(len(self)), len(self.kept))
        return replace(self, kept=(KeptVectors(united(joined, owners, len(self))),))

    def map_batches(self, function: Callable[[Self], Self], batches: Iterable[slice]) -> Self:
        """Apply a function to batches of groups, one after the other, and join the results.

        Results are copied where they belong as they come, so that no more than one of them is held twice.
        """
        joined: dict[str, Any] = {}
        for batch in batches:
            result = function(self[batch])
            for name, value in result._fields().items():
                if isinstance(value, np.ndarray):
                    joined.setdefault(name, np.empty((len(self), *value.shape[1:]), value.dtype))[batch] = value
                else:
                    joined.setdefault(name, []).append(value)
        whole = {name: _concatenate(value) if isinstance(value, list) else value for name, value in joined.items()}
        return replace(result, **whole)

    @property
    def finite(self) -> np.ndarray:
        """Whether all numbers of each group are finite."""
        arrays = self._arrays().values()
        return np.logical_and.reduce([np.isfinite(a).reshape(len(self), -1).all(axis=1) for a in arrays])

    def __mcsg_check__(self) -> None:
        """Raise unless all arrays are numbers that describe the same number of groups."""
        arrays = self._arrays()
        if any(array.dtype.kind != "f" for array in arrays.values()):
            raise ValueError("statistics that are not floating-point numbers")
        lengths = {name: len(array) for name, array in arrays.items()}
        if set(lengths.values()) != {len(self)} or self.mean.ndim != 2:
            raise ValueError(f"statistics of different numbers of groups: {lengths}")
        if not (self.n >= 0).all():
            raise ValueError("groups of negative weight")
        if max(self.mean.max(initial=0), -self.mean.min(initial=0)) > 1e150:
            raise ValueError("means that are too large to be squared")
        if hasattr(self, "reg_covar"):
            check_not_negative(self.reg_covar, "reg_covar")

    @property
    def row_nbytes(self) -> int:
        """Bytes that the statistics of one group may take."""
        return sum(_row_nbytes(value) for value in self._fields().values())

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: value for name, value in self._fields().items() if isinstance(value, np.ndarray)}


@register
@dataclass(frozen=True, eq=False)
class KeptVectors:
    """Vectors of the groups that some statistics describe, and the noise around each vector.

    `noise` is None for observed vectors. For pseudo-vectors of a prior it describes their distribution, in the
    form that the likelihood uses. `values` are `Groups` of a few numbers for each vector, if `Likelihood.for_pairs`
    computed them in advance, and `centre` is the point that they refer to.
    """

    groups: Groups
    noise: Any = None
    values: Any = None
    centre: Any = None

    def __mcsg_check__(self) -> None:
        """Raise if numbers are stored that `Likelihood.for_pairs` computes."""
        if self.values is not None or self.centre is not None:
            raise ValueError("vectors with numbers that are never stored")

    def __getitem__(self, key: Rows) -> KeptVectors:
        return replace(self, groups=self.groups[key], values=None if self.values is None else self.values[key])

    def with_values(
        self,
        function: Callable[[np.ndarray, Groups, slice], list[np.ndarray]],
        n_values: int,
        centre: np.ndarray | None = None,
    ) -> KeptVectors:
        """The vectors with the numbers that a function of vectors, groups and their owners gives, piece by piece."""
        values = np.empty((self.groups.n_rows, n_values))
        start = 0
        for owners, piece in pieces(self.groups, block_rows(self.groups)):
            values[start : start + piece.n_rows] = np.column_stack(function(piece.rows(), piece, owners))
            start += piece.n_rows
        return replace(self, values=Groups(values, self.groups.offsets), centre=centre)


def kept_vectors(groups: Groups, order: int) -> tuple[KeptVectors, ...]:
    """The vectors themselves, by reference, if moments above the second order are needed."""
    return (KeptVectors(without_labels(groups)),) if order > 2 else ()


def pseudo_vectors(
    location: np.ndarray, strength: float, noise: object, statistics: Statistics
) -> tuple[KeptVectors, ...]:
    """Pseudo-vectors as one weighted vector with noise, if the statistics of the corpus keep vectors."""
    if not statistics.keeps_vectors:
        return ()
    return (KeptVectors(Groups(location[None], [0, 1], weights=[strength]), noise),)


def _take(value: Any, key: Rows) -> Any:
    if isinstance(value, tuple):
        return tuple(item[key] for item in value)
    return value[key] if isinstance(value, np.ndarray | Groups) else value


def _concatenate(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, tuple):
        return tuple(_concatenate(list(items)) for items in zip(*values, strict=True))
    if isinstance(first, KeptVectors):
        return replace(first, groups=Groups.concatenate([kept.groups for kept in values]))
    if isinstance(first, Groups):
        return Groups.concatenate(values)
    return np.concatenate(values) if isinstance(first, np.ndarray) else first


def _row_nbytes(value: object) -> int:
    if isinstance(value, tuple):
        return sum(_row_nbytes(item) for item in value)
    if isinstance(value, KeptVectors):
        return _row_nbytes(value.groups)
    if isinstance(value, Groups):
        return 8 * value.n_features * int(value.sizes.max(initial=0))
    return value.nbytes // max(1, len(value)) if isinstance(value, np.ndarray) else 0


def by_blocks(
    groups: Groups, moments: Callable[[Groups], tuple[np.ndarray, ...]], merge: Callable[..., Any] | None = None
) -> tuple[np.ndarray, ...]:
    """Moments of groups, computed for blocks that fit into the working memory; larger groups in pieces.

    `moments` returns weights, means and centred power sums, as `merge_moments` takes them, or what `merge` takes.
    """
    joined: tuple[np.ndarray, ...] = ()
    for block in blocks(groups):
        some = groups[block]
        if some.n_rows > block_rows(some):  # a single group
            found = reduce(merge or merge_moments, (moments(piece) for _, piece in pieces(some, block_rows(some))))
        else:
            found = moments(some)
        joined = joined or tuple(np.empty((len(groups), *moment.shape[1:])) for moment in found)
        for whole, moment in zip(joined, found, strict=True):
            whole[block] = moment
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
        centred = vectors - per_vector(mean, block)
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
    share_a: np.ndarray  # of the first group in the total weight
    share_b: np.ndarray
    between: np.ndarray  # n m / (n + m), the weight of the squared difference
    kept: tuple[KeptVectors, ...] = ()

    def remainder(self, values: np.ndarray, whole: np.ndarray, signed: bool = False) -> np.ndarray:
        """Sums over the vectors that remain, given beside `whole`, the sums over all vectors.

        A sum of squares that is not above the rounding errors of `whole` becomes 0. `signed` sums have no such limit.
        """
        remains = (self.n > 0).reshape(-1, *[1] * (values.ndim - 1))
        return np.where(remains & (signed | (values > _NOTHING * whole)), values, 0)


def merge(a: Statistics, b: Statistics) -> Merge:
    """Pool weights, means and kept vectors, row by row, without the numbers that refer to the means of groups."""
    kept = tuple(replace(kept, values=None, centre=None) for kept in a.kept + b.kept)
    return replace(merge_means(a.n, a.mean, b.n, b.mean), kept=kept)


def unmerge(a: Statistics, b: Statistics) -> Merge:
    """The groups of `a` without those of `b`, whose vectors get negative weights: sums over them cancel."""
    removed = (kept.groups for kept in b.kept)
    negative = tuple(KeptVectors(packed(g.vectors, g.offsets, g.indices, -g.row_weights)) for g in removed)
    kept = tuple(replace(kept, values=None, centre=None) for kept in a.kept)
    return replace(unmerge_means(a.n, a.mean, b.n, b.mean), kept=kept + negative)


def merge_means(n: np.ndarray, mean: np.ndarray, m: np.ndarray, other: np.ndarray) -> Merge:
    """Pool weights and means of two collections, row by row."""
    total = n + m
    divisor = np.where(total > 0, total, 1)
    delta = other - mean
    share_b = m / divisor
    return Merge(total, mean + delta * share_b[:, None], delta, n / divisor, share_b, n * share_b)


def merge_moments(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Pool weights, means and centred power sums of orders 2 to 4, as many as are given, row by row (Pebay 2008)."""
    u = merge_means(*a[:2], *b[:2])
    if len(a) == 2:
        return u.n, u.mean
    square = u.delta**2
    m2 = a[2] + b[2] + u.between[:, None] * square
    if len(a) == 3:
        return u.n, u.mean, m2
    p, q, between = u.share_a[:, None], u.share_b[:, None], u.between[:, None]
    m3 = a[3] + b[3] + between * (p - q) * square * u.delta + 3 * u.delta * (p * b[2] - q * a[2])
    m4 = (
        a[4]
        + b[4]
        + between * (p**2 - p * q + q**2) * square**2
        + 6 * square * (p**2 * b[2] + q**2 * a[2])
        + 4 * u.delta * (p * b[3] - q * a[3])
    )
    return u.n, u.mean, m2, m3, m4


def unmerge_means(n: np.ndarray, mean: np.ndarray, m: np.ndarray, other: np.ndarray) -> Merge:
    """Weights and means of one collection without another, row by row: `merge_means` with negative weights."""
    u = merge_means(n, mean, -np.minimum(m, n), other)
    remains = u.n > _NOTHING * n
    return replace(u, n=np.where(remains, u.n, 0), mean=np.where(remains[:, None], u.mean, 0))


def unmerge_moments(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Weights, means and centred power sums of `a` without `b`, row by row: `merge_moments` with negative sums."""
    u = unmerge_means(*a[:2], *b[:2])
    n, mean, *sums = b
    difference = merge_moments(a, (-np.minimum(n, a[0]), mean, *(-power for power in sums)))
    return u.n, u.mean, *(u.remainder(difference[k], a[k], signed=k == 3) for k in range(2, len(a)))


def sum_over_vectors(groups: Groups, term: Callable[[np.ndarray, Groups, slice], np.ndarray]) -> np.ndarray:
    """Weighted sum over each group's vectors of ``term(vectors, piece, owners)``, in pieces of bounded size.

    `piece` has the vectors as groups, and `owners` is the slice of the groups that they belong to. `term` returns one
    row per vector; its columns, if any, are summed separately.
    """
    some = pieces(groups, block_rows(groups)) if groups.n_rows else [(slice(0, len(groups)), groups)]
    sums = np.zeros(())
    for owners, piece in some:
        values = piece.sum(term(piece.rows(), piece, owners))
        if not sums.shape:
            sums = np.zeros((len(groups), *values.shape[1:]))
        sums[owners] += values
    return sums


def corpus_mean(statistics: Statistics) -> tuple[float, np.ndarray, np.ndarray]:
    """Weight and mean of all groups together, and each group's deviation from that mean."""
    n = statistics.n.sum()
    mean = statistics.n @ statistics.mean / n
    return n, mean, statistics.mean - mean


def padded(collections: Sequence[Groups]) -> np.ndarray:
    """The rows of parallel collections as one (n_groups, n_rows, n_features) array, where missing rows are zero."""
    arrays = []
    for groups in collections:
        width = int(groups.sizes.max(initial=0))
        array = np.zeros((len(groups), width, groups.n_features))
        array[np.arange(width) < groups.sizes[:, None]] = groups.rows()
        arrays.append(array)
    return np.concatenate(arrays, axis=1)


def products_with_means(
    kept: KeptVectors, means: np.ndarray, vectors: Callable[[Groups, slice, np.ndarray], np.ndarray]
) -> Iterator[tuple[slice, Groups, np.ndarray, np.ndarray]]:
    """Products of kept vectors with means, in pieces that stay in the processor's cache.

    `vectors` is a function of a piece, the slice of groups that it belongs to, and the numbers of its vectors. Yields
    that slice, the piece, the numbers, and the products.
    """
    step = min(count_within(8 * len(means), PRODUCTS), count_within(8 * kept.groups.n_features, FACTORS))
    for (owners, piece), (_, some) in zip(pieces(kept.groups, step), pieces(kept.values, step), strict=True):
        numbers = some.rows()
        yield owners, piece, numbers, vectors(piece, owners, numbers) @ means.T


def outer_squares(x: np.ndarray, p: np.ndarray, y: np.ndarray, q: np.ndarray, factor: float) -> np.ndarray:
    """The matrix p + q + factor x.y in one matrix product, with p and q as two more features."""
    return np.column_stack([x, p, np.ones_like(p)]) @ np.column_stack([factor * y, np.ones_like(q), q]).T
