"""Random orders of the rows of a sequence, in blocks if rows depend on their neighbours."""

from __future__ import annotations

import numpy as np

FEWEST_BLOCKS = 6  # fewer have too few orders
_FEW_STEPS = 10  # rows that differ from the row before: so few are changes, and no sign of dependence
_LOST = 0.05  # share of the variance of long sums that blocks may lack, if there are enough of them


def random_order(n: int, block_size: int, rng: np.random.RandomState) -> np.ndarray:
    """The numbers below n in blocks of consecutive ones, of which the first begins anywhere, in random order."""
    rows = np.roll(np.arange(n), -rng.randint(block_size))
    blocks = [rows[begin : begin + block_size] for begin in range(0, n, block_size)]
    return np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])


def chosen_blocks(rows: np.ndarray, is_pooled: bool) -> tuple[int, float]:
    """How many consecutive rows to keep together, and the share of the variance of long sums that remains.

    If correlations fall geometrically, half the mean squared difference of rows h apart is 1 - r^h, in units of the
    variance. Differences at h = 1 and 2 hence give r = d(2) / d(1) - 1, which a few changes of the mean hardly affect.
    The variance of the sum of a block then lacks a share 2 r / (1 - r²) / block_size of that of long blocks.
    If `is_pooled`, the squares of all features are summed. Otherwise the most correlated feature counts, less the
    correlation that the largest of so many has by chance. Features that hardly ever change do not count.
    """
    n = len(rows)
    if n < 3:
        return 1, 1.0
    with np.errstate(all="ignore"):
        one, two = (_squared_differences(rows, lag, is_pooled) for lag in (1, 2))
        ratios = np.where(_n_steps(rows, is_pooled) > _FEW_STEPS, two / one, np.nan)
    chance = np.sqrt(4 * np.log(len(one)) / n)
    r = float(np.clip(ratios[np.isfinite(ratios)].max(initial=0) - 1 - chance, 0, 0.99))
    lacking = 2 * r / (1 - r**2)
    size = int(np.clip(round(lacking / _LOST), 1, max(1, n // FEWEST_BLOCKS)))
    return size, (1.0 if size == 1 else max(0.5, 1 - lacking / size))


def _n_steps(rows: np.ndarray, is_pooled: bool) -> np.ndarray:
    """Number of rows that differ from the row before, in each feature or in any."""
    differs = rows[1:] != rows[:-1]
    return (differs.any(axis=1, keepdims=True) if is_pooled else differs).sum(axis=0)


def neighbour_difference(rows: np.ndarray) -> float:
    """Mean squared difference of neighbouring rows: their variance, hardly affected by a few changes of the mean.

    In this unit a large change does not hide a small one, though both are part of the rows in random order. It is for
    single rows, because random order changes the neighbours at the ends of blocks only.
    """
    return float(_squared_differences(rows, 1, is_pooled=True)[0]) or 1.0


def _squared_differences(rows: np.ndarray, lag: int, is_pooled: bool) -> np.ndarray:
    """Mean squared differences of rows so far apart, of each feature or of all together, but for the largest tenth.

    The largest ones may be changes. They count where all others are 0.
    """
    squares = np.square(rows[lag:] - rows[:-lag])
    if is_pooled:
        squares = squares.sum(axis=1, keepdims=True)
    usual = np.sort(squares, axis=0)[: max(1, len(squares) * 9 // 10)].mean(axis=0)
    return np.where(usual > 0, usual, squares.mean(axis=0))
