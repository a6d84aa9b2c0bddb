"""Landmarks: coordinates of groups from their distances to reference groups, for any similarity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklearn_mcsg.engine.coordinates import LEAST_EIGENVALUE
from sklearn_mcsg.engine.model import NotFiniteError
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.similarity import GroupSimilarity
from sklearn_mcsg.storage import register


@register
@dataclass(frozen=True, eq=False)
class Landmarks:
    """Coordinates from distances to landmarks, which are groups of the corpus (landmark multidimensional scaling).

    Attributes
    ----------
    similarity : GroupSimilarity
        The similarity, fitted to the landmarks.
    centre : ndarray of shape (n_landmarks,)
        Mean distance of each landmark to all of them.
    matrix : ndarray of shape (n_landmarks, n_coordinates)
        Turns centred distances into coordinates.
    """

    similarity: GroupSimilarity
    centre: np.ndarray
    matrix: np.ndarray

    @classmethod
    def learnt_from(
        cls, groups: Groups, similarity: GroupSimilarity, n_landmarks: int, random_state: np.random.RandomState
    ) -> Landmarks:
        """Draw landmarks, fit the similarity to them, and embed them by classical scaling."""
        chosen = np.arange(len(groups))
        if len(chosen) > n_landmarks:
            chosen = np.sort(random_state.choice(len(chosen), n_landmarks, replace=False))
        similarity.fit(groups[chosen])
        distances = similarity.__mcsg_comparer__().compare_among(slice(0, len(chosen))).astype(np.float64)
        centre = distances.mean(axis=0)
        inner = 0.5 * (centre[:, None] + centre - distances.mean() - distances)
        values, vectors = np.linalg.eigh(inner)
        kept = values > max(LEAST_EIGENVALUE * values[-1], 0)
        if not kept.any():  # all landmarks are equal: one coordinate, in which all groups are at 0
            return cls(similarity, centre, np.zeros((len(chosen), 1)))
        return cls(similarity, centre, 0.5 * vectors[:, kept][:, ::-1] / np.sqrt(values[kept][::-1]))

    def __mcsg_check__(self) -> None:
        """Raise unless all parts describe the same landmarks, as those from a file may not."""
        shapes, n = (self.centre.shape, self.matrix.shape), self.centre.size
        numeric = self.centre.dtype.kind == self.matrix.dtype.kind == "f"
        if not numeric or len(shapes[1]) != 2 or (shapes[0], shapes[1][0]) != ((n,), n):
            raise ValueError(f"landmarks of shapes {shapes}, in {self.centre.dtype} and {self.matrix.dtype}")
        if self.similarity.n_groups_ != n:
            raise ValueError(f"{n} landmarks, of which {self.similarity.n_groups_} are kept")

    @property
    def width(self) -> int:
        """Number of distances that the coordinates of a group are computed from."""
        return len(self.centre)

    def __call__(self, groups: Groups, first: int = 0) -> np.ndarray:
        """Coordinates of groups. Errors number these groups from 0 and say where they begin in the collection."""
        try:
            distances = self.similarity.__mcsg_comparer__().compare_with(groups)
        except NotFiniteError as error:
            error.add_note(f"Groups are counted from group {first} of the collection on.")
            raise
        return (self.centre - distances.astype(np.float64)) @ self.matrix
