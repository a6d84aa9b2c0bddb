"""Explanation of a cosine by pairs of vectors: which word of one text belongs to which word of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from typing import Any

import numpy as np

from sklearn_mcsg.explanation._models import AGAINST, FOR, coloured_ground, coloured_word

__all__ = ["PairExplanation"]

_CELL = "padding: 2px 6px; font-weight: normal; text-align: center; color: inherit; border: none"


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation:
    """The cosine of two embedded groups as a sum over pairs of their vectors.

    Attributes
    ----------
    similarity : float
        The cosine of the two embeddings.
    matrix : ndarray of shape (n_vectors_a, n_vectors_b)
        Contribution of each pair of vectors. The entries sum to `similarity`.
    labels : tuple of two lists of str
        Names of the vectors of A and of B.
    weights : tuple of two ndarrays
        Weights of the vectors.

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

    @classmethod
    def of(
        cls, left: np.ndarray, right: np.ndarray, labels: tuple[list[str], list[str]], weights: Sequence[np.ndarray]
    ) -> PairExplanation:
        """Multiply the parts of the vectors of two groups in their embeddings."""
        lengths = np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0))
        matrix = left @ right.T / (lengths if lengths > 0 else 1.0)
        return cls(float(matrix.sum()), matrix, labels, (weights[0], weights[1]))

    @cached_property
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Contribution of each vector of A and of B: the sum of its pairs."""
        return self.matrix.sum(axis=1), self.matrix.sum(axis=0)

    def strongest(self, n_pairs: int = 5) -> list[tuple[str, str, float]]:
        """The pairs of vectors that increase the cosine most.

        Parameters
        ----------
        n_pairs : int, default=5
            Largest number of pairs.

        Returns
        -------
        pairs : list of (label_a, label_b, contribution)
            Positive contributions only, the largest first. Pairs of the same labels are summed.
        """
        return [(*pair, value) for pair, value in self._ranked[:n_pairs] if value > 0]

    def weakest(self, n_pairs: int = 5) -> list[tuple[str, str, float]]:
        """The pairs of vectors that reduce the cosine most.

        Parameters
        ----------
        n_pairs : int, default=5
            Largest number of pairs.

        Returns
        -------
        pairs : list of (label_a, label_b, contribution)
            Negative contributions only, the most negative first. Pairs of the same labels are summed.
        """
        return [(*pair, value) for pair, value in self._ranked[::-1][:n_pairs] if value < 0]

    @cached_property
    def _ranked(self) -> list[tuple[tuple[str, str], float]]:
        """Pairs of labels with their contributions, the largest first."""
        summed: dict[tuple[str, str], float] = {}
        for i, a in enumerate(self.labels[0]):
            for j, b in enumerate(self.labels[1]):
                summed[a, b] = summed.get((a, b), 0.0) + float(self.matrix[i, j])
        return sorted(summed.items(), key=lambda item: -item[1])

    def to_frame(self) -> Any:
        """The matrix as a table.

        Returns
        -------
        frame : pandas.DataFrame
            One row per vector of A, one column per vector of B.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("PairExplanation.to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame(self.matrix, index=self.labels[0], columns=self.labels[1])

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
        try:
            import matplotlib.pyplot as plt
            from matplotlib.colors import LinearSegmentedColormap
        except ImportError as error:
            message = 'PairExplanation.plot needs matplotlib: pip install "sklearn-mcsg[plot]".'
            raise ImportError(message) from error
        rows, columns = self.matrix.shape
        if ax is None:
            size = 1.6 + 0.42 * columns, 1.4 + 0.32 * rows
            ax = plt.subplots(figsize=size, layout="constrained")[1]
        colours: Any = [np.divide(AGAINST, 255), (1, 1, 1), np.divide(FOR, 255)]
        colour_map = LinearSegmentedColormap.from_list("evidence", colours)
        largest = np.abs(self.matrix).max(initial=0) or 1
        image = ax.imshow(self.matrix, cmap=colour_map, vmin=-largest, vmax=largest, aspect="auto")
        ax.set_xticks(range(columns), self.labels[1], rotation=45, ha="right", parse_math=False)
        ax.set_yticks(range(rows), self.labels[0], parse_math=False)
        ax.tick_params(length=0)
        ax.set_title(f"cosine {self.similarity:.3f}", fontsize="medium", loc="left")
        ax.figure.colorbar(image, ax=ax, label="part of the cosine")
        return ax

    def to_html(self) -> str:
        """Render both groups as lines of words and, below, all pairs of words as a heat map.

        The colour of a word in a line shows the sum of its pairs. Numbers are shown when the pointer rests on a word.

        Returns
        -------
        html : str
            A fragment without scripts or references, readable on light and dark pages.
        """
        largest = max(np.abs(values).max(initial=0) for values in self.vectors) or 1
        lines = [f"<p>Cosine {self.similarity:.3f}: {', '.join(map(_in_html, self.strongest()))}</p>"]
        for name, labels, values in zip("AB", self.labels, self.vectors, strict=True):
            words = " ".join(map(partial(coloured_word, digits=3), labels, values, values / largest))
            lines.append(f"<p style='line-height: 1.9'><b>{name}</b>&ensp;{words}</p>")
        largest = np.abs(self.matrix).max(initial=0) or 1
        head = "".join(f"<th style='{_CELL}'>{escape(label)}</th>" for label in self.labels[1])
        rows = [f"<tr><th style='{_CELL}'></th>{head}</tr>"]
        for label, values in zip(self.labels[0], self.matrix, strict=True):
            cells = "".join(_cell(value, value / largest) for value in values)
            rows.append(f"<tr><th style='{_CELL}; text-align: right'>{escape(label)}</th>{cells}</tr>")
        table = f"<table style='border-collapse: collapse; color: inherit'>{''.join(rows)}</table>"
        foot = "<p><small>Blue pairs of words increase the cosine, orange pairs reduce it.</small></p>"
        return "\n".join(["<div>", *lines, f"<div style='overflow-x: auto'>{table}</div>", foot, "</div>"])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        lines = [f"Cosine {self.similarity:.3f} of {len(self.labels[0])} and {len(self.labels[1])} vectors"]
        lines += [f"  {a} ~ {b} {value:+.3f}" for a, b, value in self.strongest()]
        return "\n".join(lines)


def _in_html(pair: tuple[str, str, float]) -> str:
    a, b, value = pair
    return f"{escape(a)} ~ {escape(b)} {value:+.3f}"


def _cell(value: float, tone: float) -> str:
    shown = f"{value:+.2f}" if abs(value) >= 0.005 else ""
    return f"<td style='{_CELL}; {coloured_ground(tone)}' title='{value:+.4f}'>{shown}</td>"
