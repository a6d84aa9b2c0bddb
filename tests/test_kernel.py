"""Balanced groups: a metric and a positive definite kernel, by theorem, and what takes them."""

import numpy as np
import oracle
import pytest
from conftest import COMBINATIONS, outputs_of, random_groups
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from sklearn_mcsg import GroupNeighbors, ModelComparisonSimilarity, model_comparison_similarity

WITH_KERNEL = [pair for pair in COMBINATIONS if "kernel" in outputs_of(*pair)]
with_kernel = pytest.mark.parametrize(("likelihood", "criterion"), WITH_KERNEL)


def uneven(n_groups=60, seed=0, d=4):
    """Groups of one to thirty vectors with different means and variances."""
    return random_groups(n_groups, d, (1, 30), deviations=(0.3, 2), seed=seed)


def test_which_combinations_have_a_kernel():
    expected = {
        (likelihood, criterion) for likelihood in ("diag", "spherical") for criterion in ("aic", "bic", "bayes")
    }
    assert set(WITH_KERNEL) == expected


@with_kernel
@pytest.mark.parametrize("prior_strength", [0, 0.5])
def test_kernel_is_positive_definite_and_its_distance_a_metric(likelihood, criterion, prior_strength):
    X = uneven()
    model = ModelComparisonSimilarity(likelihood, criterion, prior_strength=prior_strength, balanced=True).fit(X)
    kernel, distance = (model.pairwise(X, output=output) for output in ("kernel", "distance"))
    assert np.linalg.eigvalsh(kernel)[0] > -1e-12 * len(X)
    for gamma in (0.01, 1, 100):  # for every width, by Schoenberg's theorem
        assert np.linalg.eigvalsh(np.exp(-gamma * distance / np.median(distance)))[0] > -1e-9
    root = np.sqrt(distance)
    assert all((root <= root[:, [k]] + root[[k]] + 1e-7).all() for k in range(len(X)))
    centred = distance - distance.mean(axis=0)
    centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values = np.linalg.eigvalsh(centred)
    assert values[0] > -1e-6 * values[-1]


def test_true_sizes_have_no_kernel():
    """The theorem needs equal totals: with true sizes there are negative eigenvalues and broken triangles."""
    X = uneven()
    distance = ModelComparisonSimilarity(output="distance").pairwise(X)
    root = np.sqrt(distance)
    assert any((root > root[:, [k]] + root[[k]] + 1e-3).any() for k in range(len(X)))


@with_kernel
def test_kernel_agrees_with_the_oracle(likelihood, criterion):
    X = uneven(12, d=3)
    model = ModelComparisonSimilarity(likelihood, criterion).fit(X)
    kernel = model.pairwise(X, output="kernel")
    prior = ModelComparisonSimilarity(likelihood, criterion, balanced=True).fit(X).likelihood_.prior
    prior = None if prior is None else vars(prior)
    members = [(x, np.full(len(x), 1 / len(x))) for x in X]

    def distance(a, b):
        return np.squeeze(oracle.compare(likelihood, criterion, a, b, 1e-6, prior)["distance"])

    truth = np.array([[distance(a, b) for b in members] for a in members])
    truth[np.diag_indices(12)] = 0
    scale = np.median(truth[np.triu_indices(12, 1)])
    assert_allclose(kernel, np.exp(-truth / scale), rtol=1e-6)


