"""scikit-learn's own checks, unaltered, for every likelihood; the same through ragged groups; and ours beside them."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import COMBINATIONS, TRIPLES, Ragged, outputs_of, random_groups
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    check_set_output_transform_pandas,
    check_set_output_transform_polars,
    check_transformer_get_feature_names_out,
    check_transformer_get_feature_names_out_pandas,
    parametrize_with_checks,
)

from sklearn_mcsg import CRITERIA, LIKELIHOODS, SIF, MeanVector, ModelComparisonSimilarity, WordMoversDistance
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups._groups import Groups


class RaggedSimilarity(Ragged, ModelComparisonSimilarity):
    pass


def covering(make, likelihoods):
    """Estimators in which every likelihood, every criterion and every output takes part, few times each."""
    usable = {likelihood: [c for l, c in COMBINATIONS if l == likelihood] for likelihood in likelihoods}
    criteria, outputs = list(CRITERIA), list(OUTPUTS)
    for i, likelihood in enumerate(likelihoods):
        wanted = criteria[i % len(criteria)]
        criterion = wanted if wanted in usable[likelihood] else usable[likelihood][0]
        usable_outputs = [output for output in outputs if output in outputs_of(likelihood, criterion)]
        yield make(likelihood, criterion, output=usable_outputs[i % len(usable_outputs)])


PLAIN, RAGGED = (
    list(covering(make, likelihoods))
    for make, likelihoods in (
        (ModelComparisonSimilarity, list(LIKELIHOODS)),
        (RaggedSimilarity, list(LIKELIHOODS)[::-1]),
    )
)
ESTIMATORS = [
    *PLAIN,
    *RAGGED,
    ModelComparisonSimilarity(prior_strength=0.5, output="centered"),
    ModelComparisonSimilarity("spherical", output="kernel", balanced=True),
    MeanVector(),
    SIF(n_components=1, output="distance"),
    WordMoversDistance(),
]


def expected_failures(estimator):
    if getattr(estimator, "likelihood", None) == "vmf" and not isinstance(estimator, RaggedSimilarity):
        return {"check_estimators_dtypes": "its integer data hold a zero vector, which has no direction"}
    return {}


@pytest.mark.filterwarnings("ignore:.*have no direction", "ignore:Skipping check:UserWarning", "ignore:X is a table")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Checks that scikit-learn has but does not yield to others.
@pytest.mark.filterwarnings(
    "ignore:X does not have valid feature names", "ignore:X has feature names", "ignore:X is a table"
)
@pytest.mark.parametrize(
    "check",
    [
        check_dataframe_column_names_consistency,
        check_param_validation,
        check_set_output_transform_pandas,
        check_set_output_transform_polars,
        check_transformer_get_feature_names_out,
        check_transformer_get_feature_names_out_pandas,
    ],
    ids=lambda check: check.__name__,
)
def test_further_scikit_learn_checks(check):
    check("ModelComparisonSimilarity", ModelComparisonSimilarity())


# Our own checks, with scikit-learn's signature: check(name, estimator).


def ragged(n_groups=12, seed=0):
    return list(random_groups(n_groups, sizes=(3, 8), seed=seed))


def close(a, b):
    assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1, np.abs(a).max()))


def check_pairwise_of_subset(name, estimator):
    """Rows of a matrix do not depend on the other rows, nor on how many there are."""
    X = ragged()
    estimator.fit(X)
    whole = estimator.pairwise(X, X)
    for rows in ([3], [7, 2], list(range(11))):
        close(estimator.pairwise([X[i] for i in rows], X), whole[rows])
        close(estimator.transform([X[i] for i in rows]), whole[rows])
        close(estimator.score_samples([X[i] for i in rows]), estimator.score_samples(X)[rows])


def check_pairwise_of_permutation(name, estimator):
    """The order of groups permutes the matrix, the order of vectors, which keep their places, does nothing."""
    X = ragged()
    estimator.fit(X)
    order = np.random.default_rng(0).permutation(len(X))
    close(estimator.pairwise([X[i] for i in order]), estimator.pairwise(X)[np.ix_(order, order)])
    places = [Groups(x, [0, len(x)]).row_positions for x in X]
    turned = Groups.from_list([x[::-1] for x in X], positions=[p[::-1] for p in places])
    close(estimator.pairwise(turned), estimator.pairwise(X))


def check_paired_is_the_diagonal(name, estimator):
    X, Y = ragged(), ragged(seed=1)
    estimator.fit(X)
    close(estimator.paired(X, Y), np.diag(estimator.pairwise(X, Y)))


def check_containers(name, estimator):
    X = ragged()
    boxed = np.empty(len(X), dtype=object)
    boxed[:] = X
    truth = estimator.fit(X).transform(X)
    table = np.concatenate(X)[::-1]
    offsets = np.cumsum([0, *map(len, X)])
    shared = Groups(table, offsets, indices=np.arange(len(table))[::-1])
    for box in (tuple(X), boxed, Groups.from_list(X), shared, pd.Series(X), [x.tolist() for x in X]):
        close(clone(estimator).fit(box).transform(box), truth)


def check_blocks_and_jobs(name, estimator):
    """Neither the working memory nor the number of jobs changes a value."""
    X = ragged(20)
    truth = clone(estimator).fit_transform(X)
    with sklearn.config_context(working_memory=0.02):
        close(clone(estimator).set_params(n_jobs=2).fit_transform(X), truth)


def check_persistence(name, estimator):
    X = ragged()
    truth = estimator.fit(X).transform(X)
    assert_array_equal(pickle.loads(pickle.dumps(estimator)).transform(X), truth)


LAWS = [
    check_pairwise_of_subset,
    check_pairwise_of_permutation,
    check_paired_is_the_diagonal,
    check_blocks_and_jobs,
]


@pytest.mark.filterwarnings("ignore:.*have no direction")
@pytest.mark.parametrize("check", LAWS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("likelihood", "criterion", "output"), TRIPLES)
def test_laws(check, likelihood, criterion, output):
    estimator = ModelComparisonSimilarity(likelihood, criterion, output=output, prior_strength=0.5)
    check(type(estimator).__name__, estimator)


@pytest.mark.filterwarnings("ignore:.*have no direction")
@pytest.mark.parametrize("check", [check_containers, check_persistence], ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", [*PLAIN, ModelComparisonSimilarity("full", "tic", prior_strength=0.5)], ids=repr)
def test_containers_and_persistence(check, estimator):
    check(type(estimator).__name__, clone(estimator))


def test_every_criterion_and_output_is_covered():
    checked = [estimator for estimator in ESTIMATORS if isinstance(estimator, ModelComparisonSimilarity)]
    assert {estimator.output for estimator in checked} == set(OUTPUTS)
    assert {estimator.criterion for estimator in checked} == set(CRITERIA)
    assert {estimator.likelihood for estimator in RAGGED} == set(LIKELIHOODS)


def test_joblib_dump(tmp_path):
    X = ragged()
    model = ModelComparisonSimilarity("full", "bayes").fit(X)
    joblib.dump(model, tmp_path / "model")
    assert_array_equal(joblib.load(tmp_path / "model").transform(X), model.transform(X))


def test_set_output_and_feature_names():
    X = ragged(3)
    frame = ModelComparisonSimilarity().set_output(transform="pandas").fit_transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == [f"modelcomparisonsimilarity{i}" for i in range(3)]


def test_a_column_of_groups_in_a_column_transformer():
    frame = pd.DataFrame({"group": ragged(4), "length": [1.0, 2, 3, 4]})
    columns = ColumnTransformer([("similar", ModelComparisonSimilarity(), ["group"])], remainder="passthrough")
    result = columns.set_output(transform="pandas").fit_transform(frame)
    assert result.shape == (4, 5)
    assert result.columns[0] == "similar__modelcomparisonsimilarity0"


@pytest.mark.filterwarnings("ignore:X is a table")
def test_data_frame_rows_are_single_vectors_with_names():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 2)), columns=["width", "height"])
    model = ModelComparisonSimilarity().fit(frame)
    assert model.feature_names_in_.tolist() == ["width", "height"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[["height", "width"]])


def test_repr_shows_parameters_not_data():
    model = ModelComparisonSimilarity("vmf", n_jobs=2).fit(ragged(50))
    assert repr(model) == "ModelComparisonSimilarity(likelihood='vmf', n_jobs=2)"
    html = model._repr_html_()
    assert "vmf" in html
    assert len(html) < 50_000
    public = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert sorted(public) == ["criterion_", "likelihood_", "n_features_in_", "n_groups_", "references_"]
