"""Classes as pooled models, against pooling vectors literally; adding, removing, rejecting, probabilities, storage."""

import pickle

import numpy as np
import oracle
import pandas as pd
import pytest
import sklearn
from conftest import COMBINATIONS, Exponential, Ragged, by_one_thread, by_several_threads
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import PowerTransformer
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_param_validation,
    parametrize_with_checks,
)

from sklearn_mcsg import LIKELIHOODS, Groups, ModelComparisonClassifier, ModelComparisonSimilarity
from sklearn_mcsg.groups.blocks import rows_of

pytestmark = by_several_threads


class RaggedClassifier(Ragged, ModelComparisonClassifier):
    step = 0.1  # classes stay apart


ESTIMATORS = [
    ModelComparisonClassifier(),
    ModelComparisonClassifier("full", "bic"),
    ModelComparisonClassifier("spherical", "bayes", prior_strength=0, reg_covar=0.01),
    RaggedClassifier(),
    RaggedClassifier("full", "bayes"),
]


@by_one_thread
@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@by_one_thread
@pytest.mark.parametrize("check", [check_dataframe_column_names_consistency, check_param_validation])
def test_further_scikit_learn_checks(check):
    check("ModelComparisonClassifier", ModelComparisonClassifier())


def some_classes(n_groups=40, labels=("a", "bb", "ccc"), seed=0, weighted=False, apart=2.0):
    """Groups of unequal sizes from classes of unequal means and spreads, and their labels."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_groups) % len(labels))
    arrays = [apart * np.eye(3)[k] + (1 + 0.5 * k) * rng.normal(size=(rng.integers(2, 8), 3)) for k in codes]
    weights = [rng.uniform(0.5, 2, size=len(x)) for x in arrays] if weighted else None
    return Groups.from_list(arrays, weights=weights), np.array(labels)[codes]


def vectors_of(likelihood, groups, chosen):
    """Vectors and weights of some groups together, as the oracle takes them."""
    return oracle.observed(likelihood, groups[np.flatnonzero(chosen)].pooled(), 0)


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
def test_against_pooling_vectors_literally(likelihood, criterion):
    (X, y), (queries, _) = some_classes(15, weighted=True), some_classes(4, seed=1)
    model = ModelComparisonClassifier(likelihood, criterion, prior_strength=0, reg_covar=0.05).fit(X, y)
    prior = getattr(model.likelihood_, "prior", None) and vars(model.likelihood_.prior)
    truth = [
        [
            oracle.compare(likelihood, criterion, q, vectors_of(likelihood, X, y == label), 0.05, prior)
            for label in model.classes_
        ]
        for q in (oracle.observed(likelihood, queries, i) for i in range(len(queries)))
    ]
    divergences = np.array([[float(np.squeeze(pair["divergence"])) for pair in row] for row in truth])
    assert_allclose(-model.decision_function(queries), divergences, rtol=1e-6, atol=1e-8)
    assert_array_equal(model.predict(queries), model.classes_[divergences.argmin(axis=1)])


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "trend"])
def test_pseudo_vectors_are_those_of_all_classes(likelihood):
    X, y = some_classes(12)
    model = ModelComparisonClassifier(likelihood, prior_strength=2.0).fit(X, y)
    x, c = vectors_of(likelihood, X, np.ones(len(y), dtype=bool))
    pseudo = oracle.pseudo_vectors(likelihood, x, c, 2.0)

    def likelihood_of(*groups):
        return oracle.log_likelihood(likelihood, *(np.concatenate(parts) for parts in zip(*groups, strict=True)), 1e-6)

    query = vectors_of(likelihood, X, np.arange(12) == 3)
    truth = []
    for label in model.classes_:
        group = vectors_of(likelihood, X, y == label)
        apart = likelihood_of(query, pseudo) + likelihood_of(group, pseudo) - likelihood_of(pseudo)
        weights = [part[1].sum() + 2.0 for part in (query, group)]
        truth.append(2 * (apart - likelihood_of(query, group, pseudo)) * np.sum(np.reciprocal(weights)))
    assert_allclose(-model.decision_function(X[[3]])[0], truth, rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["diag", "full"])
def test_a_narrow_class_keeps_its_groups(likelihood):
    """Classes are three deviations apart in one feature; in another one, the first is twenty times as narrow."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = [np.c_[rng.normal(3 * k, 1, 8), rng.normal(0, (0.05, 1)[k], 8)] for k in y]
    assert ModelComparisonClassifier(likelihood).fit(X[:500], y[:500]).score(X[500:], y[500:]) == 1


