"""Texts from files: one per line, or a column of a table. Every error names the file and the line."""

from __future__ import annotations

import csv
import io
import json
import reprlib
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_mcsg._extras import import_extra

_NOT_TEXT = b"PK\x03\x04", b"%PDF-", b"\x1f\x8b", b"\xd0\xcf\x11\xe0"  # spreadsheets, zip; PDF; gzip; old Office
_SHOWN_COLUMNS = 20  # names of columns in an error


@dataclass(frozen=True)
class Corpus:
    """Texts, the line number of each in its file (for Parquet, its row number), and the file's fields, if kept.

    `names` are those of all columns. The fields of a text are only those that its line has: lines of JSON may differ.
    """

    name: str
    texts: list[str]
    lines: list[int]
    names: list[str] = field(default_factory=list)
    fields: list[dict[str, Any]] = field(default_factory=list)
    note: str | None = None

    def __getitem__(self, chosen: np.ndarray) -> Corpus:
        places = np.flatnonzero(chosen).tolist()
        return Corpus(
            self.name,
            [self.texts[i] for i in places],
            [self.lines[i] for i in places],
            self.names,
            [self.fields[i] for i in places],
            self.note,
        )

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The file's columns, with None where a line has no such field."""
        return {name: [fields.get(name) for fields in self.fields] for name in self.names}

    def record(
        self, i: int, first: Mapping[str, Any], last: Mapping[str, Any] | None = None, *, as_json: bool = False
    ) -> dict[str, Any]:
        """The file's columns of a text, as they are written, or else the text, between the fields of a result.

        The file's columns keep their names: a field of the same name gets ``mcsg_`` in front. For JSON, numbers, truth
        values and missing ones keep their type.
        """
        own: dict[str, Any] = {"text": self.texts[i]}
        if self.names:
            own = dict.fromkeys(self.names, None if as_json else "")
            form = _as_value if as_json else _as_written
            own.update((name, form(value)) for name, value in self.fields[i].items())
        return {**_renamed(first, own), **own, **_renamed(last or {}, own)}


class _Written(float):
    """A number that keeps its digits."""

    __slots__ = ("digits",)
    digits: str

    def __new__(cls, digits: str) -> _Written:
        number = super().__new__(cls, digits)
        number.digits = digits
        return number


def _as_written(value: Any) -> str:
    """A value as a text; numbers have all their digits, and numbers and truth values are written as in JSON."""
    if isinstance(value, int | float):
        return value.digits if isinstance(value, _Written) else json.dumps(value)
    return "" if value is None else str(value)


def _as_value(value: Any) -> Any:
    """A value of JSON; a number that would lose digits is a text, and so are infinity and NaN, which JSON lacks."""
    if value is None or isinstance(value, bool | int):
        return value
    written = _as_written(value)
    keeps_digits = isinstance(value, float) and isfinite(value) and Decimal(written) == Decimal(repr(float(value)))
    return float(value) if keeps_digits else written


