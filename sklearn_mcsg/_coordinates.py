"""The spaces that groups are embedded in: coordinates of a likelihood, or landmarks of a similarity.

Both are plain objects, learnt from a corpus, that turn groups into rows of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from sklearn_mcsg.base import GroupSimilarity
from sklearn_mcsg.criteria import AIC
from sklearn_mcsg.engine.blocks import count_within
from sklearn_mcsg.engine.comparison import Comparison, raise_not_finite
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import Likelihood, Statistics
from sklearn_mcsg.storage import register

LEAST_EIGENVALUE = 1e-7  # of the largest: smaller ones are rounding
_BATCH_BYTES = 2**25  # of coordinates at a time, temporary arrays included


@register
@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates of a likelihood around the model of a corpus.

    Attributes
    ----------
    comparison : Comparison
        The likelihood, with the pseudo-vectors that every group receives.
    corpus : Statistics
        Statistics of one group with the mean and variance of the corpus.
    spread : float
        Factor on the coordinates of scale.
    """

    comparison: Comparison
    corpus: Statistics
    spread: float

    @classmethod
    def learnt_from(
        cls, groups: Groups, likelihood: Likelihood, reg_covar: float, prior_strength: float, spread: float
    ) -> Coordinates:
        """Fit the corpus model in one pass over the groups, in bounded memory."""
        start = Comparison(likelihood, AIC(), reg_covar, penalty_scale=1.0)
        parts = []
        for batch in group_batches(groups, likelihood.n_parameters(groups.n_features)):
            statistics = start.statistics(groups[batch], batch.start)
            if statistics.n.any():
                parts.append(likelihood.pseudo_group(statistics, float(statistics.n.sum())))
        if not parts:
            raise ValueError("All groups are empty: there is no corpus to learn coordinates from.")
        whole = type(parts[0]).concatenate(parts)
        return cls(start.completed(whole, prior_strength), likelihood.pseudo_group(whole, 1.0), spread)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates: one for each parameter of the model."""
        return self.comparison.likelihood.n_parameters(self.corpus.n_features)

    def __call__(self, groups: Groups, first: int = 0) -> np.ndarray:
        """Coordinates of groups; errors number groups from `first` on."""
        statistics = self.comparison.with_pseudo(self.comparison.statistics(groups, first))
        with np.errstate(all="ignore"):
            location, scale = self.comparison.likelihood.coordinates(statistics, self.corpus)
        coordinates = np.hstack([location, self.spread * scale])
        finite = np.isfinite(coordinates).all(axis=1)
        if not finite.all():
            raise_not_finite(f"A coordinate of group {first + int(np.argmin(finite))}")
        return coordinates

    def shares(self, group: Groups, centre: np.ndarray) -> np.ndarray:
        """Part of each vector in the coordinates of its group, seen from a centre.

        What the pseudo-vectors add, and the centre, are divided by weight.
        """
        statistics = self.comparison.with_pseudo(self.comparison.statistics(group))
        location, scale = self.comparison.likelihood.coordinate_shares(
            statistics, self.corpus, group.rows(), group.row_weights
        )
        parts = np.hstack([location, self.spread * scale])
        rest = self(group)[0] - centre - parts.sum(axis=0)
        return parts + np.outer(group.row_weights / group.totals, rest)


@register
@dataclass(frozen=True, eq=False)
class Landmarks:
    """Coordinates from distances to reference groups (landmark multidimensional scaling).

    Attributes
    ----------
    similarity : GroupSimilarity
        The similarity, fitted to the reference groups.
    centre : ndarray of shape (n_references,)
        Mean distance of each reference group to the references.
    matrix : ndarray of shape (n_references, n_coordinates)
        Turns centred distances into coordinates.
    """

    similarity: GroupSimilarity
    centre: np.ndarray
    matrix: np.ndarray

    @classmethod
    def learnt_from(
        cls, groups: Groups, similarity: GroupSimilarity, n_references: int, random_state: np.random.RandomState
    ) -> Landmarks:
        """Draw reference groups and embed them by classical scaling."""
        chosen = np.arange(len(groups))
        if len(chosen) > n_references:
            chosen = np.sort(random_state.choice(len(chosen), n_references, replace=False))
        similarity = clone(similarity).fit(groups[chosen])
        distances = similarity.compare_fitted(slice(0, len(chosen))).astype(np.float64)
        centre = distances.mean(axis=0)
        inner = 0.5 * (centre[:, None] + centre - distances.mean() - distances)
        values, vectors = np.linalg.eigh(inner)
        kept = values > max(LEAST_EIGENVALUE * values[-1], 0)
        return cls(similarity, centre, 0.5 * vectors[:, kept][:, ::-1] / np.sqrt(values[kept][::-1]))

    @property
    def n_coordinates(self) -> int:
        """Number of distances that the coordinates are computed from."""
        return len(self.centre)

    def __call__(self, groups: Groups, first: int = 0) -> np.ndarray:
        """Coordinates of groups."""
        distances = self.similarity.compare_with_fitted(self.similarity.validate(groups))
        return (self.centre - distances.astype(np.float64)) @ self.matrix


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


def group_batches(groups: Groups, n_coordinates: int) -> Iterator[slice]:
    """Batches of groups whose coordinates fit into the working memory, a few times over."""
    return gen_batches(len(groups), count_within(32 * n_coordinates, _BATCH_BYTES))
