"""BM25: how well the words of texts match those of a query, by the package bm25s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.groups.checks import check_indices, check_offsets
from sklearn_mcsg.storage import register
from sklearn_mcsg.text.spelling import parts_of
from sklearn_mcsg.text.tokens import pieces, tokenize

__all__ = ["WordIndex", "import_bm25s", "words_of"]


def import_bm25s() -> Any:
    """The package bm25s, or an error that says how to install it."""
    try:
        import bm25s
    except ImportError as error:
        raise ImportError(
            'A search by words needs the package bm25s: pip install "sklearn-mcsg[text]", or do without words by '
            "words=None (on the command line --words none)."
        ) from error
    return bm25s


class _Parts(dict):
    """The words that each token is made of, found once per token."""

    def __missing__(self, token: str) -> list[str]:
        words = self[token] = parts_of(token)
        return words


def words_of(texts: Iterable[str], tokenizer: Callable[[str], Iterable[str]] | None = None) -> list[list[str]]:
    """Words of texts in lower case: compounds are split at hyphens, and punctuation is left out."""
    parts = _Parts()
    return [[word for token in _tokens(text.lower(), tokenizer) for word in parts[token]] for text in texts]


def _tokens(text: str, tokenizer: Callable[[str], Iterable[str]] | None) -> Iterable[str]:
    """The tokens of a text; those of a long one are not all in memory at the same time."""
    return tokenizer(text) if tokenizer else chain.from_iterable(map(tokenize, pieces(text)))


@register
@dataclass(frozen=True, eq=False)
class WordIndex:
    """The words of texts, and their BM25 scores for queries.

    Attributes
    ----------
    vocabulary : list of str
        All words.
    ids : ndarray of int
        Numbers of the words of all texts, text after text: their places in the vocabulary.
    offsets : ndarray of int
        Where each text begins among them, and the end of the last.

    Examples
    --------
    >>> from sklearn_mcsg.text.words import WordIndex
    >>> index = WordIndex.of([["a", "cat"], ["a", "dog", "and", "a", "cat"], ["tax"]])
    >>> queries = index.numbers([["cat"], ["a", "tax"], ["unicorn"]])
    >>> index.scores(queries).round(1)
    array([[0.2, 0.1, 0. ],
           [0.2, 0.2, 0.5],
           [0. , 0. , 0. ]], dtype=float32)
    >>> index.bounds(queries).round(1)
    array([0.5, 1.5, 2.1], dtype=float32)
    """

    vocabulary: list[str]
    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]]) -> WordIndex:
        """Index texts, given as lists of words."""
        return cls([], np.empty(0, np.int32), np.zeros(1, np.int64)).extended(texts)

    def extended(self, texts: Sequence[Sequence[str]]) -> WordIndex:
        """An index of more texts."""
        place = {word: i for i, word in enumerate(self.vocabulary)}
        added = np.array([place.setdefault(word, len(place)) for words in texts for word in words], dtype=np.int32)
        sizes = np.concatenate([np.diff(self.offsets), [len(words) for words in texts]]).astype(np.int64)
        return WordIndex(list(place), np.concatenate([self.ids, added]), offsets_of(sizes))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def numbers(self, queries: Iterable[Iterable[str]]) -> list[list[int]]:
        """Numbers of the words of queries; words that no text has are -1."""
        return [[self._place.get(word, -1) for word in words] for words in queries]

    def own_numbers(self) -> list[list[int]]:
        """Numbers of the words of the indexed texts."""
        return [part.tolist() for part in np.split(self.ids, self.offsets[1:-1])]

    def scores(self, queries: Sequence[Sequence[int]]) -> np.ndarray:
        """BM25 scores of all texts for queries, given as numbers of words: shape (n_queries, n_texts)."""
        rows = np.zeros((len(queries), len(self)), dtype=np.float32)
        for row, numbers in zip(rows, queries, strict=True):
            known = [number for number in numbers if number >= 0]
            if known:
                row[:] = self._bm25.get_scores_from_ids(known)
        return rows

    def bounds(self, queries: Sequence[Sequence[int]]) -> np.ndarray:
        """Least upper bounds of the BM25 scores of any text for queries, given as numbers of words."""
        return np.array([self._weights[list(numbers)].sum() for numbers in queries], dtype=np.float32)

    def check(self, n_texts: int) -> None:
        """Raise ValueError unless this is an index of a number of texts."""
        check_offsets(self.offsets, len(self.ids))
        check_indices(self.ids, len(self.vocabulary))
        if len(self) != n_texts:
            raise ValueError(f"the words of {n_texts} texts are expected, but there are those of {len(self)}")

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}

    @cached_property
    def _bm25(self) -> Any:
        bm25 = import_bm25s().BM25(method="lucene")
        bm25.index((self.own_numbers(), dict(self._place)), show_progress=False)  # a copy, because bm25s adds a word
        return bm25

    @cached_property
    def _weights(self) -> np.ndarray:
        """The weight of each word, its inverse document frequency; the last one is for words that no text has."""
        texts = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        pairs = np.unique(texts * len(self.vocabulary) + self.ids)
        n_texts = np.append(np.bincount(pairs % max(1, len(self.vocabulary)), minlength=len(self.vocabulary)), 0)
        return np.log1p((len(self) - n_texts + 0.5) / (n_texts + 0.5))
