"""Coordinates of a likelihood, in which a model comparison is a squared distance, their principal axes, and points.

    Statistics --Coordinates--> one row per group --Axes--> centred, rotated, whitened

Both are plain objects that are learnt from a corpus in passes of bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import COORDINATES, count_within
from sklearn_mcsg.criteria import AIC
from sklearn_mcsg.engine.capabilities import check_arrays
from sklearn_mcsg.engine.model import GroupModel, raise_not_finite
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.likelihoods import Likelihood, Statistics
from sklearn_mcsg.storage import register

_ROUNDING = 1e-26  # variance of coordinates that are equal; they are of the order of 1
LEAST_EIGENVALUE = 1e-7  # of the largest: smaller ones are rounding
LARGEST_FACTOR = 1e100  # on coordinates: their squares, and sums of them, are far from the limits of double precision


@register
@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates of a likelihood around the model of a corpus.

    Attributes
    ----------
    model : GroupModel
        The likelihood, with the pseudo-vectors that every group receives.
    corpus : Statistics
        Statistics of one group with the mean and variance of the corpus.
    spread : float or ndarray of shape (n_features,)
        Factor on the coordinates of scale, or one for each feature.
    order : float
        Factor on the coordinates of order, which a likelihood of ordered groups has.
    """

    model: GroupModel
    corpus: Statistics
    spread: float | np.ndarray = 1.0
    order: float = 1.0

    @classmethod
    def around(
        cls,
        corpus: Statistics,
        likelihood: Likelihood,
        reg_covar: float,
        prior_strength: float,
        spread: float | np.ndarray = 1.0,
        order: float = 1.0,
    ) -> Coordinates:
        """The coordinates around a corpus, from what `corpus_of` returned or `merged_corpora` made of it."""
        if not len(corpus):
            raise ValueError("All groups are empty: there is no corpus to learn coordinates from.")
        model = _model_of(likelihood, reg_covar).learnt_from(corpus, prior_strength)
        around = cls(model, likelihood.pseudo_group(corpus, 1.0), spread, order)
        around.__mcsg_check__()
        return around

    def __mcsg_check__(self) -> None:
        """Raise unless factors are in their range, and those on the coordinates of scale are as many as these."""
        for name, factor in (("spread", self.spread), ("order", self.order)):
            if not ((np.asarray(factor) >= 0) & (np.asarray(factor) <= LARGEST_FACTOR)).all():
                raise ValueError(f"{name} must lie between 0 and {LARGEST_FACTOR:g}, got {factor}.")
        if isinstance(self.spread, np.ndarray):
            scale = self.model.likelihood.coordinates(self.corpus, self.corpus)[1]
            if self.spread.shape != scale.shape[1:]:
                raise ValueError(
                    f"spread must be a number or an array of shape {scale.shape[1:]}, one factor for each coordinate "
                    f"of scale, got shape {self.spread.shape}."
                )

    @property
    def width(self) -> int:
        """Number of coordinates: one for each parameter of the model."""
        return self.model.likelihood.n_parameters(self.corpus.n_features)

    @property
    def n_of_order(self) -> int:
        """Number of coordinates of order, which are the last ones; 0 if the groups of the likelihood have no order."""
        kinds = self.model.likelihood.coordinates(self.corpus, self.corpus)
        return kinds[2].shape[1] if len(kinds) > 2 else 0

    def names(self, features: Sequence[str]) -> list[str]:
        """Names of the coordinates: their kind, and the feature if there is one coordinate of the kind for each."""
        names = []
        kinds = self.model.likelihood.coordinates(self.corpus, self.corpus)
        for kind, width in zip(("location", "scale", "order"), (values.shape[1] for values in kinds), strict=False):
            if width == len(features):
                names += [f"{kind}_{feature}" for feature in features]
            else:
                names += [kind] if width == 1 else [f"{kind}{i}" for i in range(width)]
        return names

    def __call__(self, groups: Groups | Statistics, first: int = 0) -> np.ndarray:
        """Coordinates of groups, or of groups whose statistics are known; errors number groups from `first` on."""
        return self.of_statistics(_statistics_of(groups, self.model, first), first)

    def of_statistics(self, statistics: Statistics, first: int = 0) -> np.ndarray:
        """Coordinates of groups, from their statistics without pseudo-vectors."""
        statistics = self.model.padded(statistics)
        try:
            with np.errstate(all="ignore"):
                coordinates = self._scaled(self.model.likelihood.coordinates(statistics, self.corpus))
        except np.linalg.LinAlgError:  # of a covariance that has overflowed
            raise_not_finite("A covariance")
        finite = np.isfinite(coordinates).all(axis=1)
        if not finite.all():
            raise_not_finite(f"A coordinate of group {first + int(np.argmin(finite))}")
        return coordinates

    def shares(self, group: Groups, centre: np.ndarray) -> np.ndarray:
        """Part of each vector in the coordinates of its group, seen from a centre.

        What the pseudo-vectors add and what the centre takes away is divided among the vectors by weight.
        """
        statistics = self.model.padded(self.model.statistics(group))
        likelihood: Any = self.model.likelihood
        vectors = group.rows(), group.row_weights
        parts = self._scaled(
            likelihood.coordinate_shares(statistics, self.corpus, *vectors, **likelihood.places_of(group))
        )
        rest = self(group)[0] - centre - parts.sum(axis=0)
        return parts + np.outer(group.row_weights / group.totals, rest)

    def _scaled(self, kinds: tuple[np.ndarray, ...]) -> np.ndarray:
        """Coordinates of location, scale and, if there are any, order, side by side and by their factors."""
        factors: tuple[Any, ...] = 1.0, self.spread, self.order
        return np.hstack([factor * kind for factor, kind in zip(factors, kinds, strict=False)])


