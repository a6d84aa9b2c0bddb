"""Clusters of texts: the same as of their groups, described, and found in real and in hostile collections."""

from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_mcsg import GroupClustering, cluster_texts, make_text_embedding, make_text_similarity
from sklearn_mcsg.clustering._dendrogram import merges_before, tops_after
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import TokenisedTexts
from sklearn_mcsg.text.language import STOP_WORDS

pytest.importorskip("sknetwork")


@pytest.fixture(scope="module")
def short_texts():
    return load_short_texts(return_X_y=True)


@pytest.fixture(scope="module")
def clusters(short_texts):
    return cluster_texts(short_texts[0])


def test_clusters_are_those_of_the_groups(clusters, short_texts):
    texts, topics = short_texts
    expected = GroupClustering(embedding=make_text_embedding(), random_state=0).fit(texts)
    assert_array_equal(clusters.labels, expected.labels_)
    assert_allclose(clusters.distances, expected.center_distances_)
    assert clusters.alternatives == expected.alternatives_
    assert adjusted_rand_score(topics, clusters.labels) > 0.6
    assert_allclose(np.linalg.norm(clusters.points, axis=1), 1, rtol=1e-5)
    assert_allclose(clusters.points, clusters.pipeline.transform(texts), atol=1e-6)


def test_summaries(clusters):
    assert [s.label for s in clusters.summaries] == list(range(len(clusters)))
    for s in clusters.summaries:
        assert_array_equal(np.sort(s.members), np.flatnonzero(clusters.labels == s.label))
        assert (np.diff(clusters.distances[s.members]) >= 0).all()
        assert len(s.words) == 6
        assert s.words[0] in repr(clusters)
    assert (np.diff(clusters.distances[clusters.outliers]) <= 0).all()
    assert_array_equal(clusters.tree.cut(len(clusters)), clusters.labels)


def test_words_are_those_of_the_cluster(clusters):
    words = [{word.lower() for word in text} for text in clusters.pipeline[0].known_words(clusters.texts)]
    for s in clusters.summaries:
        assert len(s.words) == len(set(s.words))
        for word in " ".join(s.words).split():
            has = np.array([word.lower() in text for text in words])
            assert has[s.members].mean() > has.mean()
            assert any(map(str.isalpha, word))


def test_given_number_and_texts_that_have_been_read(short_texts):
    texts = list(short_texts[0])
    pipeline = make_text_embedding()
    given = cluster_texts(TokenisedTexts.of(texts), 4, pipeline=pipeline, n_words=2)
    assert_array_equal(given.labels, cluster_texts(texts, 4).labels)
    assert len(given) == 4
    assert given.texts == texts
    assert given.alternatives == {}
    assert all(len(s.words) == 2 for s in given.summaries)
    assert not hasattr(pipeline[-1], "components_"), "the given pipeline stays as it is"


def test_equal_and_few_texts():
    assert len(cluster_texts(["the same text"] * 5)) == 1
    assert len(cluster_texts(["one cat", "two dogs"], 2)) == 2
    with pytest.warns(UserWarning, match="1 of 4 texts have no words"):
        assert cluster_texts(["cat", "dog", "", "tree"], 2).labels.shape == (4,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cluster_texts(["one"]), ValueError, "only one text"),
        (lambda: cluster_texts(["one", "two"], 3), ValueError, "n_clusters=3 is more than the 2 texts"),
        (lambda: cluster_texts(["one", "two"], 0), ValueError, "n_clusters must be a positive integer"),
        (lambda: cluster_texts(["one", "two"], n_words=0), ValueError, "n_words"),
        (lambda: cluster_texts(["one", "two"], resolution=0), ValueError, "resolution must be a positive number"),
        (lambda: cluster_texts(["one", "two"], resolution=np.inf), ValueError, "resolution must be a positive number"),
        (lambda: cluster_texts(["one", "two"], resolution="2"), ValueError, "resolution must be a positive number"),
        (lambda: cluster_texts(["one", "two"], pipeline=make_text_similarity()), TypeError, "ends in a GroupEmbedding"),
        (lambda: cluster_texts("one two"), ValueError, "single text into a list"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_trees_of_merges():
    children = np.array([[0, 1], [2, 3], [5, 6], [4, 7]])
    assert tops_after(children, 0).tolist() == [0, 1, 2, 3, 4]
    assert tops_after(children, 2).tolist() == [5, 5, 6, 6, 4]
    assert tops_after(children, 4).tolist() == [8] * 5
    for n_large, least, expected in ((1, 5, 4), (1, 4, 4), (2, 2, 2), (2, 1, 3), (5, 1, 0), (2, 3, None), (3, 2, None)):
        assert merges_before(children, n_large, least) == expected
        by_hand = [
            m for m in range(5) if np.sum(np.unique(tops_after(children, m), return_counts=True)[1] >= least) >= n_large
        ]
        assert (max(by_hand) if by_hand else None) == expected


def test_outliers_do_not_spoil_a_given_number():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 60)
    X = [rng.normal(3 * np.eye(3, 8)[t], size=(5, 8)) for t in truth]
    X[0], X[100] = rng.normal(-9, size=(5, 8)), rng.normal(9 * np.eye(8)[7], size=(5, 8))
    found = GroupClustering(3, random_state=0).fit(X).labels_
    assert adjusted_rand_score(truth, found) > 0.9


