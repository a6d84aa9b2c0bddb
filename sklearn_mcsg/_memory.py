"""How much is computed at a time: one table of budgets.

Budgets are bytes of the arrays of one step, temporary ones included, and never more than scikit-learn's
`working_memory`. Below the size of a processor's cache a step is faster; above it, larger steps save the overhead of
many small ones.
"""

from __future__ import annotations

from sklearn import get_config

PRODUCTS = 2**20  # products of vectors and means that are summed while they are in the cache
COSINES = 2**21  # a matrix of cosines that is finished while it is in the cache
VECTORS = 2**22  # vectors of groups in float64, a few copies
REPAIRS = 2**22  # statistics of pairs that are pooled again
FACTORS = 2**23  # vectors that are multiplied for `PRODUCTS`
PAIRS = 2**25  # a block of pairs of groups
COORDINATES = 2**25  # coordinates of groups
CANDIDATES = 2**25  # statistics or points of the candidates of queries
ROWS = 2**26  # rows of a matrix of distances
REFERENCES = 2**27  # comparisons with reference groups
DEVICE = 2**27  # a block on another device, which is slow to start many small computations

# Where the size of an item is not known, or does not matter: items at a time.
POINTS = 2**12  # points that are compared with centres or in pairs
QUERIES = 2**8  # of a search, so that it can be interrupted
RANDOM_PAIRS = 2**20  # distances that are counted or sorted
SEGMENTS = 2**19  # of a sequence, unless one row has more
NUMBERS = 2**22  # of a saved array, or of a table of word vectors, that are checked
CHARACTERS = 2**18  # of a long text that is split into tokens
TOKENS = 2**16  # that are numbered


def count_within(nbytes: int, budget: float = float("inf")) -> int:
    """Number of items of `nbytes` that fit into a budget and into the working memory; at least 1."""
    return max(1, int(min(get_config()["working_memory"] * 2**20, budget) // max(1, nbytes)))
