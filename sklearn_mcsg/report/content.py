"""What the page holds, as JSON and packed numbers: texts, clusters, pairs, words, the tree and the evidence."""

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

from sklearn_mcsg.calibration import null_distribution, pair_size
from sklearn_mcsg.clustering import ModelComparisonClustering
from sklearn_mcsg.engine.comparison import Prepared
from sklearn_mcsg.engine.learnt import Learnt
from sklearn_mcsg.explanation import NO_DIFFERENCE, contributions
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.report.layout import map_of
from sklearn_mcsg.text import ClusterSummary
from sklearn_mcsg.text.tokens import APOSTROPHES, tokenize

LEVELS = 15  # of colour, on either side of none
_LEAVES = 60  # of a tree that is not shown whole, or one for each cluster if there are more clusters
_STEM = 0.03  # of a leaf, beside a tree of height 1
_FEW_PAIRS = 100  # with fewer random pairs no p-values are shown
_N_PAIRS = 20_000  # random pairs for p-values


def shown_texts(texts: list[str], words: list[list[str]], vectorizer: Any) -> dict[str, Any]:
    """Texts in parts, and which of its distinct words every second part is."""
    parts = [_parts(vectorizer, text, known) for text, known in zip(texts, words, strict=True)]
    distinct = [list(dict.fromkeys(known)) for known in words]
    return {
        "texts": [pieces for pieces, _ in parts],
        "ids": [ids for _, ids in parts],
        "words": [known if ids is None else len(known) for known, (_, ids) in zip(distinct, parts, strict=True)],
    }


def _parts(vectorizer: Any, text: str, known: list[str]) -> tuple[list[str], list[int] | None]:
    """A text in parts, those at odd places its known words, and the numbers of these among its distinct words.

    The numbers are None if the words cannot be found in the text, as after stemming.
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
        start = folded.find(token, place)
        if start < 0:
            continue
        place = start + len(token)
        if len(ids) < len(expected) and expected[len(ids)] in (token, token.lower()):
            ids.append(number[expected[len(ids)]])
            parts += [text[end:start], text[start:place]]
            end = place
    if len(ids) < len(expected):
        return [text], None
    return [*parts, text[end:]], ids


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


def shown_pairs(learnt: Learnt, shown: np.ndarray, random_state: np.random.RandomState) -> dict[str, Any]:
    """Distances of all pairs of shown texts with their p-values, and the map."""
    prepared = learnt.fitted(learnt.output)
    some = prepared[shown]
    distances = learnt.comparison.all_pairs(some, None, learnt.output)
    chance, whole = _chance(learnt, prepared, some, distances, random_state)
    return {
        "distances": pack(squareform(distances, checks=False).astype("<f4")),
        "chance": pack(chance.astype("<u2")),
        "whole": whole,
        "map": np.rint(10_000 * map_of(distances, random_state)).astype(int).tolist(),
    }


def _chance(
    learnt: Learnt, every: Prepared, some: Prepared, distances: np.ndarray, random_state: np.random.RandomState
) -> tuple[np.ndarray, int]:
    """How often random pairs are as near as each pair, in parts of a whole; nothing if there are few random pairs."""
    n = len(every)
    if n * (n - 1) // 2 < _FEW_PAIRS or len(some) == 1:
        return np.empty(0), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        null = null_distribution(learnt, every, _N_PAIRS, random_state)
    left, right = np.triu_indices(len(some), 1)
    p = null.p_value(pair_size(some.n[left], some.n[right]), distances[left, right])
    return np.rint(p * (1 + null.window)), 1 + null.window


def word_tones(learnt: Learnt, groups: Groups, shown: np.ndarray, words: list[list[str]]) -> np.ndarray:
    """Relative contributions of the words of each shown text to its pair with every other, in levels.

    They are `Explanation.relative` as a share of the largest in the pair, from -`LEVELS` to `LEVELS`, text after text:
    for each distinct word, the values against all texts.
    """
    gains = list(contributions(learnt, groups, learnt.fitted(learnt.output)[shown]))
    weights = groups.split(groups.row_weights)
    total = np.array([gain.sum(axis=1) for gain in gains])
    weight = np.array([w.sum() for w in weights])
    weight = weight[:, None] + weight
    average = (total + total.T) / np.where(weight > 0, weight, 1)
    relative = [gain - np.outer(average[i], weights[i]) for i, gain in enumerate(gains)]
    least = NO_DIFFERENCE * _largest(gains)
    largest = _largest(relative)
    largest = np.where(largest > least, largest, np.inf)
    levels = []
    for i, known in enumerate(words):
        first: dict[str, int] = {}
        for k, word in enumerate(known):
            first.setdefault(word, k)
        tones = relative[i][:, list(first.values())] / largest[i][:, None]
        levels.append(np.rint(LEVELS * tones).astype(np.int8).T.ravel())
    return np.concatenate(levels)


def _largest(values: list[np.ndarray]) -> np.ndarray:
    """The largest absolute value of each pair of texts."""
    one_way = np.array([np.abs(value).max(axis=1, initial=0) for value in values])
    return np.maximum(one_way, one_way.T)


def shown_tree(
    clustering: ModelComparisonClustering, summaries: list[ClusterSummary], labels: np.ndarray, shown: np.ndarray
) -> dict[str, Any]:
    """The tree, or its upper part if not all texts are shown.

    Leaves are a shown text or -1, the cluster or -1, and a size. Merges are two nodes, a height on the scale of square
    roots as a share of the largest, the cluster or -1, and the similarity.
    """
    n, k = clustering.n_groups_, len(summaries)
    n_leaves = n if n == len(shown) else min(n, max(_LEAVES, min(k, len(shown))))
    number = {summary.label: i for i, summary in enumerate(summaries)}
    place = {int(i): j for j, i in enumerate(shown)}
    sizes = np.concatenate([np.ones(n), clustering.linkage_matrix_[:, 3]]).astype(int)
    some = np.arange(2 * n - 1)  # a text of each node
    for t, (child, _) in enumerate(clustering.children_):
        some[n + t] = some[child]

    def cluster(node: int) -> int:
        return number[int(labels[some[node]])] if node < n + n - k else -1

    first = n - n_leaves  # merge that is shown
    kept = clustering.children_[first:]
    leaves = np.setdiff1d(np.unique(kept), np.arange(n + first, 2 * n)) if n > 1 else np.arange(1)
    renamed = {int(node): i for i, node in enumerate(chain(leaves, range(n + first, 2 * n - 1)))}
    heights = np.sqrt(np.maximum(clustering.distances_, 0))
    heights = _STEM + heights / (heights.max(initial=0) or 1)
    heights[n - k :] += _STEM  # room for the cut, where mergers have the same height
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
    """The criterion of the partitions, less its minimum, up to a few times the best and the chosen number."""
    best = int(np.argmin(evidence)) + 1
    last = min(len(evidence), max(20, 4 * best, 4 * chosen))
    numbers = np.unique(np.rint(np.geomspace(1, last, 400)).astype(int))
    numbers = np.union1d(numbers, [best, chosen])
    excess = evidence[numbers - 1] - evidence.min()
    return {"numbers": numbers.tolist(), "excess": excess.round(2).tolist(), "best": best, "chosen": chosen}


def pack(numbers: np.ndarray) -> str:
    """Numbers as compressed text."""
    return b64encode(compress(numbers.tobytes(), 9)).decode()
