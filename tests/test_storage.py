"""Saved indexes: one step from old to new, whoever reads or is killed meanwhile, and nothing damaged is opened."""

import errno
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

import sklearn_mcsg
from sklearn_mcsg import (
    Criterion,
    DiagonalGaussian,
    EmbeddingVectorizer,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    MeanVector,
    ModelComparisonClassifier,
    ModelComparisonSimilarity,
)
from sklearn_mcsg.engine.coordinates import Axes
from sklearn_mcsg.storage import _folder, register

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")


def index_of(n, seed=0, similarity=None):
    rng = np.random.default_rng(seed)
    groups = Groups(rng.normal(size=(3 * n, 2)), np.arange(0, 3 * n + 1, 3))
    return GroupNeighbors(similarity, n_neighbors=1).fit(groups)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "index"
    index_of(8).save(path)
    return path


def content(path):
    return json.loads((path / "index.json").read_text())


def change(path, **entries):
    (path / "index.json").write_text(json.dumps({**content(path), **entries}))


def file_of(path, i):
    return path / content(path)["arrays"][i]["file"]


def forge(path, i, data, **facts):
    """Put other bytes in the place of an array, with the size and checksum that they have."""
    file_of(path, i).write_bytes(data)
    arrays = content(path)["arrays"]
    arrays[i] |= {"size": len(data), "checksum": zlib.crc32(data), **facts}
    change(path, arrays=arrays)


def as_bytes(array, **kwargs):
    import io

    stream = io.BytesIO()
    np.save(stream, array, **kwargs)
    return stream.getvalue()


def claiming(shape):
    """The header of an array of a shape, without the array."""
    import io

    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def other_arrays(path):
    index_of(9).save(path.with_name("other"))
    arrays = content(path)["arrays"]
    for i, known in enumerate(content(path.with_name("other"))["arrays"]):
        shutil.copy(path.with_name("other") / known["file"], path)
        arrays[i] = known if i == 1 else arrays[i]
    change(path, arrays=arrays)


def header(text, version=1):
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 * version, "little") + text


def put(value, *names):
    """Replace a part of the index, named from its outermost object on."""

    def damage(path):
        tree = content(path)["object"]
        inner = tree
        for name in names[:-1]:
            inner = inner[name]
        inner[names[-1]] = value
        change(path, object=tree)

    return damage


