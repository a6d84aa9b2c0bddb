"""A corpus in many parts: learnt, indexed and searched by the workers of a real cluster."""

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import distributed
import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from sklearn_mcsg import (
    SIF,
    Comparison,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    GroupSimilarity,
    MeanVector,
    ModelComparisonSimilarity,
    PartitionedNeighbors,
    make_text_embedding,
    storage,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.search import nearest, partitions, parts, search_of

N_FEATURES, N_VECTORS = 20, 25


def draw(seed, n_groups):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_groups, 1, N_FEATURES))
    return (centres + rng.normal(size=(n_groups, N_VECTORS, N_FEATURES))).astype(np.float32)


def read(path):
    """The groups of a file, which may take a while to read."""
    time.sleep(0.05)
    return np.load(path)


def fail(path):
    raise OSError("the disk is gone")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    paths = [str(folder / f"{i:02}.npy") for i in range(9)]
    for i, path in enumerate(paths):
        np.save(path, draw(i, 12 + i))
    return paths


class Boxes(Comparison):
    """A comparison of one's own, which keeps all vectors: distances of the largest values of each feature."""

    outputs = ("distance",)

    def compare(self, left, right, output):
        corners = [np.array([group.max(axis=0) for group in side]) for side in (left, right)]
        return np.abs(corners[0][:, None] - corners[1]).sum(axis=2)


SIMILARITIES = [
    GroupEmbedding(whiten=0.5, prior_strength=0.5),
    GroupEmbedding("vmf", n_components=8),
    ModelComparisonSimilarity(output="distance"),
    ModelComparisonSimilarity(output="centered", prior_strength=0.5, n_references=50, random_state=0),
    ModelComparisonSimilarity("spherical", "tic", output="divergence"),
    ModelComparisonSimilarity(output="kernel"),
    ModelComparisonSimilarity(),
    MeanVector(),
    SIF(1),
    GroupSimilarity(Boxes()),
]


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
def test_same_answers_as_on_one_machine(similarity, files, client, tmp_path):
    """Of queries and of the corpus itself, before it was saved and after."""
    corpus, queries = np.concatenate([np.load(path) for path in files]), draw(99, 12)
    whole = GroupNeighbors(similarity).fit(corpus)
    fitted = similarity if isinstance(similarity, GroupEmbedding) else similarity.fit(corpus)
    index = PartitionedNeighbors(fitted, load=read, client=client).fit(files)
    assert_array_equal(index.sizes_, np.arange(12, 21))
    distances, indices = index.kneighbors(queries, 7)
    expected, nearest = whole.kneighbors(queries, 7)
    assert_array_equal(indices, nearest)
    assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)
    assert_array_equal(index.kneighbors(queries, return_distance=False), nearest[:, :5])
    own, nearest_own = whole.kneighbors(n_neighbors=7)
    found = index.kneighbors(n_neighbors=7)
    assert_array_equal(found[1], nearest_own)
    assert_allclose(found[0], own, rtol=1e-4, atol=1e-5)
    assert found[0].dtype == own.dtype
    index.save(tmp_path / "index")
    loaded, mapped = (
        PartitionedNeighbors.load(tmp_path / "index", mmap_mode=mode, client=client) for mode in (None, "r")
    )
    assert_array_equal(loaded.sizes_, index.sizes_)
    assert_array_equal(loaded.kneighbors(queries, 7)[1], indices)
    assert_array_equal(mapped.kneighbors(n_neighbors=7)[1], nearest_own)


def test_a_clone_has_the_same_client(client):
    index = PartitionedNeighbors(GroupEmbedding(), n_neighbors=2, client=client).fit([draw(0, 9)])
    twin = clone(index)
    assert twin.client is index.client is client
    assert twin.similarity is not index.similarity
    assert not hasattr(twin, "similarity_")
    assert_array_equal(twin.fit([draw(0, 9)]).kneighbors()[1], index.kneighbors()[1])


def test_parts_smaller_than_the_number_of_neighbours(client):
    parts = [draw(i, n) for i, n in enumerate((1, 3, 2, 30))]
    index = PartitionedNeighbors(GroupEmbedding(), client=client).fit(parts)
    whole = GroupNeighbors(GroupEmbedding()).fit(np.concatenate(parts))
    assert_array_equal(index.kneighbors(parts[1], 20)[1], whole.kneighbors(parts[1], 20)[1])
    for k in (1, 5, 35):  # up to all other groups
        distances, indices = index.kneighbors(n_neighbors=k)
        assert_array_equal(indices, whole.kneighbors(n_neighbors=k)[1])
        assert np.isfinite(distances).all()


