"""Saved indexes: one step from old to new, whoever reads or is killed meanwhile, and nothing damaged is opened."""

import errno
import importlib
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import zlib
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

import sklearn_mcsg
from sklearn_mcsg import (
    Comparison,
    Criterion,
    DiagonalGaussian,
    EmbeddingVectorizer,
    FullGaussian,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    GroupSimilarity,
    MeanVector,
    ModelComparisonClassifier,
    ModelComparisonSimilarity,
    NormalGamma,
    NormalGammaTrend,
    NormalWishart,
    TextSearch,
    TrendGaussian,
    _disk,
    make_text_embedding,
    storage,
    update_index,
)
from sklearn_mcsg.engine.coordinates import Axes
from sklearn_mcsg.storage import _folder, _lock, fingerprint, register

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
        r"index was saved by an older version of sklearn_mcsg \(format 3, this one reads 7\): build the index again\.$",
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
    "name of a class with control characters": (
        lambda p: change(p, object={"class": "Po\x1b[2Jp\u202een", "parts": {}, "state": {}}),
        r"index holds a Po\\x1b\[2Jp\\u202een, which this version of sklearn_mcsg cannot load",
    ),
    "deeply nested": (
        lambda p: (p / "index.json").write_text('{"format": ' + "[" * 10**5),
        "index.json cannot be read.*recursion",
    ),
    "long name of a parameter": (
        lambda p: put(1, "parts", "a" * 5000)(p),
        "damaged.*unexpected keyword argument 'a{300,450}.$",
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


SPACE = (*SIMILARITY, "state", "space", "parts")
SETTINGS = {
    "noise of a model": ((*SPACE, "model", "parts", "reg_covar"), (-1, np.nan, np.inf), "reg_covar must be a finite"),
    "penalty": ((*SPACE, "model", "parts", "penalty_scale"), (-1, np.nan), "penalty_scale must be a finite"),
    "noise of statistics": ((*SPACE, "corpus", "parts", "reg_covar"), (-1, np.nan, np.inf), "reg_covar must be a"),
    "order": ((*SPACE, "order"), (-1, np.nan, np.inf, 1e300), "order must lie between 0 and 1e\\+100"),
    "spread": ((*SPACE, "spread"), (-1, np.nan, np.inf, 1e300), "spread must lie between 0 and 1e\\+100"),
    "spread of features": ((*SIMILARITY, "parts", "spread", "list", 0), (-1, np.nan, "x", None, 1e300), ""),
}


@pytest.mark.parametrize(("names", "values", "message"), SETTINGS.values(), ids=SETTINGS)
def test_forged_settings_are_refused_when_opened(tmp_path, names, values, message):
    index_of(8, similarity=GroupEmbedding("trend", spread=[1.0, 2.0])).save(tmp_path)
    before = content(tmp_path)
    assert GroupNeighbors.load(tmp_path).n_groups_ == 8
    for value in values:
        change(tmp_path, **before)
        put(value, *names)(tmp_path)
        with pytest.raises(ValueError, match=f"damaged and was not opened: .*{message}"):
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
    with pytest.raises(OSError, match=f"{path.name} could not be saved: the disk is full; {state}"):
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


def criterion_index(criterion):
    return index_of(8, similarity=ModelComparisonSimilarity("diag", criterion, output="distance"))


def criterion_of(path):
    return type(GroupNeighbors.load(path).similarity_.criterion)


OWN_CRITERION = """
from sklearn_mcsg import AIC
class Own(AIC):
    {body}
"""


@pytest.fixture
def import_by_value(monkeypatch):
    """Define a criterion in a module, whose classes cloudpickle sends by value as it does those of a script."""
    cloudpickle = pytest.importorskip("cloudpickle")
    module = ModuleType("sent_by_value")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def define(body):
        exec(OWN_CRITERION.format(body=body), vars(module))
        return module.Own

    cloudpickle.register_pickle_by_value(module)
    yield define
    cloudpickle.unregister_pickle_by_value(module)


def sent(value):
    cloudpickle = pytest.importorskip("cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(value))


@pytest.mark.parametrize("body", ["order = 2", "pass"])
def test_a_class_that_was_sent_by_value_is_still_itself(body, import_by_value, tmp_path):
    own = import_by_value(body)
    for _ in range(3):
        assert type(sent(own())) is own
        criterion_index(own()).save(tmp_path)
        assert criterion_of(tmp_path) is own


@pytest.mark.parametrize("body", ["order = 2", "pass"])
def test_a_class_that_was_sent_by_value_is_replaced_when_it_is_defined_again(body, import_by_value, tmp_path):
    earlier = import_by_value("grows = False")
    index = criterion_index(sent(earlier()))
    index.save(tmp_path)
    later = import_by_value(body)
    for _ in range(2):
        assert type(sent(earlier())) is earlier
        assert criterion_of(tmp_path) is later
        with pytest.raises(TypeError, match=r"cannot hold a Own, Own\(\): its class was defined again"):
            index.save(tmp_path)
    criterion_index(later()).save(tmp_path)
    assert criterion_of(tmp_path) is later


def test_a_class_in_the_place_of_a_registered_one_is_not_made(import_by_value, tmp_path):
    own = import_by_value("pass")
    criterion_index(own()).save(tmp_path)
    sys.modules[own.__module__].Own = type("Own", (), {"__module__": own.__module__})
    assert criterion_of(tmp_path) is own


RECEIVER = """
import pickle, sys
from sklearn_mcsg import GroupNeighbors, ModelComparisonSimilarity

def save(criterion):
    similarity = ModelComparisonSimilarity("diag", criterion, output="distance")
    GroupNeighbors(similarity, n_neighbors=1).fit([[[0.0]], [[1.0]], [[3.0]]]).save(sys.argv[1])
    assert type(GroupNeighbors.load(sys.argv[1]).similarity_.criterion) is type(criterion)

pickles = pickle.load(sys.stdin.buffer)
earlier = [pickle.loads(pickles[0]) for _ in range(3)]
save(earlier[0])
later = [pickle.loads(pickles[1]) for _ in range(3)]
save(later[0])
assert type(pickle.loads(pickles[0])) is type(earlier[0]) is not type(later[0])
save(later[0])
try:
    save(earlier[0])
except TypeError as error:
    print(error)
"""


@pytest.mark.parametrize("body", ["order = 2", "pass"])
def test_a_class_that_was_received_by_value(body, import_by_value, tmp_path):
    """As on a worker, where no module has the class: the first copy is filled, and later ones are thrown away."""
    cloudpickle = pytest.importorskip("cloudpickle")
    pickles = [cloudpickle.dumps(import_by_value(text)()) for text in ("grows = False", body)]
    result = subprocess.run(
        [sys.executable, "-c", RECEIVER, tmp_path / "index"], input=pickle.dumps(pickles), capture_output=True
    )
    assert b"its class was defined again" in result.stdout, result.stderr.decode()


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


@pytest.mark.parametrize(
    "likelihood",
    [
        DiagonalGaussian(NormalGamma(mean=[0.0, 1.0], kappa=1, alpha=2, beta=(1.0, 2.0))),
        FullGaussian(NormalWishart(mean=[0.0, 1.0], kappa=1, dof=4, scatter=[[1.0, 0.5], [0.5, 2.0]])),
        TrendGaussian(NormalGammaTrend(mean=0, kappa=1, alpha=2, beta=1, slope=[0.0, 1.0])),
    ],
)
def test_priors_given_as_lists_are_saved(likelihood, tmp_path):
    index = index_of(5, similarity=ModelComparisonSimilarity(likelihood, "bayes", output="distance"))
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    np.testing.assert_array_equal(loaded.kneighbors()[0], index.kneighbors()[0])


class Kept(Comparison):
    """A comparison that keeps what its parameter makes of the first vector of each group."""

    outputs = ("distance",)

    def __init__(self, keep):
        self.keep = keep

    def summarize(self, groups):
        first = np.array([group[0] for group in groups])
        return first * 1j if self.keep == "complex" else np.full_like(first, np.inf)

    def compare(self, left, right, output):
        return np.zeros((len(left), len(right)))


@pytest.mark.parametrize(
    ("keep", "error", "message"),
    [
        ("complex", TypeError, "cannot hold an array of complex128"),
        ("infinite", ValueError, "cannot hold an array with NaN or infinity"),
    ],
)
def test_arrays_that_could_not_be_loaded_are_not_saved(keep, error, message, tmp_path):
    index = index_of(3, similarity=GroupSimilarity(Kept(keep)))
    with pytest.raises(error, match=message):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


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


# Files that are none, and errors of the system ------------------------------------------------------------------------


@pytest.fixture
def in_time():
    """A test that waits for ever fails instead."""

    def fail(*_):
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def become(kind, path):
    """Put something that is no regular file in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/zero", "link to itself": path, "link to nothing": "nothing"}[kind])


@POSIX
@pytest.mark.parametrize("mmap_mode", [None, "r"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to itself", "link to nothing"])
@pytest.mark.parametrize("which", ["array", "content"])
def test_only_regular_files_are_opened(saved, in_time, which, kind, mmap_mode):
    become(kind, file_of(saved, 1) if which == "array" else saved / "index.json")
    reason = {"link to itself": "the link leads back to itself", "link to nothing": "is missing|has no index.json"}
    with pytest.raises((OSError, ValueError), match=f"{saved}.*({reason.get(kind, 'Not a regular file')})"):
        GroupNeighbors.load(saved, mmap_mode=mmap_mode)


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_not_replaced(saved, in_time, kind):
    become(kind, saved / "index.json")
    with pytest.raises(OSError, match=r"could not be opened: index.json: Not a regular file; nothing was written"):
        index_of(5).save(saved)


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "folder", "link to itself", "link to nothing", "link to a file"])
def test_a_lock_that_is_no_file_is_refused(saved, tmp_path, in_time, kind):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    if kind == "link to a file":
        (saved / ".lock").unlink()
        (saved / ".lock").symlink_to(mine)
    else:
        become(kind, saved / ".lock")
    reason = ".lock: (Not a regular file|Too many levels of symbolic links)"
    with pytest.raises(OSError, match=f"could not be saved: {reason}; nothing was written"):
        index_of(5).save(saved)
    assert mine.read_text() == "mine"
    assert GroupNeighbors.load(saved).n_groups_ == 8


def test_a_file_that_becomes_a_pipe_while_it_is_opened(tmp_path, monkeypatch, in_time):
    path = tmp_path / "file"
    path.write_bytes(b"1")
    regular = os.stat(path)
    become("pipe", path)
    monkeypatch.setattr(_disk.os, "stat", lambda *_, **__: regular)
    with pytest.raises(OSError, match="Not a regular file"):
        _disk.open_regular(path)


def test_a_content_that_is_too_large(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_LARGEST", 1000)
    with pytest.raises(ValueError, match=r"not a saved index: index.json cannot be read \(it has \d+ bytes\)"):
        GroupNeighbors.load(saved)
    with pytest.raises(OSError, match=r"could not be saved: index.json would have \d+ bytes, more than 1000; nothing"):
        index_of(5).save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


ERRORS = {
    "no permission": (errno.EACCES, PermissionError),
    "no file handles": (errno.EMFILE, OSError),
    "disk": (errno.EIO, OSError),
}


@pytest.mark.parametrize("which", ["array", "content"])
@pytest.mark.parametrize(("number", "kind"), ERRORS.values(), ids=ERRORS)
def test_an_error_of_the_system_is_not_called_damage(saved, monkeypatch, which, number, kind):
    ending, opened = ".npy" if which == "array" else ".json", os.open

    def failing(path, *args, **kwargs):
        if os.fspath(path).endswith(ending):
            raise OSError(number, os.strerror(number), path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(_disk.os, "open", failing)
    reason = re.escape(_disk.reason_of(OSError(number, os.strerror(number))))
    with pytest.raises(kind, match=f"index could not be opened: .*{ending}: {reason}") as caught:
        GroupNeighbors.load(saved)
    assert caught.value.errno == number
    if which == "content":
        for write in (index_of(5).save, lambda path: update_index(path, make_text_embedding(), ["a", "b"])):
            with pytest.raises(kind, match=f"could not be opened: index.json: {reason}; nothing was written"):
                write(saved)


@POSIX
def test_a_limit_of_the_file_system_is_named(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    index = index_of(2000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="could not be saved: File too large; nothing was written") as caught:
            index.save(tmp_path / "index")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG


def test_little_memory_is_not_called_damage(saved, monkeypatch):
    monkeypatch.setattr(_folder, "_read_array", lambda *_: np.empty(10**15))
    with pytest.raises(MemoryError, match="index could not be opened: there is not enough memory"):
        GroupNeighbors.load(saved)


@POSIX
def test_paths(saved, tmp_path, monkeypatch, in_time):
    become("link to itself", tmp_path / "loop")
    for path, reason in (
        (tmp_path / "loop", "the link leads back to itself"),
        (tmp_path / ("a" * 300), "File name too long"),
        (f"{tmp_path}/{'a/' * 2048}", "File name too long"),
    ):
        for use in (index_of(5).save, GroupNeighbors.load):
            with pytest.raises(OSError, match=f"could not be opened: .*{reason}"):
                use(path)
    for use in (index_of(5).save, GroupNeighbors.load):
        with pytest.raises(ValueError, match=r"'a\\x00b' is not a path: embedded null"):
            use("a\0b")
    with pytest.raises(FileNotFoundError, match="new is not a saved index: it has no index.json"):
        GroupNeighbors.load(tmp_path / "new")
    with pytest.raises(FileNotFoundError, match="index.json is not a saved index"):
        GroupNeighbors.load(saved / "index.json")
    monkeypatch.chdir(saved)
    for path in (f"{saved}/", f"{saved}/../index", ".", "../index/."):
        index_of(5).save(path)
        assert GroupNeighbors.load(path).n_groups_ == 5


def test_a_link_that_changes_its_goal_while_an_index_is_opened(saved, tmp_path, monkeypatch):
    index_of(5).save(tmp_path / "other")
    (tmp_path / "link").symlink_to(saved)
    read_content = _folder.read_content

    def read_and_change(folder):
        content = read_content(folder)
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(tmp_path / "other")
        return content

    monkeypatch.setattr(_folder, "read_content", read_and_change)
    assert GroupNeighbors.load(tmp_path / "link").n_groups_ == 8


@pytest.mark.parametrize("mmap_mode", [None, "r", "c"])
def test_an_array_is_opened_once(saved, monkeypatch, mmap_mode):
    """What was checked is what is read, also if another file takes its name meanwhile."""
    checked = _folder._header

    def replace_file(stream):
        shutil.copy(stream.name, saved / "copy")
        os.replace(saved / "copy", stream.name)
        with open(stream.name, "r+b") as other:
            other.write(bytes(200))
        return checked(stream)

    expected = index_of(8).kneighbors()
    monkeypatch.setattr(_folder, "_header", replace_file)
    assert np.array_equal(GroupNeighbors.load(saved, mmap_mode=mmap_mode).kneighbors(), expected)


# Locks ----------------------------------------------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks(saved, tmp_path, monkeypatch, in_time, number):
    import fcntl

    def missing(*_):
        raise OSError(number, os.strerror(number))

    foreign = saved / f"{'0' * 16}-0.npy"  # of another save that may still be going on
    foreign.write_bytes(b"")
    monkeypatch.setattr(fcntl, "flock", missing)
    for path in (saved, tmp_path / "new"):
        index_of(5).save(path)
        index_of(6).save(path)
        assert GroupNeighbors.load(path).n_groups_ == 6
        assert len(list(path.iterdir())) == 2 + len(content(path)["arrays"]) + (path == saved)
    assert foreign.exists()


@POSIX
def test_two_saves_without_locks_leave_a_whole_index(saved, monkeypatch, in_time):
    import fcntl

    def missing(*_):
        raise OSError(errno.ENOSYS, "none")

    write_array, others = _folder._write_array, [index_of(6)]

    def write_while_another_saves(*args):
        entry = write_array(*args)
        while others:
            others.pop().save(saved)
        return entry

    monkeypatch.setattr(fcntl, "flock", missing)
    monkeypatch.setattr(_folder, "_write_array", write_while_another_saves)
    index_of(5).save(saved)
    assert GroupNeighbors.load(saved).n_groups_ == 5


@POSIX
def test_a_lock_that_stays_held(saved, monkeypatch, in_time):
    monkeypatch.setattr(_lock, "_PATIENCE", 0.1)
    with _lock.locked(saved) as is_locked:
        assert is_locked
        with pytest.raises(TimeoutError, match="could not be saved: another process has been saving it for 0 seconds"):
            index_of(5).save(saved)
    index_of(5).save(saved)
    assert GroupNeighbors.load(saved).n_groups_ == 5


@POSIX
def test_a_failed_save_leaves_the_lock_of_others(tmp_path, monkeypatch, in_time):
    """One process creates a folder and fails while another waits to save there; a third must wait for that one."""
    path, write, attempts, try_to_lock = tmp_path / "index", _folder._write, [], _lock._try_to_lock
    waiting = threading.Thread(target=lambda: index_of(6).save(path))

    def fail_once(folder, *args):
        if threading.current_thread() is not waiting:
            waiting.start()
            while not attempts:
                time.sleep(0.001)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with (path / ".lock").open("ab") as stream:
            assert _disk.take_lock(stream.fileno()) is False
        write(folder, *args)

    def attempt(*args):
        held = try_to_lock(*args)
        if threading.current_thread() is waiting:
            attempts.append(held)
        return held

    monkeypatch.setattr(_folder, "_write", fail_once)
    monkeypatch.setattr(_lock, "_try_to_lock", attempt)
    with pytest.raises(OSError, match="the disk is full; nothing was written"):
        index_of(5).save(path)
    waiting.join()
    assert GroupNeighbors.load(path).n_groups_ == 6
    assert (path / ".lock").is_file()


@POSIX
def test_folders_are_flushed_too(tmp_path, monkeypatch):
    flushed, fsync, replace = [], os.fsync, os.replace

    def flush(descriptor):
        flushed.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def move(*paths):
        flushed.append("replaced")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", move)
    index_of(5).save(tmp_path / "index")
    folder, step = (tmp_path / "index").stat().st_ino, flushed.index("replaced")
    assert flushed[step - 1] == folder
    assert flushed[step + 1 :] == [folder, tmp_path.stat().st_ino]


# Words and the files of word vectors ----------------------------------------------------------------------------------


TEXTS = ["cat dog", "cat ran", "tax law", "law of tax", "dog ran"]
WORDS = ["of", "cat", "dog", "ran", "tax", "law"]


def write_vectors(path, seed=0):
    rows = np.random.default_rng(seed).normal(size=(6, 3)).round(3).tolist()
    path.write_text("".join(f"{word} {a:.3f} {b:.3f} {c:.3f}\n" for word, (a, b, c) in zip(WORDS, rows, strict=True)))
    return path


def text_index(vectors, **params):
    vectorizer = EmbeddingVectorizer(vectors, weighting=None, **params)
    return GroupNeighbors(make_pipeline(vectorizer, MeanVector("distance")), n_neighbors=1).fit(TEXTS)


def finds_itself(index):
    return index.kneighbors(TEXTS, return_distance=False).ravel().tolist() == [0, 1, 2, 3, 4]


def twice(words):
    return [words[0], *words[:-1]]


@pytest.mark.parametrize("forged", [twice, lambda words: [[], *words[1:]], lambda words: [3, *words[1:]]])
@pytest.mark.parametrize("where", ["words of texts", "counted words", "words of vectors"])
def test_forged_vocabularies(tmp_path, where, forged):
    pytest.importorskip("bm25s")
    vectors = WORDS, np.random.default_rng(0).normal(size=(6, 3))
    vectorizer = EmbeddingVectorizer(vectors, weighting="sif", frequencies=None)
    storage.save(tmp_path, TextSearch(make_pipeline(vectorizer, GroupEmbedding(random_state=0))).fit(TEXTS))
    storage.load(tmp_path, TextSearch).search(["cat"], 1)
    places = {
        "words of texts": ("state", "words_", "parts", "vocabulary"),
        "counted words": ("state", "vectorizer_", "parts", "steps", "list", 0, "tuple", 1, "state", "words"),
        "words of vectors": ("state", "vectorizer_", "parts", "steps", "list", 0, "tuple", 1, "parts", "vectors"),
    }
    inner = content(tmp_path)["object"]
    for name in places[where]:
        inner = inner[name]
    is_pair = "tuple" in inner
    words = {"list": forged(WORDS if is_pair else inner["list"])}
    put({"tuple": [words, inner["tuple"][1]]} if is_pair else words, *places[where])(tmp_path)
    with pytest.raises(ValueError, match="damaged.*(vocabulary|given twice|must be strings)"):
        storage.load(tmp_path, TextSearch)


def change_number(path):
    path.write_text(path.read_text().replace("0.", "1.", 1))


@pytest.mark.parametrize("damage", ["one number", "longer", "missing", "folder", "pipe"])
def test_vectors_that_have_changed(tmp_path, request, damage):
    if damage == "pipe" and sys.platform == "win32":
        pytest.skip("no pipes")
    path = write_vectors(tmp_path / "vectors.txt")
    text_index(path).save(tmp_path / "index")
    assert finds_itself(GroupNeighbors.load(tmp_path / "index"))
    status = path.stat()
    if damage == "one number":
        change_number(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert path.stat().st_size == status.st_size
    elif damage == "longer":
        path.write_text(path.read_text() + "law2 1 2 3\n")
    elif damage == "missing":
        path.unlink()
    else:
        request.getfixturevalue("in_time")
        become(damage, path)
    reasons = {
        "one number": r"has changed since the index was saved \(of the same size\)",
        "longer": r"has changed since the index was saved \(\d+ bytes instead of \d+\)",
        "missing": "is missing",
    }
    reason = reasons.get(damage, r"cannot be read \(Not a regular file\)")
    sentence = rf"index was made from .*vectors.txt, which {reason}: put back the file, or build the index again\.$"
    with pytest.raises(ValueError, match=sentence):
        GroupNeighbors.load(tmp_path / "index")


def test_vectors_given_by_a_relative_path(tmp_path, monkeypatch):
    for name, seed in (("here", 0), ("there", 1)):
        (tmp_path / name).mkdir()
        write_vectors(tmp_path / name / "vectors.txt", seed)
    monkeypatch.chdir(tmp_path / "here")
    index = text_index("vectors.txt")
    monkeypatch.chdir(tmp_path / "there")
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert np.array_equal(loaded.kneighbors(TEXTS), index.kneighbors(TEXTS))
    fitted, given = loaded.similarity_[0].vectors, loaded.similarity[0].vectors
    assert os.path.samefile(fitted, tmp_path / "here" / "vectors.txt")
    assert os.path.samefile(given, tmp_path / "there" / "vectors.txt")  # as `fit` would have read it


def test_a_link_to_vectors_that_were_moved(tmp_path):
    path, link = write_vectors(tmp_path / "vectors.txt"), tmp_path / "link.txt"
    link.symlink_to(path)
    text_index(link).save(tmp_path / "index")
    path.rename(tmp_path / "other.txt")
    link.unlink()
    link.symlink_to(tmp_path / "other.txt")
    assert finds_itself(GroupNeighbors.load(tmp_path / "index"))


@pytest.mark.parametrize("by_link", [False, True])
@pytest.mark.parametrize("moved", ["together", "index", "copied"])
def test_an_index_is_moved(tmp_path, moved, by_link):
    if by_link:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        tmp_path = tmp_path / "link"
    (tmp_path / "old").mkdir()
    index = text_index(write_vectors(tmp_path / "old" / "vectors.txt"))
    index.save(tmp_path / "old" / "index")
    if moved == "together":
        (tmp_path / "old").rename(tmp_path / "new")
    elif moved == "copied":
        shutil.copytree(tmp_path / "old", tmp_path / "new")
        change_number(tmp_path / "old" / "vectors.txt")
    else:
        (tmp_path / "new").mkdir()
        (tmp_path / "old" / "index").rename(tmp_path / "new" / "index")
        write_vectors(tmp_path / "new" / "vectors.txt", seed=1)  # another file of this name
    loaded = GroupNeighbors.load(tmp_path / "new" / "index")
    assert np.array_equal(loaded.kneighbors(TEXTS), index.kneighbors(TEXTS))
    loaded.save(tmp_path / "new" / "index")
    assert finds_itself(GroupNeighbors.load(tmp_path / "new" / "index"))


@pytest.mark.parametrize("given", ["folder", "file", "pair"])
@pytest.mark.parametrize("changed", ["tokenizer.json", "model.safetensors"])
def test_static_models(tmp_path, given, changed):
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    from test_static import save

    folder = tmp_path / "old" / "model"
    folder.mkdir(parents=True)
    save(folder)
    files = folder / "tokenizer.json", folder / "model.safetensors"
    vectorizer = EmbeddingVectorizer({"folder": folder, "file": files[1], "pair": files}[given], weighting=None)
    texts = ["Cats and dogs.", "The cat.", "A dog."]
    index = GroupNeighbors(make_pipeline(vectorizer, MeanVector("distance")), n_neighbors=1).fit(texts)
    index.save(tmp_path / "old" / "index")
    (tmp_path / "old").rename(tmp_path / "new")
    loaded = GroupNeighbors.load(tmp_path / "new" / "index")
    assert np.array_equal(loaded.kneighbors(texts), index.kneighbors(texts))
    with (tmp_path / "new" / "model" / changed).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(ValueError, match=f"was made from .*{changed}, which has changed since the index was saved"):
        GroupNeighbors.load(tmp_path / "new" / "index")


def test_a_tokenizer_by_path_with_vectors_in_memory(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: i for i, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "words.json"))
    vectors = np.random.default_rng(0).normal(size=(7, 3))
    index = text_index((tmp_path / "words.json", vectors))
    index.save(tmp_path / "index")
    assert np.array_equal(GroupNeighbors.load(tmp_path / "index").kneighbors(TEXTS), index.kneighbors(TEXTS))
    with (tmp_path / "words.json").open("a") as stream:
        stream.write(" ")
    with pytest.raises(ValueError, match=r"words.json, which has changed"):
        GroupNeighbors.load(tmp_path / "index")


def test_vectors_that_change_between_fit_and_save(tmp_path):
    path = write_vectors(tmp_path / "vectors.txt")
    index = text_index(path)
    change_number(path)
    with pytest.raises(ValueError, match="vectors.txt has changed since it was read: fit again. Nothing was written"):
        index.save(tmp_path / "index")
    path.unlink()
    with pytest.raises(ValueError, match="vectors.txt cannot be read.*needs the files that it was made from"):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("kept", ["loaded", "pickled"])
def test_vectors_that_change_before_they_are_read_again(tmp_path, kept):
    path = write_vectors(tmp_path / "vectors.txt")
    index = text_index(path)
    index.save(tmp_path / "index")
    again = GroupNeighbors.load(tmp_path / "index") if kept == "loaded" else pickle.loads(pickle.dumps(index))
    change_number(path)
    with pytest.raises(ValueError, match="vectors.txt has changed since the vectorizer was fitted: put back the file"):
        again.kneighbors(TEXTS)


# Updates of an index --------------------------------------------------------------------------------------------------


def search_of(path):
    return TextSearch(make_pipeline(EmbeddingVectorizer(path, weighting=None), MeanVector("distance")), words=None)


def update(folder, texts):
    return update_index(folder / "index", search_of(folder / "vectors.txt"), texts)


@pytest.mark.parametrize("other", [TEXTS[::-1], TEXTS[:4], "similarity"])
def test_an_index_that_is_replaced_between_its_note_and_its_arrays(tmp_path, monkeypatch, other):
    """The note that says which texts an index holds, and the index, are of one save."""
    write_vectors(tmp_path / "vectors.txt")
    update(tmp_path, TEXTS[:3])
    load, before = storage.load, []

    def load_what_another_process_has_saved(*args, **kwargs):
        if not before:
            before.append(1)
            if other == "similarity":
                text_index(tmp_path / "vectors.txt").save(tmp_path / "index")
            else:
                update(tmp_path, other)
        return load(*args, **kwargs)

    monkeypatch.setattr(storage, "load", load_what_another_process_has_saved)
    result = update(tmp_path, TEXTS)
    assert before
    assert result.n_reused == (4 if other == TEXTS[:4] else 0)
    for index in (result.index, load(tmp_path / "index", TextSearch)):
        assert index.n_texts_ == 5
        assert index.search(["tax law"], 1).indices.tolist() == [[2]]
        assert index.search(["dog cat"], 1).indices.tolist() == [[0]]


def update_in_a_loop(folder, texts, seconds, failures, counts):
    stop, done = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        try:
            for n_texts in (3, 5):
                index = update(folder, texts[:n_texts]).index
                found = index.search([*texts[:n_texts]], 1)
                assert [texts[i].split() for i in found.indices.ravel()] == [text.split() for text in texts[:n_texts]]
                done += 1
        except Exception as error:
            failures.append(repr(error))
    counts.append(done)


@POSIX
def test_two_processes_update_one_index(tmp_path):
    write_vectors(tmp_path / "vectors.txt")
    first = ["cat dog", "cat ran", "tax law", "of law", "dog ran"]
    corpora = first, ["of tax", "cat", "dog", "law tax", "ran"]
    fork = multiprocessing.get_context("fork")
    with fork.Manager() as manager:
        failures, counts = manager.list(), manager.list()
        tasks = [(tmp_path, texts, 3, failures, counts) for texts in corpora]
        processes = [fork.Process(target=update_in_a_loop, args=args) for args in tasks]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert not list(failures)[:3]
        assert sum(counts) > 20


@pytest.mark.parametrize("change", ["number", "time"])
def test_an_index_of_other_vectors_is_built_again(tmp_path, change):
    path = write_vectors(tmp_path / "vectors.txt")
    update(tmp_path, TEXTS)
    status = path.stat()
    if change == "number":
        change_number(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    result = update(tmp_path, TEXTS)
    assert (result.replaced, result.n_reused) == ((True, 0) if change == "number" else (False, 5))


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


def test_fingerprints_tell_shapes_and_types_of_arrays_apart():
    arrays = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6), np.zeros((2, 3), int), np.zeros((2, 3), np.float32)]
    assert len({fingerprint(array) for array in arrays}) == len(arrays)
    assert fingerprint(arrays[0]) == fingerprint(np.zeros((2, 3)))
