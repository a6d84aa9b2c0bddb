"""Embedding: groups as points in which a model comparison is a distance.

In come groups; out go points, one row per group, for whatever takes vectors.
"""

from sklearn_mcsg.embedding._embedding import GroupEmbedding
from sklearn_mcsg.embedding._parts import fit_to_parts
from sklearn_mcsg.embedding._points import comparer_of_points
from sklearn_mcsg.embedding._shares import parts_along, projection_of, space_of
from sklearn_mcsg.embedding._sources import Sources, embedded, learn_again

__all__ = [
    "GroupEmbedding",
    "Sources",
    "comparer_of_points",
    "embedded",
    "fit_to_parts",
    "learn_again",
    "parts_along",
    "projection_of",
    "space_of",
]
