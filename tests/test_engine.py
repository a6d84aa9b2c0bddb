"""The engine: compiled kernels, blocks, jobs, chunks, and a real cluster."""

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import distributed
import joblib
import numpy as np
import pytest
import sklearn
from conftest import COMBINATIONS, traces_memory
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import ThreadpoolController

from sklearn_mcsg import (
    LIKELIHOODS,
    DiagonalGaussian,
    Groups,
    ModelComparisonSimilarity,
    NormalGamma,
    VonMisesFisher,
    WordMoversDistance,
)
from sklearn_mcsg.engine import dispatch, parallel
from sklearn_mcsg.engine.dispatch import engine_context
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.likelihoods import _full as full
from sklearn_mcsg.search.candidates import _threads

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
every_combination = pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)


@pytest.fixture
def compiled():
    with engine_context("numba"):
        yield


def one_by_one(model, X, Y):
    """The matrix through `paired`, which never uses a kernel."""
    i, j = np.divmod(np.arange(len(X) * len(Y)), len(Y))
    return model.paired(X[i], Y[j]).reshape(len(X), len(Y))


def assert_same_matrix(model, X, Y=None, rtol=1e-10):
    size = max(np.abs(model.score_samples(X)).max(), 1)
    truth = one_by_one(model, X, X if Y is None else Y)
    assert_allclose(model.pairwise(X, Y), truth, rtol=0, atol=rtol * size)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("weight", [1e-8, 1e19, 1e99])
