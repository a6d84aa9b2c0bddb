"""Permutation tests: the similarity of two groups beside those of random divisions of their vectors."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.pairs import prepare, row_by_row
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.regroup import divided, without_weightless

_ROUNDING = 1e-9  # of the largest similarity: values that differ by less are equal


class PermutationTest(NamedTuple):
    """Similarity of two groups, and the share of divisions of their vectors that are not more similar."""

    similarity: float
    pvalue: float


def permutation_test(
    model: GroupModel, a: Groups, b: Groups, n_permutations: int, random_state: np.random.RandomState
) -> PermutationTest:
    """Compare the similarity of two groups with that of random divisions of their vectors."""
    output = OUTPUTS["similarity"]
    a, b = (without_weightless(model.placed(group)) for group in (a, b))
    divisions = _divisions(a, b, n_permutations, random_state)
    left, right = (prepare(model, model.statistics(groups), output) for groups in divisions)
    values = row_by_row(model, left, right, output)
    given = float(values[0])
    at_most = int((values <= given + _ROUNDING * np.abs(values).max()).sum())
    return PermutationTest(given, at_most / len(values))


def _divisions(a: Groups, b: Groups, n_permutations: int, random_state: np.random.RandomState) -> tuple[Groups, Groups]:
    """Divide the vectors of two groups into groups of the same sizes: as given, then in all other ways or at random."""
    pooled, n = Groups.concatenate([a, b]), a.n_rows
    found = orders(pooled.n_rows, n, n_permutations, random_state)
    return divided(pooled, found[:, :n]), divided(pooled, found[:, n:])


def orders(total: int, n: int, n_permutations: int, random_state: np.random.RandomState) -> np.ndarray:
    """Orders that divide `total` things into the first `n` and the others; the first order leaves them as they are.

    If there are at most `n_permutations` divisions, each of them has one order. Otherwise all orders but the first are
    random.
    """
    n_divisions = comb(total, n)
    n_orders = min(n_divisions, 1 + n_permutations)
    try:
        found = np.empty((n_orders, total), dtype=np.intp)
    except (MemoryError, ValueError) as error:  # ValueError: more than an array can count
        raise ValueError(f"{n_orders:,} permutations take more memory than there is: choose fewer.") from error
    found[0] = np.arange(total)
    if n_divisions <= n_permutations:
        for order, rows in zip(found, combinations(range(total), n), strict=True):
            order[:] = *rows, *np.delete(found[0], rows)
        return found
    for order in found[1:]:
        order[:] = random_state.permutation(total)
    return found
