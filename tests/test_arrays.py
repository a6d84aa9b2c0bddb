"""Arrays of other libraries give the results of NumPy's, on their device."""

from itertools import product

import numpy as np
import pytest
import sklearn
from conftest import random_groups

from sklearn_mcsg import (
    CRITERIA,
    LIKELIHOODS,
    GroupClustering,
    GroupEmbedding,
    GroupNeighbors,
    MeanVector,
    ModelComparisonClassifier,
    ModelComparisonClustering,
    ModelComparisonSegmenter,
    ModelComparisonSimilarity,
    PairSimilarity,
    find_duplicates,
    validate_groups,
)
from sklearn_mcsg.engine import dispatch
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups import arrays as array_kinds
from sklearn_mcsg.groups.array_groups import ArrayGroups, check_same_place
from sklearn_mcsg.groups.arrays import ArrayKind

TAKEN = (
    [name for name, kind in LIKELIHOODS.items() if kind.array_unions],
    [name for name, kind in CRITERIA.items() if kind.takes_arrays],
)
COMPARISONS = [
    (likelihood, criterion, output)
    for likelihood, criterion, output in product(*TAKEN, OUTPUTS)
    if OUTPUTS[output].is_usable_for(LIKELIHOODS[likelihood](), CRITERIA[criterion]())
]
TOLERANCE = {"float64": 1e-10, "float32": 1e-6}


@pytest.fixture(params=["array_api_strict", "torch"])
def library(request, monkeypatch):
    """A library whose arrays scikit-learn dispatches; it asks for the environment variable at every call."""
    library = pytest.importorskip(request.param)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        with sklearn.config_context(array_api_dispatch=True):
            yield library
    except ImportError as error:
        pytest.skip(str(error))


def to_numpy(array):
    return np.asarray(array)


def make(n_groups=14, n_features=3, dtype="float64"):
    return list(random_groups(n_groups, n_features, (1, 7), dtype=dtype))


def assert_same(found, expected, like):
    """The same values to the tolerance of their dtype, relative to the largest, in the library of an array."""
    assert type(found) is type(like)
    assert found.device == like.device
    assert to_numpy(found).dtype == expected.dtype
    tolerance = TOLERANCE[expected.dtype.name] * np.abs(expected).max()
    np.testing.assert_allclose(to_numpy(found), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("likelihood", "criterion", "output"), COMPARISONS)
