"""Summaries of clusters of texts: their most typical texts and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from sklearn_mcsg.groups import Groups
from sklearn_mcsg.similarity.estimator import similarity_of
from sklearn_mcsg.text.terms import Terms

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
        Words and pairs of words that distinguish it from the other clusters, the most distinctive first.
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
        Number of words or pairs of words for each cluster.
    groups : Groups, default=None
        ``pipeline[:-1].transform(texts)``, if it is available and the pipeline was fitted to these texts. It saves
        computing them again.

    Returns
    -------
    summaries : list of ClusterSummary
        The largest cluster first.

    Notes
    -----
    Words and frequent pairs of words are scored by class-based TF-IDF. A term counts once per text. Its score is the
    weight that the vectorizer gives to the word, which is small for stop words, times the share of the cluster's texts
    that have it, times ``log(1 + s / m)``, where m texts of all have it and s is the mean size of a cluster.

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
    names, labels = np.unique(labels, return_inverse=True)
    words = label_clusters(Terms.of(texts, pipeline[0]), labels, n_words)
    summaries = []
    for label, best in enumerate(words):
        ordered = _typical_first(np.flatnonzero(labels == label), compare, similarity.higher_is_nearer)
        summaries.append(ClusterSummary(int(names[label]), ordered, best))
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


def label_clusters(terms: Terms, labels: np.ndarray, n_words: int) -> list[list[str]]:
    """The words and pairs of words that distinguish each cluster, 0, 1 and so on."""
    sizes = np.bincount(labels)
    counts = terms.counts(labels, len(sizes))
    return [terms.best(row, int(size), sizes.mean(), n_words) for row, size in zip(counts, sizes, strict=True)]
