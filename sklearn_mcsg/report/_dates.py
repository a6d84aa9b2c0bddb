"""Dates as people write them, read as days."""

from __future__ import annotations

import re
from datetime import date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np

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
_MONTHS = "january february march april may june july august september october november december"
_DAYS = "datetime64[D]"


def days_of(values: list[Any]) -> np.ndarray:
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
        return np.datetime64(value.isoformat().partition("T")[0], "D")
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
        months = [k for k, month in enumerate(_MONTHS.split(), start=1) if month.startswith(name)]
        found = (int(match[4]), months[0], int(match[1] or match[3] or 1)) if months else None
    try:
        if found:
            return np.datetime64(date(*found), "D")
        return np.datetime64(parsedate_to_datetime(text).date(), "D")
    except (TypeError, ValueError, IndexError, OverflowError):
        return nothing


def why_unread(values: list[Any]) -> str | None:
    """Why values that look like dates cannot be read; None if they can, or if they do not look like dates."""
    texts = [str(value).strip() for value in values if value is not None]
    alike = [text for text in texts if _LIKE_DATE.fullmatch(text)]
    if len(alike) <= len(texts) / 2 or np.count_nonzero(~np.isnat(days_of(texts))) >= len(texts) / 2:
        return None
    unclear = [text for text in alike if (both := _NUMERIC.fullmatch(text)) and int(both[1]) != int(both[3])]
    if unclear:
        return f"{unclear[0]!r} may be a day and a month or a month and a day"
    return f"{alike[0]!r} cannot be read"
