"""Vectors with a tokenizer of their own: static models in every form, as tables of words."""

import importlib.util
import json
import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_mcsg import EmbeddingVectorizer, GroupNeighbors, make_text_embedding, make_text_similarity, update_index
from sklearn_mcsg.text import _static as static
from sklearn_mcsg.text import share_of_unknown_words, sources

tokenizers = pytest.importorskip("tokenizers")
safetensors = pytest.importorskip("safetensors.numpy")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "##s", "tax", "."]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)
TEXTS = ["Cats and dogs.", "the tax tax", "[SEP] dog"]
KNOWN = [["Cats", "dogs"], ["tax", "tax"], ["dog"]]
PIECES = [["cat", "##s"], ["dog", "##s"], ["tax"], ["tax"], ["dog"]]


def tokenizer_of(words=WORDS, special=4):
    model = tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    if special:
        tokenizer.add_special_tokens(list(words[:special]))
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        tokenizer.enable_padding(length=12)
        tokenizer.enable_truncation(3)
    return tokenizer


class Fast:
    """What a fast tokenizer of transformers has."""

    def __init__(self):
        self.backend_tokenizer = tokenizer_of()

    def __call__(self, text):
        raise AssertionError("only the tokenizer that it holds is asked")


class Model:
    """What a static model of model2vec has."""

    def __init__(self, embedding=VECTORS, **arrays):
        self.embedding, self.tokenizer = embedding, tokenizer_of()
        vars(self).update(arrays)


def ids_of(text):
    known = {word: i for i, word in enumerate(WORDS)}
    return [i for i in tokenizer_of(special=0).encode(text).ids if i != known["[UNK]"]]


def tokens_of(text):
    return [WORDS[i] for i in ids_of(text)]


def save(folder, arrays=None, name="model.safetensors", tokenizer="tokenizer.json"):
    folder.mkdir(exist_ok=True, parents=True)
    tokenizer_of().save(str(folder / tokenizer))
    safetensors.save_file(arrays or {"embeddings": VECTORS}, folder / name)
    return folder


def kinds(folder):
    save(folder / "one")
    save(folder / "two" / "0_StaticEmbedding", {"embedding.weight": VECTORS})
    odd = save(folder / "three", name="a.safetensors", tokenizer="b.json")
    mapping = dict(zip(WORDS, VECTORS, strict=True))
    return {
        "folder": folder / "one",
        "name of a folder": str(folder / "one"),
        "folder of sentence-transformers": folder / "two",
        "tokenizer.json": folder / "one" / "tokenizer.json",
        "model.safetensors": str(folder / "one" / "model.safetensors"),
        "other names": odd / "b.json",
        "two files": (odd / "b.json", str(odd / "a.safetensors")),
        "file and array": (str(odd / "b.json"), VECTORS),
        "file and mapping": (odd / "b.json", mapping),
        "tokenizer and array": (tokenizer_of(), VECTORS),
        "tokenizer and list": (tokenizer_of(), VECTORS.tolist()),
        "tokenizer and mapping": (tokenizer_of(), mapping),
        "transformers": (Fast(), VECTORS),
        "ids": (ids_of, VECTORS),
        "array of ids": (lambda text: np.array(ids_of(text), dtype=int), VECTORS),
        "tokens": (tokens_of, mapping),
        "iterator of tokens": (lambda text: iter(tokens_of(text)), mapping),
        "model": Model(),
    }


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return kinds(tmp_path_factory.mktemp("models"))


def plain(vectors, **params):
    return EmbeddingVectorizer(vectors, weighting=None, unit_norm=False, **params)


def sums(pieces):
    """Vectors of words, given by their pieces."""
    return np.array([VECTORS[[WORDS.index(piece) for piece in word]].sum(axis=0) for word in pieces])


