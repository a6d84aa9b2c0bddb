"""Files that nobody meant to write: readers open them or say what is wrong, in bounded memory."""

import json
import os
import shutil
import sys
import tempfile
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, configuration, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from test_files import FORMATS, gzipped, zipped
from test_storage import as_bytes, content, forge

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    GroupEmbedding,
    GroupNeighbors,
    MeanVector,
    ModelComparisonClassifier,
    ModelComparisonSimilarity,
    TextSearch,
    load_word_vectors,
    make_text_embedding,
    storage,
)
from sklearn_mcsg.cli._corpus import read_corpus, read_pairs
from sklearn_mcsg.text import sources

configuration.set_hypothesis_home_dir(Path(tempfile.gettempdir(), "hypothesis"))  # not the folder of the sources
N_EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "50"))  # files per reader
fuzz = settings(
    max_examples=N_EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

ODD = [b"\0", b"\r", b"\n", b"\t", b" ", b'"', b"'", b",", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1b[2J"]
ODD += [b"nan", b"inf", b"-inf", b"1e999", b"-", b"null", b"true", b"[]", b"{}", b"[" * 3000, b"9" * 5000, b"1e-400"]
ODD += ["\u202e".encode(), "\u2028".encode(), b"\x85", b"\xed\xa0\x80", b"99999999999999999999 3\n", b"1000000000 2\n"]


@st.composite
def changed(draw, valid):
    """Bytes of a valid file with some parts cut out, doubled or replaced."""
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(start + draw(st.sampled_from([0, 1, 8, 10**6])), len(data))))
        put = draw(st.one_of(st.sampled_from(ODD), st.binary(max_size=8), st.just(2 * data[start:stop])))
        data = data[:start] + put + data[stop:]
    return data


def files(valid):
    return st.one_of(changed(valid), st.binary(max_size=200))


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """At most 2 GiB more address space than now: a reader that believes a header gets a MemoryError, which fails."""
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**31, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def opened_or_explained(path):
    """Accept success, and errors of the documented kinds that name the file and are short."""
    message = ""
    try:
        yield
    except (ValueError, OSError) as error:
        message = str(error)
        if path.name not in message:
            raise
    assert len(message) < 1000, "an error is a sentence, not the file"


CORPORA = {
    "txt": [b"one text\nanother text\n\nA third, longer one.\r\n", "日本 text\n".encode()],
    "csv": [b'id,text\n1,"one, text"\n2,two\n', b'text\n"a ""quoted""\ntext"\n', b"a text of one column\nb\n"],
    "tsv": [b"id\ttext\n1\tone text\n2\ttwo\n"],
    "jsonl": [
        rb'{"text": "\u0000 \ud800 a"}',
        b'{"text": "one", "id": 1}\n{"text": "two", "id": null}\n',
        b'"one"\n"two"\n',
    ],
}


@pytest.mark.parametrize("ending", CORPORA)
def test_corpora(tmp_path, ending):
    path = tmp_path / f"corpus.{ending}"

    @fuzz
    @given(files(CORPORA[ending]), st.booleans())
    def run(data, keep_columns):
        path.write_bytes(data)
        with opened_or_explained(path):
            corpus = read_corpus(str(path), keep_columns=keep_columns)
            assert corpus.texts
            assert all(isinstance(text, str) and text.strip() for text in corpus.texts)
            assert not any("\0" in text or not text.encode() for text in corpus.texts)
            assert all(len(values) == len(corpus.texts) for values in corpus.columns.values())

    run()


def parquet_files(folder):
    """Parquet of all kinds of columns, encodings and compressions, as bytes."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = ["one text", "another", None, "日本 text", ""] * 3
    days = pa.array([0, 1, None, -(10**6), 10**6] * 3, pa.date32())
    instants = pa.array([0, 10**18, None, -(10**18), 5] * 3, pa.timestamp("ns", tz="Europe/Berlin"))
    nested = pa.array([[1, 2], [], None, [3], [None]] * 3)
    records = pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}, {"a": 2, "b": "y"}, None] * 3)
    numbers = {"id": list(range(15)), "price": [1.5, float("nan"), None, float("inf"), -0.0] * 3}
    tables = [
        pa.table({"text": texts[:3], "id": [1, 2, 3]}),
        pa.table({"text": pa.array(texts, pa.large_string()), "day": days, "instant": instants, **numbers}),
        pa.table({"text": pa.array(texts).dictionary_encode(), "nested": nested, "record": records}),
        pa.table({"text": pa.array([b"one", b"\xff", None]), "took": pa.array([1, None, 2**62], pa.duration("s"))}),
        pa.table({"text": pa.array([], pa.string())}),
    ]
    found = []
    for i, table in enumerate(tables):
        for options in ({}, {"compression": "none", "write_page_checksum": True}, {"data_page_version": "2.0"}):
            parquet.write_table(table, folder / "valid", **options, row_group_size=4 + i)
            found.append((folder / "valid").read_bytes())
    return found


def test_parquet(tmp_path):
    valid = parquet_files(tmp_path)
    path = tmp_path / "corpus.parquet"

    @fuzz
    @given(files(valid), st.booleans())
    def run(data, keep_columns):
        path.write_bytes(data)
        with opened_or_explained(path):
            corpus = read_corpus(str(path), keep_columns=keep_columns)
            assert all(isinstance(text, str) and text.strip() for text in corpus.texts)
            assert not any("\0" in text or not text.encode() for text in corpus.texts)
            assert all(len(values) == len(corpus.texts) for values in corpus.columns.values())

    run()


def test_pairs(tmp_path):
    path = tmp_path / "pairs.tsv"

    @fuzz
    @given(files([b"gold\ta\tb\n3.5\tone text\tanother\n0\tx\ty\n", b"1\ta\tb\n"]))
    def run(data):
        path.write_bytes(data)
        with opened_or_explained(path):
            pairs = read_pairs(str(path))
            assert np.isfinite(pairs.gold).all()
            assert len(pairs.gold) == len(pairs.texts) == len(pairs.lines)

    run()


@pytest.mark.parametrize("kind", FORMATS)
def test_vectors(tmp_path, kind):
    path = tmp_path / "vectors.txt"

    @settings(fuzz, max_examples=max(10, N_EXAMPLES // 2))
    @given(files([FORMATS[kind]]), st.sampled_from([bytes, gzipped, zipped]), st.sampled_from(["raise", "skip"]))
    def run(data, compressed, on_error):
        path.write_bytes(compressed(data))
        with opened_or_explained(path), warnings_of_skipped_lines(on_error):
            check_vectors(*load_word_vectors(path, on_error=on_error))

    run()


@pytest.mark.parametrize("compressed", [gzipped, zipped])
def test_compressed_vectors(tmp_path, compressed):
    path = tmp_path / "vectors.txt"

    @fuzz
    @given(changed([compressed(FORMATS["glove"])]), st.sampled_from(["raise", "skip"]))
    def run(data, on_error):
        path.write_bytes(data)
        with opened_or_explained(path), warnings_of_skipped_lines(on_error):
            check_vectors(*load_word_vectors(path, on_error=on_error))

    run()


@contextmanager
def warnings_of_skipped_lines(on_error):
    with warnings.catch_warnings():
        if on_error == "skip":
            warnings.filterwarnings("ignore", message="vectors.txt: ", category=UserWarning)
        yield


def check_vectors(words, vectors):
    assert len(words) == len(set(words)) == len(vectors) > 0
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    for word in words:
        word.encode()


MODEL_TEXTS = ["Cats and dogs.", "\ud800 ", "a cat\u0301 " * 50, "1,000 [CLS] [UNK] 猫", ""]


@pytest.fixture
def static_model(tmp_path):
    """The folder of a static model, and how it is opened and used."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    from test_static import save

    folder = save(tmp_path / "model")

    def use_model():
        sources._OPENED.clear()  # files that change within a tick of the clock
        with opened_or_explained(folder), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*have no words")
            (table,) = sources.open_table(folder).tables
            assert np.isfinite(table.pieces.vectors).all()
            assert len(table.pieces.words) == len(table.pieces.vectors) > 0
            beside = [folder, {"cats": [1.0, 2.0], "and": [0.5, 0.5]}]
            for vectors, unit_norm in ((folder, True), (folder, False), (beside, True)):
                vectorizer = EmbeddingVectorizer(vectors, weighting=None, unit_norm=unit_norm)
                groups = vectorizer.fit_transform(MODEL_TEXTS)
                assert np.isfinite(groups.vectors).all()

    return folder, use_model


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_static_models(static_model, name):
    folder, use_model = static_model
    path = folder / name

    @fuzz
    @given(files([path.read_bytes()]))
    def run(data):
        path.write_bytes(data)
        use_model()

    use_model()
    run()


def tokenizers_of_all_models():
    """Tokenizers of every model, as JSON, with all that the files of published ones hold."""
    from test_static import WORDS, tokenizer_of
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    pieces = models.Unigram([("<unk>", 0.0), *((f"\u2581{word}", -1.0 - i) for i, word in enumerate(WORDS[4:]))], 0)
    letters = dict(zip("catdogs", range(7), strict=True)) | {"ca": 7, "do": 8}
    kinds = [tokenizer_of(), *map(Tokenizer, (pieces, models.BPE(letters, [("c", "a"), ("d", "o")])))]
    kinds.append(Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")))
    kinds[1].normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("``", '"')])
    kinds[1].pre_tokenizer, kinds[1].decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    kinds[2].pre_tokenizer = pre_tokenizers.ByteLevel()
    kinds[3].normalizer = normalizers.BertNormalizer()
    kinds[3].pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    return [json.loads(kind.to_str()) for kind in kinds]


