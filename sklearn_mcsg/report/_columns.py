"""Further columns of the input: their values, colours for points, and counts of texts by period or category."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import numpy as np

from sklearn_mcsg.clustering.tree import ClusterTree
from sklearn_mcsg.report._packing import pack, pack_json

_CATEGORIES = 12  # of a column, and one for the others
_CELL = 200  # characters of a value; the rest is not shown
_COLUMN_BYTES = 1_200_000  # of the values of all columns
_PERIODS = 24  # at most, in which texts are counted
_YEARS = 1500, 2200  # first and last number that is read as a year
_ISO = re.compile(r"(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2})(?:[T ].*)?)?)?")
_NUMERIC = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[T ,].*)?")  # 31/12/2022 or 12/31/2022
_NAMED = re.compile(
    r"(?:(\d{1,2})(?:st|nd|rd|th)?[ .-]+)?([a-z]{3,9})\.?[ -](?:(\d{1,2})(?:st|nd|rd|th)?,? )?(\d{4})", re.I
)
_LIKE_DATE = re.compile(
    r"\d{1,2}([/-])\d{1,2}\1\d{2,4}\b.*|\d{1,2}\.\d{1,2}\.\d{4}\b.*|\d{4}([./-])\d{1,2}\2\d{1,2}\b.*|"
    r"(?=.*\d)(?:.*\W)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.{,12}",
    re.I,
)
_MONTH_NAMES = (  # in English, whatever the locale
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DAYS, _MONTHS = "datetime64[D]", "datetime64[M]"


def shown_columns(columns: Mapping[str, Sequence[Any]], shown: np.ndarray) -> list[dict[str, Any]]:
    """Columns with their values as texts, and with codes if points can be coloured by them.

    The shortest columns come with their values, as long as there is room.
    """
    every = ((str(name), list(values)) for name, values in columns.items())
    made = [_column(name, [values[i] for i in shown.tolist()]) for name, values in every]
    room = _COLUMN_BYTES
    for column in sorted(made, key=lambda column: len(column["cells"])):
        room -= len(column["cells"])
        column["cells"] = column["cells"] if room >= 0 else None
    return [column for column in made if column["cells"] or "codes" in column]


def _column(name: str, values: list[Any]) -> dict[str, Any]:
    present = [None if _is_missing(value) else value for value in values]
    texts = ["" if value is None else str(value) for value in present]
    cells = pack_json([text if len(text) <= _CELL else f"{text[:_CELL]}\u2026" for text in texts])
    colours = _colours(present)
    names_rows = colours.get("others", 0) > len(values) / 2
    is_constant = len(set(texts)) < 2
    return {"name": name, "cells": cells, **({} if names_rows or is_constant else colours)}


def _colours(present: list[Any]) -> dict[str, Any]:
    """Numbers, if all values are numbers and there are more than a few different ones, or else categories."""
    numbers = _as_numbers(present)
    if numbers is not None and len(np.unique(numbers[~np.isnan(numbers)])) > _CATEGORIES:
        low, high = np.nanmin(numbers), np.nanmax(numbers)
        with np.errstate(invalid="ignore"):
            levels = np.rint(65_534 * ((numbers / 2 - low / 2) / (high / 2 - low / 2)))  # halves do not overflow
        codes = np.where(np.isnan(numbers), 65_535, levels).astype(np.uint16)
        return {"low": float(low), "high": float(high), "codes": pack(codes)}
    names, codes = _categories(present)
    counts = np.bincount(codes[codes < 255], minlength=_CATEGORIES + 1).tolist()
    return {"values": names, "counts": counts[: len(names)], "others": counts[_CATEGORIES], "codes": pack(codes)}


def _categories(present: list[Any]) -> tuple[list[str], np.ndarray]:
    """The most frequent values, and the category of each value: 12 is that of others, 255 of missing values."""
    frequent = Counter(str(value) for value in present if value is not None).most_common(_CATEGORIES)
    code = {value: k for k, (value, _) in enumerate(frequent)}
    codes = [255 if value is None else code.get(str(value), _CATEGORIES) for value in present]
    return list(code), np.array(codes, dtype=np.uint8)


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return not isfinite(value)
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, str) and not value)


def _as_numbers(values: list[Any]) -> np.ndarray | None:
    """The values as numbers, with NaN for missing ones, or None if one is not a number."""
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).any() and not np.isinf(numbers).any() else None


# Texts of each leaf of the tree, by period or category --------------------------------------------------------------


def shown_periods(columns: Mapping[str, Sequence[Any]], tree: ClusterTree) -> list[dict[str, Any]]:
    """For columns of dates or categories, the number of texts of each leaf in each period or category.

    All texts are counted, also those that a page of many texts does not show.
    """
    made: list[dict[str, Any]] = []
    for name, values in columns.items():
        present = [None if _is_missing(value) else value for value in values]
        found = _by_date(present) or _by_category(present)
        if found is not None:
            names, codes, unread = found
            known = codes >= 0
            cells = tree.leaf_of[known] * len(names) + codes[known]
            counts = np.bincount(cells, minlength=tree.n_leaves * len(names))
            made.append(
                {
                    "name": str(name),
                    "periods": names,
                    "counts": pack(counts.astype(np.uint32)),
                    "dates": unread is not None,
                    "unread": unread or 0,
                    "missing": sum(value is None for value in present),
                }
            )
    return made


def undated_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Sentences about the columns that look like dates but cannot be read."""
    told = []
    for name, values in columns.items():
        present = [str(value).strip() for value in values if not _is_missing(value)]
        alike = [text for text in present if _LIKE_DATE.fullmatch(text)]
        n_read = np.count_nonzero(~np.isnat(_days(present)))
        if len(alike) > len(present) / 2 and n_read < len(present) / 2:
            unclear = [text for text in alike if (both := _NUMERIC.fullmatch(text)) and int(both[1]) != int(both[3])]
            why = f"{alike[0]!r} cannot be read"
            if unclear:
                why = f"{unclear[0]!r} may be a day and a month or a month and a day"
            told.append(f"The column {name!r} looks like dates, but {why}: write dates as 2022-12-31 to use them.")
    return told


