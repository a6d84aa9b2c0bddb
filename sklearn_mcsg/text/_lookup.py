"""Tokens of texts as rows of a table of word vectors.

distinct tokens --table--> rows, and tokens without a row --spelling--> rows of their parts
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text._spelling import parts_of
from sklearn_mcsg.text._tokenised import Tokens, items_of, renumbered
from sklearn_mcsg.text.tables import WordTable

__all__ = ["Found", "TokenRows", "look_up"]


@dataclass(frozen=True, eq=False)
class Found:
    """The words of texts: rows of a table, and of further words that it lacks."""

    rows: np.ndarray  # of all words, text after text; those that follow the table's are of the spelled words
    offsets: np.ndarray  # of the texts
    oov_rate: float  # share of the tokens that have no vector in the table
    spelled: list[str]

    def names(self, table: WordTable, rows: np.ndarray) -> np.ndarray:
        """The words of some rows."""
        n = len(table.words)
        names = np.empty(len(rows), dtype=object)
        names[:] = [table.words[row] if row < n else self.spelled[row - n] for row in rows.tolist()]
        return names


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of distinct tokens: their own, or those of the words that they are made of."""

    table: WordTable
    unknown: str
    own: np.ndarray  # row of each token, or -1
    rows: np.ndarray  # of the words of all tokens; those that follow the table's are of the spelled words
    offsets: np.ndarray  # of the tokens
    spelled: list[str]

    @classmethod
    def of(cls, tokens: Tokens, table: WordTable, unknown: str) -> TokenRows:
        """Look up tokens in a table.

        Parameters
        ----------
        tokens : Tokens
            Tokens of texts.
        table : WordTable
            The word vectors.
        unknown : {"spelling", "ignore", "error"}
            What becomes of tokens without a row: rows of their parts, or rows that follow the table's; nothing; an
            error.

        Returns
        -------
        rows : TokenRows
        """
        own = _own_rows(tokens, table)
        missing = np.flatnonzero(own < 0).tolist()
        spelled: dict[str, int] = {}
        parts: list[list[int]] = []
        for number in missing:
            words = [] if unknown == "ignore" else parts_of(tokens.distinct[number])
            rows = [table.rows[word] for word in words]
            if unknown == "error" and min(rows, default=0) < 0:
                raise ValueError(
                    f"Text {tokens.first_text(number)} has the word {words[rows.index(-1)]!r}, which has no vector: "
                    f"choose vectors that have it, or unknown='spelling' or 'ignore'."
                )
            parts.append(
                [
                    row if row >= 0 else len(table.words) + spelled.setdefault(word.lower(), len(spelled))
                    for word, row in zip(words, rows, strict=True)
                ]
            )
        sizes = np.ones(len(own), dtype=np.int64)
        sizes[missing] = [len(part) for part in parts]
        every = np.repeat(own, sizes)
        every[every < 0] = list(chain.from_iterable(parts))
        return cls(table, unknown, own, every, offsets_of(sizes), list(spelled))

    def __getitem__(self, tokens: np.ndarray) -> TokenRows:
        """The rows of some of the tokens."""
        items, offsets = items_of(self.offsets, tokens)
        rows = self.rows[items]
        is_spelled = rows >= len(self.table.words)
        used, places = renumbered(rows[is_spelled] - len(self.table.words))
        rows[is_spelled] = len(self.table.words) + places
        spelled = [self.spelled[i] for i in used]
        return TokenRows(self.table, self.unknown, self.own[tokens], rows, offsets, spelled)


def look_up(tokens: Tokens, table: WordTable, unknown: str, pad_token: str | None = None) -> Found:
    """Look up the tokens of texts in a table, unless that has been done.

    Parameters
    ----------
    tokens : Tokens
        The tokens of the texts.
    table : WordTable
        The word vectors.
    unknown : {"spelling", "ignore", "error"}
        What becomes of tokens without a row.
    pad_token : str, default=None
        A word of the table that is added to every text.

    Returns
    -------
    found : Found
    """
    known = _known_rows(tokens, table, unknown)
    rows, offsets = known.own[tokens.numbers], tokens.offsets
    lacking = rows < 0
    n_unknown = np.count_nonzero(lacking)
    if n_unknown:
        items, _ = items_of(known.offsets, tokens.numbers[lacking])
        counts = np.diff(known.offsets)[tokens.numbers]
        offsets = offsets_of(counts)[offsets]
        rows = np.repeat(rows, counts)
        rows[rows < 0] = known.rows[items]
    if pad_token is not None:
        rows = np.insert(rows, offsets[1:], table.rows[pad_token])
        offsets = offsets + np.arange(len(offsets))
    return Found(rows, offsets, n_unknown / max(1, len(tokens.numbers)), known.spelled)


def _known_rows(tokens: Tokens, table: WordTable, unknown: str) -> TokenRows:
    for known in tokens.looked_up:
        if known.table is table and known.unknown == unknown:
            return known
    rows = TokenRows.of(tokens, table, unknown)
    tokens.looked_up.append(rows)
    return rows


def _own_rows(tokens: Tokens, table: WordTable) -> np.ndarray:
    """Row of each distinct token, or -1."""
    rows = table.rows
    try:
        return np.fromiter(map(rows.__getitem__, tokens.distinct), dtype=np.intc, count=len(tokens.distinct))
    except TypeError as error:
        number = next(i for i, token in enumerate(tokens.distinct) if not _has_place(rows, token))
        token = tokens.distinct[number]
        raise TypeError(
            f"The tokenizer must return {rows.keys_are}; for text {tokens.first_text(number)}, got {token!r:.60}."
        ) from error


def _has_place(rows: Any, token: Any) -> bool:
    """Whether a token can be looked up."""
    try:
        rows[token]
    except TypeError:
        return False
    return True
