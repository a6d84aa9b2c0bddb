"""Tokens of texts as rows of a table of word vectors.

    texts --tokenizer--> batches of tokens --table--> rows, and tokens without a row --spelling--> rows of their parts

Tokens are looked up many at a time, and only those without a row are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text.spelling import parts_of
from sklearn_mcsg.text.tables import WordTable
from sklearn_mcsg.text.tokens import pieces

__all__ = ["Found", "Lookup"]

_BATCH = 2**16  # tokens that are looked up at a time


@dataclass(frozen=True)
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


class Lookup:
    """Rows of the texts read so far.

    Parameters
    ----------
    table : WordTable
        The word vectors.
    unknown : {"spelling", "ignore", "error"}
        What becomes of tokens without a row: rows of their parts, or rows that follow the table's; nothing; an error.
    """

    def __init__(self, table: WordTable, unknown: str):
        self.table, self.unknown = table, unknown
        self.spelled: dict[str, int] = {}  # numbers of the words without a row
        self.parts: dict[str, list[int]] = {}  # rows of the parts of tokens without a row
        self.rows = [np.empty(0, dtype=np.intc)]
        self.ends = [np.zeros(1, dtype=np.int64)]
        self.n_texts = self.n_rows = self.n_tokens = self.n_unknown = 0

    def read(
        self,
        texts: Iterable[Any],
        tokenizer: Callable[[str], Iterable[str]],
        *,
        lowercase: bool,
        divisible: bool,
        pad_token: str | None,
    ) -> Found:
        """Look up the tokens of texts.

        Parameters
        ----------
        texts : iterable of str
            The texts.
        tokenizer : callable
            Splits a text into tokens.
        lowercase : bool
            Whether to convert texts to lower case first.
        divisible : bool
            Whether long texts may be tokenised in pieces.
        pad_token : str or None
            A word of the table that is added to every text.

        Returns
        -------
        found : Found
        """
        tokens: list[str] = []
        ends: list[int] = []
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"Text {i} is not a string but {type(text).__name__}: {text!r:.60}.")
            for piece in pieces(text) if divisible else (text,):
                produced = tokenizer(piece.lower() if lowercase else piece)
                tokens += produced if isinstance(produced, list) else _listed(produced, i)
                if len(tokens) >= _BATCH:
                    self._add(tokens, ends)
                    tokens, ends = [], []
            if pad_token is not None:
                tokens.append(pad_token)
                self.n_tokens -= 1
            ends.append(len(tokens))
        self._add(tokens, ends)
        if self.n_texts == 0:
            raise ValueError("There are no texts: at least one is required (0 sample(s) found).")
        rate = self.n_unknown / max(1, self.n_tokens)
        return Found(np.concatenate(self.rows), np.concatenate(self.ends), rate, list(self.spelled))

    def _add(self, tokens: list[str], ends: list[int]) -> None:
        """Look up a batch of tokens; `ends` are the positions in it at which texts end."""
        try:
            rows = np.fromiter(map(self.table.rows.__getitem__, tokens), dtype=np.intc, count=len(tokens))
        except TypeError as error:
            position = next(i for i, token in enumerate(tokens) if self._is_wrong(token))
            text, token = self._text_of(position, ends), tokens[position]
            raise TypeError(
                f"The tokenizer must return {self.table.rows.keys_are}; for text {text}, got {token!r:.60}."
            ) from error
        positions = np.array(ends, dtype=np.int64)
        missing = np.flatnonzero(rows < 0).tolist()
        self.n_tokens += len(tokens)
        self.n_unknown += len(missing)
        if missing:
            parts = [self._rows_of_parts(tokens[i], i, ends) for i in missing]
            counts = np.ones(len(rows), dtype=np.int64)
            counts[missing] = [len(part) for part in parts]
            rows, positions = np.repeat(rows, counts), offsets_of(counts)[positions]
            rows[rows < 0] = list(chain.from_iterable(parts))
        self.ends.append(self.n_rows + positions)
        self.rows.append(rows)
        self.n_texts += len(ends)
        self.n_rows += len(rows)

    def _rows_of_parts(self, token: str, position: int, ends: list[int]) -> list[int]:
        """Rows of the words that a token without a row is made of."""
        if self.unknown == "ignore":
            return []
        if token not in self.parts:
            words = parts_of(token)
            rows = [self.table.rows[word] for word in words]
            if self.unknown == "error" and min(rows, default=0) < 0:
                text, word = self._text_of(position, ends), words[rows.index(-1)]
                raise ValueError(
                    f"Text {text} has the word {word!r}, which has no vector: choose vectors that have it, or "
                    f"unknown='spelling' or 'ignore'."
                )
            self.parts[token] = [
                row if row >= 0 else len(self.table.words) + self.spelled.setdefault(word.lower(), len(self.spelled))
                for word, row in zip(words, rows, strict=True)
            ]
        return self.parts[token]

    def _is_wrong(self, token: Any) -> bool:
        """Whether a token cannot be looked up."""
        try:
            self.table.rows[token]
        except TypeError:
            return True
        return False

    def _text_of(self, position: int, ends: list[int]) -> int:
        """The text that holds a token of a batch."""
        return self.n_texts + int(np.searchsorted(ends, position, side="right"))


def _listed(tokens: Any, i: int) -> list[Any]:
    """The tokens of text i as a list."""
    if isinstance(tokens, str | bytes | Mapping) or not isinstance(tokens, Iterable):
        raise TypeError(f"The tokenizer must return strings; for text {i}, got {type(tokens).__name__}, not a list.")
    return tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
