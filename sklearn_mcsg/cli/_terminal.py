"""Results on a terminal or in a pipe: tables, JSON, CSV, and coloured words."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TextIO
from unicodedata import category

from wcwidth import wcswidth, wcwidth

_FOR, _AGAINST = "38;5;33", "38;5;208"  # blue and orange, legible on light and dark backgrounds
_CLEAR_TONE = 0.1  # relative to the strongest word; weaker words are not coloured


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours; NO_COLOR and TERM=dumb switch them off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, code: str) -> str:
    """Text in a style, if the terminal supports it."""
    return f"\x1b[{code}m{text}\x1b[0m" if has_colours(sys.stdout) else text


def bold(text: str) -> str:
    """Bold text, if the terminal supports it."""
    return style(text, "1")


def faint(text: str) -> str:
    """Faint text, if the terminal supports it."""
    return style(text, "2")


def toned(word: str, tone: float) -> str:
    """A word in blue for positive tones, up to 1, or orange for negative ones; strong tones are underlined."""
    if abs(tone) < _CLEAR_TONE:
        return word
    return style(word, (_FOR if tone > 0 else _AGAINST) + (";1;4" if abs(tone) > 0.5 else ""))


def printable(text: str) -> str:
    """Text on one line without control characters, which a terminal could execute."""
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or _shows(c))


def escaped(text: str, escape: Callable[[str], str] = lambda c: c.encode("unicode_escape").decode()) -> str:
    r"""Text whose control characters are written as ``\x1b`` and the like, other than line ends and tabs."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c in "\n\t" or _shows(c) else escape(c) for c in text)


def _shows(character: str) -> bool:
    return category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or character == "\u200d"


def word_pairs(parts: Sequence[tuple[str | None, str | None, float]], decimals: int = 2) -> str:
    """Parts of an explanation: "storm ~ hurricane +0.10, wind +0.08", or "storm (A) +0.10" for single words.

    A word that both texts have is shown once. Parts that would be shown with 0.00 are left out.
    """
    shown = ((_words(a, b), f"{value:+.{decimals}f}") for a, b, value in parts)
    return ", ".join(f"{printable(words)} {value}" for words, value in shown if float(value))


def _words(a: str | None, b: str | None) -> str:
    if a is None or b is None:
        return f"{a} (A)" if b is None else f"{b} (B)"
    return a if a == b else f"{a} ~ {b}"


def shortened(text: str, room: int) -> str:
    """Text on one line, cut to a number of columns if the output is a terminal."""
    text = printable(text)
    if not sys.stdout.isatty() or columns(text) <= room:
        return text
    used = 0
    for i, character in enumerate(text):
        used += columns(character)
        if used > room - 1:
            return text[:i].rstrip() + "…"
    return text


def columns(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return max(wcswidth(text), 0) if text.isprintable() else sum(max(wcwidth(c), 0) for c in text)


def width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns


def prepare_output(form: str) -> None:
    """Set standard output up for a format.

    In a file or pipe, CSV and JSON are in UTF-8 whatever the locale, as corpora are, and keep the line ends of texts.
    Elsewhere characters that the encoding lacks are shown as escapes.
    """
    if hasattr(sys.stdout, "reconfigure"):
        as_data: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"}
        for_people = form == "table" or sys.stdout.isatty()
        sys.stdout.reconfigure(errors="backslashreplace", **({} if for_people else as_data))


def show_records(
    records: Iterable[Mapping[str, Any]],
    form: str,
    show: Callable[[list[Any]], None] | None = None,
    fields: Sequence[str] = (),
) -> None:
    """Print records as CSV, as JSON, by `show`, or as a table; `fields` names the columns if there are no records."""
    if form == "csv":
        _show_csv(iter(records), fields)
    elif form == "json":
        show_json(list(records))
    else:
        (show or _show_table)(list(records))


class _Lines:
    r"""Lines of CSV, which end with ``\n``: a writer told so would not quote fields that hold ``\r``."""

    def write(self, line: str) -> int:
        return sys.stdout.write(line.removesuffix("\r\n") + "\n")


def _show_csv(records: Iterator[Mapping[str, Any]], fields: Sequence[str]) -> None:
    """Print records one by one: together they can be much larger than what they were made from."""
    writer = csv.writer(_Lines(), lineterminator="\r\n")
    first = next(records, None)
    rows = (record.values() for record in chain([] if first is None else [first], records))
    for row in chain([fields if first is None else first], rows):
        cells = [value if isinstance(value, str) else _plain(value) for value in row]
        if sys.stdout.isatty():  # a file or another program gets control characters as they are
            cells = [escaped(cell) if isinstance(cell, str) else cell for cell in cells]
        writer.writerow(cells)


def show_json(value: Any) -> None:
    """Print a value as JSON, with control characters as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain, allow_nan=False)
    print(escaped(text, lambda character: json.dumps(character)[1:-1]))


def _show_table(records: Sequence[Mapping[str, Any]]) -> None:
    """Print columns of minimal width: numbers aligned right, the last column cut to the terminal's width."""
    names = list(records[0])
    cells = [names, *([cell(record[name]) for name in names] for record in records)]
    widths = [max(columns(row[k]) for row in cells) for k in range(len(names))]
    numeric = [not isinstance(records[0][name], str) for name in names]
    room = max(20, width() - sum(widths[:-1]) - 2 * (len(names) - 1))
    for i, row in enumerate(cells):
        row = [*row[:-1], shortened(row[-1], room)]
        line = "  ".join(map(padded, row, widths, numeric)).rstrip()
        print(bold(line) if i == 0 else line)


def padded(text: str, size: int, right: bool = False) -> str:
    """Text with spaces up to a number of columns."""
    gap = " " * (size - columns(text))
    return gap + text if right else text + gap


def cell(value: Any) -> str:
    """A value in a table."""
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else printable(str(value))


def _plain(value: Any) -> Any:
    """A plain number or text for JSON and CSV; floats of NumPy, and all in CSV, have the digits of float32."""
    value = value.item() if hasattr(value, "item") else value
    return float(f"{value:.7g}") if isinstance(value, float) else value
