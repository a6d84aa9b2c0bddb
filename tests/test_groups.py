import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import train_test_split

from sklearn_mcsg import (
    GroupClustering,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    MeanVector,
    ModelComparisonClassifier,
    ModelComparisonSegmenter,
    ModelComparisonSimilarity,
    validate_groups,
)
from sklearn_mcsg.groups import packed, united
from sklearn_mcsg.groups.blocks import pieces
from sklearn_mcsg.groups.regroup import balanced, without_labels, without_weightless
from sklearn_mcsg.storage._encoding import Attached, decode, encode

ARRAYS = [np.arange(6.0).reshape(3, 2), np.array([[9.0, 8.0]]), np.arange(4.0).reshape(2, 2) - 1]
WEIGHTS = [[1, 2, 3], [0.5], [0, 4]]


def same(groups, arrays):
    assert len(groups) == len(arrays)
    for group, array in zip(groups, arrays, strict=True):
        np.testing.assert_array_equal(group, array)


def table_groups():
    """The same groups on a shared table in another order, with a row nobody uses."""
    table = np.vstack([ARRAYS[2], [[np.nan, np.inf]], ARRAYS[0], ARRAYS[1]])
    return Groups(table, [0, 3, 4, 6], indices=[3, 4, 5, 6, 0, 1], weights=np.concatenate(WEIGHTS))


@pytest.mark.parametrize("groups", [Groups.from_list(ARRAYS, WEIGHTS), table_groups()], ids=["packed", "table"])
@pytest.mark.parametrize(
    "key",
    [slice(1, 3), slice(None, None, -1), slice(5, 9), [2, 0, 0], np.array([False, True, True]), np.array([], int)],
    ids=str,
)
def test_indexing_keeps_groups_and_weights(groups, key):
    picked = np.arange(3)[key]
    for subset in (groups[key], groups[key, ...]):
        same(subset, [ARRAYS[i] for i in picked])
        expected = np.concatenate([WEIGHTS[i] for i in picked]) if len(picked) else []
        np.testing.assert_array_equal(subset.weights, expected)
        assert subset.totals.tolist() == [sum(WEIGHTS[i]) for i in picked]


@pytest.mark.parametrize("i", [0, 2, -1, np.int64(1)])
def test_integer_gives_the_vectors(i):
    np.testing.assert_array_equal(table_groups()[i], ARRAYS[i])


def test_out_of_range_and_wrong_keys():
    with pytest.raises(IndexError, match="Group 3 is out of range for 3 groups"):
        table_groups()[3]
    with pytest.raises(IndexError, match="1-d array"):
        table_groups()[np.zeros((2, 2), dtype=int)]


def test_indexing_never_copies_vectors():
    packed, shared = Groups.from_list(ARRAYS), table_groups()
    assert packed[[2, 0]].vectors is packed.vectors
    assert shared[[2, 0]].vectors is shared.vectors
    assert np.shares_memory(packed[1:].vectors, packed.vectors)


def test_train_test_split_keeps_weights():
    groups = table_groups()
    train, test, y_train, y_test = train_test_split(groups, np.arange(3), test_size=1, random_state=0)
    for part, labels in ((train, y_train), (test, y_test)):
        assert isinstance(part, Groups)
        same(part, [ARRAYS[i] for i in labels])
        assert part.totals.tolist() == [sum(WEIGHTS[i]) for i in labels]


def test_concatenate():
    packed, shared = Groups.from_list(ARRAYS), table_groups()
    both = Groups.concatenate([packed, shared])
    same(both, ARRAYS + ARRAYS)
    np.testing.assert_array_equal(both.weights, [*np.ones(6), *np.concatenate(WEIGHTS)])
    again = Groups.concatenate([shared, shared[1:]])
    assert again.vectors is shared.vectors
    same(again, [*ARRAYS, *ARRAYS[1:]])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_tables_are_joined_whatever_integers_index_them(dtype):
    """Also where a row of the joined table is beyond the largest number of these integers."""
    table = np.arange(200.0)[:, None]
    groups = [Groups(table + 1000 * k, [0, 2, 3], indices=np.array([199, 0, 1], dtype=dtype)) for k in range(2)]
    joined = Groups.concatenate(groups)
    same(joined, [*groups[0], *groups[1]])
    assert joined.indices.dtype == np.int64


def test_collections_that_cannot_be_joined():
    with pytest.raises(ValueError, match="nothing to join: pass at least one"):
        Groups.concatenate([])
    with pytest.raises(ValueError, match="collection 0 has 2 and collection 1 has 3"):
        Groups.concatenate([Groups(np.ones((1, width)), [0, 1]) for width in (2, 3)])


def test_users_see_few_names():
    assert len([name for name in dir(Groups) if not name.startswith("_")]) <= 20


