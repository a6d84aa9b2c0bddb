"""Baselines of the paper: the cosine of mean vectors, and optimal transport.

They take the same groups as `ModelComparisonSimilarity` and have the same methods, so that one can replace the other in
a pipeline. All of them use the weights of the groups, for example those of `EmbeddingVectorizer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import Count
from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._sklearn import StrOptions
from sklearn_mcsg.engine.comparison import Comparison
from sklearn_mcsg.engine.cosine import compare_unit_rows, compare_units, unit_length
from sklearn_mcsg.engine.model import raise_not_finite
from sklearn_mcsg.engine.parallel import progress, run
from sklearn_mcsg.groups import Groups, GroupsLike
from sklearn_mcsg.groups.blocks import blocks
from sklearn_mcsg.groups.regroup import balanced, without_labels, without_weightless
from sklearn_mcsg.similarity.base import GroupSimilarity
from sklearn_mcsg.similarity.estimator import snapshot


class MeanVector(GroupSimilarity):
    """Cosine of the groups' mean vectors (MWV).

    Parameters
    ----------
    output : {"similarity", "distance"}, default="similarity"
        What to return for each pair: the cosine, or one minus the cosine.

    Attributes
    ----------
    n_groups_ : int
        Number of fitted groups.
    n_features_in_ : int
        Width of the vectors.

    Examples
    --------
    >>> from sklearn_mcsg import MeanVector
    >>> MeanVector().pairwise([[[1.0, 0.0], [1.0, 2.0]], [[0.0, 1.0]]]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    _parameter_constraints: ClassVar[dict] = {"output": [StrOptions({"similarity", "distance"})]}

    def __init__(self, output: str = "similarity"):
        self.output = output

    def embed(self, X: GroupsLike) -> np.ndarray:
        """Embed each group as one vector.

        Parameters
        ----------
        X : groups
            Groups to embed.

        Returns
        -------
        embedding : ndarray of shape (n_groups, n_features)
        """
        self = snapshot(self)
        self._validate_params()
        comparison = self._comparison_for(self.output)
        return comparison.prepare(comparison.summarize(self._read(X, comparison)), self.output)

    def _new_comparison(self) -> Comparison:
        return MeanComparison()


class SIF(MeanVector):
    """Cosine of weighted means, without the directions common to a corpus.

    Smooth inverse frequency [1]_: the weights are those of the groups, ``a / (a + p)`` with
    ``EmbeddingVectorizer(weighting="sif")``; a group's embedding is the mean of its weighted vectors.

    Parameters
    ----------
    n_components : int, default=0
        Number of principal directions to remove from all embeddings: those of the fitted embeddings, without
        centring. 1 gives SIF+PCA. With 1 or more, call `fit` before comparing groups.
    output : {"similarity", "distance"}, default="similarity"
        What to return for each pair: the cosine, or one minus the cosine.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The directions removed.
    n_groups_ : int
        Number of fitted groups.
    n_features_in_ : int
        Width of the vectors.

    References
    ----------
    .. [1] S. Arora, Y. Liang, T. Ma, "A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017.

    Examples
    --------
    >>> from sklearn_mcsg import SIF
    >>> X = [[[3.0, 0.1]], [[3.0, -0.2]], [[4.0, 0.3]]]
    >>> SIF(n_components=1).fit_transform(X).round(1)
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Count(0)],
        **MeanVector._parameter_constraints,
    }

    def __init__(self, n_components: int = 0, output: str = "similarity"):
        super().__init__(output)
        self.n_components = n_components

    def _new_comparison(self) -> Comparison:
        return SIFComparison(self.n_components)

    @property
    def components_(self) -> np.ndarray:
        """The directions removed."""
        check_is_fitted(self)
        comparison: Any = self._comparer.comparison
        return comparison.components

    def _check_comparable(self) -> None:
        if len(self.components_) != self.n_components:
            raise ValueError("n_components has changed since fit: call fit again.")


class WordMoversDistance(GroupSimilarity):
    """Word mover's distance: the least cost of moving one group's vectors to the other's (optimal transport).

    The cost of a move is the Euclidean distance; the weights of each group are scaled to sum to 1 [1]_. Needs POT:
    ``pip install "sklearn-mcsg[wmd]"``.

    Parameters
    ----------
    output : {"distance", "similarity"}, default="distance"
        What to return for each pair: the distance, or its negative.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    n_groups_ : int
        Number of fitted groups.
    n_features_in_ : int
        Width of the vectors.

    References
    ----------
    .. [1] M. Kusner, Y. Sun, N. Kolkin, K. Weinberger, "From word embeddings to document distances", ICML 2015.

    Examples
    --------
    >>> from sklearn_mcsg import WordMoversDistance
    >>> WordMoversDistance().paired([[[0.0], [2.0]]], [[[1.0], [4.0]]])
    array([1.5])
    """

    _parameter_constraints: ClassVar[dict] = {
        "output": [StrOptions({"similarity", "distance"})],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(self, output: str = "distance", *, n_jobs: int | None = None, verbose: int = 0):
        self.output = output
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _new_comparison(self) -> Comparison:
        return TransportComparison(self.n_jobs, self.verbose)


@dataclass(frozen=True, eq=False, repr=False)
class MeanComparison(Comparison[np.ndarray, np.ndarray]):
    """Cosines of mean vectors."""

    def summarize(self, groups: Groups) -> np.ndarray:
        """Mean vector of each group."""
        weighty = without_weightless(groups)
        return _means(weighty, weighty.totals)

    def compare(self, left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
        """Cosines of all pairs."""
        one = unit_length(left)
        return compare_units(one, one if right is left else unit_length(right), output)

    def compare_rows(self, left: np.ndarray, right: np.ndarray, output: str) -> np.ndarray:
        """Cosines of pairs of the same row."""
        return compare_unit_rows(unit_length(left), unit_length(right), output)


@dataclass(frozen=True, eq=False, repr=False)
class SIFComparison(MeanComparison):
    """Cosines of weighted means without the principal directions of a corpus."""

    n_components: int = 0
    components: np.ndarray | None = None

    def summarize(self, groups: Groups) -> np.ndarray:
        """Sum of each group's weighted vectors, divided by their number; vectors of weight 0 do not count."""
        weighty = without_weightless(groups)
        return _means(weighty, weighty.sizes)

    def learn(self, summaries: np.ndarray) -> Self:
        """Principal directions of the embeddings."""
        n, width = summaries.shape
        if self.n_components > min(n, width):
            raise ValueError(f"n_components={self.n_components} is too large for {n} groups of {width} features.")
        if not self.n_components:
            return replace(self, components=np.empty((0, width)))
        embedding = summaries.astype(np.float64, copy=False) / _scale_of(summaries)
        _, vectors = np.linalg.eigh(embedding.T @ embedding)
        return replace(self, components=vectors[:, ::-1][:, : self.n_components].T)

    def unlearnt(self) -> Self:
        """The comparison without directions."""
        return replace(self, components=None)

    def ready_for(self, output: str) -> Self:
        """Raise NotFittedError if directions must be learnt first."""
        if self.n_components and self.components is None:
            raise NotFittedError(f"SIF with n_components={self.n_components} is not fitted yet: call fit first.")
        return super().ready_for(output)

    def prepare(self, summaries: np.ndarray, output: str) -> np.ndarray:
        """Embeddings without the principal directions."""
        if self.components is None or not self.n_components:
            return summaries
        scale = _scale_of(summaries)
        scaled = summaries / scale
        rest = scaled - scaled @ self.components.T @ self.components
        eps = 8 * np.finfo(summaries.dtype).eps + scaled.shape[1] * np.finfo(rest.dtype).eps
        rest[np.abs(rest).max(axis=1) <= eps * np.abs(scaled).max(axis=1)] = 0  # nothing but rounding errors is left
        return (scale * rest).astype(summaries.dtype, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class TransportComparison(Comparison[Groups, Groups]):
    """Costs of optimal transport, computed one by one."""

    n_jobs: int | None = None
    verbose: int = 0

    def summarize(self, groups: Groups) -> Groups:
        """The groups with weights that sum to 1."""
        return balanced(without_labels(without_weightless(groups)))

    def compare(self, left: Groups, right: Groups, output: str) -> np.ndarray:
        """Distances of all pairs."""
        symmetric = right is left
        pairs = ((i, slice(i + 1 if symmetric else 0, len(right))) for i in range(len(left)))
        n_pairs = len(left) * len(right) // (2 if symmetric else 1)
        matrix = np.zeros((len(left), len(right)))
        for row, columns, distances in self._transport(left, right, pairs, n_pairs):
            matrix[row, columns] = distances
            if symmetric:
                matrix[columns, row] = distances
        return -matrix if output == "similarity" else matrix

    def compare_rows(self, left: Groups, right: Groups, output: str) -> np.ndarray:
        """Distances of pairs of the same row."""
        values = np.empty(len(left))
        pairs = ((i, slice(i, i + 1)) for i in range(len(left)))
        for row, _, distances in self._transport(left, right, pairs, len(left)):
            values[row] = distances[0]
        return -values if output == "similarity" else values

    def with_jobs(self, n_jobs: int | None, verbose: int) -> Self:
        """The comparison with a number of jobs and verbosity."""
        return replace(self, n_jobs=n_jobs, verbose=verbose)

    def _transport(
        self, left: Groups, right: Groups, pairs: Iterator[tuple[int, slice]], total: int
    ) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Distances of left groups to some right groups, row by row."""
        import_pot()
        tasks = ((i, j, left[i : i + 1], right[j]) for i, j in pairs)
        with progress(self.verbose, total) as advance:
            for row, columns, distances in run(_distances, tasks, len(left), self.n_jobs):
                advance(len(distances))
                yield row, columns, distances


def _distances(row: int, columns: slice, left: Groups, right: Groups) -> tuple[int, slice, np.ndarray]:
    source, pairs = left.rows(), zip(right, right.split(right.weights), strict=True)
    distances = np.array([_distance(source, left.weights, target.astype(np.float64), mass) for target, mass in pairs])
    if not np.isfinite(distances).all():
        raise_not_finite(f"The distance of group {row} and group {columns.start + int(np.argmax(distances))}")
    return row, columns, distances


def _distance(source: np.ndarray, mass: Any, target: np.ndarray, target_mass: np.ndarray) -> float:
    """Cost of the cheapest moves. Costs are scaled first, because the solver's tolerance is absolute."""
    scale = max(_scale_of(source), _scale_of(target))
    cost = cdist(source / scale, target / scale)
    cost_scale = _scale_of(cost)
    moved = float(import_pot().emd2(mass, target_mass, cost / cost_scale, check_marginals=False))
    return moved * cost_scale * scale


def _means(groups: Groups, counts: np.ndarray) -> np.ndarray:
    """Weighted sum of each group's vectors, divided by a count per group, by blocks."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.concatenate([some.sum(some.rows()) for some in map(groups.__getitem__, blocks(groups))])
        means = (sums / counts[:, None]).astype(groups.output_dtype)
    finite = np.isfinite(means).all(axis=1)
    if not finite.all():
        raise_not_finite(f"The mean of group {int(np.argmin(finite))}")
    return means


def _scale_of(values: np.ndarray) -> float:
    """The power of two next to the largest value: dividing by it is exact, and squares do not overflow after it."""
    _, exponent = np.frexp(np.abs(values).max(initial=0))
    return float(np.ldexp(1.0, exponent - 1))


def import_pot() -> Any:
    """The package POT."""
    return import_extra("ot", "WordMoversDistance")