def test_equal_groups_are_sorted_by_index(client):
    """Also across parts: the distances are whole numbers, which no way of adding changes."""
    corpus = np.random.default_rng(0).integers(1, 4, size=(60, 4, 2)).astype(float)
    similarity = GroupSimilarity(Boxes()).fit(corpus)
    index = PartitionedNeighbors(similarity, client=client).fit([corpus[:7], corpus[7:8], corpus[8:40], corpus[40:]])
    expected = GroupNeighbors(similarity).fit(corpus)
    assert_array_equal(index.kneighbors()[1], expected.kneighbors()[1])
    assert_array_equal(index.kneighbors(corpus)[1], expected.kneighbors(corpus)[1])


def test_answers_do_not_depend_on_where_queries_are():
    """On the worker that holds them, or on another: the bits are the same."""
    corpus = draw(0, 300)
    index = parts.index_part(corpus, GroupEmbedding().fit(corpus), "exact")
    queries = parts.queries_of(index, slice(0, 300), 0)
    here, elsewhere = (
        parts.nearest_in_part(index, sent, 0, 5, None) for sent in (queries, pickle.loads(pickle.dumps(queries)))
    )
    assert_array_equal(here[0], elsewhere[0])


def test_blocks_of_queries(client, monkeypatch):
    """A part that is too large to be sent at once is sent in blocks, and so are queries."""
    corpus = [draw(i, n) for i, n in enumerate((50, 130))]
    index = PartitionedNeighbors(client=client).fit(corpus)
    expected = index.kneighbors(), index.kneighbors(corpus[1])
    sent = []
    monkeypatch.setattr(partitions, "ROWS", 16 * 5 * 40)
    monkeypatch.setattr(
        index, "_nearest", lambda *args: sent.append(args) or PartitionedNeighbors._nearest(index, *args)
    )
    assert_array_equal(index.kneighbors()[1], expected[0][1])
    assert len(sent) == 2 + 4
    assert_array_equal(index.kneighbors(corpus[1])[1], expected[1][1])
    assert len(sent) == 2 + 4 + 4


def test_files_of_texts(client, tmp_path):
    """The example of the docstring and of the guide."""
    texts = load_short_texts().data
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("\n".join(texts[i::3]), encoding="utf8")
    vectorizer, embedding = make_text_embedding()
    vectorizer.fit(["my puppy is ill"])

    def load(path):
        return vectorizer.transform(path.read_text(encoding="utf8").splitlines())

    index = PartitionedNeighbors(embedding, load=load, client=client).fit(sorted(tmp_path.glob("*.txt")))
    nearest = index.kneighbors(vectorizer.transform(["my puppy is ill"]), 1, return_distance=False)[0, 0]
    assert "puppy" in [*texts[0::3], *texts[1::3], *texts[2::3]][nearest]


def test_approximate_search_of_each_part(client, tmp_path):
    pytest.importorskip("faiss")
    corpus = [draw(i, n) for i, n in enumerate((400, 60, 400))]
    exact = PartitionedNeighbors(client=client).fit(corpus)
    index = PartitionedNeighbors(algorithm="approximate", client=client).fit(corpus)
    for queries in (draw(99, 20), None):
        found, expected = (one.kneighbors(queries)[1] for one in (index, exact))
        assert (found == expected).mean() > 0.95
    index.save(tmp_path / "index")
    loaded = PartitionedNeighbors.load(tmp_path / "index", client=client)
    assert_array_equal(loaded.kneighbors()[1], found)
    few = loaded.set_params(n_candidates=5).kneighbors()[1]
    assert (few == expected).mean() < (found == expected).mean()
    loaded.set_params(algorithm="exact")
    assert_array_equal(loaded.kneighbors()[1], expected)


@pytest.mark.parametrize("similarity", [ModelComparisonSimilarity(output="distance"), GroupEmbedding()], ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["queries", "fitted"])
def test_an_index_of_one_process_is_sent_once(similarity, own, client, monkeypatch):
    """On joblib's Dask backend every worker receives its part of the groups, and returns the nearest only."""
    index = GroupNeighbors(similarity.set_params(n_jobs=2), n_neighbors=4).fit(draw(0, 3000))
    queries = None if own else draw(1, 300)
    expected = index.kneighbors(queries)
    before, sent = moved(client), []

    def counted(function, tasks, *args):
        tasks = list(tasks)
        sent.extend(len(pickle.dumps(task)) for task in tasks)
        return run(function, tasks, *args)

    run = nearest.run
    monkeypatch.setattr(nearest, "run", counted)
    with joblib.parallel_config(backend="dask"):
        found = index.kneighbors(queries)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-6)
    size = len(pickle.dumps(search_of(index).comparer))
    answers = expected[0].nbytes + expected[1].nbytes
    assert len(sent) == 2
    assert sum(sent) + moved(client) - before <= 3 * size + 2 * answers


