"""The same vectors, grouped in another way: divided, condensed, without weights or names.

None of these functions copies vectors; the table stays shared. Functions that tear groups apart keep the places of
vectors only if these are positions: see `placed`.
"""

from __future__ import annotations

import numpy as np

from sklearn_mcsg.groups._groups import Groups, offsets_of, packed
from sklearn_mcsg.groups.blocks import block_rows, per_vector


def divided(groups: Groups, rows: np.ndarray) -> Groups:
    """One group per row of `rows`, a 2-d array of positions among all vectors."""
    return groups._take(rows.ravel(), np.arange(len(rows) + 1) * rows.shape[1])


def balanced(groups: Groups) -> Groups:
    """The groups with weights that sum to 1 in each group; groups of total weight 0 keep it."""
    totals = per_vector(groups.totals, groups)
    weights = np.divide(groups.row_weights, totals, out=np.zeros(len(totals)), where=totals > 0)
    return packed(groups.vectors, groups.offsets, groups.indices, weights, groups._names, groups.positions)


def without_labels(groups: Groups) -> Groups:
    """The groups without names."""
    return packed(groups.vectors, groups.offsets, groups.indices, groups.weights, positions=groups.positions)


def without_weightless(groups: Groups) -> Groups:
    """The groups without vectors of weight 0, whose values must not matter."""
    if groups.weights is None or groups.weights.all():
        return groups
    kept = groups.weights > 0
    return groups._take(np.flatnonzero(kept), offsets_of(kept)[groups.offsets])


def condensed(groups: Groups) -> Groups:
    """The groups, where large ones hold each row of the table once, with the sum of its weights.

    Only groups that are too large for one block are condensed, and only if they share a table. Places are lost.
    """
    large = np.flatnonzero(groups.sizes > block_rows(groups))
    if groups.indices is None or not len(large):
        return groups
    sizes = groups.sizes.copy()
    indices, weights = [], []
    start = 0
    for i in large:
        own = groups._rows_of(int(i))
        before = slice(start, own.start)
        distinct, places = np.unique(groups.indices[own], return_inverse=True)
        totals = np.bincount(places, weights=None if groups.weights is None else groups.weights[own])
        filled = totals > 0
        indices += [groups.indices[before], distinct[filled]]
        weights += [_weights_of(groups, before), totals[filled]]
        sizes[i] = np.count_nonzero(filled)
        start = own.stop
    rest = slice(start, groups.n_rows)
    indices.append(groups.indices[rest])
    weights.append(_weights_of(groups, rest))
    joined = np.concatenate(weights).astype(float)
    return packed(groups.vectors, offsets_of(sizes), np.concatenate(indices), joined, groups._names)


def _weights_of(groups: Groups, rows: slice) -> np.ndarray:
    return np.ones(rows.stop - rows.start) if groups.weights is None else groups.weights[rows]