def test_every_kind_gives_the_same_groups(models):
    for kind, source in models.items():
        assert sources.has_static_model(source), kind
        vectorizer = plain(source).fit(TEXTS)
        groups = vectorizer.transform([*TEXTS, "CAT " * 2000, "cats" + "s" * 50])
        assert groups.sizes[3:].tolist() == [2000, 1], f"{kind}: texts are not truncated"
        assert vectorizer.known_words(TEXTS) == KNOWN, kind
        assert groups.labels[:5].tolist() == [word for words in KNOWN for word in words], kind
        assert_allclose(groups.rows()[:5], sums(PIECES), rtol=1e-6, err_msg=kind)
        assert_allclose(groups[4], sums([["cat", *51 * ["##s"]]]), rtol=1e-5, err_msg=f"{kind}: nor are words")
        assert vectorizer.oov_rate_ == pytest.approx(3 / 8), "and, the, SEP"
        assert groups.output_dtype == (np.float64 if kind == "tokenizer and list" else np.float32), kind


def test_special_tokens_are_no_words(models):
    for kind, source in models.items():
        if kind not in ("ids", "array of ids", "tokens", "iterator of tokens"):
            vectorizer = plain(source, tokenizer=str.split).fit(TEXTS)
            assert vectorizer.known_words(["[SEP] dog [UNK] [CLS]x cat"]) == [["dog", "cat"]], kind
            assert vectorizer.oov_rate_ == pytest.approx(3 / 8), "and, the, [SEP]"


def test_recipe_of_every_kind(models, tmp_path):
    words = (["the", "dog", "tax"], VECTORS[:3])
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\ndog 3 1\ntax 0 1\n")
    beside = [[words, models["folder"]], [models["model"], "spelling"], ("wordllama", "glove-6b-50d")]
    for source in [*models.values(), "wordllama", *beside]:
        check_recipe(source, "norm", 0.25, 0.5)
    for source in ("glove-6b-50d", file, dict(zip(*words, strict=True)), words, [words, file], [file]):
        check_recipe(source, ("sif", "norm"), 0.5, 1)
    check_recipe([words, "spelling"], ("sif", "norm"), 0.5, [1, 1, 1, 1, 0, 0, 0, 0])
    check_recipe(["spelling", file, words], ("sif", "norm"), 0.5, 6 * [0] + 6 * [1])


def check_recipe(source, weighting, whiten, spread):
    for make in (make_text_embedding, make_text_similarity):
        auto, same = make(vectors=source)["vectorizer"], make(vectors=source, weighting=weighting)["vectorizer"]
        assert (auto.weighting, same.weighting) == ("auto", weighting)
        assert_array_equal(auto.fit_transform(TEXTS).weights, same.fit_transform(TEXTS).weights)
        other = "norm" if weighting != "norm" else None
        given = make(vectors=source, weighting=other)["vectorizer"].fit_transform(TEXTS).weights
        assert other is None or (given != auto.transform(TEXTS).weights).any()
    embedding = make_text_embedding(vectors=source)["embedding"]
    assert (embedding.likelihood, embedding.order, embedding.whiten) == ("trend", 0.5, whiten)
    assert_array_equal(embedding.spread, spread)
    own = make_text_embedding(vectors=source, whiten=0.125, spread=2, order=1, likelihood="diag")["embedding"]
    assert (own.likelihood, own.order, own.whiten, own.spread) == ("diag", 1, 0.125, 2)


def test_parameters_are_shared_by_clones_and_pickled(models):
    for source in (models["model"], models["tokenizer and array"]):
        vectorizer = plain(source)
        assert clone(vectorizer).vectors is source
        again = pickle.loads(pickle.dumps(vectorizer.fit(TEXTS)))
        assert again.known_words(TEXTS) == KNOWN
    padding = models["model"].tokenizer.padding
    assert padding["length"] == 12, "the tokenizer of the user is left as it was"


QUANTISED = {
    "plain": {},
    "weights": {"weights": np.linspace(0.5, 2, 9)},
    "rows shared by tokens": {
        "vectors": VECTORS[:5],
        "token_mapping": np.array([0, 1, 2, 3, 4, 4, 0, 2, 1]),
        "weights": np.linspace(0.5, 2, 9),
    },
    "integers": {"vectors": (20 * VECTORS).astype(np.int8)},
    "half precision": {"vectors": VECTORS.astype(np.float16)},
}


