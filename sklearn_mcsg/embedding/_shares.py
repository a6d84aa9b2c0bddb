"""Explanation of embeddings: points divided among the vectors of their groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklearn_mcsg.embedding._points import ROUNDING
from sklearn_mcsg.engine.coordinates import Coordinates
from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.explanation import PairExplanation, pair_labels
from sklearn_mcsg.groups import Groups


def explainable(space: Any) -> Coordinates:
    """The coordinates of an embedding; raise if it has landmarks in their place."""
    if not isinstance(space, Coordinates):
        raise ValueError("An embedding by landmarks cannot be explained: choose a likelihood with coordinates.")
    return space


def explain_cosine(
    space: Coordinates,
    mean: np.ndarray,
    projection: np.ndarray,
    pair: Sequence[Groups],
    labels: Sequence[Sequence[str]] | None,
) -> PairExplanation:
    """Explain the cosine of two groups, as `GroupEmbedding.explain` does.

    `projection` is the matrix from coordinates, centred by `mean`, to components.
    """
    shares = [space.shares(group, mean) for group in pair]
    left, right = (_above_rounding(each @ projection) for each in shares)
    unordered = None
    if space.n_of_order:
        centred = np.stack([each.sum(axis=0) for each in shares])
        centred[:, -space.n_of_order :] = 0
        unordered = float(np.prod(unit_length(centred @ projection, ROUNDING), axis=0).sum())
    weights = [group.row_weights for group in pair]
    return PairExplanation.of(left, right, pair_labels(labels, pair), weights, unordered)


def _above_rounding(parts: np.ndarray) -> np.ndarray:
    """Parts of a point; zeros if the point is the zero vector but for rounding."""
    return parts if np.abs(parts.sum(axis=0)).max() > ROUNDING else np.zeros_like(parts)


def space_of(embedding: Any) -> Any:
    """The coordinates of a fitted embedding, or its landmarks."""
    return embedding._space


def projection_of(embedding: Any) -> np.ndarray:
    """The matrix from centred coordinates to the components of a fitted embedding."""
    return embedding._axes.projection(embedding._whiten)


def parts_along(
    embedding: Any, groups: Groups, direction: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Divide a weighted sum of embeddings, projected on a direction, among the vectors of the groups and the features.

    Parameters
    ----------
    embedding : GroupEmbedding
        A fitted embedding by coordinates.
    groups : Groups
        Groups that have vectors.
    direction : ndarray of shape (n_components,)
        The direction.
    factors : ndarray of shape (n_groups,)
        Weight of each group in the sum.

    Returns
    -------
    vectors : ndarray of shape (n_vectors,)
        Part of each vector of all groups.
    features : ndarray of shape (n_features,) or None
        Part of each feature; None where coordinates are not those of features.
    """
    space = explainable(embedding._space)
    projection = projection_of(embedding)
    along = projection @ direction
    summed = np.zeros(space.width)
    vectors = np.empty(groups.n_rows)
    for i, factor in enumerate(factors.tolist()):
        shares = space.shares(groups[[i]], embedding.mean_)
        whole = shares.sum(axis=0)
        length = float(np.linalg.norm(whole @ projection)) if embedding.normalize else 1.0
        scale = factor / length if length > ROUNDING else 0.0
        vectors[groups.offsets[i] : groups.offsets[i + 1]] = scale * (shares @ along)
        summed += scale * whole
    if not space.model.likelihood.has_feature_coordinates:
        return vectors, None
    return vectors, (summed * along).reshape(-1, groups.n_features).sum(axis=0)
