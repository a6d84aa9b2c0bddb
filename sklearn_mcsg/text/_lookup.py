"""Tokens as rows of a table of word vectors.

    distinct tokens --WordTable--> rows, and tokens without a row --spelling--> rows of their parts
    distinct tokens --SideBySide--> a table that is made for them, with one row per token

Punctuation has no row unless it is asked for.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text._making import MadeWords
from sklearn_mcsg.text._rows import LookUp, rows_of
from sklearn_mcsg.text._tokenised import Tokens, expanded, items_of, renumbered
from sklearn_mcsg.text._tokens import is_word
from sklearn_mcsg.text.tables import MadeTable, SideBySide, Table, WordTable, tables_in


@dataclass(frozen=True, eq=False)
class Found:
    """The words of texts: rows of a table, and of further words that it lacks."""

    table: WordTable
    rows: np.ndarray  # of all words, text after text; those that follow the table's are of the spelled words
    offsets: np.ndarray  # of the texts
    oov_rate: float  # share of the words that have no vector in the table
    spelled: list[str]

    def names(self, rows: np.ndarray) -> np.ndarray:
        """The words of some rows."""
        n = len(self.table.words)
        names = np.empty(len(rows), dtype=object)
        names[:] = [self.table.words[row] if row < n else self.spelled[row - n] for row in rows.tolist()]
        return names


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of distinct tokens: their own, or those of the words that they are made of."""

    sources: tuple[Any, ...]  # the tables that were asked
    how: LookUp
    table: WordTable  # that has the rows
    own: np.ndarray  # row of each token, or -1
    counts: np.ndarray  # whether a token is a word
    lacking: np.ndarray  # whether a token is a word without a vector in the table of words
    rows: np.ndarray  # of the words of all tokens; those that follow the table's are of the spelled words
    offsets: np.ndarray  # of the tokens
    spelled: list[str]

    @classmethod
    def of(cls, tokens: Tokens, table: Table, how: LookUp) -> TokenRows:
        """Look up tokens in a table."""
        for number, token in enumerate(tokens.distinct):
            if not isinstance(token, str):
                text = tokens.first_text(number)
                raise TypeError(f"The tokenizer must return strings; for text {text}, got {token!r:.60}.")
        counts = np.array([how.punctuation or is_word(token) for token in tokens.distinct], dtype=bool)
        if isinstance(table, WordTable):
            own, rows, offsets, spelled = rows_of(tokens.distinct, counts, table, how.unknown, tokens.first_text)
            return cls((table,), how, table, own, counts, counts & (own < 0), rows, offsets, spelled)
        made, own, lacking = _made(tokens, counts, table, how)
        has_row = own >= 0
        offsets = offsets_of(has_row.astype(np.int64))
        return cls(tables_in(table), how, made, own, counts, lacking, own[has_row], offsets, [])

    def __getitem__(self, tokens: np.ndarray) -> TokenRows:
        """The rows of some of the tokens."""
        items, offsets = items_of(self.offsets, tokens)
        rows = self.rows[items]
        is_spelled = rows >= len(self.table.words)
        used, places = renumbered(rows[is_spelled] - len(self.table.words))
        rows[is_spelled] = len(self.table.words) + places
        spelled = [self.spelled[i] for i in used]
        of_tokens = self.own[tokens], self.counts[tokens], self.lacking[tokens]
        return TokenRows(self.sources, self.how, self.table, *of_tokens, rows, offsets, spelled)


def look_up(tokens: Tokens, table: Table, how: LookUp) -> Found:
    """Look up the tokens of texts in a table, unless that has been done.

    Parameters
    ----------
    tokens : Tokens
        The tokens of the texts.
    table : WordTable, StaticTable or SideBySide
        The word vectors.
    how : LookUp
        What becomes of unknown words, case, punctuation and padding.

    Returns
    -------
    found : Found
    """
    known = _known_rows(tokens, table, how)
    rows, offsets = known.own[tokens.numbers], tokens.offsets
    if (rows < 0).any():
        rows, offsets = expanded(tokens, known.rows, known.offsets)
    if how.pad_token is not None:
        rows = np.insert(rows, offsets[1:], known.table.rows[how.pad_token])
        offsets = offsets + np.arange(len(offsets))
    n_lacking, n_words = (int(np.count_nonzero(mask[tokens.numbers])) for mask in (known.lacking, known.counts))
    return Found(known.table, rows, offsets, n_lacking / max(1, n_words), known.spelled)


def _known_rows(tokens: Tokens, table: Table, how: LookUp) -> TokenRows:
    sources = tables_in(table)
    for known in tokens.looked_up:
        same = len(known.sources) == len(sources) and all(map(operator.is_, known.sources, sources))
        if same and known.how == how:
            return known
    rows = TokenRows.of(tokens, table, how)
    tokens.looked_up.append(rows)
    return rows


def _made(
    tokens: Tokens, counts: np.ndarray, table: SideBySide, how: LookUp
) -> tuple[MadeTable, np.ndarray, np.ndarray]:
    """A table of the tokens that count, and of the padding; row of each token, or -1; and which words are unknown."""
    numbers = np.flatnonzero(counts)
    words = [tokens.distinct[number] for number in numbers]
    padding = [] if how.pad_token is None else [how.pad_token]
    made = MadeWords.of(words + padding, table, how, lambda i: tokens.first_text(numbers[i]) if i < len(numbers) else 0)
    own = np.full(len(counts), -1, dtype=np.intc)
    has_vector = made.has_vector[: len(words)]
    own[numbers[has_vector]] = np.flatnonzero(has_vector)
    lacking = np.zeros(len(counts), dtype=bool)
    lacking[numbers] = made.lacking[: len(words)]
    n_ranks = 0 if table.in_order is None else table.in_order.n_ranks
    median = table.leading.median_norm if how.by_length else 1.0
    return MadeTable(made.words, made.units, made.norms, median, made.ranks, n_ranks), own, lacking
