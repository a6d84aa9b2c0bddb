"""Saved indexes of texts: opened again, and brought up to date with the texts that were added."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sklearn.base import clone

from sklearn_mcsg import storage
from sklearn_mcsg._version import __version__
from sklearn_mcsg.search import GroupNeighbors
from sklearn_mcsg.text._search import TextSearch
from sklearn_mcsg.text._tokenised import TokenisedTexts, check_texts


class IndexUpdate(NamedTuple):
    """An index of texts, and how it was obtained.

    Attributes
    ----------
    index : GroupNeighbors or TextSearch
        The index, which holds all texts.
    n_reused : int
        Number of texts that the saved index already held; 0 if it was rebuilt.
    replaced : bool
        Whether a saved index of other texts or settings was replaced.
    """

    index: Any
    n_reused: int
    replaced: bool


def update_index(
    path: Any, similarity: Any, texts: Iterable[str], *, n_jobs: int | None = None, verbose: int = 0
) -> IndexUpdate:
    """Open the saved index of a list of texts; add missing texts, or rebuild it if it does not match.

    A saved index matches if it was made by the same version, with the same parameters and word vectors, and holds the
    first texts of the list.

    Parameters
    ----------
    path : str or path-like
        The folder of the index.
    similarity : Pipeline or TextSearch
        What compares groups: a pipeline for texts that is not fitted, as `make_text_similarity` or
        `make_text_embedding` builds it, or a search that is to be saved with the words of the texts.
    texts : iterable of str
        The texts: all that the index is to hold.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    update : IndexUpdate
        With `index`, `n_reused` and `replaced`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn_mcsg import TextSearch, update_index
    >>> texts = ["A cat sat on the mat.", "Shares fell on Monday.", "It rained all day."]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = update_index(Path(folder, "index"), TextSearch(), texts[:2])
    ...     second = update_index(Path(folder, "index"), TextSearch(), texts)
    >>> first.n_reused, second.n_reused, second.index.n_texts_
    (0, 2, 3)
    """
    texts = texts if isinstance(texts, TokenisedTexts) else list(check_texts(texts))
    storage.check_place(path)
    note = storage.read_note(path)
    index = clone(similarity) if isinstance(similarity, TextSearch) else GroupNeighbors(similarity)
    while n_reused := _n_reusable(similarity, texts, note):
        try:
            index = storage.load(path, type(index), note=note)
            break
        except storage.ReplacedError:  # by another process, since its note was read
            note = storage.read_note(path)
    index.set_params(n_jobs=n_jobs, verbose=verbose)
    if n_reused and n_reused == len(texts):
        return IndexUpdate(index, n_reused, replaced=False)
    fingerprint = _fingerprint(similarity, texts)  # before the word vectors are read: afterwards, they may be others
    index = index.partial_fit(texts[n_reused:]) if n_reused else index.fit(texts)
    storage.save(path, index, note=[len(texts), fingerprint])
    return IndexUpdate(index, n_reused, replaced=note is not None and not n_reused)


def _n_reusable(similarity: Any, texts: Sequence[str], note: Any) -> int:
    """Number of leading texts that a saved index holds; 0 if its texts or settings differ."""
    match note:
        case [int(n_texts), str(fingerprint)] if 0 < n_texts <= len(texts):
            return n_texts if fingerprint == _fingerprint(similarity, texts[:n_texts]) else 0
    return 0


def _fingerprint(similarity: Any, texts: Sequence[str]) -> str:
    """A hash of everything that an index depends on."""
    settings = [__version__, storage.fingerprint(clone(similarity))]
    return hashlib.sha256(json.dumps([settings, list(texts)]).encode()).hexdigest()
