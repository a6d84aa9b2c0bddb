"""Information criteria: goodness of fit minus a penalty for the flexibility of the model.

Every criterion is ``-2 (goodness - penalty)``; lower is better. The tests run over the registry `CRITERIA` at the end
of this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_mcsg.groups.arrays import namespace_of
from sklearn_mcsg.likelihoods import Fit, Likelihood
from sklearn_mcsg.storage import register


class Criterion(BaseEstimator, ABC):
    """An information criterion; subclass it to add one.

    A subclass must define `penalty`. It receives a `Fit`, whose arrays have one entry per group or one per pair of
    groups, and computes entry by entry. It may also define `goodness`, which is the log-likelihood by default. Class
    attributes say what the criterion uses and what holds for it:

    ==============  ==============================================================================================
    `needs`         names of the optional methods of `Likelihood` that it uses; none by default
    `order`         the highest order of moments that it needs, 2 by default
    `uses_prior`    whether it uses the likelihood's prior
    `grows`         whether the penalty never falls when vectors are added, so that `ModelComparisonSegmenter` can prune
    `takes_arrays`  whether `penalty` also computes with arrays of other libraries than NumPy
    `has_kernel`    whether distances of balanced groups stay conditionally negative definite under it
    ==============  ==============================================================================================

    Examples
    --------
    The small-sample correction of the AIC:

    >>> from sklearn_mcsg import Criterion, ModelComparisonSimilarity
    >>> class AICc(Criterion):
    ...     def penalty(self, fit):
    ...         k = fit.n_parameters
    ...         return k + k * (k + 1) / (fit.n - k - 1)
    >>> similarity = ModelComparisonSimilarity("spherical", AICc())
    >>> similarity.pairwise([[[0.0], [1.0], [2.0], [4.0]], [[0.0], [1.0], [2.0], [6.0]]]).round(2)
    array([[25.6 , 24.74],
           [24.74, 25.6 ]])
    """

    needs: ClassVar[tuple[str, ...]] = ()
    order: ClassVar[int] = 2
    uses_prior: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    takes_arrays: ClassVar[bool] = False
    has_kernel: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    def goodness(self, fit: Fit) -> np.ndarray:
        """How well the model explains each group, on the scale of a log-likelihood."""
        return fit.log_likelihood

    @abstractmethod
    def penalty(self, fit: Fit) -> np.ndarray | float:
        """Penalty for the flexibility of the model."""

    def __call__(self, fit: Fit, penalty_scale: float = 1.0) -> np.ndarray:
        """The criterion of each group."""
        information = self.goodness(fit) - penalty_scale * self.penalty(fit)
        information *= -2
        return information

    @property
    def is_penalized_likelihood(self) -> bool:
        """Whether it is the maximum of the log-likelihood minus a penalty, and so a sum over vectors."""
        return all(getattr(type(self), name) is getattr(Criterion, name) for name in ("goodness", "__call__"))

    def check(self, likelihood: Likelihood) -> None:
        """Raise unless the likelihood defines what the criterion needs."""
        missing = self.missing(likelihood)
        if missing:
            others = [repr(name) for name, criterion in CRITERIA.items() if not criterion().missing(likelihood)]
            raise ValueError(
                f"{type(likelihood).__name__} defines no {' and no '.join(missing)}, which criterion "
                f"{type(self).__name__} needs: choose among the criteria {', '.join(others)}."
            )

    def missing(self, likelihood: Likelihood) -> list[str]:
        """Methods that the criterion needs and the likelihood does not define."""
        return [method for method in self.needs if not likelihood.defines(method)]


class AIC(Criterion):
    """Akaike's criterion: the penalty is the number of parameters k (``"aic"``).

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> ModelComparisonSimilarity("diag", "aic").score_samples([[[0.0], [2.0]]]).round(3)
    array([9.676])
    """

    grows = True
    takes_arrays = True
    has_kernel = True

    def penalty(self, fit: Fit) -> float:
        return fit.n_parameters


class TIC(Criterion):
    """Takeuchi's criterion: the penalty tr(I J^-1) also holds for misspecified models (``"tic"``).

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> ModelComparisonSimilarity("diag", "tic").score_samples([[[0.0], [2.0]]]).round(3)
    array([7.676])
    """

    needs = ("tic_penalty",)
    order = 4

    def penalty(self, fit: Fit) -> np.ndarray:
        return fit.tic_penalty


class BIC(Criterion):
    """Schwarz's criterion: the penalty is k ln(n) / 2 (``"bic"``).

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> ModelComparisonSimilarity("diag", "bic").score_samples([[[0.0], [2.0]]]).round(3)
    array([7.062])
    """

    grows = True
    takes_arrays = True
    has_kernel = True

    def penalty(self, fit: Fit) -> np.ndarray:
        return 0.5 * fit.n_parameters * namespace_of(fit.n).log(fit.n)


class BayesFactor(Criterion):
    """The exact log evidence under a conjugate prior, which needs no penalty (``"bayes"``).

    The similarity is then twice the log Bayes factor of one model against two. The prior is the likelihood's own
    or, when it has none, learnt from the fitted corpus.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> X = [[[0.0], [2.0]], [[1.0], [4.0], [3.0]]]
    >>> ModelComparisonSimilarity("diag", "bayes").fit(X).score_samples(X).round(3)
    array([ 7.081, 10.622])
    """

    needs = ("log_evidence",)
    uses_prior = True
    grows = True
    has_kernel = True

    def goodness(self, fit: Fit) -> np.ndarray:
        return fit.log_evidence

    def penalty(self, fit: Fit) -> float:
        return 0.0


CRITERIA = {"aic": AIC, "tic": TIC, "bic": BIC, "bayes": BayesFactor}
