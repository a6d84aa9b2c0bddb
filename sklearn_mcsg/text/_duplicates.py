"""Near-duplicate texts: near by their embeddings, and without a word that makes a difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_mcsg.groups import Groups
from sklearn_mcsg.search.duplicates import check_limit, collected, duplicate_limits, linked_sets, near_pairs, steps_of
from sklearn_mcsg.similarity import fitted_comparer
from sklearn_mcsg.text._near_copies import NearCopies, Pairs
from sklearn_mcsg.text._recipes import make_text_embedding
from sklearn_mcsg.text._tokenised import TokenisedTexts, Tokens
from sklearn_mcsg.text._vectorizer import EmbeddingVectorizer, warn_of_empty_texts
from sklearn_mcsg.text.sources import open_table
from sklearn_mcsg.text.tables import PieceIds, SideBySide, StaticTable
from sklearn_mcsg.text.wording import FOLDED


def find_duplicate_texts(
    texts: Iterable[str],
    *,
    overlap: float | None = None,
    against: Iterable[str] | None = None,
    threshold: float | None = None,
    level: float | None = None,
    pipeline: Pipeline | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[np.ndarray]:
    """Find sets of texts that say the same in nearly the same words.

    Two texts are duplicates if their embeddings are near and no word makes a difference. Case, punctuation, spacing,
    contractions, articles, auxiliaries, adverbs such as "really", typing errors and the order of clauses make no
    difference. A number, a name, a negation or any other content word that only one of the texts has makes one,
    whatever its vector. So does a mathematical or currency sign, a minus before a number, "%" or an emoji. All texts of
    a set are duplicates of each other.

    Parameters
    ----------
    texts : iterable of str
        The texts. Texts without words are duplicates if they are equal.
    threshold : float, default=None
        Largest distance between duplicates: one minus the cosine of their embeddings. ``None`` means 0.6, which lets
        words decide, or no limit for fewer than 50 different texts, because embeddings are relative to the corpus.
    level : float, default=None
        Accepted rate of false positives: random pairs within the threshold. It takes the place of a threshold, as in
        `find_duplicates`. Words are compared in any case, so fewer false duplicates are found.
    pipeline : Pipeline, default=None
        Pipeline for texts: it turns them into embeddings. ``None`` means `make_text_embedding`. A pipeline whose last
        step compares groups also works, with the threshold in its output.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    duplicates : list of ndarray
        Indices of each set of two texts or more, in increasing order.

    Notes
    -----
    An emoji counts as a word, because it may turn the meaning: "Well done" and "Well done" with an angry face are not
    duplicates. Its place, its repetition and its skin tone make no difference. Stars, bullets, arrows between words and
    trademark signs are punctuation.

    The lists of light words are English. In other languages the most frequent words of the vectors are light, such as
    articles, and other words make a difference. A misspelling is recognised if the vectors know the right word and
    not the wrong one.

    Examples
    --------
    >>> from sklearn_mcsg import find_duplicate_texts
    >>> texts = [
    ...     "The ferry doesn't leave before 9.",
    ...     "The ferry does not leave before 9!",
    ...     "The ferry does not leave before 8.",
    ...     "The ferry does leave before 9.",
    ...     "the FERY does not really leave before 9",
    ... ]
    >>> find_duplicate_texts(texts)
    [array([0, 1, 4])]
    """
    if threshold is not None and level is not None:
        raise ValueError("find_duplicate_texts takes a threshold or a level, not both.")
    check_limit(threshold, level)
    if overlap is not None and not (isinstance(overlap, Real) and 0 < float(overlap) <= 1):
        raise ValueError(f"overlap must be a share above 0, at most 1, got {overlap!r}.")
    before, last = steps_of(make_text_embedding(random_state=0) if pipeline is None else pipeline, n_jobs)
    if before is None:
        raise TypeError(
            f"pipeline must turn texts into groups before it compares them, as make_text_embedding() does, got "
            f"{type(pipeline).__name__}."
        )
    tokenised = TokenisedTexts.of(texts)
    n_texts = len(tokenised)
    if against is not None:
        tokenised = TokenisedTexts([*tokenised, *TokenisedTexts.of(against)])
    words = Tokens.of(tokenised, FOLDED)
    first = _first_equal(tokenised, words)
    kept = np.intersect1d(first, np.flatnonzero(np.diff(words.offsets)))
    copies = NearCopies(words[kept], *_vocabulary(before[0]))
    pairs = copies.pairs() if overlap is None else copies.overlapping(overlap)
    if threshold is None and level is None:
        first[...] = _merged(first, kept, copies.first)
        found: Iterable[Pairs] = ((kept[left], kept[right], distances) for left, right, distances in pairs)
    else:
        groups = before.fit_transform(tokenised[kept])
        if isinstance(groups, Groups):
            warn_of_empty_texts(texts, groups, "and become empty groups", stacklevel=2)
        comparer = fitted_comparer(last, groups)
        limits = duplicate_limits(comparer, threshold, level, random_state=0)
        near = near_pairs(comparer, limits, np.arange(len(kept)), verbose)
        found = _same(near, copies.first, pairs, kept)
    return linked_sets(first, found) if against is None else _matches(n_texts, first, *collected(found))


def _first_equal(texts: TokenisedTexts, words: Tokens) -> np.ndarray:
    """Index of the first text with the same words, for each text; texts without words must be equal."""
    seen: dict[bytes | str, int] = {}
    first = []
    for i, text in enumerate(texts):
        own = words.numbers[words.offsets[i] : words.offsets[i + 1]]
        first.append(seen.setdefault(own.tobytes() or text.strip(), i))
    return np.array(first, dtype=np.intp)


def _merged(first: np.ndarray, kept: np.ndarray, first_of_kept: np.ndarray) -> np.ndarray:
    """Index of the first text that stands for each text, given those that stand for the kept ones among them."""
    new = np.arange(len(first))
    new[kept] = kept[first_of_kept]
    return new[first]


def _vocabulary(vectorizer: Any) -> tuple[Any, bool]:
    """The words that a vectorizer knows, if any, and whether they are in order of frequency.

    Without a table of words, they are the pieces of a static model, among which are the common words.
    """
    if not isinstance(vectorizer, EmbeddingVectorizer):
        return None, False
    table = open_table(vectorizer.vectors)
    if isinstance(table, SideBySide) and isinstance(table.leading, StaticTable) and table.in_order is None:
        pieces = table.leading.pieces
        return None if isinstance(pieces.rows, PieceIds) else pieces, False
    return table.in_order, isinstance(vectorizer.frequencies, str)


def _same(near: Iterable[Pairs], first: np.ndarray, pairs: Iterable[Pairs], kept: np.ndarray) -> Iterator[Pairs]:
    """The near pairs of kept texts that words do not make different, as indices among all texts."""
    left, right, _ = collected(pairs)
    same = np.sort(left * len(kept) + right)
    for left, right, distances in near:
        one, other = np.sort([first[left], first[right]], axis=0)
        chosen = (one == other) | np.isin(one * len(kept) + other, same)
        yield kept[left[chosen]], kept[right[chosen]], distances[chosen]


def _matches(n: int, first: np.ndarray, left: np.ndarray, right: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Each of the first n texts that is among the others, and the nearest of these: the first, if several are."""
    nobody = len(first)
    other = np.full(nobody, nobody)
    np.minimum.at(other, first[n:], np.arange(n, nobody))
    one, match = np.concatenate([first[:n], left, right]), np.concatenate([first[:n], right, left])
    order = np.lexsort((other[match], np.concatenate([np.full(n, -1.0), distances, distances]), one))
    order = order[other[match[order]] < nobody]
    nodes, place = np.unique(one[order], return_index=True)
    nearest = np.full(nobody, nobody)
    nearest[nodes] = other[match[order[place]]]
    found = np.flatnonzero(nearest[first[:n]] < nobody)
    return np.column_stack([found, nearest[first[found]] - n])