def test_from_labels():
    X = np.arange(10.0).reshape(5, 2)
    groups, labels = Groups.from_labels(X, ["b", "a", "b", "c", "a"], weights=[1, 2, 3, 4, 5])
    assert labels.tolist() == ["a", "b", "c"]
    same(groups, [X[[1, 4]], X[[0, 2]], X[[3]]])
    assert groups.totals.tolist() == [7, 4, 4]
    assert np.shares_memory(groups.vectors, X)
    with pytest.raises(ValueError, match="labels must hold one value per row of X: got shape .4,. for 5 rows"):
        Groups.from_labels(X, list("abcd"))
    with pytest.raises(ValueError, match=r"weights must hold one value per row of X: got shape \(6,\) for 5 rows"):
        Groups.from_labels(X, list("abcde"), weights=np.ones(6))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", np.nan, "b", None],
        [1.0, np.nan, 2.0, np.nan],
        np.array([1.0, np.nan, 2.0, np.nan]),
        np.array(["2024-01-01", "NaT", "2024-01-02", "NaT"], dtype="datetime64[D]"),
        pd.Series(["a", None, "b", None], dtype="string"),
        pd.Series([1, None, 2, None], dtype="Int64"),
        pd.Categorical(["a", None, "b", None]),
    ],
    ids=["list", "floats", "array", "dates", "strings", "integers", "categories"],
)
def test_from_labels_refuses_missing_ones(labels):
    with pytest.raises(
        ValueError, match="^labels has no value for 2 of 4 rows, the first is row 1: leave these rows out"
    ):
        Groups.from_labels(np.eye(4), labels)
    assert Groups.from_labels(np.eye(2), ["nan", ""])[1].tolist() == ["", "nan"]


def test_a_mask_is_refused_only_if_it_would_be_lost():
    with pytest.raises(TypeError, match="X is a masked array, whose mask would be lost"):
        Groups.from_labels(MASKED, [0, 1])
    assert len(validate_groups([np.ma.masked_array(ONE)])) == 1


def test_from_labels_with_swapped_arguments():
    with pytest.raises(ValueError, match=r"^The vectors come before the labels: pass Groups.from_labels\(vectors, lab"):
        Groups.from_labels(np.array([0, 1, 0]), np.eye(3))


def test_groups_with_their_names_are_not_a_collection():
    with pytest.raises(TypeError, match=r"^X holds the groups and their names, as Groups.from_labels .* pass X\[0\]"):
        validate_groups(Groups.from_labels(np.eye(3), list("aba")))


def test_a_column_of_strings_is_named():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "day": ["mon", "tue", "mon"]})
    message = (
        r"^X holds strings in the column 'day': leave it out. .*Groups.from_labels\(X.drop\(columns='day'\), X\['day'\]"
    )
    for columns in (["x", "day"], ["day", "x"]):
        with pytest.raises(TypeError, match=message):
            validate_groups(table[columns])
        with pytest.raises(TypeError, match=message):
            Groups.from_labels(table[columns], table["day"])


def test_words_are_not_groups():
    with pytest.raises(
        TypeError, match="^X holds strings, but must hold groups of vectors. For texts use make_text_emb"
    ):
        validate_groups([["a", "cat"], ["dog"]])


def test_several_groups_are_not_one():
    with pytest.raises(ValueError, match="^a has 3 dimension.*If it holds several groups, pass one of them.$"):
        ModelComparisonSimilarity().paired_test([np.ones((3, 2))], [np.ones((3, 2))])


def test_from_labels_of_series():
    X = np.arange(5.0)[:, None]
    groups, labels = Groups.from_labels(X, [7, 7, 3, 5, 5], consecutive=True)
    assert labels.tolist() == [3, 5, 7]
    same(groups, [X[[2]], X[3:], X[:2]])
    with pytest.raises(ValueError, match="label 'a' are not consecutive: they resume in row 3, after rows of another"):
        Groups.from_labels(X, list("aabab"), consecutive=True)


@pytest.mark.parametrize("groups", [Groups.from_list(ARRAYS, weights=WEIGHTS), table_groups()], ids=["packed", "table"])
def test_pooled(groups):
    everything = groups.pooled()
    same(everything, [np.concatenate(ARRAYS)])
    assert everything.vectors is groups.vectors
    assert everything.indices is groups.indices
    two = groups.pooled(["y", "x", "y"])
    same(two, [ARRAYS[1], np.concatenate([ARRAYS[0], ARRAYS[2]])])
    assert two.vectors is groups.vectors
    np.testing.assert_array_equal(two.weights, np.concatenate([WEIGHTS[1], WEIGHTS[0], WEIGHTS[2]]))
    same(groups[:0].pooled(), [np.empty((0, groups.n_features))])
    with pytest.raises(ValueError, match=r"one label per group: got \(2,\) for 3 groups"):
        groups.pooled([0, 1])


def test_the_model_of_pooled_groups_is_that_of_their_union():
    model = ModelComparisonSimilarity("full", "bic", reg_covar=0.1)
    pooled = Groups.from_list(ARRAYS).pooled([1, 0, 1])
    truth = model.pairwise([ARRAYS[1], np.concatenate([ARRAYS[0], ARRAYS[2]])])
    np.testing.assert_allclose(model.pairwise(pooled), truth, rtol=1e-12)


@pytest.mark.parametrize("mode", ["r", "c"])
def test_memory_mapped_vectors_are_used_in_place(tmp_path, mode):
    path = tmp_path / "vectors.npy"
    np.save(path, np.concatenate(ARRAYS))
    vectors = np.load(path, mmap_mode=mode)
    groups = validate_groups(Groups(vectors, [0, 3, 4, 6]))
    assert np.shares_memory(groups.vectors, vectors)
    same(groups, ARRAYS)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, bool])
def test_numbers_of_any_precision_stay_as_they_are(dtype):
    vectors = np.ones((4, 2), dtype=dtype)
    groups = validate_groups(Groups(vectors, [0, 1, 4]))
    assert groups.vectors is vectors
    assert groups.rows().dtype == np.float64
    assert groups.output_dtype == (np.float32 if dtype in (np.float16, np.float32) else np.float64)


def test_read_only_vectors():
    vectors = np.ones((4, 2))
    vectors.flags.writeable = False
    assert validate_groups(Groups(vectors, [0, 1, 4])).vectors is vectors