def test_tokenizers(static_model):
    folder, use_model = static_model
    valid = tokenizers_of_all_models()
    spare = [value for tree in valid for value in subtrees(tree)]
    spare += [{"type": "FixedLength", "length": 0}, {"type": "Precompiled", "precompiled_charsmap": "AAAA"}]

    @fuzz
    @given(st.data())
    def run(data):
        tree = data.draw(st.sampled_from(valid))
        for _ in range(data.draw(st.integers(0, 3))):
            path = data.draw(st.sampled_from(list(places(tree))))
            tree = put(tree, path, data.draw(st.one_of(json_values(), st.sampled_from(spare))))
        (folder / "tokenizer.json").write_text(json.dumps(tree))
        use_model()

    run()


def test_arrays_of_static_models(static_model):
    folder, use_model = static_model
    from safetensors.numpy import save_file

    rng = np.random.default_rng(0)
    valid = {
        "embeddings": rng.normal(size=(5, 4)),
        "mapping": np.array([0, 1, 2, 3, 4, 4, 0, 2, 1]),
        "weights": np.linspace(0.5, 2, 9),
    }

    @fuzz
    @given(st.data())
    def run(data):
        arrays = dict(valid)
        for name in data.draw(st.lists(st.sampled_from(sorted(valid)), unique=True)):
            arrays[name] = other_array(data, arrays[name])
        kept = data.draw(st.sets(st.sampled_from(sorted(valid)), min_size=1)) | {"embeddings"}
        saved = {name: np.ascontiguousarray(arrays[name]) for name in kept if arrays[name].dtype.kind not in "Uc"}
        save_file(saved, folder / "model.safetensors")
        use_model()

    run()


