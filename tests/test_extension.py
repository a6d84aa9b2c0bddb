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
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

import sklearn_mcsg
from sklearn_mcsg import (
    SIF,
    ComparesGroups,
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
from sklearn_mcsg.engine.dispatch import choose_fitter, engine_context


class AICc(Criterion):
    """A criterion that reads everything a fit offers, entry by entry."""

    def penalty(self, fit):
        k = fit.n_parameters
        assert fit.n.shape == fit.log_likelihood.shape
        return k + k * (k + 1) / (fit.n + fit.n_features + k)


class Hausdorff(GroupSimilarity):
    """The largest distance from a vector to the nearest one of the other group: all that a subclass must define."""

    outputs = ("distance",)

    def __init__(self, output="distance"):
        self.output = output

    def compare(self, learnt, left, right, output, dtype, out=None):
        left, right = (list(map(np.array, side)) for side in (left, right))  # SciPy 1.11 takes no read-only arrays
        pairs = [[max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) for b in right] for a in left]
        return np.array(pairs, dtype=dtype)


class CentredMeans(GroupSimilarity):
    """Distance of means that have been centred on the corpus: a subclass that summarizes, learns and prepares."""

    def __init__(self, output="distance"):
        self.output = output

    def summarize(self, learnt, groups):
        return (groups.sum(groups.rows()) / groups.totals[:, None]).astype(groups.output_dtype)

    def learn(self, summaries):
        return summaries.mean(axis=0)

    def prepare(self, learnt, summaries, output):
        return summaries if learnt is None else summaries - learnt

    def compare(self, learnt, left, right, output, dtype, out=None):
        distances = cdist(left, right).astype(dtype)
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
    assert choose_fitter(DiagonalGaussian(), diagonal, diagonal).by_unions, "the size is large enough"
    matrix = ModelComparisonSimilarity(Exponential(), AICc()).fit(X).transform(X[:400])
    some = np.array([3, 150, 399])
    with engine_context("numpy"):
        truth = ModelComparisonSimilarity(Exponential(), AICc()).pairwise(X[some], X)
    assert_allclose(matrix[some], truth, rtol=1e-10)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("likelihood", ["diag", "spherical", "full", "vmf"])
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
    assert "which is not registered: import the module that defines it" in result.stderr


def test_a_class_may_not_pass_for_one_of_the_package(positive, tmp_path):
    class AIC(Criterion):
        def penalty(self, fit):
            return 0.0

    index = GroupNeighbors(ModelComparisonSimilarity("diag", AIC(), output="distance")).fit(positive)
    with pytest.raises(TypeError, match=r"cannot hold a AIC, AIC\(\).*under a name that no class"):
        index.save(tmp_path / "index")
    GroupNeighbors(ModelComparisonSimilarity("diag", sklearn_mcsg.AIC(), output="distance")).fit(positive).save(
        tmp_path / "index"
    )


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
assert model.calibrate().p_value(X, X).max() < 0.1
index = GroupNeighbors(model, n_neighbors=2).fit(X)
assert (index.kneighbors()[0] > 0).all()
clustering = ModelComparisonClustering("exponential", "aicc", prior_strength=0, n_clusters=2).fit(X)
assert clustering.n_clusters_ == 2
assert clustering.evidence_.shape == (20,)
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

OWN = [Hausdorff(), CentredMeans(), CentredMeans("similarity")]
every_own = pytest.mark.parametrize("similarity", OWN, ids=repr)


@every_own
def test_a_similarity_of_ones_own_does_what_others_do(similarity, make_groups, tmp_path):
    X, Y = make_groups(15, 3), make_groups(4, 3, seed=1)
    model = clone(similarity).fit(X)
    assert isinstance(model, ComparesGroups)
    matrix = model.transform(Y)
    sign = -1 if model.higher_is_nearer else 1
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
    (found,) = find_duplicates([*X, X[2] + 1e-12], threshold=1e-9, similarity=Hausdorff())
    assert found.tolist() == [2, 6]


@pytest.mark.parametrize(
    "similarity",
    [ModelComparisonSimilarity("vmf", output="centered", prior_strength=0.5), MeanVector(), SIF(1), *OWN],
    ids=repr,
)
def test_chosen_candidates_are_entries_of_the_matrix(similarity, make_groups):
    """The hook for approximate search: some candidates for each query, in the similarity's own output."""
    X, Y = make_groups(20, 3), make_groups(5, 3, seed=1)
    model = clone(similarity).fit(X)
    candidates = np.random.default_rng(0).integers(20, size=(5, 4))
    values = model.compare_with_candidates(model.validate(Y), candidates)
    assert_allclose(values, np.take_along_axis(model.transform(Y), candidates, axis=1), rtol=1e-9, atol=1e-12)
    rows, columns = np.array([3, 7, 1]), np.array([7, 0, 19, 3])
    expected = model.compare_fitted(slice(0, 20))[np.ix_(rows, columns)]
    assert_allclose(model.compare_fitted(rows, columns), expected, rtol=1e-9, atol=1e-12)


