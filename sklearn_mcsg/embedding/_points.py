"""Embedded groups as points: how they are compared, by cosines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.comparison import Comparison
from sklearn_mcsg.engine.coordinates import PointSpace
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.similarity.estimator import snapshot

ROUNDING = 1e-13  # of a component: a group without larger ones is at the mean of the corpus


@dataclass(frozen=True, eq=False, repr=False)
class PointComparison(Comparison[np.ndarray, np.ndarray]):
    """Cosines of embeddings; of each group, the embedding at unit length is kept and not its vectors.

    Attributes
    ----------
    embedding : GroupEmbedding
        The fitted embedding. It does not change when groups are added: they get the coordinates of its fit.
    """

    embedding: Any

    def summarize(self, groups: Groups) -> np.ndarray:
        """Embeddings of the groups, at unit length."""
        return snapshot(self.embedding)._units(groups)

    def unlearnt(self) -> Self:
        """The same comparison: it learns nothing from its groups."""
        return self

    def without_corpus(self) -> Self:
        """The comparison for points that are known already."""
        return replace(self, embedding=None)

    def compare(self, left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
        """Cosines of all pairs."""
        return compare_units(left, right, output)

    def compare_rows(self, left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
        """Cosines of pairs of the same row."""
        return compare_unit_rows(left, right, output)

    def point_space(self, output: str) -> PointSpace:
        """The embeddings themselves: they have unit length, so their distances order groups as cosines do."""
        return PointSpace(None, directions=False)


def comparer_of_points(embedding: Any, points: np.ndarray) -> Comparer:
    """The comparer of groups whose embeddings at unit length are known."""
    if points.ndim != 2 or points.dtype.kind != "f" or points.shape[1] != embedding.n_components_:
        raise ValueError(f"points of an embedding are kept as {points.dtype} of shape {points.shape}")
    if max(points.max(initial=0), -points.min(initial=0)) > 1.01:
        raise ValueError("points of an embedding are longer than 1")
    return Comparer.of(PointComparison(embedding), points, "distance", points.dtype)