SIMILARITY = ("state", "similarity_")
DAMAGE = {
    "truncated array": (lambda p: file_of(p, 1).write_bytes(file_of(p, 1).read_bytes()[:-8]), "damaged.*-1.npy has"),
    "changed byte": (
        lambda p: file_of(p, 1).write_bytes(file_of(p, 1).read_bytes()[:-1] + b"\x01"),
        "damaged.*content of .*-1.npy has changed",
    ),
    "missing array": (lambda p: file_of(p, 1).unlink(), "damaged and was not opened"),
    "not a number": (
        lambda p: forge(p, 1, as_bytes(np.full(content(p)["arrays"][1]["shape"], np.nan))),
        "damaged.*holds numbers that are not finite",
    ),
    "complex numbers": (
        lambda p: forge(p, 1, as_bytes(np.ones((8, 2), complex)), dtype="<c16", shape=[8, 2]),
        "damaged.*holds complex128",
    ),
    "other shape": (lambda p: forge(p, 1, as_bytes(np.ones((4, 4)))), r"damaged.*holds float64 of shape \(4, 4\)"),
    "impossible header": (
        lambda p: forge(p, 1, claiming((10**15, 2)), shape=[10**15, 2]),
        "damaged.*is too short or too long",
    ),
    "negative header": (lambda p: forge(p, 1, claiming((-1, 2)), shape=[-1, 2]), "damaged and was not opened"),
    "header of Python 2": (
        lambda p: forge(p, 1, header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (8L, 2L)}")),
        "damaged.*the header of an array cannot be read",
    ),
    "long header": (lambda p: forge(p, 1, header(b" " * 20_000, version=2)), "damaged.*a header of 20000 bytes"),
    "version 3 of arrays": (lambda p: forge(p, 1, header(b"{}", version=3)), r"damaged.*version \(3, 0\)"),
    "output": (put(None, *SIMILARITY, "parts", "output"), "damaged.*The 'output' parameter"),
    "precision": (put("float16", *SIMILARITY, "state", "dtype"), "damaged.*results cannot be in float16"),
    "random pairs": (
        put(3, *SIMILARITY, "state", "null"),
        "damaged.*random pairs are kept as a int",
    ),
    "width": (put(-1, *SIMILARITY, "state", "n_features_in_"), "damaged.*n_features_in_ must be a positive integer"),
    "names of features": (
        put({"list": ["a"]}, *SIMILARITY, "state", "feature_names_in_"),
        "damaged.*feature_names_in_ must hold 2 names",
    ),
    "integers": (
        lambda p: forge(p, 1, as_bytes(np.ones((8, 2), int)), dtype="<i8"),
        "damaged.*statistics that are not floating-point numbers",
    ),
    "type of a field": (
        put(None, *SIMILARITY, "state", "summaries", "parts", "mean"),
        "damaged.*mean of a .* is a NoneType",
    ),
    "not an array": (lambda p: forge(p, 1, b"junk" * 9), "damaged and was not opened"),
    "arrays of another index": (other_arrays, "damaged and was not opened"),
    "path of an array": (lambda p: change(p, arrays=[{"file": "../x.npy"}]), "is not the name of an array"),
    "truncated json": (lambda p: (p / "index.json").write_text('{"format": "sk'), "index.json cannot be read"),
    "other json": (lambda p: (p / "index.json").write_text("[1]"), "damaged or not a saved index"),
    "newer version": (lambda p: change(p, version=99), "newer version.*format 99.*upgrade"),
    "older version": (lambda p: change(p, version=1), "older version.*format 1, .*build the index again"),
    "version 0.1.0": (
        lambda p: change(p, version=3),
        r"index was saved by an older version of sklearn_mcsg \(format 3, this one reads 4\): build the index again\.$",
    ),
    "infinite version": (lambda p: change(p, version=float("inf")), "damaged or not a saved index"),
    "version 0": (lambda p: change(p, version=0), "damaged or not a saved index"),
    "not fitted": (
        lambda p: change(p, object={"class": "GroupNeighbors", "parts": {}, "state": {}}),
        "damaged and was not opened",
    ),
    "other format": (lambda p: change(p, format="x"), "damaged or not a saved index"),
    "unknown class": (
        lambda p: change(p, object={"class": "Popen", "parts": {}, "state": {}}),
        "index holds a Popen, which this version of sklearn_mcsg cannot load",
    ),
    "unknown module": (
        lambda p: change(p, object={"class": "subprocess:Popen", "parts": {}, "state": {}}),
        "index holds subprocess.Popen, which is not registered: import subprocess, then load again",
    ),
    "unknown class of a notebook": (
        lambda p: change(p, object={"class": "__main__:a.<locals>.Mine", "parts": {}, "state": {}}),
        "index holds __main__.a.<locals>.Mine, which is not registered: define it, then load again",
    ),
    "long name of a class": (
        lambda p: change(p, object={"class": "a" * 5000, "parts": {}, "state": {}}),
        "index holds a a{80}, which",
    ),
    "other class": (lambda p: change(p, object=1), "holds a int, not a GroupNeighbors"),
    "pickled objects": (
        lambda p: forge(p, 0, as_bytes(np.array([{"a": 1}], dtype=object), allow_pickle=True), dtype="|O", shape=[1]),
        "damaged and was not opened",
    ),
}


@pytest.mark.parametrize("mmap_mode", [None, "r"])
@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_folders_are_refused(saved, damage, message, mmap_mode):
    if mmap_mode and "changed" in message:
        pytest.skip("checksums are not verified")
    damage(saved)
    with pytest.raises(ValueError, match=message):
        GroupNeighbors.load(saved, mmap_mode=mmap_mode)


