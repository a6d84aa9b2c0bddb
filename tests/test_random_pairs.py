"""P-values of neighbours and of texts that are found: counted by hand, at their level, and kept with the index."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from conftest import random_groups
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import (
    EmbeddingVectorizer,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    MeanVector,
    ModelComparisonSimilarity,
    TextSearch,
    make_text_embedding,
    make_text_similarity,
    update_index,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.search import random_pairs
from sklearn_mcsg.text.words import WordIndex, words_of

SHORT_TEXTS = load_short_texts().data
rng = np.random.default_rng(0)
WORDS = [f"w{i}" for i in range(300)]
VECTORS = WORDS, rng.normal(size=(300, 10)) + rng.normal(size=10)


def make_index(similarity=None, n_groups=60, sizes=(6, 7), dtype=float, n_neighbors=5, **params):
    similarity = ModelComparisonSimilarity(output="distance", prior_strength=0.5) if similarity is None else similarity
    groups = random_groups(n_groups, 5, sizes, spread=1.5, dtype=dtype)
    return GroupNeighbors(similarity, n_neighbors=n_neighbors, **params).fit(groups), groups


def make_texts(n_texts, seed, length=None):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(4, 20) if length is None else length)) for _ in range(n_texts)]


def make_search(last=None, texts=None, **params):
    last = GroupEmbedding(prior_strength=0.5, normalize=True) if last is None else last
    pipeline = make_pipeline(EmbeddingVectorizer(VECTORS, weighting=None), last)
    return TextSearch(pipeline, words=None, **params).fit(make_texts(80, 0, 8) if texts is None else texts)


def slow_pvalues(size, distance, sizes, distances):
    """Sort the random pairs by size, take the window around each pair, and count; for pairs given as lists."""
    order = np.argsort(sizes, kind="stable")
    sizes, distances = sizes[order], distances[order]
    window = len(sizes) if sizes[0] == sizes[-1] else min(max(100, len(sizes) // 10), len(sizes))
    expected = []
    for n, d in zip(size, distance, strict=True):
        middle = ((sizes < n).sum() + (sizes <= n).sum()) // 2
        start = min(max(middle - window // 2, 0), len(sizes) - window)
        expected.append((1 + (distances[start : start + window] <= d * (1 + 1e-9)).sum()) / (1 + window))
    return np.array(expected)


def all_pairs(index, groups):
    """Size and distance of all pairs of indexed groups, and the distance matrix."""
    matrix, found = np.full((len(groups), len(groups)), np.nan), index.kneighbors(n_neighbors=len(groups) - 1)
    np.put_along_axis(matrix, found[1], found[0], axis=1)
    i, j = np.triu_indices(len(groups), 1)
    n, m = groups.totals[i], groups.totals[j]
    return n * m / (n + m), matrix[i, j].astype(float)


SIMILARITIES = {
    **{
        f"{likelihood} {output}": ModelComparisonSimilarity(
            likelihood, output=output, prior_strength=0.5, random_state=0
        )
        for likelihood, output in [*(("diag", output) for output in OUTPUTS), ("vmf", "distance"), ("full", "distance")]
    },
    "mean": MeanVector(),
    "embedding": GroupEmbedding(prior_strength=0.5),
}


# Counted by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*have no direction")
@pytest.mark.parametrize("sizes", [(6, 7), (2, 20)], ids=["one size", "sizes"])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_pvalues_of_indexed_groups_are_counted_among_all_pairs(name, sizes):
    index, groups = make_index(SIMILARITIES[name], sizes=sizes)
    distances, indices, pvalues = index.kneighbors(return_pvalue=True)
    n, m = groups.totals[:, None], groups.totals[indices]
    expected = slow_pvalues((n * m / (n + m)).ravel(), distances.ravel(), *all_pairs(index, groups))
    assert pvalues.shape == indices.shape == (60, 5)
    window = 1770 if sizes == (6, 7) else 177
    assert_allclose(pvalues.ravel(), expected, atol=1.1 / (1 + window))  # distances of two routines: one rank


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_pvalues_of_all_kinds_of_search(algorithm, dtype):
    pytest.importorskip("faiss")
    similarity = ModelComparisonSimilarity(output="divergence", prior_strength=0.5)
    params = {"algorithm": algorithm, "n_candidates": 20}
    index, groups = make_index(similarity, dtype=dtype, **params)
    distances, _, pvalues = index.kneighbors(groups[:20], return_pvalue=True)
    assert distances.dtype == dtype
    chance = all_pairs(index.set_params(algorithm="exact"), groups)
    expected = slow_pvalues(np.full(100, 3.0), distances.ravel().astype(float), *chance)
    assert_allclose(pvalues.ravel(), expected, atol=1.1 / 1771 if dtype == np.float64 else 3.1 / 1771)


def test_pvalues_of_queries_that_are_typical():
    """With `calibrate(X)` and enough pairs, every query is compared with every group."""
    index, groups = make_index(sizes=(3, 9))
    typical, queries = random_groups(40, 5, (1, 4), seed=1), random_groups(9, 5, (1, 4), seed=2)
    index.calibrate(typical, n_pairs=40 * 60)
    matrix = index.similarity_.pairwise(typical, groups)
    n, m = typical.totals[:, None], groups.totals
    distances, indices, pvalues = index.kneighbors(queries, return_pvalue=True)
    a, b = queries.totals[:, None], groups.totals[indices]
    expected = slow_pvalues((a * b / (a + b)).ravel(), distances.ravel(), (n * m / (n + m)).ravel(), matrix.ravel())
    assert_allclose(pvalues.ravel(), expected, atol=1.1 / 241)


def test_pvalues_of_texts_are_counted():
    search, typical = make_search(), make_texts(50, 1, 3)
    search.calibrate(typical, n_pairs=50 * 80)
    queries = make_texts(7, 2, 3)
    hits = search.search(queries, return_pvalue=True)
    chance = search.search(typical, 80).distances.ravel().astype(float)
    expected = [(1 + (chance <= distance * (1 + 1e-6)).sum()) / (1 + 50 * 80) for distance in hits.distances.ravel()]
    assert_allclose(hits.pvalues.ravel(), expected, atol=2.1 / 4001)


def test_pvalues_of_indexed_texts_are_counted_among_all_pairs():
    search = make_search()
    hits = search.search(n_neighbors=79, return_pvalue=True)
    chance = hits.distances.ravel().astype(float)  # every pair twice
    expected = [(1 + (chance <= distance * (1 + 1e-6)).sum() / 2) / (1 + 80 * 79 / 2) for distance in chance]
    assert_allclose(hits.pvalues.ravel(), expected, atol=2.1 / 3161)
    assert search.search(n_neighbors=3).pvalues is None


# Their level --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["diag distance", "diag centered", "mean", "embedding"])
def test_random_neighbours_have_small_pvalues_as_often_as_the_level_says(name):
    index, _ = make_index(SIMILARITIES[name], 150, (3, 15), n_neighbors=150)
    p = index.kneighbors(random_groups(150, 5, (3, 15), spread=1.5, seed=1), return_pvalue=True)[2]
    for level in (0.5, 0.1, 0.05):
        assert 0.8 * level < (p <= level).mean() < 1.25 * level


def test_an_embedding_of_few_groups_needs_folds(monkeypatch):
    """It places groups that it has learnt from further apart than new ones."""
    embedding = GroupEmbedding(whiten=1.0, prior_strength=0.5, normalize=True)
    groups, new = (random_groups(60, 12, (3, 6), spread=0.5, seed=seed) for seed in (0, 1))
    levels = {}
    for growth in (2.0, None):  # with None, nothing is kept that folds could be learnt from
        index = GroupNeighbors(embedding, n_neighbors=60, growth=growth).fit(groups)
        levels[growth] = (index.kneighbors(new, return_pvalue=True)[2] <= 0.05).mean()
    assert 0.03 < levels[2.0] < 0.07 < 0.1 < levels[None]


@pytest.mark.parametrize("make", [make_text_embedding, make_text_similarity])
def test_short_queries_keep_their_level(make):
    """Random runs of words from texts that are not indexed; pairs of whole texts would not do."""
    texts = np.random.default_rng(0).permutation(SHORT_TEXTS).tolist()
    search = TextSearch(make(random_state=0), words=None).fit(texts[:240])
    for length in (1, 3, 99):
        rng = np.random.default_rng(length)
        queries = []
        for text in texts[240:]:
            words = text.replace('"', "").split()
            start = rng.integers(max(1, len(words) - length + 1))
            queries.append(" ".join(words[start : start + length]))
        p = search.search(queries, 240, return_pvalue=True).pvalues
        for level in (0.5, 0.05):
            assert 0.65 * level < (p <= level).mean() < 1.35 * level


@pytest.mark.filterwarnings("ignore:Query 0 is much smaller")
def test_pairs_of_whole_texts_would_not_keep_the_level_of_short_queries():
    texts = np.random.default_rng(0).permutation(SHORT_TEXTS).tolist()
    search = TextSearch(words=None).fit(texts[:240])
    queries = [text.split()[3] for text in texts[240:]]
    right = search.search(queries, 240, return_pvalue=True).pvalues
    wrong = search.index_.kneighbors(search.look_up(queries), 240, return_pvalue=True)[2]
    assert abs((right <= 0.05).mean() - 0.05) < 0.015 < abs((wrong <= 0.05).mean() - 0.05), (wrong <= 0.05).mean()


# Laws ---------------------------------------------------------------------------------------------------------------


def test_what_is_returned():
    index, groups = make_index()
    distances, indices, pvalues = index.kneighbors(groups[:4], 3, return_pvalue=True)
    both = index.kneighbors(groups[:4], 3, return_distance=False, return_pvalue=True)
    for found, expected in zip(both, (indices, pvalues), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(index.kneighbors(groups[:4], 3)[0], distances)
    assert_array_equal(index.kneighbors(groups[:4], 3, return_distance=False), indices)


@pytest.mark.parametrize("similarity", [None, GroupEmbedding()], ids=["similarity", "embedding"])
def test_pvalues_depend_on_the_pair_alone(similarity):
    index, _ = make_index(similarity)
    queries = random_groups(9, 5, (6, 7), seed=1)
    whole = index.kneighbors(queries, 60, return_pvalue=True)[2]
    assert (np.diff(whole, axis=1) >= 0).all(), "of one size: the nearer, the smaller"
    assert_array_equal(index.kneighbors(queries, 4, return_pvalue=True)[2], whole[:, :4])
    assert_array_equal(index.kneighbors(queries[3:5], 60, return_pvalue=True)[2], whole[3:5])
    assert whole.min() >= 1 / 1771
    assert whole.max() <= 1


@pytest.mark.parametrize("similarity", [None, GroupEmbedding()], ids=["similarity", "embedding"])
def test_pvalues_are_the_same_in_every_index_of_the_groups(similarity):
    first, second = (make_index(similarity)[0] for _ in range(2))
    queries = random_groups(9, 5, (4, 9), seed=1)
    expected = first.kneighbors(queries, return_pvalue=True)[2]
    assert_array_equal(second.kneighbors(queries, return_pvalue=True)[2], expected)
    other = second.calibrate(n_pairs=200, random_state=1).kneighbors(queries, return_pvalue=True)[2]
    assert not np.array_equal(other, expected)
    for copied in (deepcopy(second), pickle.loads(pickle.dumps(second))):
        assert_array_equal(copied.kneighbors(queries, return_pvalue=True)[2], other)


def test_pairs_are_drawn_once_and_again_when_groups_change(monkeypatch):
    drawn = []
    draw = random_pairs.RandomPairs._drawn_among
    monkeypatch.setattr(random_pairs.RandomPairs, "_drawn_among", lambda *args: drawn.append(1) or draw(*args))
    index, groups = make_index()
    index.kneighbors(groups[:3])
    assert not drawn
    before = [index.kneighbors(groups[:3], return_pvalue=True)[2] for _ in range(3)]
    index.kneighbors(return_pvalue=True)
    assert len(drawn) == 1
    assert_array_equal(before[0], before[2])
    far = Groups.from_list([groups[i] + 50 for i in range(60)])
    index.partial_fit(far)
    after = index.kneighbors(groups[:3], return_pvalue=True)[2]
    assert len(drawn) == 2
    assert after.mean() < before[0].mean(), "most random pairs are far apart now"
    index.remove(np.arange(60, 120))
    assert_array_equal(index.kneighbors(groups[:3], return_pvalue=True)[2], before[0])


def test_words_do_not_change_pvalues():
    pytest.importorskip("bm25s")
    plain, counted = (TextSearch(words=words).fit(SHORT_TEXTS[:100]) for words in (None, 20.0))
    queries = ["storm in the north", "my puppy is ill"]
    every, some = (search.search(queries, 100, return_pvalue=True) for search in (plain, counted))
    for row in range(2):
        expected = dict(zip(every.indices[row].tolist(), every.pvalues[row].tolist(), strict=True))
        assert_allclose(some.pvalues[row], [expected[i] for i in some.indices[row].tolist()], atol=2e-3)


def test_rows_without_texts_have_no_pvalues():
    pytest.importorskip("bm25s")
    search = TextSearch().fit(SHORT_TEXTS)
    with pytest.warns(UserWarning, match="Query 1 has no words"):
        hits = search.search(['"the storm" at sea', "...", "rain"], 3, return_pvalue=True)
    assert_array_equal(np.isnan(hits.pvalues), hits.indices < 0)
    assert np.isnan(hits.pvalues[1]).all()
    assert not np.isnan(hits.pvalues[2]).any()


def test_random_runs_are_words_that_follow_each_other():
    texts = ["one two three four five", "six", "...", "seven eight"]
    index = WordIndex.of(words_of(texts), None)
    places, runs = index.random_runs(400, np.random.RandomState(0))
    for place, run in zip(places, runs, strict=True):
        assert f" {run} " in f" {texts[place]} " if place != 2 else not run
    assert {len(run.split()) for place, run in zip(places, runs, strict=True) if place == 0} == {1, 2, 3, 4, 5}
    assert {run for place, run in zip(places, runs, strict=True) if place == 3} == {"seven", "eight", "seven eight"}


# Storage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", [None, GroupEmbedding()], ids=["similarity", "embedding"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_random_pairs_are_saved(tmp_path, similarity, calibrated, monkeypatch):
    index, groups = make_index(similarity, sizes=(2, 9))
    if calibrated:
        index.calibrate(n_pairs=300, random_state=3)
    expected = index.kneighbors(groups[:9], return_pvalue=True)[2], index.kneighbors(return_pvalue=True)[2]
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    monkeypatch.setattr(random_pairs, "_folds", None)  # nothing is drawn again
    monkeypatch.setattr(random_pairs.RandomPairs, "_drawn_among", None)
    assert_array_equal(loaded.kneighbors(groups[:9], return_pvalue=True)[2], expected[0])
    assert_array_equal(loaded.kneighbors(return_pvalue=True)[2], expected[1])


def test_random_pairs_are_not_drawn_to_be_saved(tmp_path):
    index, groups = make_index()
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert loaded._random_pairs.stored() == [None, None]
    assert_array_equal(
        loaded.kneighbors(groups, return_pvalue=True)[2], index.kneighbors(groups, return_pvalue=True)[2]
    )


def test_random_pairs_of_texts_are_saved(tmp_path):
    texts = SHORT_TEXTS[:80]
    search = update_index(tmp_path / "index", TextSearch(words=None), texts).index
    expected = search.search(["storm at sea"], return_pvalue=True).pvalues
    loaded = update_index(tmp_path / "index", TextSearch(words=None), texts).index
    assert loaded._random_pairs.stored() == [None, None]
    assert_array_equal(loaded.search(["storm at sea"], return_pvalue=True).pvalues, expected)
    more = update_index(tmp_path / "index", TextSearch(words=None), SHORT_TEXTS[:90]).index
    more.search(["storm at sea"], return_pvalue=True)
    again = pickle.loads(pickle.dumps(more))
    assert again._random_pairs.stored()[1] is not None


@pytest.mark.filterwarnings("ignore:Only 3 groups")
def test_texts_of_signs_have_pvalues():
    words = ["\u2665", "\u2600", "\u2602"]
    pipeline = make_pipeline(EmbeddingVectorizer((words, np.eye(3)), weighting=None), MeanVector("distance"))
    search = TextSearch(pipeline, words=None).fit(words)
    assert_allclose(search.search(words, 1, return_pvalue=True).pvalues, 0.25)


# Errors -------------------------------------------------------------------------------------------------------------


def test_few_groups_are_said():
    index, groups = make_index(n_groups=6)
    with pytest.warns(UserWarning, match="Only 6 groups to calibrate with: p-values will be rough"):
        p = index.kneighbors(groups, 3, return_pvalue=True)[2]
    assert p.min() >= 1 / 16
    with pytest.warns(UserWarning, match="Only 6 groups to calibrate with"):
        index.calibrate()
    search = make_search(texts=make_texts(6, 0))
    for asked in (["w1 w2"], None):
        with pytest.warns(UserWarning, match="Only 6 groups to calibrate with"):
            p = search.search(asked, 3, return_pvalue=True).pvalues
        assert p.min() >= 1 / 16


def test_queries_of_other_sizes_are_said():
    index, _ = make_index(sizes=(8, 12))
    queries = random_groups(5, 5, (8, 12), seed=1), random_groups(5, 5, (1, 2), seed=1)
    index.kneighbors(queries[0], return_pvalue=True)
    with pytest.warns(UserWarning, match="Query 5 is much smaller or larger .* Give typical queries to calibrate"):
        index.kneighbors(Groups.concatenate(queries), return_pvalue=True)
    index.calibrate(random_groups(60, 5, (1, 12), seed=2)).kneighbors(queries[1], return_pvalue=True)


def test_what_cannot_be_calibrated():
    index, search = GroupNeighbors(), TextSearch()
    for one in (index, search):
        with pytest.raises(NotFittedError):
            one.calibrate()
    index, groups = make_index()
    search = make_search()
    for one in (index, search):
        for n_pairs in (0, 2.5, None, True):
            with pytest.raises(ValueError, match="n_pairs must be a positive integer"):
                one.calibrate(n_pairs=n_pairs)
    before = index.kneighbors(groups[:2], return_pvalue=True)[2]
    with pytest.raises(ValueError, match="features"):
        index.calibrate([np.ones((2, 3))])
    assert_array_equal(index.kneighbors(groups[:2], return_pvalue=True)[2], before)
    with pytest.raises(ValueError, match="Query 1 has no words: leave it out"):
        search.calibrate(["w1", "..."])
    with pytest.raises(ValueError, match="A list of queries is expected, got a string"):
        search.calibrate("w1")


def test_damaged_random_pairs_are_refused(tmp_path):
    index, groups = make_index()
    index.kneighbors(groups, return_pvalue=True)
    state = index.__mcsg_state__()
    for wrong, error in (([None], ValueError), ([None, 3], TypeError)):
        with pytest.raises(error):
            GroupNeighbors().__mcsg_restore__({**state, "random_pairs": wrong})
    for sizes in (state["sizes"][1:], -state["sizes"], np.arange(60)):
        damaged = GroupNeighbors()
        damaged.__mcsg_restore__({**state, "sizes": sizes})
        with pytest.raises(ValueError, match="sizes of 60 groups are expected"):
            damaged.__mcsg_check__()