@pytest.mark.parametrize("arrays", QUANTISED.values(), ids=QUANTISED)
def test_means_are_what_model2vec_encodes(arrays, tmp_path):
    model2vec = pytest.importorskip("model2vec")
    tokenizer = tokenizer_of()
    tokenizer.no_truncation()
    model = model2vec.StaticModel(**{"vectors": VECTORS, "tokenizer": tokenizer, **arrays})
    texts = ["Cats and dogs.", "the tax tax"]
    expected = model.encode(texts)
    model.save_pretrained(tmp_path)
    tolerance = {np.float16: 1e-3}.get(model.embedding.dtype.type, 1e-6)
    for source in (model, tmp_path):
        groups = plain(source, punctuation=True).fit_transform(texts)
        means = [group.astype(float).sum(axis=0) / n for group, n in zip(groups, [5, 2], strict=True)]
        assert_allclose(means, expected, rtol=tolerance, atol=tolerance, err_msg="of cat ##s dog ##s . and tax tax")


def test_unknown_token_of_a_unigram_model():
    vocabulary = [("UNK", 0.0), ("unk", -1.0), ("\u2581cat", -2.0)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(vocabulary, unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    vectorizer = plain((tokenizer, VECTORS[:3])).fit(["cat zebra", "cat"])
    assert vectorizer.known_words(["cat zebra"]) == [["cat"]]
    assert_allclose(vectorizer.transform(["cat zebra"])[0], VECTORS[[2]], rtol=1e-6)
    assert vectorizer.oov_rate_ == pytest.approx(1 / 3)


def test_ids_may_have_gaps():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"cat": 1, "dog": 5}, unk_token="dog?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    assert_allclose(plain((tokenizer, VECTORS)).fit_transform(["dog cat"])[0], VECTORS[[5, 1]], rtol=1e-6)


def test_the_matrix_is_not_copied():
    (table,) = sources.open_table((tokenizer_of(), VECTORS)).tables
    assert np.shares_memory(table.pieces.vectors, VECTORS)
    assert len(table.pieces.words) == len(WORDS) - 4, "without the special tokens"
    assert_allclose(table.vectors_of(["cats", "zebra"]), [VECTORS[4] + VECTORS[6], 0 * VECTORS[0]], rtol=1e-6)
    assert np.shares_memory(table._summands, VECTORS)
    groups = plain((tokenizer_of(), VECTORS)).fit_transform(1000 * TEXTS)
    assert len(groups.vectors) <= 7, "one for each different word"


def test_files_are_read_once_and_again_when_they_change(tmp_path, monkeypatch):
    reads, original = [], static.read_files
    monkeypatch.setattr(static, "read_files", lambda *files: reads.append(files) or original(*files))
    folder = save(tmp_path / "model")
    plain(folder).fit(TEXTS)
    plain((folder / "tokenizer.json", folder / "model.safetensors")).fit(TEXTS)
    assert len(reads) == 1
    save(folder, {"embeddings": VECTORS[:, :3].copy()})
    assert plain(folder).fit_transform(TEXTS).n_features == 3
    assert len(reads) == 2


# WordLlama ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def forget():
    sources._installed.cache_clear()
    yield
    sources._installed.cache_clear()


def test_files_of_an_installed_package(tmp_path, monkeypatch, forget):
    package = tmp_path / "wordllama"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('the package is not imported')")
    save(package / "weights", {"embedding.weight": VECTORS}, "l2_supercat_256.safetensors")
    (package / "tokenizers").mkdir()
    (package / "weights" / "tokenizer.json").rename(package / "tokenizers" / "l2_supercat_tokenizer_config.json")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wordllama", raising=False)
    assert plain("wordllama").fit(TEXTS).known_words(TEXTS) == KNOWN
    sources._installed.cache_clear()
    (package / "weights" / "l2_supercat_256.safetensors").unlink()
    with pytest.raises(ImportError, match=r"the weights that it is installed with.*sklearn-mcsg\[text\]"):
        plain("wordllama").fit(TEXTS)


def test_the_extra_is_named_when_wordllama_is_absent(monkeypatch, forget):
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"vectors='wordllama' needs.*sklearn-mcsg\[text\]"):
        make_text_embedding(vectors="wordllama").fit(TEXTS)


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")
def test_wordllama(forget):
    texts = ["A cat slept on the sofa.", "The kitten naps in an armchair.", "Shares fell on Monday.", "It rains."]
    pipeline = make_text_embedding(vectors="wordllama")
    points = pipeline.fit_transform(texts)
    assert points[0] @ points[1] > points[0] @ points[2]
    assert pipeline[0].known_words(["a Cat\u2603, Zortanol-x"]) == [["a", "Cat", "\u2603", "Zortanol-x"]]
    assert not any("\u2581" in word for words in pipeline[0].known_words(texts) for word in words)
    assert "wordllama" not in sys.modules
    assert len(pickle.dumps(pipeline[0])) < 10_000