def test_workers_import_the_room_before_a_task_runs(client, tmp_path, monkeypatch):
    """Tasks are unpickled by the event loop, so each must name a module of the room; ``loads`` would import it later.

    Then a thread and the loop could import modules of one package at once, which Python breaks off as a deadlock.
    """
    functions, submit = [], client.submit
    monkeypatch.setattr(
        client, "submit", lambda function, *args, **how: functions.append(function) or submit(function, *args, **how)
    )
    index = PartitionedNeighbors(client=client).fit([draw(0, 20), draw(1, 20)])
    index.kneighbors(draw(2, 3))
    index.save(tmp_path / "index")
    PartitionedNeighbors.load(tmp_path / "index", client=client).kneighbors()
    assert len(functions) > 5
    assert {function.__module__ for function in functions} == {"sklearn_mcsg.search.partitions"}


def moved(client):
    """Bytes that workers have sent each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_a_corpus_against_itself_moves_points_and_answers(client):
    """Each block of points goes to the other worker once. Groups stay where they are, and indexes nearly all."""
    n_parts, n_groups, k = 4, 3000, 1
    corpus = [draw(i, n_groups) for i in range(n_parts)]
    index = PartitionedNeighbors(GroupEmbedding(n_components=30), client=client).fit(corpus)
    before = moved(client)
    index.kneighbors(n_neighbors=k)
    points, answers = n_parts * n_groups * 30 * 4, n_parts**2 * n_groups * k * 12
    most = 2 * points + answers + 2**19
    assert points / 2 < moved(client) - before < most
    assert sum(part.nbytes for part in corpus) > 5 * most


CORPUS, PARTS, LIMIT = 2**29, 16, 480  # bytes of the corpus, its parts, MiB of a worker's memory


def big_part(path):
    size = CORPUS // PARTS // (4 * N_VECTORS * N_FEATURES)
    return np.fromfile(path, np.float32).reshape(size, N_VECTORS, N_FEATURES)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_corpus_larger_than_the_memory_of_a_worker_that_dies(tmp_path):
    """Everything that moves is counted: what is sent to workers, what they send each other, and the answers."""
    n_groups = CORPUS // PARTS // (4 * N_VECTORS * N_FEATURES)
    paths = [str(tmp_path / f"{i}.bin") for i in range(PARTS)]
    some = draw(0, n_groups)
    for i, path in enumerate(paths):
        (some + np.float32(i / PARTS)).tofile(path)
    queries = draw(99, 50)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=LIMIT * 2**20,
            dashboard_address=":0",
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert CORPUS > LIMIT * 2**20
        index = PartitionedNeighbors(GroupEmbedding(n_components=10), load=big_part, client=client).fit(paths)
        expected = index.kneighbors(queries)
        nearest = index.similarity_.pairwise(queries, big_part(paths[3])).min(axis=1)
        assert (expected[0][:, 0] <= nearest + 1e-6).all()
        index_size = 4 * 10 * n_groups * PARTS
        answers = PARTS * sum(array[:, :5].nbytes for array in expected)
        assert moved(client) <= 3 * index_size + answers
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(0.05, os.kill, (victim, signal.SIGKILL)).start()
        for _ in range(3):
            found = index.kneighbors(queries)
            assert_array_equal(found[1], expected[1])
        assert victim not in client.run(os.getpid).values()


def test_errors_are_sentences(files, client):
    with pytest.raises(ValueError, match="There are no parts"):
        PartitionedNeighbors(client=client).fit([])
    with pytest.raises(NotFittedError, match="ModelComparisonSimilarity is not fitted, and only a GroupEmbedding"):
        PartitionedNeighbors(ModelComparisonSimilarity(), load=read, client=client).fit(files)
    with pytest.raises(TypeError, match="got Pipeline: steps before it, such as a vectorizer, belong in load"):
        PartitionedNeighbors(make_text_embedding(), client=client).fit([["a text"]])
    with pytest.raises(OSError, match="the disk is gone") as caught:
        PartitionedNeighbors(load=fail, client=client).fit(files)
    assert re.search(r"This happened in the part .*0\d.npy", "".join(caught.value.__notes__))
    with pytest.raises(ValueError, match="landmarks does not learn from parts"):
        PartitionedNeighbors(GroupEmbedding(method="landmarks"), load=read, client=client).fit(files)
    index = PartitionedNeighbors(load=read, client=client).fit(files)
    with pytest.raises(ValueError, match="n_neighbors=1000 is more than the 144 indexed groups"):
        index.kneighbors(draw(0, 2), 1000)
    with pytest.raises(
        ValueError, match="n_neighbors=144 is more than the 143 indexed groups besides the query itself"
    ):
        index.kneighbors(n_neighbors=144)
    with pytest.raises(ValueError, match="expecting 20 features"):
        index.kneighbors(np.zeros((2, 3, 4)))
    with pytest.raises(NotFittedError):
        PartitionedNeighbors().kneighbors(draw(0, 2))


def claimed(flag):
    """Whether this process is the first to remove a file."""
    try:
        os.unlink(flag)
    except FileNotFoundError:
        return False
    return True


def arm(client, flag, module, name, act):
    """Let the worker that calls a function of a module first do something else before, once."""
    Path(flag).touch()

    def replace_it():
        place = import_module(module)
        original = getattr(place, name)

        def armed(*args, **kwargs):
            if claimed(flag):
                act()
            return original(*args, **kwargs)

        setattr(place, name, armed)

    client.run(replace_it)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def no_space():
    raise OSError(28, "No space left on device")


class Deadly:
    """Reads a file; whoever reads a certain one for the first, third and fifth time dies."""

    def __init__(self, path):
        self.path = path

    def __call__(self, path):
        if path == self.path:
            times = len(list(Path(path).parent.glob("read*")))
            Path(path).with_name(f"read{times}").touch()
            if times in (0, 2, 4):
                time.sleep(1)  # a nanny gives up a worker that dies before it knows that it has started
                die()
        return np.load(path)


def pids(client):
    """Processes of both workers, once the scheduler knows which are alive."""
    for _ in range(50):
        client.wait_for_workers(2, timeout=60)
        try:
            return set(client.run(os.getpid).values())
        except OSError:  # a worker that has just died
            time.sleep(0.1)
    raise AssertionError("the scheduler still asks a worker that has died")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_workers_that_die(client, files, tmp_path):
    """While they learn the corpus, learn its axes, index, compare the corpus with itself, save, and load."""
    flag, folder, part = str(tmp_path / "flag"), tmp_path / "index", "sklearn_mcsg.search.parts"
    own = [shutil.copy(path, tmp_path) for path in files]
    expected = GroupNeighbors(GroupEmbedding()).fit(np.concatenate([np.load(path) for path in own])).kneighbors()[1]

    def with_a_death(module, name, function):
        before = pids(client)
        arm(client, flag, module, name, die)
        result = function()
        assert not Path(flag).exists(), f"no worker has called {name}"
        assert before - pids(client)
        return result

    index = PartitionedNeighbors(GroupEmbedding(), load=Deadly(own[3]), client=client).fit(own)
    assert len(list(tmp_path.glob("read*"))) >= 6
    assert_array_equal(with_a_death(part, "smallest", index.kneighbors)[1], expected)
    with_a_death("os", "replace", lambda: index.save(folder))
    for path in own:
        os.unlink(path)
    loaded = with_a_death(part, "comparer_of_points", lambda: PartitionedNeighbors.load(folder, client=client))
    assert_array_equal(loaded.kneighbors()[1], expected)
    assert_array_equal(with_a_death(part, "smallest", loaded.kneighbors)[1], expected)  # its parts are opened again


def names_in(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_folder_holds_one_save(client, tmp_path, monkeypatch):
    """Under a relative path with a blank, which workers with another working directory find."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "an index"
    first, second = (PartitionedNeighbors(n_neighbors=n, client=client).fit([draw(n, 9), draw(0, 7)]) for n in (1, 2))
    first.save("an index")
    old = names_in(folder)
    assert [name.partition("-")[0] for name in old] == [".lock", "corpus", "parts"]
    assert names_in(folder / old[2]) == ["0", "1"]
    assert PartitionedNeighbors.load("an index", client=client).n_neighbors == 1
    second.save("an index")
    new = names_in(folder)
    assert old[:2] == new[:2]
    assert old[2] != new[2]
    with client.as_current():
        loaded = PartitionedNeighbors.load("an index")
    expected = {**second.get_params(deep=False), "similarity": loaded.similarity_, "client": None}
    assert loaded.get_params(deep=False) == expected
    assert_array_equal(loaded.kneighbors()[1], second.kneighbors()[1])
    loaded.save("an index")  # an index that was loaded, over itself
    assert_array_equal(loaded.kneighbors()[1], second.kneighbors()[1])
    refitted = loaded.set_params(client=client).fit([draw(2, 9), draw(0, 7)])
    assert_array_equal(refitted.kneighbors()[1], second.kneighbors()[1])