def same_model(a, b, queries, rtol=1e-8):
    """All that a classifier says is the same, up to rounding."""
    assert_array_equal(a.classes_, b.classes_)
    assert_array_equal(a.class_count_, b.class_count_)
    expected = b.decision_function(queries)
    assert_allclose(a.decision_function(queries), expected, rtol=rtol, atol=rtol * np.abs(expected).max())
    assert_allclose(a.thresholds_, b.thresholds_, rtol=1e3 * rtol)
    assert_allclose(a.predict_proba(queries), b.predict_proba(queries), atol=1e-4)  # as precise as the optimum


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
@pytest.mark.parametrize("n_calibration", [3, 512])
def test_partial_fit_in_pieces_is_fit(likelihood, criterion, n_calibration):
    X, y = some_classes(24, weighted=True)
    params = dict(likelihood=likelihood, criterion=criterion, reg_covar=0.05, n_calibration=n_calibration)
    pieces = ModelComparisonClassifier(**params)
    for piece in (slice(0, 1), slice(1, 9), slice(9, 24)):
        pieces.partial_fit(X[piece], y[piece])
    same_model(pieces, ModelComparisonClassifier(**params).fit(X, y), X)


@pytest.mark.parametrize(("likelihood", "criterion"), [(l, c) for l, c in COMBINATIONS if c in ("aic", "bayes")])
def test_removing_what_was_added_restores_the_model(likelihood, criterion):
    X, y = some_classes(24, weighted=True)
    extra, labels = some_classes(9, labels=("bb", "ccc", "d"), seed=1, weighted=True)
    params = dict(likelihood=likelihood, criterion=criterion, reg_covar=0.05)
    model = ModelComparisonClassifier(**params).fit(X, y)
    before = ModelComparisonClassifier(**params).fit(X, y)
    assert "d" in model.partial_fit(extra, labels).classes_
    order = np.random.default_rng(0).permutation(len(labels))
    same_model(model.remove(extra[order], labels[order]), before, X)
    fewer = ModelComparisonClassifier(**params).fit(X[5:], y[5:])
    same_model(model.remove(X[:5], y[:5]), fewer, X)


def test_removing_the_references_of_a_large_class():
    """Groups beyond the references are removed from the model; references are, from the references too."""
    X, y = some_classes(60)
    model = ModelComparisonClassifier(n_calibration=5).fit(X, y)
    order = np.argsort(y, kind="stable")
    model.remove(X[order[[0, 1, 10]]], y[order[[0, 1, 10]]])
    fewer = ModelComparisonClassifier().fit(X[np.delete(order, [0, 1, 10])], y[np.delete(order, [0, 1, 10])])
    assert_allclose(model.decision_function(X), fewer.decision_function(X), rtol=1e-9, atol=1e-9)
    assert model._pooled.owners.tolist().count(0) == 3
    assert np.isfinite(model.thresholds_).all()


def test_integer_weights_are_repetition():
    X, y = some_classes(18)
    counts = np.random.default_rng(0).integers(1, 4, size=X.n_rows)
    weighted = Groups(X.vectors, X.offsets, weights=counts)
    repeated = [np.repeat(x, counts[rows_of(X, i)], axis=0) for i, x in enumerate(X)]
    same_model(*(ModelComparisonClassifier("full").fit(data, y) for data in (weighted, repeated)), X)


