"""A likelihood, a criterion and a similarity of one's own: everywhere, at every size, saved and loaded."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Exponential
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, directed_hausdorff
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_mcsg import (
    SIF,
    Comparison,
    Criterion,
    DiagonalGaussian,
    GroupNeighbors,
    Groups,
    GroupSimilarity,
    MeanVector,
    ModelComparisonSimilarity,
    PairSimilarity,
    WordMoversDistance,
    find_duplicates,
)
from sklearn_mcsg.engine.dispatch import Compiled, choose_engine, engine_context
from sklearn_mcsg.engine.results import DOUBLE


class AICc(Criterion):
    """A criterion that reads everything a fit offers, entry by entry."""

    def penalty(self, fit):
        k = fit.n_parameters
        assert fit.n.shape == fit.log_likelihood.shape
        return k + k * (k + 1) / (fit.n + fit.n_features + k)


class Hausdorff(Comparison):
    """The largest distance from a vector to the nearest one of the other group: all that a subclass must define."""

    outputs = ("distance",)

    def compare(self, left, right, output):
        left, right = (list(map(np.array, side)) for side in (left, right))  # SciPy 1.11 takes no read-only arrays
        return [[max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) for b in right] for a in left]


class CentredMeans(Comparison):
    """Distance of means that have been centred on the corpus: a comparison that summarizes, learns and prepares."""

    def __init__(self, power=1):
        self.power = power

    def summarize(self, groups):
        return (groups.sum(groups.rows()) / groups.totals[:, None]).astype(groups.output_dtype)

    def learn(self, summaries):
        self.centre_ = summaries.mean(axis=0)
        return self

    def prepare(self, summaries, output):
        return summaries - getattr(self, "centre_", 0)

    def compare(self, left, right, output):
        distances = cdist(left, right) ** self.power
        return -distances if output == "similarity" else distances


@pytest.fixture
def positive(make_groups):
    """Groups of positive features."""
    groups = make_groups(40, 5, (2, 9))
    return Groups(np.exp(groups.vectors), groups.offsets)


# Likelihood and criterion -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["aic", "bic", AICc()])
@pytest.mark.parametrize("engine", ["auto", "numpy", "numba"])
def test_a_likelihood_of_ones_own_under_every_engine(criterion, engine, positive):
    model = ModelComparisonSimilarity(Exponential(), criterion)

    def information(x):
        k = 5
        penalty = {"aic": k, "bic": 0.5 * k * np.log(len(x))}.get(criterion, k + k * (k + 1) / (len(x) + 5 + k))
        return -2 * (-len(x) * (np.log(x.mean(axis=0)) + 1).sum() - penalty)

    with engine_context(engine):
        matrix = model.pairwise(positive)
    for i, j in ((0, 1), (3, 3), (7, 39)):
        a, b = positive[i], positive[j]
        truth = information(a) + information(b) - information(np.concatenate([a, b]))
        assert matrix[i, j] == pytest.approx(truth, rel=1e-10)


def test_a_likelihood_of_ones_own_beyond_the_size_where_compiled_code_starts():
    rng = np.random.default_rng(0)
    X = Groups(rng.exponential(size=(3000, 60)), np.arange(0, 3001, 3))
    diagonal = DiagonalGaussian().statistics(X, reg_covar=1e-6, order=2)
    engine = choose_engine(DiagonalGaussian(), diagonal, diagonal, DOUBLE)
    assert isinstance(engine, Compiled), "the size is large enough"
    matrix = ModelComparisonSimilarity(Exponential(), AICc()).fit(X).transform(X[:400])
    some = np.array([3, 150, 399])
    with engine_context("numpy"):
        truth = ModelComparisonSimilarity(Exponential(), AICc()).pairwise(X[some], X)
    assert_allclose(matrix[some], truth, rtol=1e-10)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "vmf", "trend"])
def test_a_criterion_of_ones_own_sees_the_same_fit_under_every_engine(likelihood, engine, make_groups):
    X = make_groups(12, 3, (2, 9), weighted=True)
    model = ModelComparisonSimilarity(likelihood, AICc())
    with engine_context(engine):
        matrix = model.pairwise(X)
    i, j = np.divmod(np.arange(144), 12)
    size = np.abs(model.score_samples(X)).max()
    assert_allclose(matrix.ravel(), model.paired(X[i], X[j]), rtol=0, atol=1e-10 * size)


def test_unknown_engines_get_a_sentence():
    with pytest.raises(ValueError, match="must be one of auto, numpy, numba, got 'cuda'"), engine_context("cuda"):
        pass


def test_ones_own_likelihood_and_criterion_are_saved_and_loaded(positive, tmp_path):
    index = GroupNeighbors(ModelComparisonSimilarity(Exponential(), AICc(), output="distance")).fit(positive)
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index")
    assert isinstance(loaded.similarity_.likelihood, Exponential)
    assert_array_equal(loaded.kneighbors(positive[:5]), index.kneighbors(positive[:5]))
    assert_array_equal(loaded.partial_fit(positive[:3]).kneighbors(), index.partial_fit(positive[:3]).kneighbors())
    code = "import sys; from sklearn_mcsg import GroupNeighbors; GroupNeighbors.load(sys.argv[1])"
    result = subprocess.run([sys.executable, "-c", code, tmp_path / "index"], capture_output=True, text=True)
    assert "test_extension.AICc, which is not registered: import test_extension, then load again." in result.stderr


REGISTERED = """
import numpy as np
from sklearn_mcsg.engine.outputs import OUTPUTS, Output

