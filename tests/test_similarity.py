"""ModelComparisonSimilarity against the oracle, its outputs, its state, and its errors."""

import re
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
import sklearn
from conftest import COMBINATIONS, TRIPLES, by_one_thread, by_several_threads, traces_memory
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_mcsg import (
    CRITERIA,
    LIKELIHOODS,
    Criterion,
    DiagonalGaussian,
    FullGaussian,
    GroupEmbedding,
    Groups,
    Likelihood,
    ModelComparisonClustering,
    ModelComparisonSimilarity,
    NormalGamma,
    NormalWishart,
    SphericalGaussian,
    Statistics,
    VonMisesFisher,
    model_comparison_similarity,
)
from sklearn_mcsg.engine.dispatch import engine_context
from sklearn_mcsg.engine.model import GroupModel
from sklearn_mcsg.engine.outputs import OUTPUTS

pytestmark = by_several_threads

EPS = np.finfo(float).eps
every_combination = pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)
every_output = pytest.mark.parametrize("output", OUTPUTS)


def prior_of(estimator):
    prior = getattr(estimator.likelihood_, "prior", None)
    return None if prior is None else vars(prior)


def tolerance(name, criterion, a, b, eps, prior):
    """1e-9 of the three criteria that are subtracted, and more where they are ill-conditioned.

    With no more vectors than features a full covariance has eigenvalues that are `reg_covar` alone, next to squares
    of the data's scale. A rounding of the vectors, relative to the noise's deviation, moves their logarithms by its
    square, and the oracle's explicit noise, which the TIC looks at, by itself.
    """
    union = tuple(np.concatenate(parts) for parts in zip(a, b, strict=True))
    size = max(abs(oracle.information(name, criterion, *g, eps, prior)) for g in (a, b, union))
    if name == "full" and len(a[0]) <= a[0].shape[1]:
        rounding = EPS * np.abs(union[0]).max() / np.sqrt(eps)
        size *= 1 + 1e9 * (100 * rounding if criterion == "tic" else rounding**2)
    return 1e-9 * size


CASES = {
    "d=1": dict(n_features=1, sizes=(1, 9)),
    "d=2": dict(n_features=2, sizes=(1, 9), weighted=True),
    "d=5": dict(n_features=5, sizes=(1, 12), weighted=True),
    "tiny": dict(n_features=3, sizes=(1, 9), scale=1e-6),
    "huge": dict(n_features=3, sizes=(1, 9), scale=1e6, weighted=True),
    "large groups": dict(n_features=4, sizes=(150, 200)),
    "d=300": dict(n_features=300, sizes=(1, 12)),
    "d=300, huge": dict(n_features=300, sizes=(1, 12), scale=1e6, weighted=True),
}


@by_one_thread
@pytest.mark.filterwarnings("ignore:reg_covar=1e-06 outweighs")
@every_combination
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("case", CASES)
def test_every_combination_agrees_with_the_oracle(likelihood, criterion, case, engine, make_groups):
    d = CASES[case]["n_features"]
    if likelihood == "vmf" and d == 1:
        pytest.skip("directions need two dimensions")
    if d == 300 and criterion == "tic":  # as far as the oracle's definition goes in reasonable time
        d = {"diag": 300, "spherical": 100, "full": 6, "vmf": 20, "trend": 300}[likelihood]
    groups = make_groups(n_groups=4, **{**CASES[case], "n_features": d})
    estimator = ModelComparisonSimilarity(likelihood, criterion).fit(groups)
    prior = prior_of(estimator)
    scores = estimator.score_samples(groups)
    with engine_context(engine):
        matrices = {name: estimator.pairwise(groups, output=name) for name, o in OUTPUTS.items() if not o.needs_corpus}
    for i in range(4):
        a = oracle.observed(likelihood, groups, i)
        truth = oracle.information(likelihood, criterion, *a, 1e-6, prior)
        assert abs(scores[i] - truth) <= tolerance(likelihood, criterion, a, a, 1e-6, prior)
        for j in (i, (i + 1) % 4):
            b = oracle.observed(likelihood, groups, j)
            truth = oracle.compare(likelihood, criterion, a, b, 1e-6, prior)
            atol = tolerance(likelihood, criterion, a, b, 1e-6, prior)
            for output, matrix in matrices.items():
                per_vector = 1 / a[1].sum() + 1 / b[1].sum() if output == "divergence" else 1
                assert abs(matrix[i, j] - truth[output]) <= atol * per_vector, output


