"""Cosines of embeddings as a comparison: what an index keeps of groups that are embedded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sklearn_mcsg.engine.comparison import Comparison
from sklearn_mcsg.engine.coordinates import PointSpace
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units, unit_length
from sklearn_mcsg.groups import Groups


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
        return unit_length(np.asarray(self.embedding.transform(groups)))

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
