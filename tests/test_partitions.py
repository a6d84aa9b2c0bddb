"""A corpus in many parts: learnt, indexed and searched by the workers of a real cluster."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

import distributed
import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from sklearn_mcsg import (
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    MeanVector,
    ModelComparisonSimilarity,
    PartitionedNeighbors,
    make_text_embedding,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.search import nearest, search_of

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
        np.save(path, draw(i, 40 + i))
    return paths


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


SIMILARITIES = [
    GroupEmbedding(whiten=0.5, prior_strength=0.5),
    GroupEmbedding("vmf", n_components=8),
    ModelComparisonSimilarity(output="distance"),
    ModelComparisonSimilarity(output="centered", prior_strength=0.5, n_references=50, random_state=0),
    ModelComparisonSimilarity("spherical", "tic", output="divergence"),
    ModelComparisonSimilarity(output="kernel"),
    MeanVector(),
]


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
def test_same_answers_as_on_one_machine(similarity, files, client):
    corpus, queries = np.concatenate([np.load(path) for path in files]), draw(99, 12)
    whole = GroupNeighbors(similarity).fit(corpus)
    fitted = similarity if isinstance(similarity, GroupEmbedding) else similarity.fit(corpus)
    index = PartitionedNeighbors(fitted, load=read, client=client).fit(files)
    assert_array_equal(index.sizes_, np.arange(40, 49))
    distances, indices = index.kneighbors(queries, 7)
    expected, nearest = whole.kneighbors(queries, 7)
    assert_array_equal(indices, nearest)
    assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)
    assert_array_equal(index.kneighbors(queries, return_distance=False), nearest[:, :5])


def test_parts_smaller_than_the_number_of_neighbours(client):
    parts = [draw(i, n) for i, n in enumerate((1, 3, 2, 30))]
    index = PartitionedNeighbors(GroupEmbedding(), client=client).fit(parts)
    whole = GroupNeighbors(GroupEmbedding()).fit(np.concatenate(parts))
    assert_array_equal(index.kneighbors(parts[1], 20)[1], whole.kneighbors(parts[1], 20)[1])


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


def test_approximate_search_of_each_part(client):
    pytest.importorskip("faiss")
    parts = [draw(i, 400) for i in range(3)]
    queries = draw(99, 20)
    exact = PartitionedNeighbors(client=client).fit(parts).kneighbors(queries)
    found = PartitionedNeighbors(algorithm="approximate", client=client).fit(parts).kneighbors(queries)
    assert (found[1] == exact[1]).mean() > 0.95


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


def moved(client):
    """Bytes that workers have sent each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


CORPUS, PARTS, LIMIT = 2**29, 16, 400  # bytes of the corpus, its parts, MiB of a worker's memory


def big_part(path):
    size = CORPUS // PARTS // (4 * N_VECTORS * N_FEATURES)
    return np.fromfile(path, np.float32).reshape(size, N_VECTORS, N_FEATURES)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_corpus_larger_than_the_memory_of_a_worker_that_dies(tmp_path):
    """Everything that moves is counted: what is sent to workers, what they send each other, and the answers."""
    n_groups = CORPUS // PARTS // (4 * N_VECTORS * N_FEATURES)
    paths = [str(tmp_path / f"{i}.bin") for i in range(PARTS)]
    for i, path in enumerate(paths):
        draw(i, n_groups).tofile(path)
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
    with pytest.raises(ValueError, match="There are no parts to index"):
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
    with pytest.raises(ValueError, match="n_neighbors=1000 is more than the 396 indexed groups"):
        index.kneighbors(draw(0, 2), 1000)
    with pytest.raises(ValueError, match="expecting 20 features"):
        index.kneighbors(np.zeros((2, 3, 4)))
    with pytest.raises(NotFittedError):
        PartitionedNeighbors().kneighbors(draw(0, 2))


def test_no_client():
    code = (
        "import numpy as np; from sklearn_mcsg import PartitionedNeighbors; "
        "PartitionedNeighbors().fit([np.zeros((2, 2, 2))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ValueError: There is no Dask client: create a distributed.Client" in done.stderr


def test_a_similarity_with_other_groups():
    corpus, others = draw(0, 60), Groups.concatenate([Groups(draw(1, 1)[0], [0, 10, N_VECTORS])])
    model = ModelComparisonSimilarity(output="centered", prior_strength=0.5, random_state=0).fit(corpus)
    moved = model.with_groups(others)
    assert_allclose(moved.transform(corpus[:5]), model.pairwise(corpus[:5], others), rtol=1e-12, atol=1e-12)
    assert model.n_groups_ == 60
    assert moved.n_groups_ == 2
    with pytest.raises(ValueError, match="not those that were learnt from"):
        moved.__mcsg_state__()
