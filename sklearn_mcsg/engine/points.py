"""Points of groups: coordinates whose distances order groups approximately as a comparison does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.engine.coordinates import Coordinates
from sklearn_mcsg.storage import register


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