def test_a_save_that_fails_changes_nothing(client, tmp_path):
    folder, flag = tmp_path / "index", str(tmp_path / "flag")
    first, second = (PartitionedNeighbors(n_neighbors=n, client=client).fit([draw(n, 9), draw(0, 7)]) for n in (1, 2))
    arm(client, flag, "os", "replace", no_space)
    with pytest.raises(OSError, match="could not be saved: the disk is full") as caught:
        first.save(folder)
    assert re.search(r"This happened in part [01]; an index that was saved before", "".join(caught.value.__notes__))
    assert not folder.exists()
    first.save(folder)
    old = names_in(folder)
    arm(client, flag, "os", "replace", no_space)
    with pytest.raises(OSError, match="the disk is full"):
        second.save(folder)
    assert names_in(folder) == old
    assert PartitionedNeighbors.load(folder, client=client).n_neighbors == 1


KILLED = """
import os, signal, sys
import numpy as np
from distributed import Client
from sklearn_mcsg import PartitionedNeighbors

corpus = [np.random.default_rng(i).normal(size=(9, 4, 3)) for i in range(3)]
with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
    index = PartitionedNeighbors(client=client, n_neighbors=1).fit(corpus)
    index.save(sys.argv[1])
    calls, replace = [], os.replace

    def killing(*args):
        calls.append(args)
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*args)

    os.replace = killing
    index.set_params(n_neighbors=2).save(sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_client_that_dies_while_it_saves(client, tmp_path):
    """When all parts are written and the corpus is not yet: the old one is loaded, and the next save removes them."""
    folder = tmp_path / "index"
    done = subprocess.run([sys.executable, "-c", KILLED, folder], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(names_in(folder)) == 4
    loaded = PartitionedNeighbors.load(folder, client=client)
    assert (loaded.n_neighbors, loaded.n_groups_) == (1, 27)
    loaded.set_params(n_neighbors=3).save(folder)
    assert len(names_in(folder)) == 3
    assert PartitionedNeighbors.load(folder, client=client).n_neighbors == 3


def test_saved_and_loaded_at_once(client, tmp_path):
    """Whoever loads gets one of the two, whole."""
    folder = tmp_path / "index"
    both = {n: PartitionedNeighbors(n_neighbors=n, client=client).fit([draw(n, n + 9), draw(0, n)]) for n in (4, 5)}
    expected = {n: index.kneighbors()[1] for n, index in both.items()}
    both[4].save(folder)
    errors = []

    def save_often(index):
        try:
            for _ in range(5):
                index.save(folder)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save_often, args=(index,)) for index in both.values()]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        loaded = PartitionedNeighbors.load(folder, client=client)
        assert_array_equal(loaded.sizes_, both[loaded.n_neighbors].sizes_)
        assert_array_equal(loaded.kneighbors()[1], expected[loaded.n_neighbors])
    assert not errors
    assert len(names_in(folder)) == 3


def test_an_index_that_was_replaced(client, tmp_path):
    """A worker that is asked for a part again finds it gone, and says what to do."""
    folder = tmp_path / "index"
    index = PartitionedNeighbors(client=client, n_neighbors=2).fit([draw(0, 9), draw(1, 9)])
    index.save(folder)
    mapped = PartitionedNeighbors.load(folder, mmap_mode="r", client=client)
    moved = pickle.loads(pickle.dumps(mapped._indexes[1].result()))
    index.save(folder)
    with pytest.raises(FileNotFoundError, match="Part 1 is not at .*if the index was saved again since it was loaded"):
        len(moved)


def test_where_an_index_is_not_saved(client, tmp_path):
    index = PartitionedNeighbors(client=client).fit([draw(0, 9)])
    GroupNeighbors(GroupEmbedding()).fit(draw(0, 9)).save(tmp_path / "other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    (tmp_path / "file").touch()
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "corpus").mkdir()
    (tmp_path / "near" / "corpus" / "mine.txt").touch()
    (tmp_path / "precious" / "parts-0123456789abcdef").mkdir(parents=True)
    (tmp_path / "precious" / "parts-0123456789abcdef" / "mine.txt").touch()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "parts-0123456789abcdef").symlink_to(tmp_path / "other")
    before = sorted(tmp_path.rglob("*"))
    for name in ("other", "mine", "file", "near", "precious", "linked"):
        with pytest.raises(ValueError, match=rf"{name}.* exists and is not a saved .*nothing was written"):
            index.save(tmp_path / name)
        with pytest.raises(FileNotFoundError, match="not a saved (PartitionedNeighbors|index)"):
            PartitionedNeighbors.load(tmp_path / name, client=client)
    assert sorted(tmp_path.rglob("*")) == before
    index.save(tmp_path / "index")
    with pytest.raises(ValueError, match="exists and is not a saved index"):
        GroupNeighbors(GroupEmbedding()).fit(draw(0, 9)).save(tmp_path / "index")
    with pytest.raises(OSError, match="below could not be saved: below: Not a directory; nothing was written"):
        index.save(tmp_path / "file" / "below")
    for unfitted in (PartitionedNeighbors(client=client), storage.load(tmp_path / "index" / "corpus", BaseEstimator)):
        with pytest.raises(NotFittedError):
            unfitted.save(tmp_path / "unfitted")
    with pytest.raises(FileNotFoundError, match="Part 0 was not saved, because its worker does not see"):
        parts.write_part(None, str(tmp_path / "parts" / "0"), "token", 0)
    with pytest.raises(ValueError, match="mmap_mode must be None, 'r' or 'c'"):
        PartitionedNeighbors.load(tmp_path / "index", mmap_mode="w", client=client)


def test_what_cannot_be_saved_is_not_written(client, tmp_path):
    corpus = draw(0, 20)
    drawn = ModelComparisonSimilarity(output="centered", random_state=np.random.RandomState(0)).fit(corpus)
    moved = ModelComparisonSimilarity(output="distance").fit(corpus).with_groups(corpus[:5])
    for similarity, why in ((drawn, "cannot hold a RandomState"), (moved, "not those that were learnt from")):
        index = PartitionedNeighbors(similarity, client=client).fit([corpus])
        index._indexes = None  # nothing is asked of the workers
        with pytest.raises((TypeError, ValueError), match=why):
            index.save(tmp_path / "index")
        assert not list(tmp_path.iterdir())


OWN = """
import sys
from dataclasses import dataclass

