"""Which texts say the same in nearly the same words.

    words --spelling, light words left out--> content words --misspelled words corrected--> readings --> pairs

Two texts say the same if they have a reading in common: the same content words, each as often, in an order that moves
whole clauses at most. Texts are grouped by their words, so only texts with the same words are ever compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from math import inf

import numpy as np
from scipy import sparse

from sklearn_mcsg._memory import ROWS, count_within
from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text._misspellings import TYPO_RANK, misspellings
from sklearn_mcsg.text._tokenised import Tokens, items_of
from sklearn_mcsg.text._variants import american
from sklearn_mcsg.text.tables import WordTable
from sklearn_mcsg.text.wording import LIGHT_ENGLISH, NEGATIONS, is_emoji

_LIGHT_RANK = 15  # words at the head of a table that are light, in any language
_MOST_READINGS = 16  # of a text with misspelled words that may stand for several others
_CLAUSE = 3  # content words from which words that move together are a clause
_MOST_CUTS = 8  # places that are tried as the beginning of a clause that has moved
_LEFT_OUT = -1  # stands for a misspelled light word

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


class NearCopies:
    """Texts, to be compared by their words.

    Parameters
    ----------
    words : Tokens
        The words of the texts, as `fold` returns them; no text is without words.
    table : WordTable, default=None
        Word vectors, whose vocabulary tells typing errors from words. Without it, no typing error is recognised.
    ordered : bool, default=False
        Whether the words of the table are in order of frequency.

    Attributes
    ----------
    content : Tokens
        The words of the texts that carry meaning; all words of a text that has only light ones.
    first : ndarray of int of shape (n_texts,)
        The first text that has the same content, for each text.
    """

    def __init__(self, words: Tokens, table: WordTable | None = None, ordered: bool = False):
        self.words, self.table = words, table
        head = table.words[:_LIGHT_RANK] if table is not None and ordered else ()
        light = (LIGHT_ENGLISH | set(head)) - NEGATIONS
        self._is_light = np.array([word in light for word in words.distinct], dtype=bool)
        self._form = _forms(words.distinct)
        self.content = self._content()
        self.first = first_equal(self.content)

    def pairs(self) -> Iterator[Pairs]:
        """Find pairs of texts that say the same though their content words differ in spelling or order.

        Yields
        ------
        left, right : ndarrays of int of shape (n_pairs,)
            Indices of texts, the smaller one first. Of texts with the same content, the first stands for all.
        distances : ndarray of shape (n_pairs,)
            Zeros.
        """
        readings, text_of = self._readings
        several = np.bincount(text_of) > 1
        seen: set[tuple[int, int]] = set()
        for members in _groups(first_equal(_sorted(readings))):
            start, stop = readings.offsets[members[0]], readings.offsets[members[0] + 1]
            words = readings.numbers[readings.offsets[members][:, None] + np.arange(stop - start)]
            for i, j in _alike(words):
                left, right = np.sort([text_of[members[i]], text_of[members[j]]], axis=0)
                new = left != right
                for k in np.flatnonzero(several[left] & several[right] & new):  # other readings may have found it
                    pair = int(left[k]), int(right[k])
                    new[k] = pair not in seen
                    seen.add(pair)
                yield left[new], right[new], np.zeros(np.count_nonzero(new))

    def overlapping(self, least: float) -> Iterator[Pairs]:
        """Find pairs of texts that have a share of their content words in common, in any order.

        Two texts with so many words in common share one of their rarest words, so only such texts are compared.

        Parameters
        ----------
        least : float
            The least share of the longer text.

        Yields
        ------
        left, right : ndarrays of int of shape (n_pairs,)
            Indices of texts, as in `pairs`.
        distances : ndarray of shape (n_pairs,)
            One minus the share in common.
        """
        readings, text_of = self._readings
        texts, best = np.unique(text_of, return_index=True)
        sizes = np.diff(readings.offsets)[best]
        words, rare = _as_sets(_sorted(readings), best, sizes - np.ceil(least * sizes - 1e-9).astype(np.intp) + 1)
        step, n_pairs = count_within(16 * len(texts), ROWS), count_within(64 * sizes.max(initial=1), ROWS)
        for start in range(0, len(texts), step):
            near = sparse.triu(rare[start : start + step] @ rare.T, start + 1, format="coo")
            for batch in range(0, near.nnz, n_pairs):
                i, j = near.row[batch : batch + n_pairs] + start, near.col[batch : batch + n_pairs]
                common = np.asarray(words[i].multiply(words[j]).sum(axis=1)).ravel()
                share = common / np.maximum(sizes[i], sizes[j])
                enough = share >= least - 1e-9
                yield texts[i[enough]], texts[j[enough]], 1 - share[enough]

    def _content(self) -> Tokens:
        """Words that carry meaning, without immediate repetition; numbers may be repeated. Emoji are put last."""
        distinct = self.words.distinct
        text_of = self.words.owners
        heavy = ~self._is_light[self.words.numbers]
        only_light = np.bincount(text_of[heavy], minlength=len(self.words)) == 0
        kept = heavy | only_light[text_of]
        numbers, text_of = self._form[self.words.numbers[kept]], text_of[kept]
        unordered = np.array([is_emoji(word) for word in distinct], dtype=bool)[numbers] | only_light[text_of]
        order = np.lexsort((np.where(unordered, numbers, 0), unordered, text_of))
        numbers, text_of = numbers[order], text_of[order]
        repeatable = np.array([_has_digit(word) for word in distinct], dtype=bool)
        new = np.ones(len(numbers), dtype=bool)
        new[1:] = (numbers[1:] != numbers[:-1]) | (text_of[1:] != text_of[:-1]) | repeatable[numbers[1:]]
        numbers, text_of = self._fused(numbers[new], text_of[new], repeatable)
        return Tokens(distinct, numbers, offsets_of(np.bincount(text_of, minlength=len(self.words))))

    def _fused(self, numbers: np.ndarray, text_of: np.ndarray, has_digit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Neighbours that the corpus also has as one word are that word: e mail, python 3; not 2 1 (21), update d."""
        distinct = self.words.distinct
        places = {
            word: form for word, form, light in zip(distinct, self._form, self._is_light, strict=True) if not light
        }
        codes = numbers[:-1].astype(np.int64) * len(distinct) + numbers[1:]
        codes[text_of[:-1] != text_of[1:]] = -1
        neighbours, place = np.unique(codes, return_inverse=True)
        one = np.full(len(neighbours), -1, dtype=np.intc)
        for k, code in enumerate(neighbours.tolist()):
            a, b = divmod(code, len(distinct))
            if code >= 0 and (len(distinct[b]) > 1 or has_digit[b]) and not (has_digit[a] and has_digit[b]):
                one[k] = places.get(distinct[a] + distinct[b], -1)
        one = one[place]
        kept = np.ones(len(numbers), dtype=bool)
        for k in np.flatnonzero(one >= 0).tolist():
            if kept[k]:
                numbers[k], kept[k + 1] = one[k], False
        return numbers[kept], text_of[kept]

    @cached_property
    def _readings(self) -> tuple[Tokens, np.ndarray]:
        """The first text of each content, with misspelled words corrected in each possible way; and which text it is.

        The reading that is likeliest word by word comes first. A text is left as it is if more than half of its words
        seem to be misspelled.
        """
        meant = self._meant()
        texts = np.unique(self.first)
        positions, offsets = items_of(self.content.offsets, texts)
        numbers = self.content.numbers[positions]
        is_wrong = np.isin(numbers, list(meant))
        parts, text_of = [], []
        for k, text in enumerate(texts.tolist()):
            own = numbers[offsets[k] : offsets[k + 1]]
            wrong = np.flatnonzero(is_wrong[offsets[k] : offsets[k + 1]])
            if not len(wrong) or 2 * len(wrong) > len(own):
                parts.append(own)
                text_of.append(text)
                continue
            for choice in _choices([meant[number] for number in own[wrong].tolist()]):
                read = own.copy()
                read[wrong] = choice
                parts.append(read[read != _LEFT_OUT])
                text_of.append(text)
        empty = np.empty(0, dtype=np.intc)
        offsets = offsets_of(np.array([len(part) for part in parts], dtype=np.intp))
        readings = Tokens(self.words.distinct, np.concatenate([empty, *parts]), offsets)
        return readings, np.array(text_of, dtype=np.intp)

    def _meant(self) -> dict[int, list[int]]:
        """The words that misspelled content words may stand for."""
        if self.table is None:
            return {}
        distinct = self.words.distinct
        unknown = inf if len(self.table.words) >= TYPO_RANK else TYPO_RANK
        rows = np.array([self.table.rows[word] for word in distinct])
        ranks = np.where(rows >= 0, rows, unknown)
        np.minimum.at(ranks, self._form, ranks.copy())
        used = np.union1d(self.content.numbers, np.flatnonzero(self._is_light)).tolist()
        number_of = {distinct[k]: _LEFT_OUT if self._is_light[k] else k for k in used}
        found = misspellings({distinct[k]: float(ranks[k]) for k in used})
        return {number_of[word]: [number_of[other] for other in others] for word, others in found.items()}


