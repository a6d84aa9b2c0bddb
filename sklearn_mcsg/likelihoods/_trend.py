"""Normal distribution around a line along the group: statistics, model, and all pairs by compiled kernels.

A vector at place p of its group is x ~ N(mean + slope (p - mean place), variance), feature by feature. A group is kept
as its line and the moments of its places and of its deviations from the line. Deviations from the line of a union
follow from those of its parts without cancellation: with s the difference of the two lines at the mean place of a part
and g that of their slopes, a deviation r at place p becomes r + s + g (p - mean place), and

    sum (r + s + g q)^2 = sum r^2 + n s^2 + g^2 sum q^2,    q = p - mean place,

because neither r nor q has a mean, and r has no slope. All terms are positive. Mixed moments of higher order, for the
TIC, expand in the same way. Every vector carries noise of variance `reg_covar`, as in the diagonal model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any, ClassVar

import numpy as np

from sklearn_mcsg.groups import Groups, placed
from sklearn_mcsg.groups.blocks import per_vector
from sklearn_mcsg.likelihoods._base import ArrayUnions, Likelihood, Unions, load_kernels
from sklearn_mcsg.likelihoods._diagonal import FeatureScale
from sklearn_mcsg.likelihoods._priors import (
    LOG_2PI,
    NormalGammaTrend,
    check_prior,
    learn_kappa,
    learn_shape,
    representable,
)
from sklearn_mcsg.likelihoods._statistics import Statistics, by_blocks, mean_of, merge_means, unmerge_means

LEAST_REACH = 1e-20  # of the weight: places that vary less are equal but for rounding, and have no slope
_ROUNDING = 1e-20  # of the squares along a line: a smaller scatter about the line is a rounding error
_MIXED = (1, 2), (2, 1), (3, 0), (1, 3), (2, 2), (3, 1), (4, 0)  # powers of deviations and places in `mixed`


@dataclass(frozen=True, eq=False)
class TrendMoments(Statistics):
    """Lines of groups, and centred moments of their places and of the deviations from the lines.

    Attributes
    ----------
    slope : ndarray of shape (n_groups, n_features)
        Slope of the line; 0 where the places do not vary.
    scatter : ndarray of shape (n_groups, n_features)
        Sum of the squared deviations from the line.
    place, reach : ndarray of shape (n_groups,)
        Mean of the places, and their centred sum of squares.
    mixed : ndarray of shape (n_groups, 7, n_features), default=None
        Sums of products of powers of deviations and centred places, third and fourth order, if needed.
    place_moments : ndarray of shape (n_groups, 2), default=None
        Centred third and fourth power sums of the places, if needed.
    """

    slope: np.ndarray
    scatter: np.ndarray
    place: np.ndarray
    reach: np.ndarray
    mixed: np.ndarray | None = None
    place_moments: np.ndarray | None = None
    reg_covar: float = field(kw_only=True)

    @property
    def moments(self) -> tuple[np.ndarray, ...]:
        """All arrays, as far as they are kept."""
        higher = () if self.mixed is None or self.place_moments is None else (self.mixed, self.place_moments)
        return self.n, self.mean, self.slope, self.scatter, self.place, self.reach, *higher

    @property
    def variance(self) -> np.ndarray:
        return representable(self.scatter / self.n[:, None] + self.reg_covar)

    @property
    def log_variance(self) -> np.ndarray:
        """Log variances, summed over features."""
        return np.log(self.variance).sum(axis=1)

    @property
    def has_trend(self) -> np.ndarray:
        """Whether the places of each group vary."""
        return self.reach > LEAST_REACH * self.n

    @property
    def length(self) -> np.ndarray:
        """Standard deviation of the places."""
        return np.sqrt(self.reach / self.n)

    def at(self, place: np.ndarray) -> np.ndarray:
        """Values of the lines at a place of each group."""
        return self.mean + self.slope * (place - self.place)[:, None]

    def times(self, factor: np.ndarray) -> TrendMoments:
        """The same moments of vectors whose weights are multiplied by a factor for each group."""
        column = factor[:, None]
        scaled = replace(self, n=factor * self.n, scatter=column * self.scatter, reach=factor * self.reach)
        if self.mixed is None or self.place_moments is None:
            return scaled
        mixed, place_moments = column[:, :, None] * self.mixed, column * self.place_moments
        return replace(scaled, mixed=mixed, place_moments=place_moments)

    def united(self, prior: NormalGammaTrend) -> TrendMoments:
        """Groups united with the prior, which counts as vectors around its line: their scatter is twice the rate."""
        own = replace(self, mixed=None, place_moments=None)
        return _merged(own, _prior_group(prior, self.n_features, self.reg_covar))

    def log_rate(self, prior: NormalGammaTrend) -> np.ndarray:
        """Logarithms of the posterior rates, summed over features."""
        return np.log(0.5 * self.united(prior).scatter).sum(axis=1)

    def log_reach(self, prior: NormalGammaTrend) -> np.ndarray:
        """Logarithms of the weights of the posterior slopes."""
        return np.log(self.united(prior).reach)


class TrendUnions(Unions[TrendMoments]):
    """Sums over features for all unions, by compiled kernels, or by pooling if the range is too wide for products."""

    compiled = ("trend_log_products_float64", "weighted_by_total")

    @classmethod
    def is_usable_for(cls, likelihood: Likelihood[TrendMoments], left: TrendMoments, right: TrendMoments) -> bool:
        return left.mixed is None

    @staticmethod
    def pair_nbytes(left: TrendMoments, right: TrendMoments) -> int:
        return 32  # small, so that blocks are large and preparing both sides costs little

    @property
    def log_variance(self) -> np.ndarray:
        """Log variances, summed over features: a new array each time, which the caller may overwrite."""
        return self._log_products(_noisy(self.left), _noisy(self.right), times=self.n_features)

    def log_rate(self, prior: NormalGammaTrend) -> np.ndarray:
        return self._log_products(self.left.united(prior), self.right) - self.n_features * np.log(2)

    def log_reach(self, prior: NormalGammaTrend) -> np.ndarray:
        left, right = self.left.united(prior), self.right
        weight = left.n[:, None] * right.n / (left.n[:, None] + right.n)
        return np.log(left.reach[:, None] + right.reach + weight * (left.place[:, None] - right.place) ** 2)

    def _log_products(self, left: TrendMoments, right: TrendMoments, times: int = 0) -> np.ndarray:
        """Sums of the log scatters of all unions over the features, minus `times` the log total weight."""
        low, high, first, last = _bounds(left, right)
        scale = FeatureScale.of(low, high, first, last, left.n.max() * right.n.max(), self.dtype)
        sides = []
        for side, transposed in ((left, False), (right, True)):
            rows = 0 if transposed else -len(side) % load_kernels().ROWS
            sides += [np.concatenate([one, np.full(rows, 1.0)]) for one in (side.n, side.place, side.reach)]
            powers = [(side.mean - scale.centre, 1), (side.slope, 1), (side.scatter, 2)]
            sides += [scale.padded(array, power, rows, transposed) for array, power in powers]
        out = np.empty((len(sides[0]), len(right)))
        kernel = getattr(load_kernels(), f"trend_log_products_{scale.dtype.name}")
        kernel(*sides, scale.step, times, scale.unscaled, out)
        return out[: len(left)]


class TrendArrayUnions(ArrayUnions[TrendMoments]):
    """Log variances of all unions, summed over features."""

    @property
    def log_variance(self) -> np.ndarray:
        return self.summed_logs(self.left.scatter, self.right.scatter, self.left.reg_covar)

    def between(self) -> np.ndarray:
        """By how much the scatter of a union about its line exceeds those of its groups: see `_trend_log_products`."""
        left, right, xp = self.left, self.right, self.xp
        weight = left.n[:, None] * right.n[None, :] / self.n
        apart = right.place[None, :] - left.place[:, None]
        own = left.reach[:, None] + right.reach[None, :]
        reach = own + weight * apart**2
        varies = reach > LEAST_REACH * self.n
        weight = xp.where(varies, weight * own / xp.where(varies, reach, 1.0), weight)
        apart = xp.where(varies, apart, 0.0)
        share = right.reach[None, :] / xp.where(own > 0, own, 1.0)
        step = right.mean[None, :, :] - left.mean[:, None, :]
        step -= (apart * (1 - share))[:, :, None] * left.slope[:, None, :]
        step -= (apart * share)[:, :, None] * right.slope[None, :, :]
        step *= step
        step *= weight[:, :, None]
        turn = right.slope[None, :, :] - left.slope[:, None, :]
        turn *= turn
        turn *= (left.reach[:, None] * share)[:, :, None]
        step += turn
        return step


class TrendGaussian(Likelihood[TrendMoments]):
    r"""Normal distribution around a line along an ordered group, with a variance for each feature (``"trend"``).

    The mean of a group moves from its first vector to its last:

    .. math::

        x_t \sim N(\mu + \beta p_t, \sigma^2), \quad
        L = -\frac{n}{2} \sum_k (\ln 2\pi\sigma_k^2 + 1), \quad
        \sigma_k^2 = \frac{M_{2,k} - C_k^2 / P}{n} + \varepsilon, \quad k = 3d,

    where M is the scatter of the vectors, P that of their places, and C the sum of products of both. Places are the
    order of the vectors, from -1 to 1, or the `positions` of `Groups`. Where all places of a group are equal, as in a
    group of one vector, the slope is 0 and the model is that of `DiagonalGaussian`.

    Use it for sequences: words of a text, frames of a sound, windows of a sensor. Two groups of the same vectors in the
    opposite order are then different. Order inside a set makes no sense. In `ModelComparisonSegmenter` every row is a
    group of one vector, at place 0, so segments have no slope.

    Parameters
    ----------
    prior : NormalGammaTrend, default=None
        Prior for ``criterion="bayes"``; ``None`` learns it from the fitted corpus.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity, TrendGaussian
    >>> rising, falling = [[0.0], [1.1], [1.9], [3.0]], [[3.0], [1.9], [1.1], [0.0]]
    >>> ModelComparisonSimilarity("diag").pairwise([rising, falling]).round(1)
    array([[4., 4.],
           [4., 4.]])
    >>> ModelComparisonSimilarity(TrendGaussian()).pairwise([rising, falling]).round(1)
    array([[  6. , -38.7],
           [-38.7,   6. ]])
    """

    unions = TrendUnions
    array_unions = TrendArrayUnions
    uses_positions = True
    has_feature_coordinates = True

    _parameter_constraints: ClassVar[dict] = {"prior": [NormalGammaTrend, None]}

    def __init__(self, prior: NormalGammaTrend | None = None):
        self.prior = prior

    def statistics(self, groups: Groups, *, reg_covar: float, order: int) -> TrendMoments:
        check_prior(self.prior, NormalGammaTrend, groups.n_features, scales=groups.n_features)

        def merge(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
            return _merged(*(TrendMoments(*moments, reg_covar=reg_covar) for moments in (a, b))).moments

        moments = by_blocks(placed(groups), lambda block: _line_moments(block, order), merge)
        return TrendMoments(*moments, reg_covar=reg_covar)

    def statistics_of_moments(
        self, n: np.ndarray, mean: np.ndarray, m2: np.ndarray, reg_covar: float, *line: np.ndarray
    ) -> TrendMoments:
        slope, place, reach = line
        return TrendMoments(n, mean, slope, m2, place, reach, reg_covar=reg_covar)

    def pool(self, a: TrendMoments, b: TrendMoments) -> TrendMoments:
        return _merged(a, b)

    def unpool(self, a: TrendMoments, b: TrendMoments) -> TrendMoments:
        b = replace(b, n=np.minimum(b.n, a.n))
        means = unmerge_means(a.n, a.mean, b.n, b.mean)
        places = unmerge_means(a.n, a.place[:, None], b.n, b.place[:, None])
        return _fitted(means.n, means.mean, places.mean[:, 0], (a, b.times(-np.ones(len(b)))), means.remainder)

    def log_likelihood(self, statistics: Any) -> np.ndarray:
        return statistics.weighted(statistics.log_variance, statistics.n_features * (LOG_2PI + 1), -0.5)

    def vector_log_likelihood(
        self, statistics: TrendMoments, vectors: np.ndarray, positions: np.ndarray | None = None
    ) -> np.ndarray:
        """As `Likelihood` has it; without positions, the vectors are those of one group in their order."""
        variance = statistics.variance[:, None]
        away = (_positions_of(vectors, positions) - statistics.place[:, None])[:, :, None]
        deviation = vectors - statistics.mean[:, None] - statistics.slope[:, None] * away
        return -0.5 * (LOG_2PI + np.log(variance) + (deviation**2 + statistics.reg_covar) / variance)

    def n_parameters(self, n_features: int) -> int:
        return 3 * n_features

    def tic_penalty(self, statistics: TrendMoments) -> np.ndarray:
        n, reach = statistics.n[:, None], statistics.reach[:, None]
        variance = representable(statistics.variance, 1e-150)  # its square is used
        noise, mixed = statistics.reg_covar / variance, _mixed_of(statistics)
        kurtosis = mixed[4, 0] / n / variance / variance + noise * (6 - 3 * noise)
        # of the slope: squared deviations at the ends against those everywhere; 1 where places do not vary
        trend = statistics.has_trend[:, None]
        ends = np.divide(mixed[2, 2], variance * reach, out=1 - noise, where=trend) + noise
        return (0.5 * (kurtosis + 1) + ends).sum(axis=1)

    def log_evidence(self, statistics: TrendMoments | TrendUnions) -> np.ndarray:
        d = statistics.n_features
        evidence = self.prior.log_evidence(statistics, statistics.log_rate(self.prior), scales=d)
        return evidence + 0.5 * d * (np.log(self.prior.kappa_slope) - statistics.log_reach(self.prior))

    def balance(self, statistics: TrendMoments) -> TrendMoments:
        n = statistics.n
        share = np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
        return replace(statistics.times(share), n=np.sign(n))

    def coordinates(self, statistics: TrendMoments, corpus: TrendMoments) -> tuple[np.ndarray, ...]:
        deviation, turn = np.sqrt(corpus.variance), statistics.slope - corpus.slope
        variance = statistics.variance + turn**2 * (statistics.reach / statistics.n)[:, None]
        location = (statistics.mean - corpus.at(statistics.place)) / deviation
        return location, np.log(variance / corpus.variance) / np.sqrt(2), turn * corpus.length[:, None] / deviation

    def coordinate_shares(
        self,
        statistics: TrendMoments,
        corpus: TrendMoments,
        vectors: np.ndarray,
        weights: np.ndarray,
        positions: np.ndarray | None = None,
    ) -> tuple[np.ndarray, ...]:
        """As `Likelihood` has it; without positions, the vectors are those of one group in their order."""
        away = (_positions_of(vectors, positions) - statistics.place)[:, None]
        deviation, share = np.sqrt(corpus.variance), weights[:, None] / statistics.n
        square = np.square(vectors - statistics.mean - corpus.slope * away) + statistics.reg_covar
        _, scale, _ = self.coordinates(statistics, corpus)
        turn = weights[:, None] * away / (statistics.reach if statistics.has_trend else np.inf)
        return (
            share * (vectors - corpus.at(statistics.place)) / deviation,
            share * square / (corpus.variance * np.exp(np.sqrt(2) * scale)) * scale,
            turn * (vectors - statistics.mean) * corpus.length[:, None] / deviation,
        )

    def learn_prior(self, statistics: TrendMoments) -> NormalGammaTrend:
        """The prior by the method of moments, as `learn_shape` does; slopes are to their reach what means are to n.

        A mean is at the mean place of its group, where it has the variance (1 / kappa + place^2 / kappa_slope + 1 / n)
        / l around the line of the prior.
        """
        n, reach, place = statistics.n, statistics.reach, statistics.place
        varied = statistics.has_trend
        slope = reach @ statistics.slope / reach.sum() if varied.any() else np.zeros(statistics.n_features)
        mean = n @ (statistics.mean - np.outer(place, slope)) / n.sum()
        between = n @ (statistics.mean - mean - np.outer(place, slope)) ** 2
        along = statistics.slope**2 * reach[:, None]
        within = np.where(statistics.scatter > _ROUNDING * along, statistics.scatter, 0)  # 0 for two vectors
        kappa, alpha, variance = learn_shape(n, within, between, statistics.reg_covar, location=2)
        kappa_slope = 1.0
        if varied.any() and within.any():
            turns = reach @ (statistics.slope - slope) ** 2 / variance
            kappa_slope = learn_kappa(float(reach.sum()), turns, int(np.count_nonzero(varied)))
            moved = between / variance - n @ place**2 / kappa_slope
            kappa = learn_kappa(float(n.sum()), moved, int(np.count_nonzero(n)))
        return NormalGammaTrend(mean, kappa, alpha, (alpha - 1) * variance, slope, kappa_slope)

    def corpus_variances(self, statistics: TrendMoments) -> np.ndarray:
        whole = _corpus(statistics)
        return whole.scatter[0] / whole.n

    def pseudo_group(self, statistics: TrendMoments, strength: float) -> TrendMoments:
        """Pseudo-vectors around the line of the corpus, at its places."""
        whole = _corpus(statistics)
        one = replace(whole.times(strength / whole.n), n=np.array([strength]))
        if one.mixed is None or one.place_moments is None:
            return one
        variance = one.scatter / strength
        normal = {(2, 2): variance * one.reach[:, None], (4, 0): 3 * strength * variance**2}
        mixed = np.stack([normal.get(powers, np.zeros_like(variance)) for powers in _MIXED], axis=1)
        return replace(one, mixed=mixed)


def _positions_of(vectors: np.ndarray, positions: np.ndarray | None) -> np.ndarray:
    """Places of the vectors of one group."""
    return Groups(vectors, [0, len(vectors)]).row_positions if positions is None else positions


def _line_moments(block: Groups, order: int) -> tuple[np.ndarray, ...]:
    """Moments of groups with positions, as `TrendMoments` has them."""
    vectors, positions = block.rows(), block.row_positions
    n, mean = mean_of(block, vectors)
    _, place = mean_of(block, positions[:, None])
    away = positions[:, None] - per_vector(place, block)
    centred = vectors - per_vector(mean, block)
    reach = block.sum(away**2)
    slope = _ratio(block.sum(away * centred), reach, n)
    deviation = centred - away * per_vector(slope, block)
    moments = n, mean, slope, block.sum(deviation**2), place[:, 0], reach[:, 0]
    if order == 2:
        return moments
    mixed = np.stack([block.sum(deviation**i * away**j) for i, j in _MIXED], axis=1)
    return *moments, mixed, block.sum(np.hstack([away**3, away**4]))


def _ratio(cross: np.ndarray, reach: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Slopes from sums of products of vectors and places; 0 where the places do not vary."""
    return np.divide(cross, reach, out=np.zeros_like(cross), where=reach > LEAST_REACH * n[:, None])


