"""The state that a model comparison has learnt from a corpus, as one plain object."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS, Output
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import Statistics

DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Learnt:
    """A comparison with everything learnt from a corpus, and the statistics of the corpus.

    Attributes
    ----------
    comparison : GroupModel
        Likelihood with its prior, criterion and pseudo-vectors.
    output : Output
        The chosen output.
    statistics : Statistics
        Statistics of the fitted groups, without pseudo-vectors; None before `fit`.
    references : ndarray of int
        Indices of the reference groups of ``"centered"``.
    dtype : dtype
        Precision of the fitted vectors.
    start : GroupModel or None
        The comparison before anything was learnt.
    prior_strength : float
        Number of pseudo-vectors.
    null : NullDistribution or None
        Distances of random pairs in an output, once calibrated.
    """

    comparison: GroupModel
    output: Output
    statistics: Statistics = None  # type: ignore[assignment]
    references: np.ndarray = None  # type: ignore[assignment]
    dtype: np.dtype = DOUBLE
    null: Any = None
    start: GroupModel | None = None
    prior_strength: float = 0.0
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def with_jobs(self, n_jobs: int | None, verbose: int) -> Learnt:
        """A copy with another number of jobs and verbosity."""
        return replace(self, comparison=self.comparison.with_jobs(n_jobs, verbose))

    def prepare(self, groups: Groups | Statistics, output: Output) -> Prepared:
        """Prepare groups, or their statistics, for an output."""
        statistics = self.comparison.statistics(groups) if isinstance(groups, Groups) else groups
        if not output.is_kernel:
            return self.comparison.prepare(statistics, output, self._references(output))
        prepared = self.comparison_for(output).prepare(self.comparison.likelihood.balance(statistics), output)
        return replace(prepared, scale=self._kernel()[1])

    def comparison_for(self, output: Output) -> GroupModel:
        """The comparison of prepared groups in an output: for kernels, of balanced groups."""
        if not output.is_kernel:
            return self.comparison
        jobs: Any = {"n_jobs": self.comparison.n_jobs, "verbose": self.comparison.verbose}
        return replace(self._kernel()[0], **jobs)

    def _kernel(self) -> tuple[GroupModel, float]:
        """What the corpus teaches about balanced groups, and the median distance of the reference groups."""
        if "kernel comparison" not in self._cache:
            start: Any = self.start
            balanced = start.likelihood.balance(self.statistics)
            comparison = replace(start, balanced=True).completed(balanced, self.prior_strength)
            references = comparison.prepare(balanced[self.references], OUTPUTS["distance"])
            distances = comparison.all_pairs(references, None, OUTPUTS["distance"])
            scale = float(np.median(distances[np.triu_indices(len(distances), 1)])) if len(distances) > 1 else 0.0
            self._cache["kernel comparison"] = comparison, scale or 1.0
        return self._cache["kernel comparison"]

    def carried_to(self, statistics: Statistics | None, output: Output) -> Learnt:
        """What was learnt, for one job, with the statistics of other groups in place of the corpus, or with none."""
        self._references(output)
        if output.is_kernel:
            self._kernel()
        kept = {name: value for name, value in self._cache.items() if name not in OUTPUTS}
        found: Any = {"statistics": statistics, "references": np.empty(0, dtype=int), "_cache": kept}
        return replace(self.with_jobs(1, 0), **found)

    def fitted(self, output: Output) -> Prepared:
        """The fitted groups, prepared for an output; cached for the first output requested."""
        if output.name in self._cache:
            return self._cache[output.name]
        prepared = self.prepare(self.statistics, output)
        if not self._cache.keys() & OUTPUTS.keys():
            self._cache[output.name] = prepared
        return prepared

    def _references(self, output: Output) -> Prepared | None:
        """The prepared reference groups, or None if the output does not need them."""
        if not output.needs_references:
            return None
        if "references" not in self._cache:
            self._cache["references"] = self.comparison.prepare_references(self.statistics[self.references])
        return self._cache["references"]
