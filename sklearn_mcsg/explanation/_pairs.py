"""Explanation of a cosine by pairs of vectors: which word of one text belongs to which word of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import PAIRS, count_within
from sklearn_mcsg.explanation._base import Explanation, colour, coloured_ground, foremost, largest_of, new_axes

_CELL = "padding: 2px 6px; font-weight: normal; text-align: center; color: inherit; border: none"


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
    order : float or None
        The part of the cosine that is due to the order of the vectors: `similarity` minus the cosine without it. None
        if the groups of the likelihood have no order.

    Notes
    -----
    The cosine without order is that of the same two groups, except that their coordinates of order, the slopes of
    ``"trend"``, are those of the average group of the corpus. The pairs sum to the whole cosine, order included.

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

    _quantity = "Cosine"
    _decimals = 3
    order: float | None

    def __init__(
        self,
        left: np.ndarray,
        right: np.ndarray,
        labels: tuple[list[str], list[str]],
        weights: Sequence[np.ndarray],
        unordered: float | None = None,
    ):
        sums = left.sum(axis=0), right.sum(axis=0)
        self.similarity = float(sums[0] @ sums[1])
        self.vectors = left @ sums[1], right @ sums[0]
        self.labels = labels
        self.weights = weights[0], weights[1]
        self.order = None if unordered is None else self.similarity - unordered
        self._factors = left, right  # whose product, the matrix, is computed as soon as it is needed

    @classmethod
    def of(
        cls,
        left: np.ndarray,
        right: np.ndarray,
        labels: tuple[list[str], list[str]],
        weights: Sequence[np.ndarray],
        unordered: float | None = None,
    ) -> PairExplanation:
        """Explain the cosine of two embeddings by the parts that the vectors of both groups have in them.

        If the groups have an order, `unordered` is their cosine without it.
        """
        lengths = np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0))
        return cls(left / (lengths if lengths > 0 else 1.0), right, labels, weights, unordered)

    @lazy
    def matrix(self) -> np.ndarray:
        """Contribution of each pair of vectors."""
        return self._entries(slice(None), slice(None))

    @property
    def tones(self) -> tuple[np.ndarray, np.ndarray]:
        """The contributions of the vectors, `vectors`."""
        return self.vectors

    def __repr__(self) -> str:
        parts = self.strongest() if self.similarity >= 0 else [*self.strongest(2), *self.weakest(3)]
        pairs = (f"{a} ~ {b} {value:+.3f}" for a, b, value in parts)
        return "\n  ".join(filter(None, [self._headline(), self._order(), *pairs]))

    def _order(self) -> str:
        """What is said of the order of the vectors, or nothing if they have none."""
        if self.order is None:
            return ""
        return f"order {self.order:+z.3f} (without it: {self.similarity - self.order:z.3f})"

    @lazy
    def _words(self) -> tuple[tuple[list[str], list[int]], tuple[list[str], list[int]]]:
        """The different labels of A and of B, and the number of each label among them."""
        left, right = map(_numbered, self.labels)
        return left, right

    def _entries(self, rows: Any, columns: Any) -> np.ndarray:
        """Some rows and columns of the matrix."""
        return self._factors[0][rows] @ self._factors[1][columns].T

    def _part_blocks(self) -> Iterator[np.ndarray]:
        """Sums of the pairs that have the same labels, those of some labels of A at a time."""
        (words_a, rows), (words_b, columns) = self._words
        left, right = _summed_rows(self._factors[0], rows), _summed_rows(self._factors[1], columns).T
        step = count_within(64 * len(words_b), PAIRS)
        for start in range(0, len(words_a), step):
            yield (left[start : start + step] @ right).ravel()

    def _part_labels(self, i: int) -> tuple[str, str]:
        (words_a, _), (words_b, _) = self._words
        row, column = divmod(i, len(words_b))
        return words_a[row], words_b[column]

    def _shown(self) -> tuple[np.ndarray, list[str], list[str]]:
        """The part of the matrix that is drawn, and the labels of its rows and columns."""
        rows, columns = map(foremost, self.vectors)
        return self._entries(rows, columns), [self.labels[0][i] for i in rows], [self.labels[1][i] for i in columns]

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

        Of large groups, the 60 vectors of each that contribute most are drawn.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; ``None`` makes a figure whose size fits the number of vectors.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        matrix, in_a, in_b = self._shown()
        ax = new_axes("PairExplanation.plot", 1.6 + 0.42 * len(in_b), 1.4 + 0.32 * len(in_a)) if ax is None else ax
        colors = import_extra("matplotlib.colors", "PairExplanation.plot")
        colour_map = colors.LinearSegmentedColormap.from_list("evidence", [colour(-1), (1, 1, 1), colour(1)])
        largest = largest_of(matrix)
        image = ax.imshow(matrix, cmap=colour_map, vmin=-largest, vmax=largest, aspect="auto")
        ax.set_xticks(range(len(in_b)), in_b, rotation=45, ha="right", parse_math=False)
        ax.set_yticks(range(len(in_a)), in_a, parse_math=False)
        ax.tick_params(length=0)
        title = "\n".join(filter(None, [self._value().lower(), self._order(), self._omission()]))
        ax.set_title(title, fontsize="medium", loc="left")
        ax.figure.colorbar(image, ax=ax, label="part of the cosine")
        return ax

    def _html_parts(self) -> list[str]:
        strongest = (f"{escape(str(a))} ~ {escape(str(b))} {value:+.3f}" for a, b, value in self.strongest())
        matrix, in_a, in_b = self._shown()
        largest = largest_of(matrix)
        head = "".join(f"<th style='{_CELL}'>{escape(label)}</th>" for label in in_b)
        rows = [f"<tr><th style='{_CELL}'></th>{head}</tr>"]
        for label, values in zip(in_a, matrix, strict=True):
            cells = "".join(_cell(value, value / largest) for value in values)
            rows.append(f"<tr><th style='{_CELL}; text-align: right'>{escape(label)}</th>{cells}</tr>")
        table = f"<table style='border-collapse: collapse; color: inherit'>{''.join(rows)}</table>"
        notes = filter(None, ["Blue pairs of words increase the cosine, orange pairs reduce it.", self._omission()])
        foot = f"<p><small>{' '.join(notes)}</small></p>"
        head = "<br>".join(filter(None, [f"{self._value()}: {', '.join(strongest)}", self._order().capitalize()]))
        return [head, f"<div style='overflow-x: auto'>{table}</div>", foot]


def _numbered(labels: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different labels in order of appearance, and the number of each label among them."""
    numbers: dict[str, int] = {}
    numbered = [numbers.setdefault(label, len(numbers)) for label in labels]
    return list(numbers), numbered


def _summed_rows(rows: np.ndarray, numbers: list[int]) -> np.ndarray:
    """Sums of the rows of each number."""
    if max(numbers, default=-1) + 1 == len(rows):
        return rows
    sums = np.zeros((max(numbers) + 1, rows.shape[1]), rows.dtype)
    np.add.at(sums, numbers, rows)
    return sums


def _cell(value: float, tone: float) -> str:
    shown = f"{value:+.2f}" if abs(value) >= 0.005 else ""
    return f"<td style='{_CELL}; {coloured_ground(tone)}' title='{value:+.4f}'>{shown}</td>"