def object_array(arrays):
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result


LISTS = [array.tolist() for array in ARRAYS]
CONTAINERS = {
    "list": ARRAYS,
    "tuple": tuple(ARRAYS),
    "nested lists": LISTS,
    "object array": object_array(ARRAYS),
    "object array of arrays of arrays": object_array([object_array(list(a)) for a in ARRAYS]),
    "groups": Groups.from_list(ARRAYS),
    "table": table_groups(),
    "pandas column": pd.Series(ARRAYS),
    "pandas column with an index": pd.Series(LISTS, index=[7, 3, 5]),
    "pandas frame of one column": pd.DataFrame({"vectors": LISTS}),
    "polars column": pl.Series(LISTS),
    "polars frame of one column": pl.DataFrame({"vectors": LISTS}),
    "arrow lists": pa.array(LISTS),
    "arrow fixed-size lists": pa.array(LISTS, pa.list_(pa.list_(pa.float64(), 2))),
    "arrow chunks": pa.chunked_array([pa.array(LISTS[:1]), pa.array(LISTS[1:])]),
    "sliced arrow": pa.array([[[5.0, 5.0]], *LISTS])[1:],
}


@pytest.mark.parametrize("X", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_comes_through_the_door(X):
    same(validate_groups(X), ARRAYS)


def test_single_vectors_and_blocks():
    X = np.arange(12.0).reshape(3, 4)
    for rows in (X, X.tolist(), pd.DataFrame(X), pl.DataFrame(X)):
        same(validate_groups(rows, rows=True), [row[None] for row in X])
    blocks = X.reshape(3, 2, 2)
    groups = validate_groups(blocks)
    same(groups, list(blocks))
    assert np.shares_memory(groups.vectors, X)


def test_empty_groups_only_where_allowed():
    arrays = [np.ones((2, 3)), np.empty((0, 3)), []]
    groups = validate_groups(arrays, allow_empty=True)
    assert groups.sizes.tolist() == [2, 0, 0]
    assert groups.sum(groups.rows()).tolist() == [[2, 2, 2], [0, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"Groups 1, 2 have no vectors\..*prior_strength > 0.*pad_token"):
        validate_groups(arrays)
    with pytest.raises(ValueError, match="Group 0 has no vectors of positive weight"):
        validate_groups(Groups(np.ones((2, 1)), [0, 1, 2], weights=[0, 1]))


def test_pickle_and_repr(tmp_path):
    groups = table_groups()
    joblib.dump(groups, tmp_path / "groups")
    same(joblib.load(tmp_path / "groups"), ARRAYS)
    assert repr(groups) == "Groups(n_groups=3, n_features=2, sizes=1..3, shared table of 7 rows, weighted)"
    assert repr(groups[:0]) == "Groups(n_groups=0, n_features=2, shared table of 7 rows, weighted)"


ONE = np.ones((2, 3))
LONG = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 0.5, 1.0], "id": ["a", "a", "b"]})
VECTORS_OF_ARROW = pa.list_(pa.list_(pa.float64()))
BAD = {
    "empty list": ([], ValueError, "collection is empty"),
    "no groups": (Groups(ONE, [0, 2])[:0], ValueError, "collection is empty"),
    "no features": (np.empty((2, 3, 0)), ValueError, r"0 feature\(s\)"),
    "empty groups only": ([[], []], ValueError, r"0 feature\(s\)"),
    "1-d group": ([ONE, np.ones(3)], ValueError, "Group 1 has 1 dimension.*reshape"),
    "1-d groups": ([np.ones(3), np.ones(3)], ValueError, "Group 0 has 1 dimension.*reshape"),
    "3-d group": ([np.ones((2, 3, 4))], ValueError, "Group 0 has 3 dimension"),
    "1-d array": (np.ones(3), ValueError, r"X holds numbers.*Reshape your data: X.reshape\(1, -1\) is one group"),
    "4-d array": (np.ones((2, 3, 4, 5)), ValueError, r"X has 4 dimensions.*three.*X.reshape\(2, -1, 5\)"),
    "number": (3.0, TypeError, r"X is 3.0, but must be a list of groups, each an array \(n_vectors, n_features\)"),
    "nothing": (None, TypeError, "X is None, but must be a list of groups"),
    "dict": ({"a": ONE}, TypeError, r"X is a dict: pass its groups as list\(X.values\(\)\)"),
    "generator": ((x for x in [ONE]), TypeError, r"X is a generator, .*read only once: pass list\(X\)"),
    "set": ({1, 2}, TypeError, r"X is a set, which has no order.*pass list\(X\)"),
    "pandas groups": (
        LONG.groupby("id"),
        TypeError,
        r"DataFrameGroupBy: pass \[rows\[features\].to_numpy\(\) for _, rows",
    ),
    "polars groups": (pl.DataFrame({"a": [1.0], "id": [1]}).group_by("id"), TypeError, "GroupBy: pass .rows"),
    "mixed widths": ([ONE, ONE, np.ones((2, 4))], ValueError, "group 0 has 3 and group 2 has 4"),
    "no features beside others": ([ONE, np.ones((2, 0))], ValueError, "group 0 has 3 and group 1 has 0"),
    "mixed widths in a group": ([[[1.0, 2.0], [3.0]]], ValueError, "Group 0 has vectors of different numbers"),
    "NaN": ([ONE, ONE * np.nan], ValueError, "contains NaN.*group 1"),
    "inf": ([ONE, ONE, -ONE * np.inf], ValueError, "contains inf.*group 2"),
    "NaN row": (np.array([[[1.0]], [[np.nan]]]), ValueError, "contains NaN.*group 1"),
    "NaN in a table": (
        Groups([[1.0], [np.nan]], [0, 3, 4], indices=[0, 0, 0, 1]),
        ValueError,
        "contains NaN.*group 1",
    ),
    "NaN in a long table": (
        Groups([[1.0], [np.nan], [1.0], [1.0]], [0, 1, 2], indices=[0, 1]),
        ValueError,
        "contains NaN.*group 1",
    ),
    "text": ("a sentence", TypeError, "X is a string"),
    "texts": (["a sentence", "another"], TypeError, "Group 0 is a string.*make_text_embedding"),
    "array of texts": (np.array(["a", "b"]), TypeError, "X holds strings.*make_text_embedding"),
    "column of texts": (pd.DataFrame({"text": ["a", "b"]}), TypeError, "X holds strings.*make_text_embedding"),
    "lists of words": ([["a", "b"], ["c", "d"]], TypeError, "X holds strings.*make_text_embedding"),
    "words": ([ONE, [["a", "b", "c"]]], TypeError, "^Group 1 must hold numbers"),
    "objects": ([np.array([[{}, 1.0]], dtype=object)], TypeError, "^Group 0 must hold numbers"),
    "complex": ([ONE, ONE * 1j], ValueError, "Complex data not supported: Group 1"),
    "complex array": (np.ones((2, 3), dtype=complex), ValueError, "Complex data not supported"),
    "sparse": (sparse.eye(3), TypeError, "X is a sparse matrix.*pass X.toarray"),
    "sparse group": ([ONE, sparse.eye(3)], TypeError, "Group 1 is a sparse matrix"),
    "missing group": ([ONE, None], TypeError, "Group 1 is missing, got None: leave it out"),
    "first group missing": ([None, ONE], TypeError, "Group 0 is missing, got None: leave it out"),
    "all groups missing": ([None, None], TypeError, "Group 0 is missing, got None: leave it out"),
    "NaN for the first group": (pd.Series([np.nan, ONE]), TypeError, "Group 0 is missing, got nan: leave it out"),
    "NaN for a group": (pd.Series([ONE, np.nan]), TypeError, "Group 1 is missing, got nan: leave it out"),
    "arrow numbers": (pa.array([1.0, 2.0]), TypeError, "must hold lists of vectors, got type double"),
    "arrow nulls": (pa.array([[[1.0]], None]), ValueError, "holds nulls"),
    "arrow table": (pa.table({"g": [[[1.0]]]}), TypeError, "X is an Arrow Table: pass its column of lists"),
    "no arrow groups": (pa.array([], pa.list_(pa.list_(pa.float64()))), ValueError, "The collection is empty"),
    "empty arrow groups": (
        pa.array([[], []], pa.list_(pa.list_(pa.float64()))),
        ValueError,
        "their number is not known",
    ),
    "lazy frame": (pl.LazyFrame({"a": [1.0, 2.0]}), TypeError, r"LazyFrame, .*not known yet: pass X.collect\(\)"),
    "masked array": (np.ma.masked_array(np.ones((2, 2, 2)), mask=True), TypeError, "X is a masked array, whose mask"),
    "masked group": ([ONE, np.ma.masked_array(ONE, mask=True)], TypeError, "Group 1 is a masked array"),
    "arrow widths": (pa.array([[[1.0]], [[1.0, 2.0]]]), ValueError, r"same number of features, found \[1, 2\]"),
}


