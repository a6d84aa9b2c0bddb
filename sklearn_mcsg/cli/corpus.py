"""Texts from files: one per line, or a column of a table. Every error names the file and the line."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Corpus:
    """Texts, and the line number of each in its file; for Parquet, its row number."""

    name: str
    texts: list[str]
    lines: list[int]

    def __getitem__(self, chosen: np.ndarray) -> Corpus:
        places = np.flatnonzero(chosen)
        return Corpus(self.name, [self.texts[i] for i in places], [self.lines[i] for i in places])


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts, with the human judgement and line number of each pair."""

    name: str
    gold: np.ndarray
    texts: list[tuple[str, str]]
    lines: list[int]

    def sides(self) -> tuple[list[str], list[str]]:
        """The first and the second texts of all pairs."""
        return [a for a, _ in self.texts], [b for _, b in self.texts]

    def __getitem__(self, chosen: np.ndarray) -> Pairs:
        places = np.flatnonzero(chosen)
        return Pairs(self.name, self.gold[places], [self.texts[i] for i in places], [self.lines[i] for i in places])


def read_corpus(path: str, column: str | None = None) -> Corpus:
    """Read the texts of a file, or of standard input for ``"-"``; blank texts are left out."""
    suffix = "" if path == "-" else Path(path).suffix.lower()
    if suffix == ".json":
        raise ValueError(f"{path}: JSON is read line by line, with one object or string per line: save it as .jsonl.")
    reader = _READERS.get(suffix, _read_lines)
    if column is not None and reader is _read_lines:
        raise ValueError(f"{path} is read as one text per line: --column is for {', '.join(_READERS)}.")
    found = [(line, text) for line, text in reader(path, column) if text.strip()]
    if not found:
        raise ValueError(f"{_name(path)} holds no texts.")
    lines, texts = zip(*found, strict=True)
    return Corpus(_name(path), list(texts), list(lines))


def read_pairs(path: str) -> Pairs:
    """Read tab-separated lines of a number and two texts; a first line without digits before the tab is a heading."""
    gold, texts, lines = [], [], []
    for line, text in _lines(path):
        fields = text.split("\t")
        if not text.strip() or (line == 1 and not any(map(str.isdigit, fields[0]))):
            continue
        if len(fields) != 3:
            raise ValueError(f"{_place(path, line)}: 3 fields (gold, text, text) are expected, got {len(fields)}.")
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
        raise ValueError(f"{place}: the first field must be a number, got {field!r}.")
    return value


# The formats --------------------------------------------------------------------------------------------------------


def _read_lines(path: str, column: str | None) -> Iterable[tuple[int, str]]:
    return _lines(path)


def _read_csv(path: str, column: str | None) -> Iterator[tuple[int, str]]:
    delimiter = "\t" if Path(path).suffix.lower() == ".tsv" else ","
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader((line + "\n" for _, line in _lines(path)), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        if len(header) == 1 and header[0].count(";") + header[0].count("\t"):
            raise ValueError(f"{_place(path, 1)}: fields must be separated by {delimiter!r}, got {header[0]!r}.")
        chosen = _choose(column, header, _place(path, 1))
        if header.count(chosen) > 1:
            raise ValueError(f"{_place(path, 1)}: there are {header.count(chosen)} columns {chosen!r}.")
        before = rows.line_num
        for row in rows:
            if row and len(row) != len(header):
                raise ValueError(f"{_place(path, before + 1)}: {len(header)} fields are expected, got {len(row)}.")
            if row:
                yield before + 1, row[header.index(chosen)]
            before = rows.line_num
    except csv.Error as error:
        raise ValueError(f"{_place(path, rows.line_num)}: not CSV ({error}).") from error


def _read_json_lines(path: str, column: str | None) -> Iterator[tuple[int, str]]:
    chosen = column
    for line, text in _lines(path):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"{_place(path, line)}: not JSON ({error.msg}).") from error
        except RecursionError:
            raise ValueError(f"{_place(path, line)}: JSON nested too deeply.") from None
        if isinstance(value, dict):
            chosen = _choose(chosen, list(value), _place(path, line))
            value = value[chosen]
        yield line, _checked(value, _place(path, line))


def _read_parquet(path: str, column: str | None) -> Iterator[tuple[int, str]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError('Parquet needs the package pyarrow: pip install "sklearn-mcsg[text]".') from error
    try:
        names = parquet.read_schema(path).names
        values = parquet.read_table(path, columns=[_choose(column, names, path)]).column(0).to_pylist()
    except ArrowException as error:
        raise ValueError(f"{path}: not Parquet ({str(error).splitlines()[0].rstrip('.')}).") from error
    for row, value in enumerate(values, start=1):
        yield row, _checked(value, f"{path}, row {row}")


_Reader = Callable[[str, "str | None"], Iterable[tuple[int, str]]]
_READERS: dict[str, _Reader] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}


# Lines and names ----------------------------------------------------------------------------------------------------


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file without line ends, numbered from 1."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{_place(path, number)}: not UTF-8 (byte {error.start + 1} of the line).") from error
            yield number, text.rstrip("\r\n")


def _open(path: str) -> Any:
    if path == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    return open(path, "rb")


def _choose(column: str | None, names: list[str], place: str) -> str:
    """The column of texts: the requested one, the only one, or the one called text."""
    if column is None and len(names) == 1:
        return names[0]
    wanted = "text" if column is None else column
    if wanted not in names:
        have = ", ".join(map(repr, names)) or "none"
        remedy = "" if column else ". Choose one with --column"
        raise ValueError(f"{place}: there is no column {wanted!r}; there are {have}{remedy}.")
    return wanted


def _checked(value: Any, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{place}: a text is expected, got {value!r}.")
    return value


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _place(path: str, line: int) -> str:
    return f"{_name(path)}, line {line}"
