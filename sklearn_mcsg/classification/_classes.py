"""Classes of groups as pooled models that grow and shrink exactly, and what leaving one group out teaches about them.

    groups, labels --pooled by label--> statistics, one row per class --merged, without--> statistics
                   --the first of each class--> examples --each left out of its class--> thresholds, temperature

Statistics are additive, so a class costs the same memory whatever its number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import inv_boxcox1p, logsumexp
from scipy.stats import t as student
from scipy.stats import yeojohnson, yeojohnson_llf
from sklearn.utils import gen_batches

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import PAIRS, count_within
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.pairs import all_pairs, prepare, row_by_row
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups, united
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.storage import register

_SIMILARITY, _DIVERGENCE = OUTPUTS["similarity"], OUTPUTS["divergence"]
_SAME = 1e-9  # relative difference of weights and means of the same group, computed in different blocks
_LOG_TEMPERATURES = -10.0, 15.0  # searched, in units of the mean divergence
_STILL = 1e-2  # share of the variance within all classes, below which a feature is nearly constant within one
_FEWEST = 10  # vectors of a class whose features may be called nearly constant
_ROUNDING = 1e-12  # share of the squared mean of a feature: rounding alone may make its variance this large


@register
@dataclass(frozen=True, eq=False)
class PooledClasses:
    """Pooled statistics of classes.

    Attributes
    ----------
    start : GroupModel
        The model before anything was learnt.
    prior_strength : float
        Number of pseudo-vectors.
    n_calibration : int
        Largest number of examples of a class.
    labels : ndarray of shape (n_classes,)
        Labels of the classes that have groups, sorted.
    counts : ndarray of int of shape (n_classes,)
        Number of groups of each class.
    statistics : Statistics
        Statistics of all vectors of each class.
    examples : Statistics
        Statistics of the first groups of each class.
    owners : ndarray of int of shape (n_examples,)
        The class of each example, as a row of `statistics`.
    """

    start: GroupModel
    prior_strength: float
    n_calibration: int
    labels: np.ndarray
    counts: np.ndarray
    statistics: Statistics
    examples: Statistics
    owners: np.ndarray

    def check(self, n_features: int) -> None:
        """Raise unless all parts describe the same classes and features."""
        if self.counts.dtype.kind not in "iu" or self.owners.dtype.kind not in "iu":
            raise ValueError("numbers of groups and classes that are not integers")
        for statistics, rows in ((self.statistics, self.labels), (self.examples, self.owners)):
            if len(statistics) != len(rows) or statistics.n_features != n_features:
                raise ValueError(f"statistics of {len(statistics)} groups for {len(rows)} rows")
        if len(self.counts) != len(self.labels) or not np.isin(self.owners, np.arange(len(self.labels))).all():
            raise ValueError(f"classes that are not among the {len(self.labels)} labels")

    @classmethod
    def of(
        cls, start: GroupModel, groups: Groups, y: np.ndarray, prior_strength: float, n_calibration: int
    ) -> PooledClasses:
        """Pool groups by their labels."""
        labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        first = _first_of_each(codes, n_calibration)
        examples = start.statistics(groups[first])
        statistics = start.statistics(united(start.placed(groups), codes, len(labels)))
        return cls(start, prior_strength, n_calibration, labels, counts, statistics, examples, codes[first])

    def merged(self, other: PooledClasses) -> PooledClasses:
        """These classes with the groups of others added."""
        join = type(self.statistics).concatenate
        labels = np.union1d(self.labels, other.labels)
        own = np.searchsorted(labels, self.labels)
        others = np.searchsorted(labels, other.labels)
        counts = np.zeros(len(labels), dtype=int)
        counts[own] += self.counts
        counts[others] += other.counts

        # rows of the classes of both, one after the other, and of the shared ones, pooled
        _, mine, theirs = np.intersect1d(self.labels, other.labels, return_indices=True)
        pooled = self.start.likelihood.pool(self.statistics[mine], other.statistics[theirs]).consolidated()
        rows = np.empty(len(labels), dtype=int)
        rows[own] = np.arange(len(own))
        rows[others] = len(own) + np.arange(len(others))
        rows[own[mine]] = len(own) + len(others) + np.arange(len(mine))
        statistics = join([self.statistics, other.statistics, pooled])[rows]

        owners = np.concatenate([own[self.owners], others[other.owners]])
        kept = _first_of_each(owners, self.n_calibration)
        examples = join([self.examples, other.examples])[kept]
        return replace(
            self, labels=labels, counts=counts, statistics=statistics, examples=examples, owners=owners[kept]
        )

    def without(self, other: PooledClasses) -> PooledClasses:
        """These classes without the groups of `other`, all of which must be its examples; empty classes vanish."""
        mine = np.searchsorted(self.labels, other.labels)
        counts = self.counts.copy()
        counts[mine] -= other.counts
        kept = counts > 0

        # rows of these classes, and of the changed ones without the groups
        changed = self.start.likelihood.unpool(self.statistics[mine], other.statistics)
        rows = np.arange(len(self.labels))
        rows[mine] = len(rows) + np.arange(len(mine))
        statistics = type(self.statistics).concatenate([self.statistics, changed])[rows[kept]]

        stays = np.ones(len(self.owners), dtype=bool)
        stays[self._find(other)] = False
        new_row = np.cumsum(kept) - 1
        return replace(
            self,
            labels=self.labels[kept],
            counts=counts[kept],
            statistics=statistics,
            examples=self.examples[stays],
            owners=new_row[self.owners[stays]],
        )

    def _find(self, other: PooledClasses) -> list[int]:
        """The examples that are groups of other classes; raise if a group cannot be among those that were fitted."""
        n, mean = self.examples.n, self.examples.mean
        rounding = _SAME * np.abs(mean).max(initial=0)
        available = np.ones(len(self.owners), dtype=bool)
        found = []
        for i, row in enumerate(np.searchsorted(self.labels, other.labels[other.owners])):
            same_weight = np.abs(n - other.examples.n[i]) <= _SAME * n
            candidates = np.flatnonzero(available & (self.owners == row) & same_weight)
            apart = np.abs(mean[candidates] - other.examples.mean[i]).max(axis=1)
            same = candidates[apart <= rounding]
            if len(same) > 0:
                found.append(int(same[0]))
                available[same[0]] = False
            elif (self.owners == row).sum() == self.counts[row]:
                raise ValueError(
                    f"Group {i} was not fitted with the label {self.labels.tolist()[row]!r}: remove takes groups with "
                    f"the labels that they were fitted with. Nothing was removed."
                )
        return found

    @property
    def model(self) -> GroupModel:
        """The model with the prior and pseudo-vectors learnt from all classes together."""
        return self._prepared[0]

    def still_features(self) -> np.ndarray:
        """Variance of each feature within each class that hardly varies there, as a share of that within all classes.

        NaN for all others. A class that is narrow in all features alike has none, and neither has one of few vectors.
        """
        likelihood, statistics = self.start.likelihood, self.statistics
        shares = np.full(statistics.mean.shape, np.nan)
        rows = np.flatnonzero(statistics.n >= _FEWEST)
        if len(rows) < 2 or not likelihood.defines("corpus_variances"):
            return shares
        noise = self.start.reg_covar + _ROUNDING * np.square(statistics.mean[rows]).max(axis=0)
        with np.errstate(all="ignore"):
            within = noise + [likelihood.corpus_variances(statistics[[row]]) for row in rows.tolist()]
            ratios = within / np.average(within, axis=0, weights=statistics.n[rows])
            is_still = ratios < _STILL * ratios.mean(axis=1, keepdims=True)
        shares[rows] = np.where(is_still, ratios, np.nan)
        return shares

    def divergences(self, groups: Groups, first: int, n_jobs: int | None, verbose: int) -> np.ndarray:
        """Divergence of each group from each class; errors number groups from `first` on."""
        model, classes = self._prepared
        left = _prepare_groups(model, model.statistics(groups, first))
        similarities = all_pairs(model, left, classes, _SIMILARITY, n_jobs=n_jobs, verbose=verbose)
        return _divergence(similarities, left.as_column(), classes)

    def thresholds(self, level: float) -> np.ndarray:
        """Divergences that a further group of each class exceeds with probability `level`.

        Each is a prediction bound of a normal variable, because a power of divergences is close to normal (Yeo and
        Johnson). The power is the same for all classes. A class of one group has the bound of all classes together.
        """
        divergences, owners = self._left_out
        own = divergences[np.arange(len(owners)), owners]
        scale = np.abs(own).mean() or 1.0
        power = _normalising_power(own / scale)
        values = yeojohnson(own / scale, power)
        bounds = np.full(len(self.labels), _prediction_bound(values, level))
        for row in np.flatnonzero(np.bincount(owners) > 1):
            bounds[row] = _prediction_bound(values[owners == row], level)
        return scale * _inverse_of_power(bounds, power)

    @lazy
    def temperature(self) -> float:
        """The factor on divergences for which probabilities of the left-out groups' own classes are largest.

        A small part of each group belongs to every class, as in Platt's scaling, so the factor is finite even if all
        groups are nearest to their own class.
        """
        return 1.0 if len(self.labels) == 1 else _fit_temperature(*self._left_out)

    @lazy
    def _prepared(self) -> tuple[GroupModel, Prepared]:
        """The model with what was learnt, and the classes prepared for it."""
        model = self.start.learnt_from(self.statistics, self.prior_strength)
        return model, prepare(model, self.statistics, _DIVERGENCE)

    @lazy
    def _left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Divergences of examples from all classes, each left out of its own, and the class of each."""
        several = np.flatnonzero(self.counts[self.owners] > 1)
        if len(several) < 2:
            raise ValueError(
                "Every class has only one group: thresholds and probabilities are learnt by leaving groups out, so "
                "some class must have two. Fit more groups, or use decision_function."
            )
        model, classes = self._prepared
        examples, owners = self.examples[several], self.owners[several]
        left = _prepare_groups(model, examples)
        divergences = _divergence(all_pairs(model, left, classes, _SIMILARITY), left.as_column(), classes)
        nbytes = 8 * (self.statistics.row_nbytes + examples.row_nbytes)
        every = np.arange(len(owners))
        for batch in gen_batches(len(owners), count_within(nbytes, PAIRS)):
            rest = model.likelihood.unpool(self.statistics[owners[batch]], examples[batch])
            right = prepare(model, rest, _DIVERGENCE)
            similarities = row_by_row(model, left[batch], right, _SIMILARITY)
            divergences[every[batch], owners[batch]] = _divergence(similarities, left[batch], right)
        return divergences, owners


