"""Von Mises-Fisher distribution of directions: statistics, model, and all pairs by one matrix product and a table.

The log-likelihood per vector depends on the mean resultant length R alone. For all pairs, R comes from one matrix
product and the functions of R from tables of cubic pieces. The TIC needs the projections of one side's vectors on the
other side's means: one more matrix product, by blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.blocks import block_rows, group_of, per_vector, pieces
from sklearn_mcsg.likelihoods import bessel
from sklearn_mcsg.likelihoods._base import Likelihood, Segments, Unions, load_kernels
from sklearn_mcsg.likelihoods._statistics import (
    KeptVectors,
    Statistics,
    by_blocks,
    corpus_mean,
    kept_vectors,
    mean_of,
    merge,
    outer_squares,
    products_with_means,
    pseudo_vectors,
    sum_over_vectors,
    unmerge,
)
from sklearn_mcsg.storage import register

_BESSEL_NBYTES = 2**10  # for the series of one Bessel function, temporary arrays included
_CONCENTRATIONS = {"exact": bessel.concentration, "banerjee": bessel.approximate_concentration}
_MIN_EXPONENT = -1000  # powers of two beyond it have no inverse
_CANCELLED = 1e-13  # mean resultant length of directions that cancel, but for rounding
_NODES = 1024.0  # table entries per unit of the variable


@register
@dataclass(frozen=True)
class AxialMoments:
    """Moments of a von Mises-Fisher distribution about its axis, for noise and for pseudo-vectors."""

    length: float  # of the mean
    transverse: float  # second moment in any direction across the axis
    axial: float  # variance along the axis

    @classmethod
    def of(cls, kappa: float, n_features: int) -> AxialMoments:
        length = float(bessel.mean_length(kappa, n_features))
        axial = float(bessel.mean_length_derivative(kappa, n_features))
        return cls(length, length / kappa if kappa > 0 else 1 / n_features, axial)

    @classmethod
    def noise(cls, reg_covar: float, n_features: int) -> AxialMoments:
        """Moments of the observation noise, whose concentration is 1 / reg_covar."""
        return cls.of(1 / reg_covar, n_features) if reg_covar > 0 else cls(1.0, 0.0, 0.0)

    def squares(self, t: np.ndarray, rest: np.ndarray, expected: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean squares under this distribution around u: along an axis, minus `expected`, and across it.

        `t` is the projection of u on the axis and `rest` is 1 - t^2.
        """
        along = (self.length * t - expected) ** 2 + self.transverse * rest + self.axial * t**2
        across = (1 - n_features * self.transverse) * rest + (n_features - 1) * self.transverse
        return along, across