def _forms(distinct: list[str]) -> np.ndarray:
    """Number of the first word that is the same in another spelling, for each word."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(american(word), k) for k, word in enumerate(distinct)], dtype=np.intc)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _choices(alternatives: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """One of the alternatives at each place, in all combinations, of which there are few."""
    room = _MOST_READINGS
    limited = []
    for own in alternatives:
        limited.append(own[: min(len(own), room)])
        room //= len(limited[-1])
    return product(*limited)


def _sorted(tokens: Tokens) -> Tokens:
    """The tokens of each text in the order of their numbers."""
    return Tokens(tokens.distinct, tokens.numbers[np.lexsort((tokens.numbers, tokens.owners))], tokens.offsets)


def first_equal(tokens: Tokens, texts: Sequence[str] | None = None) -> np.ndarray:
    """Index of the first text with the same tokens, for each text; without tokens, `texts` must be equal if given."""
    seen: dict[bytes | str, int] = {}
    content, starts = tokens.numbers.tobytes(), tokens.offsets * tokens.numbers.itemsize
    first = []
    for i in range(len(tokens)):
        own = content[starts[i] : starts[i + 1]]
        first.append(seen.setdefault(own if own or texts is None else texts[i].strip(), i))
    return np.array(first, dtype=np.intp)


def _groups(first: np.ndarray) -> Iterator[np.ndarray]:
    """The indices of each group of two or more that have the same number."""
    order = np.argsort(first, kind="stable")
    starts = np.flatnonzero(np.diff(first[order], prepend=-1))
    stops = np.append(starts[1:], len(order))
    for k in np.flatnonzero(stops - starts > 1):
        yield order[starts[k] : stops[k]]


def _alike(words: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of rows with the same words in the same order, or with one clause moved."""
    n, length = words.shape
    step = count_within(32 * n * length, ROWS)
    for start in range(0, n, step):
        i, j = np.nonzero(np.arange(start, min(n, start + step))[:, None] < np.arange(n))
        i += start
        same = _is_moved(words[i], words[j])
        yield i[same], j[same]