# Saving -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "tokenizer.json", "two files", "name of a folder"])
def test_indexes_hold_the_paths(models, kind, tmp_path):
    index = GroupNeighbors(make_text_similarity(vectors=models[kind]), n_neighbors=2).fit(TEXTS)
    index.save(tmp_path / "index")
    again = GroupNeighbors.load(tmp_path / "index")
    assert_array_equal(again.kneighbors(["dog cat"])[1], index.kneighbors(["dog cat"])[1])
    saved = (tmp_path / "index" / "index.json").read_text()
    assert "safetensors" in saved or "one" in saved
    assert "##s" not in saved


@pytest.mark.parametrize("kind", ["model", "tokenizer and array", "ids", "tokens", "transformers"])
def test_objects_are_not_saved(models, kind, tmp_path):
    index = GroupNeighbors(make_text_similarity(vectors=models[kind]), n_neighbors=1).fit(TEXTS)
    with pytest.raises(
        TypeError, match=r"^A saved index cannot hold a \w+\. Give word vectors by name or path, or as a pair"
    ) as caught:
        index.save(tmp_path / "index")
    assert len(str(caught.value)) < 400
    assert not (tmp_path / "index").exists()


def test_an_index_is_rebuilt_when_a_file_of_its_vectors_changes(tmp_path):
    folder = save(tmp_path / "model")
    pair = (folder / "tokenizer.json", folder / "model.safetensors")
    for vectors in (folder, pair):
        similarity = make_text_similarity(vectors=vectors, random_state=0)
        save(folder)
        update_index(tmp_path / "index", similarity, TEXTS)
        assert update_index(tmp_path / "index", similarity, TEXTS).n_reused == 3
        save(folder, {"embeddings": VECTORS[:, :3].copy()})
        assert update_index(tmp_path / "index", similarity, TEXTS).replaced


# Errors -------------------------------------------------------------------------------------------------------------

