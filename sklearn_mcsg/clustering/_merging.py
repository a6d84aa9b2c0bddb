"""Merging of clusters: statistics, criteria and most similar partners, updated after every merge.

A merged cluster is fitted again, so its similarities to other clusters are exact. They are not bounded by the
similarities of its parts, so reciprocal nearest neighbours must not be merged out of order. The generic algorithm of
Muellner (2011) applies: every cluster keeps its best partner, and a merge costs one row of new comparisons. A cluster
that has lost its partner searches for a new one only when its old similarity, an upper bound, is the largest of all.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import ROWS, count_within
from sklearn_mcsg.engine.dispatch import choose_engine
from sklearn_mcsg.engine.model import GroupModel, NotFiniteError, raise_not_finite
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.pairs import all_pairs, prepare
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.engine.results import DOUBLE
from sklearn_mcsg.groups import Groups, united
from sklearn_mcsg.likelihoods import Statistics

_SIMILARITY = OUTPUTS["similarity"]
_SEARCHES = 16  # clusters that search for a partner at once: preparing the other side costs more than extra rows
_FREE_SEARCHES = 3  # searches at no extra cost after a merge: compiled code computes four rows at a time
_KEPT = 0.9  # empty slots are dropped when the share of used slots falls below this


def prepare_clusters(model: GroupModel, statistics: Statistics) -> Prepared:
    """Prepare clusters as the right side of `all_pairs`: in a union, the pseudo-vectors come from the left side."""
    return Prepared(statistics, statistics.n, model.pooled_information(statistics))


class MergingClusters:
    """Clusters in slots that know their most similar partners; a merged cluster takes the slot of its first part.

    Attributes
    ----------
    prepared : Prepared
        Statistics, without pseudo-vectors, and criterion of the cluster in each slot.
    owner : ndarray of shape (n_groups,)
        The slot of each group.
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

    def __init__(self, model: GroupModel, groups: Groups, statistics: Statistics, n_jobs: int | None):
        n = len(statistics)
        everything = np.arange(n)
        self.model = model
        self.groups = groups
        self.engine = choose_engine(model.likelihood, statistics, statistics, DOUBLE)
        self.pseudo_likelihood = model.pseudo_likelihood
        self.has_fixed_size = statistics.has_fixed_size
        self.prepared = prepare_clusters(model, statistics[everything])  # a copy to write into
        self.owner = everything.copy()
        self.nodes = everything.copy()
        self.alive = np.ones(n, dtype=bool)
        self.orphaned = np.zeros(n, dtype=bool)
        self.partner = np.empty(n, dtype=int)
        self.value = np.empty(n)
        left = prepare(model, statistics, _SIMILARITY)
        for batch in gen_batches(n, count_within(8 * n, ROWS)):
            # passed on without a variable, which would keep the rows in memory while the next ones are computed
            self._choose(
                everything[batch],
                all_pairs(model, left[batch], self.prepared, _SIMILARITY, engine=self.engine, n_jobs=n_jobs),
            )

    def most_similar(self) -> tuple[int, int]:
        """The slots of the two most similar clusters, the first pair among ties."""
        i = int(np.argmax(self.value))
        while self.orphaned[i]:
            searching = self._searching()[:_SEARCHES]
            self._choose(searching, self._compare(searching))
            i = int(np.argmax(self.value))
        j = int(self.partner[i])
        return min(i, j), max(i, j)

    def merge(self, i: int, j: int) -> float:
        """Merge slot `j` into slot `i`, update all partners, and return the similarity of the two."""
        gain = self._unite(i, j)
        self.alive[j] = False
        self.value[[i, j]] = -np.inf
        self.orphaned |= (self.partner == i) | (self.partner == j)
        self.orphaned[[i, j]] = False
        slots = np.array([i, *self._searching()[:_FREE_SEARCHES]])
        rows = self._compare(slots)
        row = rows[0]
        nearer = (row > self.value) | ((row == self.value) & (self.orphaned | (i < self.partner)))
        self.value[nearer] = row[nearer]
        self.partner[nearer] = i
        self.orphaned[nearer] = False
        self._choose(slots, rows)
        if self.alive.sum() < _KEPT * len(self.alive):
            self._drop_empty_slots()
        return gain

    def _unite(self, i: int, j: int) -> float:
        """Give slot `i` the groups of slot `j`, fit its model again, and return the similarity of the two."""
        statistics, information = self.prepared.statistics, self.prepared.information
        if not self.has_fixed_size:
            members = self.groups[(self.owner == i) | (self.owner == j)]
            union = self.model.statistics(united(members))
        else:
            union = self.model.likelihood.pool(statistics[[i]], statistics[[j]])
            for field in fields(union):
                if isinstance(value := getattr(union, field.name), np.ndarray):
                    getattr(statistics, field.name)[i] = value[0]
        self.owner[self.owner == j] = i
        merged = self.model.pooled_information(union)[0]
        gain = information[i] + information[j] - merged
        information[i] = merged
        if not self.has_fixed_size:
            statistics = self.model.statistics(united(self.groups, self.owner, len(self.alive)))
            self.prepared = Prepared(statistics, statistics.n, information)
        return float(gain)

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
        statistics = self.model.padded(self.prepared.statistics[slots])
        left = Prepared(statistics, statistics.n, self.prepared.information[slots] - self.pseudo_likelihood)
        try:
            result = all_pairs(self.model, left, self.prepared, _SIMILARITY, engine=self.engine, n_jobs=1)
        except NotFiniteError:
            raise_not_finite("The similarity of two clusters")
        result[:, ~self.alive] = -np.inf
        return result

    def _drop_empty_slots(self) -> None:
        alive = self.alive
        moved = np.where(alive, np.cumsum(alive) - 1, -1)
        self.owner = moved[self.owner]
        self.partner = moved[self.partner][alive]
        self.prepared = self.prepared[alive]
        self.nodes = self.nodes[alive]
        self.value = self.value[alive]
        self.orphaned = self.orphaned[alive]
        self.alive = np.ones(len(self.value), dtype=bool)


def merge_all(
    model: GroupModel, groups: Groups, statistics: Statistics, n_jobs: int | None, verbose: int
) -> tuple[np.ndarray, np.ndarray]:
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
    clusters = MergingClusters(model, groups, statistics, n_jobs)
    with progress(verbose, n - 1, "merging", " merges") as advance:
        for t in range(n - 1):
            i, j = clusters.most_similar()
            children[t] = np.sort(clusters.nodes[[i, j]])
            clusters.nodes[i] = n + t
            similarities[t] = clusters.merge(i, j)
            advance(1)
    return children, similarities
