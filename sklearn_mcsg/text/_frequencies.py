"""Frequencies of words: from counts, or from the rank of words in a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sklearn_mcsg.text.tables import WordTable

# Frequent words of three letters or more, by language. Shorter ones also come first in tables sorted by length.
COMMON = """\
    the and for that with was from are this not
    der die und den von das mit ist des auf
    les des que une est dans pour qui par sur
    que los del las por con para una como más
    che per una con del sono della non gli alla
    que não para com uma dos por como mais das
    het een van dat zijn voor met niet aan ook
    och att det som för den med inte har till
    nie się jest jak tak ale dla przez czy był
    что как это для был она они или при уже
""".splitlines()
_ENOUGH = 4  # common words of one language that must be in a table to judge by
_FEWEST = 50  # words without which the order of a table cannot be judged
_SAMPLE = 2000  # words whose lengths are compared
_SORTED = 0.9  # share of neighbours in alphabetical order above which that is the order; 0.5 by chance
_GROWTH = 0.1  # rank correlation of length and rank: 0.37 for GloVe, 0.4 to 0.5 for its first 200 to 10,000 words


def zipf(ranks: np.ndarray, n_words: int) -> np.ndarray:
    """Frequency of words by Zipf's law, from their ranks, counted from 0."""
    return 1 / ((ranks + 2.7) * np.log(max(2, n_words)))


def divisor(frequencies: Mapping[str, Any]) -> float:
    """What to divide frequencies by: the sum of counts, or 1 for probabilities."""
    try:
        values = np.fromiter(frequencies.values(), dtype=np.float64, count=len(frequencies))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    counts = bool((values == np.floor(values)).all())
    if not (np.isfinite(values) & (values >= 0)).all() or (not counts and values.max() > 1):
        raise ValueError("frequencies must be counts, which are whole numbers, or probabilities between 0 and 1.")
    return max(values.sum(), 1.0) if counts else 1.0


def warn_unless_in_order(table: WordTable, stacklevel: int) -> None:
    """Warn if the words of a table do not seem to be in order of frequency."""
    reason = _disorder(table)
    if reason:
        warnings.warn(
            f"frequencies='zipf' needs word vectors in order of frequency, but these {len(table.words)} do not seem to "
            f"be: {reason}. Pass frequencies as a mapping of words to counts, or weighting='norm', which needs none.",
            stacklevel=stacklevel + 1,
        )


def _disorder(table: WordTable) -> str:
    """Why the words of a table do not seem to be in order of frequency, or nothing.

    Common words of a known language must be among the first, if most words of the table have letters of that language.
    In any other language, frequent words are short.
    """
    words, n_words = table.words, len(table.words)
    if n_words < _FEWEST:
        return ""
    starts = np.unique(np.linspace(0, n_words - 2, _SAMPLE).astype(int)).tolist()
    lines = [line for line in COMMON if _is_written_like(line, (words[i] for i in starts))]
    languages = [sorted(table.rows[word] for word in line.split() if word in table.rows) for line in lines]
    medians = [ranks[len(ranks) // 2] for ranks in languages if len(ranks) >= _ENOUGH]
    if medians:
        first = min(medians)
        late = first >= max(_FEWEST, n_words // 100)
        return f"the common word {words[first]!r} is only number {first + 1}" if late else ""
    if np.mean([words[i] < words[i + 1] for i in starts]) > _SORTED:
        return "they are in alphabetical order"
    from scipy.stats import spearmanr

    ranks = np.unique(np.geomspace(1, n_words, _SAMPLE).astype(int)) - 1
    lengths = [len(words[rank]) for rank in ranks]
    grows = len(set(lengths)) > 1 and spearmanr(ranks, lengths).statistic > _GROWTH
    return "" if grows else "frequent words are short, but the first words are no shorter than the others"


def _is_written_like(line: str, words: Iterable[str]) -> bool:
    """Whether most words have a letter of a line of other words."""
    letters = set("".join(line.split()))
    return bool(np.mean([not letters.isdisjoint(word) for word in words]) > 0.5)