def test_weights_of_any_scale(weight, engine, likelihood):
    """A divergence does not depend on the unit of the weights; their products exceed single precision."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(rng.normal(size=3), size=(5, 3)).astype(np.float32) for _ in range(8)]
    model = ModelComparisonSimilarity(likelihood, output="divergence")
    with engine_context(engine):
        expected = model.pairwise(arrays)
        found = model.pairwise(Groups.from_list(arrays, weights=np.full((8, 5), weight)))
    assert_allclose(found, expected, rtol=1e-5)


@every_combination
@pytest.mark.parametrize("prior_strength", [0, 0.5])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_kernels_agree_with_pair_by_pair(likelihood, criterion, prior_strength, weighted, compiled, make_groups):
    X, Y = make_groups(30, 5, (1, 9), weighted=weighted), make_groups(11, 5, (1, 9), weighted=weighted, seed=1)
    model = ModelComparisonSimilarity(likelihood, criterion, prior_strength=prior_strength).fit(X)
    assert_same_matrix(model, X)
    assert_same_matrix(model, X, Y)


@every_combination
@pytest.mark.parametrize("n_features", [2, 3, 7, 8, 9])
def test_kernels_at_every_remainder_of_their_tiles(likelihood, criterion, n_features, compiled, make_groups):
    for n_left, n_right in ((1, 1), (5, 3), (3, 257)):
        X = make_groups(n_left, n_features, (2, 5))
        Y = make_groups(n_right, n_features, (2, 5), seed=1)
        assert_same_matrix(ModelComparisonSimilarity(likelihood, criterion).fit(Y), X, Y)


DEGENERATE = {
    "identical groups": lambda rng: [np.eye(4)] * 6,
    "constant feature": lambda rng: [rng.normal(size=(5, 4)) * [1, 0, 1, 1] for _ in range(6)],
    "far apart": lambda rng: [rng.normal(size=(3, 4)) * 1e-3 + centre for centre in (0, 1e6, 1e6, -1e6)],
    "copies far apart": lambda rng: [np.eye(4)[:3] * 1e-4 + centre for centre in (0, 1e5, 1e5, -1e5)],
    "sizes from 1 to a million": lambda rng: [rng.normal(size=(size, 4)) for size in (1, 3, 1_000_000, 2, 1000)],
    "scales of features": lambda rng: [rng.normal(size=(6, 4)) * [1e-140, 1, 1e70, 1e150] for _ in range(5)],
    "scales of groups": lambda rng: [rng.normal(size=(6, 4)) * scale for scale in (1e-150, 1e-70, 1, 1e70, 1e150)],
}


@pytest.mark.parametrize("criterion", ["aic", "bic", "tic", "bayes"])
@pytest.mark.parametrize("likelihood", ["diag", "spherical"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data_neither_overflow_nor_lose_accuracy(likelihood, criterion, case, compiled):
    X = Groups.from_list(DEGENERATE[case](np.random.default_rng(0)))
    try:
        model = ModelComparisonSimilarity(likelihood, criterion, reg_covar=1e-300 if "scales" in case else 1e-6).fit(X)
        truth = one_by_one(model, X, X)
    except ValueError as error:
        assert case.startswith("scales")
        assert "escale" in str(error)  # noqa: PT017
        return
    atol = 1e-10 * max(1, np.abs(model.score_samples(X)).max())
    assert_allclose(model.pairwise(X), truth, rtol=0, atol=atol)


def test_products_cover_scatters_from_1e_minus_300_to_1e300(compiled):
    """Exponents are put away as often as it takes; where not even two factors fit, pairs are compared one by one."""
    rng = np.random.default_rng(0)
    for low, high in ((1, 1), (1e-30, 1e30), (1e-70, 1e70), (1e-150, 1e149)):
        scales = np.geomspace(low, high, 6)
        X = Groups.from_list([rng.normal(size=(4, 3)) * scale for scale in scales])
        assert_same_matrix(ModelComparisonSimilarity(reg_covar=0), X)


@pytest.mark.parametrize("criterion", ["tic", "bayes"])
def test_other_criteria_fall_back_to_single_pairs_too(criterion, compiled):
    rng = np.random.default_rng(0)
    low, high = (1e-30, 1e30) if criterion == "tic" else (1e-150, 1e149)
    X = Groups.from_list([rng.normal(size=(4, 3)) * scale for scale in np.geomspace(low, high, 6)])
    prior = NormalGamma(mean=0, kappa=1, alpha=2, beta=1e-300)
    assert_same_matrix(ModelComparisonSimilarity(DiagonalGaussian(prior), criterion, reg_covar=0), X)


def test_single_precision_kernel(compiled, make_groups):
    X = make_groups(40, 50, (1, 9))
    single = Groups(X.vectors.astype(np.float32), X.offsets)
    model = ModelComparisonSimilarity()
    matrix = model.pairwise(single)
    assert matrix.dtype == np.float32
    # each of 50 factors is rounded to 24 bits, and a pair has up to 16 vectors
    size = np.abs(model.score_samples(X)).max()
    assert_allclose(matrix, one_by_one(model, X, X), rtol=0, atol=16 * 50 * 2**-24 + size * 2**-22)


@pytest.mark.parametrize("likelihood", ["diag", VonMisesFisher("banerjee")], ids=str)
def test_approximate_concentration_has_no_table(likelihood, compiled, make_groups):
    assert_same_matrix(ModelComparisonSimilarity(likelihood), make_groups(12, 4))


@every_combination
def test_blocks_jobs_and_backends_change_nothing(likelihood, criterion, compiled, make_groups):
    X = make_groups(40, 4, (1, 9))
    model = ModelComparisonSimilarity(likelihood, criterion).fit(X)
    truth = model.pairwise(X)
    atol = 1e-10 * np.abs(model.score_samples(X)).max()
    for n_jobs, working_memory in ((1, 0.01), (2, 1024), (2, 0.1)):
        with sklearn.config_context(working_memory=working_memory):
            assert_allclose(model.set_params(n_jobs=n_jobs).pairwise(X), truth, rtol=0, atol=atol)
    assert_allclose(model.pairwise(X[[7]], X)[0], truth[7], rtol=0, atol=atol)


def test_processes(make_groups):
    X = make_groups(40, 4)
    model = ModelComparisonSimilarity("spherical", "tic", n_jobs=2).fit(X)
    truth = model.pairwise(X)
    for backend in ("loky", "multiprocessing", "threading"):
        with joblib.parallel_config(backend=backend), sklearn.config_context(working_memory=0.1):
            assert_allclose(model.pairwise(X), truth, rtol=1e-10, atol=1e-10 * np.abs(truth).max())


# Chunks and out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", OUTPUTS)
def test_chunks_are_the_rows_of_the_matrix(output, make_groups):
    X, Y = make_groups(30, 3, (6, 9)), make_groups(9, 3, (6, 9), seed=1)
    model = ModelComparisonSimilarity(output=output).fit(X)
    with sklearn.config_context(working_memory=0.001):
        chunks = list(model.pairwise_chunked(X))
        assert len(chunks) > 3
        rectangle = list(model.pairwise_chunked(X, Y))
        starts = list(model.pairwise_chunked(X, reduce_func=lambda chunk, start: (start, chunk.argmin(axis=1))))
    assert_allclose(np.concatenate(chunks), model.pairwise(X), rtol=1e-9, atol=1e-9)
    assert_allclose(np.concatenate(rectangle), model.pairwise(X, Y), rtol=1e-9, atol=1e-9)
    assert [start for start, _ in starts] == list(np.cumsum([0, *map(len, chunks[:-1])]))
    with pytest.raises(ValueError, match="output must be one of"):
        model.pairwise_chunked(X, output="cosine")


def test_out_may_be_a_memory_map(tmp_path, make_groups):
    X = make_groups(20, 3)
    model = ModelComparisonSimilarity()
    out = np.lib.format.open_memmap(tmp_path / "matrix.npy", mode="w+", dtype=float, shape=(20, 20))
    assert model.pairwise(X, out=out) is out
    assert_array_equal(np.load(tmp_path / "matrix.npy"), model.pairwise(X))
    rectangle = np.empty((20, 4))
    model.pairwise(X, X[:4], out=rectangle)
    assert_array_equal(rectangle, model.pairwise(X, X[:4]))


def test_bad_out_gets_a_sentence_before_any_work(make_groups):
    X = make_groups(5, 3)
    locked = np.empty((5, 5))
    locked.flags.writeable = False
    bad = {
        r"shape \(5, 5\) and float64, got shape \(5, 4\), float64": np.empty((5, 4)),
        r"and float64, got shape \(5, 5\), float32": np.empty((5, 5), np.float32),
        "float64, read-only": locked,
        "got list": [[0.0] * 5] * 5,
    }
    for message, out in bad.items():
        with pytest.raises(ValueError, match=message):
            ModelComparisonSimilarity().pairwise(X, out=out)


# Memory, start-up, progress, interruption ---------------------------------------------------------------------------


@traces_memory
def test_statistics_from_a_table_stay_within_the_working_memory():
    """200 000 words in 50 dimensions are 80 MB as vectors, which must never exist."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(1000, 50))
    groups = Groups(table, np.arange(0, 200_001, 10), indices=rng.integers(0, 1000, 200_000))
    with sklearn.config_context(working_memory=4):
        tracemalloc.start()
        whole = ModelComparisonSimilarity().fit(groups)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    kept = sum(
        array.nbytes for array in vars(whole.__mcsg_comparer__().summaries).values() if isinstance(array, np.ndarray)
    )
    assert peak < 3 * kept + 16 * 2**20
    assert peak < 70 * 2**20


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


