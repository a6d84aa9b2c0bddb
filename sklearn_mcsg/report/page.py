"""A page that shows clusters of texts: one HTML file with everything in it.

    texts, distances, contributions, tree --> JSON and packed numbers --> data/report.html, .css and .js in one page

The page computes nothing but its layout: whatever it shows was computed here.
"""

from __future__ import annotations

import json
import platform
import re
import unicodedata
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import chain, zip_longest
from typing import Any
from zlib import compress

import numpy as np
import scipy
import sklearn
from scipy.linalg import eigh
from scipy.spatial import KDTree
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator
from sklearn.manifold import TSNE
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sklearn_mcsg._calibration import NullDistribution, pair_size
from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._version import __version__
from sklearn_mcsg.clustering import ModelComparisonClustering
from sklearn_mcsg.explanation import contributions
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.summary import ClusterSummary, summarize_clusters
from sklearn_mcsg.text import tokenize

__all__ = ["cluster_report"]

_LEVELS = 15  # of colour, on either side of none
_TONES = 5_000_000  # of words compared with texts, at most: they make up most of the page
_TYPICAL = 3  # texts of each cluster that are always shown
_LEAVES = 60  # of a tree that is not shown whole, or one for each cluster if these are more
_STEM = 0.03  # of a leaf, beside a tree of height 1
_FEW = 100  # random pairs, below which nothing is said of chance
_GAP = 0.015  # between two points, as a share of the map's width
_NO_DIFFERENCE = 1e-9  # of the largest contribution, as in an Explanation
_APOSTROPHES = str.maketrans("\u2019\u02bc", "''")
_NAMES = {"centered": "centered distance, from 0 to 2", "distance": "distance", "divergence": "divergence"}


def cluster_report(
    texts: Sequence[str],
    pipeline: Pipeline,
    clustering: ModelComparisonClustering,
    *,
    title: str = "Clusters of texts",
    settings: Mapping[str, Any] | None = None,
    n_clusters: int | None = None,
    max_texts: int = 400,
    random_state: int | np.random.RandomState | None = 0,
) -> str:
    """Make a page that shows clusters of texts, in one HTML file that needs no network.

    It has a map of the texts, the clusters with their words and most typical texts, the tree of mergers, the evidence
    for each number of clusters, and for any two texts the words that speak for and against one shared model.

    Parameters
    ----------
    texts : list of str
        The texts.
    pipeline : Pipeline
        An `EmbeddingVectorizer` and a `ModelComparisonSimilarity`, fitted to the texts, as `make_text_similarity`
        builds it. Distances on the page are those of its output, or ``"distance"`` in place of ``"similarity"``.
    clustering : ModelComparisonClustering
        Fitted to ``pipeline[:-1].transform(texts)``.
    title : str, default="Clusters of texts"
        Title of the page.
    settings : dict, default=None
        What else the foot of the page is to list. It lists the parameters of all parts and the versions anyway.
    n_clusters : int, default=None
        Number of clusters to cut the tree at; ``None`` means the clusters of `clustering`.
    max_texts : int, default=400
        Number of texts to show. When there are more, the page has the most typical ones of each cluster and others at
        random; sizes, words and evidence are those of all. When texts are long, fewer are shown, so that the page stays
        below 5 MB or so.
    random_state : int, RandomState instance or None, default=0
        Determines the map, that sample and the random pairs of p-values. With an int, the same input gives the same
        page.

    Returns
    -------
    page : str
        The page, to be written in UTF-8.

    Notes
    -----
    Texts, titles and settings are shown as text, whatever they hold. The page asks the browser to run no script but its
    own and to load nothing.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonClustering, make_text_similarity
    >>> from sklearn_mcsg.report import cluster_report
    >>> texts = ["A cat sat on the mat.", "A kitten lay on the rug.", "Shares fell on Monday.", "Stock markets fell."]
    >>> pipeline = make_text_similarity().fit(texts)
    >>> clustering = ModelComparisonClustering(n_clusters=2).fit(pipeline[:-1].transform(texts))
    >>> page = cluster_report(texts, pipeline, clustering, title="Cats and shares")
    >>> page[:15], "<title>Cats and shares</title>" in page
    ('<!doctype html>', True)
    """
    texts = _check_texts(texts)
    _check_fitted(texts, pipeline, clustering)
    check_positive_integer(max_texts, "max_texts")
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"settings must be a dict of what to list, got {type(settings).__name__}.")
    labels = clustering.labels_ if n_clusters is None else clustering.cut(n_clusters)
    rng = check_random_state(random_state)
    model = copy(pipeline[-1])  # calibrated below, and possibly with another output: not the caller's
    model.random_state = rng
    if model.output == "similarity":
        model.output = "distance"
    summaries = summarize_clusters(pipeline, texts, labels)
    words = pipeline[0].known_words(texts)
    shown = _choose(summaries, [len(set(text)) for text in words], max_texts, rng)
    groups = pipeline[:-1].transform([texts[i] for i in shown])
    data = {
        "output": _NAMES[model.output],
        **_shown_texts([texts[i] for i in shown], [words[i] for i in shown], pipeline[0]),
        **_clusters(summaries, shown),
        **_pairs(model, groups, rng),
        "tones": _pack(_tones(model, groups, [words[i] for i in shown])),
        "levels": _LEVELS,
        "tree": _tree(clustering, summaries, labels, shown),
        "evidence": _evidence(clustering.evidence_, len(summaries)),
    }
    foot = _foot(pipeline, clustering, settings or {})
    return _page(data, {"title": _safe(title), "facts": _facts(clustering, len(summaries), len(shown)), "foot": foot})