def test_what_compares_no_groups_is_refused(make_groups):
    class Nothing(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    with pytest.raises(TypeError, match="Nothing has no compare_fitted. Subclass GroupSimilarity"):
        GroupNeighbors(Nothing()).fit(make_groups())
    with pytest.raises(ValueError, match=r"output must be one of \['distance'\], got 'similarity'"):
        Hausdorff("similarity").fit(make_groups())
    with pytest.raises(TypeError, match="abstract"):
        GroupSimilarity()


class EuclideanDistance(BaseEstimator):
    """The protocol without the template: single vectors compared by scikit-learn."""

    higher_is_nearer = False

    def fit(self, X, y=None):
        self.vectors_ = self.validate(X).rows()
        self.n_groups_ = len(self.vectors_)
        self.n_features_in_ = self.vectors_.shape[1]
        return self

    def partial_fit(self, X, y=None):
        return self.fit(np.concatenate([self.vectors_, self.validate(X).rows()]))

    def keep_fitted(self, kept):
        return self.fit(self.vectors_[kept])

    def validate(self, X):
        return X if isinstance(X, Groups) else Groups(X, np.arange(len(X) + 1))

    def compare_with_fitted(self, groups):
        return pairwise_distances(groups.rows(), self.vectors_)

    def compare_with_candidates(self, groups, candidates):
        return np.take_along_axis(self.compare_with_fitted(groups), candidates, axis=1)

    def compare_fitted(self, rows, columns=None):
        return pairwise_distances(self.vectors_[rows], self.vectors_[slice(None) if columns is None else columns])

    def transform(self, X):
        return self.compare_with_fitted(self.validate(X))


def test_the_protocol_is_all_that_an_index_needs():
    X = np.random.default_rng(0).normal(size=(30, 3))
    index = GroupNeighbors(EuclideanDistance(), n_neighbors=2).fit(X)
    assert isinstance(index.comparer(), ComparesGroups)
    expected = pairwise_distances(X)
    np.fill_diagonal(expected, np.inf)
    assert_array_equal(index.kneighbors(return_distance=False), np.argsort(expected, axis=1)[:, :2])
    index.partial_fit(X[:4] + 1e-3).remove([30, 31, 32, 33])
    assert_array_equal(index.kneighbors(X[:3], 1, return_distance=False).ravel(), [0, 1, 2])
    assert find_duplicates(np.vstack([X, X[:1]]), threshold=1e-6, similarity=EuclideanDistance())[0].tolist() == [0, 30]
    with pytest.raises(TypeError, match="EuclideanDistance cannot be calibrated: give find_duplicates a threshold"):
        find_duplicates(X, level=0.01, similarity=EuclideanDistance())


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning")
@parametrize_with_checks([CentredMeans()])
def test_the_template_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("similarity", [ModelComparisonSimilarity(), WordMoversDistance(), Hausdorff()], ids=repr)
def test_chunks_and_out_come_with_the_template(similarity, make_groups):
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
from sklearn_mcsg.similarity.base import GroupSimilarity
class MeanVector(GroupSimilarity):
    def __init__(self, output="distance"): self.output = output
    def compare(self, *args, **kwargs): raise RuntimeError
class Pipeline(MeanVector): pass
from sklearn_mcsg import GroupNeighbors
print(type(GroupNeighbors.load(sys.argv[1]).comparer()).__module__)
"""
    result = subprocess.run([sys.executable, "-c", code, tmp_path / "index"], capture_output=True, text=True)
    assert result.stdout.strip() == "sklearn_mcsg.baselines", result.stderr


def test_pairs_by_a_foreign_similarity_that_names_its_output():
    class Foreign(BaseEstimator):
        output = "distance"

        def fit(self, X, y=None):
            return self

        def paired(self, X, Y):
            return np.array([abs(np.mean(x) - np.mean(y)) for x, y in zip(X, Y, strict=True)])

    pairs = [([[0.0]], [[1.0]]), ([[0.0]], [[5.0]])]
    assert PairSimilarity(Foreign()).fit(pairs).predict(pairs).tolist() == [-1, -5]
