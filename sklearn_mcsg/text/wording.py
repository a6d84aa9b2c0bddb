"""Whether two texts say the same in nearly the same words.

    text --fold--> words --> content words that only one text has --typing errors matched--> differences

Case, punctuation, spacing, contractions and light words make no difference, and neither does the order of clauses. A
number, a name, a negation or any other content word makes one, however near its vector is to another. So does a sign
that carries meaning: a mathematical or currency sign, a minus before a number, %, an emoji.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from math import inf

import numpy as np
from scipy import sparse

from sklearn_mcsg._memory import WORD_PAIRS
from sklearn_mcsg.groups import offsets_of
from sklearn_mcsg.text._tokenised import Tokenisation, Tokens
from sklearn_mcsg.text._tokens import APOSTROPHES, CURRENCY, EMOJI, WORD, normalized
from sklearn_mcsg.text.tables import WordTable

_LIGHT_ENGLISH = """
    a an the am is are was were be been being do does did has have had
    and as at by for in it its of on that there this to which who with
    actually already also certainly clearly even indeed just now quite really simply so still then too truly very well
"""  # articles and auxiliaries, function words, adverbs that add little
_NEGATIONS = "not no never nor without nicht kein keine nie ne pas non sans não niet geen inte ikke не"
LIGHT_ENGLISH, NEGATIONS = frozenset(_LIGHT_ENGLISH.split()), frozenset(_NEGATIONS.split())

_LIGHT_RANK = 15  # words at the head of a table that are light, in any language
_ESTABLISHED_RANK = 30_000  # rank up to which a word is what its author meant
_TYPO_RANK = 100_000  # rank from which a word may be a misspelling of an established one
_TYPO_LENGTH = 4  # characters from which a word may have a typing error
_MOST_TYPOS = 300  # words of a text that may have typing errors
_WORDS_PER_CUT = 4  # content words per place where the order of a text may be cut

_NOT = re.compile(r" ?n ?' ?t\b|(?<=\bcan)not\b")
_STEM = re.compile(r"\b(ca|wo|sha)(?= not\b)")
_STEMS = {"ca": "can", "wo": "will", "sha": "shall"}
_CONTRACTION = re.compile(r" ?'(re|ve|ll|d|m|s)\b")
_CONTRACTED = {"re": " are", "ve": " have", "ll": " will", "d": " would", "m": " am", "s": ""}
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_BEFORE = str.maketrans("\u2122\u2120\uff9e\uff9f", "  \u3099\u309a")  # no letters from trademarks; marks as marks
_VARIANTS: dict[int, int | str] = {**APOSTROPHES, 0x2212: "-", 0x2013: "-", 0x2260: "!=", 0x2264: "<=", 0x2265: ">="}
_SEPARATORS = "|~<>\u2190\u2192"  # mathematical signs by their category that often separate or enclose words
_MATHS = "".join(c for c in map(chr, range(0x2C00)) if unicodedata.category(c) == "Sm" and c not in _SEPARATORS)
_MINUS = rf"(?<! [\w.,;!?%°)\]\u2014-] ) (?<! \d[{CURRENCY}] ) [-~]"  # or about: ~5; but not 3-5, 5%-10%, 5€-10€
_IS_EMOJI = re.compile(f"[{EMOJI}]").match
_TOKEN = re.compile(
    rf"""
    (?<! \w ) (?: [^\W\d_] \. )+ [^\W\d_] \b                         # initials: u.s.
    | (?: {_MINUS} )? \d+ (?: [.,:/] \d+ )* (?! [^\W_] )              # numbers and their sign
    | {_MINUS} [{CURRENCY}] (?= \d )                                 # -$5
    | {WORD} (?: [+\#]++ (?! \w ) | \+\+ )?                           # words, c++, c#
    | [\U0001f1e6-\U0001f1ff]{{2}}                                     # flags
    | [%\u2030{CURRENCY}{EMOJI}]
    | (?<! [{_MATHS}] ) [!<>]? [{_MATHS}]{{1,2}} >? (?! [{_MATHS}] )   # = != <= ==, but no lines: ====
    | (?<= \S[ ] ) [<>] (?= [ ]\S ) | (?<= \w ) [<>] (?= \w )         # a > b, a>b; but not <a>
    | (?<! \w ) [<>] (?= \s? \d )                                     # >5
    | (?<= \d ) [*^] (?= \d ) | (?<= \d[ ] ) [*^] (?= [ ]\d )         # 2*3, 2 * 3
    """,
    re.VERBOSE,
)


def fold(text: str) -> list[str]:
    """The words and signs of a text without case, punctuation and contractions; compounds are split.

    Parameters
    ----------
    text : str
        A text.

    Returns
    -------
    words : list of str
        Empty if the text has no letters or digits.

    Notes
    -----
    These words cannot be derived from the tokens of `tokenize`: whether a sign is a minus or an operator depends on the
    characters on both sides of it, contractions are written out across tokens, and characters are normalised in another
    form. Each text is therefore read a second time to find duplicates.

    Examples
    --------
    >>> from sklearn_mcsg.text.wording import fold
    >>> fold("They DON'T pay $1,000 in the U.S. - it's well-known!")
    ['they', 'do', 'not', 'pay', '$', '1000', 'in', 'the', 'us', 'it', 'well', 'known']
    """
    if not text.isascii():
        text = normalized(text.translate(_BEFORE), "NFKC").translate(_VARIANTS)
    text = text.casefold()
    if not any(map(str.isalnum, text)):
        return []
    return [_plain(token) for token in _TOKEN.findall(_written_out(text))]


FOLDED = Tokenisation(fold, divisible=True)


def _written_out(text: str) -> str:
    """A text without contractions."""
    if "'" in text or "cannot" in text:
        text = _STEM.sub(lambda found: _STEMS[found[1]], _NOT.sub(" not", text))
        text = _CONTRACTION.sub(lambda found: _CONTRACTED[found[1]], text)
    return text


def _plain(token: str) -> str:
    """Initials without points, and numbers without separators of thousands."""
    if token[0].isdigit() or token[0] in "-~":
        return token.replace(",", "") if _THOUSANDS.fullmatch(token.lstrip("-~")) else token
    return token.replace(".", "")


class Wordings:
    """The words of texts, to be compared pair by pair.

    Parameters
    ----------
    words : Tokens
        The words of the texts, as `fold` returns them.
    table : WordTable, default=None
        Word vectors, whose vocabulary tells typing errors from words. Without it, no typing error is recognised.
    ordered : bool, default=False
        Whether the words of the table are in order of frequency.
    """

    def __init__(self, words: Tokens, table: WordTable | None = None, ordered: bool = False):
        self.words, self.table = words, table
        head = table.words[:_LIGHT_RANK] if table is not None and ordered else ()
        self.light = (LIGHT_ENGLISH | set(head)) - NEGATIONS
        self.content = self._content()

    def same(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Whether the texts of each pair have no differences.

        Parameters
        ----------
        left, right : ndarrays of int of shape (n_pairs,)
            Indices of the texts.

        Returns
        -------
        same : ndarray of bool of shape (n_pairs,)
        """
        found = np.zeros(len(left), dtype=bool)
        for start in range(0, len(left), WORD_PAIRS):
            batch = slice(start, start + WORD_PAIRS)
            i, j = left[batch], right[batch]
            shared = np.asarray(self._counts[i].minimum(self._counts[j]).sum(axis=1)).ravel()
            likely = np.flatnonzero(2 * shared >= np.maximum(self._sizes[i], self._sizes[j]))
            found[start + likely] = [not self.differences(i[k], j[k]) for k in likely]
        return found

    def differences(self, i: int, j: int) -> list[str]:
        """Words that make two texts differ, those of the first text first; none if the texts say the same."""
        words = _words_of(self.words, i), _words_of(self.words, j)
        content = _words_of(self.content, i), _words_of(self.content, j)
        a, b = Counter(content[0]), Counter(content[1])
        if not a or not b:
            return sorted(set(words[0]) ^ set(words[1]))
        left, right = list((a - b).elements()), list((b - a).elements())
        if 2 * max(len(left), len(right)) > max(a.total(), b.total()) or min(len(left), len(right)) > _MOST_TYPOS:
            return left + right
        if _are_one_word(words[0], left, right) or _are_one_word(words[1], right, left):
            return []
        meant: dict[str, str | None] = {}
        for word in left:
            if (other := self._meant_by(word, right)) is not None:
                right.remove(other)
                meant[word] = other
        for own, other_words in ((left, words[1]), (right, words[0])):
            light = self.light.intersection(other_words)
            meant |= {word: None for word in own if word not in meant and self._meant_by(word, light) is not None}
        unmatched = [word for word in left + right if word not in meant]
        texts = ([meant.get(word, word) for word in text] for text in content)
        return unmatched or _moved(*([word for word in text if word and not _IS_EMOJI(word)] for text in texts))

    @cached_property
    def _counts(self) -> sparse.csr_matrix:
        """How often each text has each content word."""
        ones = np.ones(len(self.content.numbers), dtype=np.intc)
        shape = len(self.content), len(self.content.distinct)
        counts = sparse.csr_matrix((ones, self.content.numbers.copy(), self.content.offsets.copy()), shape)
        counts.sum_duplicates()
        return counts

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.diff(self.content.offsets)

    def _content(self) -> Tokens:
        """Words that carry meaning, without immediate repetition; numbers may be repeated."""
        distinct, numbers = self.words.distinct, self.words.numbers
        text_of = np.repeat(np.arange(len(self.words)), np.diff(self.words.offsets))
        heavy = np.array([word not in self.light for word in distinct], dtype=bool)[numbers]
        numbers, text_of = numbers[heavy], text_of[heavy]
        repeatable = np.array([_has_digit(word) for word in distinct], dtype=bool)[numbers]
        kept = np.ones(len(numbers), dtype=bool)
        kept[1:] = (numbers[1:] != numbers[:-1]) | (text_of[1:] != text_of[:-1]) | repeatable[1:]
        sizes = np.bincount(text_of[kept], minlength=len(self.words))
        return Tokens(distinct, numbers[kept], offsets_of(sizes))

    def _meant_by(self, word: str, others: Iterable[str]) -> str | None:
        """The first of other words that differs from a word by a typing error."""
        return next((other for other in others if self._is_typo(word, other)), None)

    def _is_typo(self, a: str, b: str) -> bool:
        """Whether one word is an established one and the other a misspelling of it, and not another form of it."""
        if self.table is None or min(len(a), len(b)) < _TYPO_LENGTH or a[0] != b[0] or _has_digit(a + b):
            return False
        if a.startswith(b) or b.startswith(a):
            return False
        rows = [self.table.rows[word] for word in (a, b)]
        known, rare = sorted(row if row >= 0 else inf for row in rows)
        return known < _ESTABLISHED_RANK and rare >= _TYPO_RANK and _is_one_edit(a, b)


def _words_of(words: Tokens, i: int) -> list[str]:
    """The words of one text."""
    return [words.distinct[number] for number in words.numbers[words.offsets[i] : words.offsets[i + 1]].tolist()]


def _are_one_word(words: list[str], several: list[str], one: list[str]) -> bool:
    """Whether words that follow each other in a text make up another word: e mail, python 3; but not 2 1 and 21."""
    if len(one) != 1 or "".join(several) != one[0] or sum(map(_has_digit, several)) > 1:
        return False
    return f" {' '.join(several)} " in f" {' '.join(words)} "


def _moved(a: list[str], b: list[str]) -> list[str]:
    """Words that follow each other in one text and not in the other, unless only clauses have moved."""
    before, after = Counter(pairwise(a)), Counter(pairwise(b))
    lost, gained = before - after, after - before
    turned = any(pair[::-1] in gained for pair in lost)
    return [word for pair in lost for word in pair] if turned or lost.total() > len(a) // _WORDS_PER_CUT else []


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _is_one_edit(a: str, b: str) -> bool:
    """Whether one insertion, deletion, replacement or exchange of neighbours turns one word into the other."""
    i = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    exchanged = a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    return exchanged or a[i + 1 :] in (b[i:], b[i + 1 :]) or a[i:] == b[i + 1 :]
