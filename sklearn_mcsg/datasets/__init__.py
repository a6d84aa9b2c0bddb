"""Datasets: a small collection of short texts with topics, for examples and tests.

In comes nothing; out go texts and their topics, as a Bunch, a pair or a data frame.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklearn_mcsg._extras import import_extra

__all__ = ["load_short_texts"]

_DESCR = """Short texts on everyday topics
==============================

360 texts in English, 30 on each of 12 topics: animals, astronomy, computing, cooking, finance, football, gardening,
health, law, music, travel and weather. A text is one or two sentences of 11 to 20 words: a statement, a question, a
notice, an advertisement, a piece of advice. The topics are mixed in a fixed order.

Each topic has one pair of paraphrases: two texts that say nearly the same thing in different words.

The texts were written for this package and come under its licence. They are an example, not a benchmark: after a first
look at neighbours and clusters, all texts of fewer than 12 words were made longer and plainer, whether or not they had
been placed correctly.
"""


def load_short_texts(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load 360 short texts on 12 everyday topics.

    ==================  ========
    Topics                    12
    Texts per topic           30
    Texts in all             360
    Words in a text     11 to 20
    ==================  ========

    Each topic has one pair of texts that say nearly the same thing in different words.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether to return pandas objects. Needs pandas.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like, with the following attributes.

        data : list of str, or Series named "text"
            The texts.
        target : ndarray of shape (360,), or Series named "target"
            The topic of each text, as an index into `target_names`.
        target_names : list of str
            The topics, in alphabetical order.
        frame : DataFrame of shape (360, 2) or None
            `data` and `target`. None unless ``as_frame=True``.
        DESCR : str
            Description of the data set.
    (data, target) : tuple if ``return_X_y=True``
        The texts and their topics, as above.

    Examples
    --------
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> texts = load_short_texts()
    >>> texts.data[0]
    'Hedgehogs roll into a ball when frightened and spend the cold months asleep.'
    >>> texts.target_names[texts.target[0]]
    'animals'
    >>> X, y = load_short_texts(return_X_y=True)
    >>> len(X), y.shape
    (360, (360,))
    """
    data, topics = _read()
    names, target = np.unique(topics, return_inverse=True)
    frame = None
    if as_frame:
        frame = import_extra("pandas", "as_frame=True").DataFrame({"text": data, "target": target})
        data, target = frame["text"], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, frame=frame, target_names=names.tolist(), DESCR=_DESCR)


def _read() -> tuple[Any, list[str]]:
    path = files("sklearn_mcsg") / "datasets" / "short_texts.csv"
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    return [row["text"] for row in rows], [row["topic"] for row in rows]
