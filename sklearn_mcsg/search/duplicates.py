"""Near-duplicates: sets of groups that are all within a small distance of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, gen_batches

from sklearn_mcsg._checks import check_number, check_share
from sklearn_mcsg._memory import ROWS, count_within
from sklearn_mcsg.engine.chance import FEW_GROUPS, N_PAIRS
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.groups import Groups, GroupsLike, validate_groups
from sklearn_mcsg.groups.blocks import rows_of
from sklearn_mcsg.similarity import ModelComparisonSimilarity, fitted_comparer
from sklearn_mcsg.similarity.estimator import check_compares_groups, split_pipeline

_PAIR_BYTES = 256  # that a pair of near groups takes until the sets are known


def find_duplicates(
    X: GroupsLike,
    *,
    threshold: float | None = None,
    level: float | None = None,
    similarity: BaseEstimator | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[np.ndarray]:
    """Find sets of groups that are near-duplicates of each other.

    Two groups are duplicates if they are equal or their distance is at most the threshold. All groups of a set are
    duplicates of each other: sets are joined from the nearest pairs on by complete linkage, so that no chain of
    duplicates joins groups that are far apart. For texts, `find_duplicate_texts` also compares words.

    Parameters
    ----------
    X : groups, or input of the pipeline
        The groups.
    threshold : float, default=None
        Largest distance between duplicates: in the similarity's output, negated if that is higher for nearer groups.
    level : float, default=None
        Accepted rate of false positives: random pairs that are called duplicates. It takes the place of a threshold.
        The threshold then follows from `ModelComparisonSimilarity.calibrate`, extrapolated to small levels; there must
        be at least 50 groups. Among n groups there are n (n - 1) / 2 pairs: a level of 1e-5 gives one false pair among
        450 groups. Small levels are extrapolated by a normal tail. Embeddings of texts do not have one: pairs of the
        same topic are nearer, and far more pairs are joined than the level says. Give a threshold there.
    similarity : estimator, default=None
        What compares groups: see `GroupNeighbors`.
    random_state : int, RandomState instance or None, default=0
        Determines what is random: the pairs that a `level` is calibrated with.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    duplicates : list of ndarray
        Indices of each set of two groups or more, in increasing order.

    Notes
    -----
    Memory grows with the number of different groups and of the pairs within the threshold. If these pairs do not fit
    into scikit-learn's `working_memory`, an error says so: the threshold is too large.

    Examples
    --------
    >>> from sklearn_mcsg import find_duplicates
    >>> X = [[[0.0], [1.0]], [[8.0], [9.0]], [[1.0], [0.0]], [[8.0], [9.5]]]
    >>> find_duplicates(X, threshold=0.01)
    [array([0, 2])]
    >>> find_duplicates(X, threshold=1.0)
    [array([0, 2]), array([1, 3])]
    """
    if similarity is None and isinstance(X, list | tuple) and X and isinstance(X[0], str):
        raise TypeError("X holds texts: call find_duplicate_texts, or pass a pipeline such as make_text_similarity().")
    if (threshold is None) == (level is None):
        raise ValueError("find_duplicates needs either a threshold or a level, such as level=1e-5.")
    check_limit(threshold, level)
    similarity = ModelComparisonSimilarity(output="distance") if similarity is None else similarity
    before, last = steps_of(similarity, n_jobs)
    groups = validate_groups(X if before is None else before.fit_transform(X), allow_empty=True)
    comparer = fitted_comparer(last, groups)
    limits = duplicate_limits(comparer, threshold, level, random_state)
    first = _first_equal(groups)
    return linked_sets(first, near_pairs(comparer, limits, np.unique(first), verbose))


def check_limit(threshold: float | None, level: float | None) -> None:
    """Raise unless a threshold is a number, and a level a share."""
    if threshold is not None:
        check_number(threshold, "threshold")
    if level is not None:
        check_share(level, "level")


def steps_of(similarity: Any, n_jobs: int | None) -> tuple[Any, Any]:
    """The steps before a similarity, or None, and the similarity itself, unfitted and with a number of jobs."""
    before, last = split_pipeline(clone(similarity))
    check_compares_groups(last)
    if n_jobs is not None and hasattr(last, "n_jobs"):
        last.n_jobs = n_jobs
    return before, last


def duplicate_limits(
    comparer: Comparer, threshold: float | None, level: float | None, random_state: int | np.random.RandomState | None
) -> Callable[[slice | np.ndarray], Any]:
    """A function that returns the largest distances between duplicates for some rows of the distance matrix.

    Parameters
    ----------
    comparer : Comparer
        The groups, and how they are compared.
    threshold, level : float or None
        As in `find_duplicates`; one of them is None.
    random_state : int, RandomState instance or None
        Determines the random pairs.

    Returns
    -------
    limits : callable
    """
    if level is None:
        return lambda rows: threshold
    if comparer.output.higher_is_nearer:
        raise ValueError("level needs a distance: choose another output of the similarity, such as 'distance'.")
    if len(comparer) < FEW_GROUPS:
        raise ValueError(
            f"level={level} needs at least {FEW_GROUPS} groups, or different texts, to learn the distances of random "
            f"pairs from, got {len(comparer)}: give a threshold."
        )
    return comparer.limits(comparer.calibrated(N_PAIRS, check_random_state(random_state)), level)


def near_pairs(
    comparer: Comparer, limits: Callable[[slice | np.ndarray], Any], kept: np.ndarray, verbose: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pairs of groups whose distance is within a limit, block by block.

    Parameters
    ----------
    comparer : Comparer
        The groups, and how they are compared.
    limits : callable
        As `duplicate_limits` returns it.
    kept : ndarray of int
        Indices of the groups to compare, in increasing order.
    verbose : int, default=0
        Whether to show a progress bar.

    Yields
    ------
    left, right : ndarrays of int of shape (n_pairs,)
        Indices of the groups, the smaller one first.
    distances : ndarray of shape (n_pairs,)
    """
    n = len(kept)
    everything = n == len(comparer)
    with progress(verbose, n * (n - 1) // 2) as advance:
        for batch in gen_batches(n, count_within(8 * n, ROWS)):
            start, stop = batch.start, batch.stop
            rows, columns = (batch, slice(start, n)) if everything else (kept[batch], kept[start:])
            distances = comparer.output.as_distance(comparer.compare_among(rows, columns))
            limit = limits(rows)
            limit = limit[:, columns] if np.ndim(limit) else limit
            i, j = np.nonzero(np.triu(distances <= limit, 1))
            yield kept[start + i], kept[start + j], distances[i, j]
            advance(sum(range(n - stop, n - start)))


def linked_sets(first: np.ndarray, pairs: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Sets of groups in which all pairs are near, by complete linkage of the nearest first.

    Parameters
    ----------
    first : ndarray of int of shape (n_groups,)
        The first group that equals each group.
    pairs : iterable of (left, right, distances)
        All near pairs of different groups, as `near_pairs` yields them.

    Returns
    -------
    sets : list of ndarray
        Indices of each set of two groups or more, in increasing order.
    """
    left, right, distances = collected(pairs)
    labels = _complete_linkage(len(first), left, right, distances)[first]
    order = np.argsort(labels, kind="stable")
    sets = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted((members for members in sets if len(members) > 1), key=lambda members: members[0])


def collected(pairs: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All near pairs, as `near_pairs` yields them, in three arrays; raise if they do not fit into the memory."""
    found, n_found, most = [], 0, count_within(_PAIR_BYTES)
    for part in pairs:
        found.append(part)
        n_found += len(part[0])
        if n_found > most:
            raise ValueError(
                f"More than {most:,} pairs are near: lower the threshold or the level, raise the overlap of texts, or "
                "raise scikit-learn's working_memory."
            )
    empty = np.empty(0, dtype=np.intp)
    left, right, distances = (np.concatenate(column) for column in zip((empty, empty, empty), *found, strict=True))
    return left, right, distances


def _complete_linkage(n: int, left: np.ndarray, right: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Label of each group's set. Two sets merge at the last of the near pairs between them, if all pairs are near."""
    label = list(range(n))
    members = {i: [i] for i in np.unique(np.concatenate([left, right])).tolist()}
    n_near: dict[int, dict[int, int]] = defaultdict(dict)  # near pairs between two sets so far
    order = np.lexsort((right, left, distances))
    for i, j in zip(left[order].tolist(), right[order].tolist(), strict=True):
        a, b = sorted((label[i], label[j]), key=lambda k: (-len(members[k]), k))
        n_near[a][b] = n_near[b][a] = n_near[a].get(b, 0) + 1
        if n_near[a][b] < len(members[a]) * len(members[b]):
            continue
        for k in members[b]:
            label[k] = a
        members[a] += members.pop(b)
        for k, count in n_near.pop(b).items():
            del n_near[k][b]
            if k != a:
                n_near[a][k] = n_near[k][a] = n_near[a].get(k, 0) + count
    return np.array(label)


def _first_equal(groups: Groups) -> np.ndarray:
    """Index of the first group with the same vectors, weights and positions in the same order, for each group."""
    seen: dict[bytes, int] = {}
    vectors = groups.vectors if groups.indices is None else groups.indices
    parts = [part for part in (vectors, groups.weights, groups.positions) if part is not None]
    first = []
    for i in range(len(groups)):
        content = b"".join(part[rows_of(groups, i)].tobytes() for part in parts)
        first.append(seen.setdefault(blake2b(content).digest(), i))
    return np.array(first)
