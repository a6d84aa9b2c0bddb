"""Checks of single parameters. Every message says what was wrong and what to do."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from sklearn_mcsg._sklearn import Interval


class Count(Interval):
    """Constraint of a parameter: an integer that is not below `least`; `True`, which Python takes for 1, is refused."""

    def __init__(self, least: int = 1):
        super().__init__(Integral, least, None, closed="left")

    def is_satisfied_by(self, val: object) -> bool:
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def check_number(value: object, name: str) -> None:
    """Raise unless a value is a number."""
    if not isinstance(value, Real) or value != value:
        raise ValueError(f"{name} must be a number, got {value!r}.")


def check_positive_integer(value: object, name: str) -> None:
    """Raise unless a value is a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")


def check_not_negative(value: float, name: str) -> None:
    """Raise unless a number is finite and not negative."""
    if not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number that is not negative, got {value!r}.")


def check_share(value: object, name: str) -> None:
    """Raise unless a value lies strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")


def check_out(out: object, shape: tuple[int, int], dtype: np.dtype) -> None:
    """Raise unless an array is writeable and has a given shape and dtype."""
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype or not out.flags.writeable:
        got = f"shape {out.shape}, {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        state = ", read-only" if isinstance(out, np.ndarray) and not out.flags.writeable else ""
        raise ValueError(f"out must be a writeable array of shape {shape} and {dtype}, got {got}{state}.")