OUTPUTS["root"] = Output("root", lambda *pair: np.sqrt(OUTPUTS["distance"].compute(*pair)), "root of the distance")

from conftest import Exponential
from sklearn_mcsg.likelihoods import LIKELIHOODS
from sklearn_mcsg.criteria import CRITERIA, Criterion

class AICc(Criterion):
    def penalty(self, fit):
        return fit.n_parameters + 12 / (fit.n + 4)

LIKELIHOODS["exponential"], CRITERIA["aicc"] = Exponential, AICc

from sklearn_mcsg import GroupNeighbors, ModelComparisonClustering, ModelComparisonSimilarity
from sklearn_mcsg.cli import main

X = np.random.default_rng(0).exponential(size=(20, 6, 3))
model = ModelComparisonSimilarity("exponential", "aicc", output="root").fit(X)
np.testing.assert_allclose(model.transform(X) ** 2, model.pairwise(X, output="distance"), atol=1e-9)
assert model.calibrate().pvalue(X, X).max() < 0.1
index = GroupNeighbors(model, n_neighbors=2).fit(X)
assert (index.kneighbors()[0] > 0).all()
assert ModelComparisonClustering("exponential", "aicc", prior_strength=0, n_clusters=2).fit(X).n_clusters_ == 2
assert ModelComparisonClustering("exponential", "aicc", prior_strength=0).fit(X).evidence_.shape == (20,)
try:
    main(["evaluate", "--help"])
except SystemExit:
    pass
"""


def test_an_entry_in_a_registry_is_all_that_a_new_one_needs():
    """A likelihood, a criterion and an output are known by name everywhere, the command included."""
    folder = Path(__file__).parent
    command = [sys.executable, "-W", "ignore", "-c", REGISTERED]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120)
    assert result.returncode == 0, result.stderr
    for name in ("exponential", "aicc", "root"):
        assert f", {name}" in " ".join(result.stdout.split())


# Similarity ---------------------------------------------------------------------------------------------------------

OWN = [
    GroupSimilarity(Hausdorff()),
    GroupSimilarity(CentredMeans(power=2)),
    GroupSimilarity(CentredMeans(), output="similarity"),
]
every_own = pytest.mark.parametrize("similarity", OWN, ids=repr)


@every_own
def test_a_similarity_of_ones_own_does_what_others_do(similarity, make_groups, tmp_path):
    X, Y = make_groups(15, 3), make_groups(4, 3, seed=1)
    model = clone(similarity).fit(X)
    matrix = model.transform(Y)
    sign = -1 if model.output == "similarity" else 1
    assert_allclose(model.pairwise(Y, X), matrix, rtol=1e-12)
    assert_allclose(model.paired(Y, X[:4]), np.diag(matrix), rtol=1e-12)
    index = GroupNeighbors(similarity, n_neighbors=3).fit(X)
    distances, indices = index.kneighbors(Y)
    assert_array_equal(indices, np.argsort(sign * matrix, axis=1, kind="stable")[:, :3])
    index.save(tmp_path / "index")
    loaded = GroupNeighbors.load(tmp_path / "index", mmap_mode="r")
    assert_array_equal(loaded.kneighbors(Y), index.kneighbors(Y))
    grown = (
        GroupNeighbors(similarity, n_neighbors=3).fit(X[:6]).partial_fit(X[6:]).partial_fit(Y).remove([15, 16, -2, -1])
    )
    assert_array_equal(grown.kneighbors(Y)[1], indices)
    assert_allclose(grown.kneighbors(Y)[0], distances, rtol=1e-12)
    pairs = [(X[i], X[i + 1]) for i in range(14)]
    predicted = PairSimilarity(similarity).fit(pairs).predict(pairs)
    assert_allclose(predicted, -sign * clone(similarity).fit(X).paired(X[:14], X[1:15]), rtol=1e-12)


def test_duplicates_by_a_similarity_of_ones_own(make_groups):
    X = list(make_groups(6, 3))
    (found,) = find_duplicates([*X, X[2] + 1e-12], threshold=1e-9, similarity=GroupSimilarity(Hausdorff()))
    assert found.tolist() == [2, 6]


@pytest.mark.parametrize(
    "similarity",
    [ModelComparisonSimilarity("vmf", output="centered", prior_strength=0.5), MeanVector(), SIF(1), *OWN],
    ids=repr,
)
def test_chosen_candidates_are_entries_of_the_matrix(similarity, make_groups):
    """Approximate search compares each query with some candidates, in the similarity's own output."""
    X, Y = make_groups(20, 3), make_groups(5, 3, seed=1)
    model = clone(similarity).fit(X)
    candidates = np.random.default_rng(0).integers(20, size=(5, 4))
    comparer = model.__mcsg_comparer__()
    values = comparer.compare_with_candidates(Y, candidates)
    assert_allclose(values, np.take_along_axis(model.transform(Y), candidates, axis=1), rtol=1e-9, atol=1e-12)
    rows, columns = np.array([3, 7, 1]), np.array([7, 0, 19, 3])
    expected = comparer.compare_among(slice(0, 20))[np.ix_(rows, columns)]
    assert_allclose(comparer.compare_among(rows, columns), expected, rtol=1e-9, atol=1e-12)