def _prepare_groups(model: GroupModel, statistics: Statistics) -> Prepared:
    """Groups to be compared with classes. In a union the pseudo-vectors are those of the class, so they count once.

    Counted twice, those of the group would be charged to each class that is narrower than the corpus. Their own
    likelihood is subtracted, as in `GroupModel.pooled_information`.
    """
    prepared = prepare(model, statistics, _DIVERGENCE)
    own = model.pseudo_likelihood
    information, doubled = prepared.information + own, prepared.doubled + 2 * own
    return replace(
        prepared, statistics=model.likelihood.for_pairs(statistics), information=information, doubled=doubled
    )


def _divergence(similarities: np.ndarray, left: Prepared, right: Prepared) -> np.ndarray:
    """Divergences, not cut off at 0: a class may describe a group better than the pseudo-vectors do."""
    one, other = (2 * side.information - side.doubled for side in (left, right))  # similarities with themselves
    return (0.5 * (one + other) - similarities) * (1 / left.n + 1 / right.n)


def _first_of_each(codes: np.ndarray, count: int) -> np.ndarray:
    """Indices of the first entries with each code, in order."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    return np.sort(order[np.arange(len(codes)) - starts < count])


def _prediction_bound(values: np.ndarray, level: float) -> float:
    """The value that a further draw from the same normal distribution exceeds with probability `level`."""
    n = len(values)
    return values.mean() + student.ppf(1 - level, n - 1) * values.std(ddof=1) * np.sqrt(1 + 1 / n)


def _normalising_power(values: np.ndarray) -> float:
    """The power of Yeo and Johnson that makes values most nearly normal, among those that take all numbers to all."""
    if np.ptp(values) == 0:
        return 1.0
    best = minimize_scalar(lambda power: -yeojohnson_llf(power, values), bounds=(0, 2), method="bounded")
    return float(best.x)


def _inverse_of_power(values: np.ndarray, power: float) -> np.ndarray:
    """The numbers that `yeojohnson` takes to given values."""
    return np.where(values < 0, -inv_boxcox1p(np.abs(values), 2 - power), inv_boxcox1p(np.abs(values), power))


def _fit_temperature(divergences: np.ndarray, owners: np.ndarray) -> float:
    scale = np.abs(divergences).mean() or 1.0
    rows, share = np.arange(len(owners)), 1 / (len(owners) + 2)

    def loss(log_temperature: float) -> float:
        scores = -np.exp(log_temperature) / scale * divergences
        log_probability = scores - logsumexp(scores, axis=1, keepdims=True)
        return -(1 - share) * log_probability[rows, owners].mean() - share * log_probability.mean()

    best = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded")
    return float(np.exp(best.x) / scale)