@pytest.mark.parametrize(("X", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_gets_a_sentence(X, error, message):
    with pytest.raises(error, match=message):
        validate_groups(X)


def test_a_lazy_frame_gets_the_same_sentence_after_fit():
    frame, _, message = BAD["lazy frame"]
    with pytest.raises(TypeError, match=message):
        ModelComparisonSimilarity().fit([ONE, ONE]).transform(frame)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda masked: Groups(masked[:, None], [0, 3]), "vectors"),
        (lambda masked: Groups(np.eye(3), [0, 3], weights=masked), "weights"),
        (lambda masked: Groups(np.eye(3), [0, 3], positions=masked), "positions"),
        (lambda masked: Groups.from_list([np.eye(3)], weights=[masked]), "weights of group 0"),
        (lambda masked: Groups.from_list([np.eye(3)], labels=[masked]), "labels of group 0"),
        (lambda masked: Groups(np.eye(3), [0, 3], labels=masked), "labels"),
        (lambda masked: Groups(np.eye(3), [0, 3], indices=masked), "indices"),
        (lambda masked: Groups(np.eye(3), masked), "offsets"),
        (lambda masked: validate_groups([[masked, [1.0, 2.0, 3.0]]]), "Group 0"),
        (lambda masked: Groups.from_labels(masked[:, None], [0, 0, 1]), "X"),
        (lambda masked: Groups.from_labels(np.eye(3), masked), "labels"),
    ],
)
def test_no_mask_is_lost(make, name):
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(TypeError, match=f"{name} is a masked array, whose mask would be lost"):
        make(masked)


def test_a_long_data_frame_gives_a_warning_that_says_what_to_pass():
    numbered = LONG.assign(id=[1, 1, 2])
    with pytest.warns(UserWarning, match=r"each of its rows becomes a group.*column 'id'.*Groups.from_labels\(X.drop"):
        assert len(validate_groups(numbered)) == 3
    X = numbered
    groups = Groups.from_labels(X.drop(columns="id"), X["id"])[0]
    assert groups.sizes.tolist() == [2, 1]
    with pytest.warns(UserWarning, match="column 'id'"):
        validate_groups(numbered, rows=True)
    validate_groups(LONG[["x", "y"]], rows=True)  # repeated floating-point numbers are no labels
    validate_groups(LONG[["x", "y"]].assign(count=[1, 2, 3]), rows=True)


