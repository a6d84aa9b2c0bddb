"""Embedding: groups as points in which a model comparison is a distance.

In come groups; out go points, one row per group, for whatever takes vectors.
"""

from sklearn_mcsg.embedding.embedding import GroupEmbedding

__all__ = ["GroupEmbedding"]