@pytest.mark.parametrize(("part", "value"), [("size", 0), ("distance", 0), ("output", "x"), ("power", 0)])
def test_damaged_random_pairs_are_refused(tmp_path, part, value):
    index = index_of(60)
    index.similarity_.calibrate(random_state=0)
    index.save(tmp_path)
    assert len(GroupNeighbors.load(tmp_path).similarity_._null.distance) == 1770
    if part in ("size", "distance"):
        k = content(tmp_path)["object"]["state"]["similarity_"]["state"]["null"]["parts"][part]["array"]
        array = np.load(file_of(tmp_path, k))[::-1][:-1]
        forge(tmp_path, k, as_bytes(array), shape=array.shape)
    else:
        put(value, *SIMILARITY, "state", "null", "parts", part)(tmp_path)
    with pytest.raises(ValueError, match="damaged.*the random pairs do not fit together"):
        GroupNeighbors.load(tmp_path)


def test_damaged_embeddings_are_refused(tmp_path):
    groups = Groups(np.random.default_rng(0).normal(size=(24, 2)), np.arange(0, 25, 3))
    GroupNeighbors(GroupEmbedding(), n_neighbors=1).fit(groups).save(tmp_path)
    assert GroupNeighbors.load(tmp_path).n_groups_ == 8
    before = content(tmp_path)
    put(None, *SIMILARITY, "state", "space")(tmp_path)
    with pytest.raises(ValueError, match="damaged.*an embedding needs a space and its moments"):
        GroupNeighbors.load(tmp_path)
    change(tmp_path, **before)
    k = before["object"]["state"]["points"]["array"]
    array = np.load(file_of(tmp_path, k)).astype(np.int64)
    forge(tmp_path, k, as_bytes(array), dtype="<i8")
    with pytest.raises(ValueError, match="damaged.*points of an embedding are kept as int64"):
        GroupNeighbors.load(tmp_path)


FORGED = {
    "length": ("n", lambda n: n[:-1], "statistics of different numbers of groups"),
    "weight": ("n", lambda n: -n, "groups of negative weight"),
    "width": ("mean", lambda mean: mean[:, :1], "statistics of 1 features instead of 2"),
    "kind": ("mean", lambda mean: mean.astype(np.int64), "statistics that are not floating-point numbers"),
    "not a number": ("mean", lambda mean: mean * np.nan, "numbers that are not finite"),
    "references": (None, lambda references: references + 1, "indices must lie between 0 and 7"),
}


@pytest.mark.parametrize(("field", "forged", "message"), FORGED.values(), ids=FORGED)
def test_nothing_is_learnt_from_damaged_statistics(tmp_path, monkeypatch, field, forged, message):
    similarity = ModelComparisonSimilarity(criterion="bayes", output="centered", prior_strength=1.0)
    index_of(8, similarity=similarity).save(tmp_path)
    state = content(tmp_path)["object"]["state"]["similarity_"]["state"]
    k = (state["summaries"]["parts"][field] if field else state["references"])["array"]
    array = forged(np.load(file_of(tmp_path, k)))
    forge(tmp_path, k, as_bytes(array), dtype=array.dtype.str, shape=array.shape)

    def learn(*args, **kwargs):
        pytest.fail("it learnt from statistics that were not checked")

    for name in ("learn_prior", "pseudo_group"):
        monkeypatch.setattr(DiagonalGaussian, name, learn)
    with pytest.raises(ValueError, match=f"damaged and was not opened: .*{message}"):
        GroupNeighbors.load(tmp_path)


@pytest.mark.parametrize("part", ["n", "mean", "scatter"])
def test_nothing_is_learnt_from_damaged_moments(tmp_path, monkeypatch, part):
    index_of(8, similarity=GroupEmbedding()).save(tmp_path)
    moments = (*SIMILARITY, "state", "moments", "parts")
    if part == "n":
        put(1, *moments, "n")(tmp_path)
    else:
        inner = content(tmp_path)["object"]
        for name in (*moments, part, "array"):
            inner = inner[name]
        array = np.load(file_of(tmp_path, inner))[1:]
        forge(tmp_path, inner, as_bytes(array), shape=array.shape)
    monkeypatch.setattr(Axes, "of", lambda _: pytest.fail("it learnt from moments that were not checked"))
    with pytest.raises(ValueError, match="damaged and was not opened: moments of .* groups, of shapes"):
        GroupNeighbors.load(tmp_path)