def test_labels_without_an_order_get_a_sentence():
    labels = np.array(["a", 1, "b"], dtype=object)
    with pytest.raises(TypeError, match="labels must be of one kind.*for example to strings"):
        Groups.from_labels(np.eye(3), labels)
    with pytest.raises(TypeError, match="labels must be of one kind"):
        Groups.from_labels(np.eye(3), labels, consecutive=True)
    with pytest.raises(TypeError, match="labels must be of one kind"):
        Groups(np.eye(3), [0, 1, 2, 3]).pooled(labels)


def test_a_data_frame_may_repeat_names_of_columns():
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=["x", "x"])
    np.testing.assert_array_equal(validate_groups(frame, rows=True).vectors, frame)


TABLES = {
    "array": np.random.default_rng(0).normal(size=(20, 3)),
    "lists": np.random.default_rng(0).normal(size=(20, 3)).tolist(),
    "data frame": pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3))),
}
ONE_PER_ROW = r"X is a table, and each of its rows becomes a group of one vector: pass one group as \[X\]"


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize(
    "estimator",
    [ModelComparisonSimilarity(), GroupEmbedding(), GroupNeighbors(n_neighbors=2), GroupClustering(2), MeanVector()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_table_of_rows_gives_a_warning_that_says_what_to_pass(estimator, X):
    with pytest.warns(UserWarning, match=ONE_PER_ROW) as caught:
        estimator.fit(X)
    assert len({(warning.filename, warning.lineno, str(warning.message)) for warning in caught}) == 1, "shown once"
    assert len(validate_groups([X])) == 1  # the advice for one group, for several and for rows that are groups
    estimator.fit(Groups.from_labels(X, np.arange(20) % 5)[0])
    estimator.fit(np.asarray(X)[:, None])


def test_one_group_given_as_a_query_gives_a_warning():
    X = list(np.random.default_rng(0).normal(size=(6, 5, 3)))
    model = ModelComparisonSimilarity().fit(X)
    with pytest.warns(UserWarning, match=ONE_PER_ROW):
        assert model.transform(X[0]).shape == (5, 6)
    assert model.transform([X[0]]).shape == (1, 6)
    model.transform(X[0][:1])  # a single row is a query


def test_rows_are_usual_samples_of_sequences_and_classes():
    X = np.random.default_rng(0).normal(size=(20, 3))
    ModelComparisonSegmenter(n_segments=2).fit(X)
    ModelComparisonClassifier().fit(X, np.arange(20) % 2).predict(X)


@pytest.mark.parametrize("X", [BAD["text"][0], BAD["sparse"][0], BAD["complex array"][0][None]])
def test_errors_name_the_input(X):
    with pytest.raises((TypeError, ValueError), match=r"(?<!\w)Y(?!\w)"):
        validate_groups(X, name="Y")


MASKED = np.ma.masked_array(ONE, mask=[[True, False, False], [False, False, False]])
BAD_PARTS = {
    "1-d vectors": (dict(vectors=np.ones(3), offsets=[0, 3]), ValueError, "2-dimensional array.*offsets=.0, len"),
    "text": (dict(vectors=[["a"]], offsets=[0, 1]), TypeError, "vectors must hold numbers"),
    "float offsets": (dict(offsets=[0.0, 2.0]), ValueError, "offsets must be a 1-d array of integers"),
    "late start": (dict(offsets=[1, 2]), ValueError, "rise from 0 to the number of rows, 2, got 1 to 2"),
    "early end": (dict(offsets=[0, 1]), ValueError, "number of rows, 2, got 0 to 1"),
    "falling offsets": (dict(offsets=[0, 2, 1, 2]), ValueError, "with a decrease in between"),
    "indices out of range": (dict(offsets=[0, 2], indices=[0, 2]), ValueError, "between 0 and 1"),
    "float indices": (dict(offsets=[0, 2], indices=[0.0, 1.0]), ValueError, "indices must be a 1-d array of integers"),
    "negative weight": (dict(offsets=[0, 1, 2], weights=[1, -2]), ValueError, "Group 1 has weight -2.0"),
    "NaN weight": (dict(offsets=[0, 1, 2], weights=[np.nan, 1]), ValueError, "Group 0 has weight nan"),
    "weights that overflow": (
        dict(offsets=[0, 0, 2], weights=[1e308, 1e308]),
        ValueError,
        r"Group 1 has weights that sum to inf: the sum must be 0, or lie between 1e-100 and 1e\+100. Divide",
    ),
    "weights whose products overflow": (
        dict(offsets=[0, 1, 2], weights=[1, 1e160]),
        ValueError,
        r"Group 1 has weights that sum to 1e\+160",
    ),
    "subnormal weights": (
        dict(offsets=[0, 2], weights=[1e-320, 1e-320]),
        ValueError,
        "Group 0 has weights that sum to 1.9999.*e-320",
    ),
    "integers beyond floats": (dict(offsets=[0, 2], weights=[10**400, 1]), TypeError, "weights must hold numbers"),
    "too few weights": (dict(offsets=[0, 2], weights=[1]), ValueError, r"shape \(2,\), got shape \(1,\)"),
    "text weights": (dict(offsets=[0, 2], weights=["a", "b"]), TypeError, "weights must hold numbers"),
    "masked vectors": (dict(vectors=MASKED, offsets=[0, 2]), TypeError, "vectors is a masked array, whose mask"),
    "masked weights": (dict(offsets=[0, 2], weights=MASKED[:, 0]), TypeError, "weights is a masked array, whose mask"),
}


@pytest.mark.parametrize(("parts", "error", "message"), BAD_PARTS.values(), ids=BAD_PARTS)
def test_bad_parts_get_a_sentence(parts, error, message):
    with pytest.raises(error, match=message):
        Groups(**{"vectors": ONE, **parts})


def test_from_list_names_the_group_with_wrong_weights():
    with pytest.raises(ValueError, match=r"Group 1 has 1 vectors but weights of shape \(2,\)"):
        Groups.from_list(ARRAYS, weights=[[1, 1, 1], [1, 1], [1, 1]])
    with pytest.raises(ValueError, match="one array per group: got 1 for 3 groups"):
        Groups.from_list(ARRAYS, weights=[[1, 1, 1]])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 100])
