"""Saved indexes of texts: opened, updated or rebuilt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sklearn_mcsg import storage
from sklearn_mcsg._version import __version__
from sklearn_mcsg.search.neighbors import GroupNeighbors
from sklearn_mcsg.similarity.estimator import split_pipeline
from sklearn_mcsg.text._search import TextSearch
from sklearn_mcsg.text.tables import files_of


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
    path: Any, similarity: Any, texts: Sequence[str], *, n_jobs: int | None = None, verbose: int = 0
) -> IndexUpdate:
    """Open the saved index of a list of texts; add missing texts, or rebuild it if it does not match.

    A saved index matches if it was made by the same version, with the same parameters and word vectors, and holds the
    first texts of the list.

    Parameters
    ----------
    path : str or path-like
        The folder of the index.
    similarity : Pipeline or TextSearch
        The unfitted pipeline to compare texts with, as `make_text_similarity` or `make_text_embedding` builds it, or a
        search that is to be saved with the words of the texts.
    texts : sequence of str
        All texts.
    n_jobs : int, default=None
        Number of jobs.
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
    jobs: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    storage.check_place(path)
    note = storage.read_note(path)
    n_reused = _n_reusable(similarity, texts, note)
    wanted = clone(similarity) if isinstance(similarity, TextSearch) else GroupNeighbors(similarity)
    if n_reused:
        index = storage.load(path, type(wanted)).set_params(**jobs)
        if n_reused == len(texts):
            return IndexUpdate(index, n_reused, replaced=False)
        index.partial_fit(texts[n_reused:])
    else:
        index = wanted.set_params(**jobs).fit(texts)
    storage.save(path, index, note=[len(texts), _fingerprint(similarity, texts)])
    return IndexUpdate(index, n_reused, replaced=note is not None and not n_reused)


def _n_reusable(similarity: Any, texts: Sequence[str], note: Any) -> int:
    """Number of leading texts that a saved index holds; 0 if its texts or settings differ."""
    match note:
        case [int(n_texts), str(fingerprint)] if fingerprint == _fingerprint(similarity, texts[:n_texts]):
            return n_texts
    return 0


def _fingerprint(similarity: Any, texts: Sequence[str]) -> str:
    """A hash of everything that an index depends on."""
    arrays: list[np.ndarray] = []
    before, _ = split_pipeline(similarity.pipeline if isinstance(similarity, TextSearch) else similarity)
    vectors = getattr(before[0], "vectors", None) if before is not None else None
    state = [[file.stat().st_mtime_ns, file.stat().st_size] for file in files_of(vectors) if file.exists()]
    settings = [__version__, storage.encode(clone(similarity), arrays), state]
    digest = hashlib.sha256(json.dumps([settings, list(texts)]).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