def test_damaged_classes_are_refused(tmp_path, make_groups):
    ModelComparisonClassifier().fit(make_groups(6), ["a", "b", "c"] * 2).save(tmp_path)
    assert ModelComparisonClassifier.load(tmp_path).classes_.tolist() == ["a", "b", "c"]
    k = content(tmp_path)["object"]["state"]["pooled"]["parts"]["counts"]["array"]
    forge(tmp_path, k, as_bytes(np.ones(3)), dtype="<f8")
    with pytest.raises(ValueError, match="damaged.*numbers of groups and classes that are not integers"):
        ModelComparisonClassifier.load(tmp_path)


def test_damaged_word_vectors_are_refused(tmp_path):
    vectorizer = EmbeddingVectorizer((["a", "b"], np.eye(2)), weighting=None)
    index = GroupNeighbors(make_pipeline(vectorizer, MeanVector("distance")), n_neighbors=1).fit(["a", "b", "a b"])
    index.save(tmp_path)
    assert GroupNeighbors.load(tmp_path).kneighbors(["a a"])[1].tolist() == [[0]]
    for i, known in enumerate(content(tmp_path)["arrays"]):
        if np.array_equal(np.load(file_of(tmp_path, i)), np.eye(2)):
            forge(tmp_path, i, as_bytes(np.eye(2).astype("U4")), dtype="<U4", shape=known["shape"])
    with pytest.raises(ValueError, match="damaged.*vectors must hold numbers"):
        GroupNeighbors.load(tmp_path)


def test_saving_touches_nothing_else(saved, tmp_path):
    for name in ("index.old", "index.partial"):
        shutil.copytree(saved, tmp_path / name)
    (tmp_path / "link").symlink_to(saved)
    (tmp_path / "empty").mkdir()
    index = index_of(5)
    for name in ("index", "link", "link", "empty"):
        index.save(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"index", "index.old", "index.partial", "link", "empty"}
    assert GroupNeighbors.load(tmp_path / "link").n_groups_ == 5
    assert GroupNeighbors.load(tmp_path / "index.old").n_groups_ == 8


def test_a_folder_holds_one_save(saved):
    index_of(5).save(saved)
    known = {entry["file"] for entry in content(saved)["arrays"]}
    assert {file.name for file in saved.iterdir()} == known | {"index.json", ".lock"}


def test_a_folder_with_a_file_of_ones_own_is_left_alone(saved):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not a saved index: choose another path; nothing was written"):
        index_of(5).save(saved)
    assert GroupNeighbors.load(saved).n_groups_ == 8


@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_is_reported_and_changes_nothing(saved, tmp_path, monkeypatch, exists):
    path = saved if exists else tmp_path / "new"

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_folder.os, "fsync", full)
    state = "the index that it holds has not changed" if exists else "nothing was written"
    with pytest.raises(OSError, match=f"{path.name} could not be saved: No space left on device; {state}"):
        index_of(5).save(path)
    assert path.exists() == exists
    if exists:
        assert GroupNeighbors.load(path).n_groups_ == 8
        assert len(list(path.iterdir())) == 2 + len(content(path)["arrays"])


