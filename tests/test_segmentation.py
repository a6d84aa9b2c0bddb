"""Segments of a sequence: the best of all partitions, fast as slow, and its laws."""

from itertools import combinations

import numpy as np
import oracle
import pytest
from conftest import COMBINATIONS, Exponential
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_mcsg import (
    LIKELIHOODS,
    Criterion,
    GroupEmbedding,
    Groups,
    ModelComparisonSegmenter,
    NormalGamma,
    NormalGammaTrend,
    NormalWishart,
    VonMisesFisher,
)
from sklearn_mcsg.engine.dispatch import engine_context
from sklearn_mcsg.segmentation import _sequence

EPS = 1e-3
GAUSSIANS = ("diag", "spherical", "full")
USABLE = [(l, c) for l, c in COMBINATIONS if c != "tic" or l in ("diag", "trend")]
COMPILED = [name for name, likelihood in LIKELIHOODS.items() if likelihood.segments]
REFUSED = [pair for pair in COMBINATIONS if pair not in USABLE]
ENGINES = ("numpy", "numba")


def planted(seed=0, d=4, n_segments=6, sizes=(25, 60), shift=1.5):
    """Segments with means and variances of their own, and their boundaries."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(sizes[0], sizes[1] + 1, n_segments)
    parts = [
        shift * rng.normal(size=d) + np.exp(0.4 * rng.normal(size=d)) * rng.normal(size=(length, d))
        for length in lengths
    ]
    return np.concatenate(parts), np.cumsum(lengths)[:-1]


def prior_of(likelihood, d):
    if likelihood == "full":
        return NormalWishart(np.full(d, 0.1), 0.7, d + 1.5, np.eye(d) + 0.3)
    kind = NormalGammaTrend if likelihood == "trend" else NormalGamma
    return kind(np.full(d, 0.1), 0.7, 1.3, 0.8)


def partitions(n, n_segments, min_size):
    """All boundaries that leave segments of a least size."""
    for cuts in combinations(range(1, n), n_segments - 1):
        if np.diff([0, *cuts, n]).min() >= min_size:
            yield cuts


def brute_force(cost, n, min_size, numbers, boundary=0.0):
    """The least cost, and its boundaries, for each number of segments."""
    best = {}
    for k in numbers:
        totals = {
            cuts: (k - 1) * boundary + sum(cost(a, b) for a, b in zip((0, *cuts), (*cuts, n), strict=True))
            for cuts in partitions(n, k, min_size)
        }
        best[k] = min((total, cuts) for cuts, total in totals.items())
    return best


def cost_of(likelihood, criterion, x, c, strength, prior, penalty_scale=1.0):
    """The criterion of a segment with pseudo-vectors, without their own likelihood, from the vectors."""
    if likelihood == "trend":  # every row is in the middle of its own group
        x = np.column_stack([x, np.zeros(len(x))])
    pseudo = oracle.pseudo_vectors(likelihood, x, c, strength) if strength else (x[:0], c[:0])
    own = oracle.information(likelihood, criterion, *pseudo, EPS, prior, 0.0) if strength else 0.0

    def cost(a, b):
        both = [np.concatenate(parts) for parts in zip((x[a:b], c[a:b]), pseudo, strict=True)]
        return oracle.information(likelihood, criterion, *both, EPS, prior, penalty_scale) - own

    return cost


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize(("likelihood", "criterion"), USABLE)
def test_best_of_all_partitions(likelihood, criterion, strength, engine):
    if strength and likelihood == "vmf":
        pytest.skip("no finite number of directions has all moments of its pseudo-vectors")
    x, _ = planted(3, d=3, n_segments=3, sizes=(3, 4))
    c = np.random.default_rng(0).uniform(0.5, 2, len(x))
    prior = prior_of(likelihood, 3) if criterion == "bayes" else None
    model = LIKELIHOODS[likelihood](prior=prior) if prior else likelihood
    rows = Groups(x, np.arange(len(x) + 1), weights=c)
    common = dict(prior_strength=strength, reg_covar=EPS, penalty_scale=0.7)
    cost = cost_of(likelihood, criterion, x, c, strength, prior and vars(prior), 0.7)
    truth = brute_force(cost, len(x), 2, range(1, 5), 0.7 * 2 * np.log(len(x)))
    with engine_context(engine):
        fixed = ModelComparisonSegmenter(model, criterion, n_segments=4, **common).fit(rows)
        free = ModelComparisonSegmenter(model, criterion, max_segments=4, **common).fit(rows)
    for k, (total, _) in truth.items():
        assert fixed.evidence_[k - 1] == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert_array_equal(fixed.boundaries_, truth[4][1])
    total, cuts = min(truth.values())
    assert free.evidence_[free.n_segments_ - 1] == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert_array_equal(free.boundaries_, cuts)


@pytest.mark.parametrize("min_size", [1, 3])
def test_squared_error_by_brute_force(min_size):
    x, _ = planted(1, d=2, n_segments=3, sizes=(3, 4))
    truth = brute_force(lambda a, b: ((x[a:b] - x[a:b].mean(axis=0)) ** 2).sum(), len(x), min_size, (1, 2, 3))
    for engine in ENGINES:
        with engine_context(engine):
            model = ModelComparisonSegmenter("squared_error", n_segments=3, min_size=min_size).fit(x)
        assert_allclose(model.evidence_, [total for total, _ in truth.values()], rtol=1e-12)
        assert_array_equal(model.boundaries_, truth[3][1])


@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("min_size", [1, 2, 7])
@pytest.mark.parametrize(("likelihood", "criterion"), [(l, c) for l, c in USABLE if c != "tic" and l in COMPILED])
def test_pruning_changes_nothing(likelihood, criterion, min_size, strength, monkeypatch):
    """Blocks of a few rows prune often; the whole dynamic programme, without pruning, agrees."""
    X, _ = planted(5, d=3, n_segments=5, sizes=(10, 30))
    model = ModelComparisonSegmenter(
        likelihood, criterion, min_size=min_size, prior_strength=strength, reg_covar=0.01, max_segments=200
    )
    monkeypatch.setattr(_sequence, "SEGMENTS", 1)
    pruned, firsts = _sequence.CompiledCosts.still_possible, []

    def recorded(self, best, first, end):
        firsts.append(pruned(self, best, first, end))
        return firsts[-1]

    with engine_context("numba"):
        monkeypatch.setattr(_sequence.CompiledCosts, "still_possible", recorded)
        fast = clone(model).fit(X)
        monkeypatch.setattr(_sequence.CompiledCosts, "still_possible", _sequence.Costs.still_possible)
        slow = clone(model).fit(X)
    assert_array_equal(fast.boundaries_, slow.boundaries_)
    assert_allclose(fast.evidence_, slow.evidence_, rtol=1e-10)
    assert firsts[-1] > 0, "something was pruned"


@pytest.mark.parametrize(("likelihood", "criterion"), [pair for pair in USABLE if pair[0] != "full"])
def test_compiled_code_agrees_with_pooled_statistics(likelihood, criterion):
    X, _ = planted(2, d=2, n_segments=3, sizes=(12, 20), shift=3)
    found = []
    for engine in ENGINES:
        with engine_context(engine):
            segmenters = [
                ModelComparisonSegmenter(likelihood, criterion, **number, n_permutations=19, random_state=0).fit(X)
                for number in ({"n_segments": None}, {"n_segments": 7}, {"level": 0.05})
            ]
            found.append((segmenters, segmenters[1].pvalues_, segmenters[2].intervals_))
    (pooled, *certainty), (compiled, *others) = found
    assert min(segmenter.n_segments_ for segmenter in pooled) > 1, "something was cut"
    assert_array_equal(certainty[0], others[0])
    assert_array_equal(certainty[1], others[1])
    for one, other in zip(pooled, compiled, strict=True):
        assert_array_equal(one.boundaries_, other.boundaries_)
        assert_allclose(one.evidence_, other.evidence_, rtol=1e-9)
        assert one.penalty_ == pytest.approx(other.penalty_, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("likelihood", [*GAUSSIANS, "squared_error"])
def test_a_constant_added_to_all_rows_changes_nothing(likelihood, engine):
    """Rows of mean 1e6 keep 10 of 16 digits, the criterion those of the rows."""
    X, _ = planted(4)
    with engine_context(engine):
        near, far = (ModelComparisonSegmenter(likelihood, random_state=0).fit(X + shift) for shift in (0, 1e6))
    assert_array_equal(near.boundaries_, far.boundaries_)
    assert_allclose(near.evidence_, far.evidence_, rtol=1e-8)


@pytest.mark.parametrize("likelihood", GAUSSIANS)
def test_segments_far_apart(likelihood):
    """Levels of a million in the sequence itself do not hide a change of variance."""
    rng = np.random.default_rng(0)
    parts = [1e6 + rng.normal(size=(40, 2)), -1e6 + rng.normal(size=(40, 2)), -1e6 + 9 * rng.normal(size=(40, 2))]
    with engine_context("numba"):
        model = ModelComparisonSegmenter(likelihood, n_segments=3, prior_strength=0).fit(np.concatenate(parts))
    assert_array_equal(model.boundaries_, [40, 80])


@pytest.mark.parametrize("likelihood", [*GAUSSIANS, "vmf", "squared_error"])
def test_reversal_mirrors_the_boundaries(likelihood):
    X, _ = planted(6)
    for n_segments in (None, 5):
        there, back = (
            ModelComparisonSegmenter(likelihood, n_segments=n_segments, random_state=0).fit(x) for x in (X, X[::-1])
        )
        if likelihood != "squared_error" or n_segments:
            assert_array_equal(len(X) - back.boundaries_[::-1], there.boundaries_)
        assert there.evidence_[0] == pytest.approx(back.evidence_[0], rel=1e-10)


def test_weights():
    """Twice the weight of all rows is twice the squared error; integer weights are repetition within segments."""
    x, _ = planted(0, n_segments=3, sizes=(5, 9))
    c = np.random.default_rng(1).integers(1, 4, len(x)).astype(float)
    model = ModelComparisonSegmenter("squared_error", n_segments=3)
    once, twice = (model.fit(Groups(x, np.arange(len(x) + 1), weights=f * c)).evidence_ for f in (1, 2))
    assert_allclose(2 * once, twice, rtol=1e-6)
    weighted = ModelComparisonSegmenter(n_segments=3, prior_strength=0).fit(Groups(x, np.arange(len(x) + 1), weights=c))
    repeated = ModelComparisonSegmenter(n_segments=3, prior_strength=0, min_size=4).fit(
        np.repeat(x, c.astype(int), axis=0)
    )
    assert weighted.evidence_[0] == pytest.approx(repeated.evidence_[0])


def test_planted_segments_are_found():
    """Most boundaries within two rows, and their number off by at most one on average."""
    hits, off = [], []
    for seed in range(10):
        X, truth = planted(seed)
        found = ModelComparisonSegmenter().fit(X).boundaries_
        hits += [np.abs(found - boundary).min() <= 2 for boundary in truth]
        off.append(abs(len(found) - len(truth)))
    assert np.mean(hits) >= 0.9
    assert np.mean(off) <= 1


def test_attributes():
    X, truth = planted(0)
    model = ModelComparisonSegmenter()
    labels = model.fit_predict(X)
    assert_array_equal(model.boundaries_, truth)
    assert_array_equal(labels, np.repeat(np.arange(6), np.diff([0, *truth, len(X)])))
    assert_array_equal(model.labels_, labels)
    assert model.n_segments_ == 6
    assert_allclose(model.segments_.mean, [part.mean(axis=0) for part in np.split(X, truth)])
    assert_allclose(model.segments_.n, np.bincount(labels))
    assert model.evidence_.shape == (6,)
    assert_array_equal(np.isnan(model.evidence_), [False, True, True, True, True, False])
    assert model.evidence_[5] < model.evidence_[0]
    assert model.level_ is None
    assert model.penalty_ == pytest.approx(2 * np.log(len(X)))
    assert model.embedding_ is None
    every = ModelComparisonSegmenter(n_segments=8).fit(X).evidence_
    assert every.shape == (8,)
    assert np.isfinite(every).all()
    assert every[5] == pytest.approx(model.evidence_[5])
    assert np.argmin(every) == 5


def test_max_segments_is_kept():
    X, truth = planted(0)
    model = ModelComparisonSegmenter(max_segments=4).fit(X)
    assert model.n_segments_ == 4
    assert model.evidence_.shape == (4,)
    assert np.isfinite(model.evidence_).all()
    assert set(model.boundaries_) <= set(truth)


@pytest.mark.parametrize("n_features", [1, 3, 12])
@pytest.mark.parametrize("likelihood", GAUSSIANS)
def test_noise_is_one_segment(likelihood, n_features):
    X = np.random.default_rng(0).normal(size=(120, n_features))
    for n_segments in (None, 1):
        model = ModelComparisonSegmenter(likelihood, n_segments=n_segments).fit(X)
        assert model.n_segments_ == 1
        assert_array_equal(model.boundaries_, [])
        assert_array_equal(model.labels_, 0)


def test_groups_in_order_are_embedded():
    rng = np.random.default_rng(0)
    centres = np.repeat([[3.0, 0, 0], [0, 3.0, 0], [0, 0, 3.0]], [9, 12, 8], axis=0)
    sentences = [centre + rng.normal(size=(rng.integers(3, 9), 3)) for centre in centres]
    model = ModelComparisonSegmenter(random_state=0).fit(sentences)
    assert_array_equal(model.boundaries_, [9, 21])
    assert model.embedding_.transform(sentences).shape[0] == 29
    points = GroupEmbedding(prior_strength=1.0, normalize=True).fit_transform(sentences)
    passed = ModelComparisonSegmenter("squared_error", block_size="growing", random_state=0).fit(points)
    assert_array_equal(passed.boundaries_, model.boundaries_)
    assert_allclose(passed.evidence_, model.evidence_, rtol=1e-6)
    same = ModelComparisonSegmenter("squared_error", n_segments=3).fit(sentences)
    assert_array_equal(same.boundaries_, [9, 21])
    assert same.n_features_in_ == 3


def test_a_likelihood_of_ones_own():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.exponential(1, (60, 2)), rng.exponential(6, (60, 2))])
    model = ModelComparisonSegmenter(Exponential(), prior_strength=0, min_size=5).fit(X)
    assert model.n_segments_ == 2
    assert abs(model.boundaries_[0] - 60) <= 3


def test_approximate_concentrations_are_pooled():
    X, _ = planted(0)
    with engine_context("numba"):
        model = ModelComparisonSegmenter(VonMisesFisher("banerjee"), n_segments=6).fit(X)
        exact = ModelComparisonSegmenter("vmf", n_segments=6).fit(X)
    assert model.evidence_[5] == pytest.approx(exact.evidence_[5], rel=0.05)


def test_bounded_memory(monkeypatch):
    """Blocks of any size give the same result."""
    X, truth = planted(0)
    for size in (1, 1000):
        monkeypatch.setattr(_sequence, "SEGMENTS", size)
        for engine in ENGINES:
            with engine_context(engine):
                assert_array_equal(ModelComparisonSegmenter().fit(X).boundaries_, truth)
                assert_array_equal(ModelComparisonSegmenter(n_segments=6).fit(X).boundaries_, truth)


@pytest.mark.parametrize("likelihood", ["diag", "full", "vmf", "squared_error"])
def test_explain_a_boundary(likelihood):
    X, _ = planted(0)
    model = ModelComparisonSegmenter(likelihood, n_segments=6).fit(X)
    explanation = model.explain(2)
    begin, middle, end = model.boundaries_[1:4]
    assert [len(v) for v in explanation.vectors] == [middle - begin, end - middle]
    assert explanation.labels[1][0] == f"row {middle}"
    parts = sum(v.sum() for v in explanation.vectors)
    assert parts + explanation.penalty + explanation.prior == pytest.approx(explanation.similarity)
    assert parts < 0
    two = ModelComparisonSegmenter(likelihood, n_segments=2).fit(X)
    assert two.explain(0).similarity == pytest.approx(two.evidence_[1] - two.evidence_[0]), "what the boundary gains"


def test_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    X, truth = planted(0)
    ax = ModelComparisonSegmenter().fit(X).plot()
    assert len(ax.lines) == 4 + len(truth)
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"feature {i}" for i in range(4)]
    _, other = plt.subplots()
    wide, _ = planted(0, d=9)
    wide[:, 3] = 1.0
    assert ModelComparisonSegmenter().fit(wide).plot(other) is other
    assert other.get_yticklabels()[5].get_text() == "component 5"
    plt.close("all")


def test_plot_needs_matplotlib(monkeypatch):
    X, _ = planted(0)
    model = ModelComparisonSegmenter().fit(X)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'plot needs the package matplotlib: pip install "sklearn-mcsg\[plot\]"'):
        model.plot()


def test_errors():
    X, _ = planted(0)
    segmenter = ModelComparisonSegmenter
    with pytest.raises(ValueError, match="too short: n_samples = 3, but two segments of at least min_size=2"):
        segmenter().fit(X[:3])
    with pytest.raises(ValueError, match="two segments of at least min_size=500 rows need 1000"):
        segmenter(min_size=500).fit(X)
    with pytest.raises(ValueError, match="n_segments=9 segments of at least min_size=3 rows need 27 rows"):
        segmenter(n_segments=9, min_size=3).fit(X[:20])
    with pytest.raises(ValueError, match="'n_segments' parameter"):
        segmenter(n_segments="many").fit(X)
    with pytest.raises(ValueError, match="at most 64 features, got 65"):
        segmenter("full").fit(np.zeros((10, 65)))
    with pytest.raises(ValueError, match="defines no log_evidence"):
        segmenter("vmf", "bayes").fit(X)
    with pytest.raises(ValueError, match="BayesFactor does not use: choose criterion='aic' or 'bic'"):
        segmenter(criterion="bayes", n_segments=3).fit(X).explain(0)
    with pytest.raises(ValueError, match="index into boundaries_, which has 2, got 2"):
        segmenter(n_segments=3).fit(X).explain(2)


@pytest.mark.parametrize(("likelihood", "criterion"), REFUSED)
def test_refused_criteria(likelihood, criterion):
    X, _ = planted(0)
    with pytest.raises(ValueError, match=r"TIC of \w+ needs all vectors of every segment: choose criterion='aic' or"):
        ModelComparisonSegmenter(likelihood, criterion).fit(X)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_segments", [None, 3])
@pytest.mark.parametrize("likelihood", ["diag", "full", "spherical"])
def test_equal_rows(likelihood, n_segments, engine):
    """Equal rows have an infinite likelihood without noise, and are an ordinary segment with it."""
    X = np.concatenate([np.zeros((6, 2)), np.random.default_rng(0).normal(size=(20, 2))])
    bare = ModelComparisonSegmenter(likelihood, n_segments=n_segments, reg_covar=0, prior_strength=0, min_size=4)
    with engine_context(engine):
        with pytest.raises(ValueError, match=r"infinite likelihood under \w+: .* Set reg_covar > 0"):
            bare.fit(X)
        noisy = ModelComparisonSegmenter(likelihood, n_segments=n_segments, prior_strength=0, min_size=4).fit(X)
    assert noisy.boundaries_[0] == 6


def test_too_large_numbers():
    X = 1e160 * np.random.default_rng(0).normal(size=(20, 2))
    for engine in ENGINES:
        for likelihood in ("diag", "squared_error"):
            with engine_context(engine), pytest.raises(ValueError, match="not a finite number"):
                ModelComparisonSegmenter(likelihood, prior_strength=0).fit(X)


def test_a_criterion_of_ones_own():
    """A penalty that may fall when rows are added does not allow pruning."""

    class Wavy(Criterion):
        def penalty(self, fit):
            return 8 + 4 * np.sin(fit.n)

    X, truth = planted(0)
    found = []
    for engine in ENGINES:
        with engine_context(engine):
            found.append(ModelComparisonSegmenter(criterion=Wavy()).fit(X))
    assert_array_equal(found[0].boundaries_, found[1].boundaries_)
    assert all(np.abs(found[0].boundaries_ - boundary).min() <= 2 for boundary in truth)


@pytest.mark.filterwarnings("ignore:Skipping check:UserWarning")
@parametrize_with_checks(
    [
        ModelComparisonSegmenter(),
        ModelComparisonSegmenter("full", "bayes"),
        ModelComparisonSegmenter("squared_error", random_state=0),
        ModelComparisonSegmenter("spherical", "aic", n_segments=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_true_is_not_a_number_of_permutations():
    with pytest.raises(ValueError, match=r"'n_permutations' parameter.*an int in the range \[1, inf\)\. Got True"):
        ModelComparisonSegmenter(n_permutations=True).fit(np.eye(9)[:, None])
