"""The groups of an index with everything that was learnt from them, and when that is learnt again.

What was learnt from few groups does not fit many. An embedding, or the axes of candidates, learnt from n groups is
learnt again when m further groups have been added, with

    m >= (growth - 1) n min(1, n / 6000)

From 6000 groups on, an index with ``growth=2`` learns when as many groups have been added as it had learnt from.
Smaller ones learn sooner: the axes of a few hundred groups change with every tenth that is added. In total, learning
again embeds each group 1 / (growth - 1) times more. An index that begins with one group learns about 150 times until it
has 6000.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_mcsg.embedding import GroupEmbedding, Sources, learn_again
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.groups import Groups, validate_groups
from sklearn_mcsg.search.candidates import CandidateIndex
from sklearn_mcsg.search.nearest import learn_candidates
from sklearn_mcsg.similarity import fitted_comparer
from sklearn_mcsg.similarity.estimator import check_compares_groups, split_pipeline

_ENOUGH = 6000  # groups to learn from before an index may grow by the whole factor


@dataclass(frozen=True, eq=False)
class IndexedGroups:
    """An index as one object: whoever reads it sees groups that belong together, whatever is added meanwhile.

    Attributes
    ----------
    similarity : estimator
        The fitted similarity or embedding, or a pipeline that ends with it.
    comparer : Comparer
        The groups, and how they are compared.
    sizes : ndarray of shape (n_groups,)
        Total weight of each group: p-values compare pairs of similar size.
    candidates : CandidateIndex or None
        The compressed points, if searches are approximate.
    sources : Sources or None
        What an embedding can learn from again; None for a similarity, which keeps its groups itself.
    n_learnt : int
        Number of groups that embedding and candidates were learnt from.
    n_added : int
        Number of groups added since.
    """

    similarity: Any
    comparer: Comparer
    sizes: np.ndarray
    candidates: CandidateIndex | None
    sources: Sources | None
    n_learnt: int
    n_added: int = 0

    @classmethod
    def fitted(cls, similarity: Any, X: Any, algorithm: str, keep_sources: bool, **jobs: Any) -> Self:
        """Fit a similarity, or a pipeline, that is not fitted yet, and index the groups.

        `jobs` are `n_jobs` and `verbose`.
        """
        before, last = split_pipeline(similarity)
        check_compares_groups(last)
        if before is not None:
            X = before.fit_transform(X)
            similarity = Pipeline([*before.steps, (similarity.steps[-1][0], last)])
        if not hasattr(X, "columns"):  # a data frame has names of features
            X = validate_groups(X, allow_empty=True)  # packed once: the similarity reads them several times
        comparer = fitted_comparer(last, X)
        candidates = learn_candidates(comparer, algorithm, **jobs)
        groups = X if isinstance(X, Groups) else last.__mcsg_groups__(X)
        sources = Sources.of(last, groups) if keep_sources and isinstance(last, GroupEmbedding) else None
        return cls(similarity, comparer, groups.totals, candidates, sources, len(comparer))

    @property
    def before(self) -> Any:
        """The steps of the pipeline before the similarity, or None."""
        return split_pipeline(self.similarity)[0]

    @property
    def last(self) -> Any:
        """The similarity or embedding, without the pipeline steps before it."""
        return split_pipeline(self.similarity)[1]

    def __len__(self) -> int:
        return len(self.comparer)

    def read(self, X: Any) -> Groups:
        """X as validated groups, made by the steps before the similarity."""
        return self.last.__mcsg_groups__(X if self.before is None else self.before.transform(X))

    def added(self, groups: Groups, growth: float | None, algorithm: str, **jobs: Any) -> Self:
        """The index with further groups, which learns again if it has outgrown what it had learnt."""
        n_added = self.n_added + len(groups)
        learns = growth is not None and n_added >= (growth - 1) * self.n_learnt * min(1, self.n_learnt / _ENOUGH)
        if isinstance(self.last, GroupEmbedding):
            last, comparer, sources = self._embedded(groups, learns, n_added)
        else:
            comparer, sources = self.comparer.added(groups), None
            last = _adopting(self.last, comparer)
        if learns or self.candidates is None:
            candidates = learn_candidates(comparer, algorithm, **jobs)
        else:
            candidates = self.candidates.added(comparer.summaries[len(self) :], jobs["n_jobs"])
        counts = (len(comparer), 0) if learns else (self.n_learnt, n_added)
        sizes = np.concatenate([self.sizes, groups.totals])
        return type(self)(self._ending_with(last), comparer, sizes, candidates, sources, *counts)

    def _embedded(self, groups: Groups, learns: bool, n_added: int) -> tuple[Any, Comparer, Sources | None]:
        """The embedding, the points and the sources of the index with further groups."""
        if self.sources is None:
            self._complain_of_growth(learns, n_added)
            return self.last, self.comparer.added(groups), None
        sources = self.sources.added(self.last, groups)
        if not learns:
            return self.last, self.comparer.added(groups), sources
        dtype = np.result_type(self.comparer.dtype, groups.output_dtype)
        return *learn_again(self.last, sources, dtype), sources

    def _complain_of_growth(self, learns: bool, n_added: int) -> None:
        """Raise if the index must learn again but kept nothing to learn from; warn if it has doubled without that."""
        what = f"The embedding of this index was learnt from {self.n_learnt} groups, and {n_added} were added since"
        if learns:
            raise ValueError(
                f"{what}: it would have to learn again, but nothing was kept to learn from, because the index was "
                f"fitted with growth=None. Fit it to all groups again, or set growth=None to add groups all the same."
            )
        if n_added >= self.n_learnt:
            warnings.warn(f"{what}: its neighbours become worse. Fit the index to all groups again.", stacklevel=5)

    def only(self, kept: np.ndarray) -> Self:
        """The index with some of its groups, given by their indices in ascending order."""
        comparer = self.comparer.only(kept)
        return replace(
            self,
            similarity=self._ending_with(_adopting(self.last, comparer)),
            comparer=comparer,
            sizes=self.sizes[kept],
            candidates=None if self.candidates is None else self.candidates[kept],
            sources=None if self.sources is None else self.sources[kept],
        )

    def check(self) -> None:
        """Raise unless all parts describe the same groups, as those from a file may not."""
        if self.candidates is not None:
            self.candidates.check(len(self))
        if self.sources is not None and len(self.sources) != len(self):
            raise ValueError(f"sources of {len(self.sources)} groups instead of {len(self)}")
        if self.sizes.shape != (len(self),) or self.sizes.dtype.kind != "f" or not (self.sizes >= 0).all():
            raise ValueError(f"sizes of {len(self)} groups are expected")
        if not all(isinstance(n, int) and n >= 0 for n in (self.n_learnt, self.n_added)):
            raise ValueError(f"an index learnt from {self.n_learnt!r:.40} groups, with {self.n_added!r:.40} added")

    def _ending_with(self, last: Any) -> Any:
        """The similarity or pipeline, with another last step."""
        if self.before is None:
            return last
        return Pipeline([*self.before.steps, (self.similarity.steps[-1][0], last)])


def _adopting(last: Any, comparer: Comparer) -> Any:
    """A copy of a similarity that keeps the groups of a comparer; an embedding keeps none."""
    if isinstance(last, GroupEmbedding):
        return last
    last = copy(last)
    last.__mcsg_adopt__(comparer)
    return last