@by_one_thread
@every_combination
def test_pseudo_vectors_agree_with_the_oracle(likelihood, criterion, make_groups):
    if likelihood == "vmf":
        pytest.skip("pseudo-directions are not a finite set of vectors; see the laws of pseudo_group")
    corpus, groups = make_groups(20, 3, (1, 8), weighted=True, seed=1), make_groups(4, 3, (1, 5), weighted=True)
    estimator = ModelComparisonSimilarity(likelihood, criterion, prior_strength=0.7).fit(corpus)
    points, weights = oracle.pseudo_vectors(likelihood, *oracle.observed(likelihood, corpus.pooled(), 0), 0.7)
    prior = prior_of(estimator)
    matrix = estimator.pairwise(groups)
    padded = [
        tuple(
            np.concatenate(parts)
            for parts in zip(oracle.observed(likelihood, groups, i), (points, weights), strict=True)
        )
        for i in range(4)
    ]
    for i, a in enumerate(padded):
        for j, b in enumerate(padded):
            truth = oracle.compare(likelihood, criterion, a, b, 1e-6, prior)["similarity"]
            assert abs(matrix[i, j] - truth) <= tolerance(likelihood, criterion, a, b, 1e-6, prior)


@by_one_thread
def test_centered_agrees_with_the_oracle(make_groups):
    corpus, X, Y = make_groups(30, 4, seed=1), make_groups(5, 4, seed=2), make_groups(3, 4, seed=3)
    estimator = ModelComparisonSimilarity(output="centered", n_references=10, random_state=0).fit(corpus)
    references = corpus[estimator.references_]
    assert len(references) == 10
    divergences = [
        estimator.pairwise(a, b, output="divergence")
        for a, b in ((X, references), (Y, references), (references, None), (X, Y))
    ]
    assert_allclose(estimator.pairwise(X, Y), oracle.centered_matrix(*divergences), rtol=1e-12, atol=1e-12)


def published():
    """Nine pairs of groups, in 4, 20 and 300 dimensions, and what the paper's code prints for them."""
    file = np.load(Path(__file__).parent / "data" / "published.npz")
    return [
        (file[f"group_{a}"], file[f"group_{b}"], dict(zip(file["names"].tolist(), values, strict=True)))
        for (a, b), values in zip(file["pairs"], file["values"], strict=True)
    ]


@pytest.mark.parametrize(("a", "b", "value"), published(), ids=lambda v: str(getattr(v, "shape", "")))
def test_published_code(a, b, value):
    """The paper's own code, after its conventions are accounted for.

    Its quadratic term divides the plain variance by the regularised one, so the exponent misses n eps / variance; the
    Fisher terms of its TIC carry 1e-6 more; its von Mises-Fisher model counts d + 1 parameters, and its TIC lacks the
    factor 2.
    """
    union = np.concatenate([a, b])

    def exponent(x, eps, spherical=False):
        variance = x.var(axis=0) + eps
        return (len(x) * eps / (variance.mean() if spherical else variance) * np.ones(x.shape[1])).sum()

    def paired(likelihood, criterion, eps, correct=lambda x: 0.0):
        model = ModelComparisonSimilarity(likelihood, criterion, reg_covar=eps)
        return model.paired([a], [b])[0] - correct(a) - correct(b) + correct(union), model.score_samples([a])[
            0
        ] - correct(a)

    diag, score = paired("diag", "aic", 1e-10, lambda x: exponent(x, 1e-10))
    assert_allclose([diag, score], [value["diag_aic"], value["score_diag_aic_a"]], rtol=1e-9)
    spherical, score = paired("spherical", "aic", 1e-6, lambda x: exponent(x, 1e-6, spherical=True))
    assert_allclose([spherical, score], [value["spherical_aic"], value["score_spherical_aic_a"]], rtol=1e-9)
    vmf, _ = paired(VonMisesFisher("banerjee"), "aic", 0.0)
    assert_allclose(vmf + 2, value["vmf_aic"], rtol=1e-9)
    vmf, _ = paired(VonMisesFisher("banerjee"), "tic", 0.0)
    assert_allclose(vmf / 2, value["vmf_tic"], rtol=1e-9)
    diag, score = paired("diag", "tic", 1e-10)
    assert_allclose([diag, score], [value["diag_tic"], value["score_diag_tic_a"]], rtol=1e-6)


# Outputs ------------------------------------------------------------------------------------------------------------


@by_one_thread
@pytest.mark.filterwarnings("ignore:.*have no direction")
@pytest.mark.parametrize(("likelihood", "criterion", "output"), TRIPLES)
@pytest.mark.parametrize("prior_strength", [0, 0.5])
def test_laws_of_the_outputs(likelihood, criterion, output, prior_strength, make_groups):
    sizes = (8, 14) if output == "centered" else (1, 6)
    X = make_groups(9, 3, sizes, weighted=True)
    Y = make_groups(5, 3, sizes, weighted=True, seed=1)
    estimator = ModelComparisonSimilarity(likelihood, criterion, output=output, prior_strength=prior_strength).fit(X)
    matrix = estimator.pairwise(X)
    size = np.abs(estimator.score_samples(X)).max()
    atol = 1e-10 * (1 if OUTPUTS[output].needs_corpus else size)
    assert_array_equal(matrix, matrix.T)
    assert_allclose(estimator.transform(X), matrix, atol=atol)
    assert_allclose(clone(estimator).fit_transform(X), matrix, atol=atol)
    assert_allclose(estimator.paired(X, X[::-1]), matrix[np.arange(9), np.arange(9)[::-1]], atol=atol)
    assert_allclose(estimator.pairwise(X, Y), estimator.pairwise(Y, X).T, atol=atol)
    assert_allclose(estimator.pairwise(X[[3]], Y)[0], estimator.pairwise(X, Y)[3], atol=atol)
    if OUTPUTS[output].diagonal is not None:
        assert (matrix >= 0).all()
        assert_array_equal(np.diag(matrix), OUTPUTS[output].diagonal)
    if output == "centered":
        assert (matrix <= 2).all()