def _renamed(fields: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    renamed = {}
    for name, value in fields.items():
        while name in taken:
            name = f"mcsg_{name}"
        renamed[name] = value
    return renamed


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts, with the human judgement and line number of each pair."""

    name: str
    gold: np.ndarray
    texts: list[tuple[str, str]]
    lines: list[int]

    def __getitem__(self, chosen: np.ndarray) -> Pairs:
        places = np.flatnonzero(chosen)
        return Pairs(self.name, self.gold[places], [self.texts[i] for i in places], [self.lines[i] for i in places])


def read_corpus(
    path: str, column: str | None = None, *, read_as: str | None = None, keep_columns: bool = False
) -> Corpus:
    """Read the texts of a file, or of standard input for ``"-"``; blank texts are left out.

    The ending of the file name says how it is read, unless `read_as` does.
    """
    kind = read_as or ("txt" if path == "-" else Path(path).suffix.lower().removeprefix("."))
    if kind == "json":
        raise ValueError(f"{path}: JSON is read line by line, with one object or string per line: save it as .jsonl.")
    reader = _READERS.get(kind, _read_lines)
    if column is not None and reader is _read_lines:
        raise ValueError(f"{_name(path)} is read as one text per line: --column is for {', '.join(_READERS)}.")
    table = _Table(path, kind, column, keep_columns)
    every = list(reader(table))
    found = [row for row in every if row[1].strip()]
    if len(found) < len(every) and reader is not _read_lines:
        table.notes.append(f"{len(every) - len(found)} of {len(every)} texts of {_name(path)} are blank and left out.")
    if not found:
        raise ValueError(f"{_name(path)} holds no texts.")
    lines, texts, fields = map(list, zip(*found, strict=True))
    names = list(dict.fromkeys(name for row in fields for name in row))
    return Corpus(_name(path), texts, lines, names, fields, " ".join(table.notes) or None)


def is_table(path: str) -> bool:
    """Whether the ending of a file name says that texts are in a column."""
    return Path(path).suffix.lower().removeprefix(".") in _READERS


def read_pairs(path: str) -> Pairs:
    """Read tab-separated lines of a number and two texts; a first line without digits before the tab is a heading."""
    gold, texts, lines = [], [], []
    for line, text in _lines(path):
        fields = text.split("\t")
        if not text.strip() or (line == 1 and not any(map(str.isdigit, fields[0]))):
            continue
        if len(fields) != 3:
            raise ValueError(
                f"{_place(path, line)}: 3 fields (score, text, text) with tabs between them are expected, got "
                f"{len(fields)}."
            )
        gold.append(_number(fields[0], _place(path, line)))
        texts.append((fields[1], fields[2]))
        lines.append(line)
    return Pairs(_name(path), np.array(gold), texts, lines)


def _number(field: str, place: str) -> float:
    try:
        value = float(field)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{place}: the first field must be a number, got {reprlib.repr(field)}.")
    return value


# The formats --------------------------------------------------------------------------------------------------------


_Row = tuple[int, str, dict[str, Any]]  # number of the line, text, and all fields if they are kept


@dataclass(frozen=True)
class _Table:
    """A file to be read: its format, the column of texts, and what was noticed while reading."""

    path: str
    kind: str
    column: str | None
    keep_columns: bool
    notes: list[str] = field(default_factory=list)


def _read_lines(table: _Table) -> Iterator[_Row]:
    return ((line, text, {}) for line, text in _lines(table.path))


def _read_csv(table: _Table) -> Iterator[_Row]:
    path = table.path
    delimiter = "\t" if table.kind == "tsv" else ","
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader((line for _, line in _whole_lines(path)), delimiter=delimiter, strict=True)
    try:
        header = next(rows, None)
        if header is None:  # an empty file
            return
        if len(header) == 1 and header[0].count(";") + header[0].count("\t"):
            got = reprlib.repr(header[0])
            raise ValueError(f"{_place(path, 1)}: fields must be separated by {delimiter!r}, got {got}.")
        if _is_text(header, table):
            yield 1, header[0], {"text": header[0]} if table.keep_columns else {}
            header = ["text"]
        chosen = _choose(table.column, header, _place(path, 1))
        _check_once(chosen, header, _place(path, 1))
        names = _distinct(header)
        place = header.index(chosen)
        before = rows.line_num
        for row in rows:
            if row and len(row) != len(header):
                raise ValueError(f"{_place(path, before + 1)}: {len(header)} fields are expected, got {len(row)}.")
            if row:
                yield before + 1, row[place], dict(zip(names, row, strict=True)) if table.keep_columns else {}
            before = rows.line_num
    except csv.Error as error:
        reason = str(error).split(" - ")[0].replace("\t", r"\t")  # what follows is advice to programmers
        quoted = ' Put a field with quotation marks into quotation marks, and double those in it, as in "a ""b"" c".'
        advice = "" if "unquoted" in reason else quoted
        raise ValueError(f"{_place(path, rows.line_num)}: not {table.kind.upper()} ({reason}).{advice}") from error


def _is_text(header: list[str], table: _Table) -> bool:
    """Whether the first line of a file with one column is a text: a heading is a single word, or was asked for."""
    if len(header) != 1 or header[0] == table.column:
        return False
    is_text = table.column is None and len(header[0].split()) != 1
    heading = f"{reprlib.repr(header[0])} is read as the heading"
    what = "is read as a text, because a heading is one word" if is_text else heading
    table.notes.append(f"{_name(table.path)} has one column; its first line {what}.")
    return is_text


def _distinct(names: list[str]) -> list[str]:
    """Names of columns, with a number after the second and further ones of the same name."""
    seen: set[str] = set()
    used = set(names)
    numbers: defaultdict[str, count[int]] = defaultdict(partial(count, 1))
    distinct = []
    for name in names:
        own = name
        if name in seen:
            while own in used:
                own = f"{name}.{next(numbers[name])}"
            used.add(own)
        seen.add(name)
        distinct.append(own)
    return distinct


def _read_json_lines(table: _Table) -> Iterator[_Row]:
    path, chosen = table.path, table.column
    for line, text in _lines(path):
        if not text.strip():
            continue
        value = _parsed(text, table.keep_columns, _place(path, line))
        fields = value if isinstance(value, dict) else {"text": value}
        if isinstance(value, dict):
            chosen = _choose(chosen, list(value), _place(path, line))
            value = value[chosen]
        text = _checked(value, _place(path, line))
        yield line, text, _kept(fields, _place(path, line)) if table.keep_columns else {}


def _parsed(text: str, keep_digits: bool, place: str) -> Any:
    """The value of a line of JSON."""
    try:
        value = json.loads(text, parse_float=_Written if keep_digits else None)
    except RecursionError:
        raise ValueError(f"{place}: JSON nested too deeply.") from None
    except ValueError as error:
        why = getattr(error, "msg", "a number of too many digits")
        raise ValueError(f"{place}: not JSON ({why}).") from error
    if "\\ud" in text.lower() and not _is_unicode(value):
        raise ValueError(f"{place}: half of a surrogate pair (\\ud800 to \\udfff) is not a character.")
    return value


def _kept(fields: dict[str, Any], place: str) -> dict[str, Any]:
    try:
        return {name: _flat(value) for name, value in fields.items()}
    except RecursionError:
        raise ValueError(f"{place}: JSON nested too deeply.") from None


def _flat(value: Any) -> Any:
    """A value; lists and objects as JSON, whose numbers keep their digits."""
    return _as_json(value) if isinstance(value, list | dict | tuple) else value


def _as_json(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_as_json(str(name))}: {_as_json(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_json, value))}]"
    return value.digits if isinstance(value, _Written) else json.dumps(value, ensure_ascii=False, default=str)


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_parquet(table: _Table) -> Iterator[_Row]:
    arrow = import_extra("pyarrow", "Parquet")
    parquet = import_extra("pyarrow.parquet", "Parquet")
    path = table.path
    with open(path, "rb") as file:  # not by pyarrow, whose errors do not say what the system said
        if not file.seekable():
            raise ValueError(f"{path}: Parquet cannot be read from a pipe: save it in a file.")
        try:
            opened = parquet.ParquetFile(file)
            chosen = _choose(table.column, opened.schema_arrow.names, path)
            _check_once(chosen, opened.schema_arrow.names, path)
            read = opened.read(columns=None if table.keep_columns else [chosen])
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # not of the content
                raise
            reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise ValueError(f"{path}: not Parquet ({reason}).") from error
    names = _distinct(read.column_names)
    columns = [_values(arrow, column, path) for column in read.columns]
    texts = columns[names.index(chosen)]
    rows = zip(*columns, strict=True)
    for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=1):
        kept = dict(zip(names, map(_flat, row), strict=True)) if table.keep_columns else {}
        yield number, _checked(text, f"{path}, row {number}"), kept


def _values(arrow: Any, column: Any, path: str) -> list[Any]:
    """The values of a column of Parquet: numbers of single precision with their own digits.

    Times of a zone that is not known are in UTC; times, days and durations that Python has no values for are texts.
    """
    kind = column.type
    if kind == arrow.float32():
        return column.cast(arrow.string()).cast(arrow.float64()).to_pylist()
    in_utc = arrow.timestamp(kind.unit, "+00:00") if getattr(kind, "tz", None) else kind
    for form in (None, in_utc, arrow.string()):
        with suppress(arrow.ArrowException, ArithmeticError, LookupError, ValueError):
            column = column if form is None else column.cast(form)
            return column.to_pylist()
    raise ValueError(f"{path}: values of the type {kind} cannot be read: leave their column out, or change its type.")


_READERS: dict[str, Callable[[_Table], Iterable[_Row]]] = dict.fromkeys(("csv", "tsv"), _read_csv)
_READERS |= {"jsonl": _read_json_lines, "ndjson": _read_json_lines, "parquet": _read_parquet}


# Lines and names ----------------------------------------------------------------------------------------------------


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file without line ends, numbered from 1."""
    return ((number, line.rstrip("\r\n")) for number, line in _whole_lines(path))


def _whole_lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their line ends as they are, numbered from 1."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.startswith(_NOT_TEXT):
                raise ValueError(f"{_name(path)}: not a file of text. Save its texts as .txt or .csv.")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{_place(path, number)}: not UTF-8 (byte {error.start + 1} of the line). Save the file as UTF-8."
                ) from error
            if number == 1 and "\n" not in text and "\r" in text.rstrip("\r"):
                raise ValueError(
                    f"{_name(path)}: lines end with carriage returns alone. Convert the file, for example with "
                    f"tr '\\r' '\\n'."
                )
            if "\0" in text:
                raise ValueError(f"{_place(path, number)}: a NUL character. A file in UTF-16 must be saved as UTF-8.")
            yield number, text


