"""Tokenisation of texts, in time and memory proportional to their length, whatever they hold.

Words are those of Unicode (UAX 29), with three differences that word vectors make: contractions are split as in GloVe,
compounds with hyphens stay whole, and full stops and underscores separate words unless they are initials.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from sklearn_mcsg._memory import CHARACTERS

APOSTROPHES = str.maketrans("\u2019\u02bc", "''")  # typographic to plain apostrophes
MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c).startswith("M"))
_JOINERS = "\u00ad\u200c\u200d\u00b7\u0387\u2027\u055f\u05f3\u05f4"  # soft hyphen, joiners, middle dots, gershayim
WORD = rf"[^\W_]+ (?: [{MARKS}]+ [^\W_]* | [{_JOINERS}] [^\W_]+ )*"  # letters and digits, marks and joiners
_CONTRACTED = r"' (?: s | re | ve | ll | d | m )\b"
_TOKEN = re.compile(
    rf"""
    (?: [^\W\d_] \. ){{2,}}                      # initials: u.s.
    | \d (?<! \d[.,:/]\d ) (?> \d* (?: [.,:/] \d+ )* ) (?! -? [^\W_] )  # numbers: 1,000.5; but not 20th, 90-day
    | \d (?> \d* (?: [.,:/] \d+ ){{0,30}} ) (?! [.,:/] \d | -? [^\W_] )  # the same after x1, in few steps
    | [^\W_]+? (?= n't\b )                       # the word before n't
    | n't\b | {_CONTRACTED}                       # contractions, as in GloVe
    | {WORD} (?: (?: - | (?! {_CONTRACTED} ) ' ) {WORD} )*  # words, also compounds and o'clock
    | \.{{2,}} | -{{2,}}                          # ellipses and dashes
    | [^\s]                                      # any other character
    """,
    re.VERBOSE | re.IGNORECASE,
)
CURRENCY = "".join(c for c in map(chr, range(0x2C00)) if unicodedata.category(c) == "Sc")
EMOJI = (  # without skin tones, stars and ornaments
    "\U0001f000-\U0001f3fa\U0001f400-\U0001faff\u2600-\u2604\u2607-\u2720\u274c\u274e\u2763-\u2767\u2795-\u2797"
)
_SIGN = re.compile(rf"[%\u2030{CURRENCY}{EMOJI}]")
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
        A text in any script that puts spaces between words.

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


# Thai, Lao, Tibetan, Burmese, Khmer; kana, Chinese characters
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"
)


def lacks_spaces(token: str) -> bool:
    """Whether a token has letters of a script that does not separate words, such as Chinese, Japanese or Thai."""
    return not token.isascii() and _WITHOUT_SPACES.search(token) is not None


def is_word(token: str) -> bool:
    """Whether a token is read aloud: it has a letter or digit, or is a percent sign, a currency sign or an emoji.

    Parameters
    ----------
    token : str
        A token.

    Returns
    -------
    word : bool
        False for punctuation, bullets, lines, and other marks.

    Examples
    --------
    >>> from sklearn_mcsg.text._tokens import is_word
    >>> [token for token in ["don't", "...", "*", "3.5", "%", "->", "$", "n't"] if is_word(token)]
    ["don't", '3.5', '%', '$', "n't"]
    """
    return any(map(str.isalnum, token)) or _SIGN.search(token) is not None
