"""Rows of words in a table of words: their own, or those of their parts, which may be known by their spelling alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import numpy as np

from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text._spelling import parts_of
from sklearn_mcsg.text._tokenised import Places, places_of
from sklearn_mcsg.text.tables import WordTable


class LookUp(NamedTuple):
    """How tokens are looked up."""

    unknown: str = "spelling"  # what becomes of tokens that a table of words lacks
    lowercase: bool = False  # whether a table of words is asked for tokens in lower case
    punctuation: bool = False  # whether punctuation counts as words
    pad_token: str | None = None  # a word that is added to every text
    by_length: bool = True  # whether words are weighted by the lengths of their vectors


class Rows(NamedTuple):
    """Rows of some words in a table."""

    own: np.ndarray  # row of each word, or -1
    rows: np.ndarray  # of the parts of all words; those that follow the table's are of the spelled parts
    offsets: np.ndarray  # of the words
    spelled: list[str]


def rows_of(words: list[str], counts: np.ndarray, table: WordTable, unknown: str, text_of: Callable) -> Rows:
    """Rows of words; those that do not count have none.

    Parameters
    ----------
    words : list of str
        The words.
    counts : ndarray of bool
        Which words count.
    table : WordTable
        The word vectors.
    unknown : {"spelling", "ignore", "error"}
        What becomes of words without a row: rows of their parts, or rows that follow the table's; nothing; an error.
    text_of : callable
        The first text that has a word, given by its place.

    Returns
    -------
    rows : Rows
    """
    own = places_of(words, table.rows, table.rows.keys_are, lambda place: f"text {text_of(place)}")
    own[~counts] = -1
    n_words = len(table.words)
    missing = np.flatnonzero(own < 0).tolist()
    spelled = Places()
    parts: list[list[int]] = []
    for place in missing:
        candidates = parts_of(words[place]) if counts[place] and unknown != "ignore" else []
        found = [(word, table.rows[word]) for word in candidates]
        lacking = [word for word, row in found if row < 0]
        if unknown == "error" and lacking:
            raise ValueError(
                f"Text {text_of(place)} has the word {lacking[0]!r}, which has no vector: choose vectors that have it, "
                f"or unknown='spelling' or 'ignore'."
            )
        parts.append([row if row >= 0 else n_words + spelled[word.lower()] for word, row in found])
    sizes = np.ones(len(own), dtype=np.int64)
    sizes[missing] = [len(part) for part in parts]
    every = np.repeat(own, sizes)
    every[every < 0] = list(chain.from_iterable(parts))
    return Rows(own, every, offsets_of(sizes), list(spelled))
