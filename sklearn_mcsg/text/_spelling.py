"""Vectors of words that a table lacks, from their spelling.

A word without a vector should resemble itself and what is spelled like it, and nothing else:

    word --> character n-grams of <word> --crc32--> random vectors --sum--> a direction --> mean, spread of the table

The random vectors come from `RandomState`, whose stream is frozen, so they are the same in every process and version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from sklearn_mcsg.text._tokens import MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHORTEST, _LONGEST = 3, 5  # characters of an n-gram
LONGEST_WORD = 2**10  # characters of a word that count
_CORE = re.compile(rf"[\w{MARKS}](?:.*[\w{MARKS}])?", re.DOTALL)
_BETWEEN_PARTS = re.compile(r"-|(?<=\w)['\u2019](?=\w{3})")
_REMNANT = re.compile(r"['\u2019]\w{1,2}")
_SAMPLE = 2**14  # vectors of a table that its mean and spread are computed from


def spelled(words: Sequence[str], like: np.ndarray) -> np.ndarray:
    """Vectors for words, distributed like those of a table.

    Parameters
    ----------
    words : sequence of str
        The words.
    like : ndarray of shape (n_words, n_features)
        Vectors of the table, in the form in which they are used.

    Returns
    -------
    vectors : ndarray of shape (n_words, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg.text._spelling import spelled
    >>> table = np.random.default_rng(0).normal(size=(1000, 50))
    >>> drug, drugs, other = spelled(["zortanol", "zortanols", "ambromycin"], table)
    >>> np.corrcoef([drug, drugs, other]).round(1)
    array([[1. , 0.9, 0.1],
           [0.9, 1. , 0. ],
           [0.1, 0. , 1. ]])
    """
    n_features = like.shape[1]
    state = np.random.RandomState()

    def drawn(gram: str) -> np.ndarray:
        state.seed(crc32(gram.encode(errors="surrogatepass")))  # thirty times as fast as a new RandomState
        return state.standard_normal((n_features,))

    directions = np.zeros((len(words), n_features))
    for direction, word in zip(directions, words, strict=True):
        for gram in ngrams(word[:LONGEST_WORD]):
            direction += drawn(gram)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return like.mean(axis=0) + like.std(axis=0) * directions * (np.sqrt(n_features) / lengths)


def sample(n_words: int) -> np.ndarray:
    """Rows of a table that stand for all, evenly spaced."""
    return np.unique(np.linspace(0, n_words - 1, min(n_words, _SAMPLE)).astype(int))


def parts_of(token: str) -> list[str]:
    """The words that an unknown token is made of.

    Compounds are split at hyphens, and elided words such as ``l'homme`` at apostrophes. Punctuation at the ends is
    removed, and fragments of contractions, such as ``'t``, are dropped.
    """
    cores = (_CORE.search(part) for part in _BETWEEN_PARTS.split(token) if not _REMNANT.fullmatch(part))
    return [core[0] for core in cores if core and any(map(str.isalnum, core[0]))]


def ngrams(word: str) -> list[str]:
    """Parts of 3 to 5 characters of a word between angle brackets, as in fastText."""
    text = f"<{word}>"
    sizes = range(_SHORTEST, _LONGEST + 1)
    return [text[i : i + size] for size in sizes for i in range(len(text) - size + 1)]