def _merged(a: TrendMoments, b: TrendMoments) -> TrendMoments:
    """The unions of groups, row by row."""
    means, places = merge_means(a.n, a.mean, b.n, b.mean), merge_means(a.n, a.place[:, None], b.n, b.place[:, None])
    return _fitted(means.n, means.mean, places.mean[:, 0], (a, b))


def _corpus(statistics: TrendMoments) -> TrendMoments:
    """The union of all groups."""
    n = statistics.n.sum()
    mean, place = statistics.n @ statistics.mean / n, statistics.n @ statistics.place / n
    return _fitted(np.array([n]), mean[None], np.array([place]), (statistics,), whole=True)


def _fitted(
    n: np.ndarray,
    mean: np.ndarray,
    place: np.ndarray,
    parts: tuple[TrendMoments, ...],
    remainder: Callable[..., np.ndarray] | None = None,
    whole: bool = False,
) -> TrendMoments:
    """Fit lines to the unions of parts, row by row or of all rows of one part as a `whole`, whose means are known.

    `remainder` is called when groups are removed from the first part: with each sum, and with the first part's share of
    it. It sets rounding errors to 0.
    """

    def total(sums: list[np.ndarray], signed: bool = False) -> np.ndarray:
        joined = sums[0].sum(axis=0, keepdims=True) if whole else sum(sums[1:], sums[0])
        return joined if remainder is None else remainder(joined, sums[0], signed)

    shifts = [(part.place - place)[:, None] for part in parts]
    both = list(zip(parts, shifts, strict=True))
    reach = total([part.reach[:, None] + part.n[:, None] * shift**2 for part, shift in both])
    cross = total(
        [part.reach[:, None] * part.slope + part.n[:, None] * shift * (part.mean - mean) for part, shift in both],
        signed=True,
    )
    slope = _ratio(cross, reach, n)
    turned = [_turned(part, part.mean - mean - slope * shift, part.slope - slope) for part, shift in both]
    fitted = replace(
        parts[0],
        n=n,
        mean=mean,
        slope=slope,
        place=place,
        reach=reach[:, 0],
        scatter=total([one[2, 0] for one in turned]),
    )
    if fitted.mixed is None:
        return fitted
    moved = [_shifted(one, shift) for one, (_, shift) in zip(turned, both, strict=True)]
    mixed = [total([one[powers] for one in moved], signed=powers not in ((2, 2), (4, 0))) for powers in _MIXED]
    place_moments = np.hstack([total([one[0, k] for one in moved], signed=k == 3) for k in (3, 4)])
    return replace(fitted, mixed=np.stack(mixed, axis=1), place_moments=place_moments)


