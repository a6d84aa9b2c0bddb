"""From coordinates to components: centred, rotated, whitened and, if asked for, at unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.groups.arrays import ArrayKind

ROUNDING = 1e-13  # of a component: a group without larger ones is at the mean of the corpus


@dataclass(frozen=True, eq=False)
class Projection:
    """A projection of coordinates, computed where the arrays of a kind are.

    Attributes
    ----------
    mean : ndarray of shape (n_coordinates,)
        The origin.
    matrix : ndarray of shape (n_coordinates, n_components)
        From centred coordinates to components.
    normalize : bool
        Whether components are scaled to unit length; those without entries above rounding become zero.
    kind : ArrayKind or None
        Library and device of the result; None means NumPy.
    """

    mean: np.ndarray
    matrix: np.ndarray
    normalize: bool
    kind: ArrayKind | None = None

    def __call__(self, coordinates: np.ndarray) -> Any:
        if self.kind is not None:
            return self._on_device(self.kind, coordinates)
        rows = (coordinates - self.mean) @ self.matrix
        return unit_length(rows, ROUNDING) if self.normalize else rows

    def _on_device(self, kind: ArrayKind, coordinates: np.ndarray) -> Any:
        xp, rows = kind.xp, kind.asarray(coordinates - self.mean) @ kind.asarray(self.matrix)
        if self.normalize:
            largest = xp.max(xp.abs(rows), axis=1, keepdims=True)
            rows = rows / xp.where(largest > ROUNDING, largest, float("inf"))
            length = xp.linalg.vector_norm(rows, axis=1, keepdims=True)
            rows = rows / xp.where(length > 0, length, 1.0)
        return kind.result(rows)
