"""Tables of word vectors: what is known of words, and what is made for them.

    WordTable       words and their vectors, with one row per word
    StaticTable     a static model, in which any word is the sum of its pieces
    SpellingTable   any word by its spelling
    SideBySide      several tables as one, with the unit vectors of a word side by side
    MadeTable       one row for each word of some texts, which these make

All give the vectors of words, their lengths, and how frequent they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_mcsg._disk import FileContent
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import NUMBERS, VECTORS, count_within
from sklearn_mcsg.text._spelling import LONGEST_WORD, sample, spelled
from sklearn_mcsg.text._tokenised import places_of

_EXACT_LENGTH = 1e-140  # the squares of shorter vectors are too small for all digits


class WordRows(dict):
    """Row of each word. Missing words are looked up in lower case; the row of unknown words is -1."""

    keys_are = "strings"

    def __missing__(self, word: str) -> int:
        if not isinstance(word, str):
            raise TypeError(f"got {word!r}")
        return self.get(word.lower(), -1)


class PieceIds(WordRows):
    """Row of each id of a piece, which is its number."""

    def __init__(self, n_rows: int):
        super().__init__(zip(range(n_rows), range(n_rows), strict=True))
        self.keys_are = f"ids of the {n_rows} rows of its table, or take a mapping of tokens to vectors"

    def __missing__(self, piece: Any) -> int:
        raise TypeError(f"got {piece!r}")


class WordTable:
    """Words and their vectors, in the order of their source."""

    contents: tuple[FileContent, ...] = ()  # of the files that they were read from

    def __init__(self, words: Sequence[str], vectors: np.ndarray):
        self.words, self.vectors = words, vectors

    @lazy
    def rows(self) -> WordRows:
        """Row of each word; the first one, if a word is given twice."""
        return WordRows(zip(reversed(self.words), range(len(self.words) - 1, -1, -1), strict=True))

    @lazy
    def names(self) -> np.ndarray:
        """The words as an array of objects."""
        return np.array(self.words, dtype=object)

    @lazy
    def median_norm(self) -> float:
        """Median length of the vectors."""
        norms = [lengths(self.vectors[rows]) for rows in blocks_of(self.vectors)]
        median = float(np.median(np.concatenate(norms)))
        if not median > 0:
            raise ValueError("Half of the word vectors have length 0: weighting='norm' cannot be used with them.")
        return median

    @property
    def width(self) -> int:
        """Number of features."""
        return self.vectors.shape[1]

    @property
    def precision(self) -> np.dtype:
        """Precision of what is computed from the vectors: single or better."""
        return np.result_type(self.vectors.dtype, np.float32)

    @property
    def in_order(self) -> WordTable:
        """The table whose order gives the frequencies of words."""
        return self

    @property
    def n_ranks(self) -> int:
        """Number of words in order of frequency."""
        return len(self.words)

    def has(self, word: str) -> bool:
        """Whether a word, or the same in lower case, has a vector."""
        return self.rows.get(word, self.rows.get(word.lower(), -1)) >= 0

    def ranks(self, rows: np.ndarray) -> np.ndarray:
        """Ranks of words in order of frequency; those that follow the table's are like its last word."""
        return np.minimum(rows, len(self.words) - 1)

    def norms(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of vectors."""
        return lengths(self.vectors[rows])

    def unit_vectors(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors at unit length, and the lengths that they had."""
        vectors = self.vectors[rows]
        norms = lengths(vectors)
        return (vectors / np.where(norms > 0, norms, 1)[:, None]).astype(self.precision, copy=False), norms

    def spelled(self, words: Sequence[str], unit_norm: bool) -> np.ndarray:
        """Vectors of words without a row, distributed like those of the table as they are used."""
        like = self._typical_units if unit_norm else self._typical_vectors
        vectors = np.empty((len(words), self.width), self.precision)
        step = count_within(like[0].nbytes, VECTORS)
        for start in range(0, len(words), step):
            made = spelled(words[start : start + step], like)
            vectors[start : start + step] = made / lengths(made)[:, None] if unit_norm else made
        return vectors

    @lazy
    def _typical_vectors(self) -> np.ndarray:
        return _typical(self.vectors[sample(len(self.words))])

    @lazy
    def _typical_units(self) -> np.ndarray:
        return _typical(self.unit_vectors(sample(len(self.words)))[0])


def _typical(vectors: np.ndarray) -> np.ndarray:
    """Two vectors with the mean and the standard deviations of many."""
    vectors = vectors.astype(np.float64)
    mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
    return np.array([mean - deviation, mean + deviation])


class MadeTable(WordTable):
    """A table that was made for some words.

    Parameters
    ----------
    words : list of str
        The words.
    units : ndarray of shape (n_words, n_features)
        Vectors at unit length.
    norms : ndarray of shape (n_words,)
        The lengths that they stand for.
    median_norm : float
        Median length in the table that gives them.
    ranks : ndarray of shape (n_words,)
        Ranks in order of frequency; all 0 without an order.
    n_ranks : int
        Number of words in that order.
    """

    n_ranks = 0

    def __init__(
        self,
        words: Sequence[str],
        units: np.ndarray,
        norms: np.ndarray,
        median_norm: float,
        ranks: np.ndarray,
        n_ranks: int,
    ):
        self.words, self.median_norm, self.n_ranks = words, median_norm, n_ranks
        self._units, self._norms, self._ranks = units, norms, ranks

    @lazy
    def vectors(self) -> np.ndarray:
        """The vectors at the lengths that they stand for."""
        return self._units * self._norms.astype(self._units.dtype)[:, None]

    def ranks(self, rows: np.ndarray) -> np.ndarray:
        """Ranks of words in order of frequency."""
        return self._ranks[rows]

    def norms(self, rows: np.ndarray) -> np.ndarray:
        """Lengths that vectors stand for."""
        return self._norms[rows]

    def unit_vectors(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors at unit length, not copied if all are asked for, and the lengths that they stand for."""
        units = self._units if len(rows) == len(self._units) else self._units[rows]
        return units, self._norms[rows]


class StaticTable:
    """A static model as a table of all words: the vector of a word is the sum of the vectors of its pieces."""

    contents: tuple[FileContent, ...] = ()

    def __init__(self, pieces: WordTable, split: Callable[[Sequence[str]], Iterable[list[Any]]]):
        self.pieces, self.split = pieces, split

    @property
    def width(self) -> int:
        """Number of features."""
        return self.pieces.width

    @property
    def precision(self) -> np.dtype:
        """Precision of what is computed from the vectors."""
        return self.pieces.precision

    @property
    def median_norm(self) -> float:
        """Median length of the vectors of pieces."""
        return self.pieces.median_norm

    def has(self, word: str) -> bool:
        """Whether a word has a vector."""
        return bool(self.vectors_of([word]).any())

    def vectors_of(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words: zero for a word whose pieces are all unknown."""

        def named(place: int) -> str:
            return f"the word {words[int(np.searchsorted(ends, place, side='right')) - 1]!r:.60}"

        pieces: list[Any] = []
        ends = [0]
        for own in self.split([word[:LONGEST_WORD] for word in words]):
            pieces += own
            ends.append(len(pieces))
        rows = places_of(pieces, self.pieces.rows, self.pieces.rows.keys_are, named)
        counts = sparse.csr_matrix((rows >= 0, np.maximum(rows, 0), ends), (len(words), len(self.pieces.words)))
        sums = counts.astype(self._summands.dtype) @ self._summands
        if np.isfinite(sums).all():
            return sums
        return counts.astype(np.float64) @ self._summands.astype(np.float64)  # of very large vectors

    @lazy
    def _summands(self) -> np.ndarray:
        """Vectors of pieces, in single precision or better."""
        return self.pieces.vectors.astype(self.precision, copy=False)


class SpellingTable:
    """The spelling of words as a table of all words, as wide as the tables that it stands beside."""

    contents: tuple[FileContent, ...] = ()
    precision = np.dtype(np.float32)

    def __init__(self, width: int):
        self.width = width

    def has(self, word: str) -> bool:
        """Whether a word has a vector."""
        return True

    def vectors_of(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, without regard to case."""
        return spelled([word.lower() for word in words], np.array([[-1.0], [1.0]]).repeat(self.width, axis=1))


class SideBySide:
    """Several tables as one, or a static model: the unit vectors of a word side by side.

    Attributes
    ----------
    tables : tuple of WordTable, StaticTable and SpellingTable
        The tables.
    leading : WordTable or StaticTable
        The table that gives words their lengths: the first static model or, without any, the first table.
    in_order : WordTable or None
        The first table of words, whose order gives their frequencies.
    kept : object
        The vectors of the largest set of words that was asked for, which is likely to be asked for again.
    """

    kept: Any = None

    def __init__(self, tables: Sequence[WordTable | StaticTable | SpellingTable]):
        self.tables = tuple(tables)
        candidates = [table for table in tables if not isinstance(table, SpellingTable)]
        self.leading = next((table for table in candidates if isinstance(table, StaticTable)), candidates[0])
        self.in_order = next((table for table in tables if isinstance(table, WordTable)), None)
        of_words = [(i, table) for i, table in enumerate(tables, 1) if isinstance(table, WordTable)]
        for (i, one), (j, other) in pairwise(of_words):
            if not any(other.has(word) for word in one.words):
                raise ValueError(f"Tables {i} and {j} of vectors have no word in common: they cannot be used as one.")

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(table.width for table in self.tables)

    @property
    def precision(self) -> np.dtype:
        """Precision of what is computed from the vectors."""
        return np.result_type(*(table.precision for table in self.tables))

    def features_of(self, kind: type) -> np.ndarray:
        """Which features are those of a kind of table."""
        return np.repeat([isinstance(table, kind) for table in self.tables], [table.width for table in self.tables])

    def has(self, word: str) -> bool:
        """Whether a word has a vector in a table."""
        return any(table.has(word) for table in self.tables)


Table = WordTable | SideBySide


def tables_in(table: Table) -> tuple[Any, ...]:
    """The tables that stand side by side, or a single one."""
    return table.tables if isinstance(table, SideBySide) else (table,)


def blocks_of(vectors: np.ndarray) -> Iterator[slice]:
    """Rows of a table that are looked at at a time."""
    step = max(1, NUMBERS // max(1, vectors.shape[1]))
    return (slice(start, start + step) for start in range(0, len(vectors), step))


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Length of each vector, in double precision."""
    vectors = vectors.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        found = np.linalg.norm(vectors, axis=1)
    extreme = np.isinf(found) | (found < _EXACT_LENGTH)
    if extreme.any():
        most = np.abs(vectors[extreme]).max(axis=1)
        found[extreme] = most * np.linalg.norm(vectors[extreme] / np.where(most > 0, most, 1)[:, None], axis=1)
    return found