def corpus_of(groups: Groups | ArrayGroups | Statistics, likelihood: Likelihood, reg_covar: float) -> Statistics:
    """One group with the mean and variance of all vectors of some groups, in bounded memory; none if all are empty.

    Statistics of the groups may take their place.
    """
    most = likelihood.max_coordinate_features
    if most is not None and groups.n_features > most:
        raise ValueError(
            f"{type(likelihood).__name__} has coordinates up to {most} features, got {groups.n_features}: their number "
            f"grows with the square. Choose another likelihood, reduce the features, or set method='landmarks'."
        )
    model = _model_of(likelihood, reg_covar)
    if isinstance(groups, ArrayGroups):
        check_arrays(model)
    found = []
    for batch in batches(len(groups), likelihood.n_parameters(groups.n_features)):
        statistics = _statistics_of(groups[batch], model, batch.start)
        some = statistics.n > 0
        found.append(_as_one(statistics, likelihood) if some.any() else statistics[some])
    return merged_corpora(likelihood, *found)


def merged_corpora(likelihood: Likelihood, *parts: Statistics) -> Statistics:
    """The corpus that parts make up, again as one group."""
    whole = type(parts[0]).concatenate(parts)
    return _as_one(whole, likelihood) if len(whole) > 1 else whole


def _statistics_of(groups: Any, model: GroupModel, first: int) -> Statistics:
    return groups if isinstance(groups, Statistics) else model.statistics(groups, first)


def _as_one(statistics: Statistics, likelihood: Likelihood) -> Statistics:
    return likelihood.pseudo_group(statistics, float(statistics.n.sum()))


def _model_of(likelihood: Likelihood, reg_covar: float) -> GroupModel:
    return GroupModel(likelihood, AIC(), reg_covar, penalty_scale=1.0)


