"""The function `cluster_report`: it checks its input and fills the template of the page."""

from __future__ import annotations

import json
import platform
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_mcsg._version import __version__
from sklearn_mcsg.report import _content as content
from sklearn_mcsg.report import _words as words
from sklearn_mcsg.report._columns import shown_columns
from sklearn_mcsg.report._layout import map_of
from sklearn_mcsg.report._packing import pack, pack_rows
from sklearn_mcsg.report._periods import shown_periods, undated_columns
from sklearn_mcsg.report._report import Report
from sklearn_mcsg.text import TextClusters, TokenisedTexts, cluster_texts, share_of_unknown_words

MOST_TEXTS = 20_000
_PAGE_BYTES = 9_750_000  # of texts and numbers; points and word vectors get what the others leave
_SHARE_OF_POINTS = 0.17
_PLAIN_CHARACTERS = 300  # of a text in the list for readers without script
_SCRIPTS = "data tree names colours map words pair certainty clusters search periods page"


def cluster_report(
    texts: Sequence[str] | None = None,
    clusters: TextClusters | None = None,
    *,
    columns: Any = None,
    title: str = "Clusters of texts",
    settings: Mapping[str, Any] | None = None,
    random_state: int | np.random.RandomState | None = 0,
    verbose: int = 0,
) -> Report:
    """Make a report of clusters of texts, as one HTML page that needs no network.

    It has a map of all texts, the clusters with their words and most typical texts at any number of clusters, counts
    over dates or categories, outliers, a search, and for any two texts the pairs of words that make them similar.

    Parameters
    ----------
    texts : sequence of str, default=None
        The texts: `cluster_texts` clusters them with its defaults. Not needed if `clusters` are given.
    clusters : TextClusters, default=None
        Result of `cluster_texts`.
    columns : mapping of str to sequence, or data frame, default=None
        Further columns of the input, with one value per text, which the page shows with each text and in its table,
        up to 200 characters of a value. Points can be coloured by columns of numbers, which get a scale, and by the
        twelve most frequent values of others, unless their values are mostly different or all the same. Columns of
        dates and of such values also show how the share of each cluster changes over them; the page names columns that
        look like dates and cannot be read. A column of the texts themselves is left out.
    title : str, default="Clusters of texts"
        Title of the page.
    settings : mapping, default=None
        Further settings to list at the foot of the page, in addition to all parameters and versions.
    random_state : int, RandomState instance or None, default=0
        Determines what is random: the clusters of `texts`, the map, the random pairs for p-values and, above 20,000
        texts, the sample. With an int, the same input gives the same page.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    report : Report
        The page: ``report.save(path)`` writes it to a file, ``str(report)`` is the page, and a notebook shows it.

    See Also
    --------
    cluster_texts : Finds the clusters.

    Notes
    -----
    All of up to 20,000 texts are shown. Of more texts, the page shows the most typical of each cluster and a random
    sample of the others, and says so; sizes and words are those of all texts. The first 2000 characters of a text are
    shown, or fewer if the page would have more than 10 MB. The same limit decides how many digits points and word
    vectors have; the page says how near its cosines are.

    Texts, titles and settings are escaped. The page's content security policy allows only its own script and loads
    nothing else.

    Examples
    --------
    >>> from sklearn_mcsg import cluster_report
    >>> texts = ["A cat sat on the mat.", "A kitten lay on the rug.", "Shares fell on Monday.", "Stock markets fell."]
    >>> report = cluster_report(texts, title="Cats and shares")
    >>> page = str(report)
    >>> page[:15], "<title>Cats and shares</title>" in page
    ('<!doctype html>', True)
    """
    given = {} if columns is None else _as_dict(columns)
    clusters = _check_clusters(texts, clusters, given, settings, random_state, verbose)
    rng = check_random_state(random_state)
    points, groups = clusters.points, clusters.groups
    shown = content.choose(clusters.summaries, len(points), MOST_TEXTS, rng)
    by_leaf = np.argsort(clusters.tree.leaf_of[shown], kind="stable")
    others = {name: values for name, values in given.items() if not _are_texts(values, clusters.texts)}
    data = {
        **content.shown_texts(clusters.texts, shown, by_leaf),
        "map": pack(np.rint(65_535 * map_of(points[shown], rng, verbose)).astype(np.uint16)),
        "random": content.shown_pairs(points, rng),
        "outliers": content.shown_outliers(clusters.outliers, clusters.distances, shown),
        "distances": pack(np.rint(20_000 * clusters.distances[shown]).astype(np.uint16)),
        "tree": content.shown_tree(clusters.tree, shown),
        "certainty": content.shown_certainty(clusters, shown),
        "words": content.shown_labels(clusters.tree, clusters.terms, clusters.summaries, verbose),
        "columns": shown_columns(others, shown),
        "periods": shown_periods(others, clusters.tree),
        "undated": undated_columns(others),
        "numberFound": bool(clusters.alternatives),
    }
    room = _PAGE_BYTES - len(_as_json(data))
    data["points"] = pack_rows(points[shown], int(_SHARE_OF_POINTS * room))[0]
    room -= len(data["points"]["codes"])
    data["vocabulary"], explained = words.shown_words(clusters.pipeline[-1], groups[shown], by_leaf, room)
    data["checks"] = words.shown_checks(points[shown], explained, rng)
    data["first"] = content.first_pair(clusters.summaries, points, groups, shown, explained)
    fields = {"title": _safe(title), "facts": _facts(clusters, len(shown)), "foot": _foot(clusters, settings or {})}
    return Report(_page(data, fields | {"plain": _plain(clusters)}))