def test_similarities_are_those_of_numpy(library, likelihood, criterion, output, dtype):
    groups = make(dtype=dtype)
    arrays = [library.asarray(group) for group in groups]
    for balanced, prior_strength in ((False, 0.5), (True, 0.0), (True, 2.0)):
        params = {"output": output, "balanced": balanced, "prior_strength": prior_strength}
        ours, theirs = (ModelComparisonSimilarity(likelihood, criterion, **params) for _ in range(2))
        assert_same(ours.fit_transform(arrays), theirs.fit_transform(groups), arrays[0])
        assert_same(ours.transform(arrays[:3]), theirs.transform(groups[:3]), arrays[0])
        assert_same(theirs.transform(arrays[:3]), theirs.transform(groups[:3]), arrays[0])
        np.testing.assert_allclose(ours.transform(groups[:3]), theirs.transform(groups[:3]), rtol=1e-6, atol=1e-6)
        assert_same(ours.pairwise(arrays[:5], arrays[4:]), theirs.pairwise(groups[:5], groups[4:]), arrays[0])
        assert_same(ours.paired(arrays[:7], arrays[7:]), theirs.paired(groups[:7], groups[7:]), arrays[0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("likelihood", TAKEN[0])
def test_many_groups_in_blocks(library, likelihood, dtype, monkeypatch):
    groups = make(90, 20, dtype)
    arrays = [library.asarray(group) for group in groups]
    for output in ("similarity", "distance"):
        model = ModelComparisonSimilarity(likelihood, output=output)
        expected = model.pairwise(groups)
        for nbytes in (1, 2**16, 2**27):
            monkeypatch.setattr(dispatch.OnDevice, "budget", nbytes if nbytes > 1 else 640 * 49)
            found = model.pairwise(arrays)
            assert_same(found, expected, arrays[0])
            assert np.array_equal(to_numpy(found), to_numpy(found).T)
            if output == "distance":
                assert not np.diag(to_numpy(found)).any()
            assert_same(model.pairwise(arrays[:31], arrays), expected[:31], arrays[0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("likelihood", TAKEN[0])
def test_embeddings_are_those_of_numpy(library, likelihood, dtype):
    groups = make(40, dtype=dtype)
    arrays = [library.asarray(group) for group in groups]
    for whiten, normalize, prior_strength in ((0.0, False, 0.0), (0.5, True, 0.5)):
        params = {"whiten": whiten, "normalize": normalize, "prior_strength": prior_strength, "n_jobs": 2}
        ours, theirs = (GroupEmbedding(likelihood, **params) for _ in range(2))
        assert_same(ours.fit_transform(arrays), theirs.fit_transform(groups), arrays[0])
        assert_same(theirs.transform(arrays[:3]), theirs.transform(groups[:3]), arrays[0])
        ours.partial_fit(arrays[:20])
        theirs.partial_fit(groups[:20])
        assert_same(ours.transform(arrays), theirs.transform(groups), arrays[0])


@pytest.mark.parametrize("balanced", [False, True])
def test_arrays_are_compared_with_a_corpus_at_other_places(library, balanced):
    """Positions are given to NumPy's groups only: arrays, whose places are their order, are compared with them."""
    rng = np.random.default_rng(0)
    groups = make()
    corpus = Groups.from_list(groups, positions=[rng.uniform(-1, 0.2, len(x)) for x in groups])
    queries = make(6)
    arrays = [library.asarray(query) for query in queries]
    for output in ("similarity", "centered"):
        model = ModelComparisonSimilarity("trend", output=output, balanced=balanced, prior_strength=0.5).fit(corpus)
        assert_same(model.transform(arrays), model.transform(queries), arrays[0])


def test_the_order_of_vectors_counts(library):
    rising = np.random.default_rng(0).normal(size=(9, 2)) + np.arange(9)[:, None]
    array = library.asarray(np.stack([rising, rising[::-1]]))
    distances = {
        name: to_numpy(ModelComparisonSimilarity(name, output="distance").pairwise(array)) for name in TAKEN[0]
    }
    assert {name for name, found in distances.items() if found[0, 1] > 1} == {"trend"}


def test_batches_of_bounded_memory(library):
    groups = np.stack(make(60)[:1] * 60) + np.random.default_rng(1).normal(size=(60, 1, 3))
    array = library.asarray(groups)
    embedding = GroupEmbedding(reg_covar=0.1).fit(groups)
    similarity = ModelComparisonSimilarity(output="distance")
    expected = embedding.transform(groups), similarity.pairwise(groups)
    with sklearn.config_context(working_memory=0.002):
        assert_same(embedding.transform(array), expected[0], array)
        assert_same(GroupEmbedding(reg_covar=0.1).fit_transform(array), expected[0], array)
        assert_same(similarity.pairwise(array), expected[1], array)
        groups[57] = np.nan
        for act in (embedding.transform, GroupEmbedding().fit, similarity.pairwise):
            with pytest.raises(ValueError, match=r"X contains NaN: the first is in group 57"):
                act(library.asarray(groups))


def test_a_group_at_the_mean_of_the_corpus_is_the_zero_vector(library):
    groups = np.array([[[-1.0, -1.0], [1.0, 1.0]], [[1.0, -1.0], [3.0, 1.0]], [[-3.0, -1.0], [-1.0, 1.0]]])
    embedding = GroupEmbedding(normalize=True).fit(groups)
    found = embedding.transform(library.asarray(groups))
    assert not to_numpy(found)[0].any()
    assert_same(found, embedding.transform(groups), found)


@pytest.mark.filterwarnings("ignore:X is a table")
def test_forms_of_input(library):
    model = ModelComparisonSimilarity("spherical", "bic")
    X = np.random.default_rng(0).integers(-4, 5, size=(6, 4, 2))
    for groups in (X, X.astype("float32"), X[:, 0], X > 0):
        array = library.asarray(groups)
        assert_same(model.pairwise(array), model.pairwise(groups), array)
    mixed = [X[0].astype("float32"), X[1].astype("float64"), X[2]]
    arrays = tuple(map(library.asarray, mixed))
    assert_same(model.pairwise(arrays), model.pairwise(mixed), arrays[0])
    model.fit(X.astype("float32"))
    double = library.asarray(X.astype("float64"))
    assert_same(model.transform(double), model.transform(X.astype("float64")), double)


def test_empty_groups_with_a_prior(library):
    groups = [*make(5), np.empty((0, 3))]
    arrays = [library.asarray(group) for group in groups]
    for params in ({}, {"balanced": True}):
        model = ModelComparisonSimilarity(prior_strength=1.0, **params)
        assert_same(model.fit_transform(arrays), model.fit_transform(groups), arrays[0])
    with pytest.raises(ValueError, match=r"Group 5 has no vectors"):
        ModelComparisonSimilarity().pairwise(arrays)
    empty = library.asarray(np.empty((3, 0, 2)))
    with pytest.raises(ValueError, match=r"Groups 0, 1, 2 have no vectors"):
        ModelComparisonSimilarity().pairwise(empty)
    assert to_numpy(model.partial_fit(arrays[:2]).transform(arrays)).shape == (6, 8)


def test_padding_gives_a_warning(library):
    groups = np.ones((3, 4, 2))
    groups[1, 3] = groups[2, 2:] = 0
    with pytest.warns(UserWarning, match=r"3 vectors are zero .* row 3 of group 1"):
        ModelComparisonSimilarity().pairwise(library.asarray(groups))
    with pytest.warns(UserWarning, match=r"3 vectors are zero .* row 3 of group 1"):
        ModelComparisonSimilarity().pairwise([library.asarray(group) for group in groups])


def test_errors_say_what_is_wrong(library):
    model = ModelComparisonSimilarity()
    array = library.asarray(np.random.default_rng(0).normal(size=(4, 3, 2)))
    for value, name in ((np.nan, "NaN"), (np.inf, "inf")):
        wrong = to_numpy(array).copy()
        wrong[2, 1, 0] = value
        for act in (model.pairwise, model.fit, GroupEmbedding().fit, GroupEmbedding().fit(array).transform):
            with pytest.raises(ValueError, match=rf"Input X contains {name}: the first is in group 2"):
                act(library.asarray(wrong))
    with pytest.raises(ValueError, match=r"X has 4 dimension\(s\), but must be 3-d"):
        model.pairwise(array[None, ...])
    with pytest.raises(ValueError, match=r"Group 1 has 1 dimension\(s\), but must be 2-d"):
        model.pairwise([array[0, ...], array[0, 0, ...]])
    with pytest.raises(ValueError, match=r"group 0 has 2 and group 1 has 1"):
        model.pairwise([array[0, ...], array[0, :, :1]])
    with pytest.raises(TypeError, match=r"Group 1 is of type list, but group 0 of type"):
        model.pairwise([array[0, ...], [[1.0, 2.0]]])
    with pytest.raises(ValueError, match=r"Complex data not supported"):
        model.pairwise(library.asarray(np.ones((2, 2, 2), dtype=complex)))
    with pytest.raises(ValueError, match=r"X has 1 features, but .* expecting 2 features"):
        model.fit(array).transform(array[:, :, :1])
    with pytest.raises(TypeError, match=r"X holds .* arrays on .*, but Y holds NumPy arrays"):
        model.pairwise(array, to_numpy(array))
    with pytest.raises(TypeError, match=r"out is for NumPy arrays only"):
        model.pairwise(array, out=np.empty((4, 4)))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(12, 0\)\)"):
        model.pairwise(array[:, :, :0])
    single = library.asarray(to_numpy(array).astype("float32"))
    penalized = ModelComparisonSimilarity(penalty_scale=1e38)
    for act in (penalized.pairwise, lambda X: penalized.paired(X, X)):
        with pytest.raises(ValueError, match=r"exceeds the range of float32"):
            act(single)
    with pytest.raises(ValueError, match=r"A moment of group 0 is not a finite number"):
        model.pairwise(array * 1e200)


@pytest.mark.filterwarnings("ignore:Only 4 groups")
def test_what_takes_no_arrays_says_so(library):
    array = library.asarray(np.random.default_rng(0).normal(size=(4, 3, 2)))
    for likelihood, criterion in product(LIKELIHOODS, CRITERIA):
        if (likelihood in TAKEN[0] and criterion in TAKEN[1]) or (likelihood, criterion) == ("vmf", "bayes"):
            continue
        with pytest.raises(
            TypeError, match=r"'diag', 'spherical', 'trend' with the criteria 'aic', 'bic'.*\.cpu\(\)\.numpy\(\)"
        ):
            ModelComparisonSimilarity(likelihood, criterion).fit(array)
    model = ModelComparisonSimilarity().fit(array)
    neighbors = GroupNeighbors(ModelComparisonSimilarity(), n_neighbors=1).fit(to_numpy(array))
    refused = {
        "X": [
            model.score_samples,
            model.pairwise_chunked,
            MeanVector().fit,
            neighbors.kneighbors,
            GroupEmbedding(method="landmarks").fit,
            GroupEmbedding(method="landmarks").fit(to_numpy(array)).transform,
            lambda X: model.score_samples([X[0, ...]]),
            model.with_groups,
            model.calibrate,
            lambda X: model.fit(to_numpy(X)).calibrate().pvalue(X, X),
            neighbors.fit,
            neighbors.partial_fit,
            GroupNeighbors(GroupEmbedding()).fit,
            GroupClustering(2).fit,
            GroupClustering(2).fit(to_numpy(array)).predict,
            ModelComparisonClustering().fit,
            ModelComparisonSegmenter().fit,
            lambda X: ModelComparisonClassifier().fit(X, [0, 0, 1, 1]),
            lambda X: find_duplicates(X, threshold=1.0),
            lambda X: PairSimilarity(model).fit([(X[i, ...], X[i, ...]) for i in range(4)]),
            lambda X: PairSimilarity(model).fit(X[None, ...]),
            lambda X: Groups.from_labels(X[0, ...], [0, 0, 1]),
            validate_groups,
        ],
        "vectors": [lambda X: Groups(X[0, ...], [0, 3])],
        "Group 0": [
            lambda X: Groups.from_list([X[0, ...]]),
            lambda X: model.fit([[X[0, 0, ...], X[0, 1, ...]]]),  # vectors of a group, one by one
        ],
        "a": [lambda X: model.explain(X[0, ...], X[1, ...])],
    }
    for name, methods in refused.items():
        for method in methods:
            with pytest.raises(TypeError, match=rf"{name} holds arrays of another library.*\.cpu\(\)\.numpy\(\)"):
                method(array)
    with pytest.raises(TypeError, match=r"'diag', 'spherical', 'trend'"):
        GroupEmbedding("full").fit(array)


def test_lists_of_two_kinds_are_refused(library):
    """NumPy's arrays are not moved to a device by themselves, wherever in the list they are."""
    groups = make(4)
    arrays = [library.asarray(group) for group in groups]
    for mixed in ([arrays[0], *groups[1:]], [groups[0], *arrays[1:]]):
        found, expected = type(mixed[1]).__name__, type(mixed[0]).__name__
        for act in (ModelComparisonSimilarity().fit, ModelComparisonSimilarity().pairwise, GroupEmbedding().fit):
            with pytest.raises(TypeError, match=f"Group 1 is of type {found}, but group 0 of type {expected}: convert"):
                act(mixed)
        with pytest.raises(TypeError, match="X holds arrays of another library than NumPy"):
            GroupNeighbors().fit(mixed)
    column = np.empty(4, dtype=object)
    column[:] = arrays
    assert_same(ModelComparisonSimilarity().pairwise(column), ModelComparisonSimilarity().pairwise(groups), arrays[0])


def test_a_comparison_beyond_double_precision_names_the_pair(library):
    groups = np.array([[[1e154], [1e154]], [[-1e154], [-1e154]]])
    with pytest.raises(ValueError, match=r"The comparison of groups 0 and 1 is not a finite number"):
        ModelComparisonSimilarity().pairwise(library.asarray(groups))


@pytest.mark.filterwarnings("ignore:X is a table")
@pytest.mark.parametrize("name", ["array_api_strict", "torch"])
def test_without_dispatch_arrays_become_those_of_numpy(name):
    library = pytest.importorskip(name)
    X = np.random.default_rng(0).normal(size=(4, 3, 2))
    model = ModelComparisonSimilarity()
    for groups in (X, X[:, 0]):
        found = model.pairwise(library.asarray(groups))
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, model.pairwise(groups))
    np.testing.assert_array_equal(model.pairwise([library.asarray(group) for group in X]), model.pairwise(X))


class SingleOnly:
    """A namespace whose device has no float64, as some graphics processors have none."""

    __name__ = "single"
    float32, float64 = np.dtype("float32"), np.dtype("float64")
    asarray = staticmethod(lambda values, device: values)


def test_a_device_without_double_precision_computes_in_single(monkeypatch):
    # versions of scikit-learn ask the namespace or its name
    monkeypatch.setattr(array_kinds, "max_precision_float_dtype", lambda xp, device: xp.float32)
    kind = ArrayKind(SingleOnly(), "gpu", np.dtype("float32"))
    assert kind.asarray(np.ones(2)).dtype == np.float32
    assert kind.promoted(np.dtype("float64")).dtype == np.float32
    with pytest.raises(TypeError, match=r"X holds single arrays on gpu, but Y holds NumPy arrays"):
        check_same_place(ArrayGroups([], kind, np.empty(0), 1), Groups(np.empty((0, 1)), [0]))
