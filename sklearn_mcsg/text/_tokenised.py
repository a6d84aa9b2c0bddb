"""Texts, split into tokens and numbered once.

    texts --tokenizer--> tokens --numbers in order of first appearance--> distinct tokens, one number per token

What depends on a token alone, such as its row in a table, is then derived once per distinct token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np

from sklearn_mcsg.groups import Rows, offsets_of
from sklearn_mcsg.text._tokens import pieces, tokenize

__all__ = ["Tokenisation", "TokenisedTexts", "Tokens", "check_texts", "into_words", "items_of", "renumbered"]

_BATCH = 2**16  # tokens that are numbered at a time


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
        places = _Places()
        batches = [np.empty(0, dtype=np.intc)]
        ends = [0]
        before = 0
        tokens: list[Any] = []
        for i, text in enumerate(texts):
            _check_text(text, i)
            for piece in pieces(text) if how.divisible else (text,):
                produced = how.tokenizer(piece.lower() if how.lowercase else piece)
                tokens += produced if isinstance(produced, list) else _listed(produced, i)
                if len(tokens) >= _BATCH:
                    batches.append(places.numbers(tokens, before, ends))
                    before += len(tokens)
                    tokens = []
            ends.append(before + len(tokens))
        batches.append(places.numbers(tokens, before, ends))
        return cls(list(places), np.concatenate(batches), np.array(ends, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, texts: np.ndarray) -> Tokens:
        """The tokens of some texts, given by their indices, numbered anew."""
        items, offsets = items_of(self.offsets, texts)
        used, numbers = renumbered(self.numbers[items])
        rows = [found[used] for found in self.looked_up]
        return Tokens([self.distinct[i] for i in used], numbers, offsets, rows)

    def first_text(self, number: int) -> int:
        """The first text that has a token."""
        return int(np.searchsorted(self.offsets, np.argmax(self.numbers == number), side="right")) - 1


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


class _Places(dict):
    """Places of tokens in order of first appearance."""

    def __missing__(self, token: Any) -> int:
        place = self[token] = len(self)
        return place

    def numbers(self, tokens: list[Any], before: int, ends: list[int]) -> np.ndarray:
        """Places of a batch of tokens, with `before` tokens before it and the ends of all finished texts so far."""
        try:
            return np.fromiter(map(self.__getitem__, tokens), dtype=np.intc, count=len(tokens))
        except TypeError as error:
            position = next(i for i, token in enumerate(tokens) if not _is_hashable(token))
            text = int(np.searchsorted(ends, before + position, side="right")) - 1
            raise TypeError(
                f"The tokenizer must return strings; for text {text}, got {tokens[position]!r:.60}."
            ) from error


def _is_hashable(token: Any) -> bool:
    try:
        hash(token)
    except TypeError:
        return False
    return True


def _check_text(text: Any, i: int) -> None:
    if not isinstance(text, str):
        raise TypeError(f"Text {i} is not a string but {type(text).__name__}: {text!r:.60}.")


def _listed(tokens: Any, i: int) -> list[Any]:
    """The tokens of text i as a list."""
    if isinstance(tokens, str | bytes | Mapping) or not isinstance(tokens, Iterable):
        raise TypeError(f"The tokenizer must return strings; for text {i}, got {type(tokens).__name__}, not a list.")
    return tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
