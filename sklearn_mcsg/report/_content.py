"""The content of the page, as JSON and packed numbers: texts, points, the tree with the words of its nodes, columns."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import isfinite
from typing import Any
from zlib import compress

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.clustering.tree import ClusterTree
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.coordinates import Axes, Coordinates
from sklearn_mcsg.engine.cosine import compare_unit_rows
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.blocks import rows_of
from sklearn_mcsg.likelihoods import DiagonalGaussian, TrendGaussian
from sklearn_mcsg.text import ClusterSummary
from sklearn_mcsg.text.terms import Terms

MOST_CHARACTERS = 2000  # of a text; the rest is not shown
_TYPICAL = 3  # texts of each cluster that are always shown
_POINT_BYTES = 3_000_000  # of all points; more texts have fewer bytes for each number, and then fewer components
_PROJECTION_BYTES = 1_000_000  # of the matrix from coordinates to points; a larger one has one byte for each number
_N_PAIRS = 20_000  # random pairs for p-values
_FEW_PAIRS = 100  # with fewer random pairs no p-values are shown
_N_WORDS = 8  # of a node of the tree
_CATEGORIES = 12  # of a column, and one for the others
_CELL = 200  # characters of a value; the rest is not shown
_COLUMN_BYTES = 2_000_000  # of the values of all columns
_N_OUTLIERS = 40
_MANY_WORDS = 5  # enough for a pair that is worth looking at
_CANDIDATES = 20  # neighbours of a typical text among which the first pair is chosen
MOST_WORDS = 400  # of a text that is explained
_WORD_BYTES = 3_000_000  # of word vectors, which have one for each number if there is no room for two
TOO_LONG, TOO_RARE = -1, -2  # in place of the number of words, for texts that cannot be explained


def choose(summaries: list[ClusterSummary], n_texts: int, most: int, random_state: np.random.RandomState) -> np.ndarray:
    """The texts to show: all, or the most typical of each cluster and then others at random."""
    if n_texts <= most:
        return np.arange(n_texts)
    typical = zip_longest(*(summary.members[:_TYPICAL] for summary in summaries))
    first = [i for texts in typical for i in texts if i is not None]
    others = np.setdiff1d(np.arange(n_texts), first)
    return np.sort(np.concatenate([first, random_state.permutation(others)])[:most].astype(int))


def shown_texts(texts: Sequence[str], shown: np.ndarray) -> dict[str, Any]:
    """The texts, their line numbers if they are a sample, and the lengths of those that are cut."""
    some = [texts[i] for i in shown.tolist()]
    return {
        "texts": pack_json([text[:MOST_CHARACTERS] for text in some]),
        "cut": {k: len(text) for k, text in enumerate(some) if len(text) > MOST_CHARACTERS},
        "lines": None if len(shown) == len(texts) else pack(shown.astype(np.int32)),
    }


def n_components_shown(points: np.ndarray) -> int:
    """Number of leading components of the points that the page has room for; at least 128."""
    return min(points.shape[1], max(128, _POINT_BYTES // len(points)))


def shown_points(points: np.ndarray) -> dict[str, Any]:
    """The points, as far as there is room for their digits."""
    return quantized(points, _precision(points, _POINT_BYTES))


def shown_pairs(points: np.ndarray, random_state: np.random.RandomState) -> str:
    """Distances of random pairs of texts times 20,000, in ascending order; none if there are few pairs."""
    n = len(points)
    if n * (n - 1) // 2 < _FEW_PAIRS:
        return pack(np.empty(0, np.uint16))
    left = random_state.randint(n, size=_N_PAIRS)
    right = (left + random_state.randint(1, n, size=_N_PAIRS)) % n
    pairs = ((points[left[batch]], points[right[batch]]) for batch in gen_batches(_N_PAIRS, POINTS))
    distances = np.concatenate([compare_unit_rows(a, b, "distance") for a, b in pairs])
    return pack(np.rint(20_000 * np.sort(distances)).astype(np.uint16))


def first_pair(
    summaries: list[ClusterSummary], points: np.ndarray, groups: Groups, shown: np.ndarray, explained: np.ndarray
) -> list[int]:
    """Two similar texts with different words, one of them typical of a cluster; as positions among the shown texts.

    They are chosen among the texts that the page explains, if there are two; `explained` says which of `shown` it does.
    """
    best = -np.inf
    among = shown[explained] if explained.sum() > 1 else shown
    pair = among[0], among[min(1, len(among) - 1)]
    typical = np.intersect1d([i for summary in summaries for i in summary.members[:_TYPICAL]], among)
    words: Any = groups.labels
    candidates = points[among]
    for i in (typical if len(typical) else among)[: 50 * _TYPICAL]:
        cosines = (candidates @ points[i]).astype(np.float64)
        here = set(words[rows_of(groups, int(i))])
        for k in np.argsort(-cosines, kind="stable")[:_CANDIDATES]:
            there = set(words[rows_of(groups, int(among[k]))])
            fewer = min(len(here), len(there))
            score = cosines[k] * (1 - len(here & there) / max(1, fewer)) * min(1, fewer / _MANY_WORDS)
            if score > best and among[k] != i and fewer:
                best = score
                pair = i, among[k]
    return np.searchsorted(shown, pair).tolist()


def shown_outliers(outliers: np.ndarray, distances: np.ndarray, shown: np.ndarray) -> list[list[float]]:
    """The shown texts that are farthest from the centre of their cluster, as position and distance."""
    place = {int(i): k for k, i in enumerate(shown)}
    found = [i for i in outliers.tolist() if i in place][:_N_OUTLIERS]
    return [[place[i], round(float(distances[i]), 4)] for i in found]


def shown_tree(tree: ClusterTree, shown: np.ndarray) -> dict[str, Any]:
    """The tree, with the leaf of each shown text, the size of each leaf, and the BIC above its minimum."""
    return {
        "leafOf": pack(tree.leaf_of[shown].astype(np.uint32)),
        "sizes": np.bincount(tree.leaf_of, minlength=tree.n_leaves).tolist(),
        "children": tree.children.tolist(),
        "heights": tree.heights.round(5).tolist(),
        "excess": (tree.bic - tree.bic.min()).round(1).tolist(),
        "given": tree.n_clusters,
        "best": tree.best_number,
    }


def shown_words(tree: ClusterTree, terms: Terms, summaries: list[ClusterSummary], verbose: int) -> dict[str, Any]:
    """The words of each node of the tree, as numbers of terms with the number of the node's texts that have each.

    A node that is a cluster of the given partition has the words of its summary.
    """
    n_leaves = tree.n_leaves
    n = len(tree.leaf_of)
    given = dict(zip(tree.nodes(tree.n_clusters).tolist(), (summary.words for summary in summaries), strict=True))
    number = {name: i for i, name in enumerate(terms.names)}
    member = sparse.csr_matrix((np.ones(n), (tree.leaf_of, np.arange(n))), (n_leaves, n))
    sizes = np.bincount(tree.leaf_of, minlength=n_leaves).tolist()
    in_leaves = member @ terms.present
    counts = {leaf: in_leaves[leaf] for leaf in range(n_leaves)}
    used: dict[int, int] = {}
    nodes = []
    with progress(verbose, 2 * n_leaves - 1, "naming clusters", " clusters") as advance:
        for node in range(2 * n_leaves - 1):
            if node >= n_leaves:
                left, right = tree.children[node - n_leaves].tolist()
                counts[node] = counts.pop(left) + counts.pop(right)
                sizes.append(sizes[left] + sizes[right])
            here = counts[node].toarray()[0]
            n_clusters = min(n_leaves, 2 * n_leaves - 1 - node)  # when the node is made
            words = given.get(node) or terms.best(here, sizes[node], n / n_clusters, _N_WORDS)
            chosen = [number[word] for word in words if word in number]
            nodes.append([[used.setdefault(i, len(used)), int(here[i])] for i in chosen])
            advance(1)
    everywhere = terms.present.sum(axis=0).A1.astype(int)
    return {"terms": [[str(terms.names[i]), int(everywhere[i])] for i in used], "nodes": nodes}


# Words of the texts -------------------------------------------------------------------------------------------------


def shown_vocabulary(
    embedding: GroupEmbedding, groups: Groups, n_components: int
) -> tuple[dict[str, Any] | None, np.ndarray]:
    """Words of texts with their vectors, and the model that turns them into points; and which texts have their words.

    The page divides the cosine of any two texts among pairs of their words, as `GroupEmbedding.explain` does. The part
    of a word in a text's point depends on the word's vector and on line and variance of the text, so the page gets the
    vectors of all words and the words of all texts, and not a matrix for each of the pairs. Without an order, lines are
    level.

    There is no vocabulary if the embedding does not divide among words in the way that the page knows.
    """
    space = embedding.__mcsg_state__()["space"]
    if not isinstance(space, Coordinates) or not isinstance(space.model.likelihood, DiagonalGaussian | TrendGaussian):
        return None, np.zeros(len(groups), dtype=bool)
    short = groups.sizes <= MOST_WORDS
    explained: Groups = groups[np.flatnonzero(short)]
    words, names, vectors, weights = _words(explained)
    precision = _precision(vectors, _WORD_BYTES)
    room = _WORD_BYTES // (np.dtype(precision).itemsize * max(1, groups.n_features))  # for the most frequent words
    sizes = np.where(short, groups.sizes, TOO_LONG)
    rare = np.array([bool((part >= room).any()) for part in explained.split(words)], dtype=bool)
    sizes[np.flatnonzero(short)[rare]] = TOO_RARE
    kept = words[np.repeat(~rare, explained.sizes)]
    corpus: Any = space.corpus
    ordered = space.n_of_order > 0
    centre = np.zeros(3 * groups.n_features, np.float32)
    centre[: len(embedding.mean_)] = embedding.mean_
    axes = Axes(embedding.mean_, embedding.components_, embedding.explained_variance_)
    projection = axes.projection(embedding.whiten)[:, :n_components]
    vocabulary = {
        "words": pack_json(names[:room].tolist()),
        "vectors": quantized(vectors[:room], precision),
        "weights": pack(weights[:room].astype(np.float32)),
        "sizes": pack(sizes.astype(np.int16)),
        "tokens": pack(kept.astype(np.uint16 if len(names) < 2**16 else np.uint32)),
        "wide": len(names) >= 2**16,
        "projection": quantized(projection, _precision(projection, _PROJECTION_BYTES)),
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
    return vocabulary, (sizes > 0) & (groups.totals > 0)


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


# Columns of the input -----------------------------------------------------------------------------------------------


def shown_columns(columns: Mapping[str, Sequence[Any]], shown: np.ndarray) -> list[dict[str, Any]]:
    """Columns with their values as texts, and with codes if points can be coloured by them.

    The shortest columns come with their values, as long as there is room.
    """
    every = ((str(name), list(values)) for name, values in columns.items())
    made = [_column(name, [values[i] for i in shown.tolist()]) for name, values in every]
    room = _COLUMN_BYTES
    for column in sorted(made, key=lambda column: len(column["cells"])):
        room -= len(column["cells"])
        column["cells"] = column["cells"] if room >= 0 else None
    return [column for column in made if column["cells"] or "codes" in column]


def _column(name: str, values: list[Any]) -> dict[str, Any]:
    present = [None if _is_missing(value) else value for value in values]
    texts = ["" if value is None else str(value) for value in present]
    cells = pack_json([text if len(text) <= _CELL else f"{text[:_CELL]}\u2026" for text in texts])
    colours = _colours(present)
    names_rows = colours.get("others", 0) > len(values) / 2
    return {"name": name, "cells": cells, **({} if names_rows else colours)}


def _colours(present: list[Any]) -> dict[str, Any]:
    """Numbers, if all values are numbers and there are more than a few different ones, or else categories."""
    numbers = _as_numbers(present)
    frequent = Counter(str(value) for value in present if value is not None).most_common()
    if numbers is not None and len(np.unique(numbers[~np.isnan(numbers)])) > _CATEGORIES:
        low, high = np.nanmin(numbers), np.nanmax(numbers)
        with np.errstate(invalid="ignore"):
            levels = np.rint(65_534 * ((numbers / 2 - low / 2) / (high / 2 - low / 2)))  # halves do not overflow
        codes = np.where(np.isnan(numbers), 65_535, levels).astype(np.uint16)
        return {"low": float(low), "high": float(high), "codes": pack(codes)}
    names = [value for value, _ in frequent[:_CATEGORIES]]
    code = {value: k for k, value in enumerate(names)}
    codes = np.array([255 if v is None else code.get(str(v), _CATEGORIES) for v in present], dtype=np.uint8)
    others = sum(count for _, count in frequent[_CATEGORIES:])
    counts = [count for _, count in frequent[:_CATEGORIES]]
    return {"values": names, "counts": counts, "others": others, "codes": pack(codes)}


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return not isfinite(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, str) and not value)


def _as_numbers(values: list[Any]) -> np.ndarray | None:
    """The values as numbers, with NaN for missing ones, or None if one is not a number."""
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).any() and not np.isinf(numbers).any() else None


# Arrays and texts as short strings that the page unpacks ------------------------------------------------------------


def pack(numbers: np.ndarray) -> str:
    """Numbers, little-endian, as compressed base64 text."""
    numbers = np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<"))
    return b64encode(compress(numbers.tobytes(), 9)).decode()


def pack_json(value: Any) -> str:
    """Lists, dictionaries and strings as compressed base64 text. Lone surrogates become question marks."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b64encode(compress(text.encode("utf-8", "replace"), 9)).decode()


def _precision(rows: np.ndarray, room: int) -> type[np.signedinteger]:
    """Two bytes for each number if there is room for so many, or else one."""
    return np.int16 if 2 * rows.size <= room else np.int8


def quantized(rows: np.ndarray, dtype: type[np.signedinteger]) -> dict[str, Any]:
    """Columns of numbers as small integers, with one factor per column."""
    factors = np.abs(rows).max(axis=0, initial=0) / np.iinfo(dtype).max
    codes = np.rint(rows / np.where(factors > 0, factors, 1)).astype(dtype)
    return {
        "codes": pack(codes),
        "factors": pack(factors.astype(np.float32)),
        "columns": rows.shape[1],
        "bytes": codes.itemsize,
    }
