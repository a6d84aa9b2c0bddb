"""Clustering: groups that belong together, as pooled models or as communities of points.

In come groups; out go labels, and trees that can be cut at any number of clusters.
"""

from sklearn_mcsg.clustering._communities import GroupClustering, PointClusters, cluster_points
from sklearn_mcsg.clustering._pooled import ModelComparisonClustering

__all__ = ["GroupClustering", "ModelComparisonClustering", "PointClusters", "cluster_points"]
