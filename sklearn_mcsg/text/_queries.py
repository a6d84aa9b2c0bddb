"""Queries of a search: one text each, or several texts that are pooled, with the phrases that must be found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text._tokenised import TokenisedTexts, Tokens
from sklearn_mcsg.text.words import phrases_in, words_of

Query = str | Sequence[str]  # a text, or several texts that are one query


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries whose texts are split into words once.

    Attributes
    ----------
    texts : TokenisedTexts
        The texts of all queries, query after query.
    offsets : ndarray of int
        Where each query begins among them, and the end of the last.
    phrases : list of lists of str
        What each query has in quotes, which a text must contain to be found.
    """

    texts: TokenisedTexts
    offsets: np.ndarray
    phrases: list[list[str]]

    @classmethod
    def of(cls, X: Sequence[Query] | Queries) -> Queries:
        """Read queries, unless that has been done; each text of `TokenisedTexts` is a query.

        Only a string has phrases. Texts of a list, and `TokenisedTexts`, are examples, whose quotes are their own.
        """
        if isinstance(X, Queries):
            return X
        if isinstance(X, TokenisedTexts):
            return cls(X, np.arange(len(X) + 1), [[]] * len(X))
        if isinstance(X, str):
            raise ValueError("A list of queries is expected, got a string: put a single query into a list.")
        if isinstance(X, Mapping) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
            raise TypeError(f"A list of queries is expected, got {type(X).__name__}.")
        given = list(X)
        if not given:
            raise ValueError("There are no queries: give at least one.")
        phrases = [phrases_in(query) if isinstance(query, str) else [] for query in given]
        queries = [[query] if isinstance(query, str) else query for query in given]
        for i, query in enumerate(queries):
            if not isinstance(query, Sequence) or isinstance(query, bytes):
                raise TypeError(f"Query {i} must be a text or a list of texts, got {type(query).__name__}.")
            if not query:
                raise ValueError(f"Query {i} is an empty list: at least one text is required.")
        texts = TokenisedTexts.of(chain.from_iterable(queries))
        return cls(texts, offsets_of([len(query) for query in queries]), phrases)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, queries: np.ndarray) -> Queries:
        """Some of the queries, given by a mask."""
        sizes = np.diff(self.offsets)
        phrases = [self.phrases[i] for i in np.flatnonzero(queries)]
        return Queries(self.texts[np.repeat(queries, sizes)], offsets_of(sizes[queries]), phrases)

    def texts_of(self, i: int) -> TokenisedTexts:
        """The texts of one query."""
        return self.texts[self.offsets[i] : self.offsets[i + 1]]

    def words(self, tokenizer: Callable[[str], Iterable[str]] | None) -> Tokens:
        """The words of each query."""
        words = words_of(self.texts, tokenizer)
        return Tokens(words.distinct, words.numbers, words.offsets[self.offsets])
