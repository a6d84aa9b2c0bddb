"""Clusters of texts: found in the embedding, and described by words, typical texts and outliers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg.clustering import PointClusters, cluster_points, cluster_stability
from sklearn_mcsg.clustering.tree import ClusterTree
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.text._kind_table import KindComparison
from sklearn_mcsg.text._kinds import check_kinds, compare_kinds
from sklearn_mcsg.text._recipes import check_embedding, make_text_embedding
from sklearn_mcsg.text._tokenised import TokenisedTexts
from sklearn_mcsg.text._vectorizer import warn_of_empty_texts
from sklearn_mcsg.text.terms import Terms

_SHOWN = 120  # characters of a typical text in a notebook
_STABILITY_TEXTS = 4000  # texts that are divided into halves: more take longer and tell the same
_STABILITY_TEXTS_PER_CLUSTER = 20  # at least, so that halves of small clusters have pairs


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
        The name that `TextClusters.rename` or `TextClusters.merge` gave it.
    """

    label: int
    members: np.ndarray
    words: list[str]
    name: str | None = None

    @property
    def title(self) -> str:
        """The name or, without one, the first three words."""
        return self.name or ", ".join(self.words[:3])


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
    second : ndarray of shape (n_texts,)
        The second-best cluster of each text: the other cluster with the nearest centre; -1 if there is only one
        cluster.
    margins : ndarray of shape (n_texts,)
        Distance to the centre of the second-best cluster minus that to the centre of its own cluster. A margin near 0
        means that the text lies between two clusters. It is negative if the other centre is nearer: communities follow
        the neighbours of a text, not centres. With one cluster it is infinite.
    points : ndarray of shape (n_texts, n_components)
        Embeddings of the texts, at unit length.
    groups : Groups
        The words of the texts as vectors.
    terms : Terms
        The words and pairs of words that clusters are described by.
    pipeline : Pipeline
        The fitted vectorizer and embedding.
    alternatives : dict
        Number of clusters at half and at twice the resolution, by resolution, before loose clusters are divided; empty
        with a given number of clusters.

    Examples
    --------
    >>> from sklearn_mcsg import cluster_texts
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> clusters = cluster_texts(load_short_texts().data, 12)
    >>> fewer = clusters.merge([2, 4], name="one topic")
    >>> len(fewer), fewer.summaries[0].title
    (11, 'one topic')
    """

    texts: list[str]
    labels: np.ndarray
    summaries: list[ClusterSummary]
    distances: np.ndarray
    second: np.ndarray
    margins: np.ndarray
    points: np.ndarray
    groups: Groups
    terms: Terms
    pipeline: Pipeline
    alternatives: dict[float, int]

    @cached_property
    def tree(self) -> ClusterTree:
        """The clusters, divided further and merged further, down to at most 200 and up to one."""
        return ClusterTree.around(self.points, self.labels, random_state=0)

    @cached_property
    def stability(self) -> np.ndarray:
        """How reliably each cluster is found again in halves of the texts: see `GroupClustering.stability`.

        It is computed when it is first asked for, from a random sample of 4000 texts if there are more, or 20 per
        cluster.
        """
        size = max(_STABILITY_TEXTS, _STABILITY_TEXTS_PER_CLUSTER * len(self))
        return cluster_stability(self.points, self.labels, len(self), by_cosine=True, sample_size=size, random_state=0)

    @property
    def outliers(self) -> np.ndarray:
        """Indices of all texts, those farthest from the centre of their cluster first."""
        return np.argsort(-self.distances, kind="stable")

    def __len__(self) -> int:
        return len(self.summaries)

    def rename(self, label: int, name: str | None) -> TextClusters:
        """Give a cluster a name.

        Parameters
        ----------
        label : int
            The cluster's label.
        name : str or None
            The name; ``None`` removes it.

        Returns
        -------
        clusters : TextClusters
            The same clusters, with the name in `summaries`.
        """
        self._check([label], name)
        summaries = list(self.summaries)
        summaries[label] = replace(summaries[label], name=name)
        return replace(self, summaries=summaries)

    def merge(self, labels: Iterable[int], name: str | None = None) -> TextClusters:
        """Merge clusters into one.

        Parameters
        ----------
        labels : iterable of int
            Labels of two or more clusters.
        name : str, default=None
            Name of the merged cluster.

        Returns
        -------
        clusters : TextClusters
            Fewer clusters, numbered by their sizes again. The merged cluster has new words; the others keep their words
            and names.
        """
        if not isinstance(labels, Iterable):
            raise TypeError(f"merge takes a list of labels, such as merge([0, 1]), got {labels!r}.")
        given = list(labels)
        self._check(given, name)
        merged = sorted(set(given))
        if len(merged) < 2:
            raise ValueError("merge needs two or more different clusters.")
        joined = np.where(np.isin(self.labels, merged), merged[0], self.labels)
        found = PointClusters.of(self.points, joined, self.alternatives, by_cosine=True)
        label_of, n = found.labels, len(found.centers)
        counts, sizes = self.terms.counts(label_of, n), np.bincount(label_of)
        n_words = max(len(summary.words) for summary in self.summaries)
        described: list[tuple[list[str], str | None]] = [([], None)] * n
        for old in self.summaries:
            described[label_of[old.members[0]]] = old.words, old.name
        new = label_of[self.summaries[merged[0]].members[0]]
        described[new] = self.terms.best(counts[new], int(sizes[new]), sizes.mean(), n_words), name
        return replace(self, **_described(found, described))

    def compare(
        self,
        by: Iterable[Any],
        *,
        n_permutations: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
    ) -> KindComparison:
        """Compare the kinds of texts that a column tells apart, cluster by cluster.

        For each cluster and kind: does the cluster hold more, or less, of this kind than the other clusters do? And
        does the content of the cluster differ between texts of this kind and its other texts, and by which words?

        Parameters
        ----------
        by : iterable of length n_texts
            The kind of each text, such as a column of the table that the texts come from; 2 to 12 different values.
        n_permutations : int, default=None
            Number of permutations: random divisions of the texts of a cluster. ``None`` means 999, or 100 for each
            cluster and kind if that is more, at most 9999, so that corrected p-values can be small.
        random_state : int, RandomState instance or None, default=0
            Determines what is random: the divisions, and the sample of a cluster of more than 2000 texts.
        verbose : int, default=0
            Whether to show progress bars.

        Returns
        -------
        comparison : KindComparison
            One row for each cluster and kind, or for each cluster if there are two kinds.

        See Also
        --------
        compare_samples : The test of contents.
        adjust_pvalues : How p-values are corrected.

        Notes
        -----
        Shares are compared by Fisher's exact test, two-sided. Contents are compared by `compare_samples`, with the
        embedding learnt from the texts of the cluster alone. The clusters were found without the kinds, so both tests
        keep their level. The p-values of either question are corrected by Holm's method for all clusters and kinds.

        Examples
        --------
        >>> from sklearn_mcsg import cluster_texts
        >>> from sklearn_mcsg.datasets import load_short_texts
        >>> texts = load_short_texts()
        >>> clusters = cluster_texts(texts.data, 6)
        >>> kinds = ["law" if texts.target_names[topic] == "law" else "other" for topic in texts.target]
        >>> row = clusters.compare(kinds)[2]
        >>> row.kind, round(row.share, 2), round(row.share_elsewhere, 2), row.share_adjusted < 0.001
        ('law', 0.44, 0.0, True)
        >>> row.difference
        'more court, guilty, trial, lawyer; less goal, ball, club, home'
        """
        kinds, codes = check_kinds(by, len(self.texts))
        if n_permutations is not None:
            check_positive_integer(n_permutations, "n_permutations")
        return compare_kinds(
            self.labels,
            [summary.title for summary in self.summaries],
            self.groups,
            self.pipeline[-1],
            kinds,
            codes,
            n_permutations=n_permutations,
            random_state=check_random_state(random_state),
            verbose=verbose,
        )

    def _check(self, labels: list[int], name: str | None) -> None:
        """Raise unless labels are those of clusters and a name is one."""
        for label in labels:
            if not isinstance(label, Integral) or isinstance(label, bool) or label not in range(len(self)):
                raise ValueError(f"There is no cluster {label!r}: the labels are 0 to {len(self) - 1}.")
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise ValueError(f"name must be a text that is not empty, or None, got {name!r}.")

    def __repr__(self) -> str:
        lines = (f"{len(s.members):6}  {f'{s.name}: ' if s.name else ''}{', '.join(s.words)}" for s in self.summaries)
        return "\n".join([self._head, *lines])

    def _repr_html_(self) -> str:
        """A table of the clusters, for notebooks; its colours are those of the notebook."""
        rows = "".join(self._html_row(summary) for summary in self.summaries)
        heads = "".join(f'<th style="text-align:left">{head}</th>' for head in ("cluster", "texts", "words", "typical"))
        return (
            f'<div style="max-height:32em;overflow:auto"><p>{escape(self._head)}</p><table>'
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    @property
    def _head(self) -> str:
        return f"TextClusters of {len(self.texts)} texts, {len(self)} cluster{'s' * (len(self) != 1)}"

    def _html_row(self, summary: ClusterSummary) -> str:
        name = f"<b>{escape(summary.name)}</b><br>" if summary.name else ""
        typical = " ".join(self.texts[summary.members[0]].split())
        cells = (
            str(summary.label),
            str(len(summary.members)),
            name + escape(", ".join(summary.words)),
            escape(typical if len(typical) <= _SHOWN else f"{typical[: _SHOWN - 1]}…"),
        )
        return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


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
        Number of clusters; ``None``, which the command calls ``-n auto``, finds the number.
    pipeline : Pipeline, default=None
        Pipeline for texts: an `EmbeddingVectorizer` and a `GroupEmbedding`; ``None`` means ``make_text_embedding()``.
        Its points are scaled to unit length.
    resolution : float, default=1.0
        Larger values find more and smaller clusters: the number of clusters that is found is multiplied by it.
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
    12
    >>> music = clusters.summaries[6]
    >>> music.words
    ['piano', 'chords', 'guitar', 'song', 'band', 'bass']
    >>> clusters.texts[music.members[0]]
    'Her new album is all piano and whispered vocals, with one noisy guitar song at the end.'
    """
    check_positive_integer(n_words, "n_words")
    if n_clusters is not None:
        check_positive_integer(n_clusters, "n_clusters")
    if not (isinstance(resolution, Real) and 0 < float(resolution) < np.inf):
        raise ValueError(f"resolution must be a positive number, got {resolution!r}.")
    tokenised = TokenisedTexts.of(texts)
    if n_clusters is not None and 1 < len(tokenised) < n_clusters:
        raise ValueError(f"n_clusters={n_clusters} is more than the {len(tokenised)} texts: choose fewer.")
    pipeline = clone(make_text_embedding() if pipeline is None else check_embedding(pipeline, "cluster_texts"))
    groups = pipeline[0].fit_transform(tokenised)
    warn_of_empty_texts(texts, groups.sizes == 0, "and become empty groups", stacklevel=2)
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
    terms = Terms.of(tokenised, pipeline[0])
    described: list[tuple[list[str], str | None]] = [(words, None) for words in terms.labels_of(found.labels, n_words)]
    return TextClusters(
        texts=tokenised.texts,
        **_described(found, described),
        points=points,
        groups=groups,
        terms=terms,
        pipeline=pipeline,
        alternatives=found.alternatives,
    )


def _described(found: PointClusters, words_and_names: list[tuple[list[str], str | None]]) -> dict[str, Any]:
    """Attributes of `TextClusters`, from clusters of points and from the words and the name of each cluster."""
    order = np.lexsort([found.center_distances, found.labels])
    members = np.split(order, np.flatnonzero(np.diff(found.labels[order])) + 1)
    summaries = [
        ClusterSummary(label, own, words, name)
        for label, (own, (words, name)) in enumerate(zip(members, words_and_names, strict=True))
    ]
    return {
        "labels": found.labels,
        "summaries": summaries,
        "distances": found.center_distances,
        "second": found.second,
        "margins": found.margins,
    }
