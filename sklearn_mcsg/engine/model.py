"""A likelihood under a criterion: from groups to statistics, and from statistics to the criterion of each group.

groups --statistics--> Statistics --padded--> with pseudo-vectors --information--> criterion of each group
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from scipy.special import gammaincinv
from sklearn.base import clone
from sklearn.utils import gen_batches

from sklearn_mcsg._checks import check_not_negative
from sklearn_mcsg._memory import PAIRS, count_within
from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.groups import Groups, placed
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.regroup import balanced, condensed, without_weightless
from sklearn_mcsg.likelihoods import Fit, Likelihood, Statistics
from sklearn_mcsg.storage import register

_UNASKED = 1e-6  # the default of reg_covar: a larger one is a choice
_OUTWEIGHED = 100  # times reg_covar: variances below it say little beside reg_covar
_SHARE = 0.1  # of the features must be affected: some may vary little where vectors are repeated
_CHANCE = 1e-3  # that the upper limit of any feature lies below its variance
_SAMPLE = 4096  # groups that are looked at
_CONSTANT = 1e-12  # share of the squared mean of a feature: rounding alone may make its variance this large


@register
@dataclass(frozen=True, eq=False)
class GroupModel:
    """The model of a group: a likelihood under a criterion, with the pseudo-vectors that every group receives.

    Attributes
    ----------
    likelihood : Likelihood
        The likelihood, with its prior if the criterion uses one.
    criterion : Criterion
        The information criterion.
    reg_covar : float
        Variance of the noise around each vector.
    penalty_scale : float
        Factor on the criterion's penalty.
    balanced : bool
        Whether the weights of each group are scaled to sum to 1.
    pseudo : Statistics or None
        One group of pseudo-vectors, which is added to every group.
    unit : Statistics or None
        Pseudo-vectors of weight 1, in place of a balanced group without vectors, so that all totals are equal.
    """

    likelihood: Likelihood
    criterion: Criterion
    reg_covar: float
    penalty_scale: float
    balanced: bool = False
    pseudo: Statistics | None = None
    unit: Statistics | None = None

    def __mcsg_check__(self) -> None:
        """Raise unless numbers are in their range, as those from a file may not be."""
        check_not_negative(self.reg_covar, "reg_covar")
        check_not_negative(self.penalty_scale, "penalty_scale")

    @property
    def lacks_prior(self) -> bool:
        """Whether the criterion uses a prior that the likelihood was not given."""
        return self.criterion.uses_prior and getattr(self.likelihood, "prior", None) is None

    def learnt_from(self, corpus: Statistics, prior_strength: float) -> GroupModel:
        """The model with its prior and pseudo-vectors learnt from a corpus."""
        if (self.lacks_prior or prior_strength > 0) and not corpus.n.any():
            what = "the prior" if self.lacks_prior else "the pseudo-vectors of prior_strength"
            raise ValueError(f"All groups are empty: there is nothing to learn {what} from.")
        self.warn_of_small_units(corpus)
        likelihood, pseudo, unit = self.likelihood, None, None
        with np.errstate(over="ignore", invalid="ignore"):
            if self.lacks_prior:
                likelihood = clone(likelihood).set_params(prior=likelihood.learn_prior(corpus))
            if prior_strength > 0:
                pseudo = likelihood.pseudo_group(corpus, float(prior_strength))
                unit = likelihood.pseudo_group(corpus, 1.0) if self.balanced else None
        return replace(self, likelihood=likelihood, pseudo=pseudo, unit=unit)

    def warn_of_small_units(self, corpus: Statistics) -> None:
        """Warn if `reg_covar` outweighs the variances of a corpus, unless it is larger than its default.

        Features that do not vary are left out. Few vectors may have small variances by chance: what counts is the upper
        limit of the variance that they may come from.
        """
        if not 0 < self.reg_covar <= _UNASKED or not isinstance(corpus.mean, np.ndarray):
            return
        if not (self.likelihood.defines("corpus_variances") and corpus.n.any()):
            return
        if len(corpus) > _SAMPLE:
            corpus = corpus.without_vectors()[np.linspace(0, len(corpus) - 1, _SAMPLE).astype(int)]
        with np.errstate(all="ignore"):
            variances = self.likelihood.corpus_variances(corpus)
            is_constant = variances <= _CONSTANT * np.square(corpus.mean).max(axis=0)
            freedom = max(1.0, float(corpus.n.sum()) - 1)
            limits = variances * freedom / (2 * gammaincinv(freedom / 2, _CHANCE / len(variances)))
        small = variances[~is_constant & (limits < _OUTWEIGHED * self.reg_covar)]
        if len(small) > _SHARE * len(variances):
            least = float(small.min())
            factor = np.sqrt(self.reg_covar / _UNASKED) / np.sqrt(least)
            warnings.warn(
                f"reg_covar={self.reg_covar:g} outweighs the vectors: the variance of {len(small)} of {len(variances)} "
                f"features is less than {_OUTWEIGHED} times reg_covar. Multiply all vectors by {factor:.0e}, or set "
                f"reg_covar={_UNASKED * least:.0e}.",
                stacklevel=2,
            )

    def placed(self, groups: Groups) -> Groups:
        """The groups with positions if the likelihood uses them: vectors keep their places when groups are pooled."""
        return placed(groups) if self.likelihood.uses_positions else groups

    def weighted(self, groups: Groups) -> Groups:
        """The groups with the weights that count: in a balanced model, those of each group sum to 1."""
        groups = self.placed(groups)
        return balanced(groups) if self.balanced else groups

    def statistics(self, groups: Groups | ArrayGroups, first: int = 0) -> Statistics:
        """Statistics of the groups as they are, without pseudo-vectors; errors number groups from `first` on."""
        with np.errstate(all="ignore"):
            if isinstance(groups, ArrayGroups):
                statistics = self._statistics_of_arrays(groups)
            else:
                weighted = self.weighted(groups)
                statistics = self.likelihood.statistics(
                    without_weightless(weighted if self.likelihood.uses_positions else condensed(weighted)),
                    reg_covar=self.reg_covar,
                    order=self.criterion.order,
                )
        finite = statistics.finite
        if not finite.all():
            raise_not_finite(f"A moment of group {first + int(np.argmin(finite))}")
        return statistics

    def _statistics_of_arrays(self, groups: ArrayGroups) -> Statistics:
        likelihood: Any = self.likelihood
        n, mean, m2, *line = groups.moments(lines=likelihood.uses_positions)
        statistics = likelihood.statistics_of_moments(n, mean, m2, self.reg_covar, *line)
        return likelihood.balance(statistics) if self.balanced else statistics

    def padded(self, statistics: Statistics) -> Statistics:
        """Statistics of the groups together with the pseudo-vectors, if there are any."""
        if self.pseudo is None:
            return statistics
        likelihood, pseudo = self.likelihood, self.pseudo.without_vectors()

        def pool(batch: Statistics) -> Statistics:
            return likelihood.pool(batch, pseudo[np.zeros(len(batch), dtype=int)])

        statistics = self._filled(statistics)
        light = statistics.without_vectors()
        step = count_within(8 * light.row_nbytes, PAIRS)
        pooled = pool(light) if len(light) <= step else light.map_batches(pool, gen_batches(len(light), step))
        return pooled.with_vectors(statistics, self.pseudo[np.zeros(len(statistics), dtype=int)])

    def _filled(self, statistics: Statistics) -> Statistics:
        """Statistics in which balanced groups without vectors have pseudo-vectors of weight 1, so totals are equal."""
        empty = statistics.n == 0
        if self.unit is None or not empty.any():
            return statistics
        if statistics.keeps_vectors:
            raise ValueError(
                f"Group {int(np.argmax(empty))} has no vectors: {type(self.likelihood).__name__} with "
                f"{type(self.criterion).__name__} cannot balance empty groups. Remove them."
            )
        joined = type(statistics).concatenate([statistics, self.unit])
        return joined[np.where(empty, len(statistics), np.arange(len(statistics)))]

    def fitted(self, fit: Fit) -> np.ndarray:
        """The criterion of each entry of a fit."""
        return self.criterion(fit, self.penalty_scale)

    def information(self, statistics: Statistics, doubled: bool = False) -> np.ndarray:
        """The criterion of each group, whose pseudo-vectors are in the statistics; or of each united with itself."""
        values = []
        with np.errstate(all="ignore"):
            for batch in gen_batches(len(statistics), count_within(4 * statistics.row_nbytes, PAIRS)):
                block = statistics[batch]
                if doubled:
                    block = self.likelihood.pool(block, block)
                values.append(self.fitted(Fit(self.likelihood, block)))
        information = np.concatenate(values)
        if not doubled:
            self._check_finite(information)
        return information

    def pooled_information(self, statistics: Statistics) -> np.ndarray:
        """The criterion of each pooled group, such as a cluster or a segment, from statistics without pseudo-vectors.

        Each model contains the pseudo-vectors once. Their own likelihood is not evidence and is subtracted; otherwise
        similarities would depend on the unit of the vectors.
        """
        padded = self.likelihood.for_pairs(self.padded(statistics))
        return self.information(padded) + self.pseudo_likelihood

    @property
    def pseudo_likelihood(self) -> float:
        """Twice the log-likelihood, or log evidence, of the pseudo-vectors."""
        if self.pseudo is None:
            return 0.0
        with np.errstate(all="ignore"):
            return 2 * float(self.criterion.goodness(Fit(self.likelihood, self.pseudo))[0])

    def _check_finite(self, information: np.ndarray) -> None:
        wrong = ~np.isfinite(information)
        if not wrong.any():
            return
        i = int(np.argmax(wrong))
        if self.reg_covar == 0 and not information[i] > 0:
            raise ValueError(
                f"Group {i} has an infinite likelihood under {type(self.likelihood).__name__}: it does not vary in "
                f"some direction, or too little for double precision. Set reg_covar > 0, or set prior_strength > 0 and "
                f"fit, or rescale the vectors."
            )
        raise_not_finite(f"The criterion of group {i}")


class NotFiniteError(ValueError):
    """A number is outside the range of double precision."""


def raise_not_finite(what: str) -> NoReturn:
    """Raise an error that says what is not finite, and what to do."""
    raise NotFiniteError(
        f"{what} is not a finite number: the vectors are too large or too small for double precision. "
        f"Rescale them, for example to unit variance."
    )
