"""Explanation of a similarity by single vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.explanation._base import NAMES, Explanation, colour, coloured_ground, foremost, largest_of, new_axes

_NO_DIFFERENCE = 1e-9  # relative to the largest contribution; smaller values are rounding errors


@dataclass(frozen=True, eq=False, repr=False)
class VectorExplanation(Explanation):
    """The similarity of two groups as a sum over their vectors.

    ``vectors[0].sum() + vectors[1].sum() + penalty + prior + rest == similarity``, up to rounding.

    Attributes
    ----------
    similarity : float
        Similarity of the two groups, A and B: the output ``"similarity"``, whatever the estimator's `output`.
    vectors : tuple of two ndarrays of shape (n_vectors,)
        Contribution of each vector of A and of B: twice its weight times the change in its log density, from its own
        group's model to the shared model. Some contributions may be positive, but their sum with `prior` is not,
        because one model does not fit better than two. Under ``criterion="bayes"`` a contribution is the amount by
        which the similarity falls when the vector is left out.
    labels : tuple of two lists of str
        Names of the vectors.
    weights : tuple of two ndarrays of shape (n_vectors,)
        Weights of the vectors.
    features : tuple of two ndarrays of shape (n_vectors, n_features), or None
        Contribution of each feature of each vector, if the model is a product over features, as ``"diag"`` is. Rows sum
        to `vectors`.
    penalty : float
        Twice the penalties of the two models minus twice that of the shared model.
    prior : float
        Contribution of the pseudo-vectors of both groups; 0 without `prior_strength`.
    rest : float
        The part that the contributions of the vectors do not explain. It is 0 except under ``"bayes"``, whose evidence
        is not a sum over vectors.

    Notes
    -----
    A contribution compares two models of the same vector. It is most negative for vectors that are typical of their own
    group but not of the other, and positive or slightly negative for vectors that lie towards the other group. It is
    also small for outliers, which their own group's model already fits badly. Leaving vectors out, as under
    ``"bayes"``, answers a different question: how similar the groups are without the vector.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> a, b = [[0.0], [1.0], [2.0], [5.0]], [[4.0], [6.0], [7.0]]
    >>> explanation = ModelComparisonSimilarity().explain(a, b)
    >>> explanation
    Similarity -2.16 of 4 and 3 vectors: vectors -6.16, penalty +4.00
      for:     A[3] +2.58, B[0] +1.29
      against: B[1] -1.38, B[2] -1.29, A[0] -0.65
      (compared with the average vector)
    >>> explanation.vectors[0].round(2)
    array([-1.53, -1.36, -0.95,  1.7 ])
    """

    similarity: float
    vectors: tuple[np.ndarray, np.ndarray]
    labels: tuple[list[str], list[str]]
    weights: tuple[np.ndarray, np.ndarray]
    features: tuple[np.ndarray, np.ndarray] | None = None
    penalty: float = 0.0
    prior: float = 0.0
    rest: float = 0.0

    @lazy
    def tones(self) -> tuple[np.ndarray, np.ndarray]:
        """Contributions minus the average contribution per unit of weight in both groups.

        Compared with the average vector, positive values are evidence for one shared model and negative values for two.
        They determine the colours and order of words, because nearly all contributions themselves are negative.
        """
        average = sum(v.sum() for v in self.vectors) / (sum(w.sum() for w in self.weights) or 1)
        least = _NO_DIFFERENCE * largest_of(*self.vectors)
        apart = (v - average * w for v, w in zip(self.vectors, self.weights, strict=True))
        left, right = (np.where(np.abs(v) > least, v, 0) for v in apart)
        return left, right

    def __repr__(self) -> str:
        lines = [": ".join(self._headlines())]
        for name, parts in (("for:    ", self.strongest(3)), ("against:", self.weakest(3))):
            if parts:
                listed = (f"{a if b is None else b} {value:+.2f}" for a, b, value in parts)
                lines.append(f"  {name} {', '.join(listed)}")
        if len(lines) > 1:
            lines.append("  (compared with the average vector)")
        return "\n".join(lines)

    def _part_blocks(self) -> Iterator[np.ndarray]:
        yield np.concatenate(self.tones)

    def _part_labels(self, i: int) -> tuple[str | None, str | None]:
        in_a, in_b = self.labels
        return (in_a[i], None) if i < len(in_a) else (None, in_b[i - len(in_a)])

    def to_frame(self) -> Any:
        """Contributions as a table that sums to the similarity.

        Returns
        -------
        frame : pandas.DataFrame
            Columns ``group`` ("A" or "B"), ``label``, ``weight`` and ``contribution``, with one row per vector in the
            order of the groups; then the other parts that are not 0, with "both" as their group and no weight.
        """
        parts = self._others()
        columns = {
            "group": [*np.repeat(NAMES, [len(v) for v in self.vectors]).tolist(), *["both"] * len(parts)],
            "label": [*self.labels[0], *self.labels[1], *parts],
            "weight": np.concatenate([*self.weights, np.full(len(parts), np.nan)]),
            "contribution": np.concatenate([*self.vectors, list(parts.values())]),
        }
        return import_extra("pandas", "VectorExplanation.to_frame").DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw contributions as bars in descending order, those of A above those of B.

        Blue bars increase the similarity, orange bars reduce it. Of large groups, the 60 vectors of each that
        contribute most are drawn.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; ``None`` makes a figure whose height fits the number of vectors.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        left, right = map(_foremost_in_order, self.vectors)
        n_bars = len(left) + len(right)
        ax = new_axes("VectorExplanation.plot", 6.4, 1.4 + 0.24 * n_bars) if ax is None else ax
        places = np.arange(len(left)), np.arange(len(right)) + len(left) + 1
        for name, place, order, values in zip(NAMES, places, (left, right), self.vectors, strict=True):
            ax.barh(place, values[order], color=[colour(value) for value in values[order]])
            if len(place):
                ax.text(1.02, place.mean(), name, transform=ax.get_yaxis_transform(), va="center", weight="bold")
        labels = [self.labels[0][i] for i in left] + [self.labels[1][i] for i in right]
        ax.set_yticks(np.concatenate(places), labels, parse_math=False)
        ax.set_ylim(n_bars + 0.7, -0.7)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.set_xlabel("drop in similarity without the vector" if self.rest else "contribution to the similarity")
        ax.set_title("\n".join(filter(None, [*self._headlines(), self._omission()])), fontsize="medium", loc="left")
        return ax

    def _html_parts(self) -> list[str]:
        tones = {"for": 0.8, "against": -0.8}
        signs = (f"<span style='{coloured_ground(tone)}'>{text}</span>" for text, tone in tones.items())
        foot = f"<p><small>Compared with the average vector: {' and '.join(signs)} one shared model.</small></p>"
        return [": ".join(self._headlines()), foot]

    def _headlines(self) -> tuple[str, str]:
        """The similarity, and its parts."""
        vectors = "vectors (each left out in turn)" if self.rest else "vectors"
        parts = {vectors: sum(v.sum() for v in self.vectors), **self._others()}
        return self._headline(), ", ".join(f"{name} {value:+.2f}" for name, value in parts.items())

    def _others(self) -> dict[str, float]:
        """The parts other than vectors that are not 0."""
        parts = {"penalty": self.penalty, "prior": self.prior, "rest": self.rest}
        return {name: value for name, value in parts.items() if value}


def _foremost_in_order(values: np.ndarray) -> np.ndarray:
    """Positions of the values that a drawing shows, the largest first."""
    shown = foremost(values)
    return shown[np.argsort(-values[shown], kind="stable")]


class FeatureChange(NamedTuple):
    """How a feature differs between the two sides of a boundary.

    Attributes
    ----------
    name : str
        Name of the feature.
    gain : float
        Minus twice the log likelihood ratio of one normal distribution against two, of this feature alone.
    means, deviations : tuple of two floats
        Mean and standard deviation of the feature before and after the boundary.
    """

    name: str
    gain: float
    means: tuple[float, float]
    deviations: tuple[float, float]

    def __str__(self) -> str:
        shown = {"mean": self.means, "deviation": self.deviations}
        return f"{self.name}: " + ", ".join(f"{what} {a:.3g} -> {b:.3g}" for what, (a, b) in shown.items())


@dataclass(frozen=True, eq=False, repr=False)
class BoundaryExplanation(VectorExplanation):
    """The similarity of the segments before and after a boundary: as a sum over rows, and by what changed.

    It is a `VectorExplanation` with one more attribute.

    Attributes
    ----------
    changes : list of FeatureChange
        For each feature its `name`, its `gain` (how much better two normal distributions describe it than one), its
        `means` and its `deviations` before and after the boundary; those that changed most come first. It is empty for
        groups of several vectors, which were embedded.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import ModelComparisonSegmenter
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(40, 2)), rng.normal([0, 3], 1, size=(30, 2))])
    >>> explanation = ModelComparisonSegmenter(n_segments=2).fit(X).explain(0)
    >>> change = explanation.changes[0]
    >>> change.name, [round(mean, 1) for mean in change.means]
    ('feature 1', [0.1, 3.2])
    """

    changes: list[FeatureChange] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = [f"  changed: {change}" for change in self.changes[:3]]
        return "\n".join([super().__repr__(), *lines])