def _open(path: str) -> Any:
    if path != "-":
        return open(path, "rb")
    if sys.stdin is None:
        raise ValueError("Standard input is closed: name a file, or pass texts through a pipe.")
    return io.BytesIO(sys.stdin.buffer.read())


def _choose(column: str | None, names: list[str], place: str) -> str:
    """The column of texts: the requested one, the only one, or the one called text."""
    if column is None and len(names) == 1:
        return names[0]
    wanted = "text" if column is None else column
    if wanted not in names:
        have = ", ".join(map(reprlib.repr, names[:_SHOWN_COLUMNS])) or "none"
        have += f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
        remedy = "" if column else ". Choose one with --column"
        raise ValueError(f"{place}: there is no column {reprlib.repr(wanted)}; there are {have}{remedy}.")
    return wanted


def _check_once(column: str, names: list[str], place: str) -> None:
    if names.count(column) > 1:
        raise ValueError(f"{place}: there are {names.count(column)} columns {reprlib.repr(column)}.")


def _checked(value: Any, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{place}: a text is expected, got {reprlib.repr(value)}.")
    if "\0" in value:
        raise ValueError(f"{place}: the text holds a NUL character: remove it.")
    return value


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _place(path: str, line: int) -> str:
    return f"{_name(path)}, line {line}"
