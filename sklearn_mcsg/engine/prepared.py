"""Groups in the form that is compared: their statistics, and the quantities that outputs take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.groups import Rows
from sklearn_mcsg.likelihoods import Statistics


@dataclass(frozen=True, eq=False)
class Prepared:
    """Groups prepared for an output: their statistics, and the quantities that the output needs.

    Attributes
    ----------
    statistics : Statistics
        Statistics of the groups, with pseudo-vectors if there are any.
    n : ndarray
        Total weight of each group.
    information : ndarray
        Criterion of each group.
    doubled : ndarray
        Criterion of each group united with itself, for outputs that need it.
    to_references : ndarray
        Mean divergence of each group to the reference groups, for outputs that need it.
    among_references : float
        Mean divergence between reference groups.
    scale : float
        Median distance between reference groups, for kernels.
    """

    statistics: Statistics
    n: np.ndarray
    information: np.ndarray
    doubled: np.ndarray = None  # type: ignore[assignment]
    to_references: np.ndarray = None  # type: ignore[assignment]
    among_references: float = 0.0
    scale: float = 1.0

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, key: Rows) -> Prepared:
        return self._map(lambda values: values[key], self.statistics[key])

    def as_column(self) -> Prepared:
        """The same groups along the first axis of a matrix."""
        return self._map(lambda values: values[:, None], self.statistics)

    def map_arrays(self, function: Callable[[Any], Any]) -> Prepared:
        """The same groups with a function applied to each array."""
        return self._map(function, self.statistics.map_arrays(function))

    def _map(self, function: Callable[[np.ndarray], np.ndarray], statistics: Statistics) -> Prepared:
        doubled, to_references = (None if v is None else function(v) for v in (self.doubled, self.to_references))
        n, information = function(self.n), function(self.information)
        return Prepared(statistics, n, information, doubled, to_references, self.among_references, self.scale)
