"""Explanations: what each vector adds to a similarity or costs it.

The log-likelihood of a group is a sum over its vectors, so the similarity of two groups is one, too: of the gain or
loss of each vector from its own group's model to the shared one, and of what the models cost,

    similarity = sum over vectors of 2 weight (log p_shared(x) - log p_own(x)) + prior + penalty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches

from sklearn_mcsg._base import ComparisonEstimator
from sklearn_mcsg._checks import check_group
from sklearn_mcsg._pairwise import Comparison, Side, rows_per_chunk
from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import Fit, Likelihood, Statistics

__all__ = ["Explanation", "contributions", "explain_pair", "explain_texts"]

_NAMES = "A", "B"
_FOR, _AGAINST = (0, 114, 178), (230, 159, 0)  # blue and orange that colour-blind eyes tell apart
_NO_DIFFERENCE = 1e-9  # of the largest contribution: below it two vectors speak alike, to rounding


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The parts of one similarity.

    They sum to it: ``vectors[0].sum() + vectors[1].sum() + penalty + prior + rest == similarity``, to rounding.

    Attributes
    ----------
    similarity : float
        Similarity of the two groups, A and B: the output ``"similarity"``, whatever the estimator returns.
    vectors : tuple of two ndarrays of shape (n_vectors,)
        Contribution of each vector of A and of B: twice its weight times the difference of its log density under the
        shared model and under its own group's. Together they are never positive, as two models always fit better than
        one; single ones may be. Under ``criterion="bayes"``: how much the similarity falls when the vector is left out.
    features : tuple of two ndarrays of shape (n_vectors, n_features), or None
        The same for each feature of each vector, where the model treats features apart, as ``"diag"`` does: rows sum to
        `vectors`.
    penalty : float
        What one model saves in flexibility, compared with two.
    prior : float
        Contribution of the pseudo-vectors of both groups; 0 without `prior_strength`.
    rest : float
        What the vectors do not explain one by one; 0 except under ``"bayes"``, whose evidence is no sum over vectors.
    labels : tuple of two lists of str
        Names of the vectors.
    weights : tuple of two ndarrays of shape (n_vectors,)
        Weights of the vectors.

    Notes
    -----
    A contribution compares two models of the same vector. Vectors that are typical of their own group and of no other
    lose most; those that lie towards the other group lose little or gain. An outlier, which its own group describes
    badly already, has little to lose either. Leaving vectors out, as under ``"bayes"``, asks another question: how
    similar the groups are without the vector.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> from sklearn_mcsg.explanation import explain_pair
    >>> a, b = [[0.0], [1.0], [2.0], [5.0]], [[4.0], [6.0], [7.0]]
    >>> explanation = explain_pair(ModelComparisonSimilarity(), a, b)
    >>> explanation
    Similarity -2.16 of 4 and 3 vectors: vectors -6.16, penalty +4.00
      for:     A[3] +1.70, B[0] +0.41
      against: B[1] -2.26, B[2] -2.17, A[0] -1.53
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
        """Contributions less the average one, per unit of weight, over both groups.

        A vector with a positive value speaks for one model, compared with the others; with a negative one, against it.
        Colours and order of words follow it, as otherwise nearly all vectors would speak against.
        """
        total, largest = sum(v.sum() for v in self.vectors), max(np.abs(v).max(initial=0) for v in self.vectors)
        average = total / (sum(w.sum() for w in self.weights) or 1)
        apart = [v - average * w for v, w in zip(self.vectors, self.weights, strict=True)]
        left, right = (np.where(np.abs(v) > _NO_DIFFERENCE * largest, v, 0) for v in apart)
        return left, right

    def to_frame(self) -> Any:
        """Contributions as a table that sums to the similarity.

        Returns
        -------
        frame : pandas.DataFrame
            Columns ``group`` ("A" or "B"), ``label``, ``weight`` and ``contribution``, a row for each vector in the
            groups' order; then, with "both" as their group and no weight, the other parts that are not 0.
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

        Blue bars add to the similarity, orange ones cost it.

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
            colours = [np.divide(_FOR if value > 0 else _AGAINST, 255) for value in values[order]]
            ax.barh(place, values[order], color=colours)
            if len(place):
                ax.text(1.02, place.mean(), name, transform=ax.get_yaxis_transform(), va="center", weight="bold")
        labels = [self.labels[0][i] for i in left] + [self.labels[1][i] for i in right]
        ax.set_yticks(np.concatenate(places), labels, parse_math=False)
        ax.set_ylim(len(labels) + 0.7, -0.7)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.set_xlabel("fall of the similarity without the vector" if self.rest else "contribution to the similarity")
        ax.set_title("\n".join(self._headlines()), fontsize="medium", loc="left")
        return ax

    def to_html(self) -> str:
        """Render both groups as lines of words, coloured by what they say.

        Blue words speak for one model, compared with the average vector, and orange ones against it: see `relative`.
        The number itself shows when the pointer rests on a word.

        Returns
        -------
        html : str
            A fragment without scripts or references, readable on light and dark pages.
        """
        largest = max(np.abs(r).max(initial=0) for r in self.relative) or 1
        lines = []
        for name, labels, values, relative in zip(_NAMES, self.labels, self.vectors, self.relative, strict=True):
            words = map(_word, labels, values, relative / largest)
            lines.append(f"<p style='line-height: 1.9'><b>{name}</b>&ensp;{' '.join(words) or '(no vectors)'}</p>")
        head = f"<p>{': '.join(self._headlines())}</p>"
        signs = (f"<span style='{_ground(tone)}'>{text}</span>" for tone, text in ((0.8, "for"), (-0.8, "against")))
        foot = f"<p><small>Compared with the average vector: {' and '.join(signs)} one shared model.</small></p>"
        return "\n".join(["<div>", head, *lines, foot, "</div>"])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        values, relative = np.concatenate(self.vectors), np.concatenate(self.relative)
        labels = [*self.labels[0], *self.labels[1]]
        order = np.argsort(-relative, kind="stable")
        chosen = {
            "for:    ": [i for i in order if relative[i] > 0][:3],
            "against:": [i for i in order[::-1] if relative[i] < 0][:3],
        }
        lines = [": ".join(self._headlines())]
        for name, best in chosen.items():
            if best:
                lines.append(f"  {name} {', '.join(f'{labels[i]} {values[i]:+.2f}' for i in best)}")
        return "\n".join(lines)

    def _others(self) -> dict[str, float]:
        """The parts besides vectors that there are."""
        parts = {"penalty": self.penalty, "prior": self.prior, "rest": self.rest}
        return {name: value for name, value in parts.items() if value}

    def _headlines(self) -> tuple[str, str]:
        """The similarity, and its parts."""
        sizes = " and ".join(str(len(v)) for v in self.vectors)
        vectors = "vectors (each left out in turn)" if self.rest else "vectors"
        parts = {vectors: sum(v.sum() for v in self.vectors), **self._others()}
        sums = ", ".join(f"{name} {value:+.2f}" for name, value in parts.items())
        return f"Similarity {self.similarity:.2f} of {sizes} vectors", sums