ROW = r"must hold a row for each of the 9 tokens, got embeddings \(5, 4\)"
ERRORS = {
    "too few rows": ((tokenizer_of(), VECTORS[:5]), ValueError, f"The table {ROW}"),
    "too few rows of a model": (Model(VECTORS[:5]), ValueError, f"The Model {ROW}"),
    "one dimension": ((tokenizer_of(), VECTORS[0]), ValueError, r"got embeddings \(4,\)"),
    "short mapping": (Model(token_mapping=np.zeros(3, int)), ValueError, r"9 tokens, got .*mapping \(3,\)"),
    "row beyond the matrix": (Model(token_mapping=np.full(9, 9)), ValueError, "numbers of its 9 rows, .*got 9 to 9"),
    "negative row": (Model(token_mapping=np.arange(9) - 5), ValueError, "numbers of its 9 rows, .*got -1 to 3"),
    "rows as decimals": (Model(token_mapping=np.arange(9.0)), ValueError, "numbers of its 9 rows, .*got float64"),
    "rows as bits": (Model(token_mapping=np.ones(9, bool)), ValueError, "numbers of its 9 rows, .*got bool"),
    "one number as mapping": (Model(token_mapping=np.int64(3)), ValueError, r"9 tokens, got .*mapping \(\)"),
    "a table as mapping": (Model(token_mapping=np.zeros((9, 2), int)), ValueError, r"9 tokens, got .*mapping \(9, 2\)"),
    "one number as weights": (Model(weights=np.float32(2)), ValueError, r"9 tokens, got .*weights \(\)"),
    "a table as weights": (Model(weights=np.ones((9, 1))), ValueError, r"9 tokens, got .*weights \(9, 1\)"),
    "letters as weights": (Model(weights=np.full(9, "a")), TypeError, "weights of The Model must hold numbers"),
    "weights that overflow": (Model(weights=np.full(9, np.inf)), ValueError, "vector of 'cat' holds NaN or infinity"),
    "a tokenizer that is none": (Model(tokenizer="cats"), TypeError, "one of the package tokenizers, got str"),
    "few weights": (Model(weights=np.ones(3)), ValueError, r"9 tokens, got .*weights \(3,\)"),
    "no vectors": (Model(None), ValueError, "9 tokens, got no arrays"),
    "a number": ((ids_of, 5), ValueError, r"2-d array with one row per token id, got shape \(\)"),
    "letters": ((tokenizer_of(), np.full((9, 2), "a")), TypeError, "must hold numbers"),
    "id out of range": ((lambda text: [3, 9], VECTORS), TypeError, "ids of the 9 rows .*; for the word 'Cats', got 9"),
    "negative id": ((lambda text: [-1], VECTORS), TypeError, "ids of the 9 rows .*; for the word 'Cats', got -1"),
    "tokens, not ids": (
        (str.split, VECTORS),
        TypeError,
        "mapping of tokens to vectors; for the word 'Cats', got 'Cats'",
    ),
    "ids, not tokens": ((ids_of, {"cat": [1.0]}), TypeError, "must return strings; for the word 'Cats', got 4"),
    "a string": ((str.lower, {"cat": [1.0]}), TypeError, "for the word 'Cats', got str, not a list"),
    "slow tokenizer": (
        (lambda text: {"input_ids": [1]}, VECTORS),
        TypeError,
        "for the word 'Cats', got dict, not a list",
    ),
    "no such file": (("a.json", VECTORS), ValueError, r"'a.json' is not an existing file: a pair of paths is"),
    "words of letters": (("cats", VECTORS[:4]), ValueError, "'cats' is not an existing file"),
    "tokenizer and path": ((str.split, __file__), TypeError, "both as paths, or the vectors as an array"),
    "not a tokenizer": ((__file__, VECTORS), ValueError, "test_static.py cannot be read as a tokenizer"),
    "not a model": (__file__.replace(".py", ".json"), ValueError, "neither an installed set .* nor an existing file"),
}


