"""How sure clusters are of their members: the second-best cluster of each, and by how much it is worse.

points --distances to all centres--> the nearest centre of another cluster, minus that of the own one
groups --each left out of its cluster--> similarity to the rest, minus that to the most similar other cluster
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import PAIRS, POINTS, count_within
from sklearn_mcsg.clustering._centers import distances_to_all
from sklearn_mcsg.clustering._merging import prepare_clusters
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.pairs import all_pairs, prepare, row_by_row
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups, united
from sklearn_mcsg.likelihoods import Statistics

_SIMILARITY = OUTPUTS["similarity"]


def margins_of_points(
    points: np.ndarray, centers: np.ndarray, labels: np.ndarray, by_cosine: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centre of another cluster, and how much farther it is than the centre of the own one."""
    second, margins = np.empty(len(points), dtype=int), np.empty(len(points), points.dtype)
    for batch in gen_batches(len(points), POINTS):
        distances = distances_to_all(points[batch], centers, by_cosine)
        second[batch], margins[batch] = _runner_up(distances, labels[batch])
    return second, margins


def margins_of_models(
    model: GroupModel,
    groups: Groups,
    statistics: Statistics,
    clusters: Prepared,
    labels: np.ndarray,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best other cluster of each group, and what the criterion of all clusters would gain if it moved there.

    Let P be the criterion of a cluster, A the group's own cluster without it, and B another one. Moving group i changes
    the criterion by P(A) + P(B and i) - P(A and i) - P(B), the similarity of i to A minus that to B. If i is alone, its
    cluster vanishes, and the similarity to A is 0.
    """
    left = prepare(model, statistics, _SIMILARITY)
    second, margins = np.empty(len(labels), dtype=int), np.empty(len(labels))
    sizes = np.bincount(labels)
    nbytes = 8 * (len(sizes) + clusters.statistics.row_nbytes + statistics.row_nbytes)
    for batch in gen_batches(len(labels), count_within(nbytes, PAIRS)):
        distances = -all_pairs(model, left[batch], clusters, _SIMILARITY, n_jobs=n_jobs)
        several = np.arange(batch.start, batch.stop)[sizes[labels[batch]] > 1]
        distances[np.arange(len(distances)), labels[batch]] = 0
        if len(several):
            rest = prepare_clusters(model, _left_out(model, groups, statistics, clusters, labels, several))
            distances[several - batch.start, labels[several]] = -row_by_row(model, left[several], rest, _SIMILARITY)
        second[batch], margins[batch] = _runner_up(distances, labels[batch])
    return second, margins


def _runner_up(distances: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest other column of each row, and how much farther it is than the own one; -1 and infinity without one.

    The own distances are overwritten.
    """
    rows = np.arange(len(labels))
    own = distances[rows, labels]
    distances[rows, labels] = np.inf
    second = distances.argmin(axis=1)
    margins = distances[rows, second] - own
    return (second if distances.shape[1] > 1 else np.full(len(labels), -1)), margins


def _left_out(
    model: GroupModel,
    groups: Groups,
    statistics: Statistics,
    clusters: Prepared,
    labels: np.ndarray,
    which: np.ndarray,
) -> Statistics:
    """The clusters of some groups, each without its group; a likelihood without `unpool` pools the others again."""
    if model.likelihood.defines("unpool"):
        return model.likelihood.unpool(clusters.statistics[labels[which]], statistics[which])
    others = (groups[np.setdiff1d(np.flatnonzero(labels == labels[i]), i)] for i in which.tolist())
    return type(statistics).concatenate([model.statistics(united(some)) for some in others])