# What goes in -------------------------------------------------------------------------------------------------------


def _check_texts(texts: Any) -> list[str]:
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a list of strings, got {type(texts).__name__}.")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"Text {i} is not a string but {type(text).__name__}: {text!r}.")
    return texts


def _check_fitted(texts: list[str], pipeline: Any, clustering: Any) -> None:
    parts = list(pipeline) if isinstance(pipeline, Pipeline) else []
    if len(parts) != 2 or not hasattr(parts[0], "known_words") or not isinstance(parts[1], ModelComparisonSimilarity):
        raise TypeError(
            "cluster_report needs a pipeline of an EmbeddingVectorizer and a ModelComparisonSimilarity, as "
            "make_text_similarity builds it."
        )
    if not isinstance(clustering, ModelComparisonClustering):
        raise TypeError(f"cluster_report needs a ModelComparisonClustering, got {type(clustering).__name__}.")
    for name, part in (("pipeline", parts[1]), ("clustering", clustering)):
        check_is_fitted(part, "n_groups_")
        if part.n_groups_ != len(texts):
            raise ValueError(
                f"The {name} was fitted to {part.n_groups_} texts, but there are {len(texts)}: fit it to these texts."
            )


# What the page holds ------------------------------------------------------------------------------------------------


def _choose(
    summaries: list[ClusterSummary], n_words: list[int], max_texts: int, random_state: np.random.RandomState
) -> np.ndarray:
    """The texts to show: the most typical of each cluster, then others at random, as far as there is room."""
    typical = zip_longest(*(summary.members[:_TYPICAL] for summary in summaries))
    first = [i for texts in typical for i in texts if i is not None]
    others = np.setdiff1d(np.arange(len(n_words)), first)
    order = np.concatenate([first, random_state.permutation(others)]).astype(int)
    tones = np.cumsum(np.take(n_words, order)) * np.arange(1, len(order) + 1)
    room = int(np.searchsorted(tones, _TONES, side="right"))
    return np.sort(order[: max(1, min(max_texts, room))])


def _shown_texts(texts: list[str], words: list[list[str]], vectorizer: Any) -> dict[str, Any]:
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
    folded = _folded(text) if vectorizer.lowercase else text.translate(_APOSTROPHES)
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
    return lower.translate(_APOSTROPHES)


def _clusters(summaries: list[ClusterSummary], shown: np.ndarray) -> dict[str, Any]:
    """The clusters, the largest first, and the cluster of each shown text."""
    place = {int(i): k for k, i in enumerate(shown)}
    clusters, cluster_of = [], [0] * len(shown)
    for number, summary in enumerate(summaries):
        members = [place[i] for i in summary.members.tolist() if i in place]
        clusters.append({"size": len(summary.members), "words": summary.words, "members": members})
        for k in members:
            cluster_of[k] = number
    return {"clusters": clusters, "clusterOf": cluster_of}


