"""The words that make the difference between two samples of texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from sklearn_mcsg.groups import Groups
from sklearn_mcsg.samples import SampleComparison
from sklearn_mcsg.text.language import STOP_WORDS


class DecidingWord(NamedTuple):
    """A word, the shares of the texts of both samples that have it, and its share of the difference."""

    word: str
    first: float
    second: float
    part: float


def deciding_words(found: SampleComparison, groups: Groups) -> list[DecidingWord]:
    """Words that make the difference between two samples, the most important first, without regard to case.

    `groups` are those of the first sample, followed by those of the second. Stop words, numbers, and words that equal
    shares of both samples have, are left out.
    """
    labels: Any = groups.labels
    spellings = Counter(labels.tolist())
    parts: defaultdict[str, float] = defaultdict(float)
    for word, both in found.words.items():
        parts[word.lower()] += float(both.sum())
    shares = _shares_of_texts(labels, groups, len(found.groups[0]))
    shown = {word.lower(): word for word, _ in reversed(spellings.most_common())}
    return [
        DecidingWord(shown[word], *shares[word], part / found.statistic)
        for word, part in sorted(parts.items(), key=lambda item: -item[1])
        if part > 0 and shares[word][0] != shares[word][1] and word not in STOP_WORDS and any(map(str.isalpha, word))
    ]


def _shares_of_texts(labels: np.ndarray, groups: Groups, n: int) -> dict[str, tuple[float, float]]:
    """Shares of the first `n` texts and of the others that have each word, in lower case."""
    names, numbers = np.unique([label.lower() for label in labels.tolist()], return_inverse=True)
    owners = np.repeat(np.arange(len(groups)), groups.sizes)
    owners, words = np.divmod(np.unique(owners * len(names) + numbers), len(names))
    first, second = (
        np.bincount(words[rows], minlength=len(names)) / size
        for rows, size in ((owners < n, n), (owners >= n, len(groups) - n))
    )
    return dict(zip(names.tolist(), zip(first.tolist(), second.tolist(), strict=True), strict=True))
