"""Clustering: groups that belong together, found by comparing models of whole clusters or in the embedding.

In come groups, or points of groups that are embedded already.
Out go labels, the largest cluster first, and trees that can be cut at any number of clusters.
"""

from sklearn_mcsg.clustering._group_clustering import GroupClustering
from sklearn_mcsg.clustering._model_clustering import ModelComparisonClustering
from sklearn_mcsg.clustering._number import FEWEST_SPLIT
from sklearn_mcsg.clustering._partitions import PartitionedClustering
from sklearn_mcsg.clustering._points import PointClusters, cluster_points
from sklearn_mcsg.clustering._stability import cluster_stability
from sklearn_mcsg.clustering.tree import ClusterTree

__all__ = [
    "FEWEST_SPLIT",
    "ClusterTree",
    "GroupClustering",
    "ModelComparisonClustering",
    "PartitionedClustering",
    "PointClusters",
    "cluster_points",
    "cluster_stability",
]
