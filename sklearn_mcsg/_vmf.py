"""Von Mises-Fisher likelihood: groups of directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sklearn_mcsg import _special
from sklearn_mcsg._all_pairs import DirectionPairs, product_nbytes
from sklearn_mcsg._likelihood import Fit, Likelihood, kept_parts, pseudo_parts
from sklearn_mcsg._statistics import Part, Statistics, by_blocks, corpus_mean, mean_of, merge, sum_over_parts
from sklearn_mcsg.groups import Groups

_BESSEL_NBYTES = 2**10  # of the series of one Bessel function, temporary arrays included
_CONCENTRATIONS = {"exact": _special.concentration, "banerjee": _special.approximate_concentration}


@dataclass(frozen=True, eq=False)
class _Resultants(Statistics):
    """Mean resultant vectors, noise included."""

    parts: tuple[Part, ...]
    reg_covar: float


@dataclass(frozen=True)
class Cloud:
    """Moments of a von Mises-Fisher distribution around a direction."""

    length: float  # of the mean
    transverse: float  # second moment in any direction across
    axial: float  # variance along

    @classmethod
    def of(cls, kappa: float, n_features: int) -> Cloud:
        length = float(_special.mean_length(kappa, n_features))
        return cls(
            length,
            length / kappa if kappa > 0 else 1 / n_features,
            float(_special.mean_length_derivative(kappa, n_features)),
        )

    @classmethod
    def noise(cls, reg_covar: float, n_features: int) -> Cloud:
        """Of the observation noise, whose concentration is 1 / reg_covar."""
        return cls.of(1 / reg_covar, n_features) if reg_covar > 0 else cls(1.0, 0.0, 0.0)


class VonMisesFisher(Likelihood):
    r"""Von Mises-Fisher distribution of the vectors' directions (``"vmf"``).

    .. math::

        L = n (\kappa \bar R - \ln Z_d(\kappa)), \quad \bar R = \|\textstyle\sum_i u_i\|/n, \quad
        A_d(\kappa) = \bar R, \quad k = d, \quad
        \mathrm{tr}(IJ^{-1}) = \frac{\mathrm{Var}(t)}{A_d'(\kappa)} + \frac{\kappa (1 - \overline{t^2})}{\bar R},

    with unit vectors :math:`u_i` and :math:`t_i = u_i \cdot \mu`. It is a density on the sphere: its values must not be
    compared with those of the Gaussian likelihoods. It has no conjugate prior in closed form, hence no ``"bayes"``.

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

    def __init__(self, concentration: str = "exact"):
        self.concentration = concentration

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> _Resultants:
        if groups.n_features < 2:
            raise ValueError("likelihood='vmf' compares directions and needs at least 2 features, got n_features = 1.")
        if self.concentration not in _CONCENTRATIONS:
            raise ValueError(f"concentration must be one of {sorted(_CONCENTRATIONS)}, got {self.concentration!r}.")
        _check_directions(groups)
        n, mean = by_blocks(groups, lambda block: mean_of(block, _unit(block.rows())))
        length = Cloud.noise(reg_covar, groups.n_features).length
        return _Resultants(n, length * mean, kept_parts(groups, order), reg_covar)

    def pool(self, a: _Resultants, b: _Resultants) -> _Resultants:
        u = merge(a, b)
        return _Resultants(u.n, u.mean, a.parts + b.parts, a.reg_covar)

    def pooled(self, a: _Resultants, b: _Resultants, precision: np.dtype | None = None) -> Fit:
        return DirectionPairs(self, a, b) if precision and self.concentration == "exact" else super().pooled(a, b)

    def pair_nbytes(self, a: _Resultants, b: _Resultants, precision: np.dtype | None = None) -> int:
        exact = precision and self.concentration == "exact"
        return product_nbytes(a, b) if exact else super().pair_nbytes(a, b) + _BESSEL_NBYTES

    def clouds(self, statistics: _Resultants) -> Iterator[tuple[Groups, Cloud]]:
        """The vectors of the groups, and how the noise spreads around each."""
        noise = Cloud.noise(statistics.reg_covar, statistics.n_features)
        return ((part.rows, part.noise or noise) for part in statistics.parts)

    @staticmethod
    def directions(rows: Groups) -> np.ndarray:
        """Their unit vectors."""
        return _unit(rows.rows())

    def _fit(self, statistics: _Resultants) -> tuple[np.ndarray, np.ndarray]:
        """Mean resultant length and concentration; a length of 1, to rounding, has none."""
        length = np.linalg.norm(statistics.mean, axis=1)
        finite = length < 1 - 4 * np.finfo(float).eps
        kappa = _CONCENTRATIONS[self.concentration](np.where(finite, length, 0), statistics.n_features)
        return length, np.where(finite, kappa, np.inf)

    def log_likelihood(self, statistics: _Resultants) -> np.ndarray:
        length, kappa = self._fit(statistics)
        finite = np.isfinite(kappa)
        k = np.where(finite, kappa, 0)
        value = -k * (1 - length) - _special.log_normalizer(k, statistics.n_features)
        return statistics.n * np.where(finite, value, np.inf)

    def vector_log_likelihood(self, statistics: _Resultants, vectors: np.ndarray) -> np.ndarray:
        length, kappa = (value[:, None] for value in self._fit(statistics))
        noise = Cloud.noise(statistics.reg_covar, statistics.n_features)
        # how far the vector stays behind the mean in its direction: 0 on average
        behind = statistics.mean[:, None] - noise.length * _unit(vectors)
        lag = np.einsum("ijk,ik->ij", behind, statistics.mean) / np.where(length > 0, length, 1)
        return -kappa * (1 - length + lag) - _special.log_normalizer(kappa, statistics.n_features)

    def n_parameters(self, n_features: int) -> int:
        return n_features

    def tic_penalty(self, statistics: _Resultants) -> np.ndarray:
        d = statistics.n_features
        length, kappa = self._fit(statistics)
        direction = statistics.mean / np.where(length > 0, length, 1)[:, None]
        expected = _special.mean_length(kappa, d)  # the length itself, when kappa is exact
        noise = Cloud.noise(statistics.reg_covar, d)

        def term(vectors: np.ndarray, rows: Groups, block: slice, cloud: Cloud | None) -> np.ndarray:
            cloud = cloud or noise
            unit, axis = _unit(vectors), rows.spread(direction[block])
            t = (unit * axis).sum(axis=1)
            rest = np.square(unit - t[:, None] * axis).sum(axis=1)  # 1 - t^2 without cancellation
            error = cloud.length * t - rows.spread(expected[block])
            along = error**2 + cloud.transverse * rest + cloud.axial * t**2
            across = (1 - d * cloud.transverse) * rest + (d - 1) * cloud.transverse
            return np.column_stack([along, across])

        along, across = sum_over_parts(statistics.parts, term).T
        ratio = np.divide(kappa, length, out=np.full_like(kappa, d), where=length > 0)
        return (along / _special.mean_length_derivative(kappa, d) + ratio * across) / statistics.n

    def pseudo_group(self, statistics: _Resultants, strength: float) -> _Resultants:
        _, mean, _ = corpus_mean(statistics)
        length = np.linalg.norm(mean)
        parts: tuple[Part, ...] = ()
        if statistics.parts:
            kappa = float(_special.concentration(length, len(mean)))
            parts = pseudo_parts(mean / (length or 1.0), strength, Cloud.of(kappa, len(mean)), statistics)
        return _Resultants(np.array([strength]), mean[None], parts, statistics.reg_covar)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors at length 1, through a scale at which squares neither over- nor underflow; zero stays zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    vectors = vectors / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def _check_directions(groups: Groups) -> None:
    for block in groups.blocks():
        rows = groups[block]
        blank = ~rows.rows().any(axis=1)
        if rows.weights is not None:
            blank &= rows.weights > 0
        if blank.any():
            i = block.start + rows.group_of(int(np.argmax(blank)))
            raise ValueError(
                f"Group {i} holds a zero vector, which has no direction: likelihood='vmf' cannot use it. "
                f"Remove such vectors or give them weight 0."
            )
