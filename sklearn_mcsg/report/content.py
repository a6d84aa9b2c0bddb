"""The content of the page, as JSON and packed numbers: texts, clusters, pairs, words, the tree and the evidence."""

from __future__ import annotations

import unicodedata
import warnings
from base64 import b64encode
from collections.abc import Callable
from itertools import chain
from typing import Any
from zlib import compress

import numpy as np
from scipy.spatial.distance import squareform

from sklearn_mcsg.clustering import ModelComparisonClustering
from sklearn_mcsg.explanation import largest_of_pairs
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.report.layout import map_of
from sklearn_mcsg.text import ClusterSummary
from sklearn_mcsg.text.spelling import parts_of
from sklearn_mcsg.text.tokens import APOSTROPHES, tokenize

LEVELS = 15  # levels of each colour
_LEAVES = 60  # leaves of a tree that is not shown in full, or one per cluster if that is more
_STEM = 0.03  # length of a leaf's branch, for a tree of height 1
_FEW_PAIRS = 100  # with fewer random pairs no p-values are shown
_N_PAIRS = 20_000  # random pairs for p-values


def shown_texts(texts: list[str], words: list[list[str]], vectorizer: Any) -> dict[str, Any]:
    """Texts in parts; every second part is a word, numbered among the distinct words of its text."""
    parts = [_parts(vectorizer, text, known) for text, known in zip(texts, words, strict=True)]
    distinct = [list(dict.fromkeys(known)) for known in words]
    return {
        "texts": [pieces for pieces, _ in parts],
        "ids": [ids for _, ids in parts],
        "words": [known if ids is None else len(known) for known, (_, ids) in zip(distinct, parts, strict=True)],
    }


def _parts(vectorizer: Any, text: str, known: list[str]) -> tuple[list[str], list[int] | None]:
    """A text in parts, with its known words at odd positions, and their numbers among its distinct words.

    The numbers are None if the words cannot be found in the text, for example after stemming.
    """
    number = {word: k for k, word in enumerate(dict.fromkeys(known))}
    expected = known[:-1] if vectorizer.pad_token is not None else known
    text = unicodedata.normalize("NFC", text)
    folded = _folded(text) if vectorizer.lowercase else text.translate(APOSTROPHES)
    split: Callable = tokenize if vectorizer.tokenizer is None else vectorizer.tokenizer
    parts: list[str] = []
    ids: list[int] = []
    end = place = 0
    for token in split(folded):
        for word in _words_of(token, expected[len(ids) : len(ids) + 1], vectorizer):
            start = folded.find(word, place)
            if start < 0:
                continue
            place = start + len(word)
            if len(ids) < len(expected) and expected[len(ids)] in (word, word.lower()):
                ids.append(number[expected[len(ids)]])
                parts += [text[end:start], text[start:place]]
                end = place
    if len(ids) < len(expected):
        return [text], None
    return [*parts, text[end:]], ids


def _words_of(token: str, expected: list[str], vectorizer: Any) -> list[str]:
    """The token itself if it is expected next; otherwise the words that the vectorizer may have divided it into."""
    whole = token in expected or token.lower() in expected or getattr(vectorizer, "unknown", "ignore") == "ignore"
    return [token] if whole else parts_of(token)


