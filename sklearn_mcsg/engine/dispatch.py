"""Choice of the engine that fits the unions of all pairs.

    "numpy"   pools every pair: any likelihood, no compiled code
    "numba"   uses the likelihood's own `Unions`, if it has one that supports the statistics
    "auto"    "numba" if there is enough work to justify loading compiled code, or less work once it is loaded;
              "numpy", with a warning, if numba cannot be imported

To add a backend, add an engine here: a name, a check whether it is usable, and a `Fit` with the same arrays.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

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
class PairFitter:
    """How the unions of all pairs are fitted.

    Attributes
    ----------
    likelihood : Likelihood
        The likelihood.
    by_unions : bool
        Whether the likelihood's `Unions` are used; otherwise every pair is pooled.
    dtype : dtype
        Precision of the computation.
    """

    likelihood: Likelihood
    by_unions: bool
    dtype: np.dtype

    def __call__(self, left: Statistics, right: Statistics) -> Fit:
        """The fit to the union of every left group with every right group."""
        if not self.by_unions:
            return fit_pairs(self.likelihood, left, right)
        unions: Any = self.likelihood.unions
        return Fit(self.likelihood, unions(self.likelihood, left, right, self.dtype))

    def pair_nbytes(self, left: Statistics, right: Statistics) -> int:
        """Bytes that each pair may take, temporary arrays included."""
        unions: Any = self.likelihood.unions
        return unions.pair_nbytes(left, right) if self.by_unions else pooled_nbytes(left, right)


def choose_fitter(
    likelihood: Likelihood, left: Statistics, right: Statistics, dtype: DTypeLike = np.float64
) -> PairFitter:
    """Choose how all pairs of two collections are fitted, by the active engine.

    Small matrices are computed in double precision whatever the result: single precision pays for large ones only.
    """
    unions: Any = likelihood.unions
    usable = unions is not None and unions.is_usable_for(likelihood, left, right)
    work = len(left) * len(right) * pooled_nbytes(left, right)
    if _engine.get() == "auto":
        dtype = dtype if work >= _LOAD_FROM else np.float64
    usable = usable and prefers_compiled(work, _are_loaded(unions.compiled), bool(unions.compiled))
    return PairFitter(likelihood, usable, np.dtype(dtype))


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