def test_pieces_hold_every_vector_once(shared, n_rows):
    rng = np.random.default_rng(0)
    sizes = [0, 2, 0, 7, 1, 0]
    indices = rng.integers(0, 10, sum(sizes)) if shared else None
    groups = Groups(rng.normal(size=(10, 3)), np.cumsum([0, *sizes]), indices=indices, weights=rng.random(10))
    total = np.zeros((len(groups), 3))
    for owners, piece in pieces(groups, n_rows):
        assert piece.n_rows <= n_rows
        total[owners] += piece.sum(piece.rows())
    np.testing.assert_allclose(total, groups.sum(groups.rows()), rtol=1e-13)


def test_true_is_no_index():
    with pytest.raises(IndexError, match="integer, a slice"):
        Groups.from_list([[[0.0]], [[1.0]]])[True]


def test_pickles_hold_the_rows_in_use():
    groups = Groups(np.arange(20_000.0).reshape(-1, 2), [0, 2, 3], indices=[7, 3, 7])
    dumped = pickle.dumps(groups)
    assert len(dumped) < 2000
    same(pickle.loads(dumped), list(groups))


# Labels -------------------------------------------------------------------------------------------------------------

LABELS = [["a", "b", "c"], ["d"], ["e", "f"]]


def labelled_table():
    """The same groups on a shared table, with a row that nobody uses."""
    shared = table_groups()
    return Groups(shared.vectors, shared.offsets, indices=shared.indices, labels=list("abcdef"))


labelled = pytest.mark.parametrize(
    "groups", [Groups.from_list(ARRAYS, labels=LABELS), labelled_table()], ids=["packed", "table"]
)


def labels_of(groups):
    return [part.tolist() for part in groups.split(groups.labels)]


@labelled
@pytest.mark.parametrize(
    "key", [slice(1, 3), slice(None, None, -1), slice(5, 9), [2, 0, 0], [False, True, True]], ids=str
)
def test_labels_travel_through_indexing(groups, key):
    picked = groups[key]
    assert labels_of(picked) == [LABELS[i] for i in np.arange(3)[key]]
    assert "labelled" in repr(picked)


@labelled
def test_labels_travel_through_everything_else(groups):
    first, second = train_test_split(groups, random_state=0, test_size=1)
    assert sorted(labels_of(first) + labels_of(second)) == sorted(LABELS)
    assert labels_of(pickle.loads(pickle.dumps(groups[[2, 0]]))) == [LABELS[2], LABELS[0]]
    assert labels_of(Groups.concatenate([groups[1:], groups[:1]])) == [*LABELS[1:], LABELS[0]]
    assert labels_of(Groups.concatenate([groups[:1], labelled_table()])) == [LABELS[0], *LABELS]
    assert labels_of(balanced(groups)) == LABELS
    assert without_labels(groups).labels is None
    assert labels_of(united(groups, np.array([1, 0, 1]), 2)) == [["d"], ["a", "b", "c", "e", "f"]]
    assert labels_of(groups.pooled(["b", "a", "b"])) == [["d"], ["a", "b", "c", "e", "f"]]
    assert labels_of(groups.pooled()) == [list("abcdef")]
    found = [(owners, labels_of(piece)) for owners, piece in pieces(groups, 2)]
    assert found == [(slice(0, 1), [["a", "b"]]), (slice(0, 2), [["c"], ["d"]]), (slice(2, 3), [["e", "f"]])]


def test_labels_beside_none():
    """Vectors that have no label are labelled None beside those that have one."""
    joined = Groups.concatenate([Groups.from_list(ARRAYS[:1], labels=LABELS[:1]), Groups.from_list(ARRAYS[1:])])
    assert labels_of(joined) == [["a", "b", "c"], [None], [None, None]]
    weighted = Groups(np.eye(3), [0, 2, 3], weights=[1, 0, 2], labels=["x", "y", "z"])
    assert labels_of(without_weightless(weighted)) == [["x"], ["z"]]


def test_one_vector_with_two_labels():
    """A row of a shared table may stand for different things."""
    groups = Groups(np.eye(2), [0, 2, 4], indices=[0, 1, 0, 1], labels=["one", "two", "uno", "due"])
    assert labels_of(groups) == [["one", "two"], ["uno", "due"]]
    same(groups, [np.eye(2), np.eye(2)])