def test_clusters_are_renamed(clusters):
    named = clusters.rename(2, "<games> & more")
    assert [s.name for s in named.summaries[:4]] == [None, None, "<games> & more", None]
    assert clusters.summaries[2].name is None, "the given clusters stay as they are"
    assert named.summaries[2].title == "<games> & more"
    assert clusters.summaries[2].title == ", ".join(clusters.summaries[2].words[:3])
    assert "<games> & more: " in repr(named)
    assert_array_equal(named.labels, clusters.labels)
    assert repr(named.rename(2, None)) == repr(clusters)


def test_clusters_are_merged(clusters):
    named = clusters.rename(4, "kept").rename(9, "lost")
    merged = named.merge([9, 1], name="both")
    together = np.isin(clusters.labels, [1, 9])
    assert len(merged) == len(clusters) - 1
    assert_array_equal(merged.labels == 0, together)
    assert (np.diff(np.bincount(merged.labels)) <= 0).all()
    assert [s.name for s in merged.summaries].count("both") == 1
    assert not any(s.name == "lost" for s in merged.summaries)
    points = clusters.points[together]
    centre = points.mean(axis=0) / np.linalg.norm(points.mean(axis=0))
    assert_allclose(merged.distances[together], 1 - points @ centre, atol=1e-6)
    assert_allclose(merged.distances[~together], clusters.distances[~together], atol=1e-6)
    sizes = np.bincount(merged.labels)
    counts = merged.terms.counts(merged.labels, len(merged))
    assert merged.summaries[0].words == merged.terms.best(counts[0], int(sizes[0]), sizes.mean(), 6)
    for new in merged.summaries:
        assert_array_equal(np.sort(new.members), np.flatnonzero(merged.labels == new.label))
        assert (np.diff(merged.distances[new.members]) >= 0).all()
        if new.label:
            old = named.summaries[clusters.labels[new.members[0]]]
            assert (new.words, new.name) == (old.words, old.name)
    assert_array_equal(merged.tree.cut(len(merged)), merged.labels)
    assert len(clusters.merge(range(len(clusters)))) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.rename(99, "x"), "There is no cluster 99: the labels are 0 to 11"),
        (lambda c: c.rename(-1, "x"), "There is no cluster -1"),
        (lambda c: c.rename(True, "x"), "There is no cluster True"),
        (lambda c: c.merge([0, "a"]), "There is no cluster 'a'"),
        (lambda c: c.merge([0, [1]]), r"There is no cluster \[1\]"),
        (lambda c: c.rename(0, " "), "name must be a text that is not empty"),
        (lambda c: c.merge([0, 99]), "There is no cluster 99"),
        (lambda c: c.merge([3, 3]), "two or more different clusters"),
        (lambda c: c.merge([0, 1], name=5), "name must be a text"),
    ],
)
def test_changes_of_clusters_are_checked(clusters, change, message):
    with pytest.raises(ValueError, match=message):
        change(clusters)


def test_table_for_notebooks():
    texts = ["<script>alert('cats & dogs')</script> kittens purr"] * 4 + ["shares and stocks fell " * 20] * 4
    clusters = cluster_texts(texts, 2).rename(0, "<b>pets</b>")
    page = clusters._repr_html_()
    table = ElementTree.fromstring(page.replace("<br>", "<br/>")).find("table")
    rows = [["".join(cell.itertext()) for cell in row] for row in table.find("tbody")]
    assert "<script" not in page
    assert "<b>pets</b>" not in page
    assert [row[:2] for row in rows] == [["0", "4"], ["1", "4"]]
    assert rows[0][2] == "<b>pets</b>" + ", ".join(clusters.summaries[0].words)
    assert rows[0][3] == texts[0]
    assert len(rows[1][3]) == 120
    assert "color" not in page, "the colours are those of the notebook, light or dark"


@pytest.mark.parametrize("n_texts", [120, 240, 360])
def test_no_giant_cluster_and_no_stop_words_among_real_texts(n_texts):
    clusters = cluster_texts(load_short_texts().data[:n_texts])
    assert len(clusters.summaries[0].members) <= 0.2 * n_texts
    words = {word.lower() for summary in clusters.summaries for label in summary.words for word in label.split()}
    assert not words & STOP_WORDS
    assert not [word for word in words if not any(map(str.isalpha, word))]