def _turned(part: TrendMoments, step: np.ndarray, turn: np.ndarray) -> dict[tuple[int, int], Any]:
    """Moments of deviations from another line, r + step + turn q, and of places q about their own means."""
    n, reach = part.n[:, None], part.reach[:, None]
    if part.mixed is None or part.place_moments is None:
        return {(2, 0): part.scatter + n * step**2 + reach * turn**2}
    third, fourth = part.place_moments.T[:, :, None]
    places = {(0, 0): n, (0, 2): reach, (0, 3): third, (0, 4): fourth}
    own = {**places, (2, 0): part.scatter, **_mixed_of(part)}
    turned: dict[tuple[int, int], Any] = dict(places)
    for i in range(1, 5):
        for j in range(5 - i):
            turned[i, j] = sum(
                comb(i, k) * comb(k, e) * step ** (k - e) * turn**e * own[i - k, j + e]
                for k in range(i + 1)
                for e in range(k + 1)
                if (i - k, j + e) in own
            )
    return turned


def _shifted(moments: dict[tuple[int, int], Any], shift: np.ndarray) -> dict[tuple[int, int], Any]:
    """Moments of the same deviations with places about another mean."""
    return {
        (i, j): sum(comb(j, k) * shift ** (j - k) * moments[i, k] for k in range(j + 1) if (i, k) in moments)
        for i, j in (*_MIXED, (0, 3), (0, 4))
    }


