"""The command mcsg: what it prints, how it fails, and that it stays quiet when it should."""

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from argparse import Namespace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unicodedata import category

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from wcwidth import wcswidth

import sklearn_mcsg
from sklearn_mcsg import (
    EmbeddingVectorizer,
    GroupNeighbors,
    TextSearch,
    explain_texts,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.cli import _cluster, _compare, main
from sklearn_mcsg.cli._corpus import read_corpus, read_pairs
from sklearn_mcsg.cli._paths import check_paths
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.similarity.pairs import spearman_interval
from sklearn_mcsg.text import KindComparison, KindInCluster, segment_texts, split_sentences

TEXTS = [
    "A cat sat on the mat.",
    "A kitten lay on the rug.",
    "Shares fell on Monday.",
    "Stock markets tumbled.",
    "A cat sat on a mat.",
    'Say "cheese", please.',
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def mcsg(capsys, monkeypatch):
    """Run the command and return what it writes, after asserting its exit code."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, code=0):
        try:
            found = main(list(map(str, arguments)))
        except SystemExit as error:
            found = error.code
        written = capsys.readouterr()
        assert found == code, written.err
        return written

    return run


class Terminal(io.StringIO):
    def isatty(self):
        return True


# The commands -------------------------------------------------------------------------------------------------------


def test_compare(mcsg):
    a, b, c = TEXTS[:3]
    near, far = (json.loads(mcsg("compare", a, other, "--format", "json").out) for other in (b, c))
    assert near["distance"] < far["distance"]
    assert near["pvalue"] < 0.05 < far["pvalue"]
    assert near["pvalue_corpus"] == "the 360 bundled short texts"
    pipeline = make_text_embedding().fit(load_short_texts().data)
    cosine = np.prod(pipeline.transform([a, b]), axis=0).sum()
    assert_allclose([near["similarity"], 1 - near["distance"]], cosine, atol=1e-6)
    assert [word["word"] for word in near["words_a"]] == ["A", "cat", "sat", "on", "the", "mat"]
    for part in ("words_a", "words_b", "pairs"):
        assert_allclose(sum(word["contribution"] for word in near[part]), cosine, atol=1e-6)
    assert {"word_a": "cat", "word_b": "kitten"}.items() <= near["pairs"][0].items()
    table = mcsg("compare", a, b).out
    assert f"{near['similarity']:.3f}" in table
    assert "of random pairs of similar length from the 360 bundled short texts are at least as near" in table
    assert "for      cat ~ kitten +0." in table
    assert "against  " in table
    assert "\x1b" not in table
    (row,) = csv.DictReader(io.StringIO(mcsg("compare", a, b, "--format", "csv").out))
    assert list(row) == ["text_a", "text_b", "similarity", "distance", "pvalue", "order"]
    assert_allclose(float(row["distance"]), near["distance"], rtol=1e-6)


@pytest.mark.parametrize("likelihood", [[], ["--likelihood", "trend"]], ids=["default", "trend"])
@pytest.mark.parametrize("exact", [[], ["--exact"]], ids=["embedding", "exact"])
def test_compare_says_what_is_due_to_order(mcsg, exact, likelihood):
    arguments = "compare", "dog bites man", "man bites dog", *likelihood, *exact
    found = json.loads(mcsg(*arguments, "--format", "json").out)
    (row,) = csv.DictReader(io.StringIO(mcsg(*arguments, "--format", "csv").out))
    table = mcsg(*arguments).out
    if exact:
        assert found["order"] is None
        assert row["order"] == ""
        assert "without the order" not in table
        return
    pipeline = make_text_embedding().fit(load_short_texts().data)
    expected = explain_texts(pipeline, *arguments[1:3])
    assert found["order"] == pytest.approx(expected.order, abs=1e-6)
    assert found["order"] < -0.02
    unordered = found["similarity"] - found["order"]
    assert float(row["order"]) == pytest.approx(found["order"], rel=1e-5)
    without = f"without the order of their words the cosine is {unordered:.3f}"
    assert re.search(rf"order +{found['order']:.3f} +{without}", table)


def test_compare_says_that_files_are_not_read(mcsg, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("old.txt", "new.txt"):
        Path(name).write_text("A text.", encoding="utf8")
    note = "There are files of these names. Here the names are compared; mcsg drift compares files."
    assert note in mcsg("compare", "old.txt", "new.txt").err
    assert note not in mcsg("compare", "old.txt", "A text.").err


def test_compare_exactly(mcsg):
    a, b = TEXTS[:2]
    found = json.loads(mcsg("compare", a, b, "--exact", "--format", "json").out)
    pipeline = make_text_similarity(random_state=0).set_params(similarity__n_references=100)
    pipeline.fit(load_short_texts().data)
    groups = pipeline[:-1].transform([a, b])
    assert_allclose(found["distance"], pipeline[-1].pairwise(groups)[0, 1], rtol=1e-6)
    assert_allclose(found["similarity"], pipeline[-1].pairwise(groups, output="similarity")[0, 1], rtol=1e-6)
    parts = [word["contribution"] for word in found["words_a"] + found["words_b"]]
    assert found["similarity"] - sum(parts) > 0, "what is left is the penalty and the prior"
    assert "pairs" not in found
    table = mcsg("compare", a, b, "--exact").out
    assert f"{found['distance']:.3f}" in table
    assert f"{found['similarity']:.2f}" in table
    assert re.search(r"for +\w+ \([AB]\) \+", table)
    assert (
        "--criterion is for exact comparisons: add --exact" in mcsg("compare", a, b, "--criterion", "tic", code=1).err
    )


@pytest.mark.parametrize("exact", [[], ["--exact"]])
def test_compare_equal_short_and_strange_texts(mcsg, exact, monkeypatch):
    """What is learnt from the bundled texts is the same each time, so it is learnt once for each table of vectors."""
    learnt, learn = {}, _compare._learn

    def learn_once(options):
        if options.vectors not in learnt:
            learnt[options.vectors] = learn(options)
        return learnt[options.vectors]

    monkeypatch.setattr(_compare, "_learn", learn_once)

    def compare(*arguments):
        assert mcsg("compare", *arguments, *exact).out
        return json.loads(mcsg("compare", *arguments, *exact, "--format", "json").out)

    glove = ["--vectors", "glove-6b-50d"]
    for text in ("cat", TEXTS[0], "Ambromycin"):
        for same in ([text, text], [text, text.upper(), *glove]):
            found = compare(*same)
            assert abs(found["distance"]) < 1e-6
            assert found["pvalue"] < 0.002
        written = compare(text, text.upper())
        assert 0.1 < written["distance"] < 0.7, "a static model may distinguish case"
        assert written["pvalue"] < 0.002
    for vectors in ([], glove):
        assert compare("Zortanol", "Ambromycin", *vectors)["distance"] > 0.3
        assert compare("cat", TEXTS[2], *vectors)["pvalue"] > 0.05
    assert len(learnt) == 2


def test_compare_with_a_corpus_and_texts_without_words(mcsg, corpus, tmp_path):
    with_corpus = mcsg("compare", *TEXTS[:2], "--corpus", corpus)
    assert "Only 6 texts: distances are relative to the corpus and unreliable below 10" in with_corpus.err
    assert "p-value            -   needs a corpus of at least 50 different texts" in with_corpus.out
    found = json.loads(mcsg("compare", *TEXTS[:2], "--corpus", corpus, "--format", "json").out)
    assert found["pvalue"] is found["pvalue_corpus"] is None
    assert not mcsg("compare", *TEXTS[:2], "--corpus", corpus, "--quiet").err
    assert "'\u00a7' has no words: there is nothing to compare" in mcsg("compare", "\u00a7", TEXTS[0], code=1).err
    one = tmp_path / "one.txt"
    one.write_text(TEXTS[0])
    assert "one.txt holds one text" in mcsg("compare", *TEXTS[:2], "--corpus", one, code=1).err
    large = tmp_path / "large.txt"
    large.write_text("\n".join(load_short_texts().data * 2))
    assert "from large.txt are at least as near" in mcsg("compare", *TEXTS[:2], "--corpus", large).out


def test_words_without_a_vector_are_told(mcsg, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("the zortanol\nthe cat\n")
    for sentence, vectors in (
        ("25.0% of the words are not in the table of words and are compared by their pieces.", []),
        ("25.0% of the words have no vector and are compared by their spelling.", ["--vectors", "glove-6b-50d"]),
    ):
        assert sentence in mcsg("compare", "the zortanol", "the cat", *vectors).err
        assert not mcsg("compare", "the dog", "the cat", *vectors).err
        assert sentence in mcsg("dedupe", path, "--threshold", 1, *vectors).err
        assert sentence not in mcsg("dedupe", path, *vectors).err, "words are compared, not vectors"


def test_several_tables_with_commas(mcsg, tmp_path):
    def distance(*vectors):
        options = ["--vectors", ",".join(map(str, vectors))] if vectors else []
        return json.loads(mcsg("compare", *TEXTS[:2], *options, "--format", "json", "--quiet").out)["distance"]

    def expected(vectors):
        points = make_text_embedding(vectors=vectors).fit(load_short_texts().data).transform(TEXTS[:2])
        return pytest.approx(1 - points[0] @ points[1], abs=1e-5)

    assert distance() == distance("wordllama", "glove-6b-50d") == expected(["wordllama", "glove-6b-50d"])
    assert distance("glove-6b-50d", "spelling") == expected(["glove-6b-50d", "spelling"])
    one, other = tmp_path / "one.txt", tmp_path / "with,comma.txt"
    one.write_text("the 0.1 0.2\ncat 1 2\nmat 2 1\nrug 2 0.5\n")
    other.write_text("the 0.3 0.2 0.1\nkitten 1 2 3\nmat 2 1 2\n")
    assert distance(other) == expected(other)
    assert distance(one, "glove-6b-50d") == expected([one, "glove-6b-50d"])
    copied = tmp_path / "plain.txt"
    copied.write_text(other.read_text())
    assert distance(one, copied, "spelling") == expected([one, copied, "spelling"])
    for wrong, sentence in (
        ("spelling", "'spelling' stands beside other vectors"),
        (f"{one},nowhere.txt", "'nowhere.txt' is neither an installed set (wordllama, glove-6b-50d) nor an existing"),
        (f"glove-6b-50d,{tmp_path / 'none'}", "none' is neither an installed set"),
    ):
        assert sentence in mcsg("compare", *TEXTS[:2], "--vectors", wrong, code=1).err


def test_an_index_of_several_tables_is_kept(mcsg, corpus, tmp_path):
    tables = ["--vectors", f"{tmp_path / 'one.txt'},glove-6b-50d", "--index", tmp_path / "index"]
    (tmp_path / "one.txt").write_text("the 0.1 0.2\ncat 1 2\nmat 2 1\nrug 2 0.5\n")
    first = mcsg("search", corpus, "cat", *tables)
    assert mcsg("search", corpus, "cat", *tables) == first
    (tmp_path / "one.txt").write_text("the 0.1 0.2\ncat 2 2\nmat 2 1\nrug 2 0.5\n")
    assert "replaced" in mcsg("search", corpus, "cat", *tables).err
    assert "replaced" in mcsg("search", corpus, "cat", "--index", tmp_path / "index").err


def test_colours_only_on_terminals_that_have_them(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    seen = []
    for environment in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Terminal())
            for name, value in environment.items():
                patch.setenv(name, value)
            assert main(["compare", *TEXTS[:2]]) == 0
            seen.append("\x1b[" in sys.stdout.getvalue())
    assert seen == [True, False, False]


def found_by(mcsg, *arguments):
    return json.loads(mcsg("search", *arguments, "--format", "json").out)


def test_search(mcsg, corpus):
    queries = ["my cat is asleep", "the stock exchange"]
    hits = found_by(mcsg, corpus, *queries, "-k", 2)
    assert [hit["rank"] for hit in hits] == [1, 2, 1, 2]
    assert list(hits[0]) == ["query", "rank", "distance", "line", "text", "score", "bm25", "why"]
    assert {hit["line"] for hit in hits[:2]} <= {1, 2, 5}
    assert {hit["line"] for hit in hits[2:]} == {3, 4}
    expected = TextSearch(n_neighbors=2).fit(TEXTS).search(queries)
    for name, values in (
        ("distance", expected.distances),
        ("score", expected.scores),
        ("bm25", expected.word_scores),
        ("line", expected.indices + 1),
    ):
        assert_allclose([hit[name] for hit in hits], values.ravel(), rtol=1e-5)
    assert re.search(r"\bcat \+0\.\d\d", hits[0]["why"])
    rows = csv.DictReader(io.StringIO(mcsg("search", corpus, *queries, "-k", 2, "--format", "csv").out))
    assert [row["why"] for row in rows] == [hit["why"] for hit in hits]


def test_search_with_pvalues(mcsg, tmp_path):
    corpus, queries = tmp_path / "corpus.txt", ["storm in the north", "my puppy is ill"]
    texts = load_short_texts().data[:90]
    corpus.write_text("\n".join(texts), encoding="utf8")
    for exact, name in (([], "embedding"), (["--exact"], "similarity")):
        hits = found_by(mcsg, corpus, *queries, "-k", 2, "--pvalue", *exact)
        assert list(hits[0])[:5] == ["query", "rank", "distance", "pvalue", "line"]
        pipeline = make_text_embedding() if name == "embedding" else make_text_similarity(random_state=0)
        search = TextSearch(pipeline, words=None if exact else 20.0, n_neighbors=2).fit(texts)
        expected = search.search(queries, return_pvalue=True).pvalues
        assert_allclose([hit["pvalue"] for hit in hits], expected.ravel(), atol=2e-3)
    written = mcsg("search", corpus, queries[0], "-k", 2, "--pvalue", "--format", "csv").out
    assert [0 < float(row["pvalue"]) < 0.2 for row in csv.DictReader(io.StringIO(written))] == [True, True]
    table = mcsg("search", corpus, queries[0], "-k", 1, "--pvalue").out
    assert re.search(r"score  distance  pvalue  line\n +\d+\.\d{3} +0\.\d{3}  0\.\d{4} +\d+  ", table)
    assert "by chance, the nearest of 90 texts has 0.011." in table
    assert "pvalue" not in mcsg("search", corpus, queries[0]).out
    corpus.write_text("\n".join(texts[:9]), encoding="utf8")
    assert "Only 9 groups to calibrate with: p-values will be rough" in mcsg("search", corpus, "cat", "--pvalue").err


def test_search_as_a_table(mcsg, corpus):
    query, heading, first, why, *_, distance, score = mcsg("search", corpus, "cat", "-k", 99).out.splitlines()
    assert (query, heading.split()) == ("cat", ["score", "distance", "line"])
    assert first.endswith(TEXTS[0]) or first.endswith(TEXTS[4])
    assert "cat +" in why
    assert why.index("cat") == first.index("A cat"), "reasons stand under the text"
    assert (distance[:9], score[:6]) == ("Distance:", "Score:")
    lines = mcsg("search", corpus, "cat", "--words", "none").out.splitlines()
    assert (lines[1].split(), lines[-1]) == (["distance", "line"], distance)


def test_a_query_before_the_corpus_is_explained(mcsg, corpus):
    assert f"but a file {corpus}: the corpus comes before the queries." in mcsg("search", "cat", corpus, code=1).err
    assert "missing.txt: No such file" in mcsg("search", "missing.txt", "cat " * 1000, code=1).err


def test_words_without_a_vector_are_no_reason_to_be_sure(mcsg, corpus):
    glove = ["--vectors", "glove-6b-50d"]
    assert "No word of the query 'xqzzyt' has a vector" in mcsg("search", corpus, "cat", "xqzzyt", *glove).err
    assert "the query 'cat'" not in mcsg("search", corpus, "cat", *glove).err
    notes = mcsg("compare", "xqzzyt", "a cat", *glove).err
    assert "No word of A has a vector" in notes
    assert "No word of B" not in notes
    assert "No word of" not in mcsg("search", corpus, "cat", "xqzzyt").err, "pieces have vectors"
    assert "No word of" not in mcsg("compare", "xqzzyt", "a cat").err


@pytest.mark.parametrize("arguments", [["--exact"], ["--exact", "--criterion", "bic"]])
def test_exact_search(mcsg, corpus, arguments):
    hits = found_by(mcsg, corpus, "my cat is asleep", "-k", 2, *arguments)
    assert list(hits[0]) == ["query", "rank", "distance", "line", "text"]
    pipeline = make_text_similarity(random_state=0, criterion=arguments[-1].replace("--exact", "aic"))
    expected = pipeline.fit(TEXTS).transform(["my cat is asleep"])[0]
    assert_allclose([hit["distance"] for hit in hits], np.sort(expected)[:2], rtol=1e-5)
    *_, empty, legend = lines = mcsg("search", corpus, "cat", "-k", 99, *arguments).out.splitlines()
    assert len(lines) == 2 + len(TEXTS) + 2
    assert (empty, legend) == ("", "Distance: of the model comparison, centred.")


@pytest.mark.parametrize("words", ["2.5", "none"])
def test_search_by_other_words(mcsg, corpus, words):
    hits = found_by(mcsg, corpus, "the cat fell", "--words", words)
    expected = TextSearch(words=None if words == "none" else float(words)).fit(TEXTS).search(["the cat fell"])
    assert_allclose([hit["line"] - 1 for hit in hits], expected.indices[0])
    assert ("score" in hits[0]) == (words == "2.5")
    assert hits[0]["why"]


@pytest.mark.filterwarnings("ignore:These texts do not look English")
def test_search_in_a_language(mcsg, tmp_path):
    texts = ["Die H\u00e4user sind alt.", "Der Hund schl\u00e4ft.", "Katzen fressen nachts.", "Es regnet."]
    path = tmp_path / "german.txt"
    path.write_text("\n".join(texts), encoding="utf-8")

    def found(*arguments):
        hits = found_by(mcsg, path, "das haus, nicht", *arguments)
        return {hit["line"] for hit in hits if hit["bm25"] > 0}

    assert (found("--language", "german"), found("--language", "none"), found()) == ({1}, set(), set())
    search = TextSearch(language="german").fit(texts).search(["das haus, nicht"], 4)
    hits = found_by(mcsg, path, "das haus, nicht", "--language", "german")
    assert_allclose([hit["score"] for hit in hits], search.scores[0], rtol=1e-5)


def test_phrases_must_occur(mcsg, corpus, tmp_path):
    first = [hit["line"] for hit in found_by(mcsg, corpus, '"ON the" cat', "\u201con the\u201d cat")]
    expected = [i for i, text in enumerate(TEXTS, start=1) if "on the" in text.lower()]
    assert 0 < len(expected) < len(TEXTS)
    assert sorted(first) == sorted(expected * 2)
    exact = found_by(mcsg, corpus, '"on the" cat', "--exact")
    assert sorted(hit["line"] for hit in exact) == expected
    written = mcsg("search", corpus, '"cat the" rug', "cat")
    assert 'No text contains "cat the": nothing is found for that query.' in written.err
    assert written.out.startswith("cat\n")
    together = mcsg("search", corpus, '"cat the" rug', "cat", "--together")
    assert 'No text contains "cat the"' in together.err
    assert together.out == ""
    assert mcsg("search", corpus, '"cat the"', "--format", "json").out == "[]\n"
    header = "query,rank,distance,line,text,score,bm25,why\n"
    assert mcsg("search", corpus, '"cat the"', "--format", "csv").out == header
    examples = tmp_path / "examples.txt"
    examples.write_text('He said "cat the".\n')
    assert len(found_by(mcsg, corpus, "--like", examples)) == 5


def test_examples_as_one_query(mcsg, corpus, tmp_path, monkeypatch):
    examples = tmp_path / "examples.csv"
    examples.write_text("id,body\n1,my cat\n2,stock exchange\n3,\u00a7\n", encoding="utf-8")
    table = tmp_path / "corpus.csv"
    table.write_text("body\n" + "\n".join(TEXTS[:5]), encoding="utf-8")
    search = TextSearch(n_neighbors=5).fit(TEXTS[:5])
    like = found_by(mcsg, table, "--column", "body", "--like", examples)
    assert {hit["query"] for hit in like} == {f"like {examples}"}
    expected = search.search([["my cat", "stock exchange"]])
    assert_allclose([hit["score"] for hit in like], expected.scores[0], rtol=1e-5)
    together = found_by(mcsg, corpus, "my cat", "stock exchange", "--together")
    assert {hit["query"] for hit in together} == {"my cat + stock exchange"}
    everything = found_by(mcsg, table, "--column", "body", "a rug", "--like", examples, "--together")
    expected = search.search([["a rug", "my cat", "stock exchange"]])
    assert_allclose([hit["score"] for hit in everything], expected.scores[0], rtol=1e-5)
    apart = found_by(mcsg, table, "--like", examples, "--column", "body", "a rug", "-k", 1)
    assert [hit["query"] for hit in apart] == ["a rug", f"like {examples}"]
    plain = tmp_path / "examples.txt"
    plain.write_text("my cat\nstock exchange\n")
    assert [hit["score"] for hit in found_by(mcsg, table, "--column", "body", "--like", plain)] == [
        hit["score"] for hit in like
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(examples.read_bytes())))
    read_as = "--column", "body", "--read-as", "csv"
    assert [hit["score"] for hit in found_by(mcsg, table, *read_as, "--like", "-")] == [hit["score"] for hit in like]
    assert "QUERY" in mcsg("search", corpus, code=2).err
    assert "No such file" in mcsg("search", corpus, "--like", tmp_path / "nothing.txt", code=1).err


def test_an_index_that_is_up_to_date_needs_no_look_up(mcsg, corpus, tmp_path, monkeypatch):
    index = tmp_path / "saved"
    first = mcsg("search", corpus, "cat", "-k", 1, "--index", index)
    looked_up = []
    transform = EmbeddingVectorizer.transform
    monkeypatch.setattr(EmbeddingVectorizer, "transform", lambda *args: looked_up.extend(args[1]) or transform(*args))
    monkeypatch.setattr(EmbeddingVectorizer, "fit_transform", lambda *_: pytest.fail("the corpus was looked up"))
    assert mcsg("search", corpus, "cat", "-k", 1, "--index", index) == first
    assert set(looked_up) <= {"cat", TEXTS[0], TEXTS[4]}


@pytest.mark.parametrize("arguments", [[], ["--exact"], ["--words", "none"]])
def test_search_keeps_its_index(mcsg, corpus, tmp_path, monkeypatch, arguments):
    arguments = ["search", corpus, "cat", *arguments]
    index = ["--index", str(tmp_path / "saved")]
    first = mcsg(*arguments, *index)
    assert first.out == mcsg(*arguments).out
    monkeypatch.setattr(GroupNeighbors, "fit", lambda *_: pytest.fail("the index was made anew"))
    assert mcsg(*arguments, *index) == first
    with open(corpus, "a", encoding="utf-8") as file:
        file.write("The cat has come back.\n")
    grown = mcsg(*arguments, *index, "-k", 7)
    assert "had 6 texts" in grown.err
    assert "come back" in grown.out
    monkeypatch.undo()
    assert "replaced" in mcsg(*arguments, *index, "--likelihood", "vmf").err
    fresh = mcsg(*arguments, "--likelihood", "vmf").out
    assert mcsg(*arguments, *index, "--likelihood", "vmf").out == fresh


@pytest.mark.parametrize("index", [None, "{}", '{"name": "my site"}', "["])
def test_search_spares_folders_that_are_no_index(mcsg, corpus, tmp_path, index, monkeypatch):
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "file").write_text("keep me")
    if index is not None:
        (folder / "index.json").write_text(index)
    monkeypatch.chdir(folder)
    for place in (folder, "."):
        assert "nothing was written" in mcsg("search", corpus, "cat", "--index", place, code=1).err
    assert (folder / "file").read_text() == "keep me"


def test_an_index_with_other_files_beside_it_is_not_replaced(mcsg, corpus, tmp_path):
    index = tmp_path / "saved"
    mcsg("search", corpus, "cat", "--index", index)
    (index / "mine.txt").write_text("keep me")
    assert "nothing was written" in mcsg("search", corpus, "cat", "--index", index, "--likelihood", "vmf", code=1).err
    assert (index / "mine.txt").read_text() == "keep me"


def test_texts_without_a_known_word_are_left_out(mcsg, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("\n".join(["\u00a7", *TEXTS, "\u00a7\u00a7"]), encoding="utf8")
    written = mcsg("search", path, "cat")
    assert "2 of 8 texts left out, with no words (the first in line 1)" in written.err
    assert "\u00a7" not in written.out
    assert mcsg("dedupe", path, "--unique").out.count("\u00a7") == 3, "texts are not lost because they have no words"
    assert mcsg("search", path, "cat", "-k", 1, "--format", "json").out.count('"line": 2') == 1
    path.write_text("\u00a7\n\u00a7\u00a7", encoding="utf8")
    assert "has a word" in mcsg("cluster", path, code=1).err


def test_a_query_without_words_does_not_cancel_the_others(mcsg, corpus):
    written = mcsg("search", corpus, "\u00a7", "cat", "-k", 1, "--format", "json")
    assert "The query '\u00a7' has no words" in written.err
    assert {hit["query"] for hit in json.loads(written.out)} == {"cat"}
    assert "No query has a word" in mcsg("search", corpus, "\u00a7", code=1).err


def test_share_of_unknown_words_comes_first(mcsg, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("\n".join([*TEXTS, "the xqzvw"]), encoding="utf8")
    for sentence, vectors in (
        ("of the words are not in the table of words and are compared by their pieces.", []),
        ("of the words have no vector and are compared by their spelling.", ["--vectors", "glove-6b-50d"]),
    ):
        written = mcsg("search", path, "xqzvw", "-k", 1, *vectors)
        assert written.err.splitlines()[0].endswith(sentence)
        assert "the xqzvw" in written.out


def test_equal_texts_are_one_cluster(mcsg, tmp_path):
    path = tmp_path / "equal.txt"
    path.write_text("the same old song\n" * 5)
    assert "5 texts in 1 cluster " in mcsg("cluster", path).out


def test_short_texts_are_not_all_the_same_under_tic(mcsg):
    result = json.loads(
        mcsg("compare", "the cat", "stocks fell sharply", "--exact", "--criterion", "tic", "--format", "json").out
    )
    assert result["distance"] > 0.5


@pytest.fixture(scope="module")
def short_texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "short.jsonl"
    data = load_short_texts()
    lines = (json.dumps({"body": text, "n": i}) for i, text in enumerate(data.data))
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_cluster(mcsg, short_texts, tmp_path):
    report = tmp_path / "report.html"
    written = mcsg("cluster", short_texts, "--column", "body", "--format", "json", "--report", report)
    found = json.loads(written.out)
    assert 6 <= found["n_clusters"] == len(found["clusters"]) <= 18
    sizes = [cluster["size"] for cluster in found["clusters"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == len(found["texts"]) == 360
    assert f"Report: {report}" in written.err
    page = report.read_text(encoding="utf-8")
    assert "<title>Clusters of short.jsonl</title>" in page
    rows = list(csv.DictReader(io.StringIO(mcsg("cluster", short_texts, "--column", "body", "--format", "csv").out)))
    assert list(rows[0]) == ["line", "body", "n", "cluster", "label", "distance", "margin", "second", "stability"]
    assert [int(row["cluster"]) for row in rows] == [text["cluster"] for text in found["texts"]]
    assert [int(row["n"]) for row in rows] == list(range(360))
    for name, convert in (("margin", float), ("second", int)):
        assert [convert(row[name]) for row in rows] == pytest.approx([text[name] for text in found["texts"]], abs=1e-6)
    stability = [found["clusters"][int(row["cluster"]) - 1]["stability"] for row in rows]
    assert [float(row["stability"]) for row in rows] == pytest.approx(stability, abs=1e-6)
    assert all(text["second"] != text["cluster"] for text in found["texts"])
    table = mcsg("cluster", short_texts, "--column", "body").out
    assert "Stability is the share of pairs of texts that are together again in halves" in table
    for cluster in found["clusters"]:
        assert f"{cluster['size']} texts, stability {cluster['stability']:.2f}" in table
        assert ", ".join(cluster["words"]) in table
        assert cluster["label"] == ", ".join(cluster["words"][:3])
        assert all(text["text"] in table for text in cluster["typical"])
        distances = [text["distance"] for text in found["texts"] if text["cluster"] == cluster["cluster"]]
        assert [text["distance"] for text in cluster["typical"]] == sorted(distances)[:3]
    farthest = sorted((text["distance"] for text in found["texts"]), reverse=True)[:3]
    assert [text["distance"] for text in found["outliers"]] == farthest
    assert all(text["text"] in table.split("Far from every cluster")[1] for text in found["outliers"])
    for other in found["alternatives"]:
        assert f"{other['n_clusters']} with {other['option']}" in table


@pytest.mark.parametrize("options", [["-n", 1], ["-n", 3], ["-n", "auto"], ["--resolution", 5]])
def test_number_of_clusters(mcsg, corpus, options):
    found = json.loads(mcsg("cluster", corpus, *options, "--format", "json").out)
    assert options[1] not in (1, 3) or found["n_clusters"] == options[1]
    assert len(found["clusters"]) == found["n_clusters"]
    assert options[1] == "auto" or not found["alternatives"], "of resolution 5, the others find as many"
    assert found["n_clusters"] not in [other["n_clusters"] for other in found["alternatives"]]
    hows = {"auto": "found at resolution 1", 5: "found at resolution 5"}  # too few texts to split
    assert found["how"] == hows.get(options[1], "as requested")
    table = mcsg("cluster", corpus, *options).out
    assert f"{found['n_clusters']} cluster" in table
    if options[1] == 1:
        assert {(text["margin"], text["second"]) for text in found["texts"]} == {(None, None)}
        assert "tability" not in table
        (row, *_) = csv.DictReader(io.StringIO(mcsg("cluster", corpus, *options, "--format", "csv").out))
        assert row["margin"] == row["second"] == ""


def test_too_few_texts_to_split(mcsg, tmp_path):
    for n, how in ((19, "found at resolution 1"), (20, "the number on which random halves of the texts agree")):
        path = tmp_path / f"{n}.txt"
        path.write_text("\n".join(load_short_texts().data[:n]), encoding="utf8")
        assert json.loads(mcsg("cluster", path, "--format", "json").out)["how"] == how


@pytest.fixture(scope="module")
def with_kinds(tmp_path_factory):
    """Texts on two topics: those on law are old, and most of those on football are new."""
    data = load_short_texts()
    path = tmp_path_factory.mktemp("texts") / "kinds.csv"
    topics = np.array(data.target_names)[data.target]
    rows = [(text, topic) for text, topic in zip(data.data, topics, strict=True) if topic in ("law", "football")]
    with open(path, "w", encoding="utf8", newline="") as file:
        records = ([text, "old" if topic == "law" or i % 4 == 0 else "new", i] for i, (text, topic) in enumerate(rows))
        csv.writer(file).writerows([["text", "age", "number"], *records])
    return path


def test_kinds_of_texts_in_clusters(mcsg, with_kinds):
    command = "cluster", with_kinds, "-n", 2, "--by", "age"
    found = json.loads(mcsg(*command, "--format", "json").out)["kinds"]
    assert [row["cluster"] for row in found] == [1, 2]
    assert {row["kind"] for row in found} == {"old", "new"}
    assert all(row["share_adjusted"] < 0.001 for row in found)
    rows = list(csv.DictReader(io.StringIO(mcsg(*command, "--format", "csv").out)))
    assert list(rows[0]) == list(found[0])
    assert [row["words"] for row in rows] == [", ".join(row["words"]) for row in found]
    table = mcsg(*command).out
    assert "p-values are corrected for all 2 comparisons of a cluster and a kind" in table
    for row in found:
        assert re.search(rf"{row['cluster']}  {row['label']} +{row['kind']} ", table)
    assert "<.001" in table


def test_kinds_that_mean_nothing_are_not_listed(mcsg, with_kinds, tmp_path):
    lines = with_kinds.read_text(encoding="utf8").splitlines()
    path = tmp_path / "random.csv"
    kinds = np.random.default_rng(0).choice(["odd", "even"], size=len(lines) - 1)
    path.write_text("\n".join([f"{lines[0]},kind", *map(",".join, zip(lines[1:], kinds, strict=True))]))
    table = mcsg("cluster", path, "-n", 2, "--by", "kind").out
    assert "They show no difference (corrected p above 0.05)." in table
    assert "elsewhere" not in table


@pytest.mark.parametrize(("n_others", "told"), [(1, "1 other shows no"), (2, "2 others show no")])
def test_kinds_without_a_difference_are_counted(capsys, n_others, told):
    rows = [KindInCluster(0, "a", 5, 0.5, 0.1, p, p, p, p, [], []) for p in (0.001, *[0.5] * n_others)]
    clusters = SimpleNamespace(summaries=[SimpleNamespace(title="cats")])
    _cluster._show_kinds(clusters, KindComparison(["a", "b"], ["cats"], rows))
    assert f"{told} difference (corrected p above 0.05)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "column", "message"),
    [
        (lambda line: line, "nothing", "has no column 'nothing' for --by: its columns are text, age, number."),
        (lambda line: line, "number", "Column 'number' has 60 different values, and at most 12 kinds are compared"),
        (lambda line: line.replace(",old,", ",new,"), "age", "Column 'age' has only one kind of text, 'new'"),
        (lambda line: line.replace(",old,", ",,"), "age", "texts, the first at line "),
    ],
)
def test_bad_kinds_get_a_sentence(mcsg, with_kinds, tmp_path, monkeypatch, change, column, message):
    monkeypatch.setattr(_cluster, "cluster_texts", None)  # they are checked before any work
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(map(change, with_kinds.read_text(encoding="utf8").splitlines())))
    assert message in mcsg("cluster", path, "--by", column, code=1).err


def test_lines_of_text_have_no_kinds(mcsg, corpus):
    assert "has no column 'age' for --by: it has no columns" in mcsg("cluster", corpus, "--by", "age", code=1).err


def test_resolution_gives_the_numbers_that_are_named(mcsg, short_texts):
    def found(*options):
        return json.loads(mcsg("cluster", short_texts, "--column", "body", "--format", "json", *options).out)

    for other in found()["alternatives"]:
        assert found(*other["option"].split())["n_clusters"] == other["n_clusters"]


@pytest.mark.parametrize("n_texts", [2, 3])
def test_cluster_few_texts(mcsg, n_texts, tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("\n".join(TEXTS[:n_texts]))
    report = tmp_path / "few.html"
    assert f"{n_texts} text" in mcsg("cluster", path, "--report", report, "--quiet").out
    assert report.stat().st_size > 1000


def test_one_text_has_no_clusters(mcsg, tmp_path):
    path = tmp_path / "one.txt"
    path.write_text(TEXTS[0])
    assert "only one text: clusters need two or more" in mcsg("cluster", path, code=1).err


def test_equal_texts_are_one_cluster_whatever_was_requested(mcsg, tmp_path):
    (tmp_path / "equal.txt").write_text("Cats sleep all day.\n" * 30, encoding="utf8")
    written = mcsg("cluster", tmp_path / "equal.txt", "-n", 2)
    assert written.out.startswith("30 texts in 1 cluster (2 were requested)")
    assert written.err == "mcsg: warning: All groups are equal, so there are fewer clusters than n_clusters=2.\n"


@pytest.fixture(scope="module")
def sequence(tmp_path_factory):
    """Twelve texts on each of three topics, one after the other."""
    texts, topics = load_short_texts(return_X_y=True)
    chosen = [texts[i] for topic in (4, 11, 0) for i in np.flatnonzero(topics == topic)[:12]]
    path = tmp_path_factory.mktemp("texts") / "sequence.txt"
    path.write_text("\n".join(chosen) + "\n", encoding="utf8")
    return str(path)


def test_segment(mcsg, sequence):
    found = json.loads(mcsg("segment", sequence, "-n", 3, "--format", "json").out)
    texts = Path(sequence).read_text(encoding="utf8").splitlines()
    expected = segment_texts(texts, 3)
    assert found["n_segments"] == 3
    assert found["how"] == "as requested"
    assert [(part["first_line"], part["last_line"]) for part in found["segments"]] == [(1, 12), (13, 24), (25, 36)]
    assert [part["words"] for part in found["segments"]] == expected.words
    assert [part["text"] for part in found["segments"]] == texts[::12]
    assert [row["text"] for row in found["sentences"]] == texts
    assert [row["segment"] - 1 for row in found["sentences"]] == expected.labels.tolist()
    table = mcsg("segment", sequence, "-n", 3).out
    assert table.startswith("36 sentences in 3 segments (as requested)\n\nsegment  lines  sentences  p      words ")
    for part in found["segments"]:
        assert part["label"] == ", ".join(part["words"][:3])
        lines = f"{part['first_line']}-{part['last_line']}"
        assert re.search(
            rf"^ +{part['segment']}  {lines} +12 +[\d.]* +{part['label']} +{re.escape(part['text'])}$", table, re.M
        )
    rows = list(csv.DictReader(io.StringIO(mcsg("segment", sequence, "-n", 3, "--format", "csv").out)))
    assert list(rows[0]) == ["line", "text", "segment", "label"]
    assert [row["text"] for row in rows] == texts
    assert [int(row["segment"]) for row in rows] == [row["segment"] for row in found["sentences"]]
    assert [row["label"] for row in rows[::12]] == [part["label"] for part in found["segments"]]


def test_segments_of_one_line_are_numbered_by_sentences(mcsg, sequence, tmp_path):
    texts = Path(sequence).read_text(encoding="utf8").splitlines()
    path = tmp_path / "line.txt"
    path.write_text(" ".join(texts), encoding="utf8")
    n = len(split_sentences(" ".join(texts)))
    found = json.loads(mcsg("segment", path, "--format", "json").out)["segments"]
    table = mcsg("segment", path).out
    assert "begins between: sentences that hold its true beginning" in table
    head, *rows = table.splitlines()[2 : 3 + len(found)]
    assert re.match(r"segment  sentences  p +begins between  words", head)
    ranges = [list(map(int, re.match(r" +\d+  (\d+)-(\d+) ", row).groups())) for row in rows]
    assert [last - first + 1 for first, last in ranges] == [part["sentences"] for part in found]
    assert ranges[0][0] == 1
    assert ranges[-1][1] == n
    for row, (first, _) in zip(rows[1:], ranges[1:], strict=True):
        low, high = map(int, re.search(r"[\d.]{5}  (\d+)-(\d+) ", row).groups())
        assert low <= first <= high
    assert "begins between" not in mcsg("segment", path, "-n", 3).out


@pytest.mark.parametrize("options", [[], ["-n", "auto"]])
def test_number_of_segments_is_found(mcsg, sequence, options):
    found = json.loads(mcsg("segment", sequence, *options, "--format", "json").out)
    assert found["how"] == "found at level 0.05"
    texts = Path(sequence).read_text(encoding="utf8").splitlines()
    expected = segment_texts(texts)
    assert found["n_segments"] == len(expected) > 1
    assert [part["pvalue"] for part in found["segments"]] == [None, *expected.pvalues.tolist()]
    places = [[first + 1, last + 1] for first, last in expected.intervals]
    assert [part["begins_between"] for part in found["segments"]] == [None, *places]
    table = mcsg("segment", sequence, *options).out
    assert "  p      begins between  words" in table
    assert "begins between: lines that hold its true beginning with probability 0.95." in table
    with_level = json.loads(mcsg("segment", sequence, *options, "--level", 0.5, "--format", "json").out)
    assert with_level["how"] == "found at level 0.5"
    assert "--level decides how many segments" in mcsg("segment", sequence, "-n", 3, "--level", 0.2, code=1).err


def test_segment_running_text(mcsg, sequence, tmp_path):
    texts = Path(sequence).read_text(encoding="utf8").splitlines()
    sentences = split_sentences(" ".join(texts))
    path = tmp_path / "running.txt"
    path.write_text("A title\n=======\n\n" + "\n".join(textwrap.wrap(" ".join(texts), 60)), encoding="utf8")
    note = "Many sentences go on in the next line: add --sentences if this is running text."
    assert note in mcsg("segment", path).err
    assert note not in mcsg("segment", sequence).err
    small = tmp_path / "small.txt"
    small.write_text("\n".join(text.lower().rstrip(".") for text in texts), encoding="utf8")
    assert note not in mcsg("segment", small).err, "sentences without capitals and full stops"
    written = mcsg("segment", path, "--sentences", "-n", 3, "--format", "json")
    assert note not in written.err
    found = json.loads(written.out)
    assert [row["text"] for row in found["sentences"]] == ["A title", *sentences]
    lines = path.read_text(encoding="utf8").splitlines()
    for row in found["sentences"]:
        assert row["text"].split()[0] in lines[row["line"] - 1]
    for part, after in pairwise(found["segments"]):
        assert part["last_line"] in (after["first_line"], after["first_line"] - 1)
    assert found["segments"][-1]["last_line"] == len(lines)
    assert sum(part["sentences"] for part in found["segments"]) == len(sentences) + 1
    path.write_text(" ".join(texts), encoding="utf8")
    one_line = json.loads(mcsg("segment", path, "-n", 3, "--format", "json").out)
    assert [row["text"] for row in one_line["sentences"]] == sentences, "a single text is split"
    table = tmp_path / "rows.csv"
    with open(table, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *([i, "\n".join(texts[i : i + 4])] for i in range(0, 36, 4))])
    rows = csv.DictReader(io.StringIO(mcsg("segment", table, "--sentences", "-n", 3, "--format", "csv").out))
    assert rows.fieldnames == ["line", "text", "segment", "label"]
    of_rows = [(i, sentence) for i in range(0, 36, 4) for sentence in split_sentences("\n".join(texts[i : i + 4]))]
    assert [(int(row["line"]), row["text"]) for row in rows] == [(2 + i, sentence) for i, sentence in of_rows]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([], [], "holds no texts"),
        (["", "  "], [], "holds no texts"),
        (TEXTS[:1], [], "There is only one text, but 2 segments of at least 2 texts need 4."),
        (TEXTS[:3], [], "There are only 3 texts, but 2 segments of at least 2 texts need 4."),
        (TEXTS[:6], ["-n", 4], "There are only 6 texts, but 4 segments of at least 2 texts need 8."),
        (TEXTS[:6], ["-n", 10**17], "There are only 6 texts, but 100000000000000000 segments"),
        (["\u00a7"] * 6, [], "No text of PATH has a word"),
        (["\u00a7"] * 6, ["--sentences"], "No text of PATH has a word"),
        (["\u00a7"], [], "No text of PATH has a word"),
        (["\u00a7", *TEXTS[:3], "* * *"], [], "There are only 3 texts"),
    ],
)
def test_what_cannot_be_segmented(mcsg, tmp_path, lines, options, message):
    path = tmp_path / "few.txt"
    path.write_text("\n".join(lines), encoding="utf8")
    assert f"mcsg: error: {message.replace('PATH', str(path))}" in mcsg("segment", path, *options, code=1).err.replace(
        f"{path} holds", "holds"
    )


def test_sentences_without_words_are_left_out_of_segments(mcsg, sequence, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("\u00a7\n" + Path(sequence).read_text(encoding="utf8") + "* * *\n", encoding="utf8")
    written = mcsg("segment", path, "-n", 3, "--format", "json")
    assert "2 of 38 texts left out, with no words (the first in line 1)" in written.err
    parts = json.loads(written.out)["segments"]
    assert [(part["first_line"], part["last_line"]) for part in parts] == [(2, 13), (14, 25), (26, 37)]


def test_a_sentence_of_running_text_without_words_is_left_out(mcsg, tmp_path):
    path, vectors = tmp_path / "talk.txt", tmp_path / "vectors.txt"
    path.write_text("The cat sat. 'Re! The dog ran.\nThe cat ran. The dog sat.\n")
    vectors.write_text("cat 1 0 1\ndog 0 1 1\nran 1 1 0\nsat 1 0 0\n")
    written = mcsg("segment", path, "--sentences", "--vectors", vectors, "--format", "json")
    assert "1 of 5 texts left out, with no words (the first in line 1)" in written.err
    assert [sentence["line"] for sentence in json.loads(written.out)["sentences"]] == [1, 1, 2, 2]


OWN = ["cluster", "line", "text", "id", "id", "mcsg_line"]
KEPT = ["cluster", "line", "text", "id", "id.1", "mcsg_line"]


@pytest.mark.parametrize(
    ("command", "first", "last"),
    [
        ("cluster -n 2", ["mcsg_mcsg_line"], ["mcsg_cluster", "label", "distance", "margin", "second", "stability"]),
        ("search cat -k 6", ["query", "rank", "distance", "mcsg_mcsg_line"], ["score", "bm25", "why"]),
        ("search cat -k 6 --exact", ["query", "rank", "distance", "mcsg_mcsg_line"], []),
        ("dedupe", ["set", "mcsg_mcsg_line"], []),
        ("segment", ["mcsg_mcsg_line"], ["segment", "label"]),
        ("dedupe --threshold 1e-9", ["set", "mcsg_mcsg_line"], []),
        ("dedupe --unique", ["mcsg_mcsg_line"], []),
    ],
)
def test_csv_keeps_columns_whatever_their_names(mcsg, tmp_path, command, first, last):
    path = tmp_path / "table.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([OWN, *(["x", f"line {i}", text, i, -i, ""] for i, text in enumerate(TEXTS))])
    name, *options = command.split()
    rows = csv.DictReader(io.StringIO(mcsg(name, path, *options, "--format", "csv").out))
    assert rows.fieldnames == [*first, *KEPT, *last]
    found = list(rows)
    assert len(found) == {"dedupe": 2, "dedupe --threshold 1e-9": 0, "dedupe --unique": 5}.get(command, 6)
    for row in found:
        i = int(row["mcsg_mcsg_line"]) - 2
        assert [row[column] for column in KEPT] == ["x", f"line {i}", TEXTS[i], str(i), str(-i), ""]
    assert name != "cluster" or {row["mcsg_cluster"] for row in found} == {"1", "2"}


def test_search_keeps_columns_in_json(mcsg, tmp_path):
    own = [
        {"id": 123456789012.5, "n": 7, "ok": True, "text": TEXTS[0]},
        {"id": "x", "n": None, "rank": 3, "tags": ["a", 1.5], "text": TEXTS[1]},
        {"id": 1.25, "text": TEXTS[2]},
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join([*map(json.dumps, own), '{"id": 0.12345678901234567890, "text": "rain"}']))
    hits = {hit["line"]: hit for hit in found_by(mcsg, path, "cat")}
    names = ["query", "mcsg_rank", "distance", "line", "id", "n", "ok", "text", "rank", "tags", "score", "bm25", "why"]
    assert [list(hit) for hit in hits.values()] == [names] * 4
    assert [hits[i]["id"] for i in (1, 2, 3, 4)] == [123456789012.5, "x", 1.25, "0.12345678901234567890"]
    assert [hits[i]["n"] for i in (1, 2, 3, 4)] == [7, None, None, None]
    assert (hits[1]["ok"], hits[2]["rank"], hits[2]["tags"], hits[3]["text"]) == (True, 3, '["a", 1.5]', TEXTS[2])
    table = tmp_path / "corpus.csv"
    table.write_text(f"id,body\n007,{TEXTS[0]}\n1.50,{TEXTS[1]}\n", encoding="utf-8")
    hits = {hit["line"]: hit for hit in found_by(mcsg, table, "cat", "--column", "body")}
    assert (hits[2]["id"], hits[3]["id"], hits[2]["body"]) == ("007", "1.50", TEXTS[0])


def test_dedupe(mcsg, corpus):
    found = mcsg("dedupe", corpus, "--format", "json")
    assert [(record["set"], record["line"]) for record in json.loads(found.out)] == [(1, 1), (1, 5)]
    assert "1 of 6 texts" in found.err
    kept = mcsg("dedupe", corpus, "--unique").out.splitlines()
    assert kept == [text for text in TEXTS if text != TEXTS[4]]
    assert mcsg("dedupe", corpus, "--threshold", "1e-9").out == ""
    assert mcsg("dedupe", corpus, "--threshold", "1e-9", "--format", "json").out == "[]\n"
    assert mcsg("dedupe", corpus, "--threshold", "1e-9", "--format", "csv").out == "set,line,text\n"
    assert "Only 6 texts" in mcsg("dedupe", corpus, "--threshold", "0.1").err
    assert "level=0.001 needs at least 50" in mcsg("dedupe", corpus, "--level", 1e-3, code=1).err


@pytest.mark.parametrize(("option", "kept"), [((), [0, 2]), (("--unique",), [0, 1])])
def test_dedupe_keeps_columns_in_json(mcsg, tmp_path, option, kept):
    own = [{"id": 7, "ok": True, "text": TEXTS[0]}, {"id": 8, "text": TEXTS[1]}, {"id": 9.5, "text": TEXTS[0]}]
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, own)))
    found = json.loads(mcsg("dedupe", path, *option, "--format", "json").out)
    columns = [{name: row[name] for name in ("id", "ok", "text")} for row in found]
    assert columns == [{"ok": None, **own[i]} for i in kept]


def test_dedupe_by_overlap(mcsg, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("The ferry leaves at nine. Bring a ticket.\nThe ferry leaves at 9. Children pay half.\nA cat\n")
    assert mcsg("dedupe", path).out == ""
    assert mcsg("dedupe", path, "--overlap", 0.5).out.count("ferry") == 2
    assert mcsg("dedupe", path, "--overlap", 0.5, "--unique").out.count("\n") == 2


def test_dedupe_against_another_file(mcsg, tmp_path, monkeypatch):
    train, test, plain = tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "test.txt"
    train.write_text("id,review,line\n7,A storm in the north,x\n8,Ferries are late,y\n9,My puppy is ill,z\n")
    test.write_text("review\nother\nMY PUPPY IS ILL!\n\nthe stomr in the north\n")
    plain.write_text("a storm in the NORTH\n")
    column = ["--column", "review"]
    table = mcsg("dedupe", train, "--against", test, *column)
    assert table.out == (
        "train.csv 2  A storm in the north\ntest.csv 5   the stomr in the north\n\n"
        "train.csv 4  My puppy is ill\ntest.csv 3   MY PUPPY IS ILL!\n"
    )
    assert "2 of 3 texts of " in table.err
    found = json.loads(mcsg("dedupe", train, "--against", test, *column, "--format", "json").out)
    assert [list(row.values()) for row in found] == [
        [2, "7", "A storm in the north", "x", 5, "the stomr in the north"],
        [4, "9", "My puppy is ill", "z", 3, "MY PUPPY IS ILL!"],
    ]
    assert list(found[0]) == ["mcsg_line", "id", "review", "line", "against_line", "against_text"]
    rows = list(csv.DictReader(io.StringIO(mcsg("dedupe", train, "--against", test, *column, "--format", "csv").out)))
    assert [(row["mcsg_line"], row["id"], row["line"], row["against_line"]) for row in rows] == [
        ("2", "7", "x", "5"),
        ("4", "9", "z", "3"),
    ]
    kept = mcsg("dedupe", train, "--against", test, *column, "--unique", "--format", "csv").out
    assert [row["id"] for row in csv.DictReader(io.StringIO(kept))] == ["8"]
    against_lines = mcsg("dedupe", train, "--against", plain, *column)
    assert "train.csv 2" in against_lines.out, "a file of lines has no columns"
    assert f"1 of 3 texts of {train} is also in {plain}." in against_lines.err
    nothing = mcsg("dedupe", plain, "--against", train, *column, "--threshold", 0, "--format", "csv", code=1)
    assert "--column is for" in nothing.err
    empty = mcsg(
        "dedupe", test, "--against", test, "--overlap", 1, "--threshold", 0, "--format", "csv", "--quiet", *column
    )
    assert empty.out.count("\n") == 4
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"review\nmy puppy is ill\n")))
    assert "train.csv 4" in mcsg("dedupe", train, "--against", "-", "--read-as", "csv", *column).out


def test_dedupe_at_a_level(mcsg, tmp_path):
    texts = load_short_texts().data
    path = tmp_path / "copies.txt"
    path.write_text("\n".join([*texts, texts[3].upper(), f"{texts[5]} Not."]), encoding="utf8")
    found = json.loads(mcsg("dedupe", path, "--level", 1e-4, "--format", "json").out)
    assert [record["line"] for record in found] == [4, 361]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    gold = [5, 0, 0.5, 4, 5, 0]
    chosen = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (4, 3)]
    lines = (f"{g}\t{TEXTS[a]}\t{TEXTS[b]}" for g, (a, b) in zip(gold, chosen, strict=True))
    path.write_text("score\tfirst\tsecond\n" + "\n".join(lines) + "\n\n")
    return str(path)


def test_evaluate(mcsg, pairs):
    options = ["--likelihood", "diag,vmf", "--criterion", "aic,bayes", "--baseline", "mean,sif"]
    written = mcsg("evaluate", *options, pairs, "--format", "json")
    results = {result["system"]: result for result in json.loads(written.out)}
    exact = {"diag aic centered", "diag bayes centered", "vmf aic centered"}
    assert set(results) == {*exact, "diag embedding", "vmf embedding", "mean", "sif"}
    assert "vmf bayes is left out" in written.err
    for result in results.values():
        assert result["low"] <= result["spearman"] <= result["high"] <= 1
    assert results["diag aic centered"]["spearman"] > 0.8
    assert "spearman" in mcsg("evaluate", pairs).out.splitlines()[0]


def test_evaluate_the_embedding_alone(mcsg, pairs):
    options = ["--output", "embedding", "--criterion", "aic,bayes", "--likelihood", "vmf,vmf", "--baseline", "mean"]
    written = mcsg("evaluate", *options, pairs, "--format", "json")
    assert {result["system"] for result in json.loads(written.out)} == {"vmf embedding", "mean"}
    assert "left out" not in written.err


def test_evaluate_leaves_out_an_embedding_that_wide_vectors_do_not_have(mcsg, pairs):
    written = mcsg("evaluate", "--likelihood", "diag,full", "--output", "embedding", pairs, "--format", "json")
    found = {result["system"] for result in json.loads(written.out)}
    assert "diag embedding" in found
    assert "full embedding" not in found
    assert "full embedding is left out: it takes up to 64 features, not 306." in written.err


def test_evaluate_misses_packages_before_any_work(mcsg, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    assert "needs the package POT" in mcsg("evaluate", "nowhere.tsv", "--baseline", "mean,wmd", code=1).err


def test_evaluate_what_cannot_be_ordered(mcsg, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{i}\tone cat\tone cat\n" for i in range(5)) + "1\t\u00a7\tcat\n", encoding="utf8")
    written = mcsg("evaluate", path, "--format", "json")
    assert {result["spearman"] for result in json.loads(written.out)} == {None}
    assert "1 of 6 pairs left out" in written.err
    assert " - " in mcsg("evaluate", path).out
    path.write_text("3\tcat\tdog\n" * 4)
    assert "all judgements are equal" in mcsg("evaluate", path, code=1).err


def test_rank_correlation_and_its_interval():
    rng = np.random.default_rng(0)
    for x in rng.integers(5, size=(4, 30)).astype(float):
        y = x + rng.normal(scale=2, size=x.shape)
        rho, low, high = spearman_interval(x, y, n_resamples=99, random_state=0)
        assert_allclose(rho, spearmanr(x, y).statistic, rtol=1e-12)
        assert low < rho < high
    assert np.isnan(spearman_interval(np.ones(5), rng.normal(size=5))).all()
    assert np.isfinite(spearman_interval([1, 1, 1, 2], [1, 2, 3, 4], n_resamples=99)).all(), "constant resamples"
    inside = 0
    for i in range(100):
        a = rng.normal(size=200)
        _, low, high = spearman_interval(a, a + rng.normal(size=200), n_resamples=400, random_state=i)
        inside += low < 6 / np.pi * np.arcsin(np.sqrt(0.5) / 2) < high
    assert inside >= 85, "95 are expected, and fewer than 85 in one of 10 000 cases"


# Files --------------------------------------------------------------------------------------------------------------


def test_all_formats_hold_the_same_texts(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"id": range(len(TEXTS)), "text": TEXTS})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("\ufeff" + "\r\n".join(TEXTS), encoding="utf-8", newline="")
    for path in tmp_path.iterdir():
        assert read_corpus(str(path)).texts == TEXTS, path.name
    assert read_corpus(str(tmp_path / "a.csv")).lines == [2, 3, 4, 5, 6, 7]
    assert read_corpus(str(tmp_path / "a.parquet")).lines == [1, 2, 3, 4, 5, 6]


def test_blank_lines_are_left_out_and_counted(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n\n  \ntwo")
    assert read_corpus(str(path)).lines == [1, 4]
    path = tmp_path / "a.csv"
    path.write_text('text,n\n"over\ntwo lines",1\n\nlast,2\n')
    assert list(zip(*(vars(read_corpus(str(path)))[name] for name in ("lines", "texts")), strict=True)) == [
        (2, "over\ntwo lines"),
        (5, "last"),
    ]


def test_json_lines_may_be_strings(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('"one"\n{"only": "two"}\n{"only": null}\n')
    assert read_corpus(str(path)).texts == ["one", "two"]


def columns_of(path):
    return {name: list(values) for name, values in read_corpus(str(path), keep_columns=True).columns.items()}


def test_columns_are_kept_on_request(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"id": ["a", "b", "c"], "text": ["one cat", " ", "two cats"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    for path in map(str, tmp_path.iterdir()):
        assert columns_of(path) == {"id": ["a", "c"], "text": ["one cat", "two cats"]}
        assert read_corpus(path).columns == {}
    (tmp_path / "a.jsonl").write_text('{"text": "one", "n": 1}\n"two"\n')
    assert columns_of(tmp_path / "a.jsonl") == {"text": ["one", "two"], "n": [1, None]}


def test_blank_cells_are_counted_and_unique_rows_keep_their_columns(mcsg, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1,a cat sat\n2,\n3,A cat sat!\n4,shares fell\n")
    written = mcsg("dedupe", path, "--unique", "--format", "csv")
    assert "1 of 4 texts of" in written.err
    assert "blank and left out" in written.err
    assert [row["id"] for row in csv.DictReader(io.StringIO(written.out))] == ["1", "4"]
    nothing = mcsg("dedupe", path, "--against", path, "--unique", "--format", "csv")
    assert nothing.out == "line,id,text\n"


@pytest.mark.parametrize("name", ["old.txt", "old.csv", "old.jsonl"])
def test_lines_that_end_with_carriage_returns_alone(mcsg, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"text\rA cat sat.\rA dog ran.\r")
    error = mcsg("cluster", path, code=1).err
    assert (
        error == f"mcsg: error: {path}: lines end with carriage returns alone. Convert the file, for example with tr "
        "'\\r' '\\n'.\n"
    )


def test_numbers_that_json_lacks_are_texts(mcsg, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a cat sat", "x": Infinity, "y": NaN}\n{"text": "a dog ran", "x": -Infinity, "y": 1.5}\n')
    found = json.loads(mcsg("search", path, "a cat", "--format", "json").out)
    assert [(row["x"], row["y"]) for row in found] == [("Infinity", "NaN"), ("-Infinity", 1.5)]


def test_standard_input_in_any_format(mcsg, monkeypatch):
    forms = {
        "txt": "\n".join(TEXTS),
        "tsv": "text\tid\n" + "\n".join(f"{text.replace(chr(34), '')}\t0" for text in TEXTS),
        "jsonl": "\n".join(json.dumps({"text": text}) for text in TEXTS),
    }
    for form, content in forms.items():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert len(json.loads(mcsg("cluster", "-", "--read-as", form, "--format", "json").out)["texts"]) == 6
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\n")))
    assert "standard input is read as one text per line" in mcsg("cluster", "-", "--column", "text", code=1).err


def test_one_column_with_and_without_a_heading(mcsg, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("review\nA cat sat.\nA dog ran.\n")
    assert read_corpus(str(path)).texts == ["A cat sat.", "A dog ran."]
    assert "its first line 'review' is read as the heading" in mcsg("cluster", path, "-n", 1).err
    path.write_text("A bird flew.\nA cat sat.\nA dog ran.\n")
    assert columns_of(path) == {"text": ["A bird flew.", "A cat sat.", "A dog ran."]}
    assert "its first line is read as a text" in mcsg("cluster", path, "-n", 1).err
    assert read_corpus(str(path), "A bird flew.").texts == ["A cat sat.", "A dog ran."]


NASTY = [
    ["id", "time", "text", "id", "id.1", "two\r\nlines", ""],
    ["123456789012.0", "1700000000.125", "A cat sat on the mat.", "007", "1e5", "a\rb", "\ufeffx"],
    ["12345678901234567890", " 0.10 ", "A kitten\r\nlay\non\rthe rug.", "\r", "\n", "\r\n", 'say "x", y'],
    ["NaN", "-0", "Shares 中 fell 😀 on Monday.", "é", "=1+1", "\t", "\u2028\x85\x0b\x1b"],
    ["", "None", "Stock markets tumbled.", "None", "true", ",", '"'],
]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
@pytest.mark.parametrize(
    "command", ["cluster -n 2", "search cat -k 4", "search cat -k 4 --exact", "dedupe --unique", "segment"]
)
def test_columns_are_kept_byte_for_byte(tmp_path, monkeypatch, command, encoding):
    """Whatever the cells hold, and whatever the encoding and line ends of the output are without us."""
    path = tmp_path / "a.csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(NASTY)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding, newline="\r\n"))
    name, *options = command.split()
    assert main([name, str(path), *options, "--format", "csv", "--quiet"]) == 0
    names, *rows = csv.reader(io.StringIO(out.getvalue().decode("utf-8"), newline=""))
    first = names.index("id")
    assert names[first : first + 7] == ["id", "time", "text", "id.2", "id.1", "two\r\nlines", ""]
    assert sorted(row[first : first + 7] for row in rows) == sorted(NASTY[1:])


def test_numbers_of_json_and_parquet_keep_their_digits(mcsg, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    numbers = {"a": "123456789012.0", "b": "1700000000.125", "c": "123456789012345678901234567890", "d": "1e400"}
    numbers |= {"e": "1.10", "f": "0.12345678901234567890", "g": "true", "h": '[1, "中"]', "i": "-1E-7"}
    numbers["k"] = '{"l": 17000000000000000.125, "m": [1e400, 1.50, null, true]}'
    lines = "{" + ", ".join(f'"{name}": {digits}' for name, digits in numbers.items()) + ', "text": "a cat", "j": null}'
    path = tmp_path / "a.jsonl"
    path.write_text(lines + '\n{"text": "a dog"}\n', encoding="utf-8")
    cats, dogs = csv.DictReader(io.StringIO(mcsg("cluster", path, "-n", 1, "--format", "csv").out))
    assert {name: cats[name] for name in numbers} == numbers
    assert {cats["j"], *(dogs[name] for name in numbers)} == {""}
    columns = {
        "text": ["a cat", "a dog"],
        "float": [123456789012.0, 1700000000.125],
        "single": pa.array([0.1, 16777217.0], pa.float32()),
        "large": pa.array([2**64 - 1, None], pa.uint64()),
        "lists": [[1.5], [2.0, None]],
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    rows = csv.DictReader(io.StringIO(mcsg("cluster", tmp_path / "a.parquet", "-n", 1, "--format", "csv").out))
    assert [[row[name] for name in columns] for row in rows] == [
        ["a cat", "123456789012.0", "0.1", "18446744073709551615", "[1.5]"],
        ["a dog", "1700000000.125", "16777216.0", "", "[2.0, null]"],
    ]


def test_own_numbers_are_rounded(mcsg, corpus):
    rows = csv.DictReader(io.StringIO(mcsg("search", corpus, "cat", "--format", "csv").out))
    assert all(len(row[name].lstrip("-0.").replace(".", "")) <= 7 for row in rows for name in ("distance", "score"))


def test_data_are_in_utf8_and_tables_in_the_encoding_of_the_output(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("Stock markets 中\nStock market 中\n", encoding="utf-8")

    def written(*options):
        out = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1"))
        assert main(["dedupe", str(path), "--unique", "--quiet", *options]) == 0
        return out.getvalue()

    assert "中" in written("--format", "csv").decode("utf-8")
    assert "中" in json.loads(written("--format", "json").decode("utf-8"))[0]["text"]
    assert b"\\u4e2d" in written()


@pytest.mark.parametrize("command", ["dedupe", "search text -k 400 --words none", "cluster -n 2"])
def test_lines_with_keys_of_their_own_take_little_memory(tmp_path, monkeypatch, command):
    """As records of all columns, 1.6 million cells, they take more than 40 MB."""
    path = tmp_path / "a.jsonl"
    lines = ({"text": f"text {i % 7}", **{f"{i} {j}": j for j in range(10)}} for i in range(400))
    path.write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setattr(sys, "stdout", Counted())
    name, *options = [*command.split(), "--vectors", "glove-6b-50d"]  # whose points take little memory
    peaks = []
    for form in ("table", "csv"):  # word vectors are loaded before the first
        tracemalloc.start()
        assert main([name, str(path), *options, "--format", form, "--quiet"]) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sys.stdout.n_written > 400 * 4000
    assert peaks[1] < 20e6


class Counted(io.StringIO):
    n_written = 0

    def write(self, text):
        self.n_written += len(text)
        return len(text)


def test_distinct_names_of_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,a,a,a.1,a,a.1\none cat,1,2,3,4,5\n")
    assert list(columns_of(path).items()) == [
        ("text", ["one cat"]),
        *((name, [str(i)]) for i, name in enumerate(["a", "a.2", "a.1", "a.3", "a.1.1"], start=1)),
    ]
    path.write_text(",".join(["text", *["a"] * 20_000]) + "\n" + ",".join(["one cat", *["1"] * 20_000]))
    assert len(columns_of(path)) == 20_001


def test_values_of_parquet_that_python_has_no_type_for(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    zone, days = pa.timestamp("us", "Mars/Olympus"), pa.array([10**8, 0], pa.int32())
    columns = {
        "text": ["a cat", "a dog"],
        "zone": pa.array([10**15, None], zone),
        "days": days.cast(pa.date32()),
        "time": pa.array([2**62, 0], pa.timestamp("us")),
        "span": pa.array([2**62, 0], pa.duration("s")),
    }
    parquet.write_table(pa.table(columns), path)
    found = columns_of(path)
    assert list(map(str, found["zone"])) == ["2001-09-09 01:46:40+00:00", "None"]
    assert (found["days"][1], found["time"][1][:19]) == ("1970-01-01", "1970-01-01 00:00:00")
    assert "100000000" in found["days"][0]
    assert str(2**62) in found["time"][0]
    assert found["span"] == [str(2**62), "0"]
    parquet.write_table(pa.table({"text": ["a cat"], "zones": pa.array([[10**15]], pa.list_(zone))}), path)
    with pytest.raises(ValueError, match=r"a.parquet: values of the type list<.*Mars/Olympus.*> cannot be read: leave"):
        columns_of(path)
    assert read_corpus(str(path), "text").texts == ["a cat"]


def test_columns_of_parquet_with_one_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(
        pa.Table.from_arrays([pa.array(["a cat"]), *map(pa.array, ([1], [2]))], ["text", "n", "n"]), path
    )
    assert columns_of(path) == {"text": ["a cat"], "n": [1], "n.1": [2]}
    parquet.write_table(pa.Table.from_arrays([pa.array(["a cat"])] * 2, ["text", "text"]), path)
    with pytest.raises(ValueError, match=r"a.parquet: there are 2 columns 'text'"):
        read_corpus(str(path))


def test_long_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\n" + "word " * 100_000 + "\n")
    assert len(read_corpus(str(path)).texts[0]) == 500_000


BROKEN = {
    "missing.txt": (None, "missing.txt: No such file"),
    "empty.txt": (b"\n \n", "empty.txt holds no texts"),
    "empty.csv": (b"", "empty.csv holds no texts"),
    "latin.txt": (b"good\ncaf\xe9\n", "latin.txt, line 2: not UTF-8 (byte 4 of the line). Save the file as"),
    "columns.csv": (b"a,b\n1,2\n", "columns.csv, line 1: there is no column 'text'"),
    "semicolon.csv": (b"id;text\n1;a cat\n", "semicolon.csv, line 1: fields must be separated by ','"),
    "twice.csv": (b"text,text\na,b\n", "twice.csv, line 1: there are 2 columns 'text'"),
    "changes.jsonl": (b'{"text": "a"}\n{"body": "b"}\n', "changes.jsonl, line 2: there is no column 'text'"),
    "whole.json": (b'[{"text": "a"}]', "whole.json: JSON is read line by line"),
    "ragged.csv": (b"text,b\nx,1\nx\n", "ragged.csv, line 3: 2 fields are expected, got 1"),
    "quote.csv": (b'text\n"abc\n', "quote.csv, line 2: not CSV (unexpected end of data). Put a field with quotation"),
    "quote.tsv": (b'n\ttext\n1\t"a" b\n', "quote.tsv, line 2: not TSV ('\\t' expected after '\"'). Put a field"),
    "return.csv": (
        b"text,b\na\rb,c\n",
        "return.csv, line 2: not CSV (new-line character seen in unquoted field).\n",
    ),
    "half.jsonl": (b'{"text": "a"}\n{"text": \n', "half.jsonl, line 2: not JSON"),
    "number.jsonl": (b'{"text": "a"}\n{"text": 3}\n', "number.jsonl, line 2: a text is expected, got 3"),
    "lacks.jsonl": (b'{"text": "a"}\n{"a": 1, "b": 2}\n', "lacks.jsonl, line 2: there is no column 'text'"),
    "deep.jsonl": (b"[" * 200_000, "deep.jsonl, line 1: JSON nested too deeply"),
    "digits.jsonl": (
        b'{"text": "a", "n": ' + b"9" * 100_000 + b"}",
        "digits.jsonl, line 1: not JSON (a number of too many digits)",
    ),
    "list.jsonl": (
        b'{"text": [' + b"1, " * 9999 + b"1]}",
        "list.jsonl, line 1: a text is expected, got [1, 1, 1",
    ),
    "wide.csv": (b"a," * 9999 + b"b\n", "wide.csv, line 1: there is no column 'text'; there are 'a', 'a', 'a'"),
    "escaped.jsonl": (rb'"a\u0000"', "escaped.jsonl, line 1: the text holds a NUL character"),
    "surrogate.jsonl": (b'"a"\n"\\ud83d"', "surrogate.jsonl, line 2: half of a surrogate pair"),
    "nul.txt": ("one\ntwo\n".encode("utf-16-le"), "nul.txt, line 1: a NUL character. A file in UTF-16"),
    "table.xlsx": (b"PK\x03\x04\x14\x00\x06\x00", "table.xlsx: not a file of text. Save its texts as .txt or .csv"),
    "paper.pdf": (b"%PDF-1.7\n%\xe2\xe3\n", "paper.pdf: not a file of text"),
    "packed.csv": (b"\x1f\x8b\x08\x00", "packed.csv: not a file of text"),
    "junk.parquet": (b"junk", "junk.parquet: not Parquet"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_corpora(mcsg, tmp_path, name):
    content, message = BROKEN[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    error = mcsg("dedupe", tmp_path / name, code=1).err
    assert message in error
    assert len(error) < 1000
    assert error.startswith("mcsg: error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"5\ta\tb\n4\ta\n", "line 2: 3 fields (score, text, text) with tabs between them are expected, got 2"),
        (b"5\ta\tb\nx\ta\tb\n", "line 2: the first field must be a number, got 'x'"),
        (b"5\ta\tb\nnan\ta\tb\n", "line 2: the first field must be a number, got 'nan'"),
        (b"gold\ta\tb\n5\ta\tb\n", "holds 1 pair:"),
        (b"\n", "holds 0 pairs:"),
    ],
)
def test_broken_pairs(mcsg, tmp_path, content, message):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    assert message in mcsg("evaluate", path, code=1).err


def test_pairs(pairs):
    found = read_pairs(pairs)
    assert found.gold.tolist() == [5, 0, 0.5, 4, 5, 0]
    assert found.texts[0] == (TEXTS[0], TEXTS[1])


# Mistakes and interruptions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "COMMAND"),
        (["compare", "only one"], 2, "TEXT"),
        (["search", "CORPUS", "cat", "-k", "0"], 2, "expected a positive whole number"),
        (["search", "CORPUS", "cat", "--criterion", "bic"], 1, "--criterion is for exact comparisons: add --exact"),
        (["search", "CORPUS", "cat", "--exact", "--words", "2"], 1, "--words has no effect with --exact: leave"),
        (["search", "CORPUS", "cat", "--exact", "--language", "german"], 1, "--language has no effect with"),
        (["search", "CORPUS", "cat", "--words", "none", "--language", "none"], 1, "--language has no effect with"),
        (["search", "CORPUS", "cat", "--language", "klingon"], 1, "'klingon' is not known: choose one of arabic"),
        (["search", "CORPUS", "cat", "--words", "share"], 2, "expected a number above 0, or none, got 'share'"),
        (["search", "CORPUS", "cat", "--words", "0"], 2, "expected a number above 0, or none, got '0'"),
        (["evaluate", "CORPUS", "--likelihood", "diag,gamma"], 2, "'gamma' (choose from diag, spherical, full, "),
        (["cluster", "CORPUS", "-n", "many"], 2, "expected a number above 0, or auto"),
        (["cluster", "CORPUS", "-n", "7"], 1, "holds 6 texts"),
        (["cluster", "CORPUS", "--resolution", "0"], 2, "expected a number above 0"),
        (["cluster", "CORPUS", "--resolution", "2", "-n", "3"], 1, "leave it or -n out"),
        (["cluster", "CORPUS", "--jobs", "100000"], 2, "expected at most 1024 threads"),
        (["cluster", "CORPUS", "--report", "."], 1, "is a folder"),
        (["cluster", "CORPUS", "--report", "nowhere/report.html"], 1, "the folder does not exist"),
        (["cluster", "CORPUS", "--likelihood", "gamma"], 2, "'diag'"),
        (
            ["search", "CORPUS", "cat", "--exact", "--likelihood", "vmf", "--criterion", "bayes"],
            1,
            "choose among the criteria 'aic', 'tic', 'bic'",
        ),
        (["search", "CORPUS", "cat", "--column", "text"], 1, "--column is for"),
        (["search", "CORPUS", "cat", "--vectors", "no such"], 1, "neither an installed set"),
        (["dedupe", "CORPUS", "--level", "2"], 2, "expected a number between 0 and 1"),
        (["dedupe", "CORPUS", "--threshold", "nan"], 2, "expected a distance from 0 to 2"),
        (["dedupe", "CORPUS", "--threshold", "5"], 2, "expected a distance from 0 to 2"),
        (["dedupe", "CORPUS", "--overlap", "2"], 2, "expected a share above 0, at most 1, got '2'"),
        (["dedupe", "CORPUS", "--overlap", "0"], 2, "expected a share above 0, at most 1, got '0'"),
        (["dedupe", "CORPUS", "--against", "nowhere"], 1, "nowhere: No such file or directory"),
        (["dedupe", "-", "--against", "-"], 1, "input can be read once: name a file for the corpus or --against."),
        (["drift", "-", "-"], 1, "Standard input can be read once: name a file for the corpus or the second corpus."),
        (["search", "-", "--like", "-"], 1, "Standard input can be read once: name a file for the corpus or --like."),
        (["dedupe", "CORPUS", "--level", "0.1", "--threshold", "1"], 2, "not allowed with"),
        (["dedupe", "CORPUS", "--jobs", "0"], 2, "expected a number of threads"),
        (["dedupe", "CORPUS", "--jobs", "9" * 5000], 2, "expected a number of threads, or -1 for all cores, got '9999"),
        (["search", "CORPUS", "cat", "-k", "9" * 5000], 2, "expected a positive whole number, got '9999"),
        (["dedupe", "CORPUS", "--likelihood", "vmf"], 1, "are for embeddings: add --threshold or --level"),
        (["dedupe", "CORPUS", "--weighting", "none"], 1, "are for embeddings: add --threshold or --level"),
        (["compare", "a cat", "a dog", "--column", "text"], 1, "--column and --read-as are for the file of --corpus"),
        (["compare", "a cat", "a dog", "--read-as", "csv"], 1, "--column and --read-as are for the file of --corpus"),
        (["segment", "CORPUS", "-n", "0"], 2, "expected a number above 0, or auto"),
        (["segment", "CORPUS", "-n", "9" * 5000], 2, "expected a number above 0, or auto, got '9999"),
        (["segment", "CORPUS", "--column", "text"], 1, "--column is for"),
        (["segment", "nowhere.txt"], 1, "nowhere.txt: No such file"),
        (["segment", "CORPUS", "--criterion", "bic"], 2, "unrecognized arguments"),
        (["cluster", "CORPUS", "-n", "9" * 5000], 2, "expected a number above 0, or auto, got '9999"),
    ],
)
def test_mistakes(mcsg, corpus, arguments, code, message):
    written = mcsg(*(corpus if argument == "CORPUS" else argument for argument in arguments), code=code)
    assert message in written.err
    assert "Traceback" not in written.err
    assert len(written.err) < 1500
    assert not written.out


# Outputs that are inputs ----------------------------------------------------------------------------------------------


@pytest.fixture
def places(corpus, tmp_path):
    """Names of one corpus, and files that are read with it."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("cat 1 2\nmat 2 1\nshares 4 5\n")
    model = tmp_path / "model"
    model.mkdir()
    for name in ("tokenizer.json", "model.safetensors"):
        (model / name).touch()
    folder = tmp_path / "folder"
    folder.mkdir()
    os.link(corpus, folder / "0123456789abcdef-0.npy")
    hard, soft = tmp_path / "hard.txt", tmp_path / "soft.txt"
    os.link(corpus, hard)
    soft.symlink_to(hard)
    named = {"CORPUS": corpus, "HARD": hard, "SOFT": soft, "DETOUR": folder / ".." / "hard.txt", "VECTORS": vectors}
    named |= {"MODEL": model, "TOKENIZER": model / "tokenizer.json", "MATRIX": model / "model.safetensors"}
    return {name: str(path) for name, path in named.items()} | {"FOLDER": str(folder)}


def content_of(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        ("cluster CORPUS --report CORPUS", "The corpus", "--report"),
        ("cluster CORPUS --report HARD", "The corpus", "--report"),
        ("cluster CORPUS --report SOFT", "The corpus", "--report"),
        ("cluster SOFT --report DETOUR", "The corpus", "--report"),
        ("cluster CORPUS --vectors VECTORS --report VECTORS", "--vectors", "--report"),
        ("cluster CORPUS --vectors MODEL --report TOKENIZER", "--vectors", "--report"),
        ("cluster CORPUS --vectors glove-6b-50d,VECTORS --report VECTORS", "--vectors", "--report"),
        ("cluster CORPUS --vectors MODEL,VECTORS --report MATRIX", "--vectors", "--report"),
        ("cluster CORPUS --vectors TOKENIZER --report MATRIX", "--vectors", "--report"),
        ("search CORPUS cat --index CORPUS", "The corpus", "--index"),
        ("search SOFT cat --index FOLDER", "The corpus", "--index"),
        ("search VECTORS --like HARD --index FOLDER", "--like", "--index"),
    ],
)
def test_an_output_that_is_an_input_is_refused(mcsg, places, tmp_path, arguments, first, second):
    before = content_of(tmp_path)
    named = (",".join(places.get(name, name) for name in argument.split(",")) for argument in arguments.split())
    error = mcsg(*named, code=1).err
    assert f"mcsg: error: {first} and {second} are one file, {tmp_path}" in error
    assert error.endswith(": write to another one.\n")
    assert content_of(tmp_path) == before


@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("cluster CORPUS -n 2", "The corpus and standard output are one file, CORPUS"),
        ("cluster - -n 2", "The corpus and standard output are one file:"),
        ("search VECTORS cat --like CORPUS", "--like and standard output are one file, CORPUS"),
        ("compare cat dog --corpus CORPUS", "The corpus and standard output are one file, CORPUS"),
        ("segment CORPUS", "The corpus and standard output are one file, CORPUS"),
        ("evaluate CORPUS", "The file of pairs and standard output are one file, CORPUS"),
        ("cluster VECTORS --report CORPUS", "--report and standard output are one file, CORPUS"),
        ("cluster VECTORS --report /dev/stdout", "--report and standard output are one file, /dev/stdout"),
        ("search VECTORS cat --index FOLDER", "--index and standard output are one file, FOLDER"),
    ],
)
def test_standard_output_that_is_used_otherwise_is_refused(places, monkeypatch, tmp_path, capsys, arguments, message):
    before = content_of(tmp_path)
    with open(places["HARD"], "a") as out, open(places["SOFT"]) as given:
        places["/dev/stdout"] = f"/dev/fd/{out.fileno()}"
        for name, path in places.items():
            message = message.replace(name, path)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stdin", given)
        assert main([places.get(argument, argument) for argument in arguments.split()]) == 1
    assert capsys.readouterr().err.startswith(f"mcsg: error: {message}")
    assert content_of(tmp_path) == before


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_pipes_and_devices_may_be_read_and_written(tmp_path):
    """As by process substitution, and on a terminal."""
    (tmp_path / "report.html").touch()
    command = f"{shlex.quote(sys.executable)} -m sklearn_mcsg cluster <(printf 'a cat\\na dog\\nshares\\n') -n 2"
    command += " --report >(cat > report.html) --quiet --format csv | cat; wait"
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, b"")
    assert len(result.stdout.splitlines()) == 4
    assert check_paths(Namespace(corpus=os.devnull, report=os.devnull, vectors="glove-6b-50d")) is None


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_links_to_themselves_are_said(mcsg, corpus, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for arguments in (["cluster", corpus, "--report", loop], ["search", corpus, "cat", "--index", loop]):
        assert mcsg(*arguments, code=1).err == f"mcsg: error: {loop}: the link leads back to itself.\n"


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_no_file_handles_are_said(corpus, tmp_path):
    pytest.importorskip("pyarrow")
    table = tmp_path / "a.parquet"
    table.touch()
    code = "import os, resource, sys\nfrom sklearn_mcsg.cli import main, _options, _paths\nimport pyarrow.parquet\n"
    code += "_, limit = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
    code += "used = os.dup(0)\nresource.setrlimit(resource.RLIMIT_NOFILE, (used, limit))\n"
    code += "for path in sys.argv[1:]:\n    main(['dedupe', path])\n"
    result = subprocess.run(
        [sys.executable, "-c", code, corpus, str(table)], capture_output=True, text=True, timeout=60
    )
    reason = "no file handles are left: close files, or raise the limit (ulimit -n)."
    assert result.stderr.splitlines() == [f"mcsg: error: {path}: {reason}" for path in (corpus, table)]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read and write everything")
def test_no_permission_is_said(mcsg, corpus, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    report = folder / "report.html"
    report.touch(0o400)
    assert (
        f"{report}: there is no permission to write to it." in mcsg("cluster", corpus, "--report", report, code=1).err
    )
    folder.chmod(0o500)
    other = folder / "other.html"
    assert f"{other}: there is no permission to write to its" in mcsg("cluster", corpus, "--report", other, code=1).err
    os.chmod(corpus, 0)
    assert f"{corpus}: Permission denied." in mcsg("cluster", corpus, code=1).err
    folder.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_parquet_from_a_pipe(mcsg, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    assert "a.parquet: Parquet cannot be read from a pipe" in mcsg("dedupe", path, code=1).err
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("arguments", [["compare", "TEXT", "cat"], ["compare", "cat", "TEXT"], ["search", "x", "TEXT"]])
def test_texts_that_are_not_unicode_are_refused(mcsg, arguments):
    text = os.fsdecode(b"caf\xe9") if os.name == "posix" else "caf\udce9"
    error = mcsg(*(text if argument == "TEXT" else argument for argument in arguments), code=2).err
    assert "expected a text in the encoding of the locale, as UTF-8, got 'caf\\udce9'" in error


def readme_commands():
    readme = Path(__file__).parents[1] / "README.md"
    blocks = re.findall("```sh\n(.*?)```", readme.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("mcsg ")]


@pytest.mark.parametrize("line", readme_commands())
def test_commands_of_the_readme(mcsg, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sklearn_mcsg").symlink_to(Path(sklearn_mcsg.__file__).parent)
    assert mcsg(*shlex.split(line)[1:]).out


def test_help_has_examples(mcsg):
    assert "examples:" in mcsg("--help").out
    for command in ("compare", "search", "cluster", "dedupe", "segment", "drift", "evaluate"):
        text = mcsg(command, "--help").out
        assert f"\n  mcsg {command} " in text.split("examples:")[1]
        assert max(map(len, text.splitlines())) <= 100


def test_control_characters_do_not_reach_the_terminal(mcsg, tmp_path):
    path = tmp_path / "evil.txt"
    path.write_text("\x1b[2J a cat\tsat \x07 here\u202e\nanother cat\n", encoding="utf-8")
    for arguments in (["search", path, "cat \x1b[31m"], ["cluster", path, "-n", 1], ["dedupe", path, "--threshold", 2]):
        out = mcsg(*arguments).out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", out)
    assert "a cat sat  here" in mcsg("search", path, "cat").out


EVERY_CONTROL = "".join(
    c for c in map(chr, range(1, 0x110000)) if category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\t\n\r\u200d"
)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
@pytest.mark.parametrize(
    "command", [["cluster", "-n", "1"], ["search", "cat"], ["dedupe", "--threshold", "2"], ["segment"]]
)
def test_no_control_character_reaches_a_terminal_in_any_format(tmp_path, monkeypatch, command, form):
    path = tmp_path / "evil.csv"
    lines = [["text", f"a{EVERY_CONTROL}b"], [f"a cat {EVERY_CONTROL} sat", f"{EVERY_CONTROL} x"], ["two cats", ""]]
    lines += [["a dog", ""], ["two dogs", ""]]
    with open(path, "w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows(lines)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert main([command[0], str(path), *command[1:], "--format", form, "--quiet"]) == 0
    assert not set(EVERY_CONTROL) & set(sys.stdout.getvalue())
    if form == "json":
        json.loads(sys.stdout.getvalue())


def test_a_pipe_gets_texts_as_they_are(mcsg, tmp_path):
    path = tmp_path / "evil.txt"
    texts = ["a \x1b[31m cat", "a dog \u202e here"]
    path.write_text("\n".join(texts), encoding="utf8")
    rows = csv.DictReader(io.StringIO(mcsg("cluster", path, "-n", 1, "--format", "csv").out))
    assert [row["text"] for row in rows] == texts
    found = json.loads(mcsg("cluster", path, "-n", 1, "--format", "json").out)
    assert sorted(text["text"] for text in found["clusters"][0]["typical"]) == texts


def test_names_of_files_are_escaped_in_errors_and_notes(mcsg, tmp_path):
    assert "evil\\x1b[31m.txt: No such file" in mcsg("cluster", tmp_path / "evil\x1b[31m.txt", code=1).err
    path = tmp_path / "evil\x1b[31m.csv"
    path.write_text("heading\na cat\na dog\n")
    assert "evil\\x1b[31m.csv has one column" in mcsg("cluster", path, "-n", 1).err


def test_errors_are_one_line_whatever_the_arguments_hold(mcsg, corpus, tmp_path):
    evil = "evil\x1b[31m\u202e\nmcsg: error: forged"
    error = mcsg("cluster", tmp_path / evil, code=1).err
    assert error.count("\n") == 1
    assert error.endswith("evil\\x1b[31m\\u202e mcsg: error: forged: No such file or directory.\n")
    for arguments in ([evil], [f"--{evil}"], [f"--r={evil}"]):
        error = mcsg("cluster", corpus, *arguments, code=2).err
        assert "evil\\x1b[31m\\u202e mcsg: error: forged" in error
        assert not {"\x1b", "\u202e"} & set(error)


def test_warnings_are_escaped(mcsg, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("a cat\na dog\n")

    def lines(path):
        warnings.warn("evil \x1b[31m", stacklevel=1)
        return [(1, "a cat"), (2, "a dog")]

    monkeypatch.setattr("sklearn_mcsg.cli._corpus._lines", lines)
    assert "mcsg: warning: evil \\x1b[31m" in mcsg("cluster", path, "-n", 1).err


def test_a_damaged_page_of_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": ["one text", "another"]}), path)
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 20 + data[24:])
    with pytest.raises(ValueError, match=r"a.parquet: not Parquet \(.*\)"):
        read_corpus(str(path))


def start(*arguments, **options):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "sklearn_mcsg", *map(str, arguments)]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return subprocess.Popen(command, **pipes, env=environment, **options)


def test_standard_input_and_broken_pipe():
    with start("search", "-", "cat", "-k", "1000", "--quiet") as process:
        process.stdin.write("\n".join(f"A cat sat on mat {i} {'-' * 200}" for i in range(1000)).encode())
        process.stdin.close()
        assert process.stdout.readline().strip() == b"cat"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141, "as a shell reports a program that SIGPIPE ends"


def test_a_closed_pipe_does_not_lose_the_report(tmp_path):
    report = tmp_path / "report.html"
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    with start("cluster", tmp_path / "texts.txt", "-n", "2", "--report", report, "--quiet") as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
    assert report.stat().st_size > 1000


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_closed_standard_output_is_said():
    command = f"{shlex.quote(sys.executable)} -m sklearn_mcsg compare cat dog >&-"
    result = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=60)
    assert result.returncode == 1
    assert result.stderr == b"mcsg: error: standard output is closed.\n"


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_closed_standard_error_takes_the_notes_with_it(corpus):
    command = f"{shlex.quote(sys.executable)} -m sklearn_mcsg"
    for arguments, code in ((f"dedupe {shlex.quote(corpus)} --unique --threshold 0", 0), ("dedupe nowhere", 1)):
        result = subprocess.run(["sh", "-c", f"{command} {arguments} 2>&-"], stdout=subprocess.PIPE, timeout=60)
        assert result.returncode == code
        assert result.stdout.decode().splitlines() == ([] if code else TEXTS)


def test_a_closed_standard_input_is_said(mcsg, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    error = mcsg("cluster", "-", code=1).err
    assert error == "mcsg: error: Standard input is closed: name a file, or pass texts through a pipe.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_under_standard_output_is_said(corpus):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "sklearn_mcsg", "dedupe", corpus, "--unique", "--quiet"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert result.returncode == 1
    assert result.stderr == b"mcsg: error: Standard input or output: the disk is full.\n"


def test_an_index_that_does_not_fit_on_the_disk_is_named(mcsg, corpus, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError("250000 requested and 10224 written")

    monkeypatch.setattr("os.fsync", full)
    error = mcsg("search", corpus, "cat", "--index", tmp_path / "index", "--quiet", code=1).err
    assert error.startswith(f"mcsg: error: {tmp_path / 'index'} could not be saved: not everything could be written")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interruption_while_loading_is_quiet():
    code = "import os, signal, sys\nfrom sklearn_mcsg.cli import main\n"
    code += "class Finder:\n    def find_spec(self, name, *_):\n        if name == 'sklearn':\n"
    code += (
        "            os.kill(os.getpid(), signal.SIGINT)\nsys.meta_path.insert(0, Finder())\nsys.exit(main(['--help']))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interruption_is_quiet(tmp_path):
    corpus = tmp_path / "pipe"
    os.mkfifo(corpus)
    process = start("search", corpus, "cat")
    with open(corpus, "wb"):  # opens once the command is reading
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


# Drift ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def corpora(tmp_path):
    texts = load_short_texts()
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    for path, topics in ((old, ("law", "weather")), (new, ("law", "music"))):
        chosen = [t for t, topic in zip(texts.data, texts.target, strict=True) if texts.target_names[topic] in topics]
        path.write_text("text\n" + "".join('"' + text.replace('"', '""') + '"\n' for text in chosen), encoding="utf-8")
    return str(old), str(new)


def test_words_that_have_become_more_or_less_frequent(mcsg, corpora):
    found = json.loads(mcsg("drift", *corpora, "--format", "json").out)
    assert found["pvalue"] == 0.001
    assert (found["n_old"], found["n_new"]) == (60, 60)
    words = {record["word"].lower(): record["change"] for record in found["words"]}
    assert len(words) == len(found["words"]) == 20
    assert {words.get(word, "more") for word in ("piano", "guitar", "song", "band")} == {"more"}
    assert {words.get(word, "less") for word in ("rain", "snow", "wind", "storm")} == {"less"}
    assert {"more", "less"} == set(words.values())
    assert not set(words) & {"the", "a", "of", "and", "is", "in", "to", "it"}
    parts = [record["part"] for record in found["words"]]
    assert parts == sorted(parts, reverse=True)
    assert [text["corpus"] for text in found["texts"]] == ["old", "old", "new", "new"]


def test_drift_as_table_and_csv(mcsg, corpora):
    table = mcsg("drift", *corpora).out
    assert table.startswith("p = 0.001  60 old texts, 60 new ones")
    assert "1 of 1,000 differ at least as much" in table
    assert "More frequent now" in table
    assert "Less frequent now" in table
    lines = mcsg("drift", *corpora, "-k", "3", "--format", "csv").out.splitlines()
    assert lines[0] == "word,change,share_old,share_new,part"
    assert len(lines) == 4


def test_no_difference_is_said(mcsg, corpora):
    table = mcsg("drift", corpora[0], corpora[0], "--permutations", "99").out
    assert "usual by chance" in table
    assert "Typical" not in table


def test_the_new_file_is_read_by_its_name(mcsg, tmp_path):
    """Whatever the options say about the old one; wide characters are aligned."""
    texts = ["\u682a\u4fa1 rose today", "market prices rose", "the market fell"]
    old, new = tmp_path / "old.csv", tmp_path / "new.txt"
    old.write_text("body,id\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)), encoding="utf-8")
    new.write_text("\n".join(["sick puppies bark", *texts[1:]]), encoding="utf-8")
    arguments = ["drift", old, new, "--column", "body", "--permutations", "19", "--quiet"]
    assert json.loads(mcsg(*arguments, "--format", "json").out)["n_new"] == 3
    rows = [line for line in mcsg(*arguments).out.splitlines() if line.endswith(" %")]
    assert any("\u682a" in row for row in rows)
    assert len({wcswidth(row) for row in rows}) <= 2, "one width in each part"


def test_corpora_that_cannot_be_compared(mcsg, corpora, tmp_path):
    few = tmp_path / "few.txt"
    few.write_text("one text\n...\n", encoding="utf-8")
    error = mcsg("drift", corpora[0], str(few), code=1).err
    assert f"1 of 2 texts left out, with no words in {few} (the first in line 2)." in error
    assert "few.txt has fewer than two texts with words" in error
    assert "NEW" in mcsg("drift", corpora[0], code=2).err
    assert "positive whole number" in mcsg("drift", *corpora, "--permutations", "0", code=2).err
    error = mcsg("drift", *corpora, "--permutations", 10**15, code=1).err
    assert error.endswith("permutations take more memory than there is: choose fewer.\n")


def test_the_new_file_may_have_its_texts_in_another_column(mcsg, corpora, tmp_path):
    texts = [read_corpus(path).texts for path in corpora]
    files = [tmp_path / name for name in ("before.csv", "after.csv")]
    for file, name, own in zip(files, ("headline", "title"), texts, strict=True):
        with open(file, "w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerows([["id", name], *([i, text] for i, text in enumerate(own))])
    arguments = ["drift", *files, "--permutations", "99", "--format", "json"]
    expected = mcsg("drift", *corpora, "--permutations", "99", "--format", "json").out
    found = json.loads(mcsg(*arguments, "--column", "headline", "--new-column", "title").out)
    assert found["pvalue"] == json.loads(expected)["pvalue"]
    error = mcsg(*arguments, "--column", "headline", code=1).err
    assert "after.csv, line 1: there is no column 'headline'; there are 'id', 'title'" in error
    arguments = ["dedupe", files[0], "--against", files[1], "--format", "json", "--quiet"]
    same = ["dedupe", corpora[0], "--against", corpora[1], "--format", "json", "--quiet"]
    found = json.loads(mcsg(*arguments, "--column", "headline", "--against-column", "title").out)
    assert [row["against_text"] for row in found] == [row["against_text"] for row in json.loads(mcsg(*same).out)]
    error = mcsg("dedupe", files[0], "--against-column", "title", code=1).err
    assert "--against-column is for the file of --against" in error


def test_texts_that_occur_several_times_are_shown_once(mcsg, tmp_path):
    texts = load_short_texts().data
    repeated = "A storm tears roofs from houses on the coast."
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*texts[:60], *[repeated] * 30]), encoding="utf-8")
    table = mcsg("search", path, "storm on the coast", "-k", 4, "--quiet").out
    assert table.count(repeated) == 1
    shown = [line for line in table.splitlines() if any(line.endswith(text) for text in [repeated, *texts])]
    assert len(shown) == 4
    found = json.loads(mcsg("search", path, "storm on the coast", "-k", 4, "--quiet", "--format", "json").out)
    assert [row["text"] for row in found] == [repeated] * 4, "every line is a result"
    clusters = mcsg("cluster", path, "-n", 3, "--quiet").out
    blocks = clusters.split("\n\n")
    assert sum(repeated in block for block in blocks) >= 1
    assert all(block.count(repeated) <= 1 for block in blocks)
    new = tmp_path / "new.txt"
    new.write_text("\n".join([*texts[60:80], *[repeated] * 30]), encoding="utf-8")
    old = tmp_path / "old.txt"
    old.write_text("\n".join(texts[:60]), encoding="utf-8")
    drift = json.loads(mcsg("drift", old, new, "--permutations", 99, "--quiet", "--format", "json").out)
    assert [row["text"] for row in drift["texts"]].count(repeated) == 1
