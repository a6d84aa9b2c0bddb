"""Engines that fit the unions of all pairs, and the choice among them.

    "numpy"   pools every pair: any likelihood, no compiled code
    "numba"   uses the likelihood's own `Unions`, if it has one that supports the statistics
    "auto"    "numba" if there is enough work to justify loading compiled code, or less work once it is loaded;
              "numpy", with a warning, if numba cannot be imported

Arrays of other libraries than NumPy are compared where they are, by the likelihood's `ArrayUnions`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from sklearn_mcsg._memory import DEVICE, PAIRS
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.engine.results import Target, empty_matrix, in_precision
from sklearn_mcsg.groups.arrays import ArrayKind
from sklearn_mcsg.likelihoods import Fit, Likelihood, Statistics, fit_pairs, load_kernels, pooled_nbytes

ENGINES = ("auto", "numpy", "numba")
_KERNELS = "sklearn_mcsg.likelihoods.kernels"
_LOAD_FROM = 2**29  # bytes of work below which NumPy finishes before numba is loaded
_USE_FROM = 2**21  # the same limit once the kernels are loaded

_engine: ContextVar[str] = ContextVar("engine", default="auto")


@contextmanager
def engine_context(name: str) -> Iterator[None]:
    """Use one engine for all comparisons inside a ``with`` block.

    Parameters
    ----------
    name : {"auto", "numpy", "numba"}
        The engine.
    """
    if name not in ENGINES:
        raise ValueError(f"The engine must be one of {', '.join(ENGINES)}, got {name!r}.")
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


@dataclass(frozen=True)
class Pooling:
    """Fit unions by pooling every pair, with NumPy.

    Attributes
    ----------
    likelihood : Likelihood
        The likelihood.
    dtype : dtype
        Precision of the result.
    """

    likelihood: Likelihood
    dtype: np.dtype
    budget = PAIRS  # bytes of a block

    def fit(self, left: Statistics, right: Statistics) -> Fit:
        """The fit to the union of every left group with every right group."""
        return fit_pairs(self.likelihood, left, right)

    def pair_nbytes(self, left: Statistics, right: Statistics) -> int:
        """Bytes that each pair may take, temporary arrays included."""
        return pooled_nbytes(left, right)

    def moved(self, groups: Prepared) -> Prepared:
        """Prepared groups where the engine computes."""
        return groups

    def take(self, groups: Prepared, rows: slice) -> Prepared:
        """Some of the moved groups."""
        return groups[rows]

    def empty(self, n_rows: int, n_columns: int) -> Any:
        """A matrix to fill."""
        return empty_matrix(n_rows, n_columns, self.dtype)

    def finished(self, block: Any) -> Any:
        """A block in the precision of the result; raise if a number exceeds it."""
        return in_precision(block, self.dtype)

    def with_diagonal(self, block: Any, value: float) -> Any:
        """A square block with one value on the diagonal."""
        np.fill_diagonal(block, value)
        return block


@dataclass(frozen=True)
class Compiled(Pooling):
    """Fit unions by the likelihood's `Unions`, in compiled code.

    Attributes
    ----------
    precision : dtype
        Precision of the computation.
    """

    precision: np.dtype

    def fit(self, left: Statistics, right: Statistics) -> Fit:
        unions: Any = self.likelihood.unions
        return Fit(self.likelihood, unions(self.likelihood, left, right, self.precision))

    def pair_nbytes(self, left: Statistics, right: Statistics) -> int:
        unions: Any = self.likelihood.unions
        return unions.pair_nbytes(left, right)


@dataclass(frozen=True)
class OnDevice(Pooling):
    """Fit unions by the likelihood's `ArrayUnions`, in arrays of another library and where these are.

    Attributes
    ----------
    kind : ArrayKind
        Library and device.
    """

    kind: ArrayKind
    budget = DEVICE

    def fit(self, left: Statistics, right: Statistics) -> Fit:
        unions: Any = self.likelihood.array_unions
        return Fit(self.likelihood, unions(left, right))

    def pair_nbytes(self, left: Statistics, right: Statistics) -> int:
        return 32 * left.n_features

    def moved(self, groups: Prepared) -> Prepared:
        return groups.map_arrays(self.kind.asarray)

    def take(self, groups: Prepared, rows: slice) -> Prepared:
        return groups.map_arrays(itemgetter((rows, ...)))

    def empty(self, n_rows: int, n_columns: int) -> Any:
        xp = self.kind.xp
        return xp.empty((n_rows, n_columns), dtype=getattr(xp, self.dtype.name), device=self.kind.device)

    def finished(self, block: Any) -> Any:
        return self.kind.result(block)

    def with_diagonal(self, block: Any, value: float) -> Any:
        xp = self.kind.xp
        diagonal = xp.eye(block.shape[0], dtype=block.dtype, device=self.kind.device) > 0
        return xp.where(diagonal, value, block)


def choose_engine(likelihood: Likelihood, left: Statistics, right: Statistics, target: Target) -> Pooling:
    """Choose how all pairs of two collections are fitted.

    Small matrices are computed in double precision whatever the result: single precision pays for large ones only.
    """
    if target.kind is not None:
        return OnDevice(likelihood, target.dtype, target.kind)
    unions: Any = likelihood.unions
    work = len(left) * len(right) * pooled_nbytes(left, right)
    usable = unions is not None and unions.is_usable_for(likelihood, left, right)
    if not usable or not prefers_compiled(work, _are_loaded(unions.compiled), bool(unions.compiled)):
        return Pooling(likelihood, target.dtype)
    is_small = _engine.get() == "auto" and work < _LOAD_FROM
    return Compiled(likelihood, target.dtype, np.dtype(np.float64) if is_small else target.dtype)


def prefers_compiled(nbytes: float, is_loaded: bool, needs_numba: bool = True) -> bool:
    """Whether the active engine uses compiled code where NumPy would go through this number of bytes."""
    engine = _engine.get()
    if engine != "auto":
        return engine == "numba"
    return nbytes >= (_USE_FROM if is_loaded else _LOAD_FROM) and (not needs_numba or _can_be_loaded())


def _are_loaded(names: tuple[str, ...]) -> bool:
    """Whether kernels are loaded; another thread may be loading them at this moment."""
    are_loaded = getattr(sys.modules.get(_KERNELS), "are_loaded", None)
    return bool(names) and are_loaded is not None and are_loaded(names)


@cache
def _can_be_loaded() -> bool:
    """Whether numba can be imported; loads the kernels, or warns once in a process."""
    try:
        load_kernels()
    except (ImportError, OSError) as error:  # not installed, not made for this NumPy, or LLVM does not load
        warnings.warn(
            f"numba cannot be imported ({error}). Groups are compared with NumPy: results agree to rounding, but large "
            "matrices take ten times as long or more. Install a version of numba that supports your Python and NumPy.",
            UserWarning,
            stacklevel=2,
        )
        return False
    return True
