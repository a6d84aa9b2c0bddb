"""What clusters of texts are about: their most typical texts and words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from math import log
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from sklearn_mcsg.groups import Groups

__all__ = ["ClusterSummary", "summarize_clusters"]

_REFERENCES = 1000


@dataclass(frozen=True, eq=False)
class ClusterSummary:
    """A cluster in a few texts and words.

    Attributes
    ----------
    label : int
        The cluster's label.
    members : ndarray of shape (n_members,)
        Indices of its texts, the most typical first: those nearest to the others on average.
    words : list of str
        Words that are more frequent in it than elsewhere, the most telling first.
    """

    label: int
    members: np.ndarray
    words: list[str]


def summarize_clusters(pipeline: Any, texts: Any, labels: Any, *, n_words: int = 6) -> list[ClusterSummary]:
    """Describe clusters of texts by their most typical texts and words.

    Parameters
    ----------
    pipeline : Pipeline
        An `EmbeddingVectorizer` and a similarity, fitted, as `make_text_similarity` builds it.
    texts : list of str of length n_texts
        The texts.
    labels : array-like of shape (n_texts,)
        The cluster of each.
    n_words : int, default=6
        Number of words for each cluster.

    Returns
    -------
    summaries : list of ClusterSummary
        The largest cluster first.

    Notes
    -----
    A word counts once in a text, by the weight of its vector. It tells of a cluster as far as the cluster's texts have
    it more often than all texts: by ``f log(f / g)**2`` with f and g these two frequencies, g smoothed by one text.

    The average is taken over a thousand texts of the cluster at most, so that no matrix grows with its square.

    Examples
    --------
    >>> from sklearn_mcsg import make_text_similarity
    >>> from sklearn_mcsg.summary import summarize_clusters
    >>> texts = ["A cat sat on the mat.", "A kitten sat on the rug.", "Shares fell on Monday.", "Shares rose."]
    >>> pipeline = make_text_similarity().fit(texts)
    >>> for summary in summarize_clusters(pipeline, texts, [0, 0, 1, 1], n_words=1):
    ...     print(summary.label, summary.members, summary.words)
    0 [0 1] ['sat']
    1 [2 3] ['shares']
    """
    labels = np.asarray(labels)
    check_consistent_length(texts, labels)
    groups, words = pipeline[:-1].transform(texts), pipeline[0].known_words(texts)
    every = np.ones(groups.n_rows) if groups.weights is None else groups.weights
    weights = dict(zip(chain.from_iterable(words), every.tolist(), strict=True))
    present = [{word for word in text if any(map(str.isalpha, word))} for text in words]
    everywhere = Counter(word for text in present for word in text)
    summaries = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        here = Counter(word for i in members for word in present[i])
        score = {
            word: weights[word] * _telling(n / len(members), (everywhere[word] + 1) / (len(texts) + 1))
            for word, n in here.items()
        }
        best = sorted(score, key=lambda word: (-score[word], word))[:n_words]
        summaries.append(ClusterSummary(int(label), members[_typical_first(pipeline[-1], groups[members])], best))
    return sorted(summaries, key=lambda summary: (-len(summary.members), summary.label))


def _typical_first(similarity: Any, groups: Groups) -> np.ndarray:
    """Order groups by their mean distance to the others."""
    if len(groups) < 3:
        return np.arange(len(groups))
    some = np.arange(0, len(groups), max(1, len(groups) // _REFERENCES))
    distances = similarity.pairwise(groups, groups[some])
    distances[some, np.arange(len(some))] = 0
    others = np.full(len(groups), len(some))
    others[some] -= 1
    means = distances.sum(axis=1) / others
    return np.argsort(-means if similarity.output == "similarity" else means, kind="stable")


def _telling(here: float, everywhere: float) -> float:
    return here * max(log(here / everywhere), 0) ** 2
