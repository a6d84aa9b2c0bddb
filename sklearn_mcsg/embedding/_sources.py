"""What is kept of groups so that an embedding can learn from them again, as an index that grows does.

Points do not suffice: other axes, and another model of the corpus, need the statistics of each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from sklearn_mcsg.embedding._embedding import GroupEmbedding
from sklearn_mcsg.embedding._points import comparer_of_points
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.coordinates import Coordinates
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.regroup import without_labels
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.storage import register


@register
@dataclass(frozen=True, eq=False)
class Sources:
    """Groups that an embedding can learn from again, or their statistics, in the order of their points.

    Statistics take 8 bytes for each parameter of the model, whatever the size of a group. Groups are kept where they
    take less, as those of texts on a shared table of word vectors do.

    Attributes
    ----------
    parts : tuple of Groups and Statistics
        Groups that came first, and statistics of those added later; groups alone for an embedding by landmarks.
    """

    parts: tuple[Any, ...]

    @classmethod
    def of(cls, embedding: GroupEmbedding, groups: Groups) -> Self:
        """Keep the groups that an embedding was fitted to."""
        return cls((_smaller(embedding, groups),))

    def added(self, embedding: GroupEmbedding, groups: Groups) -> Self:
        """The sources with further groups."""
        *before, last = self.parts
        if not isinstance(embedding._space, Coordinates):
            return type(self)((Groups.concatenate([last, without_labels(groups)]),))
        statistics = embedding._space.model.statistics(groups)
        if isinstance(last, Statistics):
            return type(self)((*before, type(last).concatenate([last, statistics])))
        return type(self)((*self.parts, statistics))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, kept: np.ndarray) -> Self:
        """The sources of some groups, given by their indices in ascending order."""
        starts = np.cumsum([0, *map(len, self.parts)])
        places = np.searchsorted(kept, starts)
        chosen = zip(self.parts, starts[:-1], places[:-1], places[1:], strict=True)
        some = [part[kept[first:last] - start] for part, start, first, last in chosen if last > first]
        return type(self)(tuple(some))

    def __mcsg_check__(self) -> None:
        """Raise unless all parts are groups or statistics of the same features, as those from a file may not be."""
        if not self.parts or not all(isinstance(part, Groups | Statistics) for part in self.parts):
            raise TypeError("an index that can learn again needs groups or their statistics")
        if len({part.n_features for part in self.parts}) > 1:
            raise ValueError("an index that can learn again needs groups of the same features")


def learn_again(embedding: GroupEmbedding, sources: Sources, dtype: np.dtype) -> tuple[GroupEmbedding, Comparer]:
    """A copy of an embedding that has learnt from all its sources, and the comparer that keeps their points."""
    again = clone(embedding)
    again._keep(again._learnt(again._landmark_similarity(), *sources.parts))
    again._restore_features(embedding._stored_features())
    return again, comparer_of_points(again, embedded(again, sources, dtype))


def embedded(embedding: GroupEmbedding, sources: Sources, dtype: np.dtype) -> np.ndarray:
    """Points of sources in a fitted embedding, at unit length."""
    return np.concatenate([embedding._units(part, dtype) for part in sources.parts])


def _smaller(embedding: GroupEmbedding, groups: Groups) -> Groups | Statistics:
    """The groups or their statistics, whichever takes less memory; for landmarks, the groups."""
    groups = without_labels(groups)
    space = embedding._space
    if not isinstance(space, Coordinates):
        return groups
    arrays = groups.vectors, groups.offsets, groups.indices, groups.weights, groups.positions
    nbytes = sum(array.nbytes for array in arrays if array is not None)
    return groups if nbytes <= 8 * space.width * len(groups) else space.model.statistics(groups)
