"""The function `cluster_report`: it checks its input and fills the template of the page."""

from __future__ import annotations

import json
import platform
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._estimator import similarity_of
from sklearn_mcsg._version import __version__
from sklearn_mcsg.clustering import ModelComparisonClustering
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.report import content
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.text import ClusterSummary, summarize_clusters
from sklearn_mcsg.text.spelling import share_of_unknown_words

__all__ = ["cluster_report"]

_TONES = 5_000_000  # largest number of pairs of a word and a text, which make up most of the page
_TYPICAL = 3  # texts of each cluster that are always shown
_MEANING = {  # for a comparison of models, and for an embedding
    False: "Two texts are similar if one model fits the vectors of both about as well as two separate models do. The "
    "colour of a word shows its contribution to this comparison, relative to the average word of the two texts.",
    True: "The model of a text makes it a point, and two texts are similar if their points lie in the same direction "
    "from the centre of the corpus. The colour of a word shows its contribution to the cosine of the two directions.",
}


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
    groups: Groups | None = None,
    summaries: list[ClusterSummary] | None = None,
) -> str:
    """Make a report of clusters of texts, as one HTML page that needs no network.

    It has a map of the texts, the clusters with their words and most typical texts, the tree of merges, the evidence
    for each number of clusters, and for any two texts the words that make them similar or different.

    Parameters
    ----------
    texts : list of str
        The texts.
    pipeline : Pipeline
        An `EmbeddingVectorizer` and a `ModelComparisonSimilarity` or a `GroupEmbedding`, fitted to the texts, as
        `make_text_similarity` and `make_text_embedding` build it. Distances on the page are those of its output, or
        ``"distance"`` in place of ``"similarity"``.
    clustering : ModelComparisonClustering
        Fitted to ``pipeline[:-1].transform(texts)``.
    title : str, default="Clusters of texts"
        Title of the page.
    settings : dict, default=None
        Further settings to list at the foot of the page, in addition to all parameters and versions.
    n_clusters : int, default=None
        Number of clusters to cut the tree at; ``None`` means the clusters of `clustering`.
    max_texts : int, default=400
        Largest number of texts to show. When there are more, the page shows the most typical texts of each cluster and
        a random sample of the others; sizes, words and evidence are those of all texts. When texts are long, fewer are
        shown, so that the page stays below about 5 MB.
    random_state : int, RandomState instance or None, default=0
        Determines the map, the sample of texts and the random pairs for p-values. With an int, the same input gives
        the same page.
    groups : Groups, default=None
        ``pipeline[:-1].transform(texts)``, if it is available.
    summaries : list of ClusterSummary, default=None
        Result of `summarize_clusters` for these clusters, if it is available.

    Returns
    -------
    page : str
        The page, to be written in UTF-8.

    Notes
    -----
    Texts, titles and settings are escaped. The page's content security policy allows only its own script and loads
    nothing else.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonClustering, cluster_report, make_text_similarity
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
        raise TypeError(f"settings must be a dict, got {type(settings).__name__}.")
    labels = clustering.labels_ if n_clusters is None else clustering.cut(n_clusters)
    rng = check_random_state(random_state)
    groups = pipeline[:-1].transform(texts) if groups is None else groups
    check_consistent_length(texts, groups)
    if summaries is None:
        summaries = summarize_clusters(pipeline, texts, labels, groups=groups)
    similarity = copy(similarity_of(pipeline[-1], groups))
    if similarity.higher_is_nearer:
        similarity.set_params(output="distance")
    words = [part.tolist() for part in groups.split(groups.labels)]
    shown = _choose(summaries, [len(set(text)) for text in words], max_texts, rng)
    shown_words = [words[i] for i in shown]
    data = {
        "output": OUTPUTS[similarity.output].label,
        **content.shown_texts([texts[i] for i in shown], shown_words, pipeline[0]),
        **content.shown_clusters(summaries, shown),
        **content.shown_pairs(similarity, shown, rng),
        "tones": content.pack(content.word_tones(similarity, groups[shown], shown, shown_words)),
        "levels": content.LEVELS,
        "tree": content.shown_tree(clustering, summaries, labels, shown),
        "evidence": content.shown_evidence(clustering.evidence_, len(summaries)),
    }
    fields = {
        "title": _safe(title),
        "facts": _facts(clustering, pipeline[0], len(summaries), len(shown)),
        "meaning": _MEANING[isinstance(pipeline[-1], GroupEmbedding)],
        "foot": _foot(pipeline, clustering, settings or {}),
    }
    return _page(data, fields)


# Input --------------------------------------------------------------------------------------------------------------


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
    kinds = ModelComparisonSimilarity, GroupEmbedding
    if len(parts) != 2 or not hasattr(parts[0], "known_words") or not isinstance(parts[1], kinds):
        raise TypeError(
            "cluster_report needs a pipeline of an EmbeddingVectorizer and a ModelComparisonSimilarity or a "
            "GroupEmbedding, as make_text_similarity and make_text_embedding build it."
        )
    if not isinstance(clustering, ModelComparisonClustering):
        raise TypeError(f"cluster_report needs a ModelComparisonClustering, got {type(clustering).__name__}.")
    for name, part in (("pipeline", parts[1]), ("clustering", clustering)):
        check_is_fitted(part, "n_features_in_")
        if getattr(part, "n_groups_", len(texts)) != len(texts):  # an embedding keeps no groups
            raise ValueError(
                f"The {name} was fitted to {part.n_groups_} texts, but there are {len(texts)}: fit it to these texts."
            )


def _choose(
    summaries: list[ClusterSummary], n_words: list[int], max_texts: int, random_state: np.random.RandomState
) -> np.ndarray:
    """The texts to show: the most typical of each cluster, then others at random, up to the limits."""
    typical = zip_longest(*(summary.members[:_TYPICAL] for summary in summaries))
    first = [i for texts in typical for i in texts if i is not None]
    others = np.setdiff1d(np.arange(len(n_words)), first)
    order = np.concatenate([first, random_state.permutation(others)]).astype(int)
    tones = np.cumsum(np.take(n_words, order)) * np.arange(1, len(order) + 1)
    room = int(np.searchsorted(tones, _TONES, side="right"))
    return np.sort(order[: max(1, min(max_texts, room))])


# The page -----------------------------------------------------------------------------------------------------------


def _facts(clustering: ModelComparisonClustering, vectorizer: Any, n_clusters: int, n_shown: int) -> str:
    n = clustering.n_groups_
    origin = "the evidence found their number"
    if clustering.n_clusters is not None:
        origin = "their number was given"
    elif n_clusters != clustering.n_clusters_:
        origin = f"the evidence alone finds {clustering.n_clusters_:,}"
    facts = f"{_count(n, 'text')} in {_count(n_clusters, 'cluster')}; {origin}."
    if n_shown < n:
        facts += f" {n_shown:,} of {n:,} texts are shown, the most typical of each cluster and a random sample of the"
        facts += " others; sizes, words and evidence are those of all texts."
    if vectorizer.oov_rate_:
        facts += f" {share_of_unknown_words(vectorizer)}"
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
    """A value as a short text that is the same in every run."""
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


def _page(data: dict[str, Any], fields: dict[str, str]) -> str:
    """The filled template; inserted text is not searched for further fields."""
    folder = files("sklearn_mcsg") / "report" / "templates"
    names = "page.html", "page.css", "page.js", "charts.js"
    template, style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in names)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    fields |= {"data": text, "style": style, "script": "\n".join(scripts)}
    fields |= {f"{name}_hash": _hash(fields[name]) for name in ("style", "script")}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], template)


def _hash(text: str) -> str:
    """The hash of a style or script, for the content security policy of the page."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