@dataclass(frozen=True, eq=False)
class Resultants(Statistics):
    """Mean resultant vectors, noise included."""

    reg_covar: float
    concentration: str

    @property
    def row_nbytes(self) -> int:
        return super().row_nbytes + _BESSEL_NBYTES

    def model(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean resultant length and concentration, which is infinite if the length is 1 up to rounding."""
        length = np.linalg.norm(self.mean, axis=1)
        finite = length < 1 - 4 * np.finfo(float).eps
        kappa = _CONCENTRATIONS[self.concentration](np.where(finite, length, 0), self.n_features)
        return length, np.where(finite, kappa, np.inf)

    @property
    def log_density(self) -> np.ndarray:
        """Mean log density of the vectors."""
        length, kappa = self.model()
        finite = np.isfinite(kappa)
        k = np.where(finite, kappa, 0)
        return np.where(finite, -k * (1 - length) - bessel.log_normalizer(k, self.n_features), np.inf)

    @property
    def curvatures(self) -> tuple[np.ndarray, np.ndarray]:
        """A'(kappa) and kappa / R: the information about the concentration and about the direction."""
        length, kappa = self.model()
        return bessel.mean_length_derivative(kappa, self.n_features), _ratio(kappa, length, self.n_features)

    def noisy_vectors(self) -> Iterator[tuple[KeptVectors, AxialMoments]]:
        """The vectors of the groups, and the distribution around each."""
        noise = AxialMoments.noise(self.reg_covar, self.n_features)
        return ((kept, kept.noise or noise) for kept in self.kept)

    def squares(self) -> np.ndarray:
        """Sums over the vectors of the squared error along the mean direction, and of the square across it."""
        length, kappa = self.model()
        direction = self.mean / np.where(length > 0, length, 1)[:, None]
        expected = bessel.mean_length(kappa, self.n_features)  # the length itself, when kappa is exact

        def term(noise: AxialMoments, vectors: np.ndarray, piece: Groups, owners: slice) -> np.ndarray:
            unit, axis = _unit(vectors), per_vector(direction[owners], piece)
            t = (unit * axis).sum(axis=1)
            rest = np.square(unit - t[:, None] * axis).sum(axis=1)  # 1 - t^2 without cancellation
            return np.column_stack(noise.squares(t, rest, per_vector(expected[owners], piece), self.n_features))

        sums = (sum_over_vectors(kept.groups, partial(term, noise)) for kept, noise in self.noisy_vectors())
        return np.sum(list(sums), axis=0).T


class ResultantUnions(Unions[Resultants]):
    """One matrix product for the resultants, then tables of functions of their length."""

    compiled = ("gap_of_resultants", "piecewise_cubic", "weighted_by_total")

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[Resultants], left: Resultants, right: Resultants) -> bool:
        return left.concentration == "exact"  # the tables hold exact values only

    @staticmethod
    def pair_nbytes(left: Resultants, right: Resultants) -> int:
        return 128  # a few passes over the block, after a matrix product

    @lazy
    def gap(self) -> np.ndarray:
        """One minus the squared mean resultant length."""
        x, y = (s.n[:, None] * s.mean for s in (self.left, self.right))
        gap = outer_squares(x, np.square(x).sum(axis=1), y, np.square(y).sum(axis=1), 2.0)
        load_kernels().gap_of_resultants(gap, self.left.n, self.right.n)
        return gap

    @property
    def log_density(self) -> np.ndarray:
        return _lookup("log_density", self.gap, self.n_features)

    @property
    def curvatures(self) -> tuple[np.ndarray, np.ndarray]:
        slope, ratio = (_lookup(name, self.gap, self.n_features) for name in ("log_slope", "log_ratio"))
        return np.exp(slope), np.exp(ratio)

    def squares(self) -> np.ndarray:
        length = np.sqrt(1 - self.gap)
        sums = _squares_around_unions(self.left, self.right, length)
        mirrored = sums if self.right is self.left else _squares_around_unions(self.right, self.left, length.T.copy())
        return sums + mirrored.swapaxes(1, 2)


class ResultantSegments(Segments[Resultants]):
    """Lengths of the resultants of segments by a compiled kernel, and a table of a function of them."""

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[Resultants], rows: Resultants) -> bool:
        return rows.concentration == "exact"

    @property
    def log_density(self) -> np.ndarray:
        """Mean log density of the vectors."""
        gap = self.computed("segment_gaps", self.rows.mean, self.start.n[0], self.start.mean[0], fill=1.0)
        return _lookup("log_density", gap, self.n_features)


