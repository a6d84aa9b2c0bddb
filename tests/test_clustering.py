"""Clustering by model comparison against brute force, scipy and scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from conftest import COMBINATIONS, Exponential
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    parametrize_with_checks,
)

from sklearn_mcsg import (
    DiagonalGaussian,
    Groups,
    ModelComparisonClustering,
    ModelComparisonSimilarity,
    NormalGamma,
)
from sklearn_mcsg.clustering import _merging
from sklearn_mcsg.engine import parallel
from sklearn_mcsg.engine.dispatch import engine_context
from sklearn_mcsg.likelihoods import Fit

ESTIMATORS = [
    ModelComparisonClustering(),
    ModelComparisonClustering(n_clusters=2),
    ModelComparisonClustering("spherical", n_clusters=2, balanced=True),
]


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning", "ignore:X is a table")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X is a table")
@pytest.mark.parametrize("check", [check_dataframe_column_names_consistency, check_param_validation])
def test_further_scikit_learn_checks(check):
    check("ModelComparisonClustering", ModelComparisonClustering())


# The slow, obvious truth: fit every pair of clusters anew at every step.


def united(groups, members):
    """The rows of several groups."""
    return np.concatenate([np.arange(groups.offsets[i], groups.offsets[i + 1]) for i in members])


def total_criterion(model, groups, clusters):
    """The criterion of each cluster, from the vectors of its groups, less that of the pseudo-vectors."""
    rows = [united(groups, members) for members in clusters]
    indices = np.concatenate(rows)
    offsets = np.cumsum([0, *map(len, rows)])
    weights = None if groups.weights is None else groups.weights[indices]
    positions = groups.row_positions[indices]
    pooled = Groups(groups.vectors, offsets, indices=indices, weights=weights, positions=positions)
    information = model.score_samples(pooled)
    if model.prior_strength > 0:
        learnt = model.__mcsg_comparer__().comparison.model
        information += 2 * learnt.criterion.goodness(Fit(learnt.likelihood, learnt.pseudo))
    return information


def brute_force(model, groups):
    """Partitions into n, n - 1, ..., 1 clusters, and the similarity of the two merged at each step."""
    model.fit(groups)
    clusters = [(i,) for i in range(len(groups))]
    partitions, similarities = [clusters], []
    while len(clusters) > 1:
        alone = total_criterion(model, groups, clusters)
        i, j = np.triu_indices(len(clusters), 1)
        unions = [clusters[a] + clusters[b] for a, b in zip(i, j, strict=True)]
        values = alone[i] + alone[j] - total_criterion(model, groups, unions)
        best = np.argmax(values)
        similarities.append(values[best])
        clusters = [unions[best] if k == i[best] else c for k, c in enumerate(clusters) if k != j[best]]
        partitions.append(clusters)
    return partitions, np.array(similarities)


def labels_of(clusters, n):
    labels = np.empty(n, dtype=int)
    for label, members in enumerate(sorted(clusters, key=lambda members: (-len(members), min(members)))):
        labels[list(members)] = label
    return labels


@pytest.mark.parametrize(("prior_strength", "weighted"), [(0.0, False), (1.5, True)])
@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
def test_brute_force(likelihood, criterion, prior_strength, weighted, make_groups):
    groups = make_groups(12, 3, sizes=(2, 7), weighted=weighted)
    params = dict(prior_strength=prior_strength, reg_covar=0.01, penalty_scale=1.3)
    with engine_context("numba" if weighted else "numpy"):
        clustering = ModelComparisonClustering(likelihood, criterion, **params).fit(groups)
    model = ModelComparisonSimilarity(likelihood, criterion, **params)
    partitions, similarities = brute_force(model, groups)
    scale = np.abs(similarities).max()
    assert_allclose(clustering.similarities_, similarities, rtol=1e-9, atol=1e-9 * scale)
    for clusters in partitions:
        assert_array_equal(clustering.cut(len(clusters)), labels_of(clusters, 12))
        total = total_criterion(model, groups, clusters).sum()
        assert_allclose(clustering.evidence_[len(clusters) - 1], total, rtol=1e-9, atol=1e-9 * scale)
    merged = next((t for t, s in enumerate(similarities) if s <= 0), 11)
    assert clustering.n_clusters_ == 12 - merged
    assert_array_equal(clustering.labels_, clustering.cut(12 - merged))


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_many_orphans_and_dropped_slots(engine, make_groups, monkeypatch):
    """Enough groups that partners are lost, found again, and slots dropped many times."""
    monkeypatch.setattr(_merging, "ROWS", 2**12)
    groups = make_groups(60, 2, sizes=(2, 5), spread=2.0, seed=3)
    with engine_context(engine):
        clustering = ModelComparisonClustering(reg_covar=0.1, prior_strength=0).fit(groups)
    partitions, similarities = brute_force(ModelComparisonSimilarity(reg_covar=0.1), groups)
    assert_allclose(clustering.similarities_, similarities, rtol=1e-9, atol=1e-9)
    for clusters in partitions:
        assert_array_equal(clustering.cut(len(clusters)), labels_of(clusters, 60))


# What it is for.


def planted_groups(n_groups=120, n_clusters=6, seed=0, first=0, dtype=float):
    """Groups of 3 to 12 vectors in 10 dimensions, their clusters, and the clusters' centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=2.0, size=(n_clusters, 10))
    spreads = rng.uniform(0.5, 1.5, size=(n_clusters, 10))
    rng = np.random.default_rng([seed, first])
    y = rng.integers(n_clusters, size=n_groups)
    X = [(centres[k] + spreads[k] * rng.normal(size=(rng.integers(3, 13), 10))).astype(dtype) for k in y]
    return X, y, centres


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("likelihood", "criterion", "prior_strength"),
    [("diag", "aic", 2), ("diag", "bic", 2), ("diag", "bayes", 0), ("spherical", "bic", 2)],
)
def test_planted_clusters_are_found_with_their_number(likelihood, criterion, prior_strength, seed):
    X, y, centres = planted_groups(seed=seed)
    clustering = ModelComparisonClustering(likelihood, criterion, prior_strength=prior_strength).fit(X)
    assert adjusted_rand_score(y, clustering.labels_) >= 0.95
    new, y_new, _ = planted_groups(30, seed=seed, first=1)
    far = [centres[0] + 40 + x for x in new[:3]]
    predicted = clustering.predict([*new, *far])
    assert adjusted_rand_score(y_new, predicted[:30]) >= 0.9
    assert_array_equal(predicted[30:], -1)
    assert clone(clustering).set_params(n_clusters=6).fit(X).predict(far).min() >= 0


