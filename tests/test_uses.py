"""What the library is for: scikit-learn's own estimators and searches on ragged groups with planted clusters."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import DBSCAN, HDBSCAN, OPTICS, AffinityPropagation, AgglomerativeClustering, KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import LIKELIHOODS, GroupEmbedding, Groups, ModelComparisonSimilarity


@pytest.mark.parametrize("output", ["distance", "divergence", "centered"])
@pytest.mark.parametrize("linkage", ["average", "complete"])
def test_agglomerative_clustering_in_a_pipeline(planted, output, linkage):
    X, y = planted
    pipeline = make_pipeline(
        ModelComparisonSimilarity(output=output),
        AgglomerativeClustering(3, metric="precomputed", linkage=linkage),
    )
    assert adjusted_rand_score(y, pipeline.fit_predict(X)) == 1


def test_agglomerative_clustering_on_the_similarity_matrix(planted):
    X, y = planted
    similarity = ModelComparisonSimilarity().pairwise(X)
    clusters = AgglomerativeClustering(3, metric="precomputed", linkage="average").fit_predict(
        similarity.max() - similarity
    )
    assert adjusted_rand_score(y, clusters) == 1


@pytest.mark.parametrize(
    "clusterer",
    [
        DBSCAN(eps=60, metric="precomputed"),
        OPTICS(metric="precomputed", cluster_method="dbscan", eps=60),
        HDBSCAN(metric="precomputed", copy=True),
    ],
    ids=lambda clusterer: type(clusterer).__name__,
)
def test_density_clustering_takes_the_distance(planted, clusterer):
    X, y = planted
    assert (
        adjusted_rand_score(y, clusterer.fit_predict(ModelComparisonSimilarity().pairwise(X, output="distance"))) > 0.9
    )


def test_affinity_propagation_takes_the_similarity(planted):
    X, y = planted
    clusters = AffinityPropagation(affinity="precomputed", random_state=0).fit_predict(
        ModelComparisonSimilarity().pairwise(X)
    )
    assert adjusted_rand_score(y, clusters) == 1


@pytest.mark.parametrize("output", ["distance", "divergence", "centered"])
def test_embedding_and_silhouette_take_the_distance(planted, output):
    X, y = planted
    matrix = ModelComparisonSimilarity(output=output).fit_transform(X)
    assert silhouette_score(matrix, y, metric="precomputed") > 0.3
    points = TSNE(metric="precomputed", init="random", perplexity=5, random_state=0).fit_transform(matrix)
    assert silhouette_score(points, y) > 0.5


@pytest.mark.parametrize("output", ["distance", "centered"])
def test_nearest_neighbours_classify_groups(planted, output):
    X, y = planted
    classifier = make_pipeline(ModelComparisonSimilarity(output=output), KNeighborsClassifier(3, metric="precomputed"))
    assert cross_val_score(classifier, X, y, cv=3).mean() == 1


@pytest.mark.parametrize("truth", ["spherical", "diag", "full"])
def test_grid_search_finds_the_likelihood_without_labels(truth):
    rng = np.random.default_rng(3)
    mixing = {"spherical": np.eye(3), "diag": np.diag([0.1, 1, 5]), "full": np.eye(3) + 0.9 * (1 - np.eye(3))}[truth]
    X = [rng.normal(size=(60, 3)) @ mixing + rng.normal(size=3) for _ in range(12)]
    search = GridSearchCV(ModelComparisonSimilarity(), {"likelihood": ["spherical", "diag", "full"]}, cv=3)
    assert search.fit(X).best_params_ == {"likelihood": truth}


def test_grid_search_over_likelihood_and_criterion_in_a_classifier(planted):
    X, y = planted
    pipeline = make_pipeline(
        ModelComparisonSimilarity(output="distance"), KNeighborsClassifier(3, metric="precomputed")
    )
    grid = {
        "modelcomparisonsimilarity__likelihood": ["diag", "spherical", "full", "vmf"],
        "modelcomparisonsimilarity__criterion": ["aic", "tic", "bic"],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 12
    assert search.best_score_ == 1
    assert_array_equal(search.predict(X), y)


def test_the_embedding_in_pipelines_searches_and_clusterers(planted):
    X, y = planted
    matrix = GroupEmbedding(prior_strength=0.5).fit(X).pairwise(X)
    average = AgglomerativeClustering(3, metric="precomputed", linkage="average")
    assert adjusted_rand_score(y, average.fit_predict(matrix)) == 1
    assert adjusted_rand_score(y, make_pipeline(GroupEmbedding(), KMeans(3, n_init=3)).fit_predict(X)) == 1
    grid = {"groupembedding__likelihood": list(LIKELIHOODS), "groupembedding__whiten": [0.0, 0.5]}
    search = GridSearchCV(make_pipeline(GroupEmbedding(prior_strength=0.5), LogisticRegression()), grid, cv=3)
    search.set_params(error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 2 * len(LIKELIHOODS)
    assert search.best_score_ == 1
    weighted = Groups.from_list(X, weights=[np.full(len(x), 2.0) for x in X])
    assert_array_equal(search.predict(weighted), y)


def test_weights_survive_cross_validation(planted):
    """Noise vectors of weight 0 change nothing, so they must still have weight 0 inside the folds."""
    X, y = planted
    rng = np.random.default_rng(0)
    noisy = [np.vstack([x, rng.normal(scale=50, size=(20, 5))]) for x in X]
    weights = [np.r_[np.ones(len(x)), np.zeros(20)] for x in X]
    weighted = Groups.from_list(noisy, weights=weights)
    model = make_pipeline(ModelComparisonSimilarity(output="distance"), KNeighborsClassifier(1, metric="precomputed"))
    scores = cross_validate(model, weighted, y, cv=3)["test_score"]
    assert_array_equal(scores, cross_validate(model, X, y, cv=3)["test_score"])
    assert cross_val_score(model, noisy, y, cv=3).mean() < 1
    label_free = GridSearchCV(ModelComparisonSimilarity(), {"likelihood": ["diag", "spherical"]}, cv=3)
    plain = label_free.fit(X).cv_results_["mean_test_score"]
    np.testing.assert_allclose(label_free.fit(weighted).cv_results_["mean_test_score"], plain, rtol=1e-9)


def test_the_similarity_is_no_kernel(planted):
    """It is indefinite by nature: what an SVC or KernelPCA makes of it has no guarantee."""
    X, _ = planted
    assert np.linalg.eigvalsh(ModelComparisonSimilarity().pairwise(X))[0] < -1
