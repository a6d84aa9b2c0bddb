"""The words of the texts with their vectors, from which the page divides the cosine of any two texts among words.

The part of a word in a text's point depends on the word's vector and on line and variance of the text, so the page gets
the vectors of all words and the words of all texts, and not a matrix for each of the pairs. Vectors have as many digits
as there is room for, frequent words more than rare ones. Of long texts the page gets the distinct words, with counts
and mean places; of those with very many distinct words, the most telling ones and the mean of the others. The page
compares its cosines with some that are exact, and says how near they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.embedding import GroupEmbedding, projection_of, space_of
from sklearn_mcsg.engine.coordinates import Coordinates
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import DiagonalGaussian, TrendGaussian
from sklearn_mcsg.report._packing import pack, pack_json, pack_positive, pack_rows

MOST_WORDS = 2000  # of a text; a longer one is condensed to as many distinct words at most
_MOST_TOKENS = 1_600_000  # of all texts; if there are more, long texts are condensed to fewer words
_ROOM_OF_CONDENSED = 1.6  # of a distinct word with its count and place, in words of texts that are not condensed
_LEAST_ROOM = 500_000  # for vectors in any case
_METRIC_SHARE = 0.08  # of the room that is for the matrix between coordinates
_N_CHECKS = 24  # random pairs, and pairs of neighbours, whose cosines the page checks


def shown_words(
    embedding: GroupEmbedding, groups: Groups, order: np.ndarray, room: int
) -> tuple[dict[str, Any] | None, np.ndarray]:
    """The vocabulary with the model that turns words into cosines; and which texts have words that count.

    Texts follow each other as in `order`. There is no vocabulary if the embedding does not divide among words in the
    way that the page knows. Without an order of words, lines are level.
    """
    space = space_of(embedding)
    if not isinstance(space, Coordinates) or not isinstance(space.model.likelihood, DiagonalGaussian | TrendGaussian):
        return None, np.zeros(len(groups), dtype=bool)
    corpus: Any = space.corpus
    rows, sizes, condensed = _rows_of_texts(groups, order, corpus)
    tokens, names, vectors, weights, counts = _words(groups, rows)
    scaled = (vectors - corpus.mean[0]) / np.sqrt(corpus.variance[0])
    others = [text for text in condensed.values() if text.n_others]
    ordered = space.n_of_order > 0
    wide = len(names) >= 2**16
    centre = np.zeros(3 * groups.n_features, np.float32)
    centre[: len(embedding.mean_)] = embedding.mean_
    vocabulary = {
        "words": pack_json(names.tolist()),
        "weights": pack_positive(np.append(weights, [text.weight for text in others])),
        "sizes": pack(sizes.astype(np.int16)),
        "tokens": pack(tokens.astype(np.uint32 if wide else np.uint16)),
        "wide": wide,
        "condensed": _packed_texts(condensed),
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
    vocabulary["metric"] = _metric(projection_of(embedding), int(_METRIC_SHARE * room))
    vocabulary |= _vectors(
        np.concatenate([scaled, *(text.mean[None] for text in others), *(text.spread[None] for text in others)]),
        np.concatenate([counts, *2 * [[text.n_others for text in others]]]),
        np.concatenate([np.zeros(len(scaled)), *2 * [[text.variance for text in others]]]),
        int((1 - _METRIC_SHARE) * room),
    )
    return vocabulary, groups.totals > 0


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


def _rows_of_texts(
    groups: Groups, order: np.ndarray, corpus: Any
) -> tuple[np.ndarray, np.ndarray, dict[int, _Condensed]]:
    """The rows of `groups` that are the words of each text, in the order of texts; their numbers; and long texts."""
    most = _most_words(groups.sizes)
    words, weights = groups.row_indices, groups.row_weights
    found = []
    condensed = {}
    sizes = groups.sizes.copy()
    for i in order.tolist():
        own = np.arange(groups.offsets[i], groups.offsets[i + 1])
        if len(own) > most:
            condensed[i] = _Condensed.of(words[own], weights[own], groups.vectors, corpus, most)
            own = own[condensed[i].first]
            sizes[i] = len(own)
        found.append(own)
    return np.concatenate([np.empty(0, np.intp), *found]), sizes, condensed


def _most_words(sizes: np.ndarray) -> int:
    """The number of words above which texts are condensed to this number of distinct words, so that all have room."""
    most = MOST_WORDS
    while most > 1 and np.where(sizes <= most, sizes, _ROOM_OF_CONDENSED * most).sum() > _MOST_TOKENS:
        most = int(0.95 * most)
    return most


@dataclass
class _Condensed:
    """The distinct words of a long text: the most telling ones in the order of the text, and the mean of the others.

    Attributes
    ----------
    first : ndarray of int
        Where each word that stands for itself occurs first in the text.
    counts, places : ndarray
        How often each of them occurs, and the mean of its places.
    n_distinct : int
        Number of all distinct words.
    n_others : int
        How often other words occur.
    mean, variance, spread, weight, place : ndarray or float
        Of the other words: mean of the standardized vectors, mean of the variances of their features, differences of
        these variances from their mean, mean weight, mean place.
    within : float
        Weighted sum of squared distances between places and these means of places.
    """

    first: np.ndarray
    counts: np.ndarray
    places: np.ndarray
    n_distinct: int
    n_others: int
    mean: np.ndarray
    variance: float
    spread: np.ndarray
    weight: float
    place: float
    within: float

    @classmethod
    def of(cls, text: np.ndarray, weights: np.ndarray, vectors: np.ndarray, corpus: Any, most: int) -> _Condensed:
        """Condense a text, given by the row in the table of vectors and the weight of each of its words.

        Words tell most if their parts in the mean of the text are largest.
        """
        words, first, number, counts = np.unique(text, return_index=True, return_inverse=True, return_counts=True)
        scaled = (vectors[words] - corpus.mean[0]) / np.sqrt(corpus.variance[0])
        total = weights[first] * counts
        by_part = np.argsort(-total * np.linalg.norm(scaled, axis=1), kind="stable")
        own, others = np.split(by_part, [most])
        own = own[np.argsort(first[own])]
        label = np.full(len(words), len(own))  # of the words in the order of the text, the last for all others
        label[own] = np.arange(len(own))
        places = (2 * np.arange(len(text)) + 1) / len(text) - 1
        sums, turned = (np.bincount(label[number], x, minlength=len(own) + 1) for x in (weights, weights * places))
        means = np.divide(turned, sums, out=np.zeros(len(sums)), where=sums > 0)
        n_others = int(counts[others].sum())
        part = total[others] / (total[others].sum() or 1)
        mean = part @ scaled[others]
        variances = part @ (scaled[others] - mean) ** 2
        return cls(
            first=first[own],
            counts=counts[own],
            places=means[:-1],
            n_distinct=len(words),
            n_others=n_others,
            mean=mean,
            variance=float(variances.mean()),
            spread=variances - variances.mean(),
            weight=float(total[others].sum() / max(1, n_others)),
            place=float(means[-1]),
            within=float(weights @ (places - means[label[number]]) ** 2),
        )


def _packed_texts(condensed: dict[int, _Condensed]) -> dict[str, Any]:
    """What the page has of each long text, beside its words."""
    texts = condensed.values()
    counts = np.concatenate([np.empty(0), *(text.counts for text in texts)])
    places = np.concatenate([np.empty(0), *(text.places for text in texts)])
    scalars = np.array([[text.n_distinct, text.n_others, text.place, text.within] for text in texts])
    return {
        "texts": pack(np.array(list(condensed), dtype=np.int32)),
        "scalars": pack(scalars.astype(np.float32)),
        "counts": pack(counts.astype(np.uint32)),
        "places": pack(np.rint(127.5 * (places + 1)).astype(np.uint8)),
    }


def _words(groups: Groups, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The word of each row; and the names, vectors, weights and counts of the words, the most frequent first."""
    table, first, words, counts = np.unique(
        groups.row_indices[rows], return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    names: Any = groups.labels
    some = rows[first[order]]
    return rank[words], names[some], np.asarray(groups.vectors)[table[order]], groups.row_weights[some], counts[order]


def _vectors(scaled: np.ndarray, counts: np.ndarray, variance: np.ndarray, room: int) -> dict[str, Any]:
    """Standardized vectors as small integers, with a factor per word, and the variance per feature that they miss.

    The error of a word counts in each of its texts, so frequent words have finer steps. Factors are those of least
    squares. What is missed would make texts look narrower than they are, so the page adds it to their variances, as it
    adds the `variance` of the words that a mean stands for.
    """
    packed, codes = pack_rows(scaled * np.cbrt(counts)[:, None], room - 4 * len(counts))
    whole = codes.astype(np.float32)
    known = scaled[:, : codes.shape[1]]
    factors = np.einsum("ij,ij->i", known, whole) / np.maximum(np.einsum("ij,ij->i", whole, whole), 1)
    missed = (np.einsum("ij,ij->i", scaled, scaled) - factors * np.einsum("ij,ij->i", known, whole)) / scaled.shape[1]
    return {
        "vectors": packed,
        "factors": pack_positive(factors),
        "missed": pack_positive(np.maximum(missed, 0) + variance),
    }


def _metric(projection: np.ndarray, room: int) -> dict[str, Any]:
    """The matrix M of the inner product of points, x'My for coordinates x and y: diagonal and lower triangle."""
    metric = projection @ projection.T
    rows, columns = np.tril_indices(len(metric), -1)
    diagonal = np.diagonal(metric)
    scale = np.sqrt(np.maximum(diagonal, 1e-30))
    packed, _ = pack_rows((metric[rows, columns] / (scale[rows] * scale[columns]))[:, None], room)
    return {"diagonal": pack(diagonal.astype(np.float32)), "triangle": packed}
