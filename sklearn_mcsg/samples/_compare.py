"""A test of two samples of groups, by exchanging whole groups between them.

    X and Y --fitted together--> statistics --pooled--> -2 log likelihood ratio: two models, or one
                                 points --averaged--> squared distance of the two mean points
    the same for random divisions of all groups --> p-value
    the statistic --divided--> parts of groups, of vectors and of features

Vectors of one group depend on each other, and groups are exchanged whole, so that this dependence does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, gen_batches

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._memory import PAIRS, count_within
from sklearn_mcsg.criteria import AIC
from sklearn_mcsg.embedding import GroupEmbedding, parts_along
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.permutations import orders
from sklearn_mcsg.explanation import explain_groups
from sklearn_mcsg.groups import Groups, GroupsLike, check_same_width, united, validate_groups
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.similarity.estimator import split_pipeline

_ROUNDING = 1e-9  # of statistics that are equal, but were computed in different orders


@dataclass(frozen=True, eq=False, repr=False)
class SampleComparison:
    """Whether two samples of groups differ, and what makes the difference.

    The parts of all groups sum to the statistic, and so do those of all vectors, and of all features; with
    `prior_strength`, up to what its pseudo-vectors contribute.

    Attributes
    ----------
    statistic : float
        With a similarity, minus twice the log likelihood ratio of one model of all vectors against one for each sample.
        With an embedding, the squared distance of the mean points of both samples.
    pvalue : float
        Share of the divisions of all groups into samples of these sizes whose statistic is not smaller.
    groups : tuple of two ndarrays
        Part of each group of the first and of the second sample.
    vectors : tuple of two ndarrays
        Part of each vector of the first and of the second sample, group after group.
    words : dict of str to ndarray of shape (2,)
        Parts of the vectors that have the same label, in the first and in the second sample: for texts, these are
        words. The largest come first. It is empty if the vectors have no labels.
    features : ndarray of shape (n_features,) or None
        Part of each feature; None where a model is not a product over features.
    permuted : ndarray
        The statistic of each division, that of the given one first.
    """

    statistic: float
    pvalue: float
    groups: tuple[np.ndarray, np.ndarray]
    vectors: tuple[np.ndarray, np.ndarray]
    words: dict[str, np.ndarray]
    features: np.ndarray | None
    permuted: np.ndarray

    def __repr__(self) -> str:
        n, m = map(len, self.groups)
        lines = [f"Samples of {n} and {m} groups: p = {self.pvalue:.4g} ({len(self.permuted) - 1} permutations)"]
        parts = {
            f"{name}[{i}]": part for name, own in zip("XY", self.groups, strict=True) for i, part in enumerate(own)
        }
        is_rounding = abs(self.statistic) <= _ROUNDING * max(map(abs, parts.values()))  # the samples are equal
        whole = np.inf if is_rounding else self.statistic
        lines.append(f"  groups:   {_listed(parts, whole)}")
        if self.features is not None:
            lines.append(f"  features: {_listed(dict(enumerate(self.features)), whole)}")
        if self.words:
            words = {name: part.sum() for name, part in self.words.items()}
            lines.append(f"  words:    {_listed(words, whole)}")
        return "\n".join(lines)


def _listed(parts: dict[Any, float], whole: float, n_shown: int = 4) -> str:
    """The largest parts, as shares of the whole."""
    largest = sorted(parts, key=lambda name: -parts[name])[:n_shown]
    return ", ".join(f"{name} {100 * parts[name] / whole:+z.0f} %" for name in largest)


def compare_samples(
    X: GroupsLike | Iterable[str],
    Y: GroupsLike | Iterable[str],
    *,
    similarity: Any = None,
    n_permutations: int = 999,
    random_state: int | np.random.RandomState | None = None,
) -> SampleComparison:
    """Test whether two samples of groups come from one distribution, by random divisions of the groups.

    Under this hypothesis all divisions are exchangeable, so the test keeps its level whatever the distribution of a
    group is, and however its vectors depend on each other. `ModelComparisonSimilarity.paired_test` compares two groups
    instead, and exchanges single vectors.

    Parameters
    ----------
    X, Y : groups, or input of the pipeline
        The two samples, such as the texts of last year and of this one; at least two groups each.
    similarity : estimator, default=None
        What compares groups: a `ModelComparisonSimilarity`, a `GroupEmbedding`, or a pipeline that ends with one of
        them, as `make_text_embedding` builds it. It is cloned and fitted to both samples together. ``None`` means
        ``ModelComparisonSimilarity()``. The criterion does not matter: models of both hypotheses have the same number
        of parameters in all divisions.
    n_permutations : int, default=999
        Number of permutations: random divisions of the groups. If there are not more than that, all of them are used.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the divisions. Pass an int for reproducible results.

    Returns
    -------
    comparison : SampleComparison
        With `statistic` and `pvalue`, and the groups, vectors (words) and features that make the difference.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import compare_samples
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(rng.normal(size=3), 1, size=(8, 3)) for _ in range(60)]
    >>> Y = [rng.normal(rng.normal(size=3) + [1, 0, 0], 1, size=(8, 3)) for _ in range(60)]
    >>> comparison = compare_samples(X, Y, random_state=0)
    >>> comparison.pvalue
    0.001
    >>> int(comparison.features.argmax())
    0
    >>> compare_samples(X[:30], X[30:], random_state=0).pvalue > 0.05
    True
    """
    check_positive_integer(n_permutations, "n_permutations")
    estimator = clone(ModelComparisonSimilarity() if similarity is None else similarity)
    before, last = split_pipeline(estimator)
    if not isinstance(last, ModelComparisonSimilarity | GroupEmbedding):
        raise TypeError(
            f"similarity must be a ModelComparisonSimilarity or a GroupEmbedding, or a pipeline that ends with one of "
            f"them, got {type(last).__name__}."
        )
    n, groups = _joined(X, Y, before)
    divided = orders(len(groups), n, n_permutations, check_random_state(random_state))
    last.fit(groups)
    of_kind = _by_points if isinstance(last, GroupEmbedding) else _by_models
    statistics, parts, features = of_kind(last, groups, divided, n)
    is_as_large = statistics >= statistics[0] - _ROUNDING * np.abs(statistics).max()
    of_groups = np.bincount(np.repeat(np.arange(len(groups)), groups.sizes), parts, minlength=len(groups))
    n_vectors = groups.offsets[n]
    return SampleComparison(
        float(statistics[0]),
        float(is_as_large.mean()),
        (of_groups[:n], of_groups[n:]),
        (parts[:n_vectors], parts[n_vectors:]),
        _by_label(groups.labels, parts, n_vectors),
        features,
        statistics,
    )


def _joined(X: Any, Y: Any, before: Any) -> tuple[int, Groups]:
    """The number of groups of the first sample, and all groups; the steps before the similarity learn from both."""
    samples: list[Any] = []
    for name, sample in (("X", X), ("Y", Y)):
        if before is not None and isinstance(sample, str):
            raise TypeError(f"{name} is a string: a list of texts is expected.")
        if before is None and isinstance(sample, list | tuple) and sample and isinstance(sample[0], str):
            raise TypeError(f"{name} holds texts: pass similarity=make_text_embedding(), which turns them into groups.")
        samples.append(list(sample) if before is not None else validate_groups(sample, allow_empty=True, name=name))
        if len(samples[-1]) < 2:
            raise ValueError(
                f"{name} must hold at least 2 groups, because groups are exchanged; got {len(samples[-1])}."
            )
    if before is None:
        check_same_width(*samples)
    joined: Any = Groups.concatenate(samples) if before is None else before.fit_transform([*samples[0], *samples[1]])
    n = len(samples[0])
    if not joined.totals.all():
        empty = int(np.argmin(joined.totals))
        where = f"X[{empty}]" if empty < n else f"Y[{empty - n}]"
        raise ValueError(f"{where} has no vectors: leave it out.")
    return n, joined


def _by_points(
    embedding: GroupEmbedding, groups: Groups, divided: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Squared distances of the mean points of all divisions, and the parts of vectors and features in the first."""
    points = embedding.transform(groups).astype(np.float64)
    total, m = points.sum(axis=0), len(points) - n
    factors = np.repeat([1 / n, -1 / m], [n, m])
    parts = parts_along(embedding, groups, factors @ points, factors)
    statistics = np.empty(len(divided))
    for batch in gen_batches(len(divided), count_within(8 * (points.shape[1] + len(points)))):
        members = np.zeros((len(divided[batch]), len(points)))
        np.put_along_axis(members, divided[batch, :n], 1, axis=1)
        first = members @ points
        statistics[batch] = np.square(first / n - (total - first) / m).sum(axis=1)
    return statistics, *parts