@pytest.mark.parametrize(("vectors", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(vectors, error, message):
    with pytest.raises(error, match=message):
        plain(vectors).fit(TEXTS)


def forged(**parts):
    """A tokenizer with some parts of its file replaced."""
    return json.dumps({**json.loads(tokenizer_of().to_str()), **parts})


WORDPIECE = json.loads(tokenizer_of().to_str())["model"]
FORGED = {  # tokenizers that cannot be opened, or cannot split a text
    "panics when opened": (
        forged(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        r"tokenizer.json cannot be read as a tokenizer: Precompiled",
    ),
    "panics at a text": (forged(pre_tokenizer={"type": "FixedLength", "length": 0}), "tokenizer.json cannot .*'Cats"),
    "no token for unknown words": (
        forged(model={**WORDPIECE, "vocab": {"cat": 4, "dog": 5}}, added_tokens=[], post_processor=None),
        r"tokenizer.json cannot split 'Cats': .*Missing \[UNK\] token",
    ),
    "an id that no model has": (
        forged(model={**WORDPIECE, "vocab": {**WORDPIECE["vocab"], "cat": 2**32 - 1}}),
        "tokenizer.json gives 'cat' the id 4294967295: ids up to",
    ),
    "no tokens": (
        forged(model={**WORDPIECE, "vocab": {}}, added_tokens=[], post_processor=None),
        "tokenizer.json has no tokens",
    ),
}


@pytest.mark.parametrize(("content", "message"), FORGED.values(), ids=FORGED)
def test_tokenizers_that_fail_get_a_sentence(content, message, tmp_path):
    folder = save(tmp_path / "model")
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        plain(folder).fit(TEXTS)
    assert len(str(caught.value)) < 600 + len(str(folder))


def test_interruptions_are_not_explained():
    class Interrupted:
        def encode(self, *args, **kwargs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(static._encoded(Interrupted(), "The tokenizer", ["cat"]))


@pytest.mark.filterwarnings("ignore:.*have no words")
@pytest.mark.parametrize(
    ("text", "tokens"), [("cat \ud800 dog", ["cat", "dog"]), ("cat\udcff", ["cat"]), ("\ud800", [])]
)
def test_halves_of_surrogate_pairs_are_unknown_characters(text, tokens, models):
    for kind in ("folder", "ids", "tokens"):
        assert plain(models[kind]).fit(TEXTS).known_words([text]) == [tokens]
    whole = plain(models["folder"], tokenizer=str.split, punctuation=True).fit(TEXTS)
    assert whole.known_words([text]) == [[] if text == "cat\udcff" else tokens]


def test_errors_of_files(tmp_path):
    two = {"a": VECTORS, "b": VECTORS}
    with pytest.raises(ValueError, match=r"must hold one matrix, .*got a \(9, 4\), b \(9, 4\)"):
        plain(save(tmp_path / "two", two)).fit(TEXTS)
    alone = tmp_path / "alone"
    save(alone)
    (alone / "tokenizer.json").unlink()
    for path in (alone, alone / "model.safetensors"):
        with pytest.raises(ValueError, match=r"must hold tokenizer.json and one .safetensors.*as a pair of paths"):
            plain(path).fit(TEXTS)


@pytest.mark.parametrize("package", ["tokenizers", "safetensors.numpy"])
def test_the_extra_is_named_when_absent(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"sklearn-mcsg\[text\]"):
        plain(save_files(tmp_path / "model")).fit(TEXTS)


def save_files(folder):
    """The folder of a model, whose files are not opened."""
    folder.mkdir()
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / name).touch()
    return folder


def test_padding_with_a_token_of_the_table():
    groups = plain((tokenizer_of(), VECTORS), pad_token=".").fit_transform(["cat.", "zebra", "dogs"])
    assert groups.labels.tolist() == ["cat", ".", ".", "dogs", "."]
    assert_allclose(groups.rows(), sums([["cat"], ["."], ["."], ["dog", "##s"], ["."]]), rtol=1e-6)
    assert groups.sizes.tolist() == [2, 1, 2]
    for source in ((tokenizer_of(), VECTORS), (ids_of, VECTORS)):
        with pytest.raises(ValueError, match="has no vector"):
            plain(source, pad_token="[PAD]").fit(["cat"])


def test_unknown_tokens_are_left_out_and_said_to_be():
    vectorizer = EmbeddingVectorizer((tokenizer_of(), VECTORS), weighting="norm").fit(TEXTS)
    sentence = share_of_unknown_words(vectorizer, vectorizer.oov_rate_)
    assert sentence == "37.5% of the words have no vector and are left out."
    for source, fate in (
        ({"cats": [1.0]}, "have no vector and are compared by their spelling"),
        (
            [(tokenizer_of(), VECTORS), {"cats": [1.0]}],
            "are not in the table of words and are compared by their pieces",
        ),
    ):
        vectorizer = EmbeddingVectorizer(source, weighting="norm").fit(TEXTS)
        sentence = share_of_unknown_words(vectorizer, vectorizer.oov_rate_)
        assert sentence == f"87.5% of the words {fate}."
