"""Random pairs of an index. A query and its neighbour are compared with them, which gives a p-value.

An embedding places the groups that it has learnt from further apart than new ones, the more so the fewer they are. So
queries that are taken from indexed groups are compared in folds there:

    folds of the groups --> an embedding of all folds but one --> queries from that one, compared with the others
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state, gen_batches

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import POINTS
from sklearn_mcsg.embedding import embedded, learn_again
from sklearn_mcsg.engine.chance import N_PAIRS, NullDistribution, checked_null, pair_size
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.search.indexed import IndexedGroups

_LARGE = 2000  # groups: an embedding that learnt from so many places new ones like its own
_N_FOLDS = 10


class _Fold(NamedTuple):
    comparer: Comparer  # of the groups that queries are compared with
    others: np.ndarray  # their indices
    asked: np.ndarray  # indices of the queries


@dataclass(frozen=True, eq=False)
class RandomPairs:
    """Random pairs of indexed groups, and of queries and indexed groups; they are drawn when they are first needed.

    Attributes
    ----------
    index : IndexedGroups
        The index.
    draw : callable or None
        Function of a number of pairs and a random state that returns random queries, and the indices of the groups they
        were taken from. With None, queries are the indexed groups themselves.
    """

    index: IndexedGroups
    draw: Callable[[int, np.random.RandomState], tuple[Groups, np.ndarray]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs, taken in one step: another thread may be drawing pairs."""
        return dict(vars(self))

    @lazy
    def among(self) -> NullDistribution:
        """Random pairs of indexed groups."""
        return self._drawn_among(N_PAIRS, self._state(None))

    @lazy
    def asked(self) -> NullDistribution:
        """Random pairs of a query and an indexed group."""
        if self._queries_are_indexed:
            return self.among
        return self._drawn_asked(None, N_PAIRS, self._state(None))

    def calibrated(
        self, queries: Groups | None, n_pairs: int, random_state: int | np.random.RandomState | None
    ) -> Self:
        """Other random pairs: of given queries, or of random ones."""
        state = self._state(random_state)
        among = asked = self._drawn_among(n_pairs, state)
        if queries is not None or not self._queries_are_indexed:
            asked = self._drawn_asked(queries, n_pairs, state)
        return self.restored([among, asked])

    def stored(self) -> list[NullDistribution | None]:
        """The random pairs that were drawn so far."""
        return [vars(self).get("among"), vars(self).get("asked")]

    def restored(self, stored: list[NullDistribution | None]) -> Self:
        """The random pairs that were drawn before; what is None is drawn when it is needed."""
        among, asked = map(checked_null, stored)
        pairs = replace(self)
        vars(pairs).update({name: null for name, null in (("among", among), ("asked", asked)) if null is not None})
        return pairs

    def pvalues(
        self, queries: Groups | None, distances: np.ndarray, indices: np.ndarray, stacklevel: int = 2
    ) -> np.ndarray:
        """Share of random pairs of similar size that are at least as near as each query and what it has found.

        Without queries, these are the indexed groups.
        """
        null, weights = (self.among, self.index.sizes) if queries is None else (self.asked, queries.totals)
        size = pair_size(weights[:, None], self.index.sizes[indices])
        far = null.is_far_from(size).any(axis=1)
        if far.any():
            warnings.warn(
                f"Query {int(np.argmax(far))} is much smaller or larger than those that random pairs were drawn from: "
                f"its p-values are rough. Give typical queries to calibrate.",
                stacklevel=stacklevel + 1,
            )
        return null.pvalue(size.ravel(), distances.ravel()).reshape(indices.shape)

    def _state(self, random_state: int | np.random.RandomState | None) -> np.random.RandomState:
        """A given random state, or a copy of the similarity's, or 0: repeated calls then draw the same pairs."""
        if random_state is not None:
            return check_random_state(random_state)
        own = getattr(self.index.last, "random_state", None)
        return check_random_state(0 if own is None else deepcopy(own))

    @property
    def _queries_are_indexed(self) -> bool:
        """Whether random queries are indexed groups that are compared as they are."""
        return self.draw is None and not _needs_folds(self.index)

    def _drawn_among(self, n_pairs: int, random_state: np.random.RandomState) -> NullDistribution:
        return self.index.comparer.calibrated(n_pairs, random_state, self.index.sizes)

    def _drawn_asked(
        self, queries: Groups | None, n_pairs: int, random_state: np.random.RandomState
    ) -> NullDistribution:
        """Random pairs of queries and indexed groups: about `n_pairs`, each query as often as any other.

        There are no more than pairs of different groups: few groups cannot claim small p-values.
        """
        index, own = self.index, None
        if queries is None:
            n_pairs = min(n_pairs, len(index) * (len(index) - 1) // 2)
            queries, own = (None, np.arange(len(index))) if self.draw is None else self.draw(n_pairs, random_state)
            if queries is not None and not len(queries):  # no random query has a word
                return self._drawn_among(n_pairs, random_state)
        weights = index.sizes if queries is None else queries.totals
        per_query = -(-n_pairs // len(weights))
        sizes, distances = [], []
        for comparer, others, asked in _folds(index, len(weights), own, random_state):
            prepared = _prepared(comparer, index, queries, asked)
            found = _others(own, asked, len(others), len(index), per_query, random_state)
            left, right = np.repeat(np.arange(len(asked)), found.shape[1]), found.ravel()
            sizes.append(pair_size(weights[asked[left]], index.sizes[others[right]]))
            for batch in gen_batches(len(left), POINTS):
                distances.append(comparer.distances_of_rows(prepared[left[batch]], comparer.prepared[right[batch]]))
        return index.comparer.null_of(np.concatenate(sizes), np.concatenate(distances))


def _needs_folds(index: IndexedGroups) -> bool:
    """Whether new groups lie nearer than indexed ones: in an embedding that has learnt from few groups."""
    return index.sources is not None and 2 * _N_FOLDS <= len(index) < _LARGE


def _folds(
    index: IndexedGroups, n_queries: int, own: np.ndarray | None, random_state: np.random.RandomState
) -> Iterator[_Fold]:
    """Queries with the groups to compare them with: all groups, where folds are not needed."""
    if own is None or not _needs_folds(index):
        yield _Fold(index.comparer, np.arange(len(index)), np.arange(n_queries))
        return
    fold = random_state.permutation(np.arange(len(index)) % _N_FOLDS)
    embedding = copy(index.last)
    embedding.verbose = 0
    sources: Any = index.sources
    for k in np.unique(fold[own]):
        others = np.flatnonzero(fold != k)
        _, comparer = learn_again(embedding, sources[others], index.comparer.dtype)
        yield _Fold(comparer, others, np.flatnonzero(fold[own] == k))


def _prepared(comparer: Comparer, index: IndexedGroups, queries: Groups | None, asked: np.ndarray) -> Any:
    """Some queries, prepared to be compared. Without queries, they are indexed groups, embedded by the comparer."""
    if queries is not None:
        return comparer.keeping(queries[asked]).prepared
    comparison: Any = comparer.comparison
    sources: Any = index.sources
    return embedded(comparison.embedding, sources[asked], comparer.dtype)


def _others(
    own: np.ndarray | None,
    asked: np.ndarray,
    n_others: int,
    n_groups: int,
    per_query: int,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Places of the groups to compare each query with: random ones, or all if there are no more; never its own."""
    own = own if n_others == n_groups else None  # a fold does not hold the groups that its queries were taken from
    available = n_others if own is None else n_others - 1
    if per_query < available:
        found = random_state.randint(available, size=(len(asked), per_query))
    else:
        found = np.tile(np.arange(available), (len(asked), 1))
    return found if own is None else (own[asked][:, None] + 1 + found) % n_others
