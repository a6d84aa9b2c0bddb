"""Summaries of clusters of texts: their most typical texts and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from sklearn_mcsg._estimator import similarity_of
from sklearn_mcsg.groups import Groups

__all__ = ["ClusterSummary", "summarize_clusters"]

_REFERENCES = 1000  # texts of a cluster that the others are compared with


@dataclass(frozen=True, eq=False)
class ClusterSummary:
    """A cluster, described by typical texts and words.

    Attributes
    ----------
    label : int
        The cluster's label.
    members : ndarray of shape (n_members,)
        Indices of its texts, the most typical first: those with the smallest mean distance to the others.
    words : list of str
        Words that are more frequent in it than elsewhere, the most distinctive first.
    """

    label: int
    members: np.ndarray
    words: list[str]


def summarize_clusters(
    pipeline: Any, texts: Any, labels: Any, *, n_words: int = 6, groups: Groups | None = None
) -> list[ClusterSummary]:
    """Describe clusters of texts by their most typical texts and words.

    Parameters
    ----------
    pipeline : Pipeline
        An `EmbeddingVectorizer` and a similarity or a `GroupEmbedding`, fitted, as `make_text_similarity` and
        `make_text_embedding` build it.
    texts : list of str of length n_texts
        The texts.
    labels : array-like of shape (n_texts,)
        The cluster of each text.
    n_words : int, default=6
        Number of words for each cluster.
    groups : Groups, default=None
        ``pipeline[:-1].transform(texts)``, if it is available and the pipeline was fitted to these texts. It saves
        computing them again.

    Returns
    -------
    summaries : list of ClusterSummary
        The largest cluster first.

    Notes
    -----
    A word counts once per text. Its score in a cluster is its weight times ``f log(f / g)**2``, where f is the share of
    the cluster's texts that contain it and g the share of all texts, smoothed by one text.

    A text is typical if its mean distance to the other texts of its cluster is small. The mean is taken over at most a
    thousand of them, so that memory does not grow with the square of the cluster size.

    Examples
    --------
    >>> from sklearn_mcsg import make_text_similarity, summarize_clusters
    >>> texts = ["A cat sat on the mat.", "A kitten sat on the rug.", "Shares fell on Monday.", "Shares rose."]
    >>> pipeline = make_text_similarity().fit(texts)
    >>> for summary in summarize_clusters(pipeline, texts, [0, 0, 1, 1], n_words=1):
    ...     print(summary.label, summary.members, summary.words)
    0 [0 1] ['sat']
    1 [2 3] ['shares']
    """
    labels = np.asarray(labels)
    check_consistent_length(texts, labels)
    known = groups is not None
    groups = pipeline[:-1].transform(texts) if groups is None else groups
    check_consistent_length(texts, groups)
    similarity = similarity_of(pipeline[-1], groups)
    known = known or similarity is not pipeline[-1]
    compare = similarity.compare_fitted if known else partial(_compare_groups, similarity, groups)
    every: Any = groups.labels
    if every is None:
        raise TypeError("summarize_clusters needs groups with labels, as EmbeddingVectorizer makes them.")
    words = groups.split(every)
    weights = dict(zip(every, groups.row_weights.tolist(), strict=True))
    present = [{word for word in text if any(map(str.isalpha, word))} for text in words]
    everywhere = Counter(word for text in present for word in text)
    summaries = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        here = Counter(word for i in members for word in present[i])
        score = {
            word: weights[word] * _distinctiveness(n / len(members), (everywhere[word] + 1) / (len(texts) + 1))
            for word, n in here.items()
        }
        best = sorted(score, key=lambda word: (-score[word], word))[:n_words]
        ordered = _typical_first(members, compare, similarity.higher_is_nearer)
        summaries.append(ClusterSummary(int(label), ordered, best))
    return sorted(summaries, key=lambda summary: (-len(summary.members), summary.label))


def _compare_groups(similarity: Any, groups: Groups, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return similarity.pairwise(groups[rows], groups[columns])


def _typical_first(members: np.ndarray, compare: Callable, higher_is_nearer: bool) -> np.ndarray:
    """Order groups by their mean distance to the others."""
    if len(members) < 3:
        return members
    some = np.arange(0, len(members), max(1, len(members) // _REFERENCES))
    distances = compare(members, members[some])
    distances[some, np.arange(len(some))] = 0
    others = np.full(len(members), len(some))
    others[some] -= 1
    means = distances.sum(axis=1) / others
    return members[np.argsort(-means if higher_is_nearer else means, kind="stable")]


def _distinctiveness(here: float, everywhere: float) -> float:
    return here * max(log(here / everywhere), 0) ** 2