@with_kernel
def test_balanced_or_not_the_kernel_is_the_same(likelihood, criterion):
    X, Y = uneven(30), uneven(5, seed=1)
    models = [
        ModelComparisonSimilarity(likelihood, criterion, output=output, balanced=balanced, prior_strength=0.5).fit(X)
        for output, balanced in (("kernel", False), ("kernel", True), ("centered", False), ("similarity", True))
    ]
    truth = models[0].transform(Y)
    assert (truth > 0).all()
    assert (truth <= 1).all()
    for model in models:
        assert_allclose(model.pairwise(Y, X, output="kernel"), truth, rtol=1e-8)
        assert_allclose(model.paired(Y, X[:5], output="kernel"), np.diag(truth), rtol=1e-8)
    assert np.median(models[0].fit_transform(X)[np.triu_indices(30, 1)]) == pytest.approx(np.exp(-1), rel=1e-6)
    grown = clone(models[0]).partial_fit(X[:11]).partial_fit(X[11:])
    assert_allclose(grown.transform(Y), truth, rtol=1e-9)


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "vmf"])
def test_balanced_groups_count_as_one_observation(likelihood, make_groups):
    """Repeating all vectors of a group changes nothing, and an empty group is pseudo-vectors of weight 1."""
    groups = make_groups(12, 3, (2, 6))
    doubled = [np.concatenate([x, x]) if i % 2 else x for i, x in enumerate(groups)]
    model = ModelComparisonSimilarity(likelihood, balanced=True, prior_strength=0.5)
    for output in ("similarity", "distance"):
        matrix = clone(model).set_params(output=output).fit_transform(groups)
        assert_allclose(clone(model).set_params(output=output).fit_transform(doubled), matrix, atol=1e-9)
    fitted = model.fit(groups)
    comparison = fitted.__mcsg_comparer__().comparison
    pair = fitted.__mcsg_groups__([np.empty((0, 3)), groups[0]])
    prepared = comparison.prepare(comparison.summarize(pair), fitted.output)
    assert_allclose(prepared.n, 1.5)
    explanation = model.explain(doubled[1], groups[2])
    parts = explanation.vectors[0].sum() + explanation.vectors[1].sum() + explanation.penalty + explanation.prior
    assert explanation.similarity == pytest.approx(parts, abs=1e-9)
    assert explanation.weights[0].sum() == pytest.approx(1)


def test_empty_groups_under_tic_are_refused(make_groups):
    model = ModelComparisonSimilarity("spherical", "tic", balanced=True, prior_strength=0.5).fit(make_groups(9, 3))
    with pytest.raises(ValueError, match="Group 1 has no vectors: SphericalGaussian with TIC cannot balance"):
        model.score_samples([np.ones((2, 3)), np.empty((0, 3))])


def test_empty_groups_in_the_kernel(make_groups):
    X = [*make_groups(20, 3, (1, 9)), np.empty((0, 3))]
    kernel = ModelComparisonSimilarity(output="kernel", prior_strength=0.5).fit_transform(X)
    assert np.isfinite(kernel).all()
    assert np.linalg.eigvalsh(kernel)[0] > -1e-10


def test_equal_groups_have_a_scale():
    assert_array_equal(ModelComparisonSimilarity(output="kernel").fit_transform([np.eye(3)] * 4), 1)


def test_what_has_no_kernel_gets_a_sentence(make_groups):
    X = make_groups(6, 3)
    for likelihood, criterion, name in (("diag", "tic", "TIC"), ("full", "aic", "FullGaussian"), ("vmf", "bic", "Von")):
        for call in (
            lambda l=likelihood, c=criterion: ModelComparisonSimilarity(l, c, output="kernel").fit(X),
            lambda l=likelihood, c=criterion: ModelComparisonSimilarity(l, c).fit(X).pairwise(X, output="kernel"),
        ):
            with pytest.raises(
                ValueError, match=f"'diag', 'spherical' with the criteria 'aic', 'bic', 'bayes'.*{name}"
            ):
                call()
    with pytest.raises(NotFittedError, match="output='kernel' must be learnt from a corpus"):
        ModelComparisonSimilarity().pairwise(X, output="kernel")
    assert model_comparison_similarity(X, output="kernel").shape == (6, 6)


def test_kernel_machines_take_it(planted):
    X, y = planted
    svc = make_pipeline(ModelComparisonSimilarity(output="kernel"), SVC(kernel="precomputed"))
    assert cross_val_score(svc, X, y, cv=3).mean() == 1
    grid = GridSearchCV(svc, {"modelcomparisonsimilarity__likelihood": ["diag", "spherical"]}, cv=3).fit(X, y)
    assert grid.best_score_ == 1
    points = make_pipeline(
        ModelComparisonSimilarity(output="kernel"), KernelPCA(2, kernel="precomputed")
    ).fit_transform(X)
    assert points.shape == (36, 2)
    ridge = make_pipeline(ModelComparisonSimilarity(output="kernel"), KernelRidge(kernel="precomputed", alpha=0.1))
    assert ridge.fit(X, y).score(X, y) > 0.9
    index = GroupNeighbors(ModelComparisonSimilarity(output="kernel"), n_neighbors=3).fit(X)
    assert (y[index.kneighbors(return_distance=False)] == y[:, None]).all()