def test_small_work_loads_neither_numba_nor_tqdm():
    code = """
import sys
import numpy as np
import sklearn_mcsg
X = np.random.default_rng(0).normal(size=(20, 3, 4))
model = sklearn_mcsg.ModelComparisonSimilarity()
model.paired(X, X), model.pairwise(X)
print(sorted({"numba", "tqdm", "matplotlib"} & set(sys.modules)))
"""
    assert run(code).stdout.strip() == "[]"


WITHOUT_NUMBA = """
import sys, warnings
sys.modules["numba"] = None  # every import of it fails
import numpy as np
from sklearn_mcsg import ModelComparisonSimilarity
from sklearn_mcsg.engine.dispatch import engine_context
X = np.random.default_rng(0).normal(size=(250, 3, 300))
model = ModelComparisonSimilarity("spherical")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    small = model.pairwise(X[:20])
    assert not caught
    large = model.pairwise(X), model.pairwise(X)
with engine_context("numpy"):
    assert (large == model.pairwise(X)).all()
print(*(f"{warning.category.__name__}: {warning.message}" for warning in caught), sep="\\n")
with engine_context("numba"):
    model.pairwise(X)
"""


def test_without_numba_large_work_warns_once_and_uses_numpy():
    result = run(WITHOUT_NUMBA)
    (warning,) = result.stdout.splitlines()
    assert warning.startswith("UserWarning: numba cannot be imported (import of numba halted"), result.stderr
    assert result.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of numba"), "it was asked for"


