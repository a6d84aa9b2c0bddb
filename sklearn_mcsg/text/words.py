"""BM25: how well the words of texts match those of a query, by the package bm25s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.groups.checks import check_indices, check_offsets
from sklearn_mcsg.storage import register
from sklearn_mcsg.text._spelling import parts_of
from sklearn_mcsg.text._tokenised import Places, TokenisedTexts, Tokens, expanded, into_words


def import_bm25s() -> Any:
    """The package bm25s, or an error that says how to install it."""
    return import_extra("bm25s", "A search by words", "set words=None (on the command line --words none)")


def words_of(texts: Iterable[str], tokenizer: Callable[[str], Iterable[str]] | None = None) -> Tokens:
    """Words of texts in lower case: compounds are split at hyphens, and punctuation is left out."""
    tokens = TokenisedTexts.of(texts).tokens(into_words(tokenizer, lowercase=True))
    places = Places()
    parts = [[places[word] for word in parts_of(token)] for token in tokens.distinct]
    numbers = np.array(list(chain.from_iterable(parts)), dtype=np.intc)
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    return Tokens(list(places), *expanded(tokens, numbers, offsets_of(sizes)))


def check_vocabulary(words: Any) -> None:
    """Raise ValueError unless words are a list of distinct strings."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("a vocabulary must be a list of words")
    if len(set(words)) < len(words):
        raise ValueError("a word of a vocabulary is given twice")


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
    >>> from sklearn_mcsg.text.words import WordIndex, words_of
    >>> index = WordIndex.of(words_of(["a cat", "a dog and a cat", "tax"]))
    >>> queries = index.numbers(words_of(["cat", "a tax", "unicorn"]))
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
    def of(cls, words: Tokens) -> WordIndex:
        """Index texts, given by their words."""
        return cls([], np.empty(0, np.int32), np.zeros(1, np.int64)).extended(words)

    def extended(self, words: Tokens) -> WordIndex:
        """An index of more texts."""
        places = {word: i for i, word in enumerate(self.vocabulary)}
        new = np.array([places.setdefault(word, len(places)) for word in words.distinct], dtype=np.int32)
        sizes = np.concatenate([np.diff(self.offsets), np.diff(words.offsets)])
        return WordIndex(list(places), np.concatenate([self.ids, new[words.numbers]]), offsets_of(sizes))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def numbers(self, queries: Tokens) -> list[list[int]]:
        """Numbers of the words of queries; words that no text has are -1."""
        places = np.array([self._place.get(word, -1) for word in queries.distinct], dtype=np.int32)
        return _split(places[queries.numbers], queries.offsets)

    def own_numbers(self) -> list[list[int]]:
        """Numbers of the words of the indexed texts."""
        return _split(self.ids, self.offsets)

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
        check_vocabulary(self.vocabulary)
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


def _split(numbers: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    """One list of numbers per part."""
    return [numbers[start:stop].tolist() for start, stop in pairwise(offsets)]
