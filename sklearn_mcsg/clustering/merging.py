"""Merging of clusters: statistics, criteria and most similar partners, updated after every merge.

A merged cluster is fitted again, so its similarities to other clusters are exact. They are not bounded by the
similarities of its parts, so reciprocal nearest neighbours must not be merged out of order. The generic algorithm of
Muellner (2011) applies: every cluster keeps its best partner, and a merge costs one row of new comparisons. A cluster
that has lost its partner searches for a new one only when its old similarity, an upper bound, is the largest of all.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import count_within
from sklearn_mcsg.engine.dispatch import choose_fitter
from sklearn_mcsg.engine.model import GroupModel, NotFiniteError, raise_not_finite
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.regroup import united
from sklearn_mcsg.likelihoods import Fit, Statistics

_SIMILARITY = OUTPUTS["similarity"]
_CHUNK_BYTES = 2**26  # size of a block of the matrix of all pairs
_SEARCHES = 16  # clusters that search for a partner at once: preparing the other side costs more than extra rows
_FREE_SEARCHES = 3  # searches at no extra cost after a merge: compiled code computes four rows at a time
_KEPT = 0.9  # empty slots are dropped when the share of used slots falls below this


def pseudo_likelihood(comparison: GroupModel) -> float:
    """Twice the log-likelihood, or log evidence, of the pseudo-vectors that every model receives."""
    if comparison.pseudo is None:
        return 0.0
    with np.errstate(all="ignore"):
        return 2 * float(comparison.criterion.goodness(Fit(comparison.likelihood, comparison.pseudo))[0])


def prepare_clusters(comparison: GroupModel, statistics: Statistics) -> Prepared:
    """Prepare clusters as the right side of `GroupModel.all_pairs`.

    Each model contains the pseudo-vectors once; in a union of two clusters they come from the left side. Their own
    likelihood is not evidence and is subtracted; otherwise similarities would depend on the unit of the vectors.
    """
    information = comparison.prepare(statistics, _SIMILARITY).information + pseudo_likelihood(comparison)
    return Prepared(statistics, statistics.n, information)


class Clusters:
    """Clusters in slots; a merged cluster takes the slot of its first part.

    Attributes
    ----------
    prepared : Prepared
        Statistics, without pseudo-vectors, and criterion of the cluster in each slot.
    owner : ndarray of shape (n_groups,)
        The slot of each group.
    """

    def __init__(self, comparison: GroupModel, groups: Groups, statistics: Statistics):
        self.comparison = replace(comparison, n_jobs=1, verbose=0)
        self.groups = groups
        self.pseudo_likelihood = pseudo_likelihood(comparison)
        everything = np.arange(len(statistics))
        self.owner = everything.copy()
        self.prepared = prepare_clusters(comparison, statistics[everything])  # a copy to write into
        self.has_fixed_size = statistics.has_fixed_size

    def unite(self, i: int, j: int) -> float:
        """Merge the cluster in slot `j` into the cluster in slot `i`, and return their similarity."""
        statistics, information = self.prepared.statistics, self.prepared.information
        if not self.has_fixed_size:
            members = self.groups[(self.owner == i) | (self.owner == j)]
            union = self.comparison.statistics(united(members))
        else:
            union = self.comparison.likelihood.pool(statistics[[i]], statistics[[j]])
            for field in fields(union):
                if isinstance(value := getattr(union, field.name), np.ndarray):
                    getattr(statistics, field.name)[i] = value[0]
        self.owner[self.owner == j] = i
        merged = self.comparison.prepare(union, _SIMILARITY).information[0] + self.pseudo_likelihood
        gain = information[i] + information[j] - merged
        information[i] = merged
        return float(gain)


class MergingClusters(Clusters):
    """Clusters that know their most similar partners.

    Attributes
    ----------
    alive : ndarray of bool
        The slots that hold a cluster.
    partner : ndarray of int
        The slot of the most similar cluster.
    value : ndarray
        The similarity to the partner; if the partner is gone, an upper bound on the similarity to any cluster.
    orphaned : ndarray of bool
        Whether the partner is gone.
    nodes : ndarray of int
        The tree node of each cluster.
    """

    def __init__(self, comparison: GroupModel, groups: Groups, statistics: Statistics):
        super().__init__(comparison, groups, statistics)
        n = len(statistics)
        self.fitter = choose_fitter(comparison.likelihood, statistics, statistics)
        self.alive, self.orphaned = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        self.value, self.partner, self.nodes = np.empty(n), np.empty(n, dtype=int), np.arange(n)
        left = comparison.prepare(statistics, _SIMILARITY)
        for batch in gen_batches(n, count_within(8 * n, _CHUNK_BYTES)):
            # no name for the rows: it would keep them while the next ones are computed
            self._choose(
                np.arange(n)[batch],
                comparison.all_pairs(left[batch], self.prepared, _SIMILARITY, fitter=self.fitter),
            )

    def most_similar(self) -> tuple[int, int]:
        """The slots of the two most similar clusters, the first pair among ties."""
        while self.orphaned[i := int(np.argmax(self.value))]:
            searching = self._searching()[:_SEARCHES]
            self._choose(searching, self._compare(searching))
        j = int(self.partner[i])
        return min(i, j), max(i, j)

    def merge(self, i: int, j: int) -> float:
        """Merge slot `j` into slot `i`, update all partners, and return the similarity of the two."""
        gain = self.unite(i, j)
        if not self.has_fixed_size:
            statistics = self.comparison.statistics(united(self.groups, self.owner, len(self.alive)))
            self.prepared = Prepared(statistics, statistics.n, self.prepared.information)
        self.alive[j] = False
        self.value[[i, j]] = -np.inf
        self.orphaned |= (self.partner == i) | (self.partner == j)
        self.orphaned[[i, j]] = False
        slots = np.array([i, *self._searching()[:_FREE_SEARCHES]])
        rows = self._compare(slots)
        row = rows[0]
        nearer = (row > self.value) | ((row == self.value) & (self.orphaned | (i < self.partner)))
        self.value[nearer], self.partner[nearer], self.orphaned[nearer] = row[nearer], i, False
        self._choose(slots, rows)
        if self.alive.sum() < _KEPT * len(self.alive):
            self._drop_empty_slots()
        return gain

    def _searching(self) -> np.ndarray:
        """Clusters without a partner that may be part of the most similar pair, the likeliest first."""
        least = self.value[~self.orphaned].max(initial=-np.inf)
        slots = np.flatnonzero(self.orphaned & (self.value >= least))
        return slots[np.argsort(-self.value[slots], kind="stable")]

    def _choose(self, slots: np.ndarray, similarities: np.ndarray) -> None:
        """Set the partners of some clusters from the rows of their similarities."""
        rows = np.arange(len(slots))
        similarities[rows, slots] = -np.inf
        self.partner[slots] = similarities.argmax(axis=1)
        self.value[slots] = similarities[rows, self.partner[slots]]
        self.orphaned[slots] = False

    def _compare(self, slots: np.ndarray) -> np.ndarray:
        """Similarities of some clusters to the clusters in all slots; minus infinity for empty slots."""
        statistics = self.comparison.with_pseudo(self.prepared.statistics[slots])
        left = Prepared(statistics, statistics.n, self.prepared.information[slots] - self.pseudo_likelihood)
        try:
            result = self.comparison.all_pairs(left, self.prepared, _SIMILARITY, fitter=self.fitter)
        except NotFiniteError:
            raise_not_finite("The similarity of two clusters")
        result[:, ~self.alive] = -np.inf
        return result

    def _drop_empty_slots(self) -> None:
        alive = self.alive
        moved = np.where(alive, np.cumsum(alive) - 1, -1)
        self.owner, self.partner = moved[self.owner], moved[self.partner][alive]
        self.prepared, self.nodes = self.prepared[alive], self.nodes[alive]
        self.value, self.orphaned = self.value[alive], self.orphaned[alive]
        self.alive = np.ones(len(self.value), dtype=bool)


def merge_all(comparison: GroupModel, groups: Groups, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
    """Merge the two most similar clusters until one is left.

    Returns
    -------
    children : ndarray of shape (n_groups - 1, 2)
        The two nodes of each merge: a group if below `n_groups`, otherwise the cluster of merge ``node - n_groups``.
    similarities : ndarray of shape (n_groups - 1,)
        The similarity of the two nodes.
    """
    n = len(groups)
    children, similarities = np.empty((n - 1, 2), dtype=np.intp), np.empty(n - 1)
    clusters = MergingClusters(replace(comparison, verbose=0), groups, statistics)
    with progress(comparison.verbose, n - 1, "merging", " merges") as advance:
        for t in range(n - 1):
            i, j = clusters.most_similar()
            children[t] = np.sort(clusters.nodes[[i, j]])
            clusters.nodes[i] = n + t
            similarities[t] = clusters.merge(i, j)
            advance(1)
    return children, similarities


def similarities_along(
    comparison: GroupModel, groups: Groups, statistics: Statistics, children: np.ndarray
) -> np.ndarray:
    """The similarity of the two clusters in each merge of a given order."""
    n = len(groups)
    clusters, slots = Clusters(comparison, groups, statistics), np.arange(2 * n - 1)
    similarities = np.empty(n - 1)
    for t, pair in enumerate(children):
        i, j = np.sort(slots[pair])
        similarities[t] = clusters.unite(i, j)
        slots[n + t] = i
    return similarities
