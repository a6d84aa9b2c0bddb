"""The index against brute force: order, growth, storage, and what users do with the graph."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import sklearn
from conftest import by_one_thread, by_several_threads, traces_memory
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, HDBSCAN, SpectralClustering
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_mcsg import (
    LIKELIHOODS,
    SIF,
    DiagonalGaussian,
    EmbeddingVectorizer,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    MeanVector,
    ModelComparisonSimilarity,
    NormalGamma,
    WordMoversDistance,
    find_duplicates,
    make_text_similarity,
)
from sklearn_mcsg.search import search_of

pytestmark = by_several_threads

SIMILARITIES = [
    *(ModelComparisonSimilarity(likelihood, output="distance") for likelihood in LIKELIHOODS),
    ModelComparisonSimilarity(),
    ModelComparisonSimilarity(criterion="tic", output="divergence"),
    ModelComparisonSimilarity("vmf", "tic", output="distance"),
    ModelComparisonSimilarity(criterion="bayes", output="distance"),
    ModelComparisonSimilarity(output="centered", prior_strength=0.5, n_references=10, random_state=0),
    MeanVector(),
    MeanVector("distance"),
    SIF(1, "distance"),
    WordMoversDistance(),
]
every_similarity = pytest.mark.parametrize("similarity", SIMILARITIES, ids=repr)
WORDS = ["the", "cat", "dog", "tax", "bank", "."]


def brute_force(similarity, X, Y=None):
    """Distances to all indexed groups, by the whole matrix."""
    fitted = sklearn.clone(similarity).fit(Y if Y is not None else X)
    matrix = fitted.pairwise(X, Y) if Y is not None else fitted.pairwise(X)
    return -matrix if similarity.output == "similarity" else matrix


def ranked(matrix, k):
    order = np.argsort(matrix, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(matrix, order, axis=1), order


@pytest.fixture(params=[1024, 0.01], ids=["one block", "many blocks"])
def memory(request):
    with sklearn.config_context(working_memory=request.param):
        yield


@every_similarity
def test_neighbours_are_those_of_the_whole_matrix(similarity, make_groups, memory):
    indexed, queries = make_groups(30, weighted=True), make_groups(7, weighted=True, seed=1)
    index = GroupNeighbors(similarity, n_neighbors=4).fit(indexed)
    distances, indices = index.kneighbors(queries)
    expected, order = ranked(brute_force(similarity, queries, indexed), 4)
    assert_array_equal(indices, order)
    assert_allclose(distances, expected, rtol=1e-9, atol=1e-9)
    own = brute_force(similarity, indexed)
    np.fill_diagonal(own, np.inf)
    distances, indices = index.kneighbors(n_neighbors=29)
    assert_array_equal(indices, ranked(own, 29)[1])
    assert (indices != np.arange(30)[:, None]).all()
    assert_array_equal(index.kneighbors(queries, 2, return_distance=False), order[:, :2])


def test_ties_go_to_the_lower_index(memory):
    one, other = np.array([[0.0], [1.0]]), np.array([[5.0], [7.0]])
    index = GroupNeighbors(n_neighbors=3).fit([other, one, one, one, other, one])
    assert index.kneighbors([one], 3, return_distance=False).tolist() == [[1, 2, 3]]
    assert index.kneighbors([one], 5, return_distance=False).tolist() == [[1, 2, 3, 5, 0]]
    assert index.kneighbors(return_distance=False)[2].tolist() == [1, 3, 5]


@every_similarity
def test_within_a_radius(similarity, make_groups, memory):
    indexed, queries = make_groups(20), make_groups(5, seed=1)
    matrix = brute_force(similarity, queries, indexed)
    radius = np.median(matrix)
    distances, indices = GroupNeighbors(similarity).fit(indexed).radius_neighbors(queries, radius, sort_results=True)
    for row, found, values in zip(matrix, indices, distances, strict=True):
        assert set(found) == set(np.flatnonzero(row <= radius))
        assert_allclose(values, np.sort(row[found]), rtol=1e-9, atol=1e-9)
    own = GroupNeighbors(similarity).fit(indexed).radius_neighbors(radius=np.inf, return_distance=False)
    assert [len(row) for row in own] == [19] * 20


@every_similarity
def test_growing_and_shrinking_is_fitting(similarity, make_groups):
    groups, queries = make_groups(20, weighted=True), make_groups(5, weighted=True, seed=1)
    whole = GroupNeighbors(similarity).fit(groups).kneighbors(queries)
    grown = GroupNeighbors(similarity).fit(groups[:8]).partial_fit(groups[8:9]).partial_fit(groups[9:])
    assert_array_equal(grown.kneighbors(queries)[1], whole[1])
    assert_allclose(grown.kneighbors(queries)[0], whole[0], rtol=1e-9, atol=1e-9)
    grown.partial_fit(queries).remove([20, 21, 22, -2, -1])
    assert grown.n_groups_ == 20
    assert_allclose(grown.kneighbors(queries)[0], whole[0], rtol=1e-9, atol=1e-9)


def test_a_failed_partial_fit_changes_nothing(make_groups):
    groups = make_groups()
    index = GroupNeighbors().fit(groups)
    before = index.kneighbors()
    for wrong in ([np.ones((2, 3))], [np.full((2, 4), np.nan)], [np.ones((0, 4))]):
        with pytest.raises(ValueError, match="features|NaN|no vectors"):
            index.partial_fit(wrong)
    assert_array_equal(index.kneighbors(), before)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_graph_has_the_form_of_scikit_learns(mode, make_groups, memory):
    points = np.random.default_rng(0).normal(size=(30, 3))
    groups = points[:, None]
    ours = GroupNeighbors(WordMoversDistance(), n_neighbors=4, mode=mode)  # of single vectors: the Euclidean distance
    theirs = KNeighborsTransformer(n_neighbors=4, mode=mode).fit(points)
    graph, expected = ours.fit_transform(groups), theirs.transform(points)
    assert_array_equal(graph.indptr, expected.indptr)
    assert_array_equal(graph.indices, expected.indices)
    assert_allclose(graph.data, expected.data, atol=1e-12)
    assert_array_equal(graph.indices[graph.indptr[:-1]], np.arange(30))
    assert_array_equal(ours.transform(groups).indices, expected.indices)
    assert_allclose(
        ours.kneighbors_graph(mode=mode).toarray(), theirs.kneighbors_graph(mode=mode).toarray(), atol=1e-12
    )


def test_clusterers_and_embeddings_take_the_graph(planted):
    X, y = planted
    graph = GroupNeighbors(n_neighbors=10).fit_transform(X)
    assert adjusted_rand_score(y, DBSCAN(eps=80, min_samples=3, metric="precomputed").fit_predict(graph)) == 1
    complete = GroupNeighbors(n_neighbors=35).fit_transform(X)
    wide = GroupNeighbors(n_neighbors=15).fit_transform(X)
    with pytest.raises(ValueError, match="asymmetric"):
        HDBSCAN(metric="precomputed", copy=True).fit(wide)
    symmetric = wide.maximum(wide.T)
    assert symmetric.nnz < complete.nnz
    assert adjusted_rand_score(y, HDBSCAN(metric="precomputed", copy=True).fit_predict(symmetric)) == 1
    spectral = SpectralClustering(3, affinity="precomputed_nearest_neighbors", n_neighbors=15, random_state=0)
    assert adjusted_rand_score(y, spectral.fit_predict(complete)) == 1
    tsne = make_pipeline(
        GroupNeighbors(n_neighbors=30), TSNE(metric="precomputed", init="random", perplexity=9, random_state=0)
    )
    assert tsne.fit_transform(X).shape == (36, 2)


@by_one_thread
@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning", "ignore:X is a table")
@parametrize_with_checks([GroupNeighbors(n_neighbors=1), GroupNeighbors(MeanVector("distance"), n_neighbors=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def text_index(vectors=None, **params):
    vectors = (WORDS, np.random.default_rng(0).normal(size=(6, 5))) if vectors is None else vectors
    steps = [("v", EmbeddingVectorizer(vectors, **params)), ("s", ModelComparisonSimilarity(output="distance"))]
    return GroupNeighbors(Pipeline(steps), n_neighbors=1)


def test_a_text_pipeline_is_saved_by_the_path_of_its_vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    rows = np.random.default_rng(0).normal(size=(6, 5))
    path.write_text("\n".join(" ".join([w, *map(str, row)]) for w, row in zip(WORDS, rows, strict=True)))
    texts = ["the cat .", "the dog .", "bank tax .", "the tax bank"]
    index = text_index(path, frequencies=None).fit(texts)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert loaded.similarity_["v"].frequencies_ == index.similarity_["v"].frequencies_
    assert_array_equal(loaded.kneighbors(["a tax"], 2), index.kneighbors(["a tax"], 2))
    with pytest.raises(TypeError, match="by name or path"):
        text_index({"a": [1.0], "b": [2.0]}, weighting=None).fit(["a b", "b b"]).save(tmp_path / "other")


def test_texts_through_a_pipeline():
    texts = ["the cat .", "the dog .", "bank tax .", "the tax bank"]
    index = text_index().fit(texts)
    assert index.kneighbors(["tax bank ."], return_distance=False).tolist() == [[2]]
    index.partial_fit(["the dog cat"])
    assert index.n_groups_ == 5


@every_similarity
@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_saved_and_loaded(similarity, mmap_mode, make_groups, tmp_path):
    groups, queries = make_groups(12, weighted=True), make_groups(4, weighted=True, seed=1)
    index = GroupNeighbors(similarity, n_neighbors=3, mode="connectivity").fit(groups)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index", mmap_mode=mmap_mode)
    assert repr(loaded) == repr(index)
    assert_array_equal(loaded.kneighbors(queries), index.kneighbors(queries))
    assert_array_equal(loaded.partial_fit(queries).kneighbors(), index.partial_fit(queries).kneighbors())
    loaded.save(tmp_path / "index")
    assert GroupNeighbors.load(tmp_path / "index").n_groups_ == 16
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


@pytest.mark.filterwarnings("ignore:X is a table")
def test_priors_precision_and_names_are_saved(tmp_path):
    pd = pytest.importorskip("pandas")
    prior = NormalGamma(mean=np.zeros(2), kappa=1.0, alpha=2.0, beta=np.ones(2))
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32), columns=["a", "b"])
    similarity = ModelComparisonSimilarity(DiagonalGaussian(prior), "bayes", output="distance")
    index = GroupNeighbors(similarity, n_neighbors=2).fit(X)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert loaded.kneighbors(X)[0].dtype == np.float32
    assert_array_equal(loaded.kneighbors(X), index.kneighbors(X))
    with pytest.raises(ValueError, match="feature names"):
        loaded.kneighbors(X.rename(columns={"a": "c"}))


def test_what_cannot_be_saved_or_loaded(tmp_path, make_groups):
    with pytest.raises(FileNotFoundError, match="not a saved index"):
        GroupNeighbors.load(tmp_path)
    with pytest.raises(ValueError, match="mmap_mode"):
        GroupNeighbors.load(tmp_path, mmap_mode="w+")
    index = GroupNeighbors().fit(make_groups())
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    for taken in ("file", "folder"):
        with pytest.raises(ValueError, match="exists and is not a saved index"):
            index.save(tmp_path / taken)
    assert (tmp_path / "file").read_text() == "mine"
    drawn = ModelComparisonSimilarity(output="distance", random_state=np.random.RandomState(0))
    index = GroupNeighbors(drawn).fit(make_groups())
    with pytest.raises(TypeError, match="cannot hold a RandomState.*random_state as an integer"):
        index.save(tmp_path / "own")
    assert not (tmp_path / "own").exists()
    words = {f"word{i}": [1.0 * i, 1.0] for i in range(2000)}
    index = text_index(words, weighting=None).fit(["word1 word2", "word3"])
    with pytest.raises(TypeError, match="by name or path") as error:
        index.save(tmp_path / "own")
    assert len(str(error.value)) < 400, "the message does not print the vectors"


def test_errors(make_groups):
    groups = make_groups()
    with pytest.raises(NotFittedError):
        GroupNeighbors().kneighbors(groups)
    with pytest.raises(TypeError, match="must compare groups"):
        GroupNeighbors(Pipeline([("a", SIF()), ("b", KNeighborsTransformer())])).fit(groups)
    with pytest.raises(ValueError, match="'similarity' parameter"):
        GroupNeighbors(LinearRegression()).fit(groups)
    index = GroupNeighbors().fit(groups)
    with pytest.raises(ValueError, match="n_neighbors=8 is more than the 7 indexed groups besides the query itself"):
        index.kneighbors(n_neighbors=8)
    with pytest.raises(ValueError, match="n_neighbors=9 is more than the 8 indexed groups"):
        index.kneighbors(groups, 9)
    with pytest.raises(ValueError, match="positive integer"):
        index.kneighbors(groups, 0)
    with pytest.raises(ValueError, match="X has 2 features"):
        index.kneighbors(np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match="empty"):
        index.kneighbors([])
    with pytest.raises(ValueError, match="Group 1 has no vectors"):
        index.kneighbors(Groups(np.ones((1, 4)), [0, 1, 1]))
    with pytest.raises(ValueError, match="mode must be"):
        index.kneighbors_graph(mode="weights")
    with pytest.raises(ValueError, match="between 0 and 7"):
        index.remove([8])
    with pytest.raises(ValueError, match="At least one group must remain"):
        index.remove(np.arange(8))
    with pytest.raises(ValueError, match="Negative distances"):
        GroupNeighbors(ModelComparisonSimilarity()).fit(groups).kneighbors_graph(mode="distance")


def test_duplicates(make_groups, memory):
    rng = np.random.default_rng(0)
    base = [rng.normal(size=(5, 3)) + 4 * rng.normal(size=3) for _ in range(6)]
    X = [*base, base[1][::-1], base[4] + 1e-6, base[1] + 1e-6, rng.normal(size=(4, 3))]
    found = find_duplicates(X, threshold=0.01)
    assert [sorted(group.tolist()) for group in found] == [[1, 6, 8], [4, 7]]
    assert find_duplicates(base, threshold=1e-3) == []
    cosine = find_duplicates(X, threshold=1e-9, similarity=MeanVector("distance"))
    assert [1, 6, 8] in [group.tolist() for group in cosine]


def test_duplicates_at_a_level():
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3, size=(60, 4))
    X = [rng.normal(c, 1, size=(rng.integers(3, 20), 4)) for c in centres]
    X += [X[3] + 1e-3, X[50][::-1]]
    similarity = ModelComparisonSimilarity(output="distance", random_state=0)
    assert [group.tolist() for group in find_duplicates(X, level=1e-5, similarity=similarity)] == [[3, 60], [50, 61]]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({}, ValueError, "either a threshold or a level"),
        ({"threshold": 1, "level": 0.1}, ValueError, "either a threshold or a level"),
        ({"level": 2}, ValueError, "between 0 and 1"),
        ({"threshold": np.nan}, ValueError, "threshold must be a number"),
        ({"level": 0.1, "similarity": ModelComparisonSimilarity()}, ValueError, "level needs a distance"),
        ({"level": 0.1, "similarity": MeanVector()}, ValueError, "level needs a distance"),
    ],
)
def test_errors_of_duplicates(params, error, message, make_groups):
    with pytest.raises(error, match=message):
        find_duplicates(make_groups(), **params)


def test_calibration_is_saved(tmp_path, make_groups):
    groups = make_groups(60)
    index = GroupNeighbors(ModelComparisonSimilarity(output="distance", random_state=0)).fit(groups)
    index.similarity_.calibrate(n_pairs=500)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index").similarity_
    assert_array_equal(loaded.pvalue(groups, groups[::-1]), index.similarity_.pvalue(groups, groups[::-1]))


def test_jobs_of_the_index_are_not_left_with_the_similarity(make_groups):
    index = GroupNeighbors(n_jobs=2).fit(make_groups())
    index.kneighbors()
    search = search_of(index)
    assert search.n_jobs == search.comparer.comparison.n_jobs == 2
    assert index.similarity_.n_jobs is None


def test_a_failed_fit_changes_nothing(make_groups):
    index = GroupNeighbors().fit(make_groups())
    with pytest.raises(TypeError, match="must compare groups"):
        index.set_params(similarity=KNeighborsTransformer()).fit(make_groups(5))
    assert index.n_groups_ == 8


def test_parameters_changed_after_fit(tmp_path, make_groups):
    index = GroupNeighbors().fit(make_groups())
    index.similarity_.set_params(likelihood="full")
    for action in (lambda: index.remove(0), lambda: index.save(tmp_path / "index")):
        with pytest.raises(ValueError, match="has changed since fit"):
            action()
    assert index.remove([]).n_groups_ == 8


@pytest.mark.parametrize(
    ("similarity", "params"),
    [
        (ModelComparisonSimilarity(), {"prior_strength": 2.0}),
        (ModelComparisonSimilarity(), {"penalty_scale": 2.0}),
        (GroupEmbedding(), {"whiten": 1.0}),
        (GroupEmbedding(), {"rotate": False}),
        (GroupEmbedding(), {"n_components": 2}),
    ],
    ids=str,
)
def test_parameters_changed_after_fit_are_not_saved(similarity, params, tmp_path, make_groups):
    """A loaded index would apply them to queries, and not to the groups that it keeps."""
    index = GroupNeighbors(similarity).fit(make_groups())
    given = index.similarity_.get_params()
    index.similarity_.set_params(**params)
    with pytest.raises(ValueError, match="has changed since fit: call fit before saving"):
        index.save(tmp_path / "index")
    index.similarity_.set_params(**{name: given[name] for name in params})
    index.save(tmp_path / "index")
    assert_array_equal(
        GroupNeighbors.load(tmp_path / "index").kneighbors(make_groups())[0], index.kneighbors(make_groups())[0]
    )


def test_exact_duplicates_are_found_at_any_level():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4, 3)) * np.exp(2 * rng.normal(size=(300, 1, 1)))
    found = find_duplicates(np.concatenate([x, x[:5, ::-1]]), level=1e-7)
    assert [group.tolist() for group in found] == [[i, 300 + i] for i in range(5)]


@traces_memory
def test_memory_of_many_duplicates_is_bounded():
    X = np.zeros((4000, 1, 2))
    tracemalloc.start()
    with sklearn.config_context(working_memory=4):
        (found,) = find_duplicates(X, threshold=1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 4000
    assert peak < 60 * 2**20  # all pairs would be 16 million


@by_one_thread
def test_another_process_loads_what_was_saved(tmp_path):
    """Also one that has imported nothing else of the package."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 1\ncat 3 0\ndog 2 1\ntax 0 4\n")
    pipeline = make_text_similarity(vectors=str(vectors)).set_params(vectorizer__frequencies=None)
    GroupNeighbors(pipeline).fit(["the cat", "the dog", "the tax"]).save(tmp_path / "index")
    code = "import sys; from sklearn_mcsg import GroupNeighbors; index = GroupNeighbors.load(sys.argv[1])\n"
    code += "index.save(sys.argv[1]); print(index.kneighbors(['tax'], n_neighbors=1, return_distance=False))"
    command = [sys.executable, "-c", code, str(tmp_path / "index")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.stdout.strip() == "[[2]]", result.stderr


def test_an_invalid_output_gets_a_sentence(make_groups):
    for output in ("nonsense", ["distance"]):
        with pytest.raises(ValueError, match="'output' parameter"):
            GroupNeighbors(ModelComparisonSimilarity(output=output)).fit(make_groups())
