"""Classes of groups as pooled models that grow and shrink exactly, and what leaving one group out teaches about them.

    groups, labels --pooled by label--> statistics, one row per class --merged, without--> statistics
                   --the first of each class--> references --each left out of its class--> thresholds, temperature

Statistics are additive, so a class costs the same memory whatever its number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import t as student
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import PAIRS as CACHE_BYTES
from sklearn_mcsg._memory import count_within
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.regroup import united
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.likelihoods.base import lazy
from sklearn_mcsg.storage import register

_DIVERGENCE = OUTPUTS["divergence"]
_SAME = 1e-9  # relative difference of weights and means of the same group, computed in different blocks
_LOG_TEMPERATURES = -10.0, 15.0  # searched, in units of the mean divergence


@register
@dataclass(frozen=True, eq=False)
class PooledClasses:
    """Pooled statistics of classes.

    Attributes
    ----------
    start : GroupModel
        The comparison before anything was learnt.
    prior_strength : float
        Number of pseudo-vectors.
    n_references : int
        Largest number of references of a class.
    labels : ndarray of shape (n_classes,)
        Labels of the classes that have groups, sorted.
    counts : ndarray of int of shape (n_classes,)
        Number of groups of each class.
    statistics : Statistics
        Statistics of all vectors of each class.
    references : Statistics
        Statistics of the first groups of each class.
    owners : ndarray of int of shape (n_references,)
        The class of each reference, as a row of `statistics`.
    """

    start: GroupModel
    prior_strength: float
    n_references: int
    labels: np.ndarray
    counts: np.ndarray
    statistics: Statistics
    references: Statistics
    owners: np.ndarray

    def check(self, n_features: int) -> None:
        """Raise unless all parts describe the same classes and features."""
        if self.counts.dtype.kind not in "iu" or self.owners.dtype.kind not in "iu":
            raise ValueError("numbers of groups and classes that are not integers")
        for statistics, rows in ((self.statistics, self.labels), (self.references, self.owners)):
            if len(statistics) != len(rows) or statistics.n_features != n_features:
                raise ValueError(f"statistics of {len(statistics)} groups for {len(rows)} rows")
        if len(self.counts) != len(self.labels) or not np.isin(self.owners, np.arange(len(self.labels))).all():
            raise ValueError(f"classes that are not among the {len(self.labels)} labels")

    @classmethod
    def of(
        cls, start: GroupModel, groups: Groups, y: np.ndarray, prior_strength: float, n_references: int
    ) -> PooledClasses:
        """Pool groups by their labels."""
        labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        first = _first_of_each(codes, n_references)
        references = start.statistics(groups[first])
        statistics = start.statistics(united(groups, codes, len(labels)))
        return cls(start, prior_strength, n_references, labels, counts, statistics, references, codes[first])

    def merged(self, other: PooledClasses) -> PooledClasses:
        """These classes with the groups of others added."""
        labels = np.union1d(self.labels, other.labels)
        _, mine, theirs = np.intersect1d(self.labels, other.labels, return_indices=True)
        pooled = self.start.likelihood.pool(self.statistics[mine], other.statistics[theirs]).compact()
        own, others = (np.searchsorted(labels, classes.labels) for classes in (self, other))
        counts, rows = np.zeros(len(labels), dtype=int), np.empty(len(labels), dtype=int)
        np.add.at(counts, np.concatenate([own, others]), np.concatenate([self.counts, other.counts]))
        rows[own] = np.arange(len(own))
        rows[others] = len(own) + np.arange(len(others))
        rows[own[mine]] = len(own) + len(others) + np.arange(len(mine))
        join = type(self.statistics).concatenate
        owners = np.concatenate([own[self.owners], others[other.owners]])
        kept = _first_of_each(owners, self.n_references)
        return replace(
            self,
            labels=labels,
            counts=counts,
            statistics=join([self.statistics, other.statistics, pooled])[rows],
            references=join([self.references, other.references])[kept],
            owners=owners[kept],
        )

    def without(self, other: PooledClasses) -> PooledClasses:
        """These classes without the groups of others, all of which are references there; empty classes vanish."""
        mine = np.searchsorted(self.labels, other.labels)
        left = self.start.likelihood.unpool(self.statistics[mine], other.statistics)
        counts, rows = self.counts.copy(), np.arange(len(self.labels))
        counts[mine] -= other.counts
        rows[mine] = len(rows) + np.arange(len(mine))
        kept, references = counts > 0, ~np.isin(np.arange(len(self.owners)), self._find(other))
        statistics = type(self.statistics).concatenate([self.statistics, left])[rows[kept]]
        return replace(
            self,
            labels=self.labels[kept],
            counts=counts[kept],
            statistics=statistics,
            references=self.references[references],
            owners=(np.cumsum(kept) - 1)[self.owners[references]],
        )

    def _find(self, other: PooledClasses) -> list[int]:
        """The references that are groups of other classes; raise if a group cannot be among those that were fitted."""
        n, mean, taken = self.references.n, self.references.mean, np.zeros(len(self.owners), dtype=bool)
        scale = np.abs(mean).max(initial=0)
        found = []
        for i, label in enumerate(other.labels[other.owners].tolist()):
            own = int(np.searchsorted(self.labels, label))
            same = (self.owners == own) & ~taken & (np.abs(n - other.references.n[i]) <= _SAME * n)
            rows = np.flatnonzero(same)
            apart = np.abs(mean[rows] - other.references.mean[i]).max(axis=1)
            rows = rows[apart <= _SAME * scale]
            if len(rows):
                found.append(int(rows[0]))
                taken[rows[0]] = True
            elif (self.owners == own).sum() == self.counts[own]:
                raise ValueError(
                    f"Group {i} was not fitted with the label {label!r}: remove takes groups with the labels that they "
                    f"were fitted with. Nothing was removed."
                )
        return found

    @property
    def comparison(self) -> GroupModel:
        """The comparison with the prior and pseudo-vectors learnt from all classes together."""
        return self._prepared[0]

    def divergences(self, groups: Groups, first: int, n_jobs: int | None, verbose: int) -> np.ndarray:
        """Divergence of each group from each class; errors number groups from `first` on."""
        comparison, classes = self._prepared
        left = comparison.prepare(comparison.statistics(groups, first), _DIVERGENCE)
        return comparison.with_jobs(n_jobs, verbose).all_pairs(left, classes, _DIVERGENCE)

    def thresholds(self, level: float) -> np.ndarray:
        """Divergences that a further group of each class exceeds with probability `level`.

        Cube roots of divergences are close to normal (Wilson and Hilferty), so each is a prediction bound of a normal
        variable. A class of one group has that of all classes together.
        """
        divergences, owners = self._left_out
        roots = np.cbrt(divergences[np.arange(len(owners)), owners])
        bounds = np.full(len(self.labels), _prediction_bound(roots, level))
        for row in np.flatnonzero(np.bincount(owners) > 1):
            bounds[row] = _prediction_bound(roots[owners == row], level)
        return bounds**3

    @lazy
    def temperature(self) -> float:
        """The factor on divergences for which probabilities of the left-out groups' own classes are largest.

        A small part of each group belongs to every class, as in Platt's scaling, so the factor is finite even if all
        groups are nearest to their own class.
        """
        return 1.0 if len(self.labels) == 1 else _fit_temperature(*self._left_out)

    @lazy
    def _prepared(self) -> tuple[GroupModel, Prepared]:
        """The comparison with what was learnt, and the classes prepared for it."""
        comparison = self.start.completed(self.statistics, self.prior_strength)
        return comparison, comparison.prepare(self.statistics, _DIVERGENCE)

    @lazy
    def _left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Divergences of references from all classes, each left out of its own, and the class of each."""
        several = np.flatnonzero(self.counts[self.owners] > 1)
        if len(several) < 2:
            raise ValueError(
                "Every class has only one group: thresholds and probabilities are learnt by leaving groups out, so "
                "some class must have two. Fit more groups, or use decision_function."
            )
        comparison, classes = self._prepared
        references, owners = self.references[several], self.owners[several]
        left = comparison.prepare(references, _DIVERGENCE)
        divergences = comparison.all_pairs(left, classes, _DIVERGENCE)
        nbytes = 8 * (self.statistics.row_nbytes + references.row_nbytes)
        for batch in gen_batches(len(owners), count_within(nbytes, CACHE_BYTES)):
            rest = comparison.likelihood.unpool(self.statistics[owners[batch]], references[batch])
            right = comparison.prepare(rest, _DIVERGENCE)
            rows = np.arange(len(owners))[batch]
            divergences[rows, owners[batch]] = comparison.row_by_row(left[batch], right, _DIVERGENCE)
        return divergences, owners


def _first_of_each(codes: np.ndarray, count: int) -> np.ndarray:
    """Indices of the first entries with each code, in order."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    return np.sort(order[np.arange(len(codes)) - starts < count])


def _prediction_bound(values: np.ndarray, level: float) -> float:
    """The value that a further draw from the same normal distribution exceeds with probability `level`."""
    n = len(values)
    return values.mean() + student.ppf(1 - level, n - 1) * values.std(ddof=1) * np.sqrt(1 + 1 / n)


def _fit_temperature(divergences: np.ndarray, owners: np.ndarray) -> float:
    scale = divergences.mean() or 1.0
    rows, share = np.arange(len(owners)), 1 / (len(owners) + 2)

    def loss(log_temperature: float) -> float:
        scores = -np.exp(log_temperature) / scale * divergences
        log_probability = scores - logsumexp(scores, axis=1, keepdims=True)
        return -(1 - share) * log_probability[rows, owners].mean() - share * log_probability.mean()

    best = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded")
    return float(np.exp(best.x) / scale)