# Input --------------------------------------------------------------------------------------------------------------


def _check_clusters(
    texts: Any, clusters: Any, columns: Any, settings: Any, random_state: Any, verbose: int
) -> TextClusters:
    """Check all input before any work, and cluster the texts if that has not been done."""
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"settings must be a dict, got {type(settings).__name__}.")
    if clusters is not None and not isinstance(clusters, TextClusters):
        raise TypeError(f"clusters must be the result of cluster_texts, got {type(clusters).__name__}.")
    texts = TokenisedTexts.of(clusters.texts if texts is None and clusters is not None else texts)
    if clusters is not None and texts.texts != clusters.texts:
        raise ValueError("clusters belong to other texts: pass the texts that were clustered, or only the clusters.")
    for name, values in columns.items():
        if len(values) != len(texts):
            raise ValueError(f"Column {name!r} has {len(values)} values, but there are {len(texts)} texts.")
    return cluster_texts(texts, random_state=random_state, verbose=verbose) if clusters is None else clusters


def _as_dict(columns: Any) -> dict[str, list[Any]]:
    """The columns of a mapping or of a data frame."""
    if not isinstance(columns, Mapping) and not hasattr(columns, "columns"):
        raise TypeError(f"columns must be a dict or a data frame, got {type(columns).__name__}.")
    names = columns if isinstance(columns, Mapping) else columns.columns
    return {str(name): list(columns[name]) for name in names}


def _are_texts(values: Sequence[Any], texts: Sequence[str]) -> bool:
    """Whether a column holds the texts themselves; its values may be arrays, or NA, which have no truth value."""
    return all(isinstance(value, str) and value == text for value, text in zip(values, texts, strict=True))


# The page -----------------------------------------------------------------------------------------------------------


def _facts(clusters: TextClusters, n_shown: int) -> str:
    n = len(clusters.texts)
    facts = f'{_count(n, "text")} in <span id="facts-number">{_count(len(clusters.summaries), "cluster")}</span>.'
    if n_shown < n:
        facts += f" {n_shown:,} of {n:,} texts are shown, the most typical of each cluster and a random sample of the"
        facts += " others; sizes and words are those of all texts."
    vectorizer = clusters.pipeline[0]
    if vectorizer.oov_rate_:
        facts += f" {share_of_unknown_words(vectorizer, vectorizer.oov_rate_)}"
    return facts


def _plain(clusters: TextClusters) -> str:
    """The clusters as a list, for readers without script."""
    typical = ((summary, clusters.texts[summary.members[0]]) for summary in clusters.summaries)
    return "\n".join(
        f"<li><strong>{_safe(summary.title or 'no words')}</strong> "
        f"({_count(len(summary.members), 'text')}), such as: <q>{_safe(text[:_PLAIN_CHARACTERS])}</q></li>"
        for summary, text in typical
    )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _foot(clusters: TextClusters, settings: Mapping[str, Any]) -> str:
    """Lists of settings and versions."""
    versions = {
        "Python": platform.python_version(),
        "sklearn_mcsg": __version__,
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    vectorizer, embedding = clusters.pipeline[0], clusters.pipeline[-1]
    lists = {
        "Run": settings,
        "Words": {**_parameters(vectorizer), "tokens without vector": f"{vectorizer.oov_rate_:.1%}"},
        "Embedding": _parameters(embedding),
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


def _as_json(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _page(data: dict[str, Any], fields: dict[str, str]) -> str:
    """The filled template; inserted text is not searched for further fields."""
    folder = files("sklearn_mcsg") / "report" / "templates"
    names = "page.html", "page.css", *(f"{name}.js" for name in _SCRIPTS.split())
    template, style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in names)
    text = _as_json(data)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    fields |= {"data": text, "style": style, "script": "\n".join(scripts)}
    fields |= {f"{name}_hash": _hash(fields[name]) for name in ("style", "script")}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], template)


def _hash(text: str) -> str:
    """The hash of a style or script, for the content security policy of the page."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