@register
@dataclass(frozen=True, eq=False)
class Moments:
    """Number, mean and scatter matrix of coordinates, which merge exactly."""

    n: int
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, coordinates: np.ndarray) -> Moments:
        mean = coordinates.mean(axis=0)
        centred = coordinates - mean
        return cls(len(coordinates), mean, centred.T @ centred)

    def merged(self, other: Moments) -> Moments:
        n = self.n + other.n
        delta = other.mean - self.mean
        scatter = self.scatter + other.scatter + self.n * other.n / n * np.outer(delta, delta)
        return Moments(n, self.mean + delta * (other.n / n), scatter)

    def __mcsg_check__(self) -> None:
        """Raise unless all parts describe the same coordinates, as those from a file may not."""
        shapes = self.mean.shape, self.scatter.shape
        numeric = self.mean.dtype.kind == self.scatter.dtype.kind == "f"
        if self.n < 2 or not numeric or shapes != ((self.mean.size,), (self.mean.size,) * 2):
            raise ValueError(f"moments of {self.n} groups, of shapes {shapes}")


def merged_moments(*parts: Moments) -> Moments:
    """The moments of all coordinates that parts were computed from."""
    return reduce(Moments.merged, parts)


@register
@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of coordinates.

    Attributes
    ----------
    mean : ndarray of shape (n_coordinates,)
        Mean of the coordinates.
    components : ndarray of shape (n_components, n_coordinates)
        Directions, in descending order of variance. The largest entry of each is positive.
    variance : ndarray of shape (n_components,)
        Variance of the coordinates along each direction.
    """

    mean: np.ndarray
    components: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, moments: Moments) -> Axes:
        """The axes along which coordinates vary by more than rounding; at least one."""
        values, vectors = np.linalg.eigh(moments.scatter / (moments.n - 1))
        values, vectors = np.where(values > _ROUNDING, values, 0)[::-1], vectors[:, ::-1]
        rank = max(1, int((values > LEAST_EIGENVALUE * values[0]).sum()))
        vectors = vectors[:, :rank]
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]
        return cls(moments.mean, (vectors * np.where(largest < 0, -1, 1)).T, values[:rank])

    @classmethod
    def unrotated(cls, moments: Moments) -> Axes:
        """The axes of the coordinates themselves, in their order."""
        return cls(moments.mean, np.eye(len(moments.mean)), np.diag(moments.scatter) / (moments.n - 1))

    def leading(self, n_components: int) -> Axes:
        """The axes of largest variance."""
        return Axes(self.mean, self.components[:n_components], self.variance[:n_components])

    def explaining(self, share: float, fewest: int) -> Axes:
        """The axes of largest variance that together have a share of all variance, but at least `fewest`."""
        explained = np.cumsum(self.variance)
        return self.leading(max(fewest, int(np.searchsorted(explained, share * explained[-1])) + 1))

    def projection(self, whiten: float = 0.0) -> np.ndarray:
        """The matrix from centred coordinates to components, whitened."""
        variance = np.where(self.variance > 0, self.variance, 1)
        return self.components.T * variance ** (-0.5 * whiten)


def batches(n_groups: int, width: int) -> Iterator[slice]:
    """Batches of groups whose coordinates fit into the working memory, a few times over."""
    return gen_batches(n_groups, count_within(32 * width, COORDINATES))


@register
@dataclass(frozen=True, eq=False)
class PointSpace:
    """Points whose Euclidean distances order groups approximately as a similarity does.

    Attributes
    ----------
    coordinates : Coordinates or None
        The coordinates of a likelihood, computed from statistics; None if the summaries of groups are vectors.
    directions : bool
        Whether only the direction of a point counts, as seen from the mean of all points.
    """

    coordinates: Coordinates | None
    directions: bool

    def __call__(self, summaries: Any) -> np.ndarray:
        """One row of coordinates per group."""
        if self.coordinates is None:
            return np.asarray(summaries, dtype=np.float64)
        return self.coordinates.of_statistics(summaries)

    def width(self, summaries: Any) -> int:
        """Number of coordinates."""
        return summaries.shape[1] if self.coordinates is None else self.coordinates.width
