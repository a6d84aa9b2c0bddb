"""Landmarks: coordinates of groups from their distances to reference groups, for any similarity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from sklearn_mcsg.engine.coordinates import LEAST_EIGENVALUE
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.similarity.base import GroupSimilarity
from sklearn_mcsg.storage import register


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