def explain_pair(estimator: Any, a: Any, b: Any, labels: Sequence[Sequence[Any]] | None = None) -> Explanation:
    """Explain the similarity of two groups by their vectors.

    Parameters
    ----------
    estimator : ModelComparisonSimilarity
        The similarity; fitted, if there is anything to learn.
    a, b : array-like of shape (n_vectors, n_features), or Groups of one group
        The two groups.
    labels : pair of sequences, default=None
        Names of the vectors of `a` and of `b`; ``None`` means their positions.

    Returns
    -------
    explanation : Explanation

    Notes
    -----
    A criterion whose goodness of fit is not the log-likelihood at its maximum, as ``"bayes"``, is explained by leaving
    vectors out: the contribution of a vector is the similarity less the one without it, or the whole similarity if
    nothing is left of its group. These do not sum to the similarity; `Explanation.rest` is the difference.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> from sklearn_mcsg.explanation import explain_pair
    >>> a, b = [[0.0, 1.0], [1.0, 2.0], [4.0, 4.0]], [[3.0, 4.0], [5.0, 3.0], [5.0, 6.0]]
    >>> explain_pair(ModelComparisonSimilarity(), a, b, labels=[["cat", "dog", "car"], ["bus", "van", "train"]])
    Similarity 0.05 of 3 and 3 vectors: vectors -7.95, penalty +8.00
      for:     car +2.49, bus -0.02
      against: train -3.50, cat -3.22, dog -2.30
    """
    if not isinstance(estimator, ComparisonEstimator):
        raise TypeError(
            f"A ModelComparisonSimilarity is explained, got {type(estimator).__name__}. For a pipeline of texts call "
            f"explain_texts."
        )
    estimator._validate_params()
    groups = _one_group(a, "a"), _one_group(b, "b")
    _check_pair(*groups, allow_empty=estimator.prior_strength > 0)
    names = _check_labels(labels, groups)
    left, right = (estimator._read(group, "similarity", name) for name, group in zip("ab", groups, strict=True))
    sides = estimator._prepare(left, "similarity"), estimator._prepare(right, "similarity")
    comparison = estimator._active()
    similarity = float(comparison.row_by_row(*sides, "similarity")[0])
    explain = _by_likelihood if _is_sum(comparison.criterion) else _by_leaving_out
    with np.errstate(all="ignore"):
        parts = explain(comparison, groups, sides, similarity)
    return Explanation(similarity, **parts, labels=names, weights=(_weights(left), _weights(right)))


