"""Tokenisation of texts, in time and memory proportional to their length, whatever they hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from sklearn_mcsg._memory import CHARACTERS

APOSTROPHES = str.maketrans("\u2019\u02bc", "''")  # typographic to plain apostrophes
MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c).startswith("M"))
WORD = rf"[^\W_]+ (?: [{MARKS}]+ [^\W_]* )*"  # letters and digits with the marks that combine with them
_TOKEN = re.compile(
    rf"""
    (?: [^\W\d_] \. ){{2,}}                      # initials: u.s.
    | \d (?<! \d[.,:/]\d ) (?> \d* (?: [.,:/] \d+ )* ) (?! -? [^\W_] )  # numbers: 1,000.5; but not 20th, 90-day
    | \d (?> \d* (?: [.,:/] \d+ ){{0,30}} ) (?! [.,:/] \d | -? [^\W_] )  # the same after x1, in few steps
    | [^\W_]+? (?= n't\b )                       # the word before n't
    | n't\b | '(?: s | re | ve | ll | d | m )\b  # contractions, as in GloVe
    | [od]' {WORD}                               # o'clock
    | {WORD} (?: - {WORD} )*                     # words, also compounds
    | \.{{2,}} | -{{2,}}                          # ellipses and dashes
    | [^\s]                                      # any other character
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_]{4})\s(?=[^\W\d_])")
_SPACE = re.compile(r"\s")
_MOST_MARKS = 30  # in a row, as in Unicode's Stream-Safe Text Format
_MAY_BE_MARKS = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}")


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of bounded length whose tokens are those of the text.

    A piece begins at white space between two words, which no token crosses; without it, at any white space. A text
    without white space is cut anywhere, which divides one word per piece.

    Parameters
    ----------
    text : str
        A text of any length.

    Yields
    ------
    piece : str
        The pieces, which together are the text. Each has at most twice `CHARACTERS` characters.
    """
    start = 0
    while len(text) - start > 2 * CHARACTERS:
        window = start + CHARACTERS, start + 2 * CHARACTERS
        space = _BETWEEN_WORDS.search(text, *window) or _SPACE.search(text, *window)
        stop = space.start() if space else window[1]
        yield text[start:stop]
        start = stop
    yield text[start:] if start else text


def characters_of(text: str) -> str:
    """A text without lone surrogates: pairs become the character that they stand for, halves of pairs U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def normalized(text: str, form: Literal["NFC", "NFKC"]) -> str:
    """A text in a normal form of Unicode, with no more than 30 combining marks in a row, which take quadratic time."""
    return unicodedata.normalize(form, _MAY_BE_MARKS.sub(_with_fewer_marks, text))


def _with_fewer_marks(found: re.Match[str]) -> str:
    kept = []
    n_marks = 0
    for character in found[0]:
        n_marks = n_marks + 1 if unicodedata.category(character).startswith("M") else 0
        if n_marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def tokenize(text: str) -> list[str]:
    """Split a text into words, numbers, contractions and punctuation, as in the vocabulary of GloVe.

    Parameters
    ----------
    text : str
        A text in any script that separates words.

    Returns
    -------
    tokens : list of str
        The tokens, with upper and lower case as in the text.

    Examples
    --------
    >>> from sklearn_mcsg.text import tokenize
    >>> tokenize("They don't pay $1,000.50 in the U.S. - it's well-known...")
    ['They', 'do', "n't", 'pay', '$', '1,000.50', 'in', 'the', 'U.S.', '-', 'it', "'s", 'well-known', '...']
    """
    if not text.isascii():
        text = normalized(text, "NFC").translate(APOSTROPHES)
    return _TOKEN.findall(text)
