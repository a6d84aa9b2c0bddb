"""Search: the nearest groups of a query, exactly or by candidates, on one machine or many; and near-duplicates.

In come groups and a similarity or an embedding; out go indices and distances.
"""

from sklearn_mcsg.search.duplicates import find_duplicates
from sklearn_mcsg.search.neighbors import GroupNeighbors, groups_of, search_of
from sklearn_mcsg.search.partitions import PartitionedNeighbors

__all__ = ["GroupNeighbors", "PartitionedNeighbors", "find_duplicates", "groups_of", "search_of"]