def test_order_of_groups_does_not_matter():
    X, _, _ = planted_groups(50, seed=1)
    order = np.random.default_rng(0).permutation(50)
    clustering = ModelComparisonClustering()
    labels = clustering.fit_predict(X)
    shuffled = clustering.fit([X[i] for i in order])
    assert adjusted_rand_score(labels[order], shuffled.labels_) == 1


@pytest.mark.parametrize("prior_strength", [0.0, 1.0])
def test_unit_of_the_vectors_does_not_matter(prior_strength):
    X, _, _ = planted_groups(30)
    clustering = ModelComparisonClustering(prior_strength=prior_strength, reg_covar=1e-4).fit(X)
    scaled = clone(clustering).set_params(reg_covar=1e-8).fit([0.01 * x for x in X])
    assert_allclose(scaled.similarities_, clustering.similarities_, rtol=1e-8, atol=1e-8)


def test_integer_weights_are_repetitions(make_groups):
    groups = make_groups(15, 3, sizes=(2, 6))
    weights = np.random.default_rng(0).integers(1, 4, size=groups.n_rows)
    weighted = Groups(groups.vectors, groups.offsets, weights=weights)
    rows = np.repeat(np.arange(groups.n_rows), weights)
    repeated = Groups(groups.vectors, np.r_[0, np.cumsum(weights)][groups.offsets], indices=rows)
    a, b = (ModelComparisonClustering().fit(g) for g in (weighted, repeated))
    assert_allclose(a.similarities_, b.similarities_, rtol=1e-9, atol=1e-9)
    assert_array_equal(a.children_, b.children_)
    a, b = (ModelComparisonClustering(balanced=True).fit(g) for g in (weighted, repeated))
    assert_allclose(a.similarities_, b.similarities_, rtol=1e-9, atol=1e-9)


def test_a_group_as_one_observation():
    """Repeating all vectors of a group changes nothing where it is the group that counts."""
    X, _, _ = planted_groups(30)
    repeated = [np.concatenate([x] * (1 + i % 3)) for i, x in enumerate(X)]
    clustering = ModelComparisonClustering(balanced=True, prior_strength=0.5).fit([*X, np.empty((0, 10))])
    other = clone(clustering).fit([*repeated, np.empty((0, 10))])
    assert_allclose(clustering.similarities_, other.similarities_, rtol=1e-8, atol=1e-8)
    assert_array_equal(clustering.predict(X), other.predict(repeated))


def test_single_precision():
    X, y, _ = planted_groups(60, dtype=np.float32)
    clustering = ModelComparisonClustering(prior_strength=2).fit(X)
    assert adjusted_rand_score(y, clustering.labels_) >= 0.95
    double = ModelComparisonClustering(prior_strength=2).fit([x.astype(float) for x in X])
    assert_array_equal(clustering.children_, double.children_)


# The tree.