TEXTS = ["the cat sat", "a dog ran", "cat and dog", "tax of cats", "the the tax", "dog tax"]


def calibrated_index(groups, folder):
    index = GroupNeighbors(n_neighbors=2).fit(groups)
    with pytest.warns(UserWarning, match="p-values will be rough"):
        index.similarity_.calibrate(random_state=0)
    return index


def text_search(groups, folder):
    words = ("the", "cat", "dog", "ran", "tax", "and")
    pipeline = make_text_embedding(vectors=(words, np.random.default_rng(1).normal(size=(6, 4))), random_state=0)
    return TextSearch(pipeline).fit(TEXTS)


def search_of_counted_words(groups, folder):
    words = ["the", "cat", "dog", "ran", "tax", "and"]
    vectorizer = EmbeddingVectorizer((words, np.random.default_rng(1).normal(size=(6, 4))), frequencies=None)
    return TextSearch(make_pipeline(vectorizer, GroupEmbedding(random_state=0)), words=2.0).fit(TEXTS)


def index_of_a_vectors_file(groups, folder):
    (folder / "vectors.txt").write_text("the 1 0 0 0\ncat 0 1 0 1\ndog 0 1 0 0\ntax 0 0 1 2\nran 1 1 0 0\n")
    vectorizer = EmbeddingVectorizer(folder / "vectors.txt", weighting="norm")
    return GroupNeighbors(make_pipeline(vectorizer, MeanVector("distance")), n_neighbors=1).fit(TEXTS)


SAVED = {
    "calibrated": calibrated_index,
    "full": lambda X, _: GroupNeighbors(ModelComparisonSimilarity("full", "tic", output="distance")).fit(X),
    "vmf": lambda X, _: GroupNeighbors(
        ModelComparisonSimilarity("vmf", "bic", output="centered", prior_strength=1.0)
    ).fit(X),
    "baseline": lambda X, _: GroupNeighbors(SIF(1)).fit(X),
    "classifier": lambda X, _: ModelComparisonClassifier().fit(X, ["a", "b", "c"] * 2),
    "landmarks": lambda X, _: GroupNeighbors(GroupEmbedding(method="landmarks", random_state=0), n_neighbors=2).fit(X),
    "candidates": lambda X, _: GroupNeighbors(
        GroupEmbedding(random_state=0), algorithm="approximate", n_neighbors=2
    ).fit(X),
    "texts": text_search,
    "counted words": search_of_counted_words,
    "vectors file": index_of_a_vectors_file,
}


