"""Trees of merges: leaf i is node i, and merge t of n leaves makes node n + t of its two children.

Clusters are numbered by their sizes: the largest is 0, and equal sizes come in order of first appearance.
"""

from __future__ import annotations

import numpy as np


def tops_after(children: np.ndarray, n_merges: int) -> np.ndarray:
    """The node that each leaf belongs to after the first merges.

    Parameters
    ----------
    children : ndarray of int of shape (n_leaves - 1, 2)
        The two nodes of each merge.
    n_merges : int
        Number of merges that are carried out.

    Returns
    -------
    tops : ndarray of shape (n_leaves,)
    """
    n_leaves = len(children) + 1
    tops = np.arange(n_leaves + n_merges)
    for t in range(n_merges - 1, -1, -1):
        tops[children[t]] = tops[n_leaves + t]
    return tops[:n_leaves]


def merges_before(children: np.ndarray, n_large: int, least: float) -> int | None:
    """The largest number of merges after which enough clusters are large.

    Parameters
    ----------
    children : ndarray of int of shape (n_leaves - 1, 2)
        The two nodes of each merge.
    n_large : int
        Number of large clusters that are needed.
    least : float
        Number of leaves of a large cluster.

    Returns
    -------
    n_merges : int or None
        None if there are never as many.
    """
    n_leaves = len(children) + 1
    sizes = np.ones(2 * n_leaves - 1, dtype=int)
    for t, pair in enumerate(children):
        sizes[n_leaves + t] = sizes[pair].sum()
    large = (sizes >= least).astype(int)
    changes = large[n_leaves:] - large[children].sum(axis=1)
    enough = np.flatnonzero(np.cumsum([large[:n_leaves].sum(), *changes]) >= n_large)
    return int(enough[-1]) if len(enough) else None


def largest_first(labels: np.ndarray) -> np.ndarray:
    """Labels numbered by the sizes of clusters; equal sizes in order of first appearance."""
    _, first, labels, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=int)
    rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return rank[labels]
