"""What the page needs to divide the cosine of any two texts among pairs of their words, as `GroupEmbedding.explain`.

The part of a word in a text's point depends on the word's vector and on mean and variance of the text, so the page
gets the vectors of all words and the words of all texts, and not a matrix for each of the pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.coordinates import Axes, Coordinates
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import DiagonalGaussian
from sklearn_mcsg.report._packing import pack, pack_json, quantized

MOST_WORDS = 400  # of a text that is explained
_BYTES = 3_000_000  # of word vectors, two for each number; the most frequent words come first
TOO_LONG, TOO_RARE = -1, -2  # in place of the number of words, for texts that cannot be explained


def shown_vocabulary(embedding: GroupEmbedding, groups: Groups, n_components: int) -> dict[str, Any] | None:
    """Words of texts with their vectors, and the model that turns them into points.

    Returns None if the embedding does not divide among words in the way that the page knows.
    """
    space = embedding.__mcsg_state__()["space"]
    if not isinstance(space, Coordinates) or not isinstance(space.model.likelihood, DiagonalGaussian):
        return None
    short = groups.sizes <= MOST_WORDS
    explained: Groups = groups[np.flatnonzero(short)]
    words, names, vectors, weights = _words(explained)
    room = _BYTES // (2 * max(1, groups.n_features))
    sizes = np.where(short, groups.sizes, TOO_LONG)
    rare = np.array([bool((part >= room).any()) for part in explained.split(words)], dtype=bool)
    sizes[np.flatnonzero(short)[rare]] = TOO_RARE
    kept = words[np.repeat(~rare, explained.sizes)]
    corpus: Any = space.corpus
    axes = Axes(embedding.mean_, embedding.components_, embedding.explained_variance_)
    return {
        "words": pack_json(names[:room].tolist()),
        "vectors": quantized(vectors[:room], np.int16),
        "weights": pack(weights[:room].astype(np.float32)),
        "sizes": pack(sizes.astype(np.int16)),
        "tokens": pack(kept.astype(np.uint16 if len(names) < 2**16 else np.uint32)),
        "wide": len(names) >= 2**16,
        "projection": quantized(axes.projection(embedding.whiten)[:, :n_components], np.int16),
        "mean": pack(corpus.mean[0].astype(np.float32)),
        "variance": pack(corpus.variance[0].astype(np.float32)),
        "centre": pack(embedding.mean_.astype(np.float32)),
        "noise": float(space.model.reg_covar),
        "prior": float(embedding.prior_strength),
        "spread": float(embedding.spread),
    }


def _words(groups: Groups) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The word of each row, and the names, vectors and weights of the words, the most frequent first."""
    rows, first, words, counts = np.unique(
        groups.row_indices, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    names: Any = groups.labels
    some = first[order]
    return rank[words], names[some], np.asarray(groups.vectors)[rows[order]], groups.row_weights[some]
