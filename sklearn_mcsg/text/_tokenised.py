"""Texts, split into tokens and numbered once, and their tokens as rows of a table of word vectors.

    texts --tokenizer--> tokens --numbers in order of first appearance--> distinct tokens, one number per token
    distinct tokens --table--> rows, and tokens without a row --spelling--> rows of their parts

What depends on a token alone, such as its row in a table, is derived once per distinct token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np

from sklearn_mcsg._memory import TOKENS
from sklearn_mcsg.groups import Rows, offsets_of
from sklearn_mcsg.text._spelling import parts_of
from sklearn_mcsg.text._tokens import characters_of, pieces, tokenize
from sklearn_mcsg.text.tables import WordTable


class Tokenisation(NamedTuple):
    """How texts are split into tokens."""

    tokenizer: Callable[[str], Iterable[Any]]
    lowercase: bool = False  # whether texts are converted to lower case first
    divisible: bool = False  # whether long texts may be split in pieces


def into_words(tokenizer: Callable[[str], Iterable[Any]] | None, lowercase: bool) -> Tokenisation:
    """Split texts by a given tokenizer, which sees them whole, or by `tokenize`."""
    if tokenizer is None:
        return Tokenisation(tokenize, lowercase, divisible=True)
    return Tokenisation(tokenizer, lowercase)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of texts.

    Attributes
    ----------
    distinct : list
        The distinct tokens, in order of first appearance.
    numbers : ndarray of int
        Number of each token, text after text: its place among the distinct ones.
    offsets : ndarray of int
        Where each text begins among them, and the end of the last.
    looked_up : list of TokenRows
        Rows of the distinct tokens in tables, as far as they are known.
    """

    distinct: list[Any]
    numbers: np.ndarray
    offsets: np.ndarray
    looked_up: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[Any], how: Tokenisation) -> Tokens:
        """Split texts and number their tokens."""
        places = Places()
        batches = [np.empty(0, dtype=np.intc)]
        ends = [0]
        before = 0
        tokens: list[Any] = []
        for i, text in enumerate(texts):
            _check_text(text, i)
            for piece in pieces(text) if how.divisible else (text,):
                characters = characters_of(piece)
                produced = how.tokenizer(characters.lower() if how.lowercase else characters)
                tokens += produced if isinstance(produced, list) else _listed(produced, i)
                if len(tokens) >= TOKENS:
                    batches.append(_places_of(tokens, places, "strings", partial(_text_at, ends, before)))
                    before += len(tokens)
                    tokens = []
            ends.append(before + len(tokens))
        batches.append(_places_of(tokens, places, "strings", partial(_text_at, ends, before)))
        return cls(list(places), np.concatenate(batches), np.array(ends, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, texts: np.ndarray) -> Tokens:
        """The tokens of some texts, given by their indices, numbered anew unless they are all texts."""
        if np.array_equal(texts, np.arange(len(self))):
            return self
        items, offsets = items_of(self.offsets, texts)
        used, numbers = renumbered(self.numbers[items])
        rows = [found[used] for found in self.looked_up]
        return Tokens([self.distinct[i] for i in used], numbers, offsets, rows)


class TokenisedTexts(Sequence[str]):
    """Texts whose tokens are derived once, whoever asks for them.

    Parameters
    ----------
    texts : list of str
        The texts.

    Notes
    -----
    Given `TokenisedTexts`, an `EmbeddingVectorizer` does not warn about texts without words: its caller decides what
    becomes of them.

    Examples
    --------
    >>> from sklearn_mcsg.text import TokenisedTexts
    >>> from sklearn_mcsg.text._tokenised import into_words
    >>> texts = TokenisedTexts.of(["The cat, the dog", "A dog"])
    >>> tokens = texts.tokens(into_words(None, lowercase=True))
    >>> tokens.distinct, tokens.numbers.tolist(), tokens.offsets.tolist()
    (['the', 'cat', ',', 'dog', 'a'], [0, 1, 2, 0, 3, 4, 3], [0, 5, 7])
    >>> texts[[1]].tokens(into_words(None, lowercase=True)).distinct
    ['a', 'dog']
    """

    def __init__(self, texts: list[str], known: Iterable[tuple[Tokenisation, Tokens]] = ()):
        self.texts = texts
        self._known = list(known)

    @classmethod
    def of(cls, X: Iterable[str]) -> TokenisedTexts:
        """Read a collection of texts, unless that has been done; raise unless all of them are strings."""
        if isinstance(X, TokenisedTexts):
            return X
        texts = list(check_texts(X))
        for i, text in enumerate(texts):
            _check_text(text, i)
        return cls(texts)

    @classmethod
    def of_tokens(cls, tokens: Tokens, numbers: np.ndarray, how: Tokenisation) -> TokenisedTexts:
        """Make each of some distinct tokens a text of its own, which would not be split any further."""
        distinct = [tokens.distinct[i] for i in numbers]
        every = np.arange(len(distinct) + 1, dtype=np.intc)
        rows = [found[numbers] for found in tokens.looked_up]
        return cls(distinct, [(how, Tokens(distinct, every[:-1], every, rows))])

    def tokens(self, how: Tokenisation) -> Tokens:
        """The tokens of all texts."""
        for known, tokens in self._known:
            if known == how:
                return tokens
        tokens = Tokens.of(self.texts, how)
        self._known.append((how, tokens))
        return tokens

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    @overload
    def __getitem__(self, key: int) -> str: ...

    @overload
    def __getitem__(self, key: Rows) -> TokenisedTexts: ...

    def __getitem__(self, key: Any) -> str | TokenisedTexts:
        """One text for an integer; `TokenisedTexts` for a slice, integers or a mask, with tokens that are known."""
        if isinstance(key, int):
            return self.texts[key]
        picked = np.arange(len(self))[key]
        return TokenisedTexts([self.texts[i] for i in picked], [(how, tokens[picked]) for how, tokens in self._known])


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
        n_words = len(table.words)
        missing = np.flatnonzero(own < 0).tolist()
        spelled = Places()
        parts: list[list[int]] = []
        for number in missing:
            words = [] if unknown == "ignore" else parts_of(tokens.distinct[number])
            found = [(word, table.rows[word]) for word in words]
            lacking = [word for word, row in found if row < 0]
            if unknown == "error" and lacking:
                raise ValueError(
                    f"Text {_first_text(tokens, number)} has the word {lacking[0]!r}, which has no vector: choose "
                    f"vectors that have it, or unknown='spelling' or 'ignore'."
                )
            parts.append([row if row >= 0 else n_words + spelled[word.lower()] for word, row in found])
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
    n_unknown = np.count_nonzero((known.own < 0)[tokens.numbers])
    rows, offsets = known.own[tokens.numbers], tokens.offsets
    if n_unknown:
        rows, offsets = expanded(tokens, known.rows, known.offsets)
    if pad_token is not None:
        rows = np.insert(rows, offsets[1:], table.rows[pad_token])
        offsets = offsets + np.arange(len(offsets))
    return Found(rows, offsets, n_unknown / max(1, len(tokens.numbers)), known.spelled)


def expanded(tokens: Tokens, items: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace each token by its items, some tokens at a time.

    Parameters
    ----------
    tokens : Tokens
        Tokens of texts.
    items : ndarray
        Items of the distinct tokens, one token after the other.
    offsets : ndarray of int
        Where those of each distinct token begin, and the end of the last.

    Returns
    -------
    items : ndarray
        Items of all tokens, text after text.
    offsets : ndarray of int
        Where each text begins among them, and the end of the last.
    """
    batches = [items[:0]]
    starts = np.zeros_like(tokens.offsets)
    before = 0
    for start in range(0, len(tokens.numbers), TOKENS):
        positions, ends = items_of(offsets, tokens.numbers[start : start + TOKENS])
        batches.append(items[positions])
        ended = slice(*np.searchsorted(tokens.offsets, [start, start + TOKENS], side="right"))
        starts[ended] = before + ends[tokens.offsets[ended] - start]
        before += len(positions)
    return np.concatenate(batches), starts


def _known_rows(tokens: Tokens, table: WordTable, unknown: str) -> TokenRows:
    for known in tokens.looked_up:
        if known.table is table and known.unknown == unknown:
            return known
    rows = TokenRows.of(tokens, table, unknown)
    tokens.looked_up.append(rows)
    return rows


def _own_rows(tokens: Tokens, table: WordTable) -> np.ndarray:
    """Row of each distinct token, or -1."""
    return _places_of(tokens.distinct, table.rows, table.rows.keys_are, partial(_first_text, tokens))


def _first_text(tokens: Tokens, number: int) -> int:
    """The first text that has a token, given by its number."""
    return _text_at(tokens.offsets, 0, int(np.argmax(tokens.numbers == number)))


def check_texts(X: Any) -> Iterable[Any]:
    """Raise unless X is a collection; that its items are texts is checked one by one."""
    if isinstance(X, str | bytes):
        raise ValueError("Iterable over texts expected, string object received: put a single text into a list.")
    if isinstance(X, Mapping) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        raise ValueError(f"A list or column of texts is expected, got {type(X).__name__}.")
    return X


def items_of(offsets: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the items of some parts, one part after the other, and the offsets of these parts."""
    sizes = np.diff(offsets)[parts]
    starts = offsets_of(sizes)
    return np.repeat(offsets[parts] - starts[:-1], sizes) + np.arange(starts[-1]), starts


def renumbered(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers in order of first appearance, and the place of each number among them."""
    distinct, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intc)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[places]


class Places(dict):
    """Places of tokens in order of first appearance."""

    def __missing__(self, token: Any) -> int:
        place = self[token] = len(self)
        return place


def _places_of(tokens: list[Any], places: dict, keys: str, text_of: Callable[[int], int]) -> np.ndarray:
    """The place of each token; if one has none, raise an error that names its text, given by its position."""
    try:
        return np.fromiter(map(places.__getitem__, tokens), dtype=np.intc, count=len(tokens))
    except TypeError as error:
        i = next(i for i, token in enumerate(tokens) if not _has_place(places, token))
        message = f"The tokenizer must return {keys}; for text {text_of(i)}, got {tokens[i]!r:.60}."
        raise TypeError(message) from error


def _has_place(places: dict, token: Any) -> bool:
    try:
        places[token]
    except TypeError:
        return False
    return True


def _text_at(offsets: Any, before: int, position: int) -> int:
    """The text that has a token, given by its position after `before` others."""
    return int(np.searchsorted(offsets, before + position, side="right")) - 1


def _check_text(text: Any, i: int) -> None:
    if not isinstance(text, str):
        raise TypeError(f"Text {i} is not a string but {type(text).__name__}: {text!r:.60}.")


def _listed(tokens: Any, i: int) -> list[Any]:
    """The tokens of text i as a list."""
    if isinstance(tokens, str | bytes | Mapping) or not isinstance(tokens, Iterable):
        raise TypeError(f"The tokenizer must return strings; for text {i}, got {type(tokens).__name__}, not a list.")
    return tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