def _folded(text: str) -> str:
    """A text in lower case with plain apostrophes, of the same length."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(c if len(c.lower()) != 1 else c.lower() for c in text)
    return lower.translate(APOSTROPHES)


def shown_clusters(summaries: list[ClusterSummary], shown: np.ndarray) -> dict[str, Any]:
    """The clusters, the largest first, and the cluster of each shown text."""
    place = {int(i): k for k, i in enumerate(shown)}
    clusters, cluster_of = [], [0] * len(shown)
    for number, summary in enumerate(summaries):
        members = [place[i] for i in summary.members.tolist() if i in place]
        clusters.append({"size": len(summary.members), "words": summary.words, "members": members})
        for k in members:
            cluster_of[k] = number
    return {"clusters": clusters, "clusterOf": cluster_of}


def shown_pairs(similarity: Any, shown: np.ndarray, random_state: np.random.RandomState) -> dict[str, Any]:
    """Distances of all pairs of shown texts with their p-values, and the map."""
    distances = similarity.compare_fitted(shown, shown).astype(np.float64)
    distances = 0.5 * (distances + distances.T)
    chance, whole = _chance(similarity, shown, distances, random_state)
    return {
        "distances": pack(squareform(distances, checks=False).astype("<f4")),
        "chance": pack(chance.astype("<u2")),
        "whole": whole,
        "map": np.rint(10_000 * map_of(distances, random_state)).astype(int).tolist(),
    }


def _chance(
    similarity: Any, shown: np.ndarray, distances: np.ndarray, random_state: np.random.RandomState
) -> tuple[np.ndarray, int]:
    """P-values of all pairs as numerators and one denominator; empty and 0 if there are few random pairs."""
    n = similarity.n_groups_
    if n * (n - 1) // 2 < _FEW_PAIRS or len(shown) == 1:
        return np.empty(0), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = 1 + similarity.calibrate(n_pairs=_N_PAIRS, random_state=random_state).n_random_pairs
    left, right = np.triu_indices(len(shown), 1)
    p = similarity.p_value_of_fitted(shown[left], shown[right], distances[left, right])
    return np.rint(p * whole), whole


def word_tones(similarity: Any, groups: Groups, shown: np.ndarray, words: list[list[str]]) -> np.ndarray:
    """Contributions of the words of each shown text to its pair with every other, in levels.

    They are scaled so that the largest in a pair is `LEVELS`, and ordered by text, then by distinct word of the text,
    then by the other text of the pair.
    """
    contributions = similarity.vector_contributions(groups, shown)
    largest = largest_of_pairs(contributions)
    largest = np.where(largest > 0, largest, np.inf)
    levels = []
    for i, known in enumerate(words):
        first: dict[str, int] = {}
        for k, word in enumerate(known):
            first.setdefault(word, k)
        tones = contributions[i][:, list(first.values())] / largest[i][:, None]
        levels.append(np.rint(LEVELS * tones).astype(np.int8).T.ravel())
    return np.concatenate(levels)


def shown_tree(
    clustering: ModelComparisonClustering, summaries: list[ClusterSummary], labels: np.ndarray, shown: np.ndarray
) -> dict[str, Any]:
    """The tree, or its upper part if not all texts are shown.

    A leaf is a list: shown text or -1, cluster or -1, size. A merge is a list: two nodes, height, cluster or -1,
    similarity. Heights are square roots, divided by the largest.
    """
    n, k = clustering.n_groups_, len(summaries)
    n_leaves = n if n == len(shown) else min(n, max(_LEAVES, min(k, len(shown))))
    number = {summary.label: i for i, summary in enumerate(summaries)}
    place = {int(i): j for j, i in enumerate(shown)}
    sizes = np.concatenate([np.ones(n), clustering.linkage_matrix_[:, 3]]).astype(int)
    some = np.arange(2 * n - 1)  # one text of each node
    for t, (child, _) in enumerate(clustering.children_):
        some[n + t] = some[child]

    def cluster(node: int) -> int:
        return number[int(labels[some[node]])] if node < n + n - k else -1

    first = n - n_leaves  # the first merge that is shown
    kept = clustering.children_[first:]
    leaves = np.setdiff1d(np.unique(kept), np.arange(n + first, 2 * n)) if n > 1 else np.arange(1)
    renamed = {int(node): i for i, node in enumerate(chain(leaves, range(n + first, 2 * n - 1)))}
    heights = np.sqrt(np.maximum(clustering.distances_, 0))
    heights = _STEM + heights / (heights.max(initial=0) or 1)
    heights[n - k :] += _STEM  # room for the cut between merges of the same height
    heights /= heights.max(initial=0) or 1
    below, above = [0.0, *heights][n - k], [*heights, 1.1][n - k]
    return {
        "leaves": [[place.get(i, -1), cluster(i), int(sizes[i])] for i in leaves.tolist()],
        "mergers": [
            [renamed[int(a)], renamed[int(b)], round(float(height), 6), cluster(n + t), round(float(similarity), 2)]
            for t, (a, b), height, similarity in zip(
                range(first, n - 1), kept, heights[first:], clustering.similarities_[first:], strict=True
            )
        ],
        "cut": round(float(below + above) / 2, 6),
    }


def shown_evidence(evidence: np.ndarray, chosen: int) -> dict[str, Any]:
    """The criterion of the partitions, minus its minimum, up to a few times the best or chosen number of clusters."""
    best = int(np.argmin(evidence)) + 1
    last = min(len(evidence), max(20, 4 * best, 4 * chosen))
    numbers = np.unique(np.rint(np.geomspace(1, last, 400)).astype(int))
    numbers = np.union1d(numbers, [best, chosen])
    excess = evidence[numbers - 1] - evidence.min()
    return {"numbers": numbers.tolist(), "excess": excess.round(2).tolist(), "best": best, "chosen": chosen}


def pack(numbers: np.ndarray) -> str:
    """Numbers as compressed base64 text."""
    return b64encode(compress(numbers.tobytes(), 9)).decode()
