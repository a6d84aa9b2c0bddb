"""Clusters of texts: found in the embedding, and described by words, typical texts and outliers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg.clustering import cluster_points
from sklearn_mcsg.clustering.tree import ClusterTree
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.text._recipes import check_embedding, make_text_embedding
from sklearn_mcsg.text._tokenised import TokenisedTexts
from sklearn_mcsg.text._vectorizer import warn_of_empty_texts
from sklearn_mcsg.text.terms import Terms


@dataclass(frozen=True, eq=False)
class ClusterSummary:
    """A cluster, described by its texts and words.

    Attributes
    ----------
    label : int
        The cluster's label.
    members : ndarray of shape (n_members,)
        Indices of its texts, those nearest to its centre first.
    words : list of str
        Words and pairs of words that distinguish it from the other clusters, the most distinctive first.
    name : str or None
        Its name, if it was given one.
    """

    label: int
    members: np.ndarray
    words: list[str]
    name: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class TextClusters:
    """Texts and their clusters.

    Attributes
    ----------
    texts : list of str of length n_texts
        The texts.
    labels : ndarray of shape (n_texts,)
        The cluster of each text. The largest cluster is 0.
    summaries : list of ClusterSummary
        Label, words and texts of each cluster, in the order of the labels. The texts nearest to its centre come first.
    distances : ndarray of shape (n_texts,)
        Distance of each text to the centre of its cluster: one minus the cosine.
    points : ndarray of shape (n_texts, n_components)
        Embeddings of the texts, at unit length.
    groups : Groups
        The words of the texts as vectors.
    terms : Terms
        The words and pairs of words that clusters are described by.
    pipeline : Pipeline
        The fitted vectorizer and embedding.
    alternatives : dict
        Number of communities at half and at twice the resolution, by resolution; empty with a given number of clusters.
    """

    texts: list[str]
    labels: np.ndarray
    summaries: list[ClusterSummary]
    distances: np.ndarray
    points: np.ndarray
    groups: Groups
    terms: Terms
    pipeline: Pipeline
    alternatives: dict[float, int]

    @cached_property
    def tree(self) -> ClusterTree:
        """The clusters, divided further and merged further, down to at most 200 and up to one."""
        return ClusterTree.around(self.points, self.labels, random_state=0)

    @property
    def outliers(self) -> np.ndarray:
        """Indices of all texts, those farthest from the centre of their cluster first."""
        return np.argsort(-self.distances, kind="stable")

    def __len__(self) -> int:
        return len(self.summaries)

    def __repr__(self) -> str:
        lines = (f"{len(s.members):6}  {', '.join(s.words)}" for s in self.summaries)
        head = f"TextClusters of {len(self.texts)} texts, {len(self)} cluster{'s' * (len(self) != 1)}"
        return "\n".join([head, *lines])


def cluster_texts(
    texts: Iterable[str],
    n_clusters: int | None = None,
    *,
    pipeline: Pipeline | None = None,
    resolution: float = 1.0,
    n_words: int = 6,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> TextClusters:
    """Cluster texts and describe the clusters.

    Parameters
    ----------
    texts : iterable of str
        The texts.
    n_clusters : int, default=None
        Number of clusters; ``None`` finds communities of similar texts, and their number.
    pipeline : Pipeline, default=None
        Pipeline for texts: an `EmbeddingVectorizer` and a `GroupEmbedding`; ``None`` means ``make_text_embedding()``.
        Its points are scaled to unit length.
    resolution : float, default=1.0
        Larger values find more and smaller communities.
    n_words : int, default=6
        Number of words or pairs of words that describe a cluster.
    random_state : int, RandomState instance or None, default=0
        Determines what is random: see `GroupClustering`.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    clusters : TextClusters

    See Also
    --------
    GroupClustering : The clustering, for groups of any vectors.
    cluster_report : The clusters as an HTML page.

    Examples
    --------
    >>> from sklearn_mcsg import cluster_texts
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> clusters = cluster_texts(load_short_texts().data)
    >>> len(clusters)
    11
    >>> music = clusters.summaries[6]
    >>> music.words
    ['piano', 'chords', 'guitar', 'song', 'band', 'bass']
    >>> clusters.texts[music.members[0]]
    'Her new album is all piano and whispered vocals, with one noisy guitar song at the end.'
    """
    check_positive_integer(n_words, "n_words")
    if n_clusters is not None:
        check_positive_integer(n_clusters, "n_clusters")
    if not resolution > 0:
        raise ValueError(f"resolution must be a positive number, got {resolution!r}.")
    tokenised = TokenisedTexts.of(texts)
    pipeline = clone(make_text_embedding() if pipeline is None else check_embedding(pipeline, "cluster_texts"))
    groups = pipeline[0].fit_transform(tokenised)
    warn_of_empty_texts(texts, groups, "and become empty groups", stacklevel=2)
    if len(tokenised) < 2:
        raise ValueError("There is only one text: clusters need two or more.")
    points = np.asarray(pipeline[-1].set_params(normalize=True).fit_transform(groups))
    found = cluster_points(
        points,
        n_clusters,
        by_cosine=True,
        resolution=resolution,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    labels, distances, alternatives = found.labels, found.center_distances, found.alternatives
    terms = Terms.of(tokenised, pipeline[0])
    order = np.lexsort([distances, labels])
    members = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    words = terms.labels_of(labels, n_words)
    summaries = [ClusterSummary(label, own, best) for label, (own, best) in enumerate(zip(members, words, strict=True))]
    return TextClusters(tokenised.texts, labels, summaries, distances, points, groups, terms, pipeline, alternatives)
