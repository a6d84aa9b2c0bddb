"""Words and frequent pairs of words that distinguish clusters of texts, by class-based TF-IDF.

    texts --tokenizer--> words --adjacent--> pairs --count texts--> Terms --score in each cluster--> labels

Every term counts once per text. Its score in a cluster is

    weight × share of the cluster's texts that have it × log(1 + n / texts of the corpus that have it)

where n is the mean size of a cluster. The weight of a word is the one its vector has, which is small for frequent
words. English stop words, a few fillers and tokens without letters are no terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from sklearn_mcsg.text._tokenised import Places, TokenisedTexts, Tokens
from sklearn_mcsg.text._vectorizer import EmbeddingVectorizer, weighted_tokens
from sklearn_mcsg.text.language import STOP_WORDS

_FREQUENT = 3  # texts that a pair of words needs to be a term
_HEAVY = 0.5  # share of the median weight that both words of a pair need, which stop words do not have
_BEFORE_SENTENCES = frozenset([".", "!", "?", "...", "..", "*", '"', "\u2026", "\u201c", "\u2018", "\u2022"])
_NO_TERMS = STOP_WORDS | frozenset(["aka", "com", "http", "https", "org", "used", "using", "www"])
_COVERED = 0.5  # a pair stands for a word that occurs in it in at least this share of the word's texts


@dataclass(frozen=True, eq=False)
class Terms:
    """The words and frequent pairs of words of texts.

    Attributes
    ----------
    names : ndarray of str of shape (n_terms,)
        The terms: first the words, then the pairs.
    present : csr_matrix of shape (n_texts, n_terms)
        1 where a text has a term.
    weights : ndarray of shape (n_terms,)
        The weight of a word, or the smaller weight of a pair.
    parts : ndarray of int of shape (n_pairs, 2)
        The two words of each pair.
    """

    names: np.ndarray
    present: sparse.csr_matrix
    weights: np.ndarray
    parts: np.ndarray

    @classmethod
    def of(cls, texts: Iterable[str], vectorizer: EmbeddingVectorizer) -> Self:
        """Find the terms of texts, with the weights of a fitted `EmbeddingVectorizer`."""
        tokens, of_tokens = weighted_tokens(vectorizer, TokenisedTexts.of(texts))
        names, words, codes = _words(tokens)
        n_texts, n_words = len(tokens), max(1, len(words))
        weights = of_tokens[words]
        text_of = tokens.owners
        codes = codes[tokens.numbers]
        kept = codes >= 0
        present = _incidence(text_of[kept], codes[kept], (n_texts, len(words)))
        adjacent = kept[:-1] & kept[1:] & (text_of[:-1] == text_of[1:]) & (codes[:-1] != codes[1:])
        found, places = np.unique(codes[:-1][adjacent] * n_words + codes[1:][adjacent], return_inverse=True)
        joint = _incidence(text_of[:-1][adjacent], places, (n_texts, len(found)))
        parts = np.column_stack(np.divmod(found, n_words))
        smaller = weights[parts].min(axis=1, initial=np.inf)
        frequent = np.bincount(joint.indices, minlength=len(found)) >= _FREQUENT
        frequent &= smaller >= _HEAVY * np.median(weights) if len(weights) else False
        pairs = _pairs_as_written(tokens, np.flatnonzero(adjacent), places, frequent)
        return cls(
            np.array([*names, *pairs], dtype=object),
            sparse.hstack([present, joint[:, frequent]], format="csr"),
            np.concatenate([weights, smaller[frequent]]),
            parts[frequent],
        )

    def counts(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Number of texts of each cluster that have each term; `labels` are from 0 to `n_clusters` - 1."""
        member = sparse.csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))), (n_clusters, len(labels)))
        return (member @ self.present).toarray()

    def best(self, counts: np.ndarray, size: int, typical_size: float, n_terms: int) -> list[str]:
        """The terms that distinguish a cluster most.

        Parameters
        ----------
        counts : ndarray of shape (n_terms,)
            Number of the cluster's texts that have each term.
        size : int
            Number of its texts.
        typical_size : float
            Mean number of texts of a cluster.
        n_terms : int
            Number of terms to return.

        Returns
        -------
        terms : list of str
            The most distinctive first. No word occurs in two of them, even with another ending of one or two letters.
        """
        totals = np.maximum(1, self.present.sum(axis=0).A1)
        score = self.weights * counts / max(1, size) * np.log1p(typical_size / totals)
        n_words = len(score) - len(self.parts)
        self._prefer_pairs(counts, score[:n_words], score[n_words:])
        used: list[str] = []
        chosen: list[str] = []
        for term in sorted(np.flatnonzero(score > 0), key=lambda i: (-score[i], self.names[i])):
            if len(chosen) == n_terms:
                break
            words = self.names[self.parts[term - n_words] if term >= n_words else [term]].tolist()
            if not any(_are_forms(a, b) for a in words for b in used):
                used += words
                chosen.append(self.names[term])
        return chosen

    def labels_of(self, labels: np.ndarray, n_terms: int) -> list[list[str]]:
        """The terms that distinguish each cluster, 0, 1 and so on; `labels` are the clusters of the texts."""
        sizes = np.bincount(labels)
        counts = self.counts(labels, len(sizes))
        return [self.best(row, int(size), sizes.mean(), n_terms) for row, size in zip(counts, sizes, strict=True)]

    def _prefer_pairs(self, counts: np.ndarray, words: np.ndarray, pairs: np.ndarray) -> None:
        """Change scores: a pair takes the place of words that mostly occur in it; without any, it does not count."""
        together = counts[len(words) :, None]
        covered = (together > 0) & (together >= _COVERED * counts[self.parts])
        best = np.where(covered, words[self.parts], 0).max(axis=1, initial=0)
        pairs[:] = np.where(covered.any(axis=1), np.maximum(pairs, best), 0)
        words[self.parts[covered]] = 0