def _is_moved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether rows of the same words are equal, or neighbouring parts of one row have changed places in the other.

        a   x x 1 2 3 4 5 y
        b   x x 4 5 1 2 3 y

    One of the parts is a clause. Two short ones may be names or objects that have changed places.
    """
    differs = a != b
    same = ~differs.any(axis=1)
    first, last = differs.argmax(axis=1), a.shape[1] - 1 - differs[:, ::-1].argmax(axis=1)
    for start, stop in ((first, last + 1), (np.zeros_like(first), np.full_like(last, a.shape[1]))):
        rest = np.flatnonzero(~same)  # both parts may begin with the same words, and then the whole row is tried
        same[rest] = _is_turned(a[rest], b[rest], start[rest, None], stop[rest, None])
    return same


def _is_turned(a: np.ndarray, b: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Whether rows are equal up to a rotation of their words from start to stop, by which a clause has moved."""
    turned = np.zeros(len(a), dtype=bool)
    columns = np.arange(a.shape[1])
    inside = (columns >= start) & (columns < stop)
    begins, ends = np.take_along_axis(b, start, 1), np.take_along_axis(b, stop - 1, 1)
    cuts = inside & (columns > start) & (a == begins) & (np.roll(a, 1, axis=1) == ends)  # where b may begin in a
    for _ in range(_MOST_CUTS):
        rows = np.flatnonzero(cuts.any(axis=1))
        if not len(rows):
            break
        cut = cuts[rows].argmax(axis=1)[:, None]
        first, n, moved = start[rows], stop[rows] - start[rows], cut - start[rows]
        source = np.where(inside[rows], first + (columns - first + moved) % n, columns)
        is_equal = (np.take_along_axis(a[rows], source, 1) == b[rows]).all(axis=1)
        turned[rows] |= is_equal & (np.maximum(moved, n - moved) >= _CLAUSE)[:, 0]
        cuts[rows, cut[:, 0]] = False
    return turned


def _as_sets(tokens: Tokens, texts: np.ndarray, n_rare: np.ndarray) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Which text has which word, and the same for the rarest words of each alone; words that return are other words."""
    positions, offsets = items_of(tokens.offsets, texts)
    numbers = tokens.numbers[positions].astype(np.int64)
    text_of = np.repeat(np.arange(len(texts)), np.diff(offsets))
    begins = np.ones(len(numbers), dtype=bool)
    begins[1:] = (numbers[1:] != numbers[:-1]) | (text_of[1:] != text_of[:-1])
    starts = np.flatnonzero(begins)
    time = np.arange(len(numbers)) - np.repeat(starts, np.diff(np.append(starts, len(numbers))))
    _, words, counts = np.unique(numbers * (1 + time.max(initial=0)) + time, return_inverse=True, return_counts=True)
    order = np.lexsort((words, counts[words], text_of))
    words = words[order]
    is_rare = np.arange(len(words)) - offsets[text_of] < n_rare[text_of]
    shape = len(texts), len(counts)
    whole = sparse.csr_matrix((np.ones(len(words), dtype=np.intc), (text_of, words)), shape)
    part = sparse.csr_matrix((np.ones(int(is_rare.sum()), dtype=np.intc), (text_of[is_rare], words[is_rare])), shape)
    return whole, part
