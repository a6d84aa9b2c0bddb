"""A likelihood under a criterion: groups are prepared once, then compared pair by pair.

    groups --statistics--> Statistics --prepare--> Prepared --+
                                                              +--> blocks of pairs --> criterion of the unions
    groups --statistics--> Statistics --prepare--> Prepared --+                           |
                                                               output.compute(union, left, right)

The active joblib backend computes the blocks, so threads, processes and clusters behave alike. The division into
blocks changes values by rounding only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import clone
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import DEVICE, count_within
from sklearn_mcsg._memory import PAIRS as CACHE_BYTES
from sklearn_mcsg.criteria import CRITERIA, Criterion
from sklearn_mcsg.engine.blocks import matrix_blocks
from sklearn_mcsg.engine.dispatch import PairFitter, choose_fitter
from sklearn_mcsg.engine.outputs import NO_DIVERGENCE, OUTPUTS, Output
from sklearn_mcsg.engine.parallel import progress, run, shares_memory
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.array_groups import ArrayGroups
from sklearn_mcsg.groups.arrays import ArrayKind
from sklearn_mcsg.groups.regroup import balanced, condensed, without_weightless
from sklearn_mcsg.likelihoods import LIKELIHOODS, Fit, Likelihood, Statistics, pooled_nbytes
from sklearn_mcsg.storage import register

_REFERENCE_BYTES = 2**27  # of comparisons with reference groups at a time


@register
@dataclass(frozen=True, eq=False)
class GroupModel:
    """A likelihood under a criterion, with the pseudo-vectors that every group receives."""

    likelihood: Likelihood
    criterion: Criterion
    reg_covar: float
    penalty_scale: float
    pseudo: Statistics | None = None
    balanced: bool = False
    unit: Statistics | None = None  # pseudo-vectors in place of a group without vectors, where groups are balanced
    n_jobs: int | None = None
    verbose: int = 0

    def with_jobs(self, n_jobs: int | None, verbose: int = 0) -> GroupModel:
        """A copy with another number of jobs and verbosity."""
        return replace(self, n_jobs=n_jobs, verbose=verbose)

    @property
    def lacks_prior(self) -> bool:
        """Whether the criterion uses a prior that the likelihood was not given."""
        return self.criterion.uses_prior and getattr(self.likelihood, "prior", None) is None

    def check(self, prior_strength: float) -> None:
        """Raise unless the likelihood defines what the criterion and the prior need."""
        self.criterion.check(self.likelihood)
        needs = {"pseudo_group": prior_strength > 0, "learn_prior": self.lacks_prior}
        for method, needed in needs.items():
            if needed and not self.likelihood.defines(method):
                remedy = "set prior_strength=0" if method == "pseudo_group" else "give it a prior"
                raise ValueError(f"{type(self.likelihood).__name__} defines no {method}: {remedy}.")

    def check_output(self, output: Output) -> None:
        """Raise unless the likelihood and the criterion have an output."""
        if not output.is_usable_for(self.likelihood, self.criterion):
            registries: Any = LIKELIHOODS, CRITERIA
            likelihoods, criteria = (
                ", ".join(repr(name) for name, kind in registry.items() if kind.has_kernel) for registry in registries
            )
            raise ValueError(
                f"output={output.name!r} is positive definite for the likelihoods {likelihoods} with the criteria "
                f"{criteria}, not for {type(self.likelihood).__name__} with {type(self.criterion).__name__}: choose "
                f"among these, or another output."
            )

    def unlearnt(self, prior_strength: float, output: Output | None = None) -> list[str]:
        """The parameters that require learning from a corpus, as text for messages."""
        names = {criterion: name for name, criterion in CRITERIA.items()}
        criterion = names.get(type(self.criterion), type(self.criterion).__name__)
        wanted = {
            "prior_strength > 0": prior_strength > 0,
            f"criterion={criterion!r} without a prior": self.lacks_prior,
            f"output={output.name!r}" if output else "": output is not None and output.needs_corpus,
        }
        return [reason for reason, needed in wanted.items() if needed]

    def completed(self, statistics: Statistics, prior_strength: float) -> GroupModel:
        """The comparison with its prior and pseudo-vectors learnt from a corpus."""
        reasons = self.unlearnt(prior_strength)
        if reasons and not statistics.n.any():
            raise ValueError(f"All groups are empty: there is nothing to learn for {' and '.join(reasons)}.")
        likelihood, pseudo, unit = self.likelihood, None, None
        with np.errstate(over="ignore", invalid="ignore"):
            if self.lacks_prior:
                likelihood = clone(likelihood).set_params(prior=likelihood.learn_prior(statistics))
            if prior_strength > 0:
                pseudo = likelihood.pseudo_group(statistics, float(prior_strength))
                unit = likelihood.pseudo_group(statistics, 1.0) if self.balanced else None
        return replace(self, likelihood=likelihood, pseudo=pseudo, unit=unit)

    def counted(self, groups: Groups) -> Groups:
        """The groups with the weights that count: where groups are balanced, those of each group sum to 1."""
        return balanced(groups) if self.balanced else groups

    def check_arrays(self) -> None:
        """Raise unless the likelihood and the criterion take arrays of other libraries than NumPy."""
        if self.likelihood.array_unions is None or not self.criterion.takes_arrays:
            registry: Any = LIKELIHOODS
            likelihoods = ", ".join(repr(name) for name, kind in registry.items() if kind.array_unions)
            criteria = ", ".join(repr(name) for name, kind in CRITERIA.items() if kind.takes_arrays)
            raise TypeError(
                f"Only the likelihoods {likelihoods} with the criteria {criteria} take arrays of other libraries than "
                f"NumPy, not {type(self.likelihood).__name__} with {type(self.criterion).__name__}: choose among these "
                f"or convert the arrays, for example PyTorch tensors by .cpu().numpy()."
            )

    def statistics(self, groups: Groups | ArrayGroups, first: int = 0) -> Statistics:
        """Statistics of the groups as they are, without pseudo-vectors; errors number groups from `first` on."""
        with np.errstate(all="ignore"):
            if isinstance(groups, ArrayGroups):
                self.check_arrays()
                statistics = self.likelihood.statistics_of_moments(*groups.moments(), self.reg_covar)
                statistics = self.likelihood.balance(statistics) if self.balanced else statistics
            else:
                statistics = self.likelihood.statistics(
                    without_weightless(condensed(self.counted(groups))),
                    reg_covar=self.reg_covar,
                    order=self.criterion.order,
                )
        finite = statistics.finite
        if not finite.all():
            raise_not_finite(f"A moment of group {first + int(np.argmin(finite))}")
        return statistics

    def with_pseudo(self, statistics: Statistics) -> Statistics:
        """Statistics of the groups together with the pseudo-vectors, if there are any."""
        if self.pseudo is None:
            return statistics
        likelihood, pseudo = self.likelihood, self.pseudo.without_vectors()

        def padded(batch: Statistics) -> Statistics:
            return likelihood.pool(batch, pseudo[np.zeros(len(batch), dtype=int)])

        statistics = self._filled(statistics)
        light = statistics.without_vectors()
        step = count_within(8 * light.row_nbytes, CACHE_BYTES)
        pooled = padded(light) if len(light) <= step else light.map_batches(padded, gen_batches(len(light), step))
        return pooled.with_vectors(statistics, self.pseudo[np.zeros(len(statistics), dtype=int)])

    def _filled(self, statistics: Statistics) -> Statistics:
        """Statistics in which balanced groups without vectors have pseudo-vectors of weight 1, so totals are equal."""
        empty = statistics.n == 0
        if self.unit is None or not empty.any():
            return statistics
        if statistics.keeps_vectors:
            raise ValueError(
                f"Group {int(np.argmax(empty))} has no vectors: {type(self.likelihood).__name__} with "
                f"{type(self.criterion).__name__} cannot balance empty groups. Remove them."
            )
        joined = type(statistics).concatenate([statistics, self.unit])
        return joined[np.where(empty, len(statistics), np.arange(len(statistics)))]

    def prepare(self, statistics: Statistics, output: Output, references: Prepared | None = None) -> Prepared:
        """Prepare groups for an output; `references` are the prepared reference groups, if it needs them."""
        statistics = self.likelihood.for_pairs(self.with_pseudo(statistics))
        prepared = Prepared(statistics, statistics.n, self._information(statistics))
        self._check_finite(prepared.information)
        if output.needs_doubled:
            prepared = replace(prepared, doubled=self._information(statistics, doubled=True))
        if references is not None:
            among = references.among_references
            step = count_within(8 * len(references), _REFERENCE_BYTES)
            rows = (prepared[batch] for batch in gen_batches(len(prepared), step))
            parts = [self.all_pairs(some, references, OUTPUTS["divergence"]).mean(axis=1) for some in rows]
            to_references = np.concatenate(parts)
            prepared = replace(prepared, to_references=to_references, among_references=among)
            _warn_of_central(0.5 * among - to_references > NO_DIVERGENCE)
        return prepared

    def prepare_references(self, statistics: Statistics) -> Prepared:
        """Prepare the reference groups of `centered`."""
        divergence = OUTPUTS["divergence"]
        prepared = self.prepare(statistics, divergence)
        return replace(prepared, among_references=float(self.all_pairs(prepared, None, divergence).mean()))

    def all_pairs(
        self,
        left: Prepared,
        right: Prepared | None,
        output: Output,
        dtype: DTypeLike = np.float64,
        out: np.ndarray | None = None,
        fitter: PairFitter | None = None,
    ) -> np.ndarray:
        """Compare every left group with every right group; ``right=None`` means `left`, at half the cost.

        If this call is part of a larger task, pass the `fitter` chosen for that task.
        """
        symmetric = right is None
        right = left if right is None else right
        result = _matrix(len(left), len(right), np.dtype(dtype)) if out is None else out
        fitter = fitter or choose_fitter(self.likelihood, left.statistics, right.statistics, dtype)
        nbytes = fitter.pair_nbytes(left.statistics, right.statistics)
        blocks = matrix_blocks(len(left), len(right), symmetric, nbytes)
        self._run(partial(_all_pairs_of_block, fitter), left, right, blocks, output, partial(_store, result, symmetric))
        if symmetric and output.diagonal is not None:
            np.fill_diagonal(result, output.diagonal)
        return result

    def all_pairs_on_device(self, left: Prepared, right: Prepared | None, output: Output, kind: ArrayKind) -> Any:
        """Compare every left group with every right group, as `all_pairs` does, where the arrays of a kind are."""
        xp, symmetric = kind.xp, right is None
        left = left.map_arrays(kind.asarray)
        right = left if right is None else right.map_arrays(kind.asarray)
        shape = left.n.shape[0], right.n.shape[0]
        result = xp.empty(shape, dtype=getattr(xp, kind.dtype.name), device=kind.device)
        unions: Any = self.likelihood.array_unions
        blocks = matrix_blocks(*shape, symmetric, 32 * left.statistics.n_features, DEVICE)
        n_pairs = sum((i.stop - i.start) * (j.stop - j.start) for i, j in blocks)
        with np.errstate(all="ignore"), progress(self.verbose, n_pairs) as advance:
            for i, j in blocks:
                rows, columns = (side.map_arrays(itemgetter((key, ...))) for side, key in ((left, i), (right, j)))
                fit = Fit(self.likelihood, unions(rows.statistics, columns.statistics))
                block = output.compute(self.criterion(fit, self.penalty_scale), rows.as_column(), columns)
                if not xp.all(xp.isfinite(block)):
                    _raise_of_pair(kind.to_numpy(block), i, j)
                if symmetric and i == j:
                    block = xp.triu(block) + xp.triu(block, k=1).T
                    if output.diagonal is not None:
                        same = xp.eye(block.shape[0], dtype=block.dtype, device=kind.device) > 0
                        block = xp.where(same, output.diagonal, block)
                result[i, j] = block = kind.result(block)
                if symmetric and i != j:
                    result[j, i] = block.T
                advance(block.shape[0] * block.shape[1])
        return result

    def row_by_row(self, left: Prepared, right: Prepared, output: Output, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Compare each left group with the right group of the same row."""
        result = np.empty(len(left), dtype=dtype)
        count = count_within(pooled_nbytes(left.statistics, right.statistics), CACHE_BYTES)
        blocks = [(i, i) for i in gen_batches(len(left), count)]
        self._run(_rows_of_block, left, right, blocks, output, partial(_store, result, False))
        return result

    def _run(
        self,
        compare: Callable,
        left: Prepared,
        right: Prepared,
        blocks: list[tuple[slice, slice]],
        output: Output,
        store: Callable,
    ) -> None:
        """Compute blocks on the active backend; store them in the worker if it shares memory, otherwise here."""
        comparison = replace(self, pseudo=None)
        shared = shares_memory(len(blocks), self.n_jobs)
        local = store if shared else None
        tasks = ((compare, comparison, *_two(left, right, i, j), i, j, output.name, local) for i, j in blocks)
        rows = compare is _rows_of_block
        sizes = [(i.stop - i.start) * (1 if rows else j.stop - j.start) for i, j in blocks]
        with progress(self.verbose, sum(sizes)) as advance:
            for i, j, size, block in run(_compare, tasks, len(blocks), self.n_jobs):
                if not shared:
                    store(i, j, block)
                advance(size)

    def _information(self, statistics: Statistics, doubled: bool = False) -> np.ndarray:
        """Criterion of each group, or of each group united with itself."""
        values = []
        with np.errstate(all="ignore"):
            for batch in gen_batches(len(statistics), count_within(4 * statistics.row_nbytes, CACHE_BYTES)):
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