def test_what_compares_no_groups_is_refused(make_groups):
    class Nothing(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    with pytest.raises(TypeError, match="but Nothing does not. .* subclass Comparison and pass it to GroupSimilarity"):
        GroupNeighbors(Nothing()).fit(make_groups())
    with pytest.raises(ValueError, match=r"output must be one of \['distance'\], got 'similarity'"):
        GroupSimilarity(Hausdorff(), output="similarity").fit(make_groups())
    with pytest.raises(TypeError, match="abstract"):
        Comparison()


def test_learn_must_return_the_comparison(make_groups):
    class Forgetful(CentredMeans):
        def learn(self, summaries):
            self.centre_ = summaries.mean(axis=0)

    with pytest.raises(TypeError, match="learn of Forgetful must return the comparison, got None"):
        GroupSimilarity(Forgetful()).fit(make_groups())


def test_outputs_must_be_known():
    with pytest.raises(TypeError, match="outputs of Overlap must be among similarity, distance.*got overlap"):

        class Overlap(Comparison):
            outputs = ("overlap",)

            def compare(self, left, right, output):
                return np.ones((len(left), len(right)))


def test_parameters_of_ones_own_comparison_are_searched(make_groups):
    similarity = GroupSimilarity(CentredMeans())
    assert similarity.get_params()["comparison__power"] == 1
    X = make_groups(5, 3)
    squared = clone(similarity).set_params(comparison__power=2).fit_transform(X)
    assert_allclose(squared, similarity.fit_transform(X) ** 2)
    assert not hasattr(similarity.comparison, "centre_"), "it learns in a copy"


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning", "ignore:X is a table")
@parametrize_with_checks([GroupSimilarity(CentredMeans())])
def test_ones_own_similarity_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "similarity", [ModelComparisonSimilarity(), WordMoversDistance(), GroupSimilarity(Hausdorff())], ids=repr
)
def test_chunks_and_out_come_with_the_estimator(similarity, make_groups):
    X = make_groups(6, 3)
    whole = similarity.pairwise(X)
    assert_allclose(np.concatenate(list(similarity.pairwise_chunked(X))), whole, rtol=1e-9, atol=1e-12)
    out = np.empty((6, 6))
    assert similarity.pairwise(X, out=out) is out
    assert_allclose(out, whole)


def test_a_public_name_is_always_the_class_of_the_package(make_groups, tmp_path):
    """Also when a class of that name was registered before the package's own was imported."""
    GroupNeighbors(MeanVector("distance")).fit(make_groups()).save(tmp_path / "index")
    code = """
import sys
from sklearn_mcsg.engine.comparison import Comparison
class MeanVector(Comparison):
    def compare(self, *args, **kwargs): raise RuntimeError
class Pipeline(MeanVector): pass
from sklearn_mcsg import GroupNeighbors
print(type(GroupNeighbors.load(sys.argv[1]).similarity_).__module__)
"""
    result = subprocess.run([sys.executable, "-c", code, tmp_path / "index"], capture_output=True, text=True)
    assert result.stdout.strip() == "sklearn_mcsg.similarity.baselines", result.stderr


def test_pairs_by_a_foreign_similarity_that_names_its_output():
    class Foreign(BaseEstimator):
        output = "distance"

        def fit(self, X, y=None):
            return self

        def paired(self, X, Y):
            return np.array([abs(np.mean(x) - np.mean(y)) for x, y in zip(X, Y, strict=True)])

    pairs = [([[0.0]], [[1.0]]), ([[0.0]], [[5.0]])]
    assert PairSimilarity(Foreign()).fit(pairs).predict(pairs).tolist() == [-1, -5]
