"""Colours of contributions: blue increases the similarity, orange reduces it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from sklearn_mcsg._extras import import_extra

_FOR, _AGAINST = (0, 114, 178), (230, 159, 0)  # distinct for colour-blind readers


def new_axes(purpose: str, width: float, height: float) -> Any:
    """Axes of a new figure of a size in inches."""
    pyplot = import_extra("matplotlib.pyplot", purpose)
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def largest_of(*sides: np.ndarray) -> float:
    """The largest absolute value; 1 if all values are 0 or there are none."""
    return max(np.abs(side).max(initial=0) for side in sides) or 1


def colour(value: float) -> np.ndarray:
    """The colour of a contribution, as matplotlib wants it."""
    return np.divide(_FOR if value > 0 else _AGAINST, 255)


def coloured_ground(tone: float) -> str:
    """The style of a background from orange (tone -1) to blue (tone 1)."""
    red, green, blue = _FOR if tone > 0 else _AGAINST
    return f"background: rgba({red}, {green}, {blue}, {0.45 * abs(tone):.2f}); border-radius: 3px; padding: 1px 3px"


def coloured_word(label: str, value: float, tone: float, decimals: int) -> str:
    """A word on a background from orange (tone -1) to blue (tone 1), with its contribution as a tooltip."""
    return f"<span style='{coloured_ground(tone)}' title='{value:+.{decimals}f}'>{escape(label)}</span>"
