"""Running text, split into sentences by its marks, its lines and a list of English abbreviations.

    text --blank lines, rules, items of lists--> paragraphs --full stops and other marks--> sentences

A mark ends a sentence if white space follows, and then anything but a small letter. Every step takes time in
proportion to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sklearn_mcsg.text.language import STOP_WORDS

_CLOSING = "\"')\\]}\u2019\u201d\u00bb\u203a"
_OPENING = "\"'(\\[{\u00bf\u00a1\u2018\u201c\u201e\u00ab\u2039*_`"
_WITHOUT_SPACE = "\u3002\uff01\uff1f\uff61"
_LETTER = r"[^\W\d_]"
_MARK = re.compile(
    rf"""
    (?<! [.!?\u2026] ) [.!?\u2026\u061f\u06d4\u0964\u0965\u1362]++ [{_CLOSING}]*+ (?= \s )  # before white space
    | [{_WITHOUT_SPACE}]++ [{_CLOSING}\u300d\u300f\uff09]*+                            # Chinese, Japanese
    """,
    re.VERBOSE,
)
_NEXT = re.compile(rf"\s*+[{_OPENING}]*+((?:{_LETTER}|')*+)")
_BEFORE = re.compile(r"(?:^|[^\w.])(\w[\w.]{0,14})$")
_SECOND_LETTER = re.compile(rf"{_LETTER}[\W\d_]*{_LETTER}")
_ITEM = r"(?: [-*+\u2022\u2023\u25e6\u2013] | \#{1,6} | \(?\w{1,3}\) | \d{1,3}\. | [^\W\d_]\. )"  # begins an item
_BREAK = re.compile(
    rf"""
    (?: \A | \n ) (?:
        (?= [^\S\n]* {_ITEM} [^\S\n] )   # before an item
        | (?> (?: (?! \n ) [\W_] )* ) (?= \n | \Z )  # a line without letters and digits
    )
    """,
    re.VERBOSE,
)

_NEVER_LAST = "mr mrs ms dr prof e.g i.e eg ie cf vs viz"
_BEFORE_A_NUMBER = """
    no nos nr p pp vol vols ch chap sec sect fig figs eq eqs art par ver v
    jan feb mar apr jun jul aug sep sept oct nov dec
"""
_OFTEN_INSIDE = """
    inc ltd co corp llc bros dept univ assn jr sr phd ed eds al ave blvd rd st ste mt ft ca approx incl esp resp
    gen col maj lt capt cpt cmdr sgt pvt adm rev hon pres gov sen rep msgr mme mlle
"""
_ABBREVIATIONS = {
    word: list_of_words
    for list_of_words in (_NEVER_LAST, _BEFORE_A_NUMBER, _OFTEN_INSIDE)
    for word in list_of_words.split()
}


def split_sentences(text: str) -> list[str]:
    """Split a running text into sentences.

    Parameters
    ----------
    text : str
        A text. Blank lines, lines without letters and digits, and items of lists separate sentences; other ends of
        lines are white space.

    Returns
    -------
    sentences : list of str
        The sentences, each on one line. What has no letter or digit is left out.

    See Also
    --------
    segment_texts : The segments of a sequence of sentences.

    Notes
    -----
    A full stop, exclamation mark, question mark or ellipsis ends a sentence if white space follows and then anything
    but a small letter. Abbreviations are English: a full stop never ends a sentence after *Dr.* or *e.g.*, nor between
    *Fig.* or *Jan.* and a number. After initials, *Inc.* or *Gen.* it ends one only if a function word such as *The*
    follows, or nothing.

    Examples
    --------
    >>> from sklearn_mcsg.text import split_sentences
    >>> split_sentences('Dr. J. Smith paid $3.50. "Why?" she asked... It was Jan. 5 in the U.S. Nobody knew!')
    ['Dr. J. Smith paid $3.50.', '"Why?" she asked...', 'It was Jan. 5 in the U.S.', 'Nobody knew!']
    """
    return [" ".join(text[start:stop].split()) for start, stop in sentence_spans(text)]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text begin and end, without white space around them."""
    start = 0
    for found in _BREAK.finditer(text):
        yield from _spans(text[start : found.start()], start)
        start = found.end()
    yield from _spans(text[start:], start)


def _spans(paragraph: str, offset: int) -> Iterator[tuple[int, int]]:
    """The sentences of one paragraph, which begins at an offset."""
    start, enough = 0, _enough(paragraph, 0)
    for mark in _MARK.finditer(paragraph):
        if mark.start() >= enough and _ends(paragraph, mark):
            yield from _trimmed(paragraph, start, mark.end(), offset)
            start, enough = mark.end(), _enough(paragraph, mark.end())
    yield from _trimmed(paragraph, start, len(paragraph), offset)


def _enough(paragraph: str, start: int) -> int:
    """Where a sentence that begins at `start` has two letters, without which it would be the number of an item."""
    found = _SECOND_LETTER.search(paragraph, start)
    return found.end() if found else len(paragraph)


def _ends(paragraph: str, mark: re.Match[str]) -> bool:
    """Whether a mark ends a sentence."""
    after = _NEXT.match(paragraph, mark.end())
    following = after[1] if after else ""
    if following[:1].islower():
        return mark[0][0] in _WITHOUT_SPACE
    if mark[0] != ".":
        return True
    before = _BEFORE.search(paragraph, max(0, mark.start() - 16), mark.start())
    kind = _kind(before[1].lower()) if before else None
    is_number = after is not None and paragraph[after.end() : after.end() + 1].isdigit()
    if kind == _NEVER_LAST or (kind == _BEFORE_A_NUMBER and is_number):
        return False
    return kind != _OFTEN_INSIDE or following.lower() in STOP_WORDS or not (following or is_number)


def _kind(word: str) -> str | None:
    """The list of abbreviations that a word without its last full stop is in; initials are often inside a sentence."""
    parts = word.split(".")
    is_initials = all(len(part) == 1 and part.isalpha() for part in parts)
    return _ABBREVIATIONS.get(word, _OFTEN_INSIDE if is_initials else None)


def _trimmed(paragraph: str, start: int, stop: int, offset: int) -> Iterator[tuple[int, int]]:
    """A span without white space around it, if it has a letter or digit."""
    sentence = paragraph[start:stop]
    if any(map(str.isalnum, sentence)):
        start += len(sentence) - len(sentence.lstrip())
        yield offset + start, offset + start + len(sentence.strip())
