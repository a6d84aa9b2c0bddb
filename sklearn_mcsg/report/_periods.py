"""Numbers of texts of each leaf of the tree, by the periods or categories of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sklearn_mcsg.clustering.tree import ClusterTree
from sklearn_mcsg.report._columns import CATEGORIES, MISSING, categories_of, present_values, scale_of
from sklearn_mcsg.report._dates import days_of, why_unread
from sklearn_mcsg.report._packing import pack

_PERIODS = 24  # at most, in which texts are counted


def shown_periods(columns: Mapping[str, Sequence[Any]], tree: ClusterTree) -> list[dict[str, Any]]:
    """For columns of dates or categories, the number of texts of each leaf in each period or category.

    All texts are counted, also those that a page of many texts does not show.
    """
    made: list[dict[str, Any]] = []
    for name, values in columns.items():
        present = present_values(values)
        found = _by_date(present) or _by_category(present)
        if found is not None:
            names, codes, unread = found
            known = codes >= 0
            cells = tree.leaf_of[known] * len(names) + codes[known]
            counts = np.bincount(cells, minlength=tree.n_leaves * len(names))
            made.append(
                {
                    "name": name,
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
    found = ((name, why_unread(present_values(values))) for name, values in columns.items())
    return [
        f"The column {name!r} looks like dates, but {why}: write dates as 2022-12-31 to use them."
        for name, why in found
        if why is not None
    ]


def _by_category(present: list[Any]) -> tuple[list[str], np.ndarray, None] | None:
    """Categories, unless the values are mostly different, all the same, or many numbers."""
    if scale_of(present) is not None:
        return None
    names, codes = categories_of(present)
    n_others = int(np.count_nonzero(codes == CATEGORIES))
    if len(names) < 2 or n_others > len(present) / 2:
        return None
    names += ["(other values)"] * (n_others > 0)
    return names, np.where(codes == MISSING, -1, codes.astype(np.intp)), None


def _by_date(present: list[Any]) -> tuple[list[str], np.ndarray, int] | None:
    """Periods of equal length and the period of each value, if most values are dates of different days.

    The number of values that are not dates comes last.
    """
    numbers = [value for value in present if isinstance(value, int | np.integer | float | np.floating)]
    days = days_of(present)
    known = ~np.isnat(days)
    n_unread = sum(value is not None for value in present) - int(np.count_nonzero(known))
    if not known.any() or n_unread > (0 if numbers else np.count_nonzero(known)):
        return None
    first, last = days[known].min(), days[known].max()
    if first == last:
        return None
    step = next((step for step in _STEPS if step[0](last) - step[0](first) < _PERIODS), None)
    if step is None:
        return None
    number_of, name_of = step
    low = number_of(first)
    names = [name_of(low + k) for k in range(number_of(last) - low + 1)]
    return names, np.array([number_of(day) - low if ok else -1 for day, ok in zip(days, known, strict=True)]), n_unread


def _month(day: np.datetime64) -> int:
    """Months since January of the year 1970."""
    return int(day.astype("datetime64[M]").astype(np.int64))


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
