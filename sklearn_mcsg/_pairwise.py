"""All pairs and row-by-row pairs, by blocks that fit into the working memory.

    groups --side--> Side (statistics, criterion of each group) --+
                                                                  +--> blocks of pairs --> criterion of the unions
    groups --side--> Side -----------------------------------------+                          |
                                                                   OUTPUTS[output](union, left, right)

A block is computed by whatever joblib backend is active, so threads, processes and clusters behave alike. A pair's
value depends on the block it falls into by rounding only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import get_config
from sklearn.utils import gen_batches
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import Fit, Likelihood, Statistics

_NO_DIVERGENCE = 1e-9  # squared standard deviations: below it all groups are alike to rounding
_BLOCK_BYTES = 2**25  # blocks larger than the processor's caches gain nothing
_SMALL_SQUARE = 256  # of pairs, of which half is computed in vain on the diagonal
PATIENCE = 0.5  # seconds without a bar
COMPILE_FROM = 2**29  # bytes to go through, below which plain NumPy answers before numba has loaded


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison: the groups' statistics and what the outputs need of each group alone."""

    statistics: Any
    n: np.ndarray
    alone: np.ndarray  # criterion of the group
    twice: Any = None  # criterion of the group united with itself
    remoteness: Any = None  # mean divergence to the reference groups
    baseline: float = 0.0  # mean divergence between reference groups

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, key: Any) -> Side:
        return self._map(lambda values: values[key], self.statistics[key])

    def as_column(self) -> Side:
        """The same groups along the first axis of a matrix."""
        return self._map(lambda values: values[:, None], self.statistics)

    def _map(self, function: Callable[[np.ndarray], np.ndarray], statistics: Any) -> Side:
        twice, remoteness = (None if v is None else function(v) for v in (self.twice, self.remoteness))
        return Side(statistics, function(self.n), function(self.alone), twice, remoteness, self.baseline)


def similarity(union: np.ndarray, left: Side, right: Side) -> np.ndarray:
    """Criterion of two models minus criterion of one, in the place of the latter."""
    np.subtract(left.alone, union, out=union)
    union += right.alone
    return union


def distance(union: np.ndarray, left: Side, right: Side) -> np.ndarray:
    """How much less similar two groups are than each to itself, on average."""
    return np.maximum(union - 0.5 * (left.twice + right.twice), 0)


def divergence(union: np.ndarray, left: Side, right: Side) -> np.ndarray:
    """Distance per vector: free of the groups' sizes."""
    return distance(union, left, right) * (1 / left.n + 1 / right.n)


def centered(union: np.ndarray, left: Side, right: Side) -> np.ndarray:
    """One minus the cosine of two groups as seen from the centre of the reference groups.

    A group no farther from the references than they are from their centre has no direction: cosine 0, as for a zero
    vector in scikit-learn, except with groups that do not diverge from it at all.
    """
    apart = (union - 0.5 * (left.twice + right.twice)) * (1 / left.n + 1 / right.n)
    inner = 0.5 * (left.remoteness + right.remoteness - left.baseline - np.maximum(apart, 0))
    squared = [np.maximum(side.remoteness - 0.5 * side.baseline, 0) for side in (left, right)]
    norm = np.sqrt(squared[0] * squared[1])
    cosine = np.divide(inner, norm, out=np.zeros_like(inner), where=norm > _NO_DIVERGENCE)
    return np.where(np.abs(apart) > _NO_DIVERGENCE, 1 - np.clip(cosine, -1, 1), 0)


