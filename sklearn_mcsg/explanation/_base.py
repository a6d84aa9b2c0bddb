"""What all explanations share: the names of vectors, the strongest parts, and colours.

Blue increases the similarity, orange reduces it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg.groups import Groups

NAMES = "A", "B"
Part = tuple[str | None, str | None, float]
MOST_SHOWN = 60  # vectors of each group in a heat map or bar chart

_FOR, _AGAINST = (0, 114, 178), (230, 159, 0)  # distinct for colour-blind readers


class Explanation(ABC):
    """The similarity of two groups, A and B, as a sum of parts.

    There are two kinds. A `VectorExplanation` divides the similarity of a model comparison among single vectors, a
    `PairExplanation` divides the cosine of two embeddings among pairs of vectors.

    Attributes
    ----------
    similarity : float
        The similarity that is explained.
    vectors : tuple of two ndarrays of shape (n_vectors,)
        Contribution of each vector of A and of B.
    labels : tuple of two lists of str
        Names of the vectors of A and of B.
    weights : tuple of two ndarrays of shape (n_vectors,)
        Weights of the vectors.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> a, b = [[0.0], [1.0], [2.0], [5.0]], [[4.0], [6.0], [7.0]]
    >>> explanation = ModelComparisonSimilarity().explain(a, b)
    >>> [(label_a, label_b, round(value, 2)) for label_a, label_b, value in explanation.strongest()]
    [('A[3]', None, 2.58), (None, 'B[0]', 1.29)]
    """

    similarity: float
    vectors: tuple[np.ndarray, np.ndarray]
    labels: tuple[list[str], list[str]]
    weights: tuple[np.ndarray, np.ndarray]

    _quantity = "Similarity"  # what is explained
    _decimals = 2  # of values in text

    @property
    @abstractmethod
    def tones(self) -> tuple[np.ndarray, np.ndarray]:
        """The values that determine the colours of the vectors of A and of B: blue if positive, orange if negative."""

    def strongest(self, n: int = 5, *, decimals: int | None = None) -> list[Part]:
        """The parts that increase the similarity most.

        Parameters
        ----------
        n : int, default=5
            Largest number of parts.
        decimals : int, default=None
            Round contributions to this number of decimals before ranking them. Equal contributions keep the order of
            the vectors, and those that become 0 are left out. ``None`` does not round.

        Returns
        -------
        parts : list of (label_a, label_b, contribution)
            Positive contributions only, the largest first. A part is a single vector, with ``None`` as the label of the
            other group and its tone as contribution, or a pair of vectors. Pairs of the same labels are summed.
        """
        return self._ranked(1, n, decimals)

    def weakest(self, n: int = 5, *, decimals: int | None = None) -> list[Part]:
        """The parts that reduce the similarity most.

        Parameters
        ----------
        n : int, default=5
            Largest number of parts.
        decimals : int, default=None
            Round contributions to this number of decimals before ranking them. Equal contributions are in reverse order
            of the vectors.

        Returns
        -------
        parts : list of (label_a, label_b, contribution)
            Negative contributions only, the most negative first; otherwise as in `strongest`.
        """
        return self._ranked(-1, n, decimals)

    def lines(self, show: Callable[[str, float, float], str]) -> list[tuple[str, str]]:
        """Both groups as lines of words.

        Parameters
        ----------
        show : callable
            ``show(label, contribution, tone)`` returns a vector as text. The strongest tone of both groups is 1 or -1.

        Returns
        -------
        lines : list of (name, words)
            The name of the group, "A" or "B", and its vectors in their order, separated by spaces.
        """
        largest = largest_of(*self.tones)
        sides = zip(NAMES, self.labels, self.vectors, self.tones, strict=True)
        return [(name, " ".join(map(show, labels, values, tones / largest))) for name, labels, values, tones in sides]

    @abstractmethod
    def to_frame(self) -> Any:
        """Contributions as a table that sums to the similarity.

        Returns
        -------
        frame : pandas.DataFrame
        """

    @abstractmethod
    def plot(self, ax: Any = None) -> Any:
        """Draw the contributions: blue ones increase the similarity, orange ones reduce it.

        Of large groups, the 60 vectors of each that contribute most are drawn.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; ``None`` makes a figure whose size fits the number of vectors.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """

    def to_html(self) -> str:
        """Render both groups as lines of words, coloured by their tones.

        The contribution is shown when the pointer rests on a word. Below, a `PairExplanation` has a heat map of pairs;
        of long texts it has the 60 words of each that contribute most.

        Returns
        -------
        html : str
            A fragment without scripts or external references, readable on light and dark pages.
        """
        head, *below = self._html_parts()
        words = self.lines(partial(coloured_word, decimals=self._decimals))
        lines = [f"<p style='line-height: 1.9'><b>{name}</b>&ensp;{line or '(no vectors)'}</p>" for name, line in words]
        return "\n".join(["<div>", f"<p>{head}</p>", *lines, *below, "</div>"])

    def _repr_html_(self) -> str:
        return self.to_html()

    def _ranked(self, sign: int, n: int, decimals: int | None) -> list[Part]:
        """The parts of one sign, the largest in absolute value first; the negative ones in reverse order if equal."""
        found = [(np.empty(0), np.empty(0, dtype=int))]
        before = 0
        for block in self._part_blocks():
            values = block if decimals is None else block.round(decimals)
            order = np.arange(len(values))[::sign]
            chosen = order[_largest(sign * values[order], n)]
            found.append((values[chosen], before + chosen))
            before += len(values)
        values, places = map(np.concatenate, zip(*found, strict=True))
        best = np.lexsort((sign * places, -sign * values))[:n]
        return [(*self._part_labels(int(places[i])), float(values[i])) for i in best]

    def _value(self) -> str:
        """The similarity, with what it is."""
        return f"{self._quantity} {self.similarity:.{self._decimals}f}"

    def _headline(self) -> str:
        """The similarity and the sizes of the groups."""
        return f"{self._value()} of {len(self.labels[0])} and {len(self.labels[1])} vectors"

    def _omission(self) -> str:
        """What is said of a drawing that does not show all vectors, or nothing."""
        sizes = tuple(map(len, self.vectors))
        shown = tuple(len(foremost(values)) for values in self.vectors)
        if shown == sizes:
            return ""
        return f"Of {sizes[0]} and {sizes[1]} vectors, the {shown[0]} and {shown[1]} that contribute most are shown."

    @abstractmethod
    def _part_blocks(self) -> Iterator[np.ndarray]:
        """The contributions of all parts, some at a time."""

    @abstractmethod
    def _part_labels(self, i: int) -> tuple[str | None, str | None]:
        """The labels of part `i`."""

    @abstractmethod
    def _html_parts(self) -> list[str]:
        """The text above the lines of words, and what stands below them."""


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Positions of the `n` largest positive values, the largest first, equal ones in their order."""
    positive = np.flatnonzero(values > 0)
    if n < len(positive):
        least = np.partition(values[positive], -n)[-n]
        positive = positive[values[positive] >= least]
    return positive[np.argsort(-values[positive], kind="stable")[:n]]


def foremost(values: np.ndarray) -> np.ndarray:
    """Positions of the values that a drawing shows, in their order: the largest in absolute value."""
    return np.sort(np.argsort(-np.abs(values), kind="stable")[:MOST_SHOWN])


def pair_labels(labels: Any, groups: Sequence[Groups]) -> tuple[list[str], list[str]]:
    """Names of the vectors of two groups: the given ones, their own labels, or positions."""
    if labels is None:
        left, right = (_own_labels(name, group) for name, group in zip(NAMES, groups, strict=True))
        return left, right
    sides = [labels] if isinstance(labels, str) else list(labels)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise ValueError(f"labels must be two lists of labels, for a and for b, got {labels!r:.60}.")
    for name, side, group in zip("ab", sides, groups, strict=True):
        if len(side) != group.n_rows:
            raise ValueError(f"{name} has {group.n_rows} vectors but {len(side)} labels.")
    left, right = ([str(label) for label in side] for side in sides)
    return left, right


def _own_labels(name: str, group: Groups) -> list[str]:
    """The labels of a group, or positions where labels are missing."""
    labels = [None] * group.n_rows if group.labels is None else group.labels
    return [f"{name}[{i}]" if label is None else str(label) for i, label in enumerate(labels)]


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
