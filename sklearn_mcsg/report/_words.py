"""The words of the texts with their vectors, from which the page divides the cosine of any two texts among words.

The part of a word in a text's point depends on the word's vector and on line and variance of the text, so the page gets
the vectors of all words and the words of all texts, and not a matrix for each of the pairs. Vectors have as many digits
as there is room for, frequent words more than rare ones. The page compares its cosines with some that are exact, and
says how near they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.coordinates import Axes, Coordinates
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import DiagonalGaussian, TrendGaussian
from sklearn_mcsg.report._packing import pack, pack_json, pack_positive, pack_rows

MOST_WORDS = 2000  # of a text that is explained
TOO_LONG = -1  # in place of the number of words, for texts that are not explained
_MOST_TOKENS = 1_600_000  # of all texts; if there are more, the longest texts are not explained
_LEAST_ROOM = 500_000  # for vectors in any case
_METRIC_SHARE = 0.08  # of the room that is for the matrix between coordinates
_N_CHECKS = 24  # random pairs, and pairs of neighbours, whose cosines the page checks


def shown_words(
    embedding: GroupEmbedding, groups: Groups, order: np.ndarray, room: int
) -> tuple[dict[str, Any] | None, np.ndarray]:
    """The vocabulary with the model that turns words into cosines; and which texts have their words.

    Texts follow each other as in `order`. There is no vocabulary if the embedding does not divide among words in the
    way that the page knows. Without an order of words, lines are level.
    """
    space = embedding.__mcsg_state__()["space"]
    if not isinstance(space, Coordinates) or not isinstance(space.model.likelihood, DiagonalGaussian | TrendGaussian):
        return None, np.zeros(len(groups), dtype=bool)
    sizes = np.where(_are_explained(groups.sizes), groups.sizes, TOO_LONG)
    kept: Groups = groups[order[sizes[order] >= 0]]
    tokens, names, vectors, weights, counts = _words(kept)
    corpus: Any = space.corpus
    ordered = space.n_of_order > 0
    wide = len(names) >= 2**16
    axes = Axes(embedding.mean_, embedding.components_, embedding.explained_variance_)
    centre = np.zeros(3 * groups.n_features, np.float32)
    centre[: len(embedding.mean_)] = embedding.mean_
    vocabulary = {
        "words": pack_json(names.tolist()),
        "weights": pack_positive(weights),
        "sizes": pack(sizes.astype(np.int16)),
        "tokens": pack(tokens.astype(np.uint32 if wide else np.uint16)),
        "wide": wide,
        "mean": pack(corpus.mean[0].astype(np.float32)),
        "variance": pack(corpus.variance[0].astype(np.float32)),
        "centre": pack(centre),
        "noise": float(space.model.reg_covar),
        "prior": float(embedding.prior_strength),
        "spread": pack(np.broadcast_to(space.spread, groups.n_features).astype(np.float32)),
        "ordered": ordered,
        "order": space.order if ordered else 0.0,
        "slope": pack((corpus.slope[0] if ordered else np.zeros(groups.n_features)).astype(np.float32)),
        "place": float(corpus.place[0]) if ordered else 0.0,
        "reach": float(corpus.length[0] ** 2) if ordered else 0.0,
    }
    room = max(_LEAST_ROOM, room - sum(len(str(value)) for value in vocabulary.values()))
    vocabulary["metric"] = _metric(axes.projection(embedding.whiten), int(_METRIC_SHARE * room))
    scaled = (vectors - corpus.mean[0]) / np.sqrt(corpus.variance[0])
    vocabulary |= _vectors(scaled, counts, int((1 - _METRIC_SHARE) * room))
    return vocabulary, (sizes > 0) & (groups.totals > 0)


def shown_checks(points: np.ndarray, explained: np.ndarray, random_state: np.random.RandomState) -> list[list[float]]:
    """Random pairs of texts that are explained, and random texts with their nearest one; with their exact cosines."""
    among = np.flatnonzero(explained)
    if len(among) < 2:
        return []
    left = random_state.choice(among, 2 * _N_CHECKS)
    right = random_state.choice(among, 2 * _N_CHECKS)
    cosines = points[left[_N_CHECKS:]] @ points[among].T
    cosines[among == left[_N_CHECKS:, None]] = -2  # a text is not its own neighbour
    right[_N_CHECKS:] = among[cosines.argmax(axis=1)]
    exact = np.einsum("ij,ij->i", points[left].astype(np.float64), points[right].astype(np.float64))
    return [[int(i), int(j), round(float(value), 5)] for i, j, value in zip(left, right, exact, strict=True) if i != j]


def _are_explained(sizes: np.ndarray) -> np.ndarray:
    """Texts that are not too long, and of these the shorter ones, if there is no room for the words of all."""
    by_size = np.argsort(sizes, kind="stable")
    fits = np.zeros(len(sizes), dtype=bool)
    fits[by_size] = np.cumsum(sizes[by_size]) <= _MOST_TOKENS
    return fits & (sizes <= MOST_WORDS)


def _words(groups: Groups) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The word of each row; and the names, vectors, weights and counts of the words, the most frequent first."""
    rows, first, words, counts = np.unique(
        groups.row_indices, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    names: Any = groups.labels
    some = first[order]
    return rank[words], names[some], np.asarray(groups.vectors)[rows[order]], groups.row_weights[some], counts[order]


def _vectors(scaled: np.ndarray, counts: np.ndarray, room: int) -> dict[str, Any]:
    """Standardized vectors as small integers, with a factor per word, and the variance per feature that they miss.

    The error of a word counts in each of its texts, so frequent words have finer steps. Factors are those of least
    squares. What is missed would make texts look narrower than they are, so the page adds it to their variances.
    """
    packed, codes = pack_rows(scaled * np.cbrt(counts)[:, None], room - 4 * len(counts))
    whole = codes.astype(np.float32)
    known = scaled[:, : codes.shape[1]]
    factors = np.einsum("ij,ij->i", known, whole) / np.maximum(np.einsum("ij,ij->i", whole, whole), 1)
    missed = (np.einsum("ij,ij->i", scaled, scaled) - factors * np.einsum("ij,ij->i", known, whole)) / scaled.shape[1]
    return {
        "vectors": packed,
        "factors": pack_positive(factors),
        "missed": pack_positive(np.maximum(missed, 0)),
    }


def _metric(projection: np.ndarray, room: int) -> dict[str, Any]:
    """The matrix M of the inner product of points, x'My for coordinates x and y: diagonal and lower triangle."""
    metric = projection @ projection.T
    rows, columns = np.tril_indices(len(metric), -1)
    diagonal = np.diagonal(metric)
    scale = np.sqrt(np.maximum(diagonal, 1e-30))
    packed, _ = pack_rows((metric[rows, columns] / (scale[rows] * scale[columns]))[:, None], room)
    return {"diagonal": pack(diagonal.astype(np.float32)), "triangle": packed}
