"""The content of the page, as JSON and packed numbers: texts, points, the tree with the words of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.clustering.tree import ClusterTree
from sklearn_mcsg.engine.chance import N_PAIRS, random_pairs
from sklearn_mcsg.engine.cosine import compare_unit_rows
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.blocks import rows_of
from sklearn_mcsg.report._packing import pack, pack_json
from sklearn_mcsg.text import ClusterSummary, TextClusters
from sklearn_mcsg.text.terms import Terms

MOST_CHARACTERS = 2000  # of a text; the rest is not shown
_FEWEST_CHARACTERS = 250  # of a text, if there is no room for more
_TEXT_BYTES = 4_000_000  # of all texts: if they are longer, each is cut after fewer characters
_TYPICAL = 3  # texts of each cluster that are always shown
_FEW_PAIRS = 100  # with fewer random pairs no p-values are shown
_N_WORDS = 8  # of a node of the tree
_N_OUTLIERS = 40
_MANY_WORDS = 5  # enough for a pair that is worth looking at
_CANDIDATES = 20  # neighbours of a typical text among which the first pair is chosen


def choose(summaries: list[ClusterSummary], n_texts: int, most: int, random_state: np.random.RandomState) -> np.ndarray:
    """The texts to show: all, or the most typical of each cluster and then others at random."""
    if n_texts <= most:
        return np.arange(n_texts)
    typical = zip_longest(*(summary.members[:_TYPICAL] for summary in summaries))
    first = [i for texts in typical for i in texts if i is not None]
    others = np.setdiff1d(np.arange(n_texts), first)
    return np.sort(np.concatenate([first, random_state.permutation(others)])[:most].astype(int))


def shown_texts(texts: Sequence[str], shown: np.ndarray, order: np.ndarray) -> dict[str, Any]:
    """The texts, their line numbers if they are a sample, and the lengths of those that are cut.

    Texts follow each other as in `order`: next to texts like them, they take less room.
    """
    some = [texts[i] for i in shown.tolist()]
    most = MOST_CHARACTERS
    packed = pack_json([some[k][:most] for k in order.tolist()])
    while len(packed) > _TEXT_BYTES and most > _FEWEST_CHARACTERS:
        most //= 2
        packed = pack_json([some[k][:most] for k in order.tolist()])
    return {
        "texts": packed,
        "cut": {k: len(text) for k, text in enumerate(some) if len(text) > most},
        "lines": None if len(shown) == len(texts) else pack(shown.astype(np.int32)),
    }


def shown_pairs(points: np.ndarray, random_state: np.random.RandomState) -> str:
    """Distances of random pairs of texts times 20,000, in ascending order; none if there are few pairs."""
    left, right = random_pairs(len(points), N_PAIRS, random_state)
    if len(left) < _FEW_PAIRS:
        return pack(np.empty(0, np.uint16))
    pairs = ((points[left[batch]], points[right[batch]]) for batch in gen_batches(len(left), POINTS))
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
    """The tree, with the leaf of each shown text, the size of each leaf, and the number that the BIC supports."""
    return {
        "leafOf": pack(tree.leaf_of[shown].astype(np.uint32)),
        "sizes": np.bincount(tree.leaf_of, minlength=tree.n_leaves).tolist(),
        "children": tree.children.tolist(),
        "heights": tree.heights.round(5).tolist(),
        "given": tree.n_clusters,
        "best": tree.best_number,
    }


def shown_certainty(clusters: TextClusters, shown: np.ndarray) -> dict[str, Any]:
    """Stability of the clusters as they were found, by node of the tree; and the second-best node and margin of texts.

    Margins are multiplied by 10,000. With a single cluster there is nothing to be sure of.
    """
    if len(clusters) == 1:
        return {"stability": {}, "second": None, "margins": None}
    nodes = clusters.tree.nodes(len(clusters))
    stability = {node: round(value, 4) for node, value in zip(nodes.tolist(), clusters.stability.tolist(), strict=True)}
    return {
        "stability": {node: value for node, value in stability.items() if value == value},
        "second": pack(nodes[clusters.second[shown]].astype(np.uint32)),
        "margins": pack(np.rint(10_000 * clusters.margins[shown]).astype(np.int16)),
    }


def shown_labels(tree: ClusterTree, terms: Terms, summaries: list[ClusterSummary], verbose: int) -> dict[str, Any]:
    """The words of each node of the tree, as numbers of terms with the number of the node's texts that have each.

    A node that is a cluster of the given partition has the words of its summary, and its name if it has one.
    """
    n_leaves = tree.n_leaves
    n = len(tree.leaf_of)
    nodes_given = tree.nodes(tree.n_clusters).tolist()
    given = dict(zip(nodes_given, (summary.words for summary in summaries), strict=True))
    names = {node: s.name for node, s in zip(nodes_given, summaries, strict=True) if s.name is not None}
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
    return {"terms": [[str(terms.names[i]), int(everywhere[i])] for i in used], "nodes": nodes, "names": names}
