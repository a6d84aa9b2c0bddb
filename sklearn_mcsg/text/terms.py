"""Words and frequent pairs of words that distinguish clusters of texts, by class-based TF-IDF.

    texts --tokenizer--> words --adjacent--> pairs --count texts--> Terms --score in each cluster--> labels

Every term counts once per text. Its score in a cluster is

    weight × share of the cluster's texts that have it × log(1 + n / texts of the corpus that have it)

where n is the mean size of a cluster. The weight of a word is the one its vector has, which is small for stop words.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from sklearn_mcsg.text.tokens import tokenize
from sklearn_mcsg.text.vectorizer import quiet_about_empty_texts

_FREQUENT = 3  # texts that a pair of words needs to be a term
_HEAVY = 0.5  # share of the median weight that both words of a pair need, which stop words do not have
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
    def of(cls, texts: Iterable[str], vectorizer: Any) -> Self:
        """Find the terms of texts, with the weights of a fitted `EmbeddingVectorizer`."""
        words, text_of, codes, n_texts = _words_of(texts, vectorizer)
        n_words = max(1, len(words))
        kept = codes >= 0
        present = _incidence(text_of[kept], codes[kept], (n_texts, len(words)))
        adjacent = kept[:-1] & kept[1:] & (text_of[:-1] == text_of[1:]) & (codes[:-1] != codes[1:])
        found, pairs = np.unique(codes[:-1][adjacent] * n_words + codes[1:][adjacent], return_inverse=True)
        joint = _incidence(text_of[:-1][adjacent], pairs, (n_texts, len(found)))
        parts, weights = np.column_stack(np.divmod(found, n_words)), _weights_of(words, vectorizer)
        smaller = weights[parts].min(axis=1, initial=np.inf)
        frequent = np.bincount(joint.indices, minlength=len(found)) >= _FREQUENT
        frequent &= smaller >= _HEAVY * np.median(weights) if len(weights) else False
        parts = parts[frequent]
        names = np.array([*words, *(f"{words[a]} {words[b]}" for a, b in parts.tolist())], dtype=object)
        return cls(
            names,
            sparse.hstack([present, joint[:, frequent]], format="csr"),
            np.concatenate([weights, smaller[frequent]]),
            parts,
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
            The most distinctive first. No word occurs in two of them, also with another ending of one or two letters.
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

    def _prefer_pairs(self, counts: np.ndarray, words: np.ndarray, pairs: np.ndarray) -> None:
        """Change scores: a pair takes the place of words that mostly occur in it; without any, it does not count."""
        together = counts[len(words) :, None]
        covered = (together > 0) & (together >= _COVERED * counts[self.parts])
        best = np.where(covered, words[self.parts], 0).max(axis=1, initial=0)
        pairs[:] = np.where(covered.any(axis=1), np.maximum(pairs, best), 0)
        words[self.parts[covered]] = 0


def _are_forms(a: str, b: str) -> bool:
    """Whether two words are equal or, with four letters or more, differ by a short ending."""
    short, long = sorted((a, b), key=len)
    return a == b or (len(short) > 3 and len(long) - len(short) <= 2 and long.startswith(short))


def _words_of(texts: Iterable[str], vectorizer: Any) -> tuple[list[str], np.ndarray, np.ndarray, int]:
    """The distinct words; for every token its text, and its word or -1 if it has no letter; and the number of texts."""
    split: Callable[[str], Iterable[str]] = tokenize if vectorizer.tokenizer is None else vectorizer.tokenizer
    number: dict[str, int] = {}
    codes = array("i")
    sizes: list[int] = []
    for text in texts:
        before = len(codes)
        for token in split(text.lower() if vectorizer.lowercase else text):
            codes.append(number.setdefault(token, len(number)) if any(map(str.isalpha, token)) else -1)
        sizes.append(len(codes) - before)
    return list(number), np.repeat(np.arange(len(sizes)), sizes), np.array(codes, dtype=np.int64), len(sizes)


def _incidence(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    """A matrix of ones and zeros."""
    matrix = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _weights_of(words: Sequence[str], vectorizer: Any) -> np.ndarray:
    """Mean weight of the vectors of each word; 1 for a word that has none."""
    if not words:
        return np.empty(0)
    with quiet_about_empty_texts():
        groups = vectorizer.transform(words)
    return np.divide(groups.totals, groups.sizes, out=np.ones(len(words)), where=groups.sizes > 0)