class VonMisesFisher(Likelihood[Resultants]):
    r"""Von Mises-Fisher distribution of the vectors' directions (``"vmf"``).

    .. math::

        L = n (\kappa \bar R - \ln Z_d(\kappa)), \quad \bar R = \|\textstyle\sum_i u_i\|/n, \quad
        A_d(\kappa) = \bar R, \quad k = d, \quad
        \mathrm{tr}(IJ^{-1}) = \frac{\mathrm{Var}(t)}{A_d'(\kappa)} + \frac{\kappa (1 - \overline{t^2})}{\bar R},

    with unit vectors :math:`u_i` and :math:`t_i = u_i \cdot \mu`. It is a density on the sphere: do not compare its
    values with those of the other likelihoods. It has no conjugate prior in closed form, hence no ``"bayes"``.

    Parameters
    ----------
    concentration : {"exact", "banerjee"}, default="exact"
        Maximum-likelihood concentration, or the closed-form approximation that the paper uses.

    Examples
    --------
    >>> from sklearn_mcsg import VonMisesFisher
    >>> VonMisesFisher().n_parameters(300)
    300
    """

    unions = ResultantUnions
    segments = ResultantSegments

    def __init__(self, concentration: str = "exact"):
        self.concentration = concentration

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> Resultants:
        if groups.n_features < 2:
            raise ValueError("likelihood='vmf' compares directions and needs at least 2 features, got n_features = 1.")
        if self.concentration not in _CONCENTRATIONS:
            raise ValueError(f"concentration must be one of {sorted(_CONCENTRATIONS)}, got {self.concentration!r}.")
        _check_directions(groups)
        n, mean = by_blocks(groups, lambda block: mean_of(block, _unit(block.rows())))
        length = AxialMoments.noise(reg_covar, groups.n_features).length
        return Resultants(n, length * mean, reg_covar, self.concentration, kept=kept_vectors(groups, order))

    def pool(self, a: Resultants, b: Resultants) -> Resultants:
        u = merge(a, b)
        return Resultants(u.n, u.mean, a.reg_covar, a.concentration, kept=u.kept)

    def unpool(self, a: Resultants, b: Resultants) -> Resultants:
        u = unmerge(a, b)
        longest = AxialMoments.noise(a.reg_covar, a.n_features).length
        excess = np.maximum(np.linalg.norm(u.mean, axis=1) / longest, 1)[:, None]  # by rounding
        return Resultants(u.n, u.mean / excess, a.reg_covar, a.concentration, kept=u.kept)

    def for_pairs(self, statistics: Resultants) -> Resultants:
        """For each vector: the factors to unit length, and its direction's product with the group's resultant."""
        if all(kept.values is not None for kept in statistics.kept):
            return statistics
        resultants = statistics.n[:, None] * statistics.mean

        def values(vectors: np.ndarray, piece: Groups, owners: slice) -> list[np.ndarray]:
            factors = _to_unit_length(vectors)
            unit = _unit(vectors, *factors)
            return [*factors, (unit * per_vector(resultants[owners], piece)).sum(axis=1)]

        return replace(statistics, kept=tuple(kept.with_values(values, 3) for kept in statistics.kept))

    def log_likelihood(self, statistics: Resultants | ResultantUnions | ResultantSegments) -> np.ndarray:
        return statistics.weighted(statistics.log_density)

    def vector_log_likelihood(self, statistics: Resultants, vectors: np.ndarray) -> np.ndarray:
        length, kappa = (value[:, None] for value in statistics.model())
        noise = AxialMoments.noise(statistics.reg_covar, statistics.n_features)
        # how far the vector falls short of the mean along the mean direction: 0 on average
        behind = statistics.mean[:, None] - noise.length * _unit(vectors)
        lag = np.einsum("ijk,ik->ij", behind, statistics.mean) / np.where(length > 0, length, 1)
        return -kappa * (1 - length + lag) - bessel.log_normalizer(kappa, statistics.n_features)

    def n_parameters(self, n_features: int) -> int:
        return n_features

    def tic_penalty(self, statistics: Resultants | ResultantUnions) -> np.ndarray:
        (along, across), (slope, ratio) = statistics.squares(), statistics.curvatures
        return (along / slope + ratio * across) / statistics.n

    def coordinates(self, statistics: Resultants, corpus: Resultants) -> tuple[np.ndarray, np.ndarray]:
        length, kappa = statistics.model()
        direction = statistics.mean * _inverse_lengths(length)[:, None]
        return direction @ _tangent_axes(corpus), self._scale(kappa, corpus)[:, None]

    def coordinate_shares(
        self, statistics: Resultants, corpus: Resultants, vectors: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        length, kappa = statistics.model()
        noise = AxialMoments.noise(statistics.reg_covar, statistics.n_features)
        inverse = _inverse_lengths(length)
        parts = (weights / statistics.n * inverse * noise.length)[:, None] * _unit(vectors)
        share = parts @ statistics.mean.T * inverse
        return parts @ _tangent_axes(corpus), share * self._scale(kappa, corpus)

    def _scale(self, kappa: np.ndarray, corpus: Resultants) -> np.ndarray:
        """Arc length of concentrations from the corpus' own."""
        d = corpus.n_features
        finite = np.where(np.isfinite(kappa), kappa, 0)
        arc = bessel.arc_length(finite, d) - bessel.arc_length(corpus.model()[1], d)
        return np.where(np.isfinite(kappa), arc, np.inf)

    def pseudo_group(self, statistics: Resultants, strength: float) -> Resultants:
        _, mean, _ = corpus_mean(statistics)
        length = np.linalg.norm(mean)
        kept: tuple[KeptVectors, ...] = ()
        if statistics.keeps_vectors:
            kappa = float(bessel.concentration(length, len(mean)))
            kept = pseudo_vectors(mean / (length or 1.0), strength, AxialMoments.of(kappa, len(mean)), statistics)
        return Resultants(np.array([strength]), mean[None], statistics.reg_covar, statistics.concentration, kept=kept)


def _inverse_lengths(lengths: np.ndarray) -> np.ndarray:
    """One over mean resultant lengths; 0 for directions that cancel, which have no mean direction."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > _CANCELLED)


def _tangent_axes(corpus: Resultants) -> np.ndarray:
    """Orthonormal axes across the direction of the corpus, in units of the metric there, as columns.

    They are the coordinate axes except the first, reflected so that the first would lie along that direction.
    """
    d = corpus.n_features
    (length,), (kappa,) = corpus.model()
    direction = corpus.mean[0] / length if length > 0 else np.eye(d)[0]
    mirror = direction + np.copysign(1.0, direction[0]) * np.eye(d)[0]
    reflection = np.eye(d) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    return np.sqrt(kappa * length) * reflection[:, 1:]


def _squares_around_unions(near: Resultants, far: Resultants, length: np.ndarray) -> np.ndarray:
    """Sums over the vectors of each near group of the squares along and across the direction of each union."""

    def unit(piece: Groups, _: slice, numbers: np.ndarray) -> np.ndarray:
        return _unit(piece.rows(), *numbers[:, :2].T)

    resultant = (near.n[:, None] + far.n) * length
    inverse = 1 / np.where(resultant > 0, resultant, 1)
    sums = np.zeros((2, *length.shape))
    for kept, moments in near.noisy_vectors():
        noise = moments.length, moments.transverse, moments.axial, near.n_features
        for owners, piece, numbers, products in products_with_means(kept, far.n[:, None] * far.mean, unit):
            weights, shift = piece.row_weights, numbers[:, 2]
            rows = inverse[owners], length[owners]
            load_kernels().add_axial_squares(products, shift, weights, piece.offsets, *rows, noise, sums[:, owners])
    return sums


def _lookup(name: str, gap: np.ndarray, n_features: int) -> np.ndarray:
    """A function of mean resultant lengths, from one minus their squares and a table."""
    position = np.log(gap)
    table = _table(n_features, float(np.ceil(1 - position.min())))
    load_kernels().piecewise_cubic(position, table[name], _NODES)
    return position


@cache
def _table(n_features: int, end: float) -> dict[str, np.ndarray]:
    """Tables of functions of a mean resultant length R, in the variable -log(1 - R^2), smooth at both ends."""
    position = np.arange(int(end * _NODES) + 2) / _NODES
    length, gap = np.sqrt(-np.expm1(-position)), np.exp(-position)
    kappa = bessel.concentration(length, n_features)
    value = -kappa * gap / (1 + length) - bessel.log_normalizer(kappa, n_features)
    ratio = _ratio(kappa, length, n_features)
    slope = bessel.mean_length_derivative(kappa, n_features)
    splines = {
        "log_density": CubicHermiteSpline(position, value, 0.5 * ratio * gap),
        "log_ratio": CubicSpline(position, np.log(ratio)),
        "log_slope": CubicSpline(position, np.log(slope)),
    }
    return {name: np.ascontiguousarray(spline.c.T) for name, spline in splines.items()}


def _ratio(kappa: np.ndarray, length: np.ndarray, n_features: int) -> np.ndarray:
    """Concentration over mean resultant length, which tends to the number of features at 0."""
    return np.divide(kappa, length, out=np.full_like(kappa, n_features), where=length > 0)


def _unit(vectors: np.ndarray, *factors: np.ndarray) -> np.ndarray:
    """Vectors scaled to unit length; zero vectors stay zero."""
    scale, inverse = factors or _to_unit_length(vectors)
    unit = vectors * scale[:, None]
    unit *= inverse[:, None]
    return unit


def _to_unit_length(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two factors for each vector, because one would overflow: a power of two, and the rest."""
    _, exponent = np.frexp(np.abs(vectors).max(axis=1, initial=0))
    scale = np.ldexp(1.0, -np.maximum(exponent, _MIN_EXPONENT))
    length = np.linalg.norm(vectors * scale[:, None], axis=1)
    return scale, 1 / np.where(length > 0, length, 1)


def _check_directions(groups: Groups) -> None:
    for owners, rows in pieces(groups, block_rows(groups)):
        blank = ~rows.rows().any(axis=1) & (rows.row_weights > 0)
        if blank.any():
            i = owners.start + group_of(rows, int(np.argmax(blank)))
            raise ValueError(
                f"Group {i} holds a zero vector, which has no direction: likelihood='vmf' cannot use it. "
                f"Remove zero vectors or give them weight 0."
            )
