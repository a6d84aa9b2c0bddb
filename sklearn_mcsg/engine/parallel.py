"""Tasks on the active joblib backend, with progress bars and without nested threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

PATIENCE = 0.5  # seconds before a bar appears


def run(function: Callable, tasks: Iterable[tuple], n_tasks: int, n_jobs: int | None) -> Iterator[Any]:
    """Call a function with each tuple of arguments; results come as they are ready if the backend supports it.

    While jobs run in parallel, each uses one thread for matrix products; more threads would only wait for each other.
    """
    n_workers = effective_n_jobs(n_jobs)
    if n_tasks == 1 or n_workers == 1:
        yield from (function(*task) for task in tasks)
        return
    with _blas_controller().limit(limits=1, user_api="blas"):
        yield from _parallel(n_jobs)(delayed(function)(*task) for task in tasks)


def shares_memory(n_tasks: int, n_jobs: int | None) -> bool:
    """Whether the workers of `run` can write into the arrays of this process."""
    if n_tasks == 1 or effective_n_jobs(n_jobs) == 1:
        return True
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


@cache
def _blas_controller() -> ThreadpoolController:
    """The BLAS libraries of the process, which take milliseconds to find; NumPy's and SciPy's are loaded by now."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def _parallel(n_jobs: int | None) -> Parallel:
    """Return results as they are ready if the active backend supports it, otherwise all at the end."""
    try:
        return Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
    except ValueError:
        return Parallel(n_jobs=n_jobs, prefer="threads")


def progress(verbose: int, total: int, task: str = "comparing", unit: str = " pairs") -> Any:
    """A context with a function that advances a progress bar.

    The bar appears on standard error if `verbose` is set, standard error is a terminal, and the task takes a while.
    """
    return _bar(total, task, unit) if verbose else nullcontext(lambda done: None)


@contextmanager
def _bar(total: int, task: str, unit: str) -> Iterator[Callable[[int], Any]]:
    from tqdm import tqdm

    with tqdm(total=total, desc=task, unit=unit, unit_scale=True, disable=None, delay=PATIENCE) as bar:
        yield bar.update