def _mixed_of(statistics: TrendMoments) -> dict[tuple[int, int], np.ndarray]:
    """Mixed moments by their powers."""
    mixed: Any = statistics.mixed
    return {powers: mixed[:, k] for k, powers in enumerate(_MIXED)}


def _prior_group(prior: NormalGammaTrend, n_features: int, reg_covar: float) -> TrendMoments:
    """The prior as one group: `kappa` vectors around its line, whose places have the reach `kappa_slope`."""
    rows = [
        np.broadcast_to(np.asarray(value, dtype=float), (1, n_features))
        for value in (prior.mean, prior.slope, prior.beta)
    ]
    n, reach = np.array([prior.kappa]), np.array([prior.kappa_slope])
    return TrendMoments(n, rows[0], rows[1], 2 * rows[2], np.zeros(1), reach, reg_covar=reg_covar)


def _noisy(statistics: TrendMoments) -> TrendMoments:
    """Statistics whose scatter contains the noise."""
    return replace(statistics, scatter=statistics.scatter + statistics.n[:, None] * statistics.reg_covar)


def _bounds(left: TrendMoments, right: TrendMoments) -> tuple[np.ndarray, ...]:
    """The least and the largest scatter that a union of any two groups may have, and the range of the means."""

    def largest(a: np.ndarray, b: np.ndarray) -> float:
        return a.max() * b.max() / max(a.max() + b.max(), np.finfo(float).tiny)

    sides = left, right
    first, last = (extreme([extreme(side.mean, axis=0) for side in sides], axis=0) for extreme in (np.min, np.max))
    steepest = np.max([np.abs(side.slope).max(axis=0) for side in sides], axis=0)
    length = np.ptp(np.concatenate([side.place for side in sides]))
    low = sum(side.scatter.min(axis=0) for side in sides)
    high = sum(side.scatter.max(axis=0) for side in sides)
    high = high + largest(left.n, right.n) * (last - first + length * steepest) ** 2
    return low, high + largest(left.reach, right.reach) * (2 * steepest) ** 2, first, last