def test_tree_is_scipys_and_any_cut_is_a_fit(make_groups):
    groups = make_groups(25, 4, seed=1)
    clustering = ModelComparisonClustering("spherical", n_clusters=1).fit(groups)
    tree = clustering.linkage_matrix_
    assert is_valid_linkage(tree, throw=True)
    assert np.all(np.diff(tree[:, 2]) > 0)
    assert len(dendrogram(tree, no_plot=True)["leaves"]) == 25
    for k in (1, 2, 5, 12, 25):
        labels = clustering.cut(k)
        if k < 25:  # SciPy before 1.12 merges two groups even then
            assert adjusted_rand_score(labels, fcluster(tree, k, "maxclust")) == 1
        other = clone(clustering).set_params(n_clusters=k).fit(groups)
        assert_array_equal(other.labels_, labels)
        assert other.n_clusters_ == k == len(np.unique(labels))
        _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
        assert_array_equal(np.lexsort([first, -sizes]), np.arange(k))


def test_a_given_prior_is_used(make_groups):
    groups = make_groups(10, 2)
    prior = NormalGamma(mean=np.zeros(2), kappa=0.1, alpha=2.0, beta=np.ones(2))
    clustering = ModelComparisonClustering(DiagonalGaussian(prior), "bayes", prior_strength=0).fit(groups)
    assert_allclose(
        clustering.evidence_[0],
        total_criterion(ModelComparisonSimilarity(DiagonalGaussian(prior), "bayes"), groups, [range(10)]).sum(),
    )


def test_a_likelihood_of_ones_own():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = [rng.exponential(10.0**k, size=(rng.integers(3, 9), 4)) for k in y]
    clustering = ModelComparisonClustering(Exponential(), prior_strength=0).fit(X)
    assert_array_equal(clustering.cut(3), y)
    _, similarities = brute_force(ModelComparisonSimilarity(Exponential()), Groups.from_list(X))
    assert_allclose(clustering.similarities_, similarities, rtol=1e-9, atol=1e-9)


# Edges.


def test_one_group():
    for params in ({}, dict(n_clusters=1)):
        clustering = ModelComparisonClustering(**params).fit([np.eye(3)])
        assert_array_equal(clustering.labels_, [0])
        assert clustering.children_.shape == (0, 2)
        assert clustering.linkage_matrix_.shape == (0, 4)
        assert_array_equal(clustering.predict([np.eye(3)]), [0])


def test_equal_groups_merge_in_order():
    clustering = ModelComparisonClustering().fit([np.eye(3)] * 5)
    assert clustering.n_clusters_ == 1
    assert is_valid_linkage(clustering.linkage_matrix_, throw=True)
    assert_array_equal(clustering.children_[0], [0, 1])


def test_empty_groups_need_a_prior():
    X = [*planted_groups(10)[0], np.empty((0, 10))]
    with pytest.raises(ValueError, match="Group 10 has no vectors"):
        ModelComparisonClustering(prior_strength=0).fit(X)
    clustering = ModelComparisonClustering(prior_strength=1).fit(X)
    assert len(clustering.labels_) == 11
    assert clustering.predict([np.empty((0, 10))]).shape == (1,)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(n_clusters=31), r"n_clusters must be between 1 and the number of groups \(n_samples = 30\), got 31"),
        (dict(n_clusters=0), "The 'n_clusters' parameter"),
        (dict(balanced="groups"), "The 'balanced' parameter"),
        (dict(likelihood="vmf", criterion="bayes"), "defines no log_evidence"),
    ],
)
def test_bad_parameters(params, message):
    X, _, _ = planted_groups(30)
    clustering = ModelComparisonClustering(**params)
    with pytest.raises(ValueError, match=message):
        clustering.fit(X)
    with pytest.raises(NotFittedError):
        clustering.predict(X)


def test_bad_input():
    X, _, _ = planted_groups(30)
    clustering = ModelComparisonClustering()
    with pytest.raises(NotFittedError):
        clustering.cut(2)
    clustering.fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but ModelComparisonClustering is expecting 10"):
        clustering.predict([np.eye(3)])
    for k in (0, 31):
        with pytest.raises(ValueError, match="n_clusters must be between 1 and"):
            clustering.cut(k)
    before = clustering.labels_
    with pytest.raises(ValueError, match="not a finite number"):
        clustering.fit([1e200 * x for x in X])
    assert clustering.labels_ is before


def test_it_survives_and_has_no_transform():
    X, _, _ = planted_groups(20)
    clustering = ModelComparisonClustering("full", "tic", reg_covar=0.1).fit(pd.Series(X))
    assert_array_equal(pickle.loads(pickle.dumps(clustering)).predict(X), clustering.predict(X))
    assert not hasattr(clustering, "transform")
    assert not hasattr(clustering, "fit_transform")


def test_progress_bar(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(parallel, "PATIENCE", 0)
    ModelComparisonClustering(verbose=1).fit(planted_groups(10)[0])
    assert "9.00/9.00" in capsys.readouterr().err
