"""Texts, split into tokens and numbered once.

    texts --tokenizer--> tokens --numbers in order of first appearance--> distinct tokens, one number per token

What depends on a token alone, such as its lower case or its row in a table, is derived once per distinct token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np

from sklearn_mcsg._memory import TOKENS
from sklearn_mcsg.groups import Rows, offsets_of
from sklearn_mcsg.groups.checks import is_missing
from sklearn_mcsg.text._tokens import characters_of, pieces, tokenize


class Tokenisation(NamedTuple):
    """How texts are split into tokens."""

    tokenizer: Callable[[str], Iterable[Any]]
    lowercase: bool = False  # whether tokens are converted to lower case; a given tokenizer sees texts in lower case
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
        Rows of the distinct tokens in tables of word vectors, as far as they are known.
    """

    distinct: list[Any]
    numbers: np.ndarray
    offsets: np.ndarray
    looked_up: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[Any], how: Tokenisation) -> Tokens:
        """Split texts and number their tokens."""
        if _is_lowered(how):
            return cls.of(texts, _as_written(how)).lowered()
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
                tokens += produced if isinstance(produced, list) else listed(produced, f"text {i}")
                if len(tokens) >= TOKENS:
                    batches.append(places_of(tokens, places, "strings", partial(_name_at, ends, before)))
                    before += len(tokens)
                    tokens = []
            ends.append(before + len(tokens))
        batches.append(places_of(tokens, places, "strings", partial(_name_at, ends, before)))
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

    @property
    def owners(self) -> np.ndarray:
        """The text of each token."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def lowered(self) -> Tokens:
        """The tokens in lower case."""
        places = Places()
        numbers = np.array([places[token.lower()] for token in self.distinct], dtype=np.intc)
        return Tokens(list(places), numbers[self.numbers], self.offsets)

    def first_text(self, number: int) -> int:
        """The first text that has a token, given by its number."""
        return _text_at(self.offsets, 0, int(np.argmax(self.numbers == number)))


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

    def tokens(self, how: Tokenisation) -> Tokens:
        """The tokens of all texts."""
        for known, tokens in self._known:
            if known == how:
                return tokens
        tokens = self.tokens(_as_written(how)).lowered() if _is_lowered(how) else Tokens.of(self.texts, how)
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
        if isinstance(key, int | np.integer):
            return self.texts[key]
        picked = np.arange(len(self))[key]
        return TokenisedTexts([self.texts[i] for i in picked], [(how, tokens[picked]) for how, tokens in self._known])


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


def _is_lowered(how: Tokenisation) -> bool:
    """Whether tokens are converted to lower case after they have been found in texts as they are written."""
    return how.lowercase and how.tokenizer is tokenize


def _as_written(how: Tokenisation) -> Tokenisation:
    return Tokenisation(how.tokenizer, divisible=how.divisible)


def check_texts(X: Any) -> Iterable[Any]:
    """Raise unless X is a collection; that its items are texts is checked one by one."""
    if isinstance(X, str | bytes):
        raise ValueError("Iterable over texts expected, string object received: put a single text into a list.")
    if isinstance(X, Mapping) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        advice = ": pass one of its columns" if hasattr(X, "columns") else ""
        raise ValueError(f"A list or column of texts is expected, got {type(X).__name__}{advice}.")
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


def places_of(tokens: list[Any], places: dict, keys: str, where: Callable[[int], str]) -> np.ndarray:
    """The place of each token; if one has none, raise an error that says where it is, given its position."""
    try:
        return np.fromiter(map(places.__getitem__, tokens), dtype=np.intc, count=len(tokens))
    except TypeError as error:
        i = next(i for i, token in enumerate(tokens) if not _has_place(places, token))
        message = f"The tokenizer must return {keys}; for {where(i)}, got {tokens[i]!r:.60}."
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


def _name_at(offsets: Any, before: int, position: int) -> str:
    return f"text {_text_at(offsets, before, position)}"


def _check_text(text: Any, i: int) -> None:
    if not isinstance(text, str):
        raise TypeError(f"Text {i} is not a string but {type(text).__name__}: {text!r:.60}. {_as_text(text)}.")


def _as_text(value: Any) -> str:
    """How to make a text of a value that is none."""
    if is_missing(value):
        return "Leave missing texts out, or replace them by ''"
    if isinstance(value, bytes):
        return "Decode it: text.decode('utf-8')"
    if isinstance(value, list | tuple) or (hasattr(value, "__array__") and np.ndim(value)):
        if isinstance(next(iter(value), ""), str):
            return "Join its words: ' '.join(words)"
        return "Groups of vectors need no texts: use ModelComparisonSimilarity, GroupEmbedding or GroupClustering"
    return "Convert it with str(), or leave it out"


def listed(tokens: Any, where: str) -> list[Any]:
    """What a tokenizer returned, as a list; `where` says for which text or word."""
    if isinstance(tokens, str | bytes | Mapping) or not isinstance(tokens, Iterable):
        raise TypeError(f"The tokenizer must return strings; for {where}, got {type(tokens).__name__}, not a list.")
    return tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
