"""Approximate search: what it finds against the exact search, how it grows and is kept, and when it is chosen."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from conftest import Exponential
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_mcsg import LIKELIHOODS, GroupEmbedding, GroupNeighbors, Groups, MeanVector, ModelComparisonSimilarity
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.search import candidates, groups_of, nearest, neighbors, search_of
from sklearn_mcsg.similarity import fitted_comparer

pytest.importorskip("faiss")

EMBEDDED = [name for name, output in OUTPUTS.items() if output.can_be_embedded]
SIMILARITIES = {
    "embedding": GroupEmbedding(whiten=0.5, prior_strength=0.5),
    **{
        f"{likelihood} {output}": ModelComparisonSimilarity(
            likelihood, output=output, prior_strength=1.0, random_state=0
        )
        for likelihood in LIKELIHOODS
        for output in EMBEDDED
    },
}
every_similarity = pytest.mark.parametrize("similarity", SIMILARITIES.values(), ids=SIMILARITIES)


def topics(n=600, d=8, seed=0, dtype=np.float64):
    """Groups around forty centres, of unequal sizes and spreads."""
    rng = np.random.default_rng(seed)
    centres = 2 + np.random.default_rng(99).normal(size=(40, d))
    sizes = rng.integers(4, 12, n)
    topic = rng.integers(40, size=n)
    vectors = np.repeat(centres[topic], sizes, axis=0) + rng.normal(scale=0.7, size=(sizes.sum(), d))
    return Groups(vectors.astype(dtype), np.concatenate([[0], np.cumsum(sizes)]))


def both(similarity, **params):
    return (
        GroupNeighbors(similarity, n_neighbors=5, algorithm=algorithm, **params)
        for algorithm in ("approximate", "exact")
    )


@every_similarity
def test_finds_the_nearest_with_their_exact_distances(similarity):
    X, queries = topics(), topics(40, seed=1)
    approximate, exact = (index.fit(X) for index in both(similarity, n_candidates=60))
    distances, indices = approximate.kneighbors(queries)
    comparer = search_of(exact).comparer
    expected = comparer.compare_with_candidates(queries, indices)
    assert_allclose(distances, expected, rtol=1e-9, atol=1e-12)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert approximate.recall(queries) > 0.95
    assert approximate.recall(random_state=0) > 0.95
    assert exact.recall(queries) == 1
    assert_array_equal(approximate.set_params(n_candidates=600).kneighbors(queries), exact.kneighbors(queries))


def test_more_candidates_find_more():
    X = topics(1500, d=20)
    index = GroupNeighbors(SIMILARITIES["diag centered"], n_neighbors=10, algorithm="approximate").fit(X)
    recalls = [index.set_params(n_candidates=n).recall(random_state=0) for n in (10, 30, 100)]
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[-1]
    assert recalls[-1] > 0.97


def test_neighbours_of_indexed_groups_are_others():
    X = topics(500, d=20)
    index, exact = (index.fit(X) for index in both(SIMILARITIES["embedding"]))
    distances, indices = index.kneighbors()
    assert (indices != np.arange(500)[:, None]).all()
    agree = [np.isin(a, b).mean() for a, b in zip(indices, exact.kneighbors(return_distance=False), strict=True)]
    assert np.mean(agree) > 0.97
    graph = index.kneighbors_graph(mode="distance")
    assert_allclose(graph.data.reshape(500, 5), distances)
    assert_allclose(index.transform(X).toarray() > 0, index.kneighbors_graph(X, 6, mode="distance").toarray() > 0)


def test_graph_of_fit_transform_begins_with_the_group_itself():
    X = topics(500, d=20)
    for similarity in (SIMILARITIES["embedding"], SIMILARITIES["diag divergence"]):
        near, exact = (index.fit_transform(X) for index in both(similarity))
        assert_array_equal(near.indices.reshape(500, 6)[:, 0], np.arange(500))
        assert_allclose(near.data.reshape(500, 6)[:, 0], exact.data.reshape(500, 6)[:, 0], atol=1e-12)
        same = (near.indices.reshape(500, 6) == exact.indices.reshape(500, 6)).all(axis=1)
        assert same.mean() > 0.9


def test_a_radius_is_searched_exactly():
    X, queries = topics(), topics(10, seed=1)
    approximate, exact = (index.fit(X) for index in both(SIMILARITIES["diag divergence"]))
    found, truth = (index.radius_neighbors(queries, 20.0, return_distance=False) for index in (approximate, exact))
    assert all(np.array_equal(a, b) for a, b in zip(found, truth, strict=True))


# Points -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [3, 12, 40, 100])
def test_codes_tell_the_points(d):
    similarity = SIMILARITIES["diag divergence"]
    fitted = fitted_comparer(clone(similarity), topics(2000, d=d))
    index = candidates.CandidateIndex.learnt_from(fitted.comparison.point_space(fitted.name), fitted.summaries)
    points, decoded = index.points(fitted.summaries), index.decoded(np.arange(2000))
    assert len(index) == 2000
    if 2 * d <= 24:
        assert_array_equal(decoded, points)
        return
    assert points.shape[1] == 80 if d == 40 else 128 <= points.shape[1] < 200, "all, or those that explain most"
    assert index.codes.nbytes == 2000 * -(-points.shape[1] // 2), "half a byte for each component"
    error = np.square(points - decoded).sum() / np.square(points - points.mean(axis=0)).sum()
    assert error < 0.02, "16 levels leave about 1 % of the variance of a normal distribution"


def test_points_are_the_embedding_of_the_similarity(monkeypatch):
    monkeypatch.setattr(candidates, "_FEWEST", 1)
    X = topics(300)
    fitted = fitted_comparer(clone(SIMILARITIES["diag divergence"]), X)
    index = candidates.CandidateIndex.learnt_from(fitted.comparison.point_space(fitted.name), fitted.summaries)
    embedding = GroupEmbedding(prior_strength=1.0).fit(X)
    shares = np.cumsum(embedding.explained_variance_) / embedding.explained_variance_.sum()
    k = int(np.count_nonzero(shares < 0.95)) + 1
    assert 1 < k < len(shares), "fewer components explain 95 % of the variance"
    expected = embedding.transform(X)[:, :k]
    assert_allclose(np.abs(index.points(fitted.summaries)), np.abs(expected), rtol=1e-4, atol=1e-4)


def test_few_groups_and_single_precision():
    for n in (3, 17, 40):
        X = topics(n, d=30, dtype=np.float32)
        index = GroupNeighbors(SIMILARITIES["embedding"], n_neighbors=1, algorithm="approximate", n_candidates=2)
        distances, indices = index.fit(X).kneighbors(X[:3])
        assert distances.dtype == np.float32
        assert_array_equal(indices.ravel(), np.arange(3))


# Growing, shrinking, keeping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["embedding", "diag centered", "full divergence"])
def test_grows_and_shrinks_with_the_coordinates_it_has_learnt(name):
    X, more, queries = topics(400), topics(200, seed=2), topics(30, seed=1)
    params = {"n_neighbors": 5, "algorithm": "approximate", "n_candidates": 60, "growth": None}
    index = GroupNeighbors(SIMILARITIES[name], **params).fit(X)
    first = groups_of(index).candidates
    index.partial_fit(more)
    assert groups_of(index).candidates.axes is first.axes
    assert_array_equal(groups_of(index).candidates.codes[:400], first.codes)
    assert len(groups_of(index).candidates) == index.n_groups_ == 600
    assert index.recall(queries) > 0.95
    assert_array_equal(index.kneighbors(more[:20], 1, return_distance=False).ravel(), np.arange(400, 420))
    index.remove(np.arange(0, 600, 3))
    assert len(groups_of(index).candidates) == index.n_groups_ == 400
    assert index.recall(queries) > 0.95


def test_a_failure_to_add_changes_nothing():
    X = topics(100)
    index = GroupNeighbors(SIMILARITIES["diag centered"], n_neighbors=2, algorithm="approximate").fit(X)
    before = index.kneighbors(X[:5])
    with pytest.raises(ValueError, match="expecting 8 features"):
        index.partial_fit(topics(5, d=9))
    assert len(groups_of(index).candidates) == index.n_groups_ == 100
    assert_array_equal(index.kneighbors(X[:5]), before)


@pytest.mark.parametrize("mmap_mode", [None, "r"])
@pytest.mark.parametrize("name", ["embedding", "diag centered", "vmf divergence"])
def test_saved_and_pickled(name, mmap_mode, tmp_path):
    X, queries = topics(300, d=16), topics(20, d=16, seed=1)
    index = GroupNeighbors(SIMILARITIES[name], n_neighbors=5, algorithm="approximate", n_candidates=40).fit(X)
    found = index.kneighbors(queries)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index", mmap_mode=mmap_mode)
    assert_array_equal(loaded.kneighbors(queries), found)
    assert_array_equal(pickle.loads(pickle.dumps(index)).kneighbors(queries), found)
    assert loaded.partial_fit(queries).n_groups_ == len(groups_of(loaded).candidates) == 320


def test_codes_of_another_index_are_refused(tmp_path):
    index = GroupNeighbors(SIMILARITIES["diag centered"], algorithm="approximate").fit(topics(50, d=16))
    index._keep(replace(groups_of(index), candidates=groups_of(index).candidates[np.arange(49)]))
    index.save(tmp_path / "index")
    with pytest.raises(ValueError, match=r"damaged .*codes of the candidates have shape \(49, (\d+)\), not \(50, \1\)"):
        GroupNeighbors.load(tmp_path / "index")


def test_stored_as_plain_arrays(tmp_path):
    index = GroupNeighbors(SIMILARITIES["diag centered"], algorithm="approximate").fit(topics(50, d=16))
    index.save(tmp_path / "index")
    content = json.loads((tmp_path / "index" / "index.json").read_text())
    assert content["object"]["state"]["candidates_"]["class"] == "CandidateIndex"


# The choice of the algorithm ----------------------------------------------------------------------------------------


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(nearest, "_EXACT_UP_TO", 50)


def test_auto_is_exact_for_few_groups_and_approximate_for_many(few_are_many):
    similarity = SIMILARITIES["diag centered"]
    assert groups_of(GroupNeighbors(similarity).fit(topics(50))).candidates is None
    index = GroupNeighbors(similarity).fit(topics(51))
    assert len(groups_of(index).candidates) == 51
    grown = GroupNeighbors(similarity).fit(topics(50)).partial_fit(topics(30, seed=1))
    assert len(groups_of(grown).candidates) == 80
    assert (
        groups_of(GroupNeighbors(similarity, algorithm="exact").fit(topics(60)).partial_fit(topics(5))).candidates
        is None
    )


@pytest.mark.parametrize(
    "similarity",
    [
        ModelComparisonSimilarity(output="distance"),
        ModelComparisonSimilarity(),
        ModelComparisonSimilarity(Exponential(), output="divergence"),
        MeanVector(),
    ],
    ids=repr,
)
def test_auto_is_exact_where_there_are_no_points(similarity, few_are_many):
    X = topics(60)
    X = Groups(np.abs(X.vectors), X.offsets)
    assert groups_of(GroupNeighbors(similarity).fit(X)).candidates is None
    with pytest.raises(ValueError, match="algorithm='approximate' cannot find candidates"):
        GroupNeighbors(similarity, algorithm="approximate").fit(X)


def test_distance_is_refused_with_the_reason():
    index = GroupNeighbors(ModelComparisonSimilarity(output="distance"), algorithm="approximate")
    with pytest.raises(ValueError, match=r"its output 'distance' depends on the sizes of groups: choose output='cen"):
        index.fit(topics(20))
    assert not hasattr(index, "similarity_")


def test_without_faiss_auto_is_exact_and_approximate_names_the_extra(monkeypatch, few_are_many, tmp_path):
    X, similarity = topics(80), SIMILARITIES["diag centered"]
    GroupNeighbors(similarity).fit(X).save(tmp_path / "index")
    truth = GroupNeighbors(similarity, algorithm="exact").fit(X).kneighbors(X[:9])
    monkeypatch.setattr(nearest, "has_extra", lambda name: False)
    monkeypatch.setattr(neighbors, "has_extra", lambda name: False)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    assert groups_of(GroupNeighbors(similarity).fit(X)).candidates is None
    assert_array_equal(GroupNeighbors.load(tmp_path / "index").kneighbors(X[:9]), truth)
    with pytest.raises(ImportError, match=r'pip install "sklearn-mcsg\[large\]"'):
        GroupNeighbors(similarity, algorithm="approximate").fit(X)


@pytest.mark.parametrize(("params", "sentence"), [({"algorithm": "ann"}, "'algorithm'"), ({"n_candidates": 0}, "'n_c")])
def test_bad_parameters(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        GroupNeighbors(**params).fit(topics(20))