@every_likelihood
def test_distance_is_minus_twice_the_likelihood_ratio_under_aic(likelihood, make_groups):
    X = make_groups(6, 3, (1, 6))
    estimator = ModelComparisonSimilarity(likelihood)
    k = LIKELIHOODS[likelihood]().n_parameters(3)
    similarity, distance = (estimator.pairwise(X, output=output) for output in ("similarity", "distance"))
    assert_allclose(np.diag(similarity), 2 * k, rtol=1e-9)
    assert_allclose(distance, np.maximum(2 * k - similarity, 0), atol=1e-9 * np.abs(similarity).max())


def test_divergence_tends_to_the_squared_distance_of_the_means():
    """In units of the standard deviation, for many vectors and a small shift."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(100_000, 2)) + mean for mean in (0, 0.1)]
    assert_allclose(ModelComparisonSimilarity().pairwise(X, output="divergence")[0, 1], 2 * 0.1**2, rtol=0.05)


def test_identical_groups_are_at_no_distance_in_every_output():
    X = [np.eye(3)] * 4
    for output in ("distance", "divergence"):
        assert_array_equal(model_comparison_similarity(X, output=output), 0)
    centered = model_comparison_similarity(X, output="centered")
    assert np.isfinite(centered).all()
    assert_array_equal(np.diag(centered), 0)


@every_combination
def test_penalty_scale(likelihood, criterion, make_groups):
    X = make_groups(5, 3)
    plain, none, double = (
        ModelComparisonSimilarity(likelihood, criterion, penalty_scale=scale).fit(X).pairwise(X) for scale in (1, 0, 2)
    )
    assert_allclose(double - plain, plain - none, atol=1e-10 * np.abs(plain).max())
    if criterion == "bayes":
        assert_array_equal(double, none)
    elif criterion != "tic":
        assert np.abs(double - plain).max() > 1


@every_output
def test_float32_in_float32_out(output, make_groups):
    X = make_groups(6, 4)
    single = Groups(X.vectors.astype(np.float32), X.offsets)
    estimator = ModelComparisonSimilarity(output=output).fit(single)
    for values in (estimator.transform(single), estimator.pairwise(single), estimator.paired(single, single)):
        assert values.dtype == np.float32
    assert estimator.score_samples(single).dtype == np.float32
    assert estimator.transform(X).dtype == np.float64
    assert_allclose(estimator.pairwise(single), estimator.pairwise(X), rtol=1e-4, atol=1e-4)


def test_statistics_do_not_cancel_in_single_precision():
    """Mean 8, deviation 0.05: squares of single-precision numbers would lose the variance."""
    rng = np.random.default_rng(0)
    X = [rng.normal(8, 0.05, size=(10, 50)).astype(np.float32) for _ in range(2)]
    exact = model_comparison_similarity([x.astype(np.float64) for x in X])
    assert_allclose(model_comparison_similarity(X), exact, rtol=1e-6)


def test_integers_and_half_precision():
    X = [np.array([[1, 2], [3, 5]]), np.array([[4, 4]])]
    truth = model_comparison_similarity([x.astype(float) for x in X])
    assert_array_equal(model_comparison_similarity([x.astype(np.int8) for x in X]), truth)
    assert_allclose(model_comparison_similarity([x.astype(np.float16) for x in X]), truth, rtol=1e-6)


# Corpus and state ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*have no direction")
@every_combination
@pytest.mark.parametrize("options", [{}, {"prior_strength": 0.5}, {"output": "centered", "n_references": 20}], ids=str)
def test_partial_fit_is_fit(likelihood, criterion, options, make_groups):
    X, queries = make_groups(50, 3, (1, 6), weighted=True), make_groups(5, 3, seed=1)
    model = ModelComparisonSimilarity(likelihood, criterion, random_state=3, **options)
    whole = clone(model).fit(X)
    parts = clone(model).partial_fit(X[:30]).partial_fit(X[30:])
    assert parts.n_groups_ == 50
    assert_array_equal(parts.references_, whole.references_)
    assert_array_equal(parts.transform(queries), whole.transform(queries))


def test_partial_fit_joins_precisions_and_containers(make_groups):
    X = make_groups(10, 3)
    single = Groups(X.vectors.astype(np.float32), X.offsets)
    model = ModelComparisonSimilarity("spherical", "tic").fit(single[:5])
    assert model.transform(single).dtype == np.float32
    model.partial_fit(list(X[5:]))
    assert model.transform(single).dtype == np.float64
    assert_allclose(model.transform(X), ModelComparisonSimilarity("spherical", "tic").fit_transform(X), atol=1e-3)
    assert ModelComparisonSimilarity().fit(X).partial_fit(single).transform(single).dtype == np.float64


def test_failed_fit_leaves_everything_as_it_was(make_groups):
    X = make_groups(6, 3)
    model = ModelComparisonSimilarity(reg_covar=0)
    with pytest.raises(ValueError, match="infinite likelihood"):
        model.fit([np.ones((2, 3))])
    assert not [name for name in vars(model) if name.endswith("_") or name.startswith("_")]
    model.set_params(reg_covar=1e-6).fit(X)
    before = model.transform(X)
    for bad in ([np.full((2, 3), np.nan)], [np.ones((2, 4))], []):
        with pytest.raises(ValueError, match="."):
            model.partial_fit(bad)
    assert_array_equal(model.transform(X), before)


@pytest.mark.filterwarnings("ignore:X is a table")
def test_partial_fit_refuses_another_model(make_groups):
    X = make_groups(6, 3)
    for change in ({"likelihood": "vmf"}, {"criterion": "tic"}, {"reg_covar": 1.0}):
        model = ModelComparisonSimilarity().fit(X).set_params(**change)
        with pytest.raises(ValueError, match="has changed since fit: call fit"):
            model.partial_fit(X)
    named = ModelComparisonSimilarity().fit(pd.DataFrame(np.eye(2), columns=["a", "b"]))
    with pytest.warns(UserWarning, match="valid feature names"):
        named.partial_fit(np.ones((2, 2)))
    assert named.feature_names_in_.tolist() == ["a", "b"]


def test_references_are_a_fixed_sample(make_groups):
    X = make_groups(40, 3, (4, 9))
    model = ModelComparisonSimilarity(output="centered", n_references=7, random_state=5)
    assert_array_equal(clone(model).fit(X).references_, clone(model).fit(X).references_)
    assert len(np.unique(model.fit(X).references_)) == 7
    assert_array_equal(model.set_params(n_references=40).fit(X).references_, np.arange(40))
    later = ModelComparisonSimilarity(n_references=7, random_state=5).fit(X)
    first = ModelComparisonSimilarity(output="centered", n_references=7, random_state=5).fit(X)
    assert_array_equal(later.pairwise(X, output="centered"), first.pairwise(X))
    assert_array_equal(later.set_params(output="centered").transform(X), first.transform(X))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"prior_strength": 1}, "prior_strength > 0"),
        ({"criterion": "bayes"}, "criterion='bayes' without a prior"),
        ({"output": "centered"}, "output='centered'"),
    ],
)
def test_what_must_be_learnt_needs_fit(options, reason, make_groups):
    X = make_groups(6, 3)
    model = ModelComparisonSimilarity(**options)
    for call in (lambda: model.pairwise(X), lambda: model.paired(X, X)):
        with pytest.raises(NotFittedError, match=f"{reason} must be learnt from a corpus. Call 'fit'"):
            call()
    fitted = model.fit(X).pairwise(X)
    assert_allclose(model_comparison_similarity(X, **options), fitted)
    halves = model_comparison_similarity(X[:2], X[2:], **options)
    assert_allclose(halves, fitted[:2, 2:])


def test_everything_else_works_before_fit(make_groups):
    X = make_groups(6, 3)
    model = ModelComparisonSimilarity()
    assert_array_equal(model.pairwise(X), clone(model).fit(X).pairwise(X))
    assert_array_equal(model.score_samples(X), clone(model).fit(X).score_samples(X))
    given = ModelComparisonSimilarity(DiagonalGaussian(NormalGamma(0, 1, 2, 1)), "bayes")
    assert given.pairwise(X).shape == (6, 6)
    assert_array_equal(given.fit(X).likelihood_.prior.beta, 1)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.transform(X)


def test_empty_groups_live_on_pseudo_vectors(make_groups):
    X = make_groups(6, 3)
    model = ModelComparisonSimilarity(prior_strength=1).fit(X)
    matrix = model.pairwise([np.empty((0, 3)), np.ones((2, 3)), Groups(X.vectors, [0, len(X.vectors)])[0]])
    assert np.isfinite(matrix).all()
    with pytest.raises(ValueError, match="Group 1 has no vectors"):
        ModelComparisonSimilarity().fit(X).pairwise([np.ones((2, 3)), np.empty((0, 3))])
    with pytest.raises(ValueError, match="All groups are empty: there is nothing to learn the pseudo-vectors"):
        ModelComparisonSimilarity(prior_strength=1).fit(Groups(np.ones((2, 3)), [0, 1, 2], weights=[0, 0]))


def test_groups_at_the_centre_of_the_references_have_no_direction():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 10)) for size in [1] * 10 + [30] * 10]
    with pytest.warns(UserWarning, match="10 of 20 groups .*their 'centered' values are 1.*prior_strength > 0"):
        matrix = ModelComparisonSimilarity(output="centered").fit_transform(X)
    assert_array_equal(matrix[10:, :10], 1)
    with pytest.warns(UserWarning, match="have no direction"):
        model = ModelComparisonSimilarity(output="centered").fit(X)
    with pytest.warns(UserWarning, match="have no direction"):
        assert_allclose(model.transform(X), matrix, atol=1e-9)
    with pytest.warns(UserWarning, match="have no direction"):
        assert_allclose(model.paired(X, X), 0, atol=1e-9)
    assert np.ptp(ModelComparisonSimilarity(output="centered", prior_strength=0.5).fit_transform(X)[10:, :10]) > 0.1


def test_score_is_minus_the_mean_criterion(make_groups):
    X = make_groups(6, 3)
    model = ModelComparisonSimilarity()
    assert model.score(X) == pytest.approx(-model.score_samples(X).mean())
    assert isinstance(model.score(X), float)


# Extension ----------------------------------------------------------------------------------------------------------


class Laplace(Likelihood):
    """Double exponential around zero: a likelihood a user might write."""

    def statistics(self, groups, *, reg_covar, order):
        mean = groups.sum(np.abs(groups.rows())) / groups.totals[:, None]
        return Statistics(n=groups.totals, mean=mean + reg_covar)

    def pool(self, a, b):
        n = a.n + b.n
        return Statistics(n=n, mean=(a.n[:, None] * a.mean + b.n[:, None] * b.mean) / n[:, None])

    def log_likelihood(self, statistics):
        return -statistics.n * (np.log(2 * statistics.mean) + 1).sum(axis=1)

    def n_parameters(self, n_features):
        return n_features


class HannanQuinn(Criterion):
    """A criterion a user might write, with a parameter."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def penalty(self, fit):
        return self.factor * fit.n_parameters * np.log(np.log(fit.n + 2))