@pytest.mark.parametrize("error", [ImportError("Numba needs NumPy 2.3 or less"), OSError("libLLVM does not load")])
def test_numba_that_does_not_load(error, make_groups, monkeypatch):
    def load_kernels():
        raise error

    monkeypatch.setattr(dispatch, "load_kernels", load_kernels)
    monkeypatch.setattr(dispatch, "_LOAD_FROM", 0)
    monkeypatch.setattr(dispatch, "_are_loaded", lambda names: False)
    dispatch._can_be_loaded.cache_clear()
    try:
        with pytest.warns(UserWarning, match=f"numba cannot be imported \\({error}\\).*agree to rounding"):
            matrix = ModelComparisonSimilarity().pairwise(X := make_groups(30, 3))
    finally:
        dispatch._can_be_loaded.cache_clear()
    with engine_context("numpy"):
        assert_array_equal(matrix, ModelComparisonSimilarity().pairwise(X))


COMPILE = """
import numpy as np
from sklearn_mcsg import ModelComparisonSimilarity
from sklearn_mcsg.engine.dispatch import engine_context
with engine_context("numba"):
    print(ModelComparisonSimilarity("vmf").pairwise(np.random.default_rng(0).normal(size=(5, 3, 4))).shape)
"""


def test_kernels_compile_where_the_chosen_folder_cannot_be_written(tmp_path):
    """A folder below a file cannot exist; the compiled code is then kept beside the package, or in the user's cache."""
    (tmp_path / "file").write_text("")
    result = run(COMPILE, NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert result.stdout.strip() == "(5, 5)", result.stderr


NOWHERE = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
"""
FULL_DISK = """
import resource
import sklearn_mcsg.datasets, numba  # what Python compiles and writes itself
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
"""


def said(result, times=1):
    """Warnings that each process gives once, in the first lines of their text."""
    assert result.stdout.strip() == "(5, 5)", result.stderr
    warned = [line for line in result.stderr.splitlines() if "UserWarning: " in line]
    assert len(warned) == times, result.stderr
    return warned[0].partition("UserWarning: ")[2] if warned else ""


@pytest.mark.parametrize("before", [NOWHERE, pytest.param(FULL_DISK, marks=posix)], ids=["nowhere", "full disk"])
def test_kernels_compile_where_nothing_can_be_written(before, tmp_path):
    """The compiled code then lives for the process only."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" if before == NOWHERE else tmp_path
    warning = said(run(before + COMPILE, NUMBA_CACHE_DIR=str(folder)))
    assert warning.startswith("Compiled code cannot be kept")
    assert "every process compiles again" in warning
    assert not list(tmp_path.rglob("*.nb*"))


def emptied(path):
    path.write_bytes(b"")


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed(path):
    """Half of the file, as a file system may leave it that had noted its length only."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))


@pytest.mark.parametrize(("kind", "damaged"), [("nbi", emptied), ("nbc", truncated), ("nbc", zeroed)])
def test_damaged_compiled_code_is_replaced(kind, damaged, compiled_folder, tmp_path):
    shutil.copytree(compiled_folder, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.rglob(f"*.{kind}"):
        damaged(path)
    assert "is damaged" in said(run(COMPILE, NUMBA_CACHE_DIR=str(tmp_path)))
    said(run(COMPILE, NUMBA_CACHE_DIR=str(tmp_path)), times=0)


def test_compiled_code_that_cannot_be_replaced(compiled_folder, tmp_path):
    shutil.copytree(compiled_folder, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.rglob("*.nbi"):
        path.unlink()
        path.mkdir()
    assert said(run(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))).startswith(f"Compiled code cannot be kept in {tmp_path}")


@pytest.fixture(scope="module")
def compiled_folder(tmp_path_factory):
    """A folder with the compiled code of one model."""
    folder = tmp_path_factory.mktemp("compiled")
    said(run(COMPILE, NUMBA_CACHE_DIR=str(folder)), times=0)
    return folder


def test_kernels_are_compiled_once_per_machine(tmp_path):
    """A process later finds on disk all that the first has compiled."""
    count = "from sklearn_mcsg.likelihoods.kernels import piecewise_cubic as k; print(k.stats.cache_misses.total())"
    results = [run(COMPILE + count, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert "piecewise_cubic" in str(list(tmp_path.rglob("*.nbi")))
    assert results[1].stdout.split()[-1] == "0", results[1].stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_only_when_asked_for_and_watched(terminal, verbose, make_groups, monkeypatch):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(parallel, "PATIENCE", 0)
    ModelComparisonSimilarity(verbose=verbose).pairwise(make_groups(30, 3))
    assert bool(stream.getvalue()) == (terminal and bool(verbose))
    if stream.getvalue():
        assert "pairs/s" in stream.getvalue().replace(" pairs/s", "pairs/s")
        assert "100%" in stream.getvalue()


def test_calibration_shows_progress(make_groups, monkeypatch):
    model = ModelComparisonSimilarity("full", "tic", verbose=1, random_state=0).fit(make_groups(120, 3))
    stream = Terminal()
    monkeypatch.setattr(parallel, "PATIENCE", 0)
    monkeypatch.setattr(sys, "stderr", stream)
    model.calibrate(n_pairs=2000)
    assert "2.00k/2.00k" in stream.getvalue()


@pytest.mark.parametrize("n_features", [4, 12, 40])
@pytest.mark.parametrize("ridge", [1e-6, 10.0])
def test_determinants_by_lanes_and_by_lapack(n_features, ridge):
    """Groups of few and of many rows, so that Gram matrices and scatter matrices meet in one block."""
    rng = np.random.default_rng(0)

    def side(n_groups, n_rows):
        factors = rng.normal(size=(n_groups, n_rows, n_features))
        factors[np.arange(n_rows) >= rng.integers(0, n_rows + 1, n_groups)[:, None]] = 0
        return rng.uniform(1, 20, n_groups), rng.normal(size=(n_groups, n_features)), factors

    left, right = side(9, 7), side(21, 13)
    ridges = ridge * rng.uniform(1, 2, size=(9, 21))
    truth = np.empty_like(ridges)
    for (i, j), shift in np.ndenumerate(ridges):
        (n, mean, f), (m, other, g) = [value[i] for value in left], [value[j] for value in right]
        rows = np.vstack([f, g, np.sqrt(n * m / (n + m)) * (other - mean), np.zeros((n_features, n_features))])
        truth[i, j] = np.log(np.linalg.svd(rows, compute_uv=False) ** 2 + shift).sum()
    for compute in (full._by_lanes, full._by_lapack):
        log_det, doubt = compute(left, right, ridges)
        assert (np.abs(log_det - truth) <= 10 * doubt + 1e-13 * n_features * np.abs(np.log(ridge))).all()
        assert (doubt < 1e-4).all()


def test_determinants_that_lose_digits_are_marked():
    """Two groups of the same vectors have half the rank of their rows; a tiny ridge is lost beside their squares."""
    factors = np.random.default_rng(0).normal(size=(3, 4, 12))
    side = np.full(3, 4.0), np.zeros((3, 12)), factors
    _, wrong = full._log_det_of_unions(side, side, np.full((3, 3), 1e-18))
    assert wrong.diagonal().all()
    _, wrong = full._log_det_of_unions(side, side, np.full((3, 3), 1e-2))
    assert not wrong[~np.eye(3, dtype=bool)].any()


INTERRUPT = """
import sys
import numpy as np
from sklearn_mcsg import ModelComparisonSimilarity, model_comparison_similarity
rng = np.random.default_rng(0)
model = ModelComparisonSimilarity(n_jobs=2)
model.pairwise(rng.normal(size=(700, 2, 300)))
X = rng.normal(size=(20000, 2, 300)).astype(np.float32)
print("ready", flush=True)
try:
    model.pairwise(X)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@posix
def test_interrupt_stops_within_a_second():
    process = subprocess.Popen([sys.executable, "-c", INTERRUPT], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert process.stdout.readline().strip() == "interrupted"
        assert time.monotonic() - start < 2  # a second, and as much again for a loaded machine
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# Settings of the process --------------------------------------------------------------------------------------------


@pytest.fixture
def blas_threads():
    """The numbers of threads of the BLAS libraries, which are 3 at first."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    libraries = [library for library in found if getattr(library, "threading_layer", None) == "pthreads"]
    before = [library.num_threads for library in libraries]

    def set_all(numbers):
        for library, number in zip(libraries, numbers, strict=True):
            library.set_num_threads(number)

    def in_a_thread_that_ends(numbers):  # threadpoolctl would ignore other threads as long as it lives
        thread = threading.Thread(target=set_all, args=(numbers,))
        thread.start()
        thread.join()

    if not libraries:
        pytest.skip("no BLAS whose threads all threads share")
    in_a_thread_that_ends([3] * len(libraries))
    yield lambda: {library.num_threads for library in libraries}
    in_a_thread_that_ends(before)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first ends first", "second ends first"])
def test_threads_that_overlap_leave_the_blas_as_it_was(order, blas_threads):
    begun, end = ([threading.Event(), threading.Event()] for _ in range(2))

    def task(i):
        begun[i].set()
        assert end[i].wait(30)

    threads = [threading.Thread(target=lambda i=i: list(parallel.run(task, [(i,)] * 2, 2, 2))) for i in range(2)]
    try:
        for thread, event in zip(threads, begun, strict=True):
            thread.start()
            assert event.wait(30)
            assert blas_threads() == {1}
        for i, expected in zip(order, ({1}, {3}), strict=True):
            end[i].set()
            threads[i].join()
            assert blas_threads() == expected
    finally:
        for event in end:
            event.set()


@pytest.mark.filterwarnings("ignore:.* tasks have been successfully executed  but not used:UserWarning")
@pytest.mark.filterwarnings("ignore:.* tasks which were still being processed:UserWarning")
def test_results_that_are_not_all_taken_leave_the_blas_as_it_was(blas_threads):
    def some():
        results = parallel.run(abs, [(-i,) for i in range(50)], 50, 2)
        assert next(results) >= 0
        assert blas_threads() == {1}
        return results

    some().close()
    assert blas_threads() == {3}
    results = some()
    del results
    assert blas_threads() == {3}

    def fail():
        for number in parallel.run(abs, [(0,)] * 50, 50, 2):
            1 / number

    with pytest.raises(ZeroDivisionError) as kept:
        fail()
    assert kept.tb, "the frame of the loop is still referred to"
    assert blas_threads() == {3}
    with pytest.raises(TypeError, match="bad operand"):
        list(parallel.run(abs, [("a",)] * 50, 50, 2))
    assert blas_threads() == {3}


def test_an_error_that_is_kept_leaves_the_blas_as_it_was(blas_threads):
    pytest.importorskip("ot")
    X = np.array([[[3e38]], [[-3e38]], [[0]]], np.float32)
    with pytest.raises(ValueError, match="exceeds the range of float32") as kept:
        WordMoversDistance(n_jobs=2).pairwise(X)
    assert kept.tb
    assert blas_threads() == {3}


def test_faiss_has_its_own_number_of_threads_in_each_thread():
    """So contexts of several threads cannot disturb each other."""
    faiss = pytest.importorskip("faiss")
    before, numbers = faiss.omp_get_max_threads(), {}

    def other():
        numbers["at first"] = faiss.omp_get_max_threads()
        with _threads(before + 2):
            numbers["inside"] = faiss.omp_get_max_threads()
        numbers["at last"] = faiss.omp_get_max_threads()

    with _threads(before + 1):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert faiss.omp_get_max_threads() == before + 1
    assert faiss.omp_get_max_threads() == before
    assert numbers["inside"] == before + 2
    assert numbers["at last"] == numbers["at first"]


# A cluster ----------------------------------------------------------------------------------------------------------


class Sleepy(DiagonalGaussian):
    """Takes its time over each block, so that a worker can die while there is work."""

    def log_likelihood(self, statistics):
        time.sleep(0.1)
        return super().log_likelihood(statistics)


def top_two(chunk, start):
    return np.argsort(-chunk, axis=1, kind="stable")[:, :2]


@posix
def test_a_cluster_gives_the_same_answer_even_when_a_worker_dies(make_groups, tmp_path):
    X = make_groups(120, 6)
    model = ModelComparisonSimilarity(n_jobs=2)
    truth = model.pairwise(X)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
        sklearn.config_context(working_memory=0.5),
        engine_context("numpy"),
    ):
        assert_allclose(model.pairwise(X), truth, rtol=1e-10, atol=1e-10)
        best = np.concatenate(list(model.pairwise_chunked(X, reduce_func=top_two)))
        assert_array_equal(best, top_two(truth, 0))
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(1, os.kill, (victim, signal.SIGKILL))
        killer.start()
        survived = model.set_params(likelihood=Sleepy()).pairwise(X)
        assert killer.finished.is_set()
        assert_allclose(survived, truth, rtol=1e-10, atol=1e-10)
        assert victim not in client.run(os.getpid).values()


def test_a_matrix_too_large_for_memory_names_the_sparse_way():
    X = np.zeros((2_000_000, 1, 1))
    with pytest.raises(MemoryError, match=r"2000000 x 2000000 pairs takes 29,802.3 GiB.*GroupNeighbors"):
        ModelComparisonSimilarity().pairwise(X)


THREADS = """
import threading, time
import numpy as np
from sklearn_mcsg import ModelComparisonSimilarity
rng = np.random.default_rng(0)
big, small = rng.normal(size=(900, 3, 40)), rng.normal(size=(60, 3, 40))
model = ModelComparisonSimilarity().fit(big)
failed = []
def work(groups, delay):
    time.sleep(delay)
    try:
        model.transform(groups)
    except Exception as error:
        failed.append(repr(error))
threads = [threading.Thread(target=work, args=(big if i == 0 else small, 0.02 * i)) for i in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""


def test_other_threads_compare_while_one_loads_the_kernels():
    result = run(THREADS)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "vmf", "trend"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_groups_are_at_no_distance_under_every_engine(likelihood, dtype, make_groups):
    """Whatever has been computed before: a small matrix does not depend on whether compiled code is loaded."""
    X = make_groups(30, 8, (2, 9), dtype=dtype)
    copies = Groups.concatenate([X, X[:10]])
    for engine in ("numpy", "auto"):
        with engine_context("numba"):
            ModelComparisonSimilarity(likelihood).pairwise(X)  # compiled code is loaded
        with engine_context(engine):
            for output in ("distance", "divergence"):
                matrix = ModelComparisonSimilarity(likelihood, output=output).pairwise(X, copies)
                assert_array_equal(matrix[np.arange(10), np.arange(30, 40)], 0)
            model = ModelComparisonSimilarity(likelihood, output="centered", prior_strength=0.5).fit(X)
            assert_array_equal(model.pairwise(X, copies)[np.arange(10), np.arange(30, 40)], 0)


@pytest.mark.parametrize("likelihood", ["diag", "spherical"])
def test_quantities_of_unions_can_be_asked_for_twice(likelihood, make_groups):
    X = make_groups(6, 3)
    kind = ModelComparisonSimilarity(likelihood).fit(X).likelihood_
    statistics = kind.statistics(X, reg_covar=1e-6, order=2)
    unions = kind.unions(kind, statistics, statistics, np.dtype(float))
    first = unions.log_variance.copy()
    likelihoods = kind.log_likelihood(unions)
    assert_allclose(unions.log_variance, first, rtol=1e-12)
    assert_allclose(kind.log_likelihood(unions), likelihoods, rtol=1e-12)
