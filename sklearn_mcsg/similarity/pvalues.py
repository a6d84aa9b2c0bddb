"""P-values of pairs: the share of random pairs that are at least as near."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, deprecated

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg.engine.chance import N_PAIRS, NullDistribution, warn_of_few_groups
from sklearn_mcsg.engine.comparer import ComparesGroups
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.similarity.estimator import snapshot


class HasPValues(ABC):
    """The methods of everything that compares pairs with random pairs."""

    @abstractmethod
    def pvalue(self, X: Any, Y: Any) -> Any:
        """Share of random pairs of similar size that are at least as near as each given pair, row by row."""

    @abstractmethod
    def _null_distribution(self) -> NullDistribution:
        """Distances of random pairs; raise if there are none."""

    def similar(self, X: Any, Y: Any, *, level: float = 0.01) -> Any:
        """Whether the p-value of each pair is at most `level`, row by row.

        Parameters
        ----------
        X, Y : collections of the same length
            The pairs, as for `pvalue`.
        level : float, default=0.01
            Accepted rate of false positives: random pairs that are called similar.

        Returns
        -------
        similar : ndarray of shape (n_pairs,) of bool
        """
        self._null_distribution().check_level(level)
        return self.pvalue(X, Y) <= level

    @deprecated("It has been called pvalue since 0.2; the old name will be removed in 0.3.")
    def p_value(self, X: Any, Y: Any) -> Any:
        """The old name of `pvalue`.

        Parameters
        ----------
        X, Y : collections of the same length
            The pairs, as for `pvalue`.

        Returns
        -------
        p : ndarray of shape (n_pairs,)
        """
        return self.pvalue(X, Y)


class Calibrates(HasPValues, ComparesGroups):
    """Estimators that compare random pairs of groups to give p-values."""

    _null: NullDistribution | None = None

    @abstractmethod
    def _sizes_and_distances(self, X: GroupsLike, Y: GroupsLike) -> tuple[np.ndarray, np.ndarray]:
        """Size and distance of pairs, row by row."""

    def _sizes_for_pvalues(self, groups: Groups | None) -> np.ndarray | None:
        """Sizes of groups to calibrate with, for estimators whose comparer does not know them."""
        return None

    def calibrate(
        self,
        X: GroupsLike | None = None,
        *,
        n_pairs: int = N_PAIRS,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """Compare random pairs of groups, to give `pvalue` and `similar` a null distribution.

        Parameters
        ----------
        X : groups, default=None
            Groups to draw pairs from, of the same kind as the pairs to test: p-values calibrated on another kind may be
            far too small. ``None`` means the fitted groups; an embedding does not keep these and needs `X`.
        n_pairs : int, default=20_000
            Number of random pairs.
        random_state : int, RandomState instance or None, default=None
            Determines what is random: the pairs. ``None`` means the estimator's own `random_state`.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_mcsg import ModelComparisonSimilarity
        >>> rng = np.random.default_rng(0)
        >>> X = [rng.normal(rng.normal(scale=3, size=5), 1, size=(8, 5)) for _ in range(200)]
        >>> model = ModelComparisonSimilarity(random_state=0).fit(X).calibrate()
        >>> model.similar(X[:2], [X[0] + 0.1, X[100]])
        array([ True, False])
        """
        check_positive_integer(n_pairs, "n_pairs")
        groups = None if X is None else self.__mcsg_groups__(X)
        comparer = self.__mcsg_comparer__(groups)
        seed = getattr(self, "random_state", None) if random_state is None else random_state
        self._null = comparer.calibrated(n_pairs, check_random_state(seed), self._sizes_for_pvalues(groups))
        warn_of_few_groups(len(comparer), stacklevel=2)
        return self

    def pvalue(self, X: GroupsLike, Y: GroupsLike) -> np.ndarray:
        """Share of random pairs of similar size that are at least as near as each given pair, row by row.

        Parameters
        ----------
        X, Y : groups
            Collections of the same length.

        Returns
        -------
        p : ndarray of shape (n_groups,)
            Small for pairs that are nearer than most random pairs.
        """
        self = snapshot(self)
        return self._null_distribution().pvalue(*self._sizes_and_distances(X, Y))

    def _null_distribution(self) -> NullDistribution:
        if self._null is None or self._null.output != getattr(self, "output", self._null.output):
            raise NotFittedError("pvalue and similar need random pairs in the chosen output: call calibrate first.")
        return self._null