import numpy as np
from distributed import Client, LocalCluster
from sklearn_mcsg import (
    Comparison, GroupNeighbors, GroupSimilarity, Likelihood, ModelComparisonSimilarity, PartitionedNeighbors, Statistics
)

class Centres(Comparison):
    outputs = ("distance",)

    def compare(self, left, right, output):
        means = [np.array([group.mean(axis=0) for group in side]) for side in (left, right)]
        return np.abs(means[0][:, None] - means[1]).sum(axis=2)

@dataclass(frozen=True, eq=False)
class Means(Statistics):
    pass

class Exponential(Likelihood):
    def statistics(self, groups, *, reg_covar, order):
        return Means(groups.totals, groups.sum(groups.rows()) / groups.totals[:, None])

    def pool(self, a, b):
        n = a.n + b.n
        return Means(n, (a.n[:, None] * a.mean + b.n[:, None] * b.mean) / n[:, None])

    def log_likelihood(self, statistics):
        return -statistics.n * (np.log(statistics.mean) + 1).sum(axis=1)

    def n_parameters(self, n_features):
        return n_features

if __name__ == "__main__":
    corpus = np.random.default_rng(0).exponential(size=(20, 4, 3))
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "local_directory": sys.argv[1]}
    processes = sys.argv[2] == "processes"
    with LocalCluster(n_workers=1, processes=processes, **options) as cluster, Client(cluster) as client:
        for similarity in (ModelComparisonSimilarity(Exponential(), output="distance"), GroupSimilarity(Centres())):
            similarity.fit(corpus)
            index = PartitionedNeighbors(similarity, client=client).fit([corpus[:9], corpus[9:]])
            answers = index.kneighbors(corpus)[1]  # the queries bring the classes again
            index.save(sys.argv[1] + "/index")
            loaded = PartitionedNeighbors.load(sys.argv[1] + "/index", client=client)
            assert (loaded.kneighbors(corpus)[1] == answers).all()
            single = GroupNeighbors(similarity).fit(corpus)
            single.save(sys.argv[1] + "/single")
            assert (GroupNeighbors.load(sys.argv[1] + "/single").kneighbors()[1] == single.kneighbors()[1]).all()
