"""Approximate search: candidates for the nearest groups, found among compressed points and compared exactly later.

    summaries --PointSpace--> coordinates --Axes--> points --quantised--> codes, half a byte per component
    point of a query --scan of all codes--> its nearest candidates

faiss scans the codes with vector instructions: a million groups in about two milliseconds. The scan sees every code, so
its recall does not depend on how the points are distributed, as that of a graph or of an inverted file does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import gen_batches

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg._memory import QUERIES
from sklearn_mcsg.engine.coordinates import Axes, Moments, PointSpace, batches
from sklearn_mcsg.engine.cosine import unit_length
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.storage import register

_EXPLAINED = 0.95  # share of the variance that points keep: the rest hardly changes which groups are near
_FEWEST = 128  # components that points keep, if they have so many: fewer would save little time and memory
_FEW_COMPONENTS = 24  # up to here points are not compressed: 16 levels of so few numbers would tell too little
_LEVELS = 16  # of each component in a code: four bits
_TRAINING = 2**16  # points that the levels are learnt from
_LEAST_TRAINING = 1024  # with fewer, faiss warns


@register
@dataclass(frozen=True, eq=False)
class CandidateIndex:
    """The points of groups in compressed form, to be searched by `search`.

    Attributes
    ----------
    space : PointSpace
        From summaries of groups to coordinates.
    axes : Axes
        Principal axes of the coordinates of the first groups.
    levels : ndarray of shape (n_components, 16)
        The values that each component can take in a code; empty if points are not compressed.
    codes : ndarray of shape (n_groups, (n_components + 1) // 2), or (n_groups, n_components) if not compressed
        Two components per byte, or the points themselves in single precision.
    """

    space: PointSpace
    axes: Axes
    levels: np.ndarray
    codes: np.ndarray

    @classmethod
    def learnt_from(
        cls, space: PointSpace, summaries: Any, verbose: int = 0, n_jobs: int | None = None
    ) -> CandidateIndex:
        """Learn axes and levels from the summaries of groups, and compress their points."""
        n, width = len(summaries), space.width(summaries)
        moments = (Moments.of(space(summaries[batch])) for batch in batches(n, width))
        axes = Axes.of(reduce(Moments.merged, moments)).explaining(_EXPLAINED, _FEWEST)
        index = cls(space, axes, np.empty((0, _LEVELS), np.float32), np.empty((0, 0), np.uint8))
        if len(axes.variance) > _FEW_COMPONENTS:
            some = np.linspace(0, n - 1, min(n, _TRAINING)).astype(int)
            sample = [index.points(summaries[some[batch]]) for batch in batches(len(some), width)]
            index = replace(index, levels=_learn_levels(np.concatenate(sample), n_jobs))
        return replace(index, codes=index.encoded(summaries, verbose, n_jobs))

    def points(self, summaries: Any) -> np.ndarray:
        """Points of groups, in single precision."""
        points = (self.space(summaries) - self.axes.mean) @ self.axes.projection()
        return (unit_length(points) if self.space.directions else points).astype(np.float32)

    def encoded(self, summaries: Any, verbose: int = 0, n_jobs: int | None = None) -> np.ndarray:
        """Codes of groups, in bounded memory."""
        parts = []
        with progress(verbose, len(summaries), "indexing", " groups") as advance:
            for batch in batches(len(summaries), self.space.width(summaries)):
                points = self.points(summaries[batch])
                parts.append(self._codes_of(points, n_jobs) if len(self.levels) else points)
                advance(len(points))
        return np.concatenate(parts)

    def _codes_of(self, points: np.ndarray, n_jobs: int | None) -> np.ndarray:
        with _threads(n_jobs):
            return self._quantizer.compute_codes(points)

    def added(self, summaries: Any, n_jobs: int | None = None) -> CandidateIndex:
        """The index with further groups."""
        return replace(self, codes=np.concatenate([self.codes, self.encoded(summaries, n_jobs=n_jobs)]))

    def __getitem__(self, kept: np.ndarray) -> CandidateIndex:
        return replace(self, codes=self.codes[kept])

    def __len__(self) -> int:
        return len(self.codes)

    def decoded(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Points of indexed groups, as far as their codes tell."""
        codes = np.ascontiguousarray(self.codes[rows])
        if not len(self.levels):
            return codes
        with _threads(n_jobs):
            return self._quantizer.decode(codes)

    def search(self, points: np.ndarray, n_candidates: int, n_jobs: int | None = None) -> np.ndarray:
        """The nearest indexed groups of each point, by approximate distance; shape (n_points, n_candidates)."""
        with _threads(n_jobs):
            found = [self._scanner.search(points[q], n_candidates)[1] for q in gen_batches(len(points), QUERIES)]
        return np.concatenate(found)

    def check(self, n_groups: int) -> None:
        """Raise unless the arrays belong together and to an index of `n_groups`."""
        n_components = len(self.axes.variance)
        compressed = len(self.levels) > 0
        width = (n_components + 1) // 2 if compressed else n_components
        expected = {"codes": (n_groups, width), "levels": (n_components if compressed else 0, _LEVELS)}
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} of the candidates have shape {getattr(self, name).shape}, not {shape}")
        if self.codes.dtype != (np.uint8 if compressed else np.float32):
            raise ValueError(f"codes of the candidates have dtype {self.codes.dtype}")

    @lazy
    def _quantizer(self) -> Any:
        """Faiss' quantiser with the levels of this index."""
        faiss = import_faiss()
        n_components = len(self.levels)
        quantizer = faiss.ProductQuantizer(n_components, n_components, 4)
        faiss.copy_array_to_vector(np.ascontiguousarray(self.levels, np.float32).ravel(), quantizer.centroids)
        return quantizer

    @lazy
    def _scanner(self) -> Any:
        """Faiss' index over all codes, in the layout that it scans."""
        faiss, n_components = import_faiss(), len(self.axes.variance)
        if not len(self.levels):
            flat = faiss.IndexFlatL2(n_components)
            flat.add(np.ascontiguousarray(self.codes))
            return flat
        index = faiss.IndexPQ(n_components, n_components, 4)
        faiss.copy_array_to_vector(np.ascontiguousarray(self.levels, np.float32).ravel(), index.pq.centroids)
        faiss.copy_array_to_vector(np.ascontiguousarray(self.codes).ravel(), index.codes)
        index.is_trained, index.ntotal = True, len(self.codes)
        return faiss.IndexPQFastScan(index)

    def __getstate__(self) -> dict[str, Any]:
        """State to pickle: without what faiss made of it."""
        state = dict(vars(self))  # at this moment: another thread may be making the two
        return {name: value for name, value in state.items() if name not in ("_quantizer", "_scanner")}


def _learn_levels(points: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """The values of each component that codes can hold: centres of one-dimensional k-means."""
    faiss, n_components = import_faiss(), points.shape[1]
    quantizer = faiss.ProductQuantizer(n_components, n_components, 4)
    enough = np.resize(points, (max(len(points), _LEAST_TRAINING), n_components))  # few points are repeated
    with _threads(n_jobs):
        quantizer.train(enough)
    return faiss.vector_to_array(quantizer.centroids).reshape(n_components, _LEVELS).copy()


def import_faiss() -> Any:
    """The package faiss, or an error that says how to install it."""
    return import_extra("faiss", "Approximate search", otherwise='choose algorithm="exact"')


@contextmanager
def _threads(n_jobs: int | None) -> Iterator[None]:
    """Set how many threads faiss uses when it is called from this thread: OpenMP keeps a number for each thread."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