def test_user_defined_likelihood_and_criterion(make_groups):
    X = make_groups(6, 3, (2, 6))

    def information(x):
        scale = np.abs(x).mean(axis=0) + 1e-6
        return -2 * (-len(x) * (np.log(2 * scale) + 1).sum() - 2 * 3 * np.log(np.log(len(x) + 2)))

    model = ModelComparisonSimilarity(Laplace(), HannanQuinn(factor=2)).fit(X)
    truth = information(X[0]) + information(X[1]) - information(np.concatenate([X[0], X[1]]))
    assert model.transform(X)[0, 1] == pytest.approx(truth, rel=1e-12)
    assert model.get_params()["criterion__factor"] == 2
    assert clone(model).set_params(criterion__factor=3).criterion.factor == 3
    for criterion, missing in (("tic", "tic_penalty"), ("bayes", "log_evidence")):
        with pytest.raises(ValueError, match=f"Laplace defines no {missing}.*criteria 'aic', 'bic'"):
            ModelComparisonSimilarity(Laplace(), criterion).fit(X)
    with pytest.raises(ValueError, match="Laplace defines no pseudo_group: set prior_strength=0"):
        ModelComparisonSimilarity(Laplace(), prior_strength=1).fit(X)


def test_likelihood_without_learn_prior_needs_a_given_one(make_groups):
    class Flat(Laplace):
        def log_evidence(self, statistics):
            return np.zeros(len(statistics))

    with pytest.raises(ValueError, match="Flat defines no learn_prior: give it a prior"):
        ModelComparisonSimilarity(Flat(), "bayes").fit(make_groups(3, 2))


