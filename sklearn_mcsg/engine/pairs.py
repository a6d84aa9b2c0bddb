"""Groups are prepared once, then compared pair by pair.

    Statistics --prepare--> Prepared --+
                                       +--> blocks of pairs --engine--> criterion of the unions --> output
    Statistics --prepare--> Prepared --+

The active joblib backend computes the blocks, so threads, processes and clusters behave alike. The division into
blocks changes values by rounding only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import PAIRS, REFERENCES, count_within
from sklearn_mcsg.engine.dispatch import Pooling, choose_engine
from sklearn_mcsg.engine.model import GroupModel, raise_not_finite
from sklearn_mcsg.engine.outputs import NO_DIVERGENCE, OUTPUTS, Output
from sklearn_mcsg.engine.parallel import progress, run, shares_memory
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.engine.results import DOUBLE, Target
from sklearn_mcsg.groups.arrays import namespace_of, to_numpy
from sklearn_mcsg.likelihoods import Fit, Statistics, pooled_nbytes

_DIVERGENCE = OUTPUTS["divergence"]
_LEAST_WEIGHT = 1e-9  # of a group whose distances are not lost in the rounding of its penalty
_SMALL_SQUARE = 256  # groups: blocks on the diagonal stay small, because half of each is wasted
Block = tuple[slice, slice]  # rows and columns


# Blocks of a matrix --------------------------------------------------------------------------------------------------


def rectangle(rows: slice, columns: slice, height: int, width: int) -> Iterator[Block]:
    """Blocks of at most `height` rows and `width` columns."""
    for i in range(rows.start, rows.stop, height):
        for j in range(columns.start, columns.stop, width):
            yield slice(i, min(i + height, rows.stop)), slice(j, min(j + width, columns.stop))


def triangle(rows: slice, step: int) -> Iterator[Block]:
    """Blocks on and above the diagonal: one off-diagonal square and two smaller triangles, recursively."""
    size = rows.stop - rows.start
    if size <= min(step, _SMALL_SQUARE):
        yield rows, rows
        return
    middle = rows.start + size // 2
    yield from rectangle(slice(rows.start, middle), slice(middle, rows.stop), step, step)
    yield from triangle(slice(rows.start, middle), step)
    yield from triangle(slice(middle, rows.stop), step)


def matrix_blocks(n_rows: int, n_columns: int, symmetric: bool, pair_nbytes: int, most: int = PAIRS) -> list[Block]:
    """Blocks of `most` bytes of a matrix of pairs that take `pair_nbytes` each, temporary arrays included."""
    count = count_within(pair_nbytes, most)
    step = max(1, int(count**0.5))
    if symmetric:
        return list(triangle(slice(0, n_rows), step))
    height = min(n_rows, step)
    return list(rectangle(slice(0, n_rows), slice(0, n_columns), height, max(1, count // height)))


# Comparison ------------------------------------------------------------------------------------------------------


def prepare(model: GroupModel, statistics: Statistics, output: Output, references: Prepared | None = None) -> Prepared:
    """Prepare groups for an output; `references` are the prepared reference groups, if it needs them."""
    statistics = model.likelihood.for_pairs(model.padded(statistics))
    prepared = Prepared(statistics, statistics.n, model.information(statistics))
    if output.needs_doubled:
        _check_weights(statistics.n)
        prepared = replace(prepared, doubled=model.information(statistics, doubled=True))
    if references is None:
        return prepared
    among = references.among_references
    step = count_within(8 * len(references), REFERENCES)
    rows = (prepared[batch] for batch in gen_batches(len(prepared), step))
    means = [all_pairs(model, some, references, _DIVERGENCE).mean(axis=1) for some in rows]
    to_references = np.concatenate(means)
    _warn_of_central(0.5 * among - to_references > NO_DIVERGENCE)
    return replace(prepared, to_references=to_references, among_references=among)


def prepare_references(model: GroupModel, statistics: Statistics) -> Prepared:
    """Prepare the reference groups of `centered`."""
    prepared = prepare(model, statistics, _DIVERGENCE)
    return replace(prepared, among_references=float(all_pairs(model, prepared, prepared, _DIVERGENCE).mean()))


def all_pairs(
    model: GroupModel,
    left: Prepared,
    right: Prepared,
    output: Output,
    target: Target = DOUBLE,
    *,
    engine: Pooling | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Any:
    """Compare every left group with every right group; at half the cost if both are the same object.

    If this call is part of a larger task, pass the `engine` chosen for that task.
    """
    engine = engine or choose_engine(model.likelihood, left.statistics, right.statistics, target)
    symmetric = right is left
    n_rows, n_columns = len(left), len(right)
    left = engine.moved(left)
    right = left if symmetric else engine.moved(right)
    result = engine.empty(n_rows, n_columns) if target.out is None else target.out
    nbytes = engine.pair_nbytes(left.statistics, right.statistics)
    blocks = matrix_blocks(n_rows, n_columns, symmetric, nbytes, engine.budget)
    sides = (_sides(engine, left, right, block) for block in blocks)
    sizes = [(rows.stop - rows.start) * (columns.stop - columns.start) for rows, columns in blocks]
    store = partial(_store, engine, output, result, symmetric)
    jobs = 1 if target.kind is not None else n_jobs
    _run(partial(_all_pairs, engine, _light(model), output.name), sides, blocks, sizes, store, jobs, verbose)
    return result


def row_by_row(
    model: GroupModel,
    left: Prepared,
    right: Prepared,
    output: Output,
    target: Target = DOUBLE,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Any:
    """Compare each left group with the right group of the same row."""
    values = np.empty(len(left))
    batches = list(gen_batches(len(left), count_within(pooled_nbytes(left.statistics, right.statistics), PAIRS)))
    sides = ((left[rows], right[rows]) for rows in batches)
    sizes = [rows.stop - rows.start for rows in batches]

    def store(block: Block, found: np.ndarray) -> None:
        values[block[0]] = found

    blocks = [(rows, rows) for rows in batches]
    _run(partial(_pairs_of_rows, _light(model), output.name), sides, blocks, sizes, store, n_jobs, verbose)
    return target.finished(values)


def _light(model: GroupModel) -> GroupModel:
    """The model for prepared groups, which have their pseudo-vectors already."""
    return replace(model, pseudo=None, unit=None)


def _sides(engine: Pooling, left: Prepared, right: Prepared, block: Block) -> tuple[Prepared, Prepared]:
    """Both sides of a block; if it is on the diagonal of a symmetric matrix, both are one object."""
    rows, columns = block
    some = engine.take(left, rows)
    return some, some if right is left and rows == columns else engine.take(right, columns)


def _run(
    compare: Callable,
    sides: Any,
    blocks: list[Block],
    sizes: list[int],
    store: Callable[[Block, Any], None],
    n_jobs: int | None,
    verbose: int,
) -> None:
    """Compute blocks on the active backend; store them in the worker if it shares memory, otherwise here."""
    shared = shares_memory(len(blocks), n_jobs)
    local = store if shared else None
    tasks = ((compare, *pair, block, size, local) for pair, block, size in zip(sides, blocks, sizes, strict=True))
    with progress(verbose, sum(sizes)) as advance:
        for block, size, values in run(_compare, tasks, len(blocks), n_jobs):
            if not shared:
                store(block, values)
            advance(size)


def _compare(
    compare: Callable, left: Prepared, right: Prepared, block: Block, size: int, store: Callable | None
) -> tuple[Block, int, Any]:
    """Compute one block, and store or return it."""
    with np.errstate(all="ignore"):
        values = compare(left, right)
        xp = namespace_of(values)
        if not xp.all(xp.isfinite(values)):
            _raise_of_pair(values, block)
    return block, size, store(block, values) if store else values


def _all_pairs(engine: Pooling, model: GroupModel, output: str, left: Prepared, right: Prepared) -> Any:
    union = model.fitted(engine.fit(left.statistics, right.statistics))
    return OUTPUTS[output].compute(union, left.as_column(), right)


def _pairs_of_rows(model: GroupModel, output: str, left: Prepared, right: Prepared) -> np.ndarray:
    union = model.fitted(Fit(model.likelihood, model.likelihood.pool(left.statistics, right.statistics)))
    return OUTPUTS[output].compute(union, left, right)


def _store(engine: Pooling, output: Output, result: Any, symmetric: bool, block: Block, values: Any) -> None:
    """Store a block and, if symmetric, its mirror image; a block on the diagonal mirrors its upper half."""
    rows, columns = block
    values = engine.finished(values)
    if symmetric and rows == columns:
        xp = namespace_of(values)
        values = xp.triu(values) + xp.triu(values, k=1).T
        if output.diagonal is not None:
            values = engine.with_diagonal(values, output.diagonal)
    result[rows, columns] = values
    if symmetric and rows != columns:
        result[columns, rows] = values.T


def _raise_of_pair(values: Any, block: Block) -> NoReturn:
    """Raise the error for the first comparison of a block that is not finite."""
    row, *column = np.argwhere(~np.isfinite(to_numpy(values)))[0]
    rows, columns = block
    which = f"of groups {rows.start + row} and {columns.start + column[0]}" if column else f"in row {rows.start + row}"
    raise_not_finite(f"The comparison {which}")


def _check_weights(n: np.ndarray) -> None:
    """Raise if a group weighs so little that rounding would make all its distances 0."""
    wrong = (n > 0) & (n < _LEAST_WEIGHT)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"The weights of group {i} sum to {n[i]:g}: its distances would be lost in rounding. Scale all weights, "
            f"for example to a mean of 1, or set balanced=True, if each group is to count as one observation."
        )


def _warn_of_central(central: np.ndarray) -> None:
    if central.any():
        warnings.warn(
            f"{central.sum()} of {len(central)} groups are nearer to the reference groups than the centre of the "
            f"references is, so they have no direction from that centre: their 'centered' values are 1. Groups of very "
            f"different sizes cause this; set prior_strength > 0 to reduce it.",
            stacklevel=6,
        )
