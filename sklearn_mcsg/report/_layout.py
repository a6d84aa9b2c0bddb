"""Layout of the map, on which neighbours are near each other: t-SNE of all points, with forces summed on a grid.

    points --60 nearest neighbours--> affinities --attraction: along neighbours, repulsion: by FFT--> positions

An iteration takes time linear in the number of points, as in interpolation-based t-SNE (Linderman et al., 2019).
"""

from __future__ import annotations

import numpy as np
from scipy import fft, sparse
from scipy.spatial import KDTree
from threadpoolctl import threadpool_limits

from sklearn_mcsg.engine.parallel import ONE_BLAS_THREAD, progress
from sklearn_mcsg.search.nearest import nearest_points

_PERPLEXITY = 20
_EXAGGERATED, _PLAIN = 200, 300  # iterations with affinities times 12, and without
_CELL = 0.5  # width of a cell of the grid, for a kernel of width 1
_CELLS = 60, 300  # least and largest number of cells along a side
_GAP = 0.015  # largest distance between two points that are moved apart, as a share of the map's width
_FEW_POINTS = 10  # fewer points are placed by their principal components only


def map_of(points: np.ndarray, random_state: np.random.RandomState, verbose: int = 0) -> np.ndarray:
    """Positions in the unit square of points at unit length, with neighbours near each other and few overlaps."""
    n = len(points)
    with ONE_BLAS_THREAD, threadpool_limits(1):  # sums over several threads differ from run to run
        positions = _principal(np.asarray(points, dtype=np.float64), random_state)
        if n >= _FEW_POINTS:
            positions = _tsne(_affinities(points), 1e-4 * positions, verbose)
        positions -= positions.mean(axis=0)
        positions = positions @ np.linalg.eigh(positions.T @ positions)[1][:, ::-1]  # the longer side is horizontal
        return _fitted_into_unit(_apart(_fitted_into_unit(positions)))


