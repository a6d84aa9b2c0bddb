"""Words of texts: how well they match those of a query, by the BM25 of the package bm25s, and phrases of them.

words in lower case --stems, stop words--> terms --bm25s--> scores
words in lower case, in their order --> texts that contain a phrase
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.groups.checks import check_indices, check_offsets
from sklearn_mcsg.storage import register
from sklearn_mcsg.text._spelling import parts_of
from sklearn_mcsg.text._tokenised import Places, TokenisedTexts, Tokens, expanded, into_words
from sklearn_mcsg.text.language import stems_of, stop_words_of

_K1 = 1.5  # of BM25: a word that a text of average length has once scores 1 / (1 + _K1) of what it can score
_MARKS = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f"  # typographic quotation marks
_QUOTED = re.compile(rf'(?<!\w)"([^"]+)"(?!\w)|[{_MARKS}]([^{_MARKS}]+)[{_MARKS}]')


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


def phrases_in(query: str) -> list[str]:
    """What a query has in quotation marks, straight or typographic; a mark without a partner is not one.

    Parameters
    ----------
    query : str
        A query.

    Returns
    -------
    phrases : list of str

    Examples
    --------
    >>> from sklearn_mcsg.text.words import phrases_in
    >>> phrases_in('"storm surge" near the “old harbour”')
    ['storm surge', 'old harbour']
    >>> phrases_in('a 5" pipe and a 10" pipe')
    []
    """
    return [straight or typographic for straight, typographic in _QUOTED.findall(query)]


def check_vocabulary(words: Any) -> None:
    """Raise ValueError unless words are a list of distinct strings."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("a vocabulary must be a list of words")
    if len(set(words)) < len(words):
        raise ValueError("a word of a vocabulary is given twice")


class _Terms(NamedTuple):
    """What the words of texts are counted as: stems, those of stop words apart."""

    places: dict[tuple[str, bool], int]  # number of each term, given its stem and whether it is of a stop word
    numbers: np.ndarray  # term of each word
    light: np.ndarray  # whether each term is of a stop word