def explain_texts(pipeline: Any, a: str, b: str) -> Explanation:
    """Explain the similarity of two texts by their words.

    Parameters
    ----------
    pipeline : Pipeline
        An `EmbeddingVectorizer` and a `ModelComparisonSimilarity`, fitted, as `make_text_similarity` builds it.
    a, b : str
        The two texts.

    Returns
    -------
    explanation : Explanation
        Its labels are the words that have a vector, in the texts' order.

    Examples
    --------
    >>> from sklearn_mcsg import make_text_similarity
    >>> from sklearn_mcsg.explanation import explain_texts
    >>> vectors = {"the": [1.0, 1.0], "cat": [3.0, 0.0], "kitten": [2.5, 0.5], "dog": [2.0, 1.0], "tax": [0.0, 4.0]}
    >>> pipeline = make_text_similarity(vectors=vectors).fit(["the cat", "the kitten", "the dog", "the tax"])
    >>> explanation = explain_texts(pipeline, "The cat and the dog", "the tax")
    >>> explanation.labels
    (['the', 'cat', 'the', 'dog'], ['the', 'tax'])
    """
    if not (isinstance(pipeline, Pipeline) and len(pipeline) > 1 and hasattr(pipeline[0], "known_words")):
        raise TypeError(
            "explain_texts needs a pipeline of an EmbeddingVectorizer and a ModelComparisonSimilarity, as "
            "make_text_similarity builds it."
        )
    for name, text in (("a", a), ("b", b)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be one text, a string, got {type(text).__name__}.")
    groups = pipeline[:-1].transform([a, b])
    return explain_pair(pipeline[-1], groups[[0]], groups[[1]], pipeline[0].known_words([a, b]))


def contributions(estimator: Any, X: Any) -> Iterator[np.ndarray]:
    """What each vector contributes to the similarity of its group with every group.

    Parameters
    ----------
    estimator : ModelComparisonSimilarity
        The similarity; fitted, if there is anything to learn.
    X : groups
        The groups.

    Yields
    ------
    contributions : ndarray of shape (n_groups, n_vectors)
        For each group in turn: those of its vectors, a row for each group it is compared with. They are the `vectors`
        of an `Explanation` of the pair.

    Examples
    --------
    >>> from sklearn_mcsg import ModelComparisonSimilarity
    >>> from sklearn_mcsg.explanation import contributions
    >>> X = [[[0.0], [1.0], [2.0], [5.0]], [[4.0], [6.0], [7.0]]]
    >>> first, second = contributions(ModelComparisonSimilarity(), X)
    >>> first.round(2)
    array([[ 0.  ,  0.  ,  0.  ,  0.  ],
           [-1.53, -1.36, -0.95,  1.7 ]])
    """
    estimator._validate_params()
    groups = estimator._read(X, "similarity")
    side = estimator._prepare(groups, "similarity")
    comparison = estimator._active()
    likelihood, own = comparison.likelihood, side.statistics
    by_likelihood = _is_sum(comparison.criterion)
    for i in range(len(groups)):
        group = groups[i : i + 1]
        if not by_likelihood:
            whole = comparison.all_pairs(side[i : i + 1], side, "similarity")
            yield (whole - _similarity_without_each(comparison, group, side)).T
            continue
        parts = []
        for others in gen_batches(len(groups), rows_per_chunk(32 * (1 + group.n_rows) * groups.n_features)):
            with np.errstate(all="ignore"):
                shared = likelihood.pool(own[np.full(others.stop - others.start, i)], own[others])
                gain = _gains(likelihood, shared, own[i : i + 1], group.rows(), _weights(group))
            parts.append(gain.sum(axis=2) if gain.ndim == 3 else gain)
        yield np.concatenate(parts)


# The parts of a similarity ------------------------------------------------------------------------------------------


def _is_sum(criterion: Criterion) -> bool:
    """Whether a criterion is the log-likelihood at its maximum, less a penalty."""
    return all(getattr(type(criterion), name) is getattr(Criterion, name) for name in ("goodness", "__call__"))


def _by_likelihood(
    comparison: Comparison, groups: tuple[Groups, Groups], sides: tuple[Side, Side], similarity: float
) -> dict[str, Any]:
    """Each vector's log density under the shared model, less that under its own group's."""
    likelihood = comparison.likelihood
    own = [side.statistics for side in sides]
    shared = likelihood.pool(*own)
    gains = []
    for group, model in zip(groups, own, strict=True):
        rows, weights = group.rows(), _weights(group)
        (gain,) = _gains(likelihood, shared, model, rows, weights)
        gains.append(gain)
    vectors = tuple(gain.sum(axis=1) if gain.ndim == 2 else gain for gain in gains)
    a, b, union = (float(np.ravel(comparison.criterion.penalty(Fit(likelihood, model)))[0]) for model in (*own, shared))
    penalty = 2 * comparison.penalty_scale * (a + b - union)
    remainder = similarity - penalty - sum(v.sum() for v in vectors)
    return {
        "vectors": vectors,
        "features": tuple(gains) if gains[0].ndim == 2 else None,
        "penalty": penalty,
        "prior": 0.0 if comparison.pseudo is None else float(remainder),  # only pseudo-vectors are left
        "rest": 0.0,
    }


def _gains(
    likelihood: Likelihood, shared: Statistics, own: Statistics, rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """What vectors contribute to the likelihood of each shared model, compared with their own group's."""
    gain = likelihood.vector_log_likelihood(shared, rows) - likelihood.vector_log_likelihood(own, rows)
    weights = weights[:, None] if gain.ndim == 3 else weights
    return np.where(weights > 0, 2 * weights * gain, 0)


def _by_leaving_out(
    comparison: Comparison, groups: tuple[Groups, Groups], sides: tuple[Side, Side], similarity: float
) -> dict[str, Any]:
    """How much the similarity falls without each vector."""
    vectors = tuple(
        similarity - _similarity_without_each(comparison, group, other)[:, 0]
        for group, other in zip(groups, reversed(sides), strict=True)
    )
    rest = float(similarity - sum(v.sum() for v in vectors))
    return {"vectors": vectors, "features": None, "penalty": 0.0, "prior": 0.0, "rest": rest}


def _similarity_without_each(comparison: Comparison, group: Groups, others: Side) -> np.ndarray:
    """Similarity to other groups of this one without each vector in turn, 0 where nothing is left of it."""
    n = group.n_rows
    kept = np.nonzero(~np.eye(n, dtype=bool))[1]
    reduced = Groups(group.rows(), (n - 1) * np.arange(n + 1), indices=kept, weights=_weights(group)[kept])
    similarity = np.zeros((n, len(others)))
    filled = np.flatnonzero((reduced.totals > 0) | (comparison.pseudo is not None))
    if len(filled):
        side = comparison.side(comparison.statistics(reduced[filled]), "similarity")
        similarity[filled] = comparison.all_pairs(side, others, "similarity")
    return similarity


# What goes in and what is shown -------------------------------------------------------------------------------------


def _weights(group: Groups) -> np.ndarray:
    return np.ones(group.n_rows) if group.weights is None else group.weights


def _one_group(x: Any, name: str) -> Groups:
    if isinstance(x, str | bytes):
        raise TypeError(f"{name} is a string; a group of vectors is required. For texts call explain_texts.")
    if not isinstance(x, Groups):
        vectors = check_group(x, name)
        return Groups(vectors, [0, len(vectors)])
    if len(x) != 1:
        raise ValueError(f"{name} holds {len(x)} groups, but one is explained at a time: pass {name}[[i]].")
    return x


def _check_pair(a: Groups, b: Groups, allow_empty: bool) -> None:
    for name, group in (("a", a), ("b", b)):
        if not allow_empty and not group.totals.any():
            what = "vectors of positive weight" if group.n_rows else "vectors"
            raise ValueError(
                f"{name} has no {what}: there is nothing to explain. Set pad_token for texts, or prior_strength > 0 "
                f"and fit, to compare empty groups."
            )
    if a.n_features != b.n_features:
        raise ValueError(
            f"a has {a.n_features} features, but b has {b.n_features}: take the vectors of both from one space."
        )


def _check_labels(labels: Any, groups: tuple[Groups, Groups]) -> tuple[list[str], list[str]]:
    if labels is None:
        left, right = ([f"{name}[{i}]" for i in range(g.n_rows)] for name, g in zip(_NAMES, groups, strict=True))
        return left, right
    sides = [labels] if isinstance(labels, str) else list(labels)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise ValueError(f"labels must be two lists of labels, for a and for b, got {labels!r}.")
    for name, side, group in zip("ab", sides, groups, strict=True):
        if len(side) != group.n_rows:
            raise ValueError(f"{name} has {group.n_rows} vectors but {len(side)} labels.")
    left, right = ([str(label) for label in side] for side in sides)
    return left, right


def _word(label: str, value: float, tone: float) -> str:
    """A word on a ground from orange, for a tone of -1, to blue, for 1."""
    return f"<span style='{_ground(tone)}' title='{value:+.2f}'>{escape(label)}</span>"


def _ground(tone: float) -> str:
    red, green, blue = _FOR if tone > 0 else _AGAINST
    return f"background: rgba({red}, {green}, {blue}, {0.45 * abs(tone):.2f}); border-radius: 3px; padding: 1px 3px"


def _new_axes(n_bars: int) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Explanation.plot needs matplotlib: pip install "sklearn-mcsg[plot]".') from error
    return plt.subplots(figsize=(6.4, 1.4 + 0.24 * n_bars), layout="constrained")[1]