def _principal(points: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Two principal components with the larger at unit variance; equal points are told apart by little noise."""
    centred = points - points.mean(axis=0)
    vectors = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])] < 0, -1, 1)
    positions = np.zeros((len(points), 2))
    positions[:, : vectors.shape[1]] = centred @ vectors
    deviation = positions[:, 0].std()
    return positions / (deviation if deviation > 1e-9 else 1) + 1e-3 * random_state.normal(size=positions.shape)


def _affinities(points: np.ndarray) -> sparse.csr_array:
    """Symmetric affinities of neighbours, which sum to 1: normal kernels with the given perplexity."""
    n = len(points)
    perplexity = min(_PERPLEXITY, (n - 1) / 3)
    n_neighbors = min(n - 1, round(3 * perplexity))
    distances, columns = nearest_points(points.astype(np.float32, copy=False), n_neighbors)
    squares = distances.astype(np.float64) ** 2
    values = _calibrated(squares - squares.min(axis=1, keepdims=True), np.log(perplexity))
    one_way = sparse.csr_array((values.ravel(), columns.ravel(), n_neighbors * np.arange(n + 1)), shape=(n, n))
    both: sparse.csr_array = (one_way + one_way.T).tocsr()
    return (both / both.sum()).astype(np.float32)


def _calibrated(squares: np.ndarray, entropy: float) -> np.ndarray:
    """Rows of a normal kernel, each with the precision that gives the entropy, found by bisection of its logarithm."""
    low, high = np.full(len(squares), -12.0), np.full(len(squares), 24.0)
    for _ in range(40):
        middle = (low + high) / 2
        kernel = np.exp(-np.exp(middle)[:, None] * squares)
        total = kernel.sum(axis=1)
        found = np.log(total) + np.exp(middle) * (kernel * squares).sum(axis=1) / total
        low, high = np.where(found > entropy, middle, low), np.where(found > entropy, high, middle)
    return kernel / total[:, None]


def _tsne(affinities: sparse.csr_array, positions: np.ndarray, verbose: int) -> np.ndarray:
    """Positions that gradient descent reaches, with the usual gains and momentum."""
    n = len(positions)
    rate = n / 48  # beyond it, exaggerated attraction overshoots
    rows = np.repeat(np.arange(n), np.diff(affinities.indptr))
    step, gains = np.zeros_like(positions), np.ones_like(positions)
    with progress(verbose, _EXAGGERATED + _PLAIN, "drawing the map", " steps") as advance:
        for t in range(_EXAGGERATED + _PLAIN):
            early = t < _EXAGGERATED
            pull = (12 if early else 1) * _attraction(affinities, rows, positions)
            gradient = 4 * (pull - _repulsion(positions))
            gains = np.maximum(np.where(step * gradient < 0, gains + 0.2, 0.8 * gains), 0.01)
            step = (0.5 if early else 0.8) * step - rate * gains * gradient
            positions = positions + step
            positions -= positions.mean(axis=0)
            advance(1)
    return positions


def _attraction(affinities: sparse.csr_array, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Sum of p_ij (y_i - y_j) / (1 + d_ij^2) over the neighbours j, in single precision."""
    x, y = positions.T.astype(np.float32)
    squares = (x[rows] - x[affinities.indices]) ** 2 + (y[rows] - y[affinities.indices]) ** 2
    closeness = affinities.data / (1 + squares)
    weights = sparse.csr_array((closeness, affinities.indices, affinities.indptr), shape=affinities.shape)
    return weights.sum(axis=1)[:, None] * positions - weights @ positions


def _repulsion(positions: np.ndarray) -> np.ndarray:
    """Sum of (y_i - y_j) / (1 + d_ij^2)^2 over all j, divided by the sum of 1 / (1 + d_ij^2) over all pairs."""
    low = positions.min(axis=0)
    width = float((positions.max(axis=0) - low).max())
    n_cells = int(np.clip(width / _CELL, *_CELLS))
    cell = max(width, 1e-12) / n_cells
    side = n_cells + 2
    corner, shares = _on_grid((positions - low) / cell, side)
    charges = np.stack([np.ones(len(positions)), *(positions - low).T])
    nodes = corner[:, None] + np.array([0, 1, side, side + 1])
    grid = np.stack([np.bincount(nodes.ravel(), (shares * q[:, None]).ravel(), side**2) for q in charges])
    once, twice = _potentials(grid.reshape(3, side, side), cell)
    total = (shares * once.ravel()[nodes]).sum() - _own_part(shares, cell)
    level, *moments = [(shares * field.ravel()[nodes]).sum(axis=1) for field in twice]
    return (level[:, None] * (positions - low) - np.column_stack(moments)) / max(total, 1e-12)


def _on_grid(scaled: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The first of the four nodes around each point, and the point's bilinear shares in them."""
    corner = scaled.astype(np.intp)
    u, v = (scaled - corner).T
    return corner[:, 0] * side + corner[:, 1], np.stack([(1 - u) * (1 - v), (1 - u) * v, u * (1 - v), u * v], axis=1)


def _own_part(shares: np.ndarray, cell: float) -> float:
    """Sum over the points of 1 / (1 + d^2) between the nodes that one point is divided among."""
    kernel = 1 / (1 + cell**2 * np.array([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]))
    return float(np.einsum("ia,ab,ib->", shares, kernel, shares))


def _potentials(grid: np.ndarray, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Fields of the charges: of the first under 1 / (1 + d^2), and of all under its square."""
    side = grid.shape[1]
    size = fft.next_fast_len(2 * side, real=True)
    steps = cell * np.minimum(np.arange(size), size - np.arange(size))
    kernel = 1 / (1 + steps[:, None] ** 2 + steps**2)
    spectrum = fft.rfft2(grid, (size, size))
    once = fft.irfft2(spectrum[0] * fft.rfft2(kernel), (size, size))
    twice = fft.irfft2(spectrum * fft.rfft2(kernel**2), (size, size))
    return once[:side, :side], twice[:, :side, :side]


def _fitted_into_unit(positions: np.ndarray) -> np.ndarray:
    low, high = positions.min(axis=0), positions.max(axis=0)
    return 0.5 + (positions - (low + high) / 2) / (max(high - low) or 1)


def _apart(positions: np.ndarray) -> np.ndarray:
    """Move overlapping points apart."""
    n = len(positions)
    gap = min(_GAP, 0.3 / np.sqrt(n))
    angles = 2.4 * np.arange(n)
    positions = positions + 1e-6 * np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(30):
        left, right = KDTree(positions).query_pairs(gap, output_type="ndarray").T
        offsets = positions[left] - positions[right]
        lengths = np.linalg.norm(offsets, axis=1, keepdims=True)
        steps = offsets * (gap - lengths) / (2 * lengths)
        np.add.at(positions, left, steps)
        np.add.at(positions, right, -steps)
    return positions