@register
@dataclass(frozen=True, eq=False)
class WordIndex:
    """The words of texts, their BM25 scores for queries, and the texts that contain a phrase.

    Words are kept as they are written, in lower case. BM25 counts stems. Stop words count neither in a query nor for
    the length of a text, unless the query has no other words; then they alone count.

    Attributes
    ----------
    vocabulary : list of str
        All words.
    ids : ndarray of int
        Numbers of the words of all texts, text after text: their places in the vocabulary.
    offsets : ndarray of int
        Where each text begins among them, and the end of the last.
    language : str or None
        Language whose stems and stop words count; None for words as they are written.

    Examples
    --------
    >>> from sklearn_mcsg.text.words import WordIndex, words_of
    >>> texts = words_of(["The cat sat", "A cat ate cats", "Taxes rise"])
    >>> index = WordIndex.of(texts, "english")
    >>> queries = index.numbers(words_of(["a cat", "the tax", "a unicorn"]))
    >>> index.scores(queries).round(1)
    array([[0.2, 0.2, 0. ],
           [0. , 0. , 0.4],
           [0. , 0. , 0. ]], dtype=float32)
    >>> index.units(queries).round(1)
    array([0.2, 0.4, 0.8], dtype=float32)
    >>> index.texts_with(["a", "cat"])
    array([1])
    """

    vocabulary: list[str]
    ids: np.ndarray
    offsets: np.ndarray
    language: str | None

    @classmethod
    def of(cls, words: Tokens, language: str | None) -> WordIndex:
        """Index texts, given by their words."""
        return cls([], np.empty(0, np.int32), np.zeros(1, np.int64), language).extended(words)

    def extended(self, words: Tokens) -> WordIndex:
        """An index of more texts."""
        places = dict(self._places)
        new = np.array([places.setdefault(word, len(places)) for word in words.distinct], dtype=np.int32)
        sizes = np.concatenate([np.diff(self.offsets), np.diff(words.offsets)])
        ids = np.concatenate([self.ids, new[words.numbers]])
        return WordIndex(list(places), ids, offsets_of(sizes), self.language)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs, without what other threads may compute at the same time."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def numbers(self, queries: Tokens) -> list[list[int]]:
        """Numbers of the terms of queries; terms that no text has are -1."""
        keys = self._keys(queries.distinct)
        terms = np.array([self._terms.places.get(key, -1) for key in keys], dtype=np.int32)
        return _without_stop_words(terms[queries.numbers], _are_light(keys)[queries.numbers], queries.offsets)

    def own_numbers(self) -> list[list[int]]:
        """Numbers of the terms of the indexed texts as queries."""
        terms = self._terms.numbers[self.ids]
        return _without_stop_words(terms, self._terms.light[terms], self.offsets)

    def scores(self, queries: Sequence[Sequence[int]]) -> np.ndarray:
        """BM25 scores of all texts for queries, given as numbers of terms: shape (n_queries, n_texts)."""
        rows = np.zeros((len(queries), len(self)), dtype=np.float32)
        for row, numbers in zip(rows, queries, strict=True):
            known = [number for number in numbers if number >= 0]
            if known:
                bm25 = self._bm25_of_stop_words if self._terms.light[known[0]] else self._bm25
                row[:] = bm25.get_scores_from_ids(known)
        return rows

    def units(self, queries: Sequence[Sequence[int]]) -> np.ndarray:
        """BM25 scores of a text of average length that has each term of a query once, for queries given as numbers."""
        sums = np.array([self._weights[list(numbers)].sum() for numbers in queries], dtype=np.float32)
        return sums / (1 + _K1)

    def random_runs(self, n_runs: int, random_state: np.random.RandomState) -> tuple[np.ndarray, list[str]]:
        """Words that follow each other in random texts: the places of the texts, and the words, with spaces between.

        All orders of magnitude of lengths are equally frequent, from one word to the whole text.
        """
        texts = random_state.randint(len(self), size=n_runs)
        sizes = np.diff(self.offsets)[texts]
        lengths = np.minimum((sizes + 1.0) ** random_state.uniform(size=n_runs), sizes).astype(np.int64)
        begins = self.offsets[texts] + random_state.randint(sizes - lengths + 1)
        runs = (self.ids[begin : begin + length] for begin, length in zip(begins, lengths, strict=True))
        return texts, [" ".join([self.vocabulary[number] for number in run]) for run in runs]

    def texts_with(self, phrase: Sequence[str]) -> np.ndarray:
        """Places of the texts in which the words of a phrase follow each other, as they are written."""
        numbers = [self._places.get(word, -1) for word in phrase]
        if min(numbers) < 0:
            return np.empty(0, dtype=np.intp)
        order, starts = self._occurrences
        rarest = int(np.argmin([starts[number + 1] - starts[number] for number in numbers]))
        found = order[starts[numbers[rarest]] : starts[numbers[rarest] + 1]]
        texts = np.searchsorted(self.offsets, found, side="right") - 1
        begins = found - rarest
        whole = (begins >= self.offsets[texts]) & (begins + len(phrase) <= self.offsets[texts + 1])
        begins, texts = begins[whole], texts[whole]
        for i, number in enumerate(numbers):
            same = self.ids[begins + i] == number
            begins, texts = begins[same], texts[same]
        return np.unique(texts)

    def check(self, n_texts: int) -> None:
        """Raise ValueError unless this is an index of a number of texts."""
        check_vocabulary(self.vocabulary)
        check_offsets(self.offsets, len(self.ids))
        check_indices(self.ids, len(self.vocabulary))
        if len(self) != n_texts:
            raise ValueError(f"the words of {n_texts} texts are expected, but there are those of {len(self)}")

    def _keys(self, words: Sequence[str]) -> list[tuple[str, bool]]:
        """The stem of each word, and whether it is a stop word."""
        if self.language is None:
            return [(word, False) for word in words]
        stop_words = stop_words_of(self.language)
        stems = stems_of(words, self.language)
        return [(stem, word in stop_words) for word, stem in zip(words, stems, strict=True)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}

    @cached_property
    def _occurrences(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of all words, word after word, and where those of each word begin."""
        counts = np.bincount(self.ids, minlength=len(self.vocabulary))
        return np.argsort(self.ids, kind="stable"), offsets_of(counts)

    @cached_property
    def _terms(self) -> _Terms:
        places: Any = Places()
        numbers = np.array([places[key] for key in self._keys(self.vocabulary)], dtype=np.int32)
        return _Terms(dict(places), numbers, _are_light(places))

    @cached_property
    def _bm25(self) -> Any:
        return self._bm25_of(~self._terms.light)

    @cached_property
    def _bm25_of_stop_words(self) -> Any:
        return self._bm25_of(self._terms.light)

    def _bm25_of(self, counted: np.ndarray) -> Any:
        """BM25 of texts that have no other terms than those that are counted."""
        terms = self._terms.numbers[self.ids]
        texts = [part[counted[part]].tolist() for part in _split(terms, self.offsets)]
        bm25 = import_bm25s().BM25(method="lucene", k1=_K1)
        bm25.index((texts, {str(number): number for number in range(len(counted))}), show_progress=False)
        return bm25

    @cached_property
    def _weights(self) -> np.ndarray:
        """The weight of each term, its inverse document frequency; the last one is for terms that no text has."""
        n_terms = len(self._terms.places)
        texts = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        pairs = np.unique(texts * n_terms + self._terms.numbers[self.ids])
        n_texts = np.append(np.bincount(pairs % max(1, n_terms), minlength=n_terms), 0)
        return np.log1p((len(self) - n_texts + 0.5) / (n_texts + 0.5))


def _are_light(keys: Iterable[tuple[str, bool]]) -> np.ndarray:
    return np.array([is_stop_word for _, is_stop_word in keys], dtype=bool)


def _without_stop_words(terms: np.ndarray, light: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    """The terms of each query that are not of stop words, or all of them if there are no others."""
    parts = zip(_split(terms, offsets), _split(light, offsets), strict=True)
    return [(part if are_light.all() else part[~are_light]).tolist() for part, are_light in parts]


def _split(values: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
    """The values of each part."""
    return [values[start:stop] for start, stop in pairwise(offsets)]
