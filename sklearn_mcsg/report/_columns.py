"""Further columns of the input: their values, and colours for points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from sklearn_mcsg.report._packing import pack, pack_json

CATEGORIES = 12  # of a column, and one for the others
MISSING = 255  # category of missing values
_CELL = 200  # characters of a value; the rest is not shown
_COLUMN_BYTES = 1_200_000  # of the values of all columns


def shown_columns(columns: Mapping[str, Sequence[Any]], shown: np.ndarray) -> list[dict[str, Any]]:
    """Columns with their values as texts, and with codes if points can be coloured by them.

    The shortest columns come with their values, as long as there is room.
    """
    made = [_column(name, [values[i] for i in shown.tolist()]) for name, values in columns.items()]
    room = _COLUMN_BYTES
    for column in sorted(made, key=lambda column: len(column["cells"])):
        room -= len(column["cells"])
        column["cells"] = column["cells"] if room >= 0 else None
    return [column for column in made if column["cells"] or "codes" in column]


def _column(name: str, values: list[Any]) -> dict[str, Any]:
    present = present_values(values)
    texts = ["" if value is None else str(value) for value in present]
    cells = pack_json([text if len(text) <= _CELL else f"{text[:_CELL]}\u2026" for text in texts])
    colours = _colours(present)
    names_rows = colours.get("others", 0) > len(values) / 2
    is_constant = len(set(texts)) < 2
    return {"name": name, "cells": cells, **({} if names_rows or is_constant else colours)}


def _colours(present: list[Any]) -> dict[str, Any]:
    """The codes of a scale, if the values are numbers on one, or else of categories."""
    numbers = scale_of(present)
    if numbers is not None:
        low, high = np.nanmin(numbers), np.nanmax(numbers)
        with np.errstate(invalid="ignore"):
            levels = np.rint(65_534 * ((numbers / 2 - low / 2) / (high / 2 - low / 2)))  # halves do not overflow
        codes = np.where(np.isnan(numbers), 65_535, levels).astype(np.uint16)
        return {"low": float(low), "high": float(high), "codes": pack(codes)}
    names, codes = categories_of(present)
    counts = np.bincount(codes[codes < MISSING], minlength=CATEGORIES + 1).tolist()
    return {"values": names, "counts": counts[: len(names)], "others": counts[CATEGORIES], "codes": pack(codes)}


def scale_of(present: list[Any]) -> np.ndarray | None:
    """The values as numbers, with NaN for missing ones; None unless all are numbers, with more than a few values."""
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in present])
    except (TypeError, ValueError, OverflowError):
        return None
    if np.isinf(numbers).any() or len(np.unique(numbers[~np.isnan(numbers)])) <= CATEGORIES:
        return None
    return numbers


def categories_of(present: list[Any]) -> tuple[list[str], np.ndarray]:
    """The most frequent values, and the category of each value: `CATEGORIES` is that of others."""
    frequent = Counter(str(value) for value in present if value is not None).most_common(CATEGORIES)
    code = {value: k for k, (value, _) in enumerate(frequent)}
    codes = [MISSING if value is None else code.get(str(value), CATEGORIES) for value in present]
    return list(code), np.array(codes, dtype=np.uint8)


def present_values(values: Iterable[Any]) -> list[Any]:
    """The values, with None for missing ones."""
    return [None if _is_missing(value) else value for value in values]


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return not isfinite(value)
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, str) and not value)
