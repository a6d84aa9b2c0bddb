"""An embedding that is fitted to a corpus in parts, on one machine or many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import clone

from sklearn_mcsg.embedding._embedding import TOO_FEW, GroupEmbedding
from sklearn_mcsg.engine.coordinates import Coordinates, Moments, corpus_of, merged_corpora, merged_moments
from sklearn_mcsg.groups import GroupsLike
from sklearn_mcsg.likelihoods import Statistics


def fit_to_parts(
    embedding: GroupEmbedding, reduce_parts: Callable[[Callable[[GroupsLike], Any], Callable[..., Any]], Any]
) -> GroupEmbedding:
    """Fit an embedding to a corpus that comes in parts, as `fit` would to all of it. Every part is needed twice.

    Parameters
    ----------
    embedding : GroupEmbedding
        The embedding.
    reduce_parts : callable
        Called as ``reduce_parts(function, merge)``. It must call `function` with the groups of each part, and merge
        the results, which are small, by ``merge(a, b, ...)`` of two or more, in any order. Functions and results may be
        sent to other processes.

    Returns
    -------
    embedding : GroupEmbedding

    Examples
    --------
    >>> from functools import reduce
    >>> import numpy as np
    >>> from sklearn_mcsg import GroupEmbedding
    >>> from sklearn_mcsg.embedding import fit_to_parts
    >>> parts = [np.random.default_rng(seed).normal(size=(50, 4, 3)) for seed in range(4)]
    >>> embedding = fit_to_parts(GroupEmbedding(), lambda function, merge: reduce(merge, map(function, parts)))
    >>> whole = GroupEmbedding().fit(np.concatenate(parts))
    >>> np.allclose(embedding.transform(parts[0]), whole.transform(parts[0]))
    True
    """
    embedding._validate_params()
    if embedding._landmark_similarity() is not None:
        raise ValueError("An embedding by landmarks does not learn from parts: fit it to a sample of the groups.")
    worker = clone(embedding)
    corpus = reduce_parts(partial(_corpus_of_part, worker), partial(merged_corpora, embedding._new_likelihood()))
    space = embedding._coordinates_around(corpus)
    moments = reduce_parts(partial(_moments_of_part, worker, space), merged_moments)
    if moments.n < 2:
        raise ValueError(TOO_FEW)
    embedding._keep(embedding._fitted(space, moments))
    embedding._restore_features({"n_features_in_": corpus.n_features, "feature_names_in_": None})
    return embedding


def _corpus_of_part(worker: GroupEmbedding, X: GroupsLike) -> Statistics:
    """One group in place of a part of the corpus."""
    return corpus_of(worker._check_groups(X), worker._new_likelihood(), worker.reg_covar)


def _moments_of_part(worker: GroupEmbedding, space: Coordinates, X: GroupsLike) -> Moments:
    """Moments of the coordinates of a part of the corpus."""
    return worker._moments_of(space, worker._check_groups(X))