@by_one_thread
@pytest.mark.parametrize(
    ("likelihood", "criterion"), [("diag", "aic"), ("full", "bic"), ("vmf", "tic"), ("trend", "tic")]
)
def test_leaving_out_is_fitting_without(likelihood, criterion):
    """Thresholds follow from the divergence of each group from its class without it, by the formula written out."""
    X, y = some_classes(21, weighted=True)
    params = dict(likelihood=likelihood, criterion=criterion, prior_strength=0, reg_covar=0.05)
    model = ModelComparisonClassifier(**params).fit(X, y)
    left_out = np.empty((len(y), 1))
    for i, label in enumerate(y):
        others = (y == label) & (np.arange(len(y)) != i)
        pair = [vectors_of(likelihood, X, np.arange(len(y)) == i), vectors_of(likelihood, X, others)]
        left_out[i] = oracle.compare(likelihood, criterion, *pair, 0.05)["divergence"]
    scale = left_out.mean()
    left_out /= scale
    normal = PowerTransformer(standardize=False).fit(left_out)
    normal.lambdas_ = np.clip(normal.lambdas_, 0, 2)
    for label, threshold in zip(model.classes_, model.thresholds_, strict=True):
        values = normal.transform(left_out[y == label])
        # 1.9432: the 95 % point of Student's distribution with 6 degrees of freedom
        bound = values.mean() + 1.943180 * values.std(ddof=1) * np.sqrt(1 + 1 / 7)
        assert threshold == pytest.approx(scale * normal.inverse_transform([[bound]])[0, 0], rel=1e-4)


def test_rejection_keeps_its_level():
    """Of further groups of known classes the share of `level` is rejected; of an unknown class, nearly all."""
    rng = np.random.default_rng(0)
    centres = 3 * np.eye(4)

    def draw(codes):
        return [centres[k] + rng.normal(scale=0.5, size=4) + rng.normal(size=(rng.integers(5, 15), 4)) for k in codes]

    y, known = np.arange(150) % 3, np.arange(1200) % 3
    model = ModelComparisonClassifier("spherical", reject=True).fit(draw(y), y)
    new, unknown = draw(known), draw(np.full(100, 3))
    for level in (0.2, 0.05, 0.01):
        rejected = np.mean(model.set_params(level=level).predict(new) == -1)
        assert rejected == pytest.approx(level, abs=0.5 * level + 0.01)
    assert np.mean(model.set_params(level=0.05).predict(unknown) == -1) > 0.9
    assert -1 not in model.set_params(reject=False).predict(unknown)


def test_a_rejected_group_is_farther_from_every_class_than_its_threshold():
    X, y = some_classes(60, apart=1.0)
    model = ModelComparisonClassifier(reject=True, level=0.4).fit(X, y)
    decision = model.decision_function(X)
    accepted = -decision <= model.thresholds_
    predicted = model.predict(X)
    assert_array_equal(predicted == "none", ~accepted.any(axis=1))
    assert 0 < (predicted == "none").sum() < len(y)
    nearest_accepted = np.where(accepted, decision, -np.inf).argmax(axis=1)
    kept = predicted != "none"
    assert_array_equal(predicted[kept], model.classes_[nearest_accepted[kept]])


@pytest.mark.parametrize(
    ("labels", "given", "expected"),
    [
        (("a", "b"), None, "none"),
        (("a", "b"), "something unknown", "something unknown"),
        ((3, 7), None, -1),
        ((3, 7), 99, 99),
        ((0.5, 1.5), None, -1.0),
        ((True, False), None, -1),
        ((3, 7), "none", "none"),
        (("a", "b"), -1, -1),
    ],
)
def test_label_of_rejected_groups(labels, given, expected):
    X, y = some_classes(20, labels=labels)
    y = y.astype(bool) if labels[0] is True else y
    if labels == (0.5, 1.5):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            ModelComparisonClassifier().fit(X, y)
        y = 2 * y
        labels = (1.0, 3.0)
    model = ModelComparisonClassifier(reject=True, reject_label=given).fit(X, y)
    predicted = model.predict([*X, np.full((5, 3), 1e3)]).tolist()
    assert predicted[-1] == expected
    assert set(predicted) == {*labels, expected}