@st.composite
def json_values(draw):
    plain = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.text(max_size=5))
    return draw(
        st.one_of(plain, st.sampled_from([[], {}, [1], {"array": 99}, {"array": -1}, {"list": 1}, {"class": "Groups"}]))
    )


def places(tree, path=()):
    """Paths to all parts of a JSON value."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def subtrees(tree):
    """All parts of a JSON value that hold others."""
    items = tree.values() if isinstance(tree, dict) else tree
    for value in items:
        if isinstance(value, dict | list):
            yield value
            yield from subtrees(value)


def part_of(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def put(tree, path, value):
    if not path:
        return value
    changed = dict(tree) if isinstance(tree, dict) else list(tree)
    changed[path[0]] = put(tree[path[0]], path[1:], value)
    return changed


def use(estimator):
    """Ask an estimator what it was saved for."""
    X = [np.eye(4), np.ones((1, 4))]
    if isinstance(estimator, TextSearch):
        for queries in (None, ["a cat", "tax"]):
            assert np.isfinite(estimator.search(queries, 1).distances).all()
        assert estimator.partial_fit(["dog of cats"]).search(["tax"], 1).indices.shape == (1, 1)
    elif hasattr(estimator, "similarity_") and isinstance(estimator.similarity_, Pipeline):
        assert np.isfinite(estimator.kneighbors(["a cat", "tax"], n_neighbors=1)[0]).all()
        assert estimator.partial_fit(["dog of cats"]).kneighbors(["tax"], n_neighbors=1)[1].shape == (1, 1)
    elif isinstance(estimator, ModelComparisonClassifier):
        assert estimator.predict(X).shape == (2,)
        assert np.isfinite(estimator.predict_proba(X)).all()
    else:
        for queries in (None, X):
            assert np.isfinite(estimator.kneighbors(queries, n_neighbors=1)[0]).all()
        with suppress(NotFittedError):
            assert np.isfinite(estimator.similarity_.pvalue(X, X)).all()


@pytest.mark.filterwarnings("ignore:.*groups are nearer to the reference groups")
@pytest.mark.parametrize("name", SAVED)
def test_indexes(tmp_path, name):
    valid, path = tmp_path / "valid", tmp_path / "index"
    rng = np.random.default_rng(0)
    estimator = SAVED[name]([rng.normal(size=(3, 4)) for _ in range(6)], tmp_path)
    storage.save(valid, estimator)
    before = content(valid)
    every = list(places(before))

    @fuzz
    @given(st.data())
    def run(data):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(valid, path)
        kind = data.draw(st.sampled_from(["json", "bytes", "array", "numbers"]))
        if kind == "json":
            other = part_of(before, data.draw(st.sampled_from(every)))
            value = put(before, data.draw(st.sampled_from(every)), data.draw(st.one_of(json_values(), st.just(other))))
            (path / "index.json").write_text(json.dumps(value))
        elif kind == "bytes":
            file = data.draw(st.sampled_from(sorted(valid.glob("*.*"))))
            (path / file.name).write_bytes(data.draw(changed([file.read_bytes()])))
        else:
            k = data.draw(st.integers(0, len(before["arrays"]) - 1))
            array = np.load(valid / before["arrays"][k]["file"])
            if kind == "array":
                forge(path, k, data.draw(changed([as_bytes(array)])))
            else:
                array = other_array(data, array)
                forge(path, k, as_bytes(array), dtype=array.dtype.str, shape=array.shape)
        with opened_or_explained(path):
            opened = storage.load(path, type(estimator))
            try:
                use(opened)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error

    use(storage.load(valid, type(estimator)))
    run()


def other_array(data, array):
    """An array of other numbers, of another shape or of another kind."""
    kind = data.draw(st.sampled_from(["value", "shape", "dtype", "constant"]))
    if kind == "value" and array.size:
        array = array.copy()
        numbers = [0, 1, -1, 127]
        if array.dtype.kind == "f":
            large = np.finfo(array.dtype).max / 1e8
            numbers += [large, -large, np.nan, np.inf, 1 / large]
        place, number = data.draw(st.integers(0, array.size - 1)), data.draw(st.sampled_from(numbers))
        array.flat[place] = array.dtype.type(number)
    elif kind == "shape":
        shapes = [array[:-1], array[:0], np.concatenate([array, array]), array[None], array.ravel(), array[..., :1]]
        array = data.draw(st.sampled_from(shapes))
    elif kind == "dtype":
        dtype = data.draw(st.sampled_from(["f4", "f8", "i8", "?", "u1", "f2", "U5", "c16"]))
        array = np.ones(array.shape, dtype) if array.dtype.kind == "U" else array.astype(dtype)
    elif kind == "constant":
        array = np.full_like(array, data.draw(st.sampled_from([0, 1, -1])))
    return array
