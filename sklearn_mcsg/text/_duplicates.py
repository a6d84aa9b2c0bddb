"""Near-duplicate texts: without a word that makes a difference and, if that is asked for, near by their embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, overload

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_mcsg.groups import Groups
from sklearn_mcsg.search.duplicates import check_limit, collected, duplicate_limits, linked_sets, near_pairs, steps_of
from sklearn_mcsg.similarity import fitted_comparer
from sklearn_mcsg.text._near_copies import NearCopies, Pairs, first_equal
from sklearn_mcsg.text._recipes import make_text_embedding
from sklearn_mcsg.text._tokenised import TokenisedTexts, Tokens
from sklearn_mcsg.text._vectorizer import EmbeddingVectorizer, warn_of_empty_texts
from sklearn_mcsg.text.sources import open_table
from sklearn_mcsg.text.tables import PieceIds, SideBySide, StaticTable
from sklearn_mcsg.text.wording import FOLDED


@overload
def find_duplicate_texts(
    texts: Iterable[str],
    *,
    against: None = None,
    overlap: float | None = None,
    threshold: float | None = None,
    level: float | None = None,
    pipeline: Pipeline | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[np.ndarray]: ...


@overload
def find_duplicate_texts(
    texts: Iterable[str],
    *,
    against: Iterable[str],
    overlap: float | None = None,
    threshold: float | None = None,
    level: float | None = None,
    pipeline: Pipeline | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray: ...


def find_duplicate_texts(
    texts: Iterable[str],
    *,
    against: Iterable[str] | None = None,
    overlap: float | None = None,
    threshold: float | None = None,
    level: float | None = None,
    pipeline: Pipeline | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[np.ndarray] | np.ndarray:
    """Find sets of texts that say the same in nearly the same words.

    Two texts are duplicates if no word makes a difference. Case, punctuation, spacing, contractions, articles,
    auxiliaries, adverbs such as "really", typing errors, British and American spelling, numbers in words or digits,
    HTML, hyphens at line ends and the place of a clause make no difference. A number, a name, a negation or any other
    content word that only one of the texts has makes one. So do two names that have changed places, a mathematical or
    currency sign, a minus before a number, "%" or an emoji. All texts of a set are duplicates of each other.

    Parameters
    ----------
    texts : iterable of str
        The texts. Texts without words are duplicates if they are equal.
    against : iterable of str, default=None
        Other texts. If given, the texts are compared with these, and not with each other: which texts for training are
        also among those for testing?
    overlap : float, default=None
        The least share of words in common, above 0 and at most 1, for texts of which a part is the same, such as a text
        with another last sentence. It is the share of the longer text's content words that the other one has too, in
        any order. ``None`` means the strict rule above.
    threshold : float, default=None
        Largest distance between duplicates: one minus the cosine of their embeddings. ``None`` means that words alone
        decide.
    level : float, default=None
        Accepted rate of false positives: random pairs within the threshold. It takes the place of a threshold, as in
        `find_duplicates`. Words are compared in any case, so fewer false duplicates are found.
    pipeline : Pipeline, default=None
        Pipeline for texts: the vocabulary of its vectors tells typing errors from words, and with a threshold or a
        level it turns texts into embeddings. ``None`` means `make_text_embedding`. A pipeline whose last step compares
        groups also works, with the threshold in its output.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    duplicates : list of ndarray, or ndarray of shape (n_found, 2)
        Indices of each set of two texts or more, in increasing order. With `against`, one row for each text that is
        also among the others: its index, and the index of its nearest duplicate in `against`, the first of several.

    Notes
    -----
    Texts are grouped by their words, and only texts of a group are compared, so time grows about as fast as the number
    of texts. With a threshold or a level, the embeddings of all pairs are compared as well.

    A clause is moved if neighbouring parts of a text have changed places and one of them has three content words or
    more. Shorter parts may be names or objects: "dog bites man" and "man bites dog" are not duplicates.

    An emoji counts as a word, because it may reverse the meaning: "Well done" and "Well done" with an angry face are
    not duplicates. Its place, its repetition and its skin tone make no difference. Stars, bullets, arrows between words
    and trademark signs are punctuation.

    The lists of light words and of number words and the rules of spelling are English. In other languages the most
    frequent words of the vectors are light, such as articles, and other words make a difference. A misspelling is
    recognised if the right word is in the texts, too, and if the vectors know it well and the wrong word hardly or not
    at all. Two errors in a word of eight letters or more are recognised if the vectors know 100,000 words or more.

    Examples
    --------
    >>> from sklearn_mcsg import find_duplicate_texts
    >>> texts = [
    ...     "The ferry doesn't leave before 9.",
    ...     "The ferry does not leave before nine!",
    ...     "The ferry does not leave before 8.",
    ...     "The ferry does leave before 9.",
    ...     "the FERY does not really leave before 9",
    ... ]
    >>> find_duplicate_texts(texts)
    [array([0, 1, 4])]
    >>> find_duplicate_texts(texts, overlap=0.6)
    [array([0, 1, 2, 3, 4])]
    >>> find_duplicate_texts(texts, against=["Ferries are late", "Does the ferry leave before 8?", texts[3]])
    array([[3, 2]])
    """
    if threshold is not None and level is not None:
        raise ValueError("find_duplicate_texts takes a threshold or a level, not both.")
    check_limit(threshold, level)
    if threshold is not None and threshold < 0:
        raise ValueError(f"threshold must be a distance, which is at least 0, got {threshold}.")
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
    first = first_equal(words, tokenised.texts)
    kept = np.intersect1d(first, np.flatnonzero(np.diff(words.offsets)))
    copies = NearCopies(words[kept], *_vocabulary(before[0]))
    pairs = copies.pairs() if overlap is None else copies.overlapping(overlap)
    found: Iterable[Pairs] = ()
    if threshold is None and level is None:
        first = _merged(first, kept, copies.first)
        found = ((kept[left], kept[right], distances) for left, right, distances in pairs)
    elif len(kept) > 1 or level is not None:
        groups = before.fit_transform(tokenised[kept])
        if isinstance(groups, Groups):
            empty = np.isin(first, kept[groups.sizes == 0])[:n_texts]
            warn_of_empty_texts(texts, empty, "and become empty groups", stacklevel=2)
        comparer = fitted_comparer(last, groups)
        limits = duplicate_limits(comparer, threshold, level, random_state=0)
        near = near_pairs(comparer, limits, np.arange(len(kept)), verbose)
        found = _same(near, copies.first, pairs, kept)
    return linked_sets(first, found) if against is None else _matches(n_texts, first, *collected(found))


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
