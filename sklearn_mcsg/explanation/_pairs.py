"""Explanation of a cosine by pairs of vectors: which word of one text belongs to which word of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.explanation._base import Explanation, colour, coloured_ground, largest_of, new_axes

_CELL = "padding: 2px 6px; font-weight: normal; text-align: center; color: inherit; border: none"


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation(Explanation):
    """The cosine of two embedded groups as a sum over pairs of their vectors.

    Attributes
    ----------
    similarity : float
        The cosine of the two embeddings.
    matrix : ndarray of shape (n_vectors_a, n_vectors_b)
        Contribution of each pair of vectors. The entries sum to `similarity`.
    labels : tuple of two lists of str
        Names of the vectors of A and of B.
    weights : tuple of two ndarrays of shape (n_vectors,)
        Weights of the vectors.
    vectors : tuple of two ndarrays of shape (n_vectors,)
        Contribution of each vector of A and of B: the sum of its pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import GroupEmbedding
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(2 * (i % 2), size=(5, 3)) for i in range(20)]
    >>> explanation = GroupEmbedding().fit(X).explain(X[0], X[2])
    >>> explanation.matrix.shape
    (5, 5)
    >>> bool(np.isclose(explanation.matrix.sum(), explanation.similarity))
    True
    """

    similarity: float
    matrix: np.ndarray
    labels: tuple[list[str], list[str]]
    weights: tuple[np.ndarray, np.ndarray]
    vectors: tuple[np.ndarray, np.ndarray] = field(init=False)

    _quantity = "Cosine"
    _decimals = 3

    @classmethod
    def of(
        cls, left: np.ndarray, right: np.ndarray, labels: tuple[list[str], list[str]], weights: Sequence[np.ndarray]
    ) -> PairExplanation:
        """Multiply the parts of the vectors of two groups in their embeddings."""
        lengths = np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0))
        matrix = left @ right.T / (lengths if lengths > 0 else 1.0)
        return cls(float(matrix.sum()), matrix, labels, (weights[0], weights[1]))

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", (self.matrix.sum(axis=1), self.matrix.sum(axis=0)))

    @property
    def tones(self) -> tuple[np.ndarray, np.ndarray]:
        """The contributions of the vectors, `vectors`."""
        return self.vectors

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *(f"  {a} ~ {b} {value:+.3f}" for a, b, value in self.strongest())])

    @lazy
    def _sums(self) -> tuple[np.ndarray, list[str], list[str]]:
        """Contribution of each pair of different labels, and these labels of A and of B."""
        (words_a, rows), (words_b, columns) = map(_numbered, self.labels)
        sums = np.zeros((len(words_a), len(words_b)))
        np.add.at(sums, np.ix_(rows, columns), self.matrix)
        return sums, words_a, words_b

    def _part_values(self) -> np.ndarray:
        return self._sums[0].ravel()

    def _part_labels(self, i: int) -> tuple[str, str]:
        _, words_a, words_b = self._sums
        row, column = divmod(i, len(words_b))
        return words_a[row], words_b[column]

    def to_frame(self) -> Any:
        """The matrix as a table.

        Returns
        -------
        frame : pandas.DataFrame
            One row per vector of A, one column per vector of B.
        """
        pandas = import_extra("pandas", "PairExplanation.to_frame")
        return pandas.DataFrame(self.matrix, index=self.labels[0], columns=self.labels[1])

    def plot(self, ax: Any = None) -> Any:
        """Draw the matrix as a heat map: blue pairs increase the cosine, orange pairs reduce it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; ``None`` makes a figure whose size fits the number of vectors.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        rows, columns = self.matrix.shape
        ax = new_axes("PairExplanation.plot", 1.6 + 0.42 * columns, 1.4 + 0.32 * rows) if ax is None else ax
        colors = import_extra("matplotlib.colors", "PairExplanation.plot")
        colour_map = colors.LinearSegmentedColormap.from_list("evidence", [colour(-1), (1, 1, 1), colour(1)])
        largest = largest_of(self.matrix)
        image = ax.imshow(self.matrix, cmap=colour_map, vmin=-largest, vmax=largest, aspect="auto")
        ax.set_xticks(range(columns), self.labels[1], rotation=45, ha="right", parse_math=False)
        ax.set_yticks(range(rows), self.labels[0], parse_math=False)
        ax.tick_params(length=0)
        ax.set_title(self._value().lower(), fontsize="medium", loc="left")
        ax.figure.colorbar(image, ax=ax, label="part of the cosine")
        return ax

    def _html_parts(self) -> list[str]:
        strongest = (f"{escape(str(a))} ~ {escape(str(b))} {value:+.3f}" for a, b, value in self.strongest())
        largest = largest_of(self.matrix)
        head = "".join(f"<th style='{_CELL}'>{escape(label)}</th>" for label in self.labels[1])
        rows = [f"<tr><th style='{_CELL}'></th>{head}</tr>"]
        for label, values in zip(self.labels[0], self.matrix, strict=True):
            cells = "".join(_cell(value, value / largest) for value in values)
            rows.append(f"<tr><th style='{_CELL}; text-align: right'>{escape(label)}</th>{cells}</tr>")
        table = f"<table style='border-collapse: collapse; color: inherit'>{''.join(rows)}</table>"
        foot = "<p><small>Blue pairs of words increase the cosine, orange pairs reduce it.</small></p>"
        return [f"{self._value()}: {', '.join(strongest)}", f"<div style='overflow-x: auto'>{table}</div>", foot]


def _numbered(labels: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different labels in order of appearance, and the number of each label among them."""
    numbers: dict[str, int] = {}
    numbered = [numbers.setdefault(label, len(numbers)) for label in labels]
    return list(numbers), numbered


def _cell(value: float, tone: float) -> str:
    shown = f"{value:+.2f}" if abs(value) >= 0.005 else ""
    return f"<td style='{_CELL}; {coloured_ground(tone)}' title='{value:+.4f}'>{shown}</td>"
