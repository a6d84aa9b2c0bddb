"""Explanations: the contribution of each vector to a similarity.

The log-likelihood of a group is a sum over its vectors, so the similarity of two groups is also a sum. Its terms are
each vector's change in log density from its own group's model to the shared model, and the penalties:

    similarity = sum over vectors of 2 weight (log p_shared(x) - log p_own(x)) + prior + penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from sklearn_mcsg.engine.learnt import Learnt
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.regroup import divided, united
from sklearn_mcsg.likelihoods import Fit, Likelihood, Statistics

__all__ = ["Explanation", "explain_boundary", "explain_groups"]

NO_DIFFERENCE = 1e-9  # relative to the largest contribution; smaller values are rounding errors
_NAMES = "A", "B"
FOR, AGAINST = (0, 114, 178), (230, 159, 0)  # blue and orange, distinct for colour-blind readers
_SIMILARITY = OUTPUTS["similarity"]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The parts of one similarity.

    ``vectors[0].sum() + vectors[1].sum() + penalty + prior + rest == similarity``, up to rounding.

    Attributes
    ----------
    similarity : float
        Similarity of the two groups, A and B: the output ``"similarity"``, whatever the estimator's `output`.
    vectors : tuple of two ndarrays of shape (n_vectors,)
        Contribution of each vector of A and of B: twice its weight times the change in its log density, from its own
        group's model to the shared model. Some contributions may be positive, but their sum never is, because one model
        never fits better than two. Under ``criterion="bayes"`` a contribution is the amount by which the
        similarity falls when the vector is left out.
    features : tuple of two ndarrays of shape (n_vectors, n_features), or None
        Contribution of each feature of each vector, if the model is a product over features, as ``"diag"`` is. Rows sum
        to `vectors`.
    penalty : float
        Penalties of the two models minus the penalty of the shared model.
    prior : float
        Contribution of the pseudo-vectors of both groups; 0 without `prior_strength`.
    rest : float
        The part that the contributions of the vectors do not explain. It is 0 except under ``"bayes"``, whose evidence
        is not a sum over vectors.
    labels : tuple of two lists of str
        Names of the vectors.
    weights : tuple of two ndarrays of shape (n_vectors,)
        Weights of the vectors.

    Notes
    -----
    A contribution compares two models of the same vector. It is most negative for vectors that are typical of their own
    group but not of the other, and small or positive for vectors that lie towards the other group. It is also small for
    outliers, which their own group's model already fits badly. Leaving vectors out, as under ``"bayes"``, answers a
    different question: how similar the groups are without the vector.

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
    features: tuple[np.ndarray, np.ndarray] | None
    penalty: float
    prior: float
    rest: float
    labels: tuple[list[str], list[str]]
    weights: tuple[np.ndarray, np.ndarray]

    @cached_property
    def relative(self) -> tuple[np.ndarray, np.ndarray]:
        """Contributions minus the average contribution per unit of weight in both groups.

        Compared with the average vector, positive values are evidence for one shared model and negative values for two.
        They determine the colours and order of words, because nearly all contributions themselves are negative.
        """
        total, largest = sum(v.sum() for v in self.vectors), max(np.abs(v).max(initial=0) for v in self.vectors)
        average = total / (sum(w.sum() for w in self.weights) or 1)
        apart = [v - average * w for v, w in zip(self.vectors, self.weights, strict=True)]
        left, right = (np.where(np.abs(v) > NO_DIFFERENCE * largest, v, 0) for v in apart)
        return left, right

    def to_frame(self) -> Any:
        """Contributions as a table that sums to the similarity.

        Returns
        -------
        frame : pandas.DataFrame
            Columns ``group`` ("A" or "B"), ``label``, ``weight`` and ``contribution``, with one row per vector in the
            order of the groups; then the other parts that are not 0, with "both" as their group and no weight.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Explanation.to_frame needs pandas: pip install pandas.") from error
        parts = self._others()
        return pd.DataFrame(
            {
                "group": [*np.repeat(_NAMES, [len(v) for v in self.vectors]).tolist(), *["both"] * len(parts)],
                "label": [*self.labels[0], *self.labels[1], *parts],
                "weight": np.concatenate([*self.weights, np.full(len(parts), np.nan)]),
                "contribution": np.concatenate([*self.vectors, list(parts.values())]),
            }
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw contributions as bars in descending order, those of A above those of B.

        Blue bars increase the similarity, orange bars reduce it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; ``None`` makes a figure whose height fits the number of vectors.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        left, right = (np.argsort(-v, kind="stable") for v in self.vectors)
        places = np.arange(len(left)), np.arange(len(right)) + len(left) + 1
        ax = _new_axes(len(left) + len(right)) if ax is None else ax
        for name, place, order, values in zip(_NAMES, places, (left, right), self.vectors, strict=True):
            colours = [np.divide(FOR if value > 0 else AGAINST, 255) for value in values[order]]
            ax.barh(place, values[order], color=colours)
            if len(place):
                ax.text(1.02, place.mean(), name, transform=ax.get_yaxis_transform(), va="center", weight="bold")
        labels = [self.labels[0][i] for i in left] + [self.labels[1][i] for i in right]
        ax.set_yticks(np.concatenate(places), labels, parse_math=False)
        ax.set_ylim(len(labels) + 0.7, -0.7)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.set_xlabel("drop in similarity without the vector" if self.rest else "contribution to the similarity")
        ax.set_title("\n".join(self._headlines()), fontsize="medium", loc="left")
        return ax

    def to_html(self) -> str:
        """Render both groups as lines of words, coloured by their contribution.

        Blue words are evidence for one shared model and orange words evidence against it, compared with the average
        vector (see `relative`). The contribution is shown when the pointer rests on a word.

        Returns
        -------
        html : str
            A fragment without scripts or external references, readable on light and dark pages.
        """
        largest = max(np.abs(r).max(initial=0) for r in self.relative) or 1
        lines = []
        for name, labels, values, relative in zip(_NAMES, self.labels, self.vectors, self.relative, strict=True):
            words = map(coloured_word, labels, values, relative / largest)
            lines.append(f"<p style='line-height: 1.9'><b>{name}</b>&ensp;{' '.join(words) or '(no vectors)'}</p>")
        head = f"<p>{': '.join(self._headlines())}</p>"
        signs = (
            f"<span style='{coloured_ground(tone)}'>{text}</span>" for tone, text in ((0.8, "for"), (-0.8, "against"))
        )
        foot = f"<p><small>Compared with the average vector: {' and '.join(signs)} one shared model.</small></p>"
        return "\n".join(["<div>", head, *lines, foot, "</div>"])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        relative = np.concatenate(self.relative)
        labels = [*self.labels[0], *self.labels[1]]
        order = np.argsort(-relative, kind="stable")
        chosen = {
            "for:    ": [i for i in order if relative[i] > 0][:3],
            "against:": [i for i in order[::-1] if relative[i] < 0][:3],
        }
        lines = [": ".join(self._headlines())]
        for name, best in chosen.items():
            if best:
                lines.append(f"  {name} {', '.join(f'{labels[i]} {relative[i]:+.2f}' for i in best)}")
        if len(lines) > 1:
            lines.append("  (compared with the average vector)")
        return "\n".join(lines)

    def _others(self) -> dict[str, float]:
        """The parts other than vectors that are not 0."""
        parts = {"penalty": self.penalty, "prior": self.prior, "rest": self.rest}
        return {name: value for name, value in parts.items() if value}

    def _headlines(self) -> tuple[str, str]:
        """The similarity, and its parts."""
        sizes = " and ".join(str(len(v)) for v in self.vectors)
        vectors = "vectors (each left out in turn)" if self.rest else "vectors"
        parts = {vectors: sum(v.sum() for v in self.vectors), **self._others()}
        sums = ", ".join(f"{name} {value:+.2f}" for name, value in parts.items())
        return f"Similarity {self.similarity:.2f} of {sizes} vectors", sums


def explain_groups(learnt: Learnt, a: Groups, b: Groups, labels: Sequence[Sequence[Any]] | None = None) -> Explanation:
    """Explain the similarity of two groups by their vectors, as `ModelComparisonSimilarity.explain` does.

    A criterion that does not use the maximum of the log-likelihood, such as ``"bayes"``, is explained by leaving out
    vectors. The contribution of a vector is then the similarity minus the similarity without it, or the whole
    similarity if its group is empty without it. These contributions do not sum to the similarity; `Explanation.rest`
    is the difference.

    Parameters
    ----------
    learnt : Learnt
        State of the similarity, from `ModelComparisonSimilarity.learnt`.
    a, b : Groups of length 1
        The two groups.
    labels : pair of sequences, default=None
        Names of the vectors of `a` and `b`; ``None`` means the labels of the groups, or positions without labels.

    Returns
    -------
    explanation : Explanation
    """
    names = pair_labels(labels, (a, b))
    a, b = learnt.comparison.counted(a), learnt.comparison.counted(b)
    sides = learnt.prepare(a, _SIMILARITY), learnt.prepare(b, _SIMILARITY)
    similarity = float(learnt.comparison.row_by_row(*sides, _SIMILARITY)[0])
    explain = _by_likelihood if learnt.comparison.criterion.is_penalized_likelihood else _by_leaving_out
    with np.errstate(all="ignore"):
        parts = explain(learnt.comparison, (a, b), sides, similarity)
    return Explanation(similarity, **parts, labels=names, weights=(a.row_weights, b.row_weights))


def explain_boundary(comparison: GroupModel, segments: Groups, similarity: float, penalty: float) -> Explanation:
    """Explain the similarity of two segments by their vectors; `penalty` is added for the boundary between them.

    Each of the models, of both segments and of their union, contains the pseudo-vectors once.
    """
    if not comparison.criterion.is_penalized_likelihood:
        name = type(comparison.criterion).__name__
        raise ValueError(
            f"A boundary is explained by the log-likelihood of its vectors, which {name} does not use: choose "
            f"criterion='aic' or 'bic'."
        )
    sides = segments[[0]], segments[[1]]
    union = united(segments)
    with np.errstate(all="ignore"):
        *own, shared = (comparison.with_pseudo(comparison.statistics(group)) for group in (*sides, union))
        parts = _by_models(comparison, sides, own, shared, similarity)
    parts["penalty"] += penalty
    weights = sides[0].row_weights, sides[1].row_weights
    return Explanation(similarity + penalty, **parts, labels=pair_labels(None, sides), weights=weights)


# The parts of a similarity ------------------------------------------------------------------------------------------


def _by_likelihood(
    comparison: GroupModel, groups: tuple[Groups, Groups], sides: tuple[Prepared, Prepared], similarity: float
) -> dict[str, Any]:
    """Explain by the models of both groups and of their union, in which the pseudo-vectors of both are contained."""
    own = [side.statistics for side in sides]
    return _by_models(comparison, groups, own, comparison.likelihood.pool(*own), similarity)


def _by_models(
    comparison: GroupModel, groups: tuple[Groups, Groups], own: list[Statistics], shared: Statistics, similarity: float
) -> dict[str, Any]:
    """Explain by each vector's log density under the shared model minus that under its own group's model."""
    likelihood = comparison.likelihood
    gains = []
    for group, model in zip(groups, own, strict=True):
        (gain,) = _gains(likelihood, shared, model, group.rows(), group.row_weights)
        gains.append(gain)
    vectors = tuple(gain.sum(axis=1) if gain.ndim == 2 else gain for gain in gains)
    a, b, union = (float(np.ravel(comparison.criterion.penalty(Fit(likelihood, model)))[0]) for model in (*own, shared))
    penalty = 2 * comparison.penalty_scale * (a + b - union)
    remainder = similarity - penalty - sum(v.sum() for v in vectors)
    return {
        "vectors": vectors,
        "features": tuple(gains) if gains[0].ndim == 2 else None,
        "penalty": penalty,
        "prior": 0.0 if comparison.pseudo is None else float(remainder),  # the remainder is due to pseudo-vectors
        "rest": 0.0,
    }


def _gains(
    likelihood: Likelihood, shared: Statistics, own: Statistics, rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Twice the weighted change in log density of vectors from their own group's model to each shared model."""
    gain = likelihood.vector_log_likelihood(shared, rows) - likelihood.vector_log_likelihood(own, rows)
    weights = weights[:, None] if gain.ndim == 3 else weights
    return np.where(weights > 0, 2 * weights * gain, 0)


def _by_leaving_out(
    comparison: GroupModel, groups: tuple[Groups, Groups], sides: tuple[Prepared, Prepared], similarity: float
) -> dict[str, Any]:
    """Explain by the amount that the similarity falls without each vector."""
    vectors = tuple(
        similarity - _similarity_without_each(comparison, group, other)[:, 0]
        for group, other in zip(groups, reversed(sides), strict=True)
    )
    rest = float(similarity - sum(v.sum() for v in vectors))
    return {"vectors": vectors, "features": None, "penalty": 0.0, "prior": 0.0, "rest": rest}


def _similarity_without_each(comparison: GroupModel, group: Groups, others: Prepared) -> np.ndarray:
    """Similarity of a group without each vector in turn to other groups; 0 where no vector is left."""
    n = group.n_rows
    reduced = divided(group, np.nonzero(~np.eye(n, dtype=bool))[1].reshape(n, max(0, n - 1)))
    similarity = np.zeros((n, len(others)))
    filled = np.flatnonzero((reduced.totals > 0) | (comparison.pseudo is not None))
    if len(filled):
        prepared = comparison.prepare(comparison.statistics(reduced[filled]), _SIMILARITY)
        similarity[filled] = comparison.all_pairs(prepared, others, _SIMILARITY)
    return similarity


# Labels and display -------------------------------------------------------------------------------------------------


def pair_labels(labels: Any, groups: Sequence[Groups]) -> tuple[list[str], list[str]]:
    """Names of the vectors of two groups: the given ones, their own labels, or positions."""
    if labels is None:
        left, right = (_own_labels(name, group) for name, group in zip(_NAMES, groups, strict=True))
        return left, right
    sides = [labels] if isinstance(labels, str) else list(labels)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise ValueError(f"labels must be two lists of labels, for a and for b, got {labels!r}.")
    for name, side, group in zip("ab", sides, groups, strict=True):
        if len(side) != group.n_rows:
            raise ValueError(f"{name} has {group.n_rows} vectors but {len(side)} labels.")
    left, right = ([str(label) for label in side] for side in sides)
    return left, right


def _own_labels(name: str, group: Groups) -> list[str]:
    """The labels of a group, or positions where labels are missing."""
    labels = [None] * group.n_rows if group.labels is None else group.labels
    return [f"{name}[{i}]" if label is None else str(label) for i, label in enumerate(labels)]


def coloured_word(label: str, value: float, tone: float, digits: int = 2) -> str:
    """A word with a background from orange (tone -1) to blue (tone 1)."""
    return f"<span style='{coloured_ground(tone)}' title='{value:+.{digits}f}'>{escape(label)}</span>"


def coloured_ground(tone: float) -> str:
    """The style of a background from orange (tone -1) to blue (tone 1)."""
    red, green, blue = FOR if tone > 0 else AGAINST
    return f"background: rgba({red}, {green}, {blue}, {0.45 * abs(tone):.2f}); border-radius: 3px; padding: 1px 3px"


def _new_axes(n_bars: int) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Explanation.plot needs matplotlib: pip install "sklearn-mcsg[plot]".') from error
    return plt.subplots(figsize=(6.4, 1.4 + 0.24 * n_bars), layout="constrained")[1]
