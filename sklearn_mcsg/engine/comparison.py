"""How groups are compared: the base class of all comparisons, and the comparison of models.

    groups --summarize--> summaries --learn--> the comparison, learnt from a corpus
                          summaries --prepare--> prepared --compare--> matrix

A comparison is a plain object that holds what it has learnt and no groups. `Comparer` keeps the groups beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from sklearn_mcsg.engine import capabilities
from sklearn_mcsg.engine.coordinates import Coordinates, PointSpace
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS, choose_output
from sklearn_mcsg.engine.pairs import all_pairs, prepare, prepare_references, row_by_row
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.engine.results import Target
from sklearn_mcsg.groups import Groups, Rows
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.regroup import without_labels
from sklearn_mcsg.likelihoods import Statistics
from sklearn_mcsg.storage import register


class Indexable(Protocol):
    """One row per group, as in arrays, `Groups` and `Statistics`."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Rows, /) -> Self: ...


SummariesT = TypeVar("SummariesT", bound=Indexable)  # what `summarize` returns
PreparedT = TypeVar("PreparedT", bound=Indexable)  # what `prepare` returns


class Comparison(BaseEstimator, ABC, Generic[SummariesT, PreparedT]):
    """A way to compare groups; subclass it to add one, and pass it to `GroupSimilarity`.

    A subclass must define `compare`. The other methods are optional:

    - `compare_rows` compares single pairs faster than one by one.
    - `summarize` keeps less of each group than all its vectors. `prepare` turns what is kept into the form that is
      compared. Both return objects with a length that can be indexed by slices and integer arrays, such as arrays,
      `Groups` and `Statistics`.
    - `learn` learns from the summaries of a corpus, sets attributes and returns the comparison. It is called on a copy.
    - `ready_for` raises `NotFittedError` where an output needs something that has not been learnt.
    - `sizes` says what distances of groups depend on by chance, so that p-values compare pairs of similar size.

    The class attribute `outputs` names the outputs that it has, which are among those of `ModelComparisonSimilarity`.
    Parameters are those of `__init__`, as in every estimator of scikit-learn. Subclasses are saved with an index:
    parameters and summaries are stored, and `learn` is called again when the index is loaded, after the module that
    defines the class has been imported.

    Examples
    --------
    The Hausdorff distance is the largest distance from a vector to its nearest vector in the other group:

    >>> import numpy as np
    >>> from scipy.spatial.distance import directed_hausdorff
    >>> from sklearn_mcsg import Comparison, GroupNeighbors, GroupSimilarity
    >>> class Hausdorff(Comparison):
    ...     outputs = ("distance",)
    ...     def compare(self, left, right, output):
    ...         return [[max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) for b in right] for a in left]
    >>> X = [[[0.0], [1.0]], [[0.5]], [[9.0], [8.0]]]
    >>> GroupSimilarity(Hausdorff()).pairwise(X)
    array([[0. , 0.5, 8. ],
           [0.5, 0. , 8.5],
           [8. , 8.5, 0. ]])
    >>> GroupNeighbors(GroupSimilarity(Hausdorff()), n_neighbors=1).fit(X).kneighbors(return_distance=False).ravel()
    array([1, 0, 0])
    """

    outputs: ClassVar[tuple[str, ...]] = ("similarity", "distance")
    takes_arrays: ClassVar[bool] = False  # whether it compares arrays of other libraries than NumPy

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        unknown = [name for name in cls.outputs if name not in OUTPUTS]
        if unknown:
            raise TypeError(f"outputs of {cls.__name__} must be among {', '.join(OUTPUTS)}, got {', '.join(unknown)}.")
        register(cls)

    @abstractmethod
    def compare(self, left: PreparedT, right: PreparedT, output: str) -> Any:
        """Compare all pairs of two prepared collections; return a matrix.

        If `right` is the same object as `left`, the matrix is symmetric.
        """

    def compare_rows(self, left: PreparedT, right: PreparedT, output: str) -> Any:
        """Compare two prepared collections row by row."""
        pairs = ((left[i : i + 1], right[i : i + 1]) for i in range(len(left)))
        return [np.asarray(self.compare(a, b, output))[0, 0] for a, b in pairs]

    def summarize(self, groups: Groups) -> SummariesT:
        """Reduce groups to the data that is kept of them; by default, all vectors."""
        return cast(SummariesT, without_labels(groups))

    def check_output(self, output: str) -> None:
        """Raise unless the comparison has an output."""
        choose_output(output, self.outputs)

    def learn(self, summaries: SummariesT) -> Self:
        """Learn from the summaries of a corpus."""
        return self

    def unlearnt(self) -> Self:
        """The comparison as it was before it learnt."""
        return clone(self)

    def prepare(self, summaries: SummariesT, output: str) -> PreparedT:
        """Turn summaries into the form that `compare` takes."""
        return cast(PreparedT, summaries)

    def ready_for(self, output: str) -> Self:
        """The comparison with everything that an output needs; raise NotFittedError if it has to be learnt first."""
        self.check_output(output)
        return self

    def sizes(self, prepared: PreparedT) -> np.ndarray:
        """The size of each group, on which distances of random pairs depend; 1 by default: they depend on none."""
        return np.ones(len(prepared))

    def point_space(self, output: str) -> PointSpace | None:
        """Points whose distances order groups approximately as an output does; None if there are none.

        `GroupNeighbors` finds candidates among these points when it searches approximately.
        """
        return None

    def power_of(self, output: str) -> int:
        """The power of a normal variable that distances of random pairs resemble."""
        return 1

    def with_jobs(self, n_jobs: int | None, verbose: int) -> Self:
        """The comparison with a number of jobs and verbosity, if it uses them."""
        return self

    def without_corpus(self) -> Self:
        """The comparison without the corpus it learnt from, if it refers to that: for a worker with a few groups."""
        return self

    def matrix(self, left: PreparedT, right: PreparedT, output: str, target: Target) -> Any:
        """The matrix of `compare`, in the precision of a target."""
        values = target.finished(np.asarray(self.compare(left, right, output)))
        if target.out is None:
            return values
        target.out[:] = values
        return target.out

    def row(self, left: PreparedT, right: PreparedT, output: str, target: Target) -> Any:
        """The values of `compare_rows`, in the precision of a target."""
        return target.finished(np.asarray(self.compare_rows(left, right, output)))


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Comparison[Statistics, Prepared]):
    """The comparison of models: one shared model of two groups, or two separate ones?

    Attributes
    ----------
    model : GroupModel
        The model of a group, with its prior and pseudo-vectors once they are learnt.
    prior_strength : float
        Number of pseudo-vectors.
    n_references : int
        Largest number of reference groups.
    random_state : int, RandomState instance or None
        Determines the reference groups.
    references : ndarray of int or None
        Indices of the reference groups in the corpus; None draws them.
    start : GroupModel or None
        The model before anything was learnt.
    corpus : Statistics or None
        Statistics of the corpus it learnt from.
    reference_groups : Prepared or None
        The reference groups, prepared for ``"centered"``.
    kernel : tuple of GroupModel and float, or None
        For ``"kernel"``: the model of balanced groups, and the median distance of the reference groups.
    n_jobs, verbose : int
        Number of jobs, and whether to show a progress bar.
    """

    outputs = tuple(OUTPUTS)
    takes_arrays = True

    model: GroupModel
    prior_strength: float = 0.0
    n_references: int = 512
    random_state: Any = None
    references: np.ndarray | None = None
    start: GroupModel | None = None
    corpus: Statistics | None = None
    reference_groups: Prepared | None = None
    kernel: tuple[GroupModel, float] | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def summarize(self, groups: Groups | ArrayGroups) -> Statistics:
        """Sufficient statistics of the groups."""
        if isinstance(groups, ArrayGroups):
            capabilities.check_arrays(self.model)
        return self.model.statistics(groups)

    def check_output(self, output: str) -> None:
        """Raise unless the likelihood and the criterion have an output."""
        super().check_output(output)
        capabilities.check_output(self.model, OUTPUTS[output])

    def unlearnt(self) -> Self:
        """The comparison as it was before it learnt."""
        start = self.model if self.start is None else self.start
        nothing: Any = dict.fromkeys(("references", "start", "corpus", "reference_groups", "kernel"))
        return replace(self, model=start, **nothing)

    def learn(self, summaries: Statistics) -> Self:
        """Learn prior and pseudo-vectors, and draw reference groups unless they are given."""
        references = self.references
        if references is None:
            references = np.arange(len(summaries))
            if len(references) > self.n_references:
                rng = check_random_state(self.random_state)
                references = np.sort(rng.choice(len(references), self.n_references, replace=False))
        model = self.model.learnt_from(summaries, self.prior_strength)
        return replace(self, model=model, start=self.model, corpus=summaries, references=references)

    def ready_for(self, output: str) -> Self:
        """The comparison with its reference groups or the model of balanced groups, if the output needs them."""
        self.check_output(output)
        chosen = OUTPUTS[output]
        if self.start is None:
            reasons = capabilities.needs_corpus(self.model, self.prior_strength, chosen)
            if reasons:
                raise NotFittedError(
                    f"This ModelComparisonSimilarity instance is not fitted yet, and {' and '.join(reasons)} must be "
                    f"learnt from a corpus. Call 'fit' with appropriate arguments before using this estimator."
                )
        if chosen.needs_references and self.reference_groups is None:
            corpus: Any = self.corpus
            return replace(self, reference_groups=prepare_references(self.model, corpus[self.references]))
        if chosen.is_kernel and self.kernel is None:
            return replace(self, kernel=self._learn_kernel())
        return self

    def _learn_kernel(self) -> tuple[GroupModel, float]:
        """The model of balanced groups, learnt from the corpus, and the median distance of the reference groups."""
        start, corpus, distance = cast(GroupModel, self.start), cast(Statistics, self.corpus), OUTPUTS["distance"]
        balanced = start.likelihood.balance(corpus)
        model = replace(start, balanced=True).learnt_from(balanced, self.prior_strength)
        references = prepare(model, balanced[self.references], distance)
        distances = all_pairs(model, references, references, distance)
        scale = float(np.median(distances[np.triu_indices(len(distances), 1)])) if len(distances) > 1 else 0.0
        return model, scale or 1.0

    def prepare(self, summaries: Statistics, output: str) -> Prepared:
        """Compute the criteria of the groups."""
        chosen = OUTPUTS[output]
        if self.kernel is not None and chosen.is_kernel:
            model, scale = self.kernel
            return replace(prepare(model, model.likelihood.balance(summaries), chosen), scale=scale)
        if self.start is None:
            self.model.warn_of_small_units(summaries)
        return prepare(self.model, summaries, chosen, self.reference_groups if chosen.needs_references else None)

    def compare(self, left: Prepared, right: Prepared, output: str) -> np.ndarray:
        """Compare all pairs; only half of them are computed if both sides are the same object."""
        return all_pairs(self._model_for(output), left, right, OUTPUTS[output])

    def matrix(self, left: Prepared, right: Prepared, output: str, target: Target) -> Any:
        """Compare all pairs, in the precision and on the device of the target."""
        model = self._model_for(output)
        return all_pairs(model, left, right, OUTPUTS[output], target, n_jobs=self.n_jobs, verbose=self.verbose)

    def row(self, left: Prepared, right: Prepared, output: str, target: Target) -> Any:
        """Compare pairs of the same row."""
        model = self._model_for(output)
        return row_by_row(model, left, right, OUTPUTS[output], target, n_jobs=self.n_jobs, verbose=self.verbose)

    def _model_for(self, output: str) -> GroupModel:
        """The model of prepared groups: for kernels, of balanced groups."""
        return self.kernel[0] if self.kernel is not None and OUTPUTS[output].is_kernel else self.model

    def sizes(self, prepared: Prepared) -> np.ndarray:
        """Total weight of each group: by chance, distances of small groups are larger."""
        return prepared.n

    def power_of(self, output: str) -> int:
        """The power of a normal variable that distances of random pairs resemble."""
        return OUTPUTS[output].null_power

    def point_space(self, output: str) -> PointSpace | None:
        """The likelihood's coordinates, if it has them and coordinates can represent the output."""
        corpus, chosen, likelihood = cast(Statistics, self.corpus), OUTPUTS[output], self.model.likelihood
        if not chosen.can_be_embedded or not likelihood.has_coordinates(corpus.n_features):
            return None
        return PointSpace(Coordinates(self.model, likelihood.pseudo_group(corpus, 1.0)), chosen.is_angle)

    def with_jobs(self, n_jobs: int | None, verbose: int) -> Self:
        """The comparison with a number of jobs and verbosity."""
        return replace(self, n_jobs=n_jobs, verbose=verbose)

    def without_corpus(self) -> Self:
        """What was learnt, for one job."""
        return replace(self, corpus=None, references=None, n_jobs=1, verbose=0)
