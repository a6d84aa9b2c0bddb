"""Which words of a corpus are misspellings of other words in it.

A misspelling is a word that is rare in the vocabulary or missing, and one typing error away from a frequent word.
A word that even a large vocabulary lacks is hardly a word: it may have two errors, if it is long, its first two letters
may be exchanged, and its last one may be missing. In rare words, such a change often makes another name, or another
form of a word.

Two words that are a few edits apart are equal after a few letters have been left out of each, so words are looked up by
what is left of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf

_ESTABLISHED_RANK = 30_000  # rank up to which a word is what its author meant
TYPO_RANK = 100_000  # rank from which a word may be a misspelling of an established one
_SHORTEST, _LONGEST = 4, 32  # letters of a word that may have a typing error
_LONG = 8  # letters from which a word may have two
_ENDING = 3  # letters at the end of a word that two errors would make another form of it


def misspellings(ranks: Mapping[str, float]) -> dict[str, list[str]]:
    """The established words that each misspelled word may stand for, the likeliest first.

    Parameters
    ----------
    ranks : mapping from str to float
        Words and their ranks in a vocabulary, from the most frequent on; infinity for words that are hardly words.

    Returns
    -------
    meant : dict from str to list of str

    Examples
    --------
    >>> from math import inf
    >>> from sklearn_mcsg.text._misspellings import misspellings
    >>> misspellings({"storm": 3000, "stork": 20000, "stomr": inf, "storn": inf, "zortanol": inf})
    {'stomr': ['storm'], 'storn': ['storm', 'stork']}
    """
    known, rare = defaultdict(list), defaultdict(list)  # by first letter
    for word, rank in ranks.items():
        if _SHORTEST <= len(word) <= _LONGEST and word.isalpha():
            if rank < _ESTABLISHED_RANK:
                known[word[0]].append(word)
            elif rank >= TYPO_RANK:
                rare[word[0]].append(word)
    meant = {}
    for letter in rare:
        by_rest = defaultdict(list)
        for word in known[letter]:
            for rest in _rests(word, _most_errors(word)):
                by_rest[rest].append(word)
        for word in rare[letter]:
            most = _most_errors(word) if ranks[word] == inf else 1
            near = {other for rest in _rests(word, most) for other in by_rest.get(rest, ())}
            turned = word[1] + word[0] + word[2:]
            errors = {other: errors_between(word, other, ranks[word]) for other in (*near, turned)}
            likely = [other for other, n in errors.items() if n and ranks.get(other, inf) < _ESTABLISHED_RANK]
            if likely:
                meant[word] = sorted(likely, key=lambda other: (errors[other], ranks[other]))
    return meant


def _most_errors(word: str) -> int:
    return 2 if len(word) >= _LONG else 1


def _rests(word: str, most: int) -> Iterator[str]:
    """What is left of a word without up to `most` letters; the first one stays."""
    yield word
    for n in range(1, 1 + most):
        for left_out in combinations(range(1, len(word)), n):
            yield "".join(letter for i, letter in enumerate(word) if i not in left_out)


def errors_between(wrong: str, right: str, rank: float) -> int:
    """Number of typing errors that make one word of another, given the rank of the wrong one; 0 if they cannot."""
    start, n = edits(wrong, right)
    if rank < inf:
        is_form = wrong.startswith(right) or right.startswith(wrong)
        return n if n == 1 and start > 0 and not is_form else 0
    if n == 1:
        exchanged = wrong[:2] == right[1::-1] and wrong[2:] == right[2:]
        return n if (start > 0 or exchanged) and not wrong.startswith(right) else 0
    is_form = max(len(wrong), len(right)) - start <= _ENDING
    return n if n == 2 and min(len(wrong), len(right)) >= _LONG and start > 0 and not is_form else 0


def edits(a: str, b: str) -> tuple[int, int]:
    """Where two words begin to differ, and how many edits turn one into the other.

    Edits are insertions, deletions, replacements and exchanges of neighbours (optimal string alignment).
    """
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            fewest = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                fewest = min(fewest, last[j - 2] + 1)
            row.append(fewest)
    return start, row[-1]