# Errors -------------------------------------------------------------------------------------------------------------


BAD_PARAMETERS = {
    "likelihood": ("gamma", "(?=.*'diag')(?=.*'full')(?=.*'spherical')(?=.*'vmf').*Got 'gamma'"),
    "criterion": ("dic", "(?=.*'aic')(?=.*'bayes')(?=.*'bic')(?=.*'tic').*Got 'dic'"),
    "output": (
        "angle",
        "(?=.*'centered')(?=.*'distance')(?=.*'divergence')(?=.*'kernel')(?=.*'similarity').*[Gg]ot 'angle'",
    ),
    "reg_covar": (-1e-9, r"'reg_covar' parameter.*\[0.0, inf\).*-1e-09"),
    "prior_strength": (-1, "'prior_strength' parameter.*-1"),
    "penalty_scale": (-0.5, "'penalty_scale' parameter.*-0.5"),
    "n_references": (0, "'n_references' parameter"),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_get_a_sentence(name, make_groups):
    value, message = BAD_PARAMETERS[name]
    X = make_groups(3, 2)
    model = ModelComparisonSimilarity(**{name: value})
    for call in (model.fit, model.partial_fit, model.pairwise, model.score_samples, lambda X: model.paired(X, X)):
        with pytest.raises(ValueError, match=message):
            call(X)
    with pytest.raises(ValueError, match=message):
        model_comparison_similarity(X, **{name: value})


@pytest.mark.parametrize("estimator", [ModelComparisonSimilarity, GroupEmbedding, ModelComparisonClustering])
def test_too_many_pseudo_vectors_get_a_sentence(estimator, make_groups):
    with pytest.raises(ValueError, match=r"'prior_strength' parameter .* in the range \[0.?0?, 1e\+100\]"):
        estimator(prior_strength=1e200).fit(make_groups(3, 2))


def test_bad_calls_get_a_sentence(make_groups):
    X, wide = make_groups(4, 3), make_groups(4, 5)
    model = ModelComparisonSimilarity()
    with pytest.raises(ValueError, match=r"output must be one of \['centered'.*'similarity'\], got 'cosine'"):
        model.pairwise(X, output="cosine")
    with pytest.raises(ValueError, match="as many groups in Y as in X, got 4 and 3. For all pairs call pairwise"):
        model.paired(X, X[:3])
    with pytest.raises(ValueError, match="X has 3 features, but Y has 5"):
        model.pairwise(X, wide)
    with pytest.raises(ValueError, match="X has 5 features, but ModelComparisonSimilarity is expecting 3 features"):
        model.fit(X).transform(wide)
    with pytest.raises(ValueError, match="VonMisesFisher defines no log_evidence.*criteria 'aic', 'tic', 'bic'"):
        ModelComparisonSimilarity("vmf", "bayes").fit(X)


def test_everything_is_checked_before_anything_is_computed(make_groups, monkeypatch):
    X = make_groups(4, 3)
    monkeypatch.setattr(GroupModel, "statistics", lambda *_: pytest.fail("computed first"))
    model = ModelComparisonSimilarity()
    with pytest.raises(ValueError, match="got 4 and 3"):
        model.paired(X, X[:3])
    with pytest.raises(ValueError, match="Input Y contains NaN: the first is in group 1"):
        model.pairwise(X, [np.ones((1, 3)), np.full((1, 3), np.nan)])
    with pytest.raises(ValueError, match="but Y has 5"):
        model.pairwise(X, make_groups(4, 5))


def test_priors_must_fit(make_groups):
    X = make_groups(4, 3)
    wishart = NormalWishart(0, 1, 5, np.eye(3))
    bad = {
        "prior must be a NormalGamma for this likelihood, got NormalWishart": DiagonalGaussian(wishart),
        "prior must be a NormalWishart for this likelihood, got str": FullGaussian("flat"),
        r"mean of the prior must have shape \(3,\), got \(2,\)": DiagonalGaussian(NormalGamma(np.zeros(2), 1, 1, 1)),
        r"beta of the prior must have shape \(1,\), got \(3,\)": SphericalGaussian(NormalGamma(0, 1, 1, np.ones(3))),
        "mean of the prior must be finite": DiagonalGaussian(NormalGamma(np.nan, 1, 1, 1)),
    }
    for message, likelihood in bad.items():
        with pytest.raises((TypeError, ValueError), match=message):
            ModelComparisonSimilarity(likelihood, "bayes").fit(X)


def test_unfinished_subclasses_cannot_be_made():
    class Nothing(Likelihood):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()
    with pytest.raises(TypeError, match="abstract"):
        Criterion()


def test_a_result_beyond_single_precision_is_an_error(make_groups):
    X = make_groups(4, 3, dtype=np.float32)
    model = ModelComparisonSimilarity(penalty_scale=1e38)
    for call in (model.score_samples, model.pairwise, lambda X: model.paired(X, X)):
        with pytest.raises(ValueError, match="exceeds the range of float32"):
            call(X)


def test_weights_too_small_for_distances_are_an_error():
    """A weight of 1e-12 vanishes beside the penalty; what does not add the two is exact."""
    X = [np.eye(3), 2 * np.eye(3), 3 * np.eye(3)]
    tiny = Groups.from_list(X, weights=np.multiply([[1], [1e-12], [1]], np.ones(3)))
    for output in ("distance", "divergence", "centered"):
        with pytest.raises(ValueError, match="The weights of group 1 sum to 3e-12: its distances would be lost"):
            ModelComparisonSimilarity(output=output).fit(tiny)
    balanced = ModelComparisonSimilarity(output="distance", balanced=True)
    assert_allclose(balanced.pairwise(tiny), balanced.pairwise(X))
    assert_allclose(GroupEmbedding().fit(X).transform(tiny), GroupEmbedding().fit(X).transform(X), atol=1e-12)


def test_pooled_weights_do_not_overflow():
    """The sum of two of the largest weights, and products of it, are numbers."""
    X = Groups.from_list([np.eye(3), 2 * np.eye(3)], weights=np.full((2, 3), 3e99))
    values = ModelComparisonSimilarity("spherical", output="divergence").pairwise(X, X.pooled())
    assert (values > 0).all()
    assert np.isfinite(values).all()


def test_values_of_weight_0_do_not_matter():
    X = Groups([[1e200], [1.0], [2.0]], [0, 3], weights=[0, 1, 1])
    assert_array_equal(model_comparison_similarity(X), model_comparison_similarity([[[1.0], [2.0]]]))


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full"])
@pytest.mark.parametrize("criterion", ["aic", "tic"])
def test_tiny_values_are_exact_or_an_error(likelihood, criterion, make_groups):
    """Without noise a common scale does nothing; where squares lose their digits there is an error, no wrong number."""
    X = make_groups(3, 2, (5, 9))
    model = ModelComparisonSimilarity(likelihood, criterion, reg_covar=0)
    truth = model.pairwise(X)
    for scale in (1e-60, 1e-80, 1e-120, 1e-150, 1e-160):
        try:
            matrix = model.pairwise(Groups(X.vectors * scale, X.offsets))
        except ValueError as error:
            assert "Rescale" in str(error) or "infinite" in str(error)  # noqa: PT017
        else:
            assert_allclose(matrix, truth, rtol=1e-6)


def test_directions_need_vectors_and_a_plane():
    with pytest.raises(ValueError, match="Group 1 holds a zero vector.*weight 0"):
        model_comparison_similarity([np.eye(2), np.zeros((1, 2))], likelihood="vmf")
    with pytest.raises(ValueError, match="at least 2 features, got n_features = 1"):
        model_comparison_similarity([np.ones((2, 1))], likelihood="vmf")
    with (
        sklearn.config_context(working_memory=0.001),
        pytest.raises(ValueError, match="Group 97 holds a zero vector"),
    ):
        model_comparison_similarity([np.eye(2)] * 97 + [np.zeros((1, 2))], likelihood="vmf")
    groups = Groups(np.vstack([np.eye(2), np.zeros((1, 2))]), [0, 3], weights=[1, 1, 0])
    assert np.isfinite(model_comparison_similarity(groups, likelihood="vmf")).all()


def test_opposite_corpus_has_pseudo_directions_everywhere():
    X = [[[1.0, 0]], [[-1.0, 0]]]
    assert np.isfinite(ModelComparisonSimilarity("vmf", "tic", prior_strength=1).fit_transform(X)).all()


@every_likelihood
def test_no_noise_and_no_variance_is_an_infinite_likelihood(likelihood):
    X = [np.array([[0.0, 0.3], [1.0, 2.0], [-1.0, 0.5], [3.0, 0.7]]), np.array([[1.0, 2.0]])]
    with pytest.raises(
        ValueError, match="Group 1 has an infinite likelihood.*Set reg_covar > 0, or set prior_strength > 0"
    ):
        model_comparison_similarity(X, likelihood=likelihood, reg_covar=0)
    assert np.isfinite(model_comparison_similarity(X, likelihood=likelihood, reg_covar=0, prior_strength=1)).all()


def test_a_plane_in_space_is_singular_without_noise():
    """Rounding gives the third singular value some 1e-16 of the first, which is none."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(9, 3)), rng.normal(size=(9, 2)) @ rng.normal(size=(2, 3))]
    with pytest.raises(ValueError, match="Group 1 has an infinite likelihood under FullGaussian"):
        model_comparison_similarity(X, likelihood="full", reg_covar=0)


def test_opposite_directions_cancel_to_no_concentration():
    """The penalty of a uniform distribution on the sphere is d, which is its number of parameters."""
    X = [np.array([[1.0, 0, 0], [-1, 0, 0]])]
    model = ModelComparisonSimilarity("vmf", "tic", reg_covar=0)
    uniform = 2 * 2 * np.log(4 * np.pi)  # of two vectors
    assert_allclose(model.score_samples(X), uniform + 2 * 3, rtol=1e-12)


@by_one_thread
@pytest.mark.filterwarnings("ignore:.*have no direction", "ignore:reg_covar=1e-06 outweighs")
@every_combination
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e300])
@pytest.mark.parametrize("reg_covar", [1e-6, 0])
def test_extreme_values_are_finite_or_an_error(likelihood, criterion, scale, reg_covar, make_groups):
    X = make_groups(4, 3, (5, 9), scale=scale)
    model = ModelComparisonSimilarity(likelihood, criterion, reg_covar=reg_covar)
    for output in ("similarity", "centered"):
        try:
            matrix = model.set_params(output=output).fit_transform(X)
        except ValueError as error:
            assert "escale" in str(error) or "reg_covar" in str(error)  # noqa: PT017
        else:
            assert np.isfinite(matrix).all()


def test_extreme_distance_between_ordinary_groups():
    with pytest.raises(ValueError, match="comparison of groups 0 and 1 is not a finite number.*Rescale"):
        model_comparison_similarity([np.eye(2), np.eye(2) + 1e200])
    with pytest.raises(ValueError, match="comparison in row 1 is not a finite number.*Rescale"):
        ModelComparisonSimilarity().paired([np.eye(2)] * 2, [np.eye(2), np.eye(2) + 1e200])


def test_every_likelihood_and_criterion_takes_part():
    """A missing method would leave a combination out of all tests that the registries drive."""
    assert (
        {likelihood for likelihood, _ in COMBINATIONS}
        == set(LIKELIHOODS)
        == {"diag", "spherical", "full", "vmf", "trend"}
    )
    assert {criterion for _, criterion in COMBINATIONS} == set(CRITERIA) == {"aic", "tic", "bic", "bayes"}
    assert {(l, c) for l in LIKELIHOODS for c in CRITERIA} - set(COMBINATIONS) == {("vmf", "bayes")}


def test_a_penalty_that_outweighs_the_distance_makes_no_groups_equal(make_groups):
    """Under TIC short groups can be more similar to others than to themselves: their distance is 0, but not centred."""
    groups = make_groups(40, 6, (2, 4), spread=3.0)
    model = ModelComparisonSimilarity("full", "tic", prior_strength=0.5).fit(groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups without a direction
        distance, centered = (model.pairwise(groups, output=output) for output in ("distance", "centered"))
    floored = (distance == 0) & ~np.eye(len(groups), dtype=bool)
    assert floored.mean() > 0.1
    assert (centered[floored] > 1e-6).mean() > 0.9
    assert_array_equal(np.diagonal(centered), 0)


@pytest.mark.parametrize("later", ["kernel", "centered", "divergence"])
@pytest.mark.parametrize("first", ["distance", "centered", "kernel"])
def test_other_groups_in_another_output(first, later, make_groups):
    """What was learnt goes with `with_groups`, also for outputs that nobody had asked for by then."""
    X, Y, Z = make_groups(30, 3), make_groups(6, 3, seed=1), make_groups(4, 3, seed=2)
    model = ModelComparisonSimilarity(output=first, prior_strength=0.5).fit(X)
    moved = model.with_groups(Y).set_params(output=later)
    expected = ModelComparisonSimilarity(output=later, prior_strength=0.5).fit(X).pairwise(Z, Y)
    assert_allclose(moved.transform(Z), expected, rtol=1e-10)


GAUSSIAN = [name for name, likelihood in LIKELIHOODS.items() if likelihood().defines("corpus_variances")]


@pytest.mark.parametrize("likelihood", GAUSSIAN)
@pytest.mark.parametrize("scale", [1e-4, 1e-9])
@pytest.mark.parametrize("learn", ["fit", "pairwise"])
def test_small_units_are_told_with_the_factor_that_helps(likelihood, scale, learn):
    rng = np.random.default_rng(0)
    X = [rng.normal(3 * (i % 2), size=(10, 4)) for i in range(12)]
    model = ModelComparisonSimilarity(likelihood)
    truth = model.pairwise(X)
    small = [scale * x for x in X]
    with pytest.warns(
        UserWarning, match="reg_covar=1e-06 outweighs the vectors: the variance of 4 of 4 features"
    ) as told:
        getattr(model, learn)(small)
    factor, noise = re.search(r"by (\S+), or set reg_covar=(\S+)\.", str(told[0].message)).groups()
    rescaled = ModelComparisonSimilarity(likelihood).pairwise([float(factor) * x for x in small])
    assert_allclose(rescaled, truth, rtol=1e-3)
    assert_allclose(ModelComparisonSimilarity(likelihood, reg_covar=float(noise)).pairwise(small), truth, rtol=1e-3)


def test_the_smallest_units_get_one_warning():
    """The ratio of the variances to reg_covar is not representable."""
    tiny = [1e-160 * x for x in np.random.default_rng(0).normal(size=(12, 10, 4))]
    with pytest.warns(UserWarning, match=r"Multiply all vectors by 1e\+160") as told:
        ModelComparisonSimilarity().fit(tiny)
    assert len(told) == 1


def test_no_warning_where_units_are_not_the_reason():
    rng = np.random.default_rng(0)
    X = [np.column_stack([rng.normal(size=(10, 2)), np.full(10, 0.1)]) for _ in range(12)]
    for likelihood in LIKELIHOODS:
        ModelComparisonSimilarity(likelihood).fit(X)  # a constant feature
    few = rng.normal(size=(2, 2, 300))
    ModelComparisonSimilarity().pairwise(few)  # some of many features vary little by chance
    ModelComparisonSimilarity(reg_covar=1e-2).fit([1e-2 * x for x in X])  # a choice
    ModelComparisonSimilarity("vmf").fit([1e-9 * x for x in X])  # has no unit


def test_one_feature_in_a_small_unit_is_told():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="the variance of 1 of 3 features"):
        GroupEmbedding().fit(rng.normal(size=(30, 5, 3)) * [1, 1, 1e-4])


@traces_memory
def test_looking_at_units_takes_little_memory():
    groups = Groups(np.random.default_rng(0).normal(size=(100_000, 50)), np.arange(100_001))
    model = GroupModel(LIKELIHOODS["diag"](), CRITERIA["aic"](), 1e-6, 1.0)
    statistics = model.statistics(groups)
    tracemalloc.start()
    model.warn_of_small_units(statistics)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < statistics.mean.nbytes / 2