OUTPUTS = {"similarity": similarity, "distance": distance, "divergence": divergence, "centered": centered}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A likelihood under a criterion, with the pseudo-vectors that every group receives."""

    likelihood: Likelihood
    criterion: Criterion
    reg_covar: float
    penalty_scale: float
    pseudo: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    @property
    def lacks_prior(self) -> bool:
        """Whether the criterion uses a prior that the likelihood was not given."""
        return self.criterion.uses_prior and getattr(self.likelihood, "prior", None) is None

    def statistics(self, groups: Groups) -> Any:
        """Statistics of the groups as they are, without pseudo-vectors."""
        with np.errstate(all="ignore"):
            statistics = self.likelihood.statistics(
                groups.without_weightless(), reg_covar=self.reg_covar, order=self.criterion.order
            )
        finite = statistics.finite
        if not finite.all():
            raise_not_finite(f"A moment of group {int(np.argmin(finite))}")
        return statistics

    def side(self, statistics: Any, output: str, references: Side | None = None) -> Side:
        """Prepare groups for an output; `centered` needs the prepared reference groups."""
        if self.pseudo is not None:
            statistics = self.likelihood.pool(statistics, self.pseudo[np.zeros(len(statistics), dtype=int)])
        side = Side(statistics, statistics.n, self._information(statistics))
        self._check_finite(side.alone)
        if output != "similarity":
            side = replace(side, twice=self._information(statistics, doubled=True))
        if references is not None:
            remoteness = self.all_pairs(side, references, "divergence").mean(axis=1)
            side = replace(side, remoteness=remoteness, baseline=references.baseline)
            _warn_of_central(0.5 * side.baseline - remoteness > _NO_DIVERGENCE)
        return side

    def references(self, statistics: Any) -> Side:
        """Prepare the groups whose centre `centered` looks from."""
        side = self.side(statistics, "divergence")
        return replace(side, baseline=float(self.all_pairs(side, None, "divergence").mean()))

    def all_pairs(
        self, left: Side, right: Side | None, output: str, dtype: Any = np.float64, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Every group on the left with every group on the right; ``right=None`` means the left, at half the work."""
        symmetric = right is None
        right = left if right is None else right
        result = _matrix(len(left), len(right), np.dtype(dtype)) if out is None else out
        precision = compiled_precision(self.likelihood, left.statistics, right.statistics, np.dtype(dtype))
        nbytes = self.likelihood.pair_nbytes(left.statistics, right.statistics, precision)
        count = _count(nbytes)
        step = max(1, int(np.sqrt(count)))
        if symmetric:
            blocks = list(_triangle(slice(0, len(left)), step))
        else:
            height = min(len(left), step)
            blocks = list(_rectangle(slice(0, len(left)), slice(0, len(right)), height, max(1, count // height)))
        store = partial(_store, result, symmetric)
        self._run(left, right, blocks, output, precision, store)
        if symmetric and output != "similarity":
            np.fill_diagonal(result, 0)
        return result

    def row_by_row(self, left: Side, right: Side, output: str, dtype: Any = np.float64) -> np.ndarray:
        """Each group on the left with the group of the same row on the right."""
        result = np.empty(len(left), dtype=dtype)
        nbytes = Likelihood.pair_nbytes(self.likelihood, left.statistics, right.statistics)
        blocks = [(i, i) for i in gen_batches(len(left), _count(nbytes))]
        store = partial(_store, result, False)
        self._run(left, right, blocks, output, None, store, rows=True)
        return result

    def _run(
        self,
        left: Side,
        right: Side,
        blocks: list[tuple[slice, slice]],
        output: str,
        precision: np.dtype | None,
        store: Callable,
        rows: bool = False,
    ) -> None:
        """Compute blocks on the active backend and store them: in the worker where it shares our memory, else here."""
        comparison = replace(self, pseudo=None)
        backend, _ = get_active_backend(prefer="threads")
        shared = getattr(backend, "supports_sharedmem", False)
        local = store if shared else None
        tasks = (
            delayed(_compare)(comparison, left[i], right[j], i, j, output, precision, rows, local) for i, j in blocks
        )
        sizes = [(i.stop - i.start) * (1 if rows else j.stop - j.start) for i, j in blocks]
        # threads of matrix products inside threads of ours would only wait for each other
        limits = 1 if effective_n_jobs(self.n_jobs) > 1 else None
        with threadpool_limits(limits, user_api="blas"), progress(self.verbose, sum(sizes)) as advance:
            for i, j, size, block in parallel(self.n_jobs)(tasks):
                if not shared:
                    store(i, j, block)
                advance(size)

    def _information(self, statistics: Any, doubled: bool = False) -> np.ndarray:
        """Criterion of each group, or of each group united with itself."""
        values = []
        with np.errstate(all="ignore"):
            for batch in gen_batches(len(statistics), _count(4 * statistics.row_nbytes)):
                block = statistics[batch]
                if doubled:
                    block = self.likelihood.pool(block, block)
                values.append(self.criterion(Fit(self.likelihood, block), self.penalty_scale))
        return np.concatenate(values)

    def _check_finite(self, information: np.ndarray) -> None:
        wrong = ~np.isfinite(information)
        if not wrong.any():
            return
        i = int(np.argmax(wrong))
        if self.reg_covar == 0 and not information[i] > 0:
            raise ValueError(
                f"Group {i} has an infinite likelihood under {type(self.likelihood).__name__}: it does not vary in "
                f"some direction, or too little for double precision. Set reg_covar > 0, or set prior_strength > 0 and "
                f"fit, or rescale the vectors."
            )
        raise_not_finite(f"The criterion of group {i}")


def _matrix(n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    try:
        return np.empty((n_rows, n_columns), dtype=dtype)
    except MemoryError as error:
        need = n_rows * n_columns * dtype.itemsize / 2**30
        raise MemoryError(
            f"A matrix of {n_rows} x {n_columns} pairs takes {need:,.1f} GiB, more than there is. GroupNeighbors keeps "
            f"only the nearest groups, as a sparse graph; pairwise_chunked yields rows; pairwise(out=...) fills a "
            f"memory map."
        ) from error


def _rectangle(rows: slice, columns: slice, height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of at most that many rows and columns."""
    for i in range(rows.start, rows.stop, height):
        for j in range(columns.start, columns.stop, width):
            yield slice(i, min(i + height, rows.stop)), slice(j, min(j + width, columns.stop))


def _triangle(rows: slice, step: int) -> Iterator[tuple[slice, slice]]:
    """Blocks on and above the diagonal: a square of them off it, and two smaller triangles, down to small squares."""
    size = rows.stop - rows.start
    if size <= min(step, _SMALL_SQUARE):
        yield rows, rows
        return
    middle = rows.start + size // 2
    yield from _rectangle(slice(rows.start, middle), slice(middle, rows.stop), step, step)
    yield from _triangle(slice(rows.start, middle), step)
    yield from _triangle(slice(middle, rows.stop), step)


def _compare(
    comparison: Comparison,
    left: Side,
    right: Side,
    i: slice,
    j: slice,
    output: str,
    precision: np.dtype | None,
    rows: bool,
    store: Callable | None,
) -> tuple[slice, slice, int, np.ndarray | None]:
    """One block of all pairs, or of pairs row by row: stored, or returned."""
    likelihood = comparison.likelihood
    with np.errstate(all="ignore"):
        if rows:
            fit = Fit(likelihood, likelihood.pool(left.statistics, right.statistics))
            block = OUTPUTS[output](comparison.criterion(fit, comparison.penalty_scale), left, right)
        else:
            fit = likelihood.pooled(left.statistics, right.statistics, precision)
            union = comparison.criterion(fit, comparison.penalty_scale).reshape(len(left), len(right))
            block = OUTPUTS[output](union, left.as_column(), right)
    if not np.isfinite(block).all():
        row, *column = np.argwhere(~np.isfinite(block))[0]
        which = f"of groups {i.start + row} and {j.start + column[0]}" if column else f"in row {i.start + row}"
        raise_not_finite(f"The comparison {which}")
    return i, j, block.size, store(i, j, block) if store else block


def _store(result: np.ndarray, symmetric: bool, i: slice, j: slice, block: np.ndarray) -> None:
    """Put a block into its place, and mirrored into the place below the diagonal; of squares on it, the upper half."""
    block = in_precision(block, result.dtype)
    if block.ndim == 1:
        result[i] = block
    elif symmetric and i == j:
        result[i, j] = np.triu(block) + np.triu(block, 1).T
    else:
        result[i, j] = block
        if symmetric:
            result[j, i] = block.T


def parallel(n_jobs: int | None) -> Parallel:
    """Results as they come where the active backend can do that, else all at the end."""
    try:
        return Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
    except ValueError:
        return Parallel(n_jobs=n_jobs, prefer="threads")


@contextmanager
def progress(verbose: int, total: int, task: str = "comparing", unit: str = " pairs") -> Iterator[Callable[[int], Any]]:
    """A bar on standard error, when asked for, standard error is a terminal and there is time to see it."""
    if not verbose:
        yield lambda done: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=task, unit=unit, unit_scale=True, disable=None, delay=PATIENCE) as bar:
        yield bar.update


def compiled_precision(likelihood: Likelihood, a: Statistics, b: Statistics, dtype: np.dtype) -> np.dtype | None:
    """The precision of compiled code for all pairs, or None where there is too little work for it."""
    return dtype if len(a) * len(b) * likelihood.pair_nbytes(a, b) >= COMPILE_FROM else None


def in_precision(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers in the precision of the vectors, if they fit."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if cast is not values and not np.isfinite(cast).all():
        raise ValueError("A result exceeds the range of float32, the precision of the vectors: pass them as float64.")
    return cast


def rows_per_chunk(row_nbytes: int) -> int:
    """How many rows of a matrix fit into the working memory."""
    return max(1, int(get_config()["working_memory"] * 2**20 // row_nbytes))


def _count(nbytes: int) -> int:
    """How many pairs of `nbytes` each, temporary arrays included, make a block."""
    budget = min(get_config()["working_memory"] * 2**20, _BLOCK_BYTES)
    return max(1, int(budget // nbytes))


def _warn_of_central(central: np.ndarray) -> None:
    if central.any():
        warnings.warn(
            f"{central.sum()} of {len(central)} groups are nearer to the reference groups than the centre of these, "
            f"and have no direction from it: their 'centered' values are 1. Groups of very different sizes cause this; "
            f"prior_strength > 0 evens them out.",
            stacklevel=6,
        )


def raise_not_finite(what: str) -> None:
    raise ValueError(
        f"{what} is not a finite number: the vectors are too large or too small for double precision. "
        f"Rescale them, for example to unit variance."
    )