def _compare(
    compare: Callable,
    comparison: GroupModel,
    left: Prepared,
    right: Prepared,
    i: slice,
    j: slice,
    output: str,
    store: Callable | None,
) -> tuple[slice, slice, int, np.ndarray | None]:
    """Compute one block, of all pairs or row by row, and store or return it."""
    with np.errstate(all="ignore"):
        block = compare(comparison, left, right, OUTPUTS[output])
    if not np.isfinite(block).all():
        _raise_of_pair(block, i, j)
    return i, j, block.size, store(i, j, block) if store else block


def _raise_of_pair(block: np.ndarray, i: slice, j: slice) -> NoReturn:
    """Raise the error for the first comparison of a block that is not finite."""
    row, *column = np.argwhere(~np.isfinite(block))[0]
    which = f"of groups {i.start + row} and {j.start + column[0]}" if column else f"in row {i.start + row}"
    raise_not_finite(f"The comparison {which}")


def _two(left: Prepared, right: Prepared, i: slice, j: slice) -> tuple[Prepared, Prepared]:
    """Both sides of a block; if it is on the diagonal of a symmetric matrix, both are one object."""
    some = left[i]
    return some, some if right is left and i == j else right[j]


def _all_pairs_of_block(
    fitter: PairFitter, comparison: GroupModel, left: Prepared, right: Prepared, output: Output
) -> np.ndarray:
    union = comparison.criterion(fitter(left.statistics, right.statistics), comparison.penalty_scale)
    return output.compute(union, left.as_column(), right)


