"""P-values of pairs: the share of random pairs that are at least as near."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sklearn_mcsg.engine.chance import NullDistribution


class HasPValues(ABC):
    """The methods of everything that compares pairs with random pairs."""

    @abstractmethod
    def p_value(self, X: Any, Y: Any) -> Any:
        """Share of random pairs of similar size that are at least as near as each given pair, row by row."""

    @abstractmethod
    def _null_distribution(self) -> NullDistribution:
        """Distances of random pairs; raise if there are none."""

    def similar(self, X: Any, Y: Any, *, level: float = 0.01) -> Any:
        """Whether the p-value of each pair is at most `level`, row by row.

        Parameters
        ----------
        X, Y : collections of the same length
            The pairs, as for `p_value`.
        level : float, default=0.01
            Accepted rate of false positives: random pairs that are called similar.

        Returns
        -------
        similar : ndarray of shape (n_pairs,) of bool
        """
        self._null_distribution().check_level(level)
        return self.p_value(X, Y) <= level
