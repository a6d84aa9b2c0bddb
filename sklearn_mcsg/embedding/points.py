"""Embedded groups as a similarity: what an index keeps of groups that are compared by their embeddings."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._sklearn import StrOptions
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units, unit_length
from sklearn_mcsg.engine.points import PointSpace
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.similarity.base import GroupSimilarity

__all__ = ["EmbeddedGroups"]


class EmbeddedGroups(GroupSimilarity[Any, np.ndarray, np.ndarray]):
    """Cosine of embeddings: a similarity that keeps the embedding of each fitted group, and not the group.

    `GroupNeighbors`, `find_duplicates` and others make it from a `GroupEmbedding`.

    Parameters
    ----------
    embedding : GroupEmbedding
        The embedding, which `fit` fits.
    output : {"distance", "similarity"}, default="distance"
        One minus the cosine, or the cosine.

    Attributes
    ----------
    embedding_ : GroupEmbedding
        The fitted embedding. `partial_fit` does not change it: added groups get the coordinates of the first fit.
    n_groups_ : int
        Number of fitted groups.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import GroupEmbedding, GroupNeighbors
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(5 * (i % 2), size=(6, 4)) for i in range(10)]
    >>> index = GroupNeighbors(GroupEmbedding(), n_neighbors=2).fit(X)
    >>> index.kneighbors(X[:2], return_distance=False) % 2
    array([[0, 0],
           [1, 1]])
    """

    _parameter_constraints: ClassVar[dict] = {"output": [StrOptions({"distance", "similarity"})]}

    def __init__(self, embedding: Any, output: str = "distance"):
        self.embedding = embedding
        self.output = output

    @property
    def random_state(self) -> int | np.random.RandomState | None:
        """That of the embedding."""
        return self.embedding.random_state

    def fit(self, X: GroupsLike, y: object = None) -> Self:
        """Fit the embedding, and keep the embeddings of the groups.

        Parameters
        ----------
        X : groups
            The corpus.
        y : None
            Ignored.

        Returns
        -------
        self : EmbeddedGroups
        """
        self._validate_params()
        return self.keep(clone(self.embedding).fit(X), X)

    def keep(self, embedding: Any, X: GroupsLike) -> Self:
        """Keep the embeddings of groups under an embedding that is already fitted.

        Parameters
        ----------
        embedding : GroupEmbedding
            The fitted embedding.
        X : groups
            The groups.

        Returns
        -------
        self : EmbeddedGroups
        """
        previous, self.embedding_ = getattr(self, "embedding_", None), embedding
        try:
            return super().fit(X)
        except Exception:
            self.embedding_ = previous
            raise

    def start(self, output: str | None = None) -> Any:
        """The fitted embedding."""
        check_is_fitted(self, "embedding_")
        return self.embedding_

    def summarize(self, learnt: Any, groups: Groups) -> np.ndarray:
        """Embeddings of the groups, at unit length."""
        return unit_length(learnt.transform(groups))

    def compare(
        self,
        learnt: Any,
        left: np.ndarray,
        right: np.ndarray,
        output: str,
        dtype: np.dtype,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Cosines of all pairs."""
        return compare_units(left, right, output).astype(dtype, copy=False)

    def compare_rows(
        self, learnt: Any, left: np.ndarray, right: np.ndarray, output: str, dtype: np.dtype
    ) -> np.ndarray:
        """Cosines of pairs of the same row."""
        return compare_unit_rows(left, right, output).astype(dtype, copy=False)

    def point_space(self) -> PointSpace:
        """The embeddings themselves: they have unit length, so their distances order groups as cosines do."""
        return PointSpace(None, directions=False)

    def __mcsg_state__(self) -> dict[str, Any]:
        """What was learnt, to be saved beside the parameters; nothing before `fit`."""
        state = super().__mcsg_state__()
        return {**state, "embedding_": self.embedding_} if state else {}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Restore what `__mcsg_state__` returned."""
        self.embedding_ = state["embedding_"]
        super().__mcsg_restore__(state)