def test_probabilities_are_calibrated():
    """Among groups given a probability, about that share has the label, though vectors of a group are correlated."""
    rng = np.random.default_rng(0)

    def draw(codes):
        return [0.8 * k + rng.normal(scale=0.7, size=2) + rng.normal(size=(rng.integers(10, 30), 2)) for k in codes]

    train, test = np.arange(400) % 2, np.arange(2000) % 2
    model = ModelComparisonClassifier("spherical").fit(draw(train), train)
    probability = model.predict_proba(draw(test))[:, 1]
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (probability >= low) & (probability < low + 0.25)
        assert inside.sum() > 100
        assert test[inside].mean() == pytest.approx(probability[inside].mean(), abs=0.09)


def test_temperature_is_the_best():
    """Neither a larger nor a smaller factor on the divergences fits the labels of left-out groups better."""
    X, y = some_classes(60, apart=1.0)
    pooled = ModelComparisonClassifier().fit(X, y)._pooled
    divergences, owners = pooled._left_out

    def loss(temperature):
        odds = np.exp(-temperature * divergences)
        log_probability = np.log(odds / odds.sum(axis=1, keepdims=True))
        own = log_probability[np.arange(len(owners)), owners]
        return -(1 - 1 / 62) * own.mean() - log_probability.mean() / 62

    best = loss(pooled.temperature)
    assert best < loss(1.05 * pooled.temperature)
    assert best < loss(pooled.temperature / 1.05)


def test_separate_classes_have_finite_probabilities():
    X, y = some_classes(30, apart=50.0)
    probabilities = ModelComparisonClassifier().fit(X, y).predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert probabilities.max(axis=1).min() > 0.9


