"""Vectors made for words, by a static model or by several tables side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import VECTORS, count_within
from sklearn_mcsg.text._rows import LookUp, Rows, rows_of
from sklearn_mcsg.text.tables import SideBySide, SpellingTable, StaticTable, WordTable, lengths

_LEAST_LENGTH = 0.1  # of the median: shorter vectors count as if they had this length


@dataclass(frozen=True, eq=False)
class MadeWords:
    """Words that vectors were made for."""

    how: LookUp
    words: list[str]
    units: np.ndarray
    norms: np.ndarray  # lengths in the leading table
    ranks: np.ndarray  # in order of frequency
    has_vector: np.ndarray
    lacking: np.ndarray  # whether the table of words has no vector

    @classmethod
    def of(cls, words: list[str], table: SideBySide, how: LookUp, text_of: Callable[[int], int]) -> MadeWords:
        """Vectors of words: those that were kept, or new ones; those of the largest set of words are kept."""
        kept = table.kept
        if kept is not None and kept.how == how and (found := kept.only(words)) is not None:
            return found
        made = cls._made(words, table, how, text_of)
        if kept is None or len(words) >= len(kept.words):
            table.kept = made
        return made

    @classmethod
    def _made(cls, words: list[str], table: SideBySide, how: LookUp, text_of: Callable[[int], int]) -> MadeWords:
        sides = [_side(words, part, how, text_of) for part in table.tables]
        units, norms = _side_by_side(sides, len(words), table)
        has_vector = np.asarray(norms.any(axis=0))
        leading = norms[table.tables.index(table.leading)]
        median = table.leading.median_norm if how.by_length or (has_vector & (leading == 0)).any() else 1.0
        leading = np.where(leading > 0, leading, median)
        if isinstance(table.leading, WordTable) and how.by_length:
            units[:, table.features_of(SpellingTable)] /= np.maximum(leading / median, _LEAST_LENGTH)[:, None]
        ranks, lacking = np.zeros(len(words)), ~has_vector
        for side in sides:
            if isinstance(side, _KnownWords) and side.table is table.in_order:
                ranks, lacking = side.ranks, side.lacking
        return cls(how, words, units, leading, ranks, has_vector, lacking)

    @lazy
    def places(self) -> dict[str, int]:
        """Place of each word."""
        return dict(zip(self.words, range(len(self.words)), strict=True))

    def only(self, words: list[str]) -> MadeWords | None:
        """Some of the words; None unless all of them are known."""
        if words == self.words:
            return self
        rows = np.array([self.places.get(word, -1) for word in words], dtype=np.intp)
        if (rows < 0).any():
            return None
        arrays = self.units, self.norms, self.ranks, self.has_vector, self.lacking
        return MadeWords(self.how, words, *(array[rows] for array in arrays))


@dataclass(frozen=True, eq=False)
class _AnyWords:
    """Words in a table that has vectors of all words."""

    table: StaticTable | SpellingTable
    words: list[str]

    def vectors(self, batch: slice) -> np.ndarray:
        """Vectors of some words."""
        return self.table.vectors_of(self.words[batch])


@dataclass(frozen=True, eq=False)
class _KnownWords:
    """Words in a table of words. The vector of an unknown word is the sum of those of its parts."""

    table: WordTable
    known: Rows

    @property
    def lacking(self) -> np.ndarray:
        """Which words have no vector of their own."""
        return self.known.own < 0

    @property
    def ranks(self) -> np.ndarray:
        """Ranks in order of frequency: that of the rarest part, and the last for words without parts."""
        ranks = np.full(len(self.known.own), self.table.n_ranks - 1)
        filled = np.diff(self.known.offsets) > 0
        ranks[filled] = np.maximum.reduceat(self.table.ranks(self.known.rows), self.known.offsets[:-1][filled])
        return ranks

    def vectors(self, batch: slice) -> np.ndarray:
        """Vectors of some words; those of spelled parts are of median length."""
        offsets = self.known.offsets[batch.start : batch.stop + 1]
        rows = self.known.rows[offsets[0] : offsets[-1]]
        n_words = len(self.table.words)
        is_spelled = rows >= n_words
        vectors = np.empty((len(rows), self.table.width), self.table.precision)
        vectors[~is_spelled] = self.table.vectors[rows[~is_spelled]]
        if is_spelled.any():
            spelled = [self.known.spelled[row - n_words] for row in rows[is_spelled]]
            vectors[is_spelled] = self.table.spelled(spelled, unit_norm=True) * self.table.median_norm
        ones, every = np.ones(len(rows), vectors.dtype), np.arange(len(rows))
        parts = sparse.csr_matrix((ones, every, offsets - offsets[0]), (len(offsets) - 1, len(rows)))
        sums = parts @ vectors
        return sums if np.isfinite(sums).all() else parts.astype(np.float64) @ vectors.astype(np.float64)


def _side(words: list[str], table: Any, how: LookUp, text_of: Callable[[int], int]) -> _AnyWords | _KnownWords:
    """Words in one of several tables."""
    if not isinstance(table, WordTable):
        return _AnyWords(table, words)
    asked = [word.lower() for word in words] if how.lowercase else words
    return _KnownWords(table, rows_of(asked, np.ones(len(words), dtype=bool), table, how.unknown, text_of))


def _side_by_side(
    sides: list[_AnyWords | _KnownWords], n_words: int, table: SideBySide
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of words, side by side and scaled to unit length again, and their lengths in each table."""
    units = np.empty((n_words, table.width), table.precision)
    norms = np.zeros((len(sides), n_words))
    step = count_within(24 * table.width, VECTORS)
    for start in range(0, n_words, step):
        batch = slice(start, min(start + step, n_words))
        parts = []
        for side, norm in zip(sides, norms, strict=True):
            vectors = side.vectors(batch)
            norm[batch] = lengths(vectors)
            parts.append(vectors / np.where(norm[batch] > 0, norm[batch], 1)[:, None])
        n_sides = np.maximum(np.count_nonzero(norms[:, batch], axis=0), 1)
        units[batch] = np.hstack(parts) / np.sqrt(n_sides)[:, None]
    return units, norms