def test_labels_that_are_sequences():
    """Equal or different lengths of labels make no difference."""
    for labels in ([("a", "b"), ("c", "d")], [("a", "b"), 5]):
        groups = Groups.from_list([np.eye(2)], labels=[labels])
        assert groups.labels.tolist() == labels
        assert groups.labels.tolist() == Groups(np.eye(2), [0, 2], labels=labels).labels.tolist()


def test_wrong_labels_get_a_sentence():
    with pytest.raises(ValueError, match="one label per vector, 2 in all, got 3"):
        Groups(np.eye(2), [0, 2], labels=["a", "b", "c"])
    with pytest.raises(TypeError, match="labels must be a list with one label per vector, got a string"):
        Groups(np.eye(2), [0, 2], labels="ab")
    with pytest.raises(ValueError, match=r"Group 0 has 3 vectors but labels of shape \(1,\)"):
        Groups.from_list(ARRAYS, labels=[["a"], ["d"], ["e", "f"]])
    with pytest.raises(ValueError, match="labels must hold one array per group: got 1 for 3 groups"):
        Groups.from_list(ARRAYS, labels=[["a"]])


def test_a_million_words_share_the_labels_of_their_table():
    table, names = np.eye(4), np.array(["a", "b", "c", "d"], dtype=object)
    groups = packed(table, np.array([0, 3, 5]), np.array([3, 0, 0, 1, 2]), None, names)
    assert labels_of(groups[[1, 0]]) == [["b", "c"], ["d", "a", "a"]]
    assert groups[1:]._names is names


def padded(sizes=(3, 5, 5), size=5, d=4):
    X = np.zeros((len(sizes), size, d))
    for group, n in zip(X, sizes, strict=True):
        group[:n] = np.random.default_rng(n).normal(size=(n, d))
    return X


PADDED = {
    "array": lambda X: X,
    "single precision": lambda X: X.astype(np.float32),
    "list of arrays": list,
    "lists": lambda X: X.tolist(),
    "object array": lambda X: np.array([*X, X[0][:1]], dtype=object)[:-1],
    "column": lambda X: pytest.importorskip("pandas").Series(list(X)),
    "arrow": lambda X: pytest.importorskip("pyarrow").array(X.tolist()),
    "wide": lambda X: np.concatenate([np.zeros((*X.shape[:2], 100)), X], axis=2),
}


@pytest.mark.parametrize("convert", PADDED.values(), ids=PADDED)
def test_padding_is_noticed(convert):
    X = convert(padded())
    with pytest.warns(
        UserWarning, match=r"^2 vectors are zero .*\(the first is row 3 of group 0\).*drop.*weight 0"
    ) as caught:
        validate_groups(X)
    assert len(caught) == 1


def test_padding_is_noticed_once_in_a_call():
    with pytest.warns(UserWarning, match="vectors are zero") as caught:
        GroupNeighbors(n_neighbors=1).fit(padded())
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="^1 vector is zero .*first is row 4 of group 0"):
        ModelComparisonSimilarity().explain(padded((4,))[0], padded((5,))[0])


NOT_PADDED = {
    "full": padded((5, 5)),
    "one group per row": padded((1, 1))[:, :1],
    "zero groups": [np.zeros((2, 3)), np.ones((2, 3))],
    "integers": np.arange(12).reshape(3, 2, 2) // 2,
    "one feature": padded(d=1),
    "zero first features": np.concatenate([np.zeros((2, 5, 3)), np.ones((2, 5, 1))], axis=2),
    "packed": Groups(padded().reshape(15, 4), [0, 5, 10, 15]),
    "weightless": Groups.from_list(list(padded()), weights=[[1, 1, 1, 0, 0], [1] * 5, [1] * 5]),
}


