"""Division of a similarity among vectors.

The log-likelihood of a group is a sum over its vectors, so the similarity of two groups is also a sum. Its terms are
each vector's change in log density from its own group's model to the shared model, and the penalties:

    similarity = sum over vectors of 2 weight (log p_shared(x) - log p_own(x)) + prior + penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklearn_mcsg._memory import VECTORS, count_within
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.pairs import all_pairs, prepare, row_by_row
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.explanation._base import pair_labels
from sklearn_mcsg.explanation._vectors import BoundaryExplanation, FeatureChange, VectorExplanation
from sklearn_mcsg.groups import Groups, united
from sklearn_mcsg.groups.regroup import divided
from sklearn_mcsg.likelihoods import DiagonalGaussian, Fit, Statistics

_SIMILARITY = OUTPUTS["similarity"]


def explain_groups(
    model: GroupModel, groups: tuple[Groups, Groups], labels: Sequence[Sequence[Any]] | None = None
) -> VectorExplanation:
    """Explain the similarity of two groups by their vectors, as `ModelComparisonSimilarity.explain` does.

    A criterion that does not use the maximum of the log-likelihood, such as ``"bayes"``, is explained by leaving out
    vectors. The contribution of a vector is then the similarity minus the similarity without it, or the whole
    similarity if its group is empty without it. These contributions do not sum to the similarity;
    `VectorExplanation.rest` is the difference.

    Parameters
    ----------
    model : GroupModel
        The model that compares the groups.
    groups : pair of Groups of length 1
        The two groups.
    labels : pair of sequences, default=None
        Names of the vectors of both groups; ``None`` means the labels of the groups, or positions without labels.

    Returns
    -------
    explanation : VectorExplanation
    """
    names = pair_labels(labels, groups)
    a, b = map(model.weighted, groups)
    sides = _prepared(model, a), _prepared(model, b)
    similarity = float(row_by_row(model, *sides, _SIMILARITY)[0])
    with np.errstate(all="ignore"):
        if model.criterion.is_penalized_likelihood:  # the union contains the pseudo-vectors of both groups
            own = [side.statistics for side in sides]
            parts = _by_models(model, (a, b), own, model.likelihood.pool(*own), similarity)
        else:
            parts = _by_leaving_out(model, (a, b), sides, similarity)
    return VectorExplanation(similarity, **parts, labels=names, weights=(a.row_weights, b.row_weights))


def explain_boundary(
    model: GroupModel, segments: Groups, similarity: float, penalty: float, names: list[str] | None
) -> BoundaryExplanation:
    """Explain the similarity of two segments by their vectors; `penalty` is added for the boundary between them.

    Each of the models, of both segments and of their union, contains the pseudo-vectors once. Features are described if
    they have names.
    """
    if not model.criterion.is_penalized_likelihood:
        raise ValueError(
            f"A boundary is explained by the log-likelihood of its vectors, which {type(model.criterion).__name__} "
            f"does not use: choose criterion='aic' or 'bic'."
        )
    sides = segments[[0]], segments[[1]]
    with np.errstate(all="ignore"):
        *own, shared = (model.padded(model.statistics(group)) for group in (*sides, united(segments)))
        parts = _by_models(model, sides, own, shared, similarity)
    parts["penalty"] += penalty
    parts["weights"] = sides[0].row_weights, sides[1].row_weights
    changes = [] if names is None else _changes(segments, model.reg_covar, names)
    return BoundaryExplanation(similarity + penalty, **parts, labels=pair_labels(None, sides), changes=changes)


def _changes(segments: Groups, reg_covar: float, names: list[str]) -> list[FeatureChange]:
    """How each feature differs between two segments, the one that differs most first."""
    both = Groups.concatenate([segments, united(segments)])
    moments = DiagonalGaussian().statistics(both, reg_covar=reg_covar, order=2)
    variances = moments.m2 / moments.n[:, None]
    logs = moments.n[:, None] * np.log(variances + max(reg_covar, np.finfo(float).tiny))
    gains = logs[2] - logs[0] - logs[1]
    (before, after), (spread, spread_after) = moments.mean[:2].tolist(), np.sqrt(variances[:2]).tolist()
    return [
        FeatureChange(names[i], float(gains[i]), (before[i], after[i]), (spread[i], spread_after[i]))
        for i in np.argsort(-gains, kind="stable")
    ]


def _by_models(
    model: GroupModel, groups: tuple[Groups, Groups], own: list[Statistics], shared: Statistics, similarity: float
) -> dict[str, Any]:
    """Explain by twice the weighted change in log density of each vector, from its own model to the shared model."""
    likelihood: Any = model.likelihood
    gains = []
    for group, fitted in zip(groups, own, strict=True):
        rows, weights, places = group.rows(), group.row_weights, likelihood.places_of(group)
        after, before = (likelihood.vector_log_likelihood(one, rows, **places) for one in (shared, fitted))
        (gain,) = after - before
        weights = weights[:, None] if gain.ndim == 2 else weights
        gains.append(np.where(weights > 0, 2 * weights * gain, 0))
    vectors = tuple(gain.sum(axis=1) if gain.ndim == 2 else gain for gain in gains)
    a, b, union = (float(np.ravel(model.criterion.penalty(Fit(likelihood, fitted)))[0]) for fitted in (*own, shared))
    penalty = 2 * model.penalty_scale * (a + b - union)
    remainder = similarity - penalty - sum(v.sum() for v in vectors)
    return {
        "vectors": vectors,
        "features": tuple(gains) if gains[0].ndim == 2 else None,
        "penalty": penalty,
        "prior": 0.0 if model.pseudo is None else float(remainder),  # the remainder is due to pseudo-vectors
    }


def _by_leaving_out(
    model: GroupModel, groups: tuple[Groups, Groups], sides: tuple[Prepared, Prepared], similarity: float
) -> dict[str, Any]:
    """Explain by the amount that the similarity falls without each vector."""
    pairs = zip(groups, reversed(sides), strict=True)
    vectors = tuple(similarity - _similarity_without_each(model, group, other) for group, other in pairs)
    return {"vectors": vectors, "rest": float(similarity - sum(v.sum() for v in vectors))}


def _similarity_without_each(model: GroupModel, group: Groups, other: Prepared) -> np.ndarray:
    """Similarity of a group without each vector in turn to another group; 0 where no vector is left."""
    n = group.n_rows
    similarity = np.zeros(n)
    step = count_within(n * group.vectors.shape[1] * 8, VECTORS)
    for start in range(0, n, step):
        left_out = np.arange(start, min(start + step, n))
        kept = np.arange(n - 1) + (np.arange(n - 1) >= left_out[:, None])
        reduced = divided(group, kept)
        filled = np.flatnonzero((reduced.totals > 0) | (model.pseudo is not None))
        if len(filled):
            found = all_pairs(model, _prepared(model, reduced[filled]), other, _SIMILARITY)
            similarity[left_out[filled]] = found[:, 0]
    return similarity


def _prepared(model: GroupModel, groups: Groups) -> Prepared:
    return prepare(model, model.statistics(groups), _SIMILARITY)