def _rows_of_block(comparison: GroupModel, left: Prepared, right: Prepared, output: Output) -> np.ndarray:
    fit = Fit(comparison.likelihood, comparison.likelihood.pool(left.statistics, right.statistics))
    return output.compute(comparison.criterion(fit, comparison.penalty_scale), left, right)


def _store(result: np.ndarray, symmetric: bool, i: slice, j: slice, block: np.ndarray) -> None:
    """Store a block and, if symmetric, its mirror image; a block on the diagonal mirrors its upper half."""
    block = in_precision(block, result.dtype)
    if block.ndim == 1:
        result[i] = block
    elif symmetric and i == j:
        result[i, j] = np.triu(block) + np.triu(block, 1).T
    else:
        result[i, j] = block
        if symmetric:
            result[j, i] = block.T


def _matrix(n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    try:
        return np.empty((n_rows, n_columns), dtype=dtype)
    except MemoryError as error:
        need = n_rows * n_columns * dtype.itemsize / 2**30
        raise MemoryError(
            f"A matrix of {n_rows} x {n_columns} pairs takes {need:,.1f} GiB, more than is available. GroupNeighbors "
            f"keeps only the nearest groups, as a sparse graph; pairwise_chunked yields rows; pairwise(out=...) fills "
            f"a memory map."
        ) from error


def in_precision(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values in the precision of the vectors; raise if they overflow."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if cast is not values and not np.isfinite(cast).all():
        raise ValueError("A result exceeds the range of float32, the precision of the vectors: pass them as float64.")
    return cast


def _warn_of_central(central: np.ndarray) -> None:
    if central.any():
        warnings.warn(
            f"{central.sum()} of {len(central)} groups are nearer to the reference groups than the centre of the "
            f"references is, so they have no direction from that centre: their 'centered' values are 1. Groups of very "
            f"different sizes cause this; set prior_strength > 0 to reduce it.",
            stacklevel=6,
        )


class NotFiniteError(ValueError):
    """A number is outside the range of double precision."""


def raise_not_finite(what: str) -> NoReturn:
    """Raise an error that says what is not finite, and what to do."""
    raise NotFiniteError(
        f"{what} is not a finite number: the vectors are too large or too small for double precision. "
        f"Rescale them, for example to unit variance."
    )