@pytest.mark.parametrize("X", NOT_PADDED.values(), ids=NOT_PADDED)
def test_what_is_no_padding(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate_groups(X)


def test_padding_by_comparison_with_every_row():
    rng = np.random.default_rng(0)
    for d in (2, 3, 7, 16, 33):
        X = [rng.integers(0, 2, size=(n, d)) * rng.integers(0, 2, size=(n, 1)) * 1.0 for n in (2, 5, 9)]
        zero = [(i, j) for i, x in enumerate(X) for j, row in enumerate(x) if x.any() and not row.any()]
        with pytest.warns(UserWarning, match="zero beside others") as caught:
            Groups.from_list(X)
        i, j = zero[0]
        assert str(caught[0].message).startswith(f"{len(zero)} vector")
        assert f"row {j} of group {i})" in str(caught[0].message)


# Places -------------------------------------------------------------------------------------------------------------


def test_places_are_the_order_of_the_vectors():
    groups = Groups(np.zeros((7, 2)), [0, 4, 4, 5, 7])
    assert groups.positions is None
    assert_allclose(groups.row_positions, [-0.75, -0.25, 0.25, 0.75, 0, -0.5, 0.5])
    assert "positions" not in repr(groups)


def test_positions_are_kept_or_scaled():
    kept = Groups(np.zeros((4, 1)), [0, 3, 4], positions=[-1, 0.5, 0.5, 1])
    assert_array_equal(kept.positions, [-1, 0.5, 0.5, 1])
    assert "with positions" in repr(kept)
    stamps = Groups.from_list([np.zeros((3, 1)), [[0]], [], [[1], [2]]], positions=[[10, 40, 20], [7], [], [5, 5]])
    assert_allclose(stamps.positions, [-1, 1, -1 / 3, 0, 0, 0])
    wide = Groups(np.zeros((3, 1)), [0, 3], positions=[-1.7e308, 0, 1.7e308])
    assert_allclose(wide.positions, [-1, 0, 1])
    for dtype in (np.int64, np.uint64):  # stamps in nanoseconds, which double precision does not tell apart
        stamps = np.array([0, 1, 4, 0, 1, 7], dtype) + dtype(1_763_500_000_123_456_789)
        near = Groups(np.zeros((6, 1)), [0, 0, 3, 5, 6], positions=stamps)
        assert_allclose(near.positions, [-1, -0.5, 1, -1, 1, 0])
    ends = Groups(np.zeros((3, 1)), [0, 3], positions=np.array([-(2**63), 0, 2**63 - 1]))
    assert_allclose(ends.positions, [-1, 0, 1], atol=1e-15)
    table, _ = Groups.from_labels(np.arange(4.0)[:, None], ["b", "a", "b", "b"], positions=[1, 9, 3, 2])
    assert_allclose(table.positions, [0, -1, 1, 0])
    assert_array_equal(table[1].ravel(), [0, 2, 3])


def test_whole_groups_keep_their_places_and_store_none(make_groups):
    groups = make_groups(6, 2, (1, 5))
    for some in (groups[2:5], groups[[4, 1]], Groups.concatenate([groups, groups])):
        assert some.positions is None
    placed = Groups(groups.vectors, groups.offsets, positions=groups.row_positions)
    for key in (slice(2, 5), [4, 1, 1]):
        assert_allclose(placed[key].positions, groups[key].row_positions)
    joined = Groups.concatenate([groups, placed[[3]]])
    assert_allclose(joined.positions, np.concatenate([groups.row_positions, groups[[3]].row_positions]))
    assert_allclose(pickle.loads(pickle.dumps(placed)).positions, placed.positions)


def test_pooling_keeps_places(make_groups):
    groups = make_groups(5, 2, (1, 5), weighted=True)
    pooled = groups.pooled([1, 0, 1, 0, 0])
    own = groups.split(groups.row_positions)
    assert_allclose(pooled.positions, np.concatenate([own[i] for i in (1, 3, 4, 0, 2)]))
    assert_allclose(pooled.pooled().positions, pooled.positions)


def test_a_place_is_fixed_before_vectors_are_left_out():
    """A vector of weight 0 keeps the others where they are."""
    x = np.array([[0.0], [0.3], [5.0], [9.0]])
    model = ModelComparisonSimilarity("trend")
    weighted = Groups(x, [0, 4], weights=[1, 1, 0, 1])
    kept = Groups(x[[0, 1, 3]], [0, 3], positions=[-0.75, -0.25, 0.75])
    assert_allclose(model.score_samples(weighted), model.score_samples(kept), rtol=1e-12)
    assert abs(model.score_samples(weighted) - model.score_samples([x[[0, 1, 3]]])) > 1


def test_groups_torn_apart_keep_their_places(make_groups):
    """Random divisions of two groups, by way of `model.placed`, are those of vectors with positions."""
    a, b = make_groups(2, 2, (5, 6))[[0]], make_groups(2, 2, (4, 5), seed=1)[[1]]
    fixed = [Groups(g.vectors, g.offsets, indices=g.indices, positions=g.row_positions) for g in (a, b)]
    model = ModelComparisonSimilarity("trend", random_state=0)
    assert model.paired_test(a, b) == model.paired_test(*fixed)


def test_positions_are_saved(make_groups):
    groups = make_groups(5, 2, (2, 5))
    placed = Groups(groups.vectors, groups.offsets, positions=groups.row_positions)
    attached = Attached()
    for given in (groups, placed):
        again = decode(encode(given, attached), attached)
        assert_allclose(again.row_positions, given.row_positions)
        assert (again.positions is None) == (given.positions is None)


@pytest.mark.parametrize(
    ("positions", "error", "message"),
    [
        ([0, 1], ValueError, r"positions must hold one number per vector, shape \(3,\), got shape \(2,\)"),
        ([0, 1, np.nan], ValueError, "Group 1 has position nan: positions must be finite"),
        ([0, np.inf, 1], ValueError, "Group 0 has position inf: positions must be finite"),
        (["a", "b", "c"], TypeError, "positions must hold numbers"),
        ([[0, 1], [0]], ValueError, "positions must be one array, got sequences of different lengths"),
        (
            np.array(["2020-01-01"] * 3, "datetime64[D]"),
            TypeError,
            r"pass the seconds since the first one, which are \(t - t\[0\]\) / np.timedelta64\(1, 's'\)",
        ),
    ],
)
def test_bad_positions_get_a_sentence(positions, error, message):
    with pytest.raises(error, match=message):
        Groups(np.zeros((3, 1)), [0, 2, 3], positions=positions)


def test_positions_of_another_number_of_vectors_get_a_sentence():
    with pytest.raises(ValueError, match="Group 1 has 1 vectors but positions of shape"):
        Groups.from_list([np.eye(2), np.ones((1, 2))], positions=[[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="positions must hold one array per group: got 3.0 for 1 groups"):
        Groups.from_list([np.eye(2)], positions=3.0)
    with pytest.raises(ValueError, match="weights of group 0 must be one array, got sequences of different lengths"):
        Groups.from_list([np.eye(2)], weights=[[[1], [1, 2]]])
    with pytest.raises(ValueError, match="positions must hold one value per row of X"):
        Groups.from_labels(np.eye(2), [0, 1], positions=[0])
    with pytest.raises(ValueError, match="positions must be one array, got sequences of different lengths"):
        Groups.from_labels(np.eye(2), [0, 1], positions=[[0], [0, 1]])
