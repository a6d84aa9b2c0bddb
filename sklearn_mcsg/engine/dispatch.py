"""Choice of the engine that fits the unions of all pairs.

    "numpy"   pools every pair: any likelihood, no compiled code
    "numba"   uses the likelihood's own `Unions`, if it has one that supports the statistics
    "auto"    "numba" if there is enough work to justify loading compiled code, or less work once it is loaded

To add a backend, add an engine here: a name, a check whether it is usable, and a `Fit` with the same arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_mcsg.likelihoods import Fit, Likelihood
from sklearn_mcsg.likelihoods.base import fit_pairs, pooled_nbytes

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
    compiled : bool
        Whether to use the likelihood's `Unions`; otherwise every pair is pooled.
    pair_nbytes : int
        Bytes that each pair may take, temporary arrays included.
    dtype : dtype
        Precision of the result.
    """

    likelihood: Likelihood
    compiled: bool
    pair_nbytes: int
    dtype: np.dtype

    def __call__(self, left: Any, right: Any) -> Fit:
        """Fit the union of every left group with every right group."""
        if not self.compiled:
            return fit_pairs(self.likelihood, left, right)
        unions: Any = self.likelihood.unions
        return Fit(self.likelihood, unions(self.likelihood, left, right, self.dtype))


def choose_fitter(likelihood: Likelihood, left: Any, right: Any, dtype: Any = np.float64) -> PairFitter:
    """Choose how to fit all pairs of two collections with the active engine."""
    engine, nbytes = _engine.get(), pooled_nbytes(left, right)
    unions: Any = likelihood.unions
    compiled = unions is not None and engine != "numpy" and unions.is_usable_for(likelihood, left, right)
    if compiled and engine == "auto":
        loaded = not unions.compiled or (_KERNELS in sys.modules and sys.modules[_KERNELS].are_loaded(unions.compiled))
        compiled = len(left) * len(right) * nbytes >= (_USE_FROM if loaded else _LOAD_FROM)
    if compiled:
        nbytes = unions.pair_nbytes(left, right)
    return PairFitter(likelihood, compiled, nbytes, np.dtype(dtype))
