"""A comparison together with the groups that it compares with: what every use of a similarity takes.

    Comparer = Comparison, learnt + summaries of the fitted groups + the same, prepared for one output

Neighbours, duplicates, calibration, landmarks and partitions take this object. An estimator that compares groups gives
it by ``__mcsg_comparer__``. It is frozen: whoever adds or removes groups gets a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, cast, runtime_checkable

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.engine.chance import NullDistribution, pair_size, random_pairs
from sklearn_mcsg.engine.comparison import Comparison, PreparedT, SummariesT
from sklearn_mcsg.engine.outputs import OUTPUTS, Output
from sklearn_mcsg.engine.results import DOUBLE, Target
from sklearn_mcsg.groups import Groups, GroupsLike, Rows
from sklearn_mcsg.likelihoods import Statistics


@runtime_checkable
class ComparesGroups(Protocol):
    """Protocol of fitted estimators that compare groups: similarities and embeddings."""

    def __mcsg_comparer__(self, groups: Groups | None = None) -> Comparer:
        """The comparer of groups from `__mcsg_groups__`, from which nothing is learnt; by default, the fitted ones."""

    def __mcsg_groups__(self, X: GroupsLike) -> Groups:
        """Groups to compare, validated."""


@dataclass(frozen=True, eq=False)
class Comparer(Generic[SummariesT, PreparedT]):
    """A learnt comparison and the groups that it compares with.

    Attributes
    ----------
    comparison : Comparison
        The comparison, with everything that it has learnt.
    summaries : object
        What is kept of the groups, as `Comparison.summarize` returns it.
    prepared : object
        The groups, prepared for the output.
    name : str
        Name of the output.
    dtype : dtype
        Precision of results among the groups.
    """

    comparison: Comparison[SummariesT, PreparedT]
    summaries: SummariesT
    prepared: PreparedT
    name: str
    dtype: np.dtype

    @classmethod
    def learnt(cls, comparison: Comparison, summaries: SummariesT, output: str, dtype: np.dtype) -> Self:
        """Learn from the summaries of groups, and keep them."""
        learnt = comparison.learn(summaries)
        if not isinstance(learnt, Comparison):
            raise TypeError(f"learn of {type(comparison).__name__} must return the comparison, got {learnt!r:.60}.")
        return cls.of(learnt, summaries, output, dtype)

    @classmethod
    def of(cls, comparison: Comparison, summaries: SummariesT, output: str, dtype: np.dtype) -> Self:
        """Keep the summaries of groups under a comparison that has learnt already."""
        ready = comparison.ready_for(output)
        return cls(ready, summaries, ready.prepare(summaries, output), output, dtype)

    @property
    def output(self) -> Output:
        """The output, with the facts about it."""
        return OUTPUTS[self.name]

    def __len__(self) -> int:
        return len(self.summaries)

    # The same comparer with something exchanged -------------------------------------------------------------------

    def in_output(self, output: str) -> Self:
        """The comparer in another output."""
        if output == self.name:
            return self
        ready = self.comparison.ready_for(output)
        return replace(self, comparison=ready, prepared=ready.prepare(self.summaries, output), name=output)

    def with_jobs(self, n_jobs: int | None, verbose: int) -> Self:
        """The comparer with a number of jobs and verbosity."""
        return replace(self, comparison=self.comparison.with_jobs(n_jobs, verbose))

    def keeping(self, groups: Groups) -> Self:
        """The comparer of other groups. Nothing is learnt from them."""
        summaries = self.comparison.summarize(groups)
        return self.of(self.comparison, summaries, self.name, groups.output_dtype)

    def added(self, groups: Groups) -> Self:
        """The comparer with further groups, which learns again from all of them."""
        summaries = joined([self.summaries, self.comparison.summarize(groups)])
        dtype = np.result_type(self.dtype, groups.output_dtype)
        return self.learnt(self.comparison.unlearnt(), summaries, self.name, dtype)

    def only(self, rows: np.ndarray) -> Self:
        """The comparer with some of its groups, which learns again from these."""
        return self.learnt(self.comparison.unlearnt(), self.summaries[rows], self.name, self.dtype)

    # Comparison with the groups -----------------------------------------------------------------------------------

    def compare_with(self, groups: Groups) -> Any:
        """Compare groups with all kept ones: shape (n_groups, n_kept)."""
        target = Target.of(groups, dtype=self.dtype)
        return self.comparison.matrix(self._prepared(groups), self.prepared, self.name, target)

    def compare_with_candidates(self, groups: Groups, candidates: np.ndarray) -> np.ndarray:
        """Compare each group with its own candidates among the kept ones; `candidates` has one row per group."""
        return self._candidates(self._prepared(groups), candidates, Target.of(groups, dtype=self.dtype))

    def compare_among(self, rows: Rows, columns: Rows | None = None) -> np.ndarray:
        """Compare kept groups with other kept ones, or with all: shape (n_rows, n_columns)."""
        every = np.arange(len(self))
        left = self.prepared[rows]
        right = self.prepared if columns is None else self.prepared[columns]
        matrix = self.comparison.matrix(left, right, self.name, Target(self.dtype))
        return self.output.clear_same(matrix, every[rows], every if columns is None else every[columns])

    def compare_among_candidates(self, rows: Rows, candidates: np.ndarray) -> np.ndarray:
        """Compare some kept groups, each with its own candidates among the kept ones."""
        values = self._candidates(self.prepared[rows], candidates, Target(self.dtype))
        if self.output.diagonal is not None:
            values[np.arange(len(self))[rows][:, None] == candidates] = self.output.diagonal
        return values

    def distances_of_rows(self, left: PreparedT, right: PreparedT) -> np.ndarray:
        """Distances of prepared groups row by row: smaller for nearer groups, in any output."""
        return self.output.as_distance(self.comparison.row(left, right, self.name, DOUBLE))

    def _prepared(self, groups: Groups) -> PreparedT:
        return self.comparison.prepare(self.comparison.summarize(groups), self.name)

    def _candidates(self, left: PreparedT, candidates: np.ndarray, target: Target) -> np.ndarray:
        rows = np.repeat(np.arange(len(left)), candidates.shape[1])
        values = self.comparison.row(left[rows], self.prepared[candidates.ravel()], self.name, target)
        return values.reshape(candidates.shape)

    # What uses of the groups need ---------------------------------------------------------------------------------

    def calibrated(
        self, n_pairs: int, random_state: np.random.RandomState, sizes: np.ndarray | None = None
    ) -> NullDistribution:
        """Distances of random pairs of the groups; `sizes` are those of the comparison unless they are given."""
        if len(self) < 2:
            raise ValueError("calibrate needs at least two groups to draw pairs from.")
        size = self.comparison.sizes(self.prepared) if sizes is None else sizes
        left, right = random_pairs(len(self), n_pairs, random_state)
        distances = [
            self.distances_of_rows(self.prepared[left[batch]], self.prepared[right[batch]])
            for batch in gen_batches(len(left), POINTS)
        ]
        return self.null_of(pair_size(size[left], size[right]), np.concatenate(distances))

    def null_of(self, size: np.ndarray, distance: np.ndarray) -> NullDistribution:
        """Random pairs that were compared in the output of this comparer."""
        return NullDistribution.of(size, distance, self.name, self.comparison.power_of(self.name))

    def limits(self, null: NullDistribution, level: float) -> Callable[[slice | np.ndarray], np.ndarray]:
        """A function of some rows of the matrix of all pairs that returns the limit of each pair.

        It is the distance below which a share `level` of random pairs of the same size lies.
        """
        size = self.comparison.sizes(self.prepared)
        return lambda rows: null.threshold(pair_size(size[rows, None], size), level)

    def shards(self, queries: Groups | np.ndarray, slices: list[slice]) -> Iterator[Shard]:
        """Consecutive parts of the groups, each with all that a worker needs to compare queries with it.

        Queries are groups, or indices of kept groups.
        """
        if isinstance(queries, Groups):
            left, dtype = self._prepared(queries), Target.of(queries, dtype=self.dtype).dtype
        else:
            left, dtype = self.prepared[queries], self.dtype
        light = self.comparison.with_jobs(1, 0).without_corpus()
        every = not isinstance(queries, Groups) and np.array_equal(queries, np.arange(len(self)))
        for part in slices:
            yield Shard(light, left, part if every else self.prepared[part], self.name, Target(dtype))


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the groups of a comparer, with prepared queries: what one worker compares.

    Attributes
    ----------
    comparison : Comparison
        The comparison, without its corpus.
    queries : object
        The queries, prepared.
    groups : object or slice
        The groups, prepared. If the queries are all kept groups, a slice of the queries takes their place.
    output : str
        The output.
    target : Target
        Precision of the result.
    """

    comparison: Comparison
    queries: Any
    groups: Any
    output: str
    target: Target

    def compare(self, rows: slice) -> np.ndarray:
        """Compare some queries with all groups of the shard."""
        groups = self.queries[self.groups] if isinstance(self.groups, slice) else self.groups
        return self.comparison.matrix(self.queries[rows], groups, self.output, self.target)


def joined(summaries: list[SummariesT]) -> SummariesT:
    """The summaries of several collections, one after the other."""
    first = summaries[0]
    if isinstance(first, Groups | Statistics):
        return cast(SummariesT, type(first).concatenate(summaries))  # type: ignore[arg-type]
    return cast(SummariesT, np.concatenate(summaries))  # type: ignore[arg-type]