def _by_category(present: list[Any]) -> tuple[list[str], np.ndarray, None] | None:
    """Categories, unless the values are mostly different, all the same, or many numbers."""
    colours = _colours(present)
    if "values" not in colours or len(colours["values"]) < 2 or colours["others"] > len(present) / 2:
        return None
    names, codes = _categories(present)
    names += ["(other values)"] * (colours["others"] > 0)
    return names, np.where(codes == 255, -1, codes.astype(np.intp)), None


def _by_date(present: list[Any]) -> tuple[list[str], np.ndarray, int] | None:
    """Periods of equal length and the period of each value, if most values are dates of different days.

    The number of values that are not dates comes last.
    """
    numbers = [value for value in present if isinstance(value, int | np.integer | float | np.floating)]
    days = _days(present)
    known = ~np.isnat(days)
    n_unread = sum(value is not None for value in present) - int(np.count_nonzero(known))
    if not known.any() or n_unread > (0 if numbers else np.count_nonzero(known)):
        return None
    first, last = days[known].min(), days[known].max()
    if first == last:
        return None
    steps = (step for step in _STEPS if step[0](last) - step[0](first) < _PERIODS)
    number_of, name_of = next(steps)
    low = number_of(first)
    names = [name_of(low + k) for k in range(number_of(last) - low + 1)]
    return names, np.array([number_of(day) - low if ok else -1 for day, ok in zip(days, known, strict=True)]), n_unread


def _days(values: list[Any]) -> np.ndarray:
    """The days of dates, and no day for other values."""
    day_first = _has_days_first(values)
    return np.array([_day(value, day_first) for value in values], dtype=_DAYS)


def _has_days_first(values: list[Any]) -> bool | None:
    """Whether dates such as 31/12/2022 begin with the day: numbers above 12 are days. None if that is not clear.

    Dates with dots, such as 1.12.2022, begin with the day. Where both numbers are equal, either order will do.
    """
    every = [match for match in map(_NUMERIC.fullmatch, (v.strip() for v in values if isinstance(v, str))) if match]
    found = [match for match in every if int(match[1]) != int(match[3])]
    first = any(int(match[1]) > 12 for match in found)
    second = any(int(match[3]) > 12 for match in found)
    if first != second:
        return first
    return True if not first and all(match[2] == "." for match in found) else None


def _day(value: Any, day_first: bool | None) -> np.datetime64:
    """The day of a date: dates of Python, NumPy and pandas, ISO 8601 and its parts, mail headers, and years.

    Dates such as 31/12/2022 are read if it is known whether days come first; names of months are English.
    """
    nothing = np.datetime64("NaT", "D")
    if isinstance(value, date | datetime):
        return np.datetime64(value.isoformat()[:10], "D")
    if isinstance(value, np.datetime64):
        return value.astype(_DAYS)
    if isinstance(value, bool | np.bool_) or value is None:
        return nothing
    text = str(value).strip()
    found: tuple[int, int, int] | None = None
    if match := _ISO.fullmatch(text):
        year, month, day = (int(part or 1) for part in match.groups())
        if match[2] is None and not _YEARS[0] <= year <= _YEARS[1]:
            return nothing
        found = year, month, day
    elif match := _NUMERIC.fullmatch(text):
        if day_first is None:
            return nothing
        first, second = int(match[1]), int(match[3])
        found = int(match[4]), *((second, first) if day_first else (first, second))
    elif (match := _NAMED.fullmatch(text)) and not (match[1] and match[3]):
        name = match[2].lower()
        months = [k for k, month in enumerate(_MONTH_NAMES, start=1) if month.startswith(name)]
        found = (int(match[4]), months[0], int(match[1] or match[3] or 1)) if months else None
    try:
        if found:
            return np.datetime64(date(*found), "D")
        return np.datetime64(parsedate_to_datetime(text).date(), "D")
    except (TypeError, ValueError, IndexError):
        return nothing


def _month(day: np.datetime64) -> int:
    """Months since January of the year 1970."""
    return int(day.astype(_MONTHS).astype(np.int64))


def _week(day: np.datetime64) -> int:
    """Weeks, from Monday to Sunday, since that of 1970-01-01, a Thursday."""
    return (int(day.astype(np.int64)) + 3) // 7


def _years(width: int) -> tuple[Callable[[np.datetime64], int], Callable[[int], str]]:
    def name(number: int) -> str:
        first = number * width
        return str(first) if width == 1 else f"{first}\u2013{first + width - 1}"

    return lambda day: (1970 + _month(day) // 12) // width, name


# Periods, the shortest first: the number of a day's period, and the name of a period.
_STEPS: list[tuple[Callable[[np.datetime64], int], Callable[[int], str]]] = [
    (lambda day: int(day.astype(np.int64)), lambda number: str(np.datetime64(number, "D"))),
    (_week, lambda number: f"week of {np.datetime64(7 * number - 3, 'D')}"),
    (_month, lambda number: str(np.datetime64(number, "M"))),
    (lambda day: _month(day) // 3, lambda number: f"{1970 + number // 4} Q{1 + number % 4}"),
    *(_years(width) for width in (1, 2, 5, 10, 20, 50, 100, 500, 1000)),
]