def _by_models(
    similarity: ModelComparisonSimilarity, groups: Groups, divided: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Minus twice the log likelihood ratios of all divisions, and the parts of vectors and features in the first."""
    comparer: Any = similarity.__mcsg_comparer__()
    model, single = replace(comparer.comparison.model, criterion=AIC()), comparer.summaries.without_vectors()
    found = []
    for batch in gen_batches(len(divided), count_within(16 * single.row_nbytes, PAIRS)):
        sides = [model.padded(_pooled(model, single, rows)) for rows in (divided[batch, :n], divided[batch, n:])]
        own = sum(model.likelihood.log_likelihood(side) for side in sides)
        found.append(2 * (own - model.likelihood.log_likelihood(model.likelihood.pool(*sides))))
    weighted, model = model.weighted(model.placed(groups)), replace(model, balanced=False)
    explanation = explain_groups(model, (united(weighted[:n]), united(weighted[n:])))
    of_features = explanation.features
    features = None if of_features is None else -(of_features[0].sum(axis=0) + of_features[1].sum(axis=0))
    return np.concatenate(found), -np.concatenate(explanation.vectors), features


def _pooled(model: GroupModel, statistics: Statistics, members: np.ndarray) -> Statistics:
    """The union of the groups of each row of members."""
    pooled = statistics[members[:, 0]]
    with np.errstate(all="ignore"):
        for column in members.T[1:]:
            pooled = model.likelihood.pool(pooled, statistics[column])
            if not pooled.has_fixed_size:
                pooled = pooled.consolidated()
    return pooled


def _by_label(labels: np.ndarray | None, parts: np.ndarray, n_vectors: int) -> dict[str, np.ndarray]:
    """Parts of vectors with the same label, in the first sample and in the second; the largest first."""
    if labels is None:
        return {}
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    sides = [
        np.bincount(numbers[rows], parts[rows], minlength=len(names))
        for rows in (slice(None, n_vectors), slice(n_vectors, None))
    ]
    both = np.column_stack(sides)
    return {str(names[i]): both[i] for i in np.argsort(-both.sum(axis=1), kind="stable")}
