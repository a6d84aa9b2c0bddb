"""Tasks on the active joblib backend, with progress bars and without nested threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import RLock
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

PATIENCE = 0.5  # seconds before a bar appears


def run(function: Callable, tasks: Iterable[tuple], n_tasks: int, n_jobs: int | None) -> Iterator[Any]:
    """Call a function with each tuple of arguments; results come as they are ready if the backend supports it.

    While jobs run in parallel, each uses one thread for matrix products; more threads would only wait for each other.
    The limit lasts until the iterator is closed, so loop over the call itself: the traceback of an error would keep an
    iterator that has a name.

    Workers have the configuration of scikit-learn that is active here. They have no warning filters of their own, which
    scikit-learn's `Parallel` would give them: filters belong to the process, and threads would overwrite each other's.
    """
    if n_tasks == 1 or effective_n_jobs(n_jobs) == 1:
        yield from (function(*task) for task in tasks)
        return
    config = get_config()
    with ONE_BLAS_THREAD:
        yield from _parallel(n_jobs)(delayed(_configured)(config, function, *task) for task in tasks)


def _configured(config: dict[str, Any], function: Callable, *task: Any) -> Any:
    with config_context(**config):
        return function(*task)


def shares_memory(n_tasks: int, n_jobs: int | None) -> bool:
    """Whether the workers of `run` can write into the arrays of this process."""
    if n_tasks == 1 or effective_n_jobs(n_jobs) == 1:
        return True
    backend, _ = get_active_backend(prefer="threads")
    return getattr(backend, "supports_sharedmem", False)


class _OneBlasThread:
    """A context in which every matrix product of the process uses one thread.

    Contexts of several threads may overlap: the first that is entered sets the number of threads, and the last that is
    left restores the numbers that the first found. Use it also around code that limits threads by `threadpoolctl`,
    whose contexts must not overlap. A forked process has the number of threads with which it began.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # not Lock: the garbage collector may close a generator of `run` in the thread that has it
        self._n_entered = 0
        self._changed: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_entered:
                found = [(library, library.num_threads) for library in _blas_libraries()]
                self._changed = [(library, number) for library, number in found if _set_threads(library, 1) != number]
            self._n_entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_entered -= 1
            if not self._n_entered:
                for library, number in self._changed:
                    _set_threads(library, number)


ONE_BLAS_THREAD = _OneBlasThread()
if hasattr(os, "register_at_fork"):  # another thread may hold the lock, and does not exist in the new process
    os.register_at_fork(after_in_child=ONE_BLAS_THREAD.__init__)  # type: ignore[misc]


def _set_threads(library: Any, number: int) -> int:
    """Set the number of threads of a BLAS library, and return the number that it has then.

    From version 3.8 on, threadpoolctl ignores all threads but the first that sets a number, until that one gives way.
    """
    library.set_num_threads(number)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread()
    return library.num_threads


@cache
def _blas_libraries() -> list[Any]:
    """The BLAS libraries of the process, which take milliseconds to find; NumPy's and SciPy's are loaded by now.

    OpenBLAS on OpenMP is left out: each thread has its own number there, so workers would not see a limit set here.
    """
    import scipy.linalg  # noqa: F401

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [one for one in found if (one.internal_api, getattr(one, "threading_layer", "")) != ("openblas", "openmp")]


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
