"""Tokenisation of texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sklearn_mcsg._memory import CHARACTERS

APOSTROPHES = str.maketrans("\u2019\u02bc", "''")  # typographic to plain apostrophes
MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c).startswith("M"))
WORD = rf"[^\W_]+ (?: [{MARKS}]+ [^\W_]* )*"  # letters and digits with the marks that combine with them
_TOKEN = re.compile(
    rf"""
    (?: [^\W\d_] \. ){{2,}}                      # initials: u.s.
    | (?> \d+ (?: [.,:/] \d+ )* ) (?! -? [^\W_] ) # numbers, times, dates: 1,000.5; but not 20th, 90-day
    | [^\W_]+? (?= n't\b )                       # the word before n't
    | n't\b | '(?: s | re | ve | ll | d | m )\b  # contractions, as in GloVe
    | [od]' {WORD}                               # o'clock
    | {WORD} (?: - {WORD} )*                     # words, also compounds
    | \.{{2,}} | -{{2,}}                          # ellipses and dashes
    | [^\s]                                      # any other character
    """,
    re.VERBOSE | re.IGNORECASE,
)


_SPACE = re.compile(r"\s(?=[A-Za-z0-9])")


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of about a million characters that begin at white space, which no token crosses.

    Parameters
    ----------
    text : str
        A text of any length.

    Yields
    ------
    piece : str
        The pieces, which together are the text. Without white space it stays whole.
    """
    start = 0
    while len(text) - start > CHARACTERS and (space := _SPACE.search(text, start + CHARACTERS)):
        yield text[start : space.start()]
        start = space.start()
    yield text[start:] if start else text


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
        text = unicodedata.normalize("NFC", text).translate(APOSTROPHES)
    return _TOKEN.findall(text)