def _pairs(model: ModelComparisonSimilarity, groups: Groups, random_state: np.random.RandomState) -> dict[str, Any]:
    """Distances of all pairs with their p-values, and the map."""
    distances = np.asarray(model.pairwise(groups), dtype=np.float64)
    chance, whole = _chance(model, groups, distances)
    return {
        "distances": _pack(squareform(distances, checks=False).astype("<f4")),
        "chance": _pack(chance.astype("<u2")),
        "whole": whole,
        "map": np.rint(10_000 * _map(distances, random_state)).astype(int).tolist(),
    }


def _chance(model: ModelComparisonSimilarity, groups: Groups, distances: np.ndarray) -> tuple[np.ndarray, int]:
    """How often random pairs are as near as each pair, in parts of a whole; nothing if there are few of them."""
    n = model.n_groups_
    if n * (n - 1) // 2 < _FEW or len(groups) == 1:
        return np.empty(0), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.calibrate()
    null: NullDistribution = model._null[1]
    size = model._prepare(groups, model.output).n
    left, right = np.triu_indices(len(groups), 1)
    p = null.p_value(pair_size(size[left], size[right]), distances[left, right])
    return np.rint(p * (1 + null.window)), 1 + null.window


def _tones(model: ModelComparisonSimilarity, groups: Groups, words: list[list[str]]) -> np.ndarray:
    """What the words of each text say of the pair with every other, from -1 to 1, in levels.

    They are `Explanation.relative` as a share of the largest in the pair, text after text: for each distinct word, the
    tones against all texts.
    """
    gains = list(contributions(model, groups))
    every = np.ones(groups.n_rows) if groups.weights is None else groups.weights
    weights = np.split(every, groups.offsets[1:-1])
    total = np.array([gain.sum(axis=1) for gain in gains])
    weight = np.array([w.sum() for w in weights])
    weight = weight[:, None] + weight
    average = (total + total.T) / np.where(weight > 0, weight, 1)
    relative = [gain - np.outer(average[i], weights[i]) for i, gain in enumerate(gains)]
    least = _NO_DIFFERENCE * _largest(gains)
    largest = _largest(relative)
    largest = np.where(largest > least, largest, np.inf)
    levels = []
    for i, known in enumerate(words):
        first: dict[str, int] = {}
        for k, word in enumerate(known):
            first.setdefault(word, k)
        tones = relative[i][:, list(first.values())] / largest[i][:, None]
        levels.append(np.rint(_LEVELS * tones).astype(np.int8).T.ravel())
    return np.concatenate(levels)


def _largest(values: list[np.ndarray]) -> np.ndarray:
    """The largest absolute value of each pair of texts."""
    one_way = np.array([np.abs(value).max(axis=1, initial=0) for value in values])
    return np.maximum(one_way, one_way.T)