def test_unbalanced_classes():
    """A class of few groups is neither preferred nor forgotten."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [300, 30, 3])
    centres = 1.5 * np.eye(3, 6)

    def draw(codes):
        return [centres[k] + rng.normal(size=(8, 6)) for k in codes]

    test = np.arange(300) % 3
    predicted = ModelComparisonClassifier().fit(draw(codes), codes).predict(draw(test))
    recall = [np.mean(predicted[test == k] == k) for k in range(3)]
    assert min(recall) > 0.85


def test_classes_of_one_vector():
    X = [np.zeros((1, 2)), np.full((1, 2), 5.0), np.full((1, 2), -5.0)]
    model = ModelComparisonClassifier().fit(X, ["a", "b", "c"])
    assert model.predict([[[0.1, 0.2]], [[4.0, 6.0], [5.0, 5.0]]]).tolist() == ["a", "b"]
    for ask in (model.predict_proba, model.set_params(reject=True).predict):
        with pytest.raises(ValueError, match="Every class has only one group: .* some class must have two"):
            ask(X)
    model.partial_fit([np.ones((2, 2)), np.zeros((2, 2))], ["a", "a"])
    assert_allclose(model.thresholds_, model.thresholds_[0])  # classes of one group share that of all
    assert model.predict_proba(X).shape == (3, 3)


def test_many_small_classes():
    """Neither many declared classes nor one group per class is taken for a regression."""
    X, _ = some_classes(40)
    model = ModelComparisonClassifier(prior_strength=0).partial_fit(X, np.arange(40), classes=np.arange(100))
    assert_array_equal(model.predict(X), np.arange(40))


def test_one_class():
    X, _ = some_classes(10)
    model = ModelComparisonClassifier(reject=True).fit(X, np.zeros(10, dtype=int))
    assert_array_equal(model.predict_proba(X), np.ones((10, 1)))
    assert model.decision_function(X).shape == (10, 1)
    assert model.predict([np.full((4, 3), 1e3)]).tolist() == [-1]


def test_classes_given_in_advance():
    X, y = some_classes(20, labels=("b", "a"))
    model = ModelComparisonClassifier(reject=True).partial_fit(X, y, classes=np.array(["c", "b", "a"], dtype=object))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.class_count_.tolist() == [10, 10, 0]
    assert_array_equal(model.predict_proba(X)[:, 2], 0)
    assert_array_equal(model.decision_function(X)[:, 2], -np.inf)
    assert np.isnan(model.thresholds_).tolist() == [False, False, True]
    model.partial_fit(X[:2], ["c", "c"], classes=["a", "b", "c"])
    assert model.class_count_.tolist() == [10, 10, 2]
    with pytest.raises(ValueError, match=r"The label 'd' of group 1 is not among classes, \['a', 'b', 'c'\]"):
        model.partial_fit(X[:2], ["a", "d"])
    with pytest.raises(ValueError, match=r"classes=\['a', 'd'\] are not those of the first call, \['a', 'b', 'c'\]"):
        model.partial_fit(X[:2], ["a", "a"], classes=["a", "d"])
    assert model.class_count_.tolist() == [10, 10, 2]
    assert model.remove(X[:2], ["c", "c"]).classes_.tolist() == ["a", "b", "c"]


def test_new_labels_may_be_longer():
    X, y = some_classes(20, labels=("b", "a"))
    model = ModelComparisonClassifier().fit(X, y).partial_fit([np.full((3, 3), 9.0)], ["a much longer label"])
    assert model.predict([np.full((3, 3), 9.0)]).tolist() == ["a much longer label"]
    assert ModelComparisonClassifier().fit(X, pd.Series(y, dtype=object)).predict(X[:1]).dtype.kind == "U"


def test_bad_input_gets_a_sentence_and_changes_nothing():
    X, y = some_classes(12)
    model = ModelComparisonClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"not among classes, \[0, .*\.\.\. \(20 in all\)\]"):
        ModelComparisonClassifier().partial_fit(X, np.arange(20, 32), classes=np.arange(20))
    with pytest.raises(ValueError, match="one label per group: got 3 labels for 12 groups"):
        model.partial_fit(X, y[:3])
    with pytest.raises(ValueError, match="y must hold labels of one kind, strings or numbers, the same in every call"):
        model.partial_fit(X, np.zeros(12, dtype=int))
    with pytest.raises(ValueError, match="y must hold labels of one kind"):
        ModelComparisonClassifier().fit(X[:2], np.array(["a", 1], dtype=object))
    columns = [["a", None], ["a", np.nan], np.array([1.0, np.nan]), pd.Series(["a", pd.NA], dtype="string")]
    columns += [pd.to_datetime(["2020", None]), np.array(["2020", "NaT"], dtype="datetime64[ns]")]
    for column in [*columns, pd.Series([1, pd.NA], dtype="Int64")]:
        with pytest.raises(ValueError, match="y contains NaN.* 1 of 2 labels are missing, the first at position 1"):
            ModelComparisonClassifier().fit(X[:2], column)
    with pytest.raises(TypeError, match="y is a masked array, whose mask would be lost"):
        ModelComparisonClassifier().fit(X[:2], np.ma.masked_array([0, 1], mask=[False, True]))
    with pytest.raises(ValueError, match="classes must hold labels of one kind"):
        ModelComparisonClassifier().partial_fit(X, np.arange(12) % 3, classes=["0", "1", "2"])
    with pytest.raises(ValueError, match=r"The label 'x' of group 0 is not among the fitted classes"):
        model.remove(X[:1], ["x"])
    with pytest.raises(ValueError, match="5 groups with the label 'a' cannot be removed: only 4 were fitted"):
        model.remove(X[:5], ["a"] * 5)
    wrong = ["bb" if y[0] == "a" else "a"]
    with pytest.raises(ValueError, match=f"Group 0 was not fitted with the label '{wrong[0]}'"):
        model.remove(X[:1], wrong)
    with pytest.raises(ValueError, match="No group would be left"):
        model.remove(X, y)
    with pytest.raises(ValueError, match="reject_label='a' is a class"):
        ModelComparisonClassifier(reject=True, reject_label="a").fit(X, y)
    with pytest.raises(ValueError, match="reject_label=-1 is a class: set another"):
        ModelComparisonClassifier(reject=True).fit(X, np.arange(12) % 2 * 2 - 1)
    with pytest.raises(ValueError, match="Input X contains NaN: the first is in group 1"):
        model.partial_fit([[[1.0, 2, 3]], [[1, np.nan, 3]]], ["a", "a"])
    same_model(model, ModelComparisonClassifier().fit(X, y), X)


def test_vectors_that_are_kept_cannot_be_removed():
    X, y = some_classes(12)
    with pytest.raises(ValueError, match="With TIC, SphericalGaussian keeps the vectors themselves"):
        ModelComparisonClassifier("spherical", "tic").fit(X, y).remove(X[:1], y[:1])


def test_a_likelihood_without_unpool():
    X = [np.full((3, 2), 1.0), np.full((2, 2), 9.0), [[0.5, 1.0]], [[8.0, 7.0]]]
    y = [0, 1, 0, 1]
    model = ModelComparisonClassifier(Exponential(), prior_strength=0).fit(X, y)
    assert model.predict(X).tolist() == y
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "remove")
    with pytest.raises(AttributeError, match="Exponential defines no unpool"):
        model.set_params(reject=True).fit(X, y)
    with pytest.raises(AttributeError, match="Exponential defines no unpool"):
        _ = model.thresholds_


def test_empty_groups_are_ignored_or_refused():
    X, y = some_classes(12)
    empty = Groups.from_list([*X, np.empty((0, 3))])
    model = ModelComparisonClassifier().fit(empty, [*y, "a"])
    assert_allclose(model.decision_function(X), ModelComparisonClassifier().fit(X, y).decision_function(X), rtol=1e-12)
    with pytest.raises(ValueError, match="Group 12 has no vectors"):
        ModelComparisonClassifier(prior_strength=0).fit(empty, [*y, "a"])


def test_precision_jobs_and_memory():
    X, y = some_classes(30)
    truth = ModelComparisonClassifier("full").fit(X, y)
    single = [x.astype(np.float32) for x in X]
    model = ModelComparisonClassifier("full").fit(single, y)
    assert model.decision_function(single).dtype == model.predict_proba(single).dtype == np.float32
    assert truth.predict_proba(X).dtype == np.float64
    with sklearn.config_context(working_memory=0.001):
        small = ModelComparisonClassifier("full", n_jobs=2).fit(X, y)
        same_model(small, truth, X)
        assert_array_equal(small.predict(X), truth.predict(X))


def test_parameters_changed_after_fit():
    X, y = some_classes(12)
    model = ModelComparisonClassifier().fit(X[:6], y[:6]).set_params(likelihood="full", prior_strength=9.0)
    same_model(model.partial_fit(X[6:], y[6:]), ModelComparisonClassifier().fit(X, y), X)
    assert type(model.likelihood_).__name__ == "DiagonalGaussian"
    assert type(model.fit(X, y).likelihood_).__name__ == "FullGaussian"


def test_with_scikit_learn():
    X, y = some_classes(60)
    assert cross_val_score(ModelComparisonClassifier(), X, y, cv=3).mean() > 0.8
    search = GridSearchCV(ModelComparisonClassifier(), {"likelihood": ["diag", "full"]}, scoring="neg_log_loss", cv=2)
    assert search.fit(X, y).best_estimator_.predict_proba(X).shape == (60, 3)
    shown = CalibratedClassifierCV(ModelComparisonClassifier(), cv=2).fit(X, y).predict_proba(X)
    assert_allclose(shown.sum(axis=1), 1)


def test_a_pooled_group_is_a_query_for_its_class():
    X, y = some_classes(30)
    pooled = X.pooled(y)
    model = ModelComparisonClassifier(prior_strength=0).fit(X, y)
    assert_array_equal(model.predict(pooled), model.classes_)
    similarity = ModelComparisonSimilarity(output="divergence")
    assert_allclose(-model.decision_function(X), similarity.pairwise(X, pooled), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("likelihood", "criterion"), [("diag", "aic"), ("full", "bayes"), ("spherical", "tic")])
def test_saved_and_loaded(likelihood, criterion, tmp_path):
    X, y = some_classes(30)
    model = ModelComparisonClassifier(likelihood, criterion, reject=True).fit(X, y)
    model.save(tmp_path / "model")
    for mmap_mode in (None, "r"):
        loaded = ModelComparisonClassifier.load(tmp_path / "model", mmap_mode=mmap_mode)
        assert loaded.get_params() == model.get_params()
        same_model(loaded, model, X, rtol=1e-12)
        assert_array_equal(loaded.predict(X), model.predict(X))
        more = some_classes(5, seed=2)
        again = pickle.loads(pickle.dumps(model)).partial_fit(*more)
        same_model(loaded.partial_fit(*more), again, X, rtol=1e-12)


def test_damaged_state_is_not_opened():
    X, y = some_classes(30)
    model = ModelComparisonClassifier().fit(X, y)
    pooled = model._pooled
    for wrong in (
        dict(owners=pooled.owners + 1),
        dict(owners=pooled.owners[1:]),
        dict(counts=pooled.counts[1:]),
        dict(labels=pooled.labels[1:]),
    ):
        with pytest.raises(ValueError, match="labels|rows"):
            type(pooled)(**{**vars_of(pooled), **wrong}).check(3)
    with pytest.raises(ValueError, match="rows"):
        pooled.check(4)


def vars_of(pooled):
    return {name: getattr(pooled, name) for name in pooled.__dataclass_fields__}


def test_prediction_bound_of_many_values_is_the_normal_quantile():
    from sklearn_mcsg.classification._classes import _prediction_bound

    values = norm.ppf((np.arange(4000) + 0.5) / 4000)
    assert _prediction_bound(values, 0.05) == pytest.approx(norm.ppf(0.95), abs=2e-3)


def speakers(n=60, std=1.0, seed=0):
    """Groups of two classes that differ in the mean of feature 1; feature 0 has another spread in class "b"."""
    rng = np.random.default_rng(seed)
    y = np.tile(["a", "b"], n // 2)
    scales = {"a": [1.0, 1.0, 1.0], "b": [std, 1.0, 1.0]}
    return [rng.normal([5, 3 * (label == "b"), 0], scales[label], size=(8, 3)) for label in y], y


@pytest.mark.parametrize("likelihood", ["diag", "full", "trend"])
@pytest.mark.parametrize("std", [0, 0.03])
def test_a_feature_that_outweighs_the_others_is_told(likelihood, std):
    X, y = speakers(std=std)
    model = ModelComparisonClassifier(likelihood)
    with pytest.warns(UserWarning, match="1 of 3 features .* feature 0 within class 'b' .* set reg_covar") as told:
        model.fit(X, y)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="feature 0 within class 'b'") as told:
        model.partial_fit(X[:2], y[:2])
    assert told[0].filename == __file__
    new, truth = speakers(seed=1, std=std)
    new[1][:, 0] += 0.5  # little in class "a", and nearer to the rest of class "b" in the other features
    assert model.predict(new)[1] == "a"
    model.set_params(reg_covar=1.0).fit(X, y)  # the advice of the warning
    assert (model.predict(new) == truth).mean() > 0.95


def test_a_feature_that_outweighs_the_others_is_told_by_its_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"left": rng.normal(size=40), "right": rng.normal(size=40)})
    X.loc[::2, "left"] = 0
    with pytest.warns(UserWarning, match="feature left within class 0"):
        ModelComparisonClassifier().fit(X, np.arange(40) % 2)


def test_no_warning_of_features_that_do_not_outweigh_the_others():
    X, y = speakers()
    is_b = y == "b"
    constant = [np.column_stack([x, np.full(8, 0.1 + b)]) for x, b in zip(X, is_b, strict=True)]
    narrow = [1e-3 * x if b else x for x, b in zip(X, is_b, strict=True)]
    few = [np.ones((1, 3)) if i == 1 else x for i, x in enumerate(X)]
    chosen = np.flatnonzero(~is_b | (np.arange(len(y)) == 1))
    for likelihood in LIKELIHOODS:
        model = ModelComparisonClassifier(likelihood)
        model.fit(*speakers(std=0.1))
        model.fit(constant, y)  # within every class
        model.fit(narrow, y)  # one class, in all features
        model.fit([few[i] for i in chosen], y[chosen])  # a class of one vector
    ModelComparisonClassifier(reg_covar=0.01).fit(*speakers(std=0))


def test_a_fit_that_fails_leaves_the_classifier_as_it_was():
    X, y = some_classes()
    model = ModelComparisonClassifier(reject=True).fit(X, y)
    expected = model.predict(X)
    narrow = [x[:, :2] for x in X]
    with pytest.raises(ValueError, match="reject_label='none' is a class"):
        model.fit(narrow, np.where(y == "a", "none", y))
    assert_array_equal(model.predict(X), expected)