@pytest.mark.parametrize("replaced", [True, False])
def test_an_interrupt_at_the_last_step_leaves_an_index(saved, monkeypatch, replaced):
    replace = os.replace

    def interrupted(*paths):
        if replaced:
            replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(_folder.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        index_of(5).save(saved)
    assert GroupNeighbors.load(saved).n_groups_ == (5 if replaced else 8)
    assert len(list(saved.iterdir())) == 2 + len(content(saved)["arrays"])


def test_no_array_is_removed_while_the_content_cannot_be_read(saved, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(_folder, "check_place", lambda *_: None)
        patched.setattr(_folder, "read_content", lambda _: {})
        patched.setattr(_folder.os, "fsync", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index_of(5).save(saved)
    assert GroupNeighbors.load(saved).n_groups_ == 8


def test_an_index_that_is_open_can_be_replaced(saved):
    index = GroupNeighbors.load(saved, mmap_mode="r")
    before = index.kneighbors()
    index_of(5).save(saved)
    assert np.array_equal(index.kneighbors(), before)
    index.save(saved)
    assert GroupNeighbors.load(saved).n_groups_ == 8


# Classes of one's own -----------------------------------------------------------------------------------------------


MINE = """
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn_mcsg.storage import register

@register
class Mine(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_ = len(X)
        return self

    def transform(self, X):
        return {factor} * X

    def __mcsg_state__(self):
        return dict(n=self.n_) if hasattr(self, "n_") else dict()

    def __mcsg_restore__(self, state):
        self.n_ = state["n"]
"""


def scaled(step, seed=0):
    X = np.random.default_rng(seed).normal(size=(6, 3, 2))
    return GroupNeighbors(make_pipeline(step, MeanVector("distance")), n_neighbors=1).fit(X), X


@pytest.fixture
def import_mine(tmp_path, monkeypatch):
    """Write a module with a class Mine, and import it."""
    monkeypatch.syspath_prepend(tmp_path)

    def write_and_import(name, factor):
        (tmp_path / f"{name}.py").write_text(MINE.format(factor=factor))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name).Mine

    return write_and_import


def test_classes_of_one_name_in_two_modules(import_mine, tmp_path):
    """An index is loaded with the class that it was saved with, whatever was imported since."""
    first = import_mine("first_of_two", 1)
    index, X = scaled(first())
    index.save(tmp_path / "index")
    second = import_mine("second_of_two", -1)
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert np.array_equal(loaded.kneighbors(X[:1] + 1), index.kneighbors(X[:1] + 1))
    assert type(loaded.similarity_[0]) is first
    scaled(second())[0].save(tmp_path / "index")
    assert type(GroupNeighbors.load(tmp_path / "index").similarity_[0]) is second


def test_a_class_whose_module_was_not_imported(import_mine, tmp_path):
    scaled(import_mine("first_of_two", 1)())[0].save(tmp_path / "index")
    code = "import sys; from sklearn_mcsg import GroupNeighbors; GroupNeighbors.load(sys.argv[1])"
    result = subprocess.run([sys.executable, "-c", code, tmp_path / "index"], capture_output=True, text=True)
    expected = "holds first_of_two.Mine, which is not registered: import first_of_two, then load again."
    assert expected in result.stderr


def local_class(value):
    """As a cell of a notebook that is run again: another class, of the same module and qualified name."""

    @register
    class Mine(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return value * X

    return Mine


def test_a_class_that_is_defined_again_replaces_the_earlier_one(tmp_path):
    earlier = local_class(1)
    index, _ = scaled(earlier())
    index.save(tmp_path)
    assert type(GroupNeighbors.load(tmp_path).similarity_[0]) is earlier
    later = local_class(-1)
    assert type(GroupNeighbors.load(tmp_path).similarity_[0]) is later
    with pytest.raises(TypeError, match=r"cannot hold a Mine, Mine\(\): its class was defined again.*Make it again"):
        index.save(tmp_path)
    scaled(later())[0].save(tmp_path)
    assert type(GroupNeighbors.load(tmp_path).similarity_[0]) is later


def test_a_public_name_is_the_class_of_the_package_and_ones_own_is_ones_own(tmp_path):
    class AIC(Criterion):
        def penalty(self, fit):
            return 0.0

    for criterion in (AIC(), sklearn_mcsg.AIC()):
        index_of(8, similarity=ModelComparisonSimilarity("diag", criterion, output="distance")).save(tmp_path)
        loaded = GroupNeighbors.load(tmp_path)
        assert type(loaded.similarity_.criterion) is type(criterion)
    assert '"class": "AIC"' in (tmp_path / "index.json").read_text()


def test_a_class_that_is_not_registered_is_not_saved(tmp_path):
    class Loose(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    with pytest.raises(TypeError, match=r"cannot hold a Loose, Loose\(\)\..*with sklearn_mcsg.storage.register"):
        scaled(Loose())[0].save(tmp_path)


def test_an_array_that_occurs_twice_is_stored_once(tmp_path):
    table = np.random.default_rng(0).normal(size=(2, 5))
    vectorizer = EmbeddingVectorizer((["a", "b"], table), weighting=None)
    index = GroupNeighbors(make_pipeline(vectorizer, MeanVector("distance")), n_neighbors=1).fit(["a", "b", "a b"])
    index.save(tmp_path)
    stored = [np.load(tmp_path / entry["file"]) for entry in content(tmp_path)["arrays"]]
    assert sum(np.array_equal(array, table) for array in stored) == 1
    for mmap_mode in (None, "r"):
        loaded = GroupNeighbors.load(tmp_path, mmap_mode=mmap_mode)
        assert loaded.similarity[0].vectors[1] is loaded.similarity_[0].vectors[1]
        assert np.array_equal(loaded.kneighbors(["a a", "b"]), index.kneighbors(["a a", "b"]))


# Several processes --------------------------------------------------------------------------------------------------


def save_until_killed(path, event_number):
    """Save in this process, and kill it at a call of the file system; a file is half written before it is flushed."""
    index, count, fsync = index_of(5), 0, os.fsync

    def killed(before=lambda: None):
        nonlocal count
        count += 1
        if count == event_number:
            before()
            os.kill(os.getpid(), signal.SIGKILL)

    def halve(descriptor):
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # folders are flushed too
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)

    def flush(descriptor):
        killed(lambda: halve(descriptor))
        fsync(descriptor)

    os.fsync = flush
    sys.addaudithook(lambda event, _: killed() if event == "open" or event.startswith("os.") else None)
    index.save(path)


@POSIX
@pytest.mark.parametrize("exists", [True, False])
def test_killed_at_every_call_of_the_file_system(tmp_path, exists):
    fork = multiprocessing.get_context("fork")
    path, sizes = tmp_path / "index", []
    for event_number in range(1, 500):
        if exists:
            index_of(8).save(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
        process = fork.Process(target=save_until_killed, args=(path, event_number))
        process.start()
        process.join()
        if (path / "index.json").exists():
            sizes.append(GroupNeighbors.load(path).n_groups_)
        else:
            assert not exists, "neither the old nor the new index is there"
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        if event_number % 7 == 0:
            index_of(6).save(path)
            assert len(list(path.iterdir())) == 2 + len(content(path)["arrays"]), "what was left is removed"
    assert event_number > 10
    assert set(sizes) == ({8, 5} if exists else {5})


def save_in_a_loop(path, size, seconds, failures, counts):
    index, stop, done = index_of(size), time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        try:
            index.save(path)
            done += 1
        except Exception as error:
            failures.append(repr(error))
    counts.append(done)


def load_in_a_loop(path, seconds, failures, counts):
    stop, done = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        try:
            index = GroupNeighbors.load(path, mmap_mode="r" if done % 2 else None)
            assert index.n_groups_ in (5, 8)
            assert index.kneighbors(return_distance=False).shape == (index.n_groups_, 1)
            done += 1
        except Exception as error:
            failures.append(repr(error))
    counts.append(done)


@POSIX
def test_two_savers_and_two_readers(saved):
    seconds = 4
    fork = multiprocessing.get_context("fork")
    with fork.Manager() as manager:
        failures, saves, loads = manager.list(), manager.list(), manager.list()
        tasks = [(save_in_a_loop, (saved, size, seconds, failures, saves)) for size in (5, 8)]
        tasks += [(load_in_a_loop, (saved, seconds, failures, loads))] * 2
        processes = [fork.Process(target=function, args=args) for function, args in tasks]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert not list(failures)[:3]
        assert sum(saves) > 50
        assert sum(loads) > 50