def _map(distances: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Points of the plane, between 0 and 1, with neighbours near each other and no two on each other."""
    n = len(distances)
    with threadpool_limits(1):  # sums of several threads differ from run to run
        points = _scaled(distances)
        spread = points[:, 0].std()
        if n >= 10 and spread > 0:
            start = (1e-4 / spread * points).astype(np.float32)
            tsne = TSNE(perplexity=min(20, (n - 1) / 3), max_iter=500, metric="precomputed", init=start)
            tsne.random_state = random_state
            points = tsne.fit_transform(np.sqrt(distances)).astype(np.float64)
        points -= points.mean(axis=0)
        points = points @ np.linalg.eigh(points.T @ points)[1][:, ::-1]  # the longer side along the first axis
        return _fitted_into_unit(_apart(_fitted_into_unit(points)))


def _scaled(distances: np.ndarray) -> np.ndarray:
    """Classical scaling of squared distances to two dimensions."""
    n, points = len(distances), np.zeros((len(distances), 2))
    centred = distances - distances.mean(axis=0)
    centred = (centred.mean(axis=1, keepdims=True) - centred) / 2
    values, vectors = eigh(centred, subset_by_index=[max(0, n - 2), n - 1])
    points[:, : len(values)] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1]
    return points


def _fitted_into_unit(points: np.ndarray) -> np.ndarray:
    low, high = points.min(axis=0), points.max(axis=0)
    return 0.5 + (points - (low + high) / 2) / (max(high - low) or 1)


def _apart(points: np.ndarray) -> np.ndarray:
    """Move points apart that lie on each other."""
    angles = 2.4 * np.arange(len(points))
    points = points + 1e-6 * np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(50):
        left, right = KDTree(points).query_pairs(_GAP, output_type="ndarray").T
        offsets = points[left] - points[right]
        lengths = np.linalg.norm(offsets, axis=1, keepdims=True)
        steps = offsets * (_GAP - lengths) / (2 * lengths)
        np.add.at(points, left, steps)
        np.add.at(points, right, -steps)
    return points


def _tree(
    clustering: ModelComparisonClustering, summaries: list[ClusterSummary], labels: np.ndarray, shown: np.ndarray
) -> dict[str, Any]:
    """The tree of mergers, or its upper part if not all texts are shown.

    Leaves are a shown text or -1, the cluster or -1, and a size. Mergers are two nodes, a height on the scale of square
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

    first = n - n_leaves  # merger that is shown
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


def _evidence(evidence: np.ndarray, chosen: int) -> dict[str, Any]:
    """The criterion of the partitions, less its minimum, as far as it tells something."""
    best = int(np.argmin(evidence)) + 1
    last = min(len(evidence), max(20, 4 * best, 4 * chosen))
    numbers = np.unique(np.rint(np.geomspace(1, last, 400)).astype(int))
    numbers = np.union1d(numbers, [best, chosen])
    excess = evidence[numbers - 1] - evidence.min()
    return {"numbers": numbers.tolist(), "excess": excess.round(2).tolist(), "best": best, "chosen": chosen}


# The page -----------------------------------------------------------------------------------------------------------


def _facts(clustering: ModelComparisonClustering, n_clusters: int, n_shown: int) -> str:
    n = clustering.n_groups_
    origin = "the evidence found their number"
    if clustering.n_clusters is not None:
        origin = "their number was given"
    elif n_clusters != clustering.n_clusters_:
        origin = f"the evidence alone finds {clustering.n_clusters_:,}"
    facts = f"{_count(n, 'text')} in {_count(n_clusters, 'cluster')}; {origin}."
    if n_shown < n:
        facts += f" {n_shown:,} of {n:,} texts are shown, the most typical of each cluster and others at random;"
        facts += " sizes, words and evidence are those of all."
    return facts


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _foot(pipeline: Pipeline, clustering: ModelComparisonClustering, settings: Mapping[str, Any]) -> str:
    """Lists of settings and versions."""
    versions = {
        "Python": platform.python_version(),
        "sklearn_mcsg": __version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    lists = {
        "Run": settings,
        "Texts": {**_parameters(pipeline[0]), "tokens without vector": f"{pipeline[0].oov_rate_:.1%}"},
        "Similarity": _parameters(pipeline[-1]),
        "Clustering": _parameters(clustering),
        "Versions": versions,
    }
    return "\n".join(
        f"<section><h3>{name}</h3><dl>"
        + "".join(f"<div><dt>{_safe(key)}</dt><dd>{_safe(_text(value))}</dd></div>" for key, value in values.items())
        + "</dl></section>"
        for name, values in lists.items()
        if values
    )


def _parameters(estimator: BaseEstimator) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    return {name: value for name, value in params.items() if name not in ("n_jobs", "verbose")}


def _text(value: Any) -> str:
    """A value in a few words that are the same from run to run."""
    if isinstance(value, tuple | list) and len(value) < 10 and not any(isinstance(v, np.ndarray) for v in value):
        return ", ".join(map(_text, value))
    if isinstance(value, BaseEstimator):
        given = ", ".join(f"{name}={_text(v)}" for name, v in value.get_params(deep=False).items())
        return f"{type(value).__name__}({given})"
    if value is None or isinstance(value, str | int | float | np.generic) or hasattr(value, "__fspath__"):
        return str(value)
    return getattr(value, "__qualname__", type(value).__name__)


def _safe(value: Any) -> str:
    return escape(str(value)).encode("utf-8", "replace").decode()


def _pack(numbers: np.ndarray) -> str:
    return b64encode(compress(numbers.tobytes(), 9)).decode()


def _page(data: dict[str, Any], fields: dict[str, str]) -> str:
    """The template, filled: what is filled in is not looked at again."""
    folder = files("sklearn_mcsg") / "data"
    template, style, *scripts = (
        (folder / f"report.{suffix}").read_text(encoding="utf-8") for suffix in ("html", "css", "js", "charts.js")
    )
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    fields |= {"data": text, "style": style, "script": "\n".join(scripts)}
    fields |= {f"{name}_hash": _hash(fields[name]) for name in ("style", "script")}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], template)


def _hash(text: str) -> str:
    """What the page's policy knows its own style and script by."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