def _words(tokens: Tokens) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Words as they are shown, the token that each is mostly written as, and the word of each distinct token, or -1.

    Tokens that differ in case are one word, shown as it is mostly written inside sentences. Stop words and tokens
    without letters are left out.
    """
    inside = np.bincount(tokens.numbers[~_begins_sentence(tokens)], minlength=len(tokens.distinct))
    places = Places()
    words: list[int] = []
    codes = np.full(len(inside), -1)
    for number, token in enumerate(tokens.distinct):
        word = token.lower()
        if any(map(str.isalpha, word)) and word.replace("\u2019", "'") not in _NO_TERMS:
            code = codes[number] = places[word]
            if code == len(words):
                words.append(number)
            elif inside[number] > inside[words[code]]:
                words[code] = number
    written = ((tokens.distinct[number], inside[number]) for number in words)
    names = [token if count or not token.istitle() else token.lower() for token, count in written]
    return names, np.array(words, dtype=np.intp), codes


def _pairs_as_written(tokens: Tokens, starts: np.ndarray, places: np.ndarray, shown: np.ndarray) -> list[str]:
    """Pairs of neighbours as they are mostly written, if possible inside sentences.

    The pair that begins with the token `starts[i]` of all texts has the number `places[i]`; some numbers are shown.
    """
    starts, places = starts[shown[places]], places[shown[places]]
    weights = np.where(_begins_sentence(tokens)[starts], 1e-9, 1.0)
    first, second = tokens.numbers[starts], tokens.numbers[starts + 1]
    order = np.lexsort((second, first, places))
    spelled = np.column_stack([places, first, second])[order]
    is_new = np.append(True, (spelled[1:] != spelled[:-1]).any(axis=1))[: len(spelled)]
    counts = np.bincount(np.cumsum(is_new) - 1, weights[order])
    spelled = spelled[is_new]
    best = spelled[np.lexsort((-counts, spelled[:, 0]))]
    best = best[np.unique(best[:, 0], return_index=True)[1]]
    return [f"{tokens.distinct[a]} {tokens.distinct[b]}" for _, a, b in best.tolist()]


def _begins_sentence(tokens: Tokens) -> np.ndarray:
    """Whether each token of the texts is the first one of a sentence, where it may be capitalised."""
    ends = np.array([token in _BEFORE_SENTENCES for token in tokens.distinct], dtype=bool)[tokens.numbers]
    first = np.zeros(len(ends) + 1, dtype=bool)
    first[1:] = ends
    first[tokens.offsets] = True
    return first[:-1]


def _are_forms(a: str, b: str) -> bool:
    """Whether two words are equal or, with four letters or more, differ by a short ending."""
    short, long = sorted((a.lower(), b.lower()), key=len)
    return short == long or (len(short) > 3 and len(long) - len(short) <= 2 and long.startswith(short))


def _incidence(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    """A matrix of ones and zeros."""
    matrix = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