"""


@pytest.mark.parametrize("workers", ["processes", "threads"])
def test_a_class_of_a_script(workers, client, tmp_path):
    """It is sent by value. Where it is not defined, the saved index says so."""
    (tmp_path / "script.py").write_text(OWN)
    command = [sys.executable, tmp_path / "script.py", tmp_path, workers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(ValueError, match=r"holds __main__.Centres, which is not registered: define it, then load"):
        PartitionedNeighbors.load(tmp_path / "index", client=client)


SAVED = {
    "embedding": GroupEmbedding(),
    "statistics": ModelComparisonSimilarity(output="distance"),
    "arrays": MeanVector(),
}


@pytest.mark.parametrize("similarity", SAVED.values(), ids=list(SAVED))
def test_damaged_parts_are_named(similarity, client, tmp_path):
    folder, corpus = tmp_path / "index", [draw(i, 9) for i in range(3)]
    fitted = similarity if isinstance(similarity, GroupEmbedding) else similarity.fit(corpus[0])
    index = PartitionedNeighbors(fitted, client=client).fit(corpus)
    index.save(folder)
    places = folder / names_in(folder)[2]
    intact = tmp_path / "intact"
    shutil.copytree(folder, intact)
    index.save(tmp_path / "again")
    (again,) = (tmp_path / "again").glob("parts-*")

    def refused(why, error=ValueError):
        with pytest.raises(error, match=why):
            PartitionedNeighbors.load(folder, client=client)
        shutil.rmtree(folder)
        shutil.copytree(intact, folder)

    def rewritten(place, **changes):
        part = storage.load(places / str(place), parts.CorpusPart)
        storage.save(places / str(place), parts.CorpusPart(**{**vars(part), **changes}))

    shutil.rmtree(places / "1")
    refused("index is damaged and was not opened: part 1 is missing", FileNotFoundError)
    os.unlink(places / "1" / "index.json")
    refused("Part 1 is not at .*1", FileNotFoundError)
    os.unlink(next((places / "2").glob("*-0.npy")))
    refused("Part 2 cannot be opened: .*2 is damaged")
    file = next((places / "2").glob("*-0.npy"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    refused("Part 2 cannot be opened: .* the content of .* has changed")
    (places / "0").rename(places / "9")
    (places / "1").rename(places / "0")
    (places / "9").rename(places / "1")
    refused("Part 0 cannot be opened: .*0 holds part 1 of the save")
    shutil.rmtree(places / "0")
    shutil.copytree(again / "0", places / "0")
    refused(rf"Part 0 cannot be opened: .*holds part 0 of the save {again.name[6:]}, not part 0 of {places.name[6:]}")
    kept = storage.load(places / "1", parts.CorpusPart).summaries
    rewritten(1, summaries=kept[:4])
    refused("Part 1 cannot be opened: .*1 holds 4 groups instead of 9")
    narrow = np.zeros((9, 3), np.float32)
    rewritten(1, summaries=narrow)
    refused("Part 1 cannot be opened: (points of an embedding|groups) are kept as .*3")
    rewritten(1, dtype=np.dtype(int))
    refused("Part 1 cannot be opened: .* results cannot be in int64")
    storage.save(places / "1", GroupNeighbors(MeanVector()).fit(corpus[0]))
    refused("Part 1 cannot be opened: .* holds a GroupNeighbors, not a CorpusPart")
    PartitionedNeighbors.load(folder, client=client)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"token": "../../../../tmp/xx"}, "is not the token of a save"),
        ({"sizes": np.array([9, 0])}, "sizes of the parts"),
        ({"sizes": np.array([[9, 9]])}, "sizes of the parts"),
        ({"sizes": np.array([0.5, 0.5])}, "sizes of the parts"),
        ({"sizes": "many"}, "damaged"),
        ({"sizes": np.array([9, 8])}, "Part 1 cannot be opened: .* holds 9 groups instead of 8"),
        ({"sizes": np.array([9, 9, 9])}, "part 2 is missing"),
    ],
)
def test_a_damaged_corpus(state, why, client, tmp_path, monkeypatch):
    index = PartitionedNeighbors(client=client).fit([draw(0, 9), draw(1, 9)])
    known = PartitionedNeighbors.__mcsg_state__
    monkeypatch.setattr(PartitionedNeighbors, "__mcsg_state__", lambda self: {**known(self), **state})
    index.save(tmp_path / "index")
    with pytest.raises((OSError, ValueError), match=why):
        PartitionedNeighbors.load(tmp_path / "index", client=client)


def test_parts_on_disk_are_not_moved(client, tmp_path):
    """Dask asks an index for its size. One that is on disk is opened again elsewhere: nothing moves or is spilled."""
    index = PartitionedNeighbors(GroupEmbedding(n_components=20), client=client).fit([draw(0, 4000)])
    index.save(tmp_path / "index")
    loaded, mapped = (
        PartitionedNeighbors.load(tmp_path / "index", mmap_mode=mode, client=client)._indexes[0].result()
        for mode in (None, "r")
    )
    points = index._indexes[0].result().comparer.summaries
    for part in (loaded, mapped):
        assert_array_equal(part.comparer.summaries, points)
        assert isinstance(part.comparer.summaries, np.memmap) == (part is mapped)
    assert points.nbytes < sys.getsizeof(loaded) < 2 * points.nbytes
    assert sys.getsizeof(mapped) + len(pickle.dumps(mapped)) < points.nbytes / 4


def test_a_similarity_that_is_fitted_again(client):
    """The index keeps a copy; an output that has changed since is an error and not another distance."""
    corpus, queries = draw(0, 30), draw(1, 5)
    similarity = ModelComparisonSimilarity(output="distance", prior_strength=0.5).fit(corpus)
    index = PartitionedNeighbors(similarity, client=client).fit([corpus[:20], corpus[20:]])
    expected = index.kneighbors(queries)
    similarity.set_params(output="centered").fit(9 * queries)
    assert_array_equal(index.kneighbors(queries)[0], expected[0])
    index.similarity_.set_params(output="divergence")
    with pytest.raises(ValueError, match="has changed from 'distance' to 'divergence' since the parts were indexed"):
        index.kneighbors(queries)


def loaded_part(name):
    """A part, by what is wrong with it."""
    wrong = {
        "narrow": np.zeros((3, 2, 4)),
        "none": [],
        "empty": [np.zeros((0, N_FEATURES))],
        "text": ["a text"],
        "nothing": None,
        "nan": np.full((1, 2, N_FEATURES), np.nan),
    }
    return wrong.get(name, draw(0, 9))


@pytest.mark.parametrize("fitted", [False, True], ids=["learns", "fitted"])
@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("narrow", ValueError, ""),
        ("none", ValueError, "The collection is empty: at least one group is required"),
        ("empty", ValueError, "Group 0 has no vectors"),
        ("text", (TypeError, ValueError), ""),
        ("nothing", (TypeError, ValueError), ""),
        ("nan", ValueError, "contains NaN: the first is in group 0"),
    ],
)
def test_parts_that_cannot_be_used_are_named(name, error, why, fitted, client):
    similarity = GroupEmbedding().fit(draw(1, 9)) if fitted else GroupEmbedding()
    index = PartitionedNeighbors(similarity, load=loaded_part, client=client)
    if name == "narrow":
        widths = "has vectors of 4 features, but the part 'good' has 20: take the vectors of all parts from one space"
        expected = "cannot be used: X has 4 features, but GroupEmbedding is expecting 20 features"
        why = expected if fitted else widths
    with pytest.raises(error, match=rf"The part '{name}' .*{why}"):
        index.fit(["good", name, "good"])
    with pytest.raises(error, match=r"The part X\[1\] "):
        PartitionedNeighbors(similarity, client=client).fit([loaded_part("good"), loaded_part(name)])
    assert not hasattr(index, "sizes_")


NO_CLIENT = """
import numpy as np
from sklearn_mcsg import PartitionedNeighbors

for use in (lambda: PartitionedNeighbors().fit([np.zeros((2, 2, 2))]), lambda: PartitionedNeighbors.load("index")):
    try:
        use()
    except ValueError as error:
        print(error)
"""


def test_no_client():
    done = subprocess.run([sys.executable, "-c", NO_CLIENT], capture_output=True, text=True, check=False)
    assert done.stdout.count("There is no Dask client: create a distributed.Client") == 2, done.stderr


def test_a_similarity_with_other_groups():
    corpus, others = draw(0, 60), Groups.concatenate([Groups(draw(1, 1)[0], [0, 10, N_VECTORS])])
    model = ModelComparisonSimilarity(output="centered", prior_strength=0.5, random_state=0).fit(corpus)
    moved = model.with_groups(others)
    assert_allclose(moved.transform(corpus[:5]), model.pairwise(corpus[:5], others), rtol=1e-12, atol=1e-12)
    assert model.n_groups_ == 60
    assert moved.n_groups_ == 2
    with pytest.raises(ValueError, match="not those that were learnt from"):
        moved.__mcsg_state__()
