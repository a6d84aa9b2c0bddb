"""The words of a text, written in one way: those that make a difference between two texts, and those that make none.

Case, punctuation, spacing, contractions, markup, hyphens at line ends, and numbers in words or digits make no
difference. A sign that carries meaning is a word: a mathematical or currency sign, a minus before a number, %, or an
emoji.
"""

from __future__ import annotations

import html
import re
import unicodedata

from sklearn_mcsg.text._tokenised import Tokenisation
from sklearn_mcsg.text._tokens import APOSTROPHES, CURRENCY, EMOJI, WORD, normalized
from sklearn_mcsg.text._variants import in_digits

_LIGHT_ENGLISH = """
    a an the am is are was were be been being do does did has have had
    and as at by for in it its of on that there this to which who with
    actually already also certainly clearly even indeed just now quite really simply so still then too truly very well
"""  # articles and auxiliaries, function words, adverbs that add little
_NEGATIONS = "not no never nor without nicht kein keine nie ne pas non sans não niet geen inte ikke не"
LIGHT_ENGLISH, NEGATIONS = frozenset(_LIGHT_ENGLISH.split()), frozenset(_NEGATIONS.split())

_INLINE = "a abbr b big center cite code del em font i ins kbd mark q s samp small span strike strong sub sup tt u var"
_BLOCKS = """
    blockquote body br dd div dl dt h1 h2 h3 h4 h5 h6 head hr html img li ol p pre table tbody td th thead tr ul
"""
_VALUE = r"""(?: "[^"<>]*+" | '[^'<>]*+' | [^\s"'<>]++ )"""
_TAG = re.compile(
    rf"""
    < /? (?: (?: {"|".join(_INLINE.split())} ) | ( {"|".join(_BLOCKS.split())} ) )
    (?: \s++ [\w:-]++ \s*+ = \s*+ {_VALUE} )*+ \s*+ /? >
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:\#\d{1,7}|\#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
_LINE_END = re.compile(r"(?<=[^\W\d_]{2})[-\u2010\u00ad][ \t]*\r?\n[ \t]*(?=[^\W\d_]{2})")
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
_EMOJI = re.compile(f"[{EMOJI}]")
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
    r"""The words and signs of a text without case, punctuation, contractions and markup; compounds are split.

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
    form. Each text is therefore read a second time to find duplicates. Very long texts are read in pieces; where two
    pieces meet, a number in words or a tag may be divided.

    Examples
    --------
    >>> from sklearn_mcsg.text.wording import fold
    >>> fold("They DON'T pay $1,000 in the U.S. - it's well-known!")
    ['they', 'do', 'not', 'pay', '$', '1000', 'in', 'the', 'us', 'it', 'well', 'known']
    >>> fold("<b>Twenty-one</b> exam-\nples &amp; more")
    ['21', 'examples', 'more']
    """
    text = _without_markup(text)
    if not text.isascii():
        text = normalized(text.translate(_BEFORE), "NFKC").translate(_VARIANTS)
    text = text.casefold()
    if not any(map(str.isalnum, text)):
        return []
    return in_digits([_plain(token) for token in _TOKEN.findall(_written_out(text))])


FOLDED = Tokenisation(fold, divisible=True)


def is_emoji(word: str) -> bool:
    """Whether a word, as `fold` returns it, is an emoji."""
    return _EMOJI.match(word) is not None


def _without_markup(text: str) -> str:
    """A text without tags of HTML, with characters in place of entities, and with the words that line ends divide."""
    if "<" in text:
        text = _TAG.sub(lambda found: " " if found[1] else "", text)
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return _LINE_END.sub("", text) if "\n" in text else text


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
