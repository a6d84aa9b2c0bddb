"""Boundaries that hold a level: critical penalties, p-values, intervals, blocks, and how often they are wrong."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from test_segmentation import ENGINES, brute_force, planted

from sklearn_mcsg import Groups, ModelComparisonSegmenter
from sklearn_mcsg.engine.dispatch import engine_context
from sklearn_mcsg.likelihoods import load_segment_kernels
from sklearn_mcsg.segmentation import _intervals, _null
from sklearn_mcsg.segmentation._null import critical_penalty
from sklearn_mcsg.segmentation._orders import chosen_blocks, random_order
from sklearn_mcsg.segmentation._sequence import best_partition, squared_errors

LIKELIHOODS = ("diag", "spherical", "full", "vmf", "trend", "squared_error")
N_RUNS = 120


def autoregressive(rng, n, d, r):
    rows = rng.normal(size=(n + 100, d))
    for i in range(1, len(rows)):
        rows[i] += r * rows[i - 1]
    return rows[100:]


def cut(X, likelihood="diag", seed=0, **parameters):
    parameters = {"level": 0.1, "n_permutations": 19, "random_state": seed, **parameters}
    return ModelComparisonSegmenter(likelihood, **parameters).fit(X)


def least_number(level, n_runs=N_RUNS):
    """A number of rejections that is not exceeded with probability .9999, if the level holds."""
    return binom.ppf(0.9999, n_runs, level)


@pytest.mark.parametrize("min_size", [1, 2, 3])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_critical_penalty_by_brute_force(likelihood, min_size):
    """The largest gain for each boundary, over all partitions."""
    X, _ = planted(2, d=2, n_segments=3, sizes=(3, 4))
    model = ModelComparisonSegmenter(likelihood, n_segments=1, min_size=min_size).fit(X)
    table, n = model._orders.costs.in_order(np.arange(len(X))), len(X)
    best = brute_force(lambda a, b: table[b - 1, a], n, min_size, range(1, n // min_size + 1))
    expected = max((best[1][0] - total) / (k - 1) for k, (total, _) in best.items() if k > 1)
    assert critical_penalty(table, min_size) == pytest.approx(expected, rel=1e-9)
    assert load_segment_kernels().critical_penalty(table, min_size) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_below_the_critical_penalty_there_are_boundaries(likelihood):
    X, _ = planted(1, shift=0.4)
    model = ModelComparisonSegmenter(likelihood, n_segments=1).fit(X)
    critical = critical_penalty(model._orders.costs.in_order(np.arange(len(X))), 2)
    for penalty, expected in ((critical * 0.999, True), (critical * 1.001, False)):
        boundaries, _ = best_partition(model._orders.costs.of(model._orders.rows, penalty), 2)
        assert (len(boundaries) > 0) == expected


def test_squared_errors_of_all_segments():
    rng = np.random.default_rng(0)
    X, c = 1e3 + rng.normal(size=(12, 3)), rng.uniform(0.5, 2, 12)
    rows = Groups(X, np.arange(13), weights=c)
    table = ModelComparisonSegmenter("squared_error", n_segments=1).fit(rows)._orders.costs.in_order(np.arange(12))
    for a in range(12):
        for b in range(a + 1, 13):
            mean = np.average(X[a:b], axis=0, weights=c[a:b])
            assert table[b - 1, a] == pytest.approx((c[a:b, None] * (X[a:b] - mean) ** 2).sum(), abs=1e-9)
    products, squares = (c[:, None] * X) @ (c[:, None] * X).T, c * np.square(X).sum(axis=1)
    assert_allclose(squared_errors(products, squares, c)[11, 0], table[11, 0], rtol=1e-6)


def test_squared_errors_need_weights():
    X, c = np.random.default_rng(0).normal(size=(30, 2)), np.ones(30)
    c[[4, 20]] = 0
    rows = Groups(X, np.arange(31), weights=c)
    with pytest.raises(ValueError, match="Row 4 has weight 0, which squared errors do not allow: leave it out"):
        cut(rows, "squared_error")
    assert cut(rows).n_segments_ == 1


def test_units_change_nothing():
    X, _ = planted(0, n_segments=3)
    one, small = (cut(scale * X, "squared_error") for scale in (1, 1e-12))
    assert_array_equal(one.boundaries_, small.boundaries_)
    assert_array_equal(one.intervals_, small.intervals_)


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_a_step_without_noise(scale):
    """Most neighbours are equal, so that their usual difference is 0."""
    X = scale * np.repeat([0.0, 1.0], 60)[:, None]
    model = cut(X, "squared_error", block_size=1)
    assert_array_equal(model.boundaries_, [60])


STATES = {
    "one step": np.repeat([0.0, 1.0], 300)[:, None],
    "there and back": np.repeat([0.0, 1.0, 0.0], 200)[:, None],
    "three levels": np.repeat([3.0, 9.0, 1.0], 60)[:, None],
    "one of four": np.eye(4)[np.repeat(np.arange(4), 60)],
}


@pytest.mark.parametrize("likelihood", ["diag", "squared_error"])
@pytest.mark.parametrize("X", STATES.values(), ids=STATES)
def test_changes_between_constant_states(X, likelihood):
    """The few steps are changes: they are no sign that rows depend on their neighbours."""
    model = cut(X, likelihood, level=0.05)
    assert_array_equal(model.boundaries_, np.flatnonzero((X[1:] != X[:-1]).any(axis=1)) + 1)
    assert model.block_size_ == 1


def test_segments_longer_than_a_piece(monkeypatch):
    monkeypatch.setattr(_null, "_MOST_ROWS", 20)
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[30:] += 4
    assert_array_equal(cut(X, "squared_error", min_size=25, n_permutations=39).boundaries_, [30])
    assert cut(X[[0, 59]], "squared_error", min_size=1).n_segments_ == 1


@pytest.mark.parametrize("likelihood", ["diag", "vmf", "squared_error"])
def test_pvalues_by_cutting_the_rows_in_random_order(likelihood):
    """The share of orders in which a penalty as large as the boundary's gain leaves boundaries."""
    X, _ = planted(0, n_segments=3, shift=0.7)
    model = cut(X, likelihood, n_segments=4, level=None, block_size=5, n_permutations=29)
    rng, edges = np.random.RandomState(model._orders.seed), [0, *model.boundaries_, len(X)]
    permuted = [X[random_order(len(X), 5, rng)] for _ in range(29)]
    for i, pvalue in enumerate(model.pvalues_):
        part = model._orders.costs.in_order(np.arange(len(X)))
        begin, middle, end = edges[i : i + 3]
        gain = part[end - 1, begin] - part[middle - 1, begin] - part[end - 1, middle]
        assert model.explain(i).similarity == pytest.approx(model.penalty_ - gain, rel=1e-6)
        count = 1
        gain = min(gain, critical_penalty(part, 2))
        for rows in permuted:
            table = (
                ModelComparisonSegmenter(likelihood, n_segments=1).fit(rows)._orders.costs.in_order(np.arange(len(X)))
            )
            count += critical_penalty(table, 2) >= gain
        assert pvalue == count / 30


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_boundaries_hold_the_level(likelihood):
    X, truth = planted(3, d=5, n_segments=4, sizes=(25, 45), shift=2)
    model = cut(X, likelihood, level=0.05, n_permutations=59)
    assert len(model.boundaries_) > 2
    assert (model.pvalues_ <= 0.05).all()
    assert model.level_ == 0.05
    assert model.penalty_ > 0
    strict = cut(X, likelihood, level=0.02, n_permutations=59)
    assert strict.n_segments_ <= model.n_segments_
    assert np.abs(truth[:, None] - model.boundaries_).min(axis=1).mean() < 1


@pytest.mark.parametrize("likelihood", ["diag", "spherical", "squared_error"])
@pytest.mark.parametrize("noise", ["normal", "t", "skewed"])
def test_noise_keeps_the_level(likelihood, noise):
    draw = {
        "normal": lambda rng: rng.normal(size=(40, 2)),
        "t": lambda rng: rng.standard_t(3, size=(40, 2)),
        "skewed": lambda rng: rng.exponential(size=(40, 2)) ** 2,
    }[noise]
    wrong = sum(cut(draw(np.random.default_rng(i)), likelihood, i).n_segments_ > 1 for i in range(N_RUNS))
    assert wrong <= least_number(0.1)


@pytest.mark.parametrize("likelihood", ["diag", "squared_error"])
def test_pieces_of_a_long_sequence_keep_the_level(likelihood, monkeypatch):
    monkeypatch.setattr(_null, "_MOST_ROWS", 25)
    wrong = [
        cut(np.random.default_rng(i).normal(size=(50, 2)), likelihood, i, block_size=1).n_segments_ > 1
        for i in range(N_RUNS)
    ]
    assert sum(wrong) <= least_number(0.1)
    X, truth = planted(0)
    found = cut(X, likelihood, level=0.1, n_permutations=199)
    assert np.abs(truth[:, None] - found.boundaries_).min(axis=1).max() <= 2
    assert (found.pvalues_ <= 0.1).all()


@pytest.mark.parametrize("likelihood", ["diag", "squared_error"])
def test_pvalues_of_noise_keep_every_level(likelihood):
    """Also of a given number of segments, and of rows with outliers: a boundary may gain more than the sequence."""
    least = []
    for i in range(N_RUNS):
        X = np.random.default_rng(i).standard_t(2, size=(40, 1))
        model = cut(X, likelihood, i, n_segments=3, level=None, min_size=1, block_size=1)
        least.append(model.pvalues_.min())
    for level in (0.05, 0.1, 0.2, 0.5):
        assert sum(p <= level + 1e-9 for p in least) <= least_number(level)


def test_critical_penalty_of_the_given_order():
    """A boundary gains 50, two gain 66 together."""
    model = ModelComparisonSegmenter("squared_error", n_segments=3, min_size=1).fit([[0.0], [10.0], [0.0]])
    assert model._orders.critical == pytest.approx(100 / 3)
    assert model.explain(0).similarity == pytest.approx(-50)
    for likelihood in LIKELIHOODS:
        X, _ = planted(3, n_segments=3)
        orders = ModelComparisonSegmenter(likelihood, n_segments=1).fit(X)._orders
        assert orders.critical == pytest.approx(critical_penalty(orders.costs.in_order(np.arange(len(X))), 2))


def test_groups_of_noise_keep_the_level():
    wrong = 0
    for i in range(60):
        rng = np.random.default_rng(i)
        model = cut([rng.normal(size=(rng.integers(3, 9), 3)) for _ in range(30)], seed=i)
        wrong += model.n_segments_ > 1
    assert wrong <= least_number(0.1, 60)


def test_autocorrelated_rows_are_moved_in_blocks():
    """Single rows in random order cut every such sequence; blocks do not."""
    sequences = [autoregressive(np.random.default_rng(i), 300, 2, 0.8) for i in range(25)]
    single, blocks = ([cut(X, seed=i, block_size=size) for i, X in enumerate(sequences)] for size in (1, "auto"))
    assert all(model.n_segments_ > 1 for model in single)
    assert sum(model.n_segments_ > 1 for model in blocks) <= least_number(0.1, 25)
    assert all(model.block_size_ > 20 for model in blocks)


@pytest.mark.parametrize("is_pooled", [True, False])
def test_chosen_blocks(is_pooled):
    rng = np.random.default_rng(0)
    for r, expected in ((0.5, 27), (0.8, 89)):
        size, share = chosen_blocks(autoregressive(rng, 20_000, 2, r), is_pooled)
        assert size == pytest.approx(expected, rel=0.3)
        assert share == pytest.approx(0.95, abs=0.005)
    assert chosen_blocks(rng.normal(size=(20_000, 2)), is_pooled)[0] <= 2
    assert chosen_blocks(np.ones((50, 2)), is_pooled) == (1, 1.0)
    size, share = chosen_blocks(np.arange(60.0)[:, None], is_pooled)
    assert (size, share) == (10, 0.5), "at least six blocks"
    changes = np.repeat(rng.normal(size=(20, 1)) * 2, 50, axis=0) + rng.normal(size=(1000, 1))
    assert chosen_blocks(changes, is_pooled)[0] <= 4, "changes of the mean are not taken for autocorrelation"


def test_one_autocorrelated_feature_is_enough():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(500, 3)), autoregressive(rng, 500, 1, 0.8)])
    assert chosen_blocks(X, is_pooled=False)[0] > 20


def test_random_order():
    rng = np.random.RandomState(0)
    for n, size in ((10, 1), (10, 3), (12, 4)):
        orders = [random_order(n, size, rng) for _ in range(50)]
        assert all((np.sort(order) == np.arange(n)).all() for order in orders)
        together = np.mean([((np.diff(order) - 1) % n == 0).mean() for order in orders])
        assert together >= (size - 1) / size - 0.1
    assert len({tuple(random_order(4, 1, rng)) for _ in range(500)}) == 24


def test_growing_blocks():
    """Blocks grow while segments are long; the result is that of blocks of the last size."""
    rng = np.random.default_rng(0)
    X = np.repeat(10 * np.eye(4, 3), 50, axis=0) + rng.normal(size=(200, 3))
    model = cut(X, "squared_error", block_size="growing", n_permutations=39)
    assert_array_equal(model.boundaries_, [50, 100, 150])
    assert model.block_size_ == 8, "segments of 50 rows have fewer than 8 blocks of it"
    short = np.repeat(rng.normal(size=(12, 3)) * 5, 6, axis=0) + rng.normal(size=(72, 3))
    assert cut(short, "squared_error", block_size="growing", n_permutations=39).block_size_ == 1
    same = cut([row[None] + [[0, 0, 0], [0, 0.1, 0]] for row in X], n_permutations=39)
    assert same.block_size_ == 8, "the default of groups"


def test_a_large_change_does_not_hide_a_small_one():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 50), rng.normal(2, 1, 50), rng.normal(60, 1, 50)])[:, None]
    assert_allclose(cut(X, "squared_error", level=0.05, n_permutations=59).boundaries_, [50, 100], atol=5)


@pytest.mark.parametrize("likelihood", ["diag", "squared_error"])
def test_interval_by_trying_every_row(likelihood):
    """The rows between the first and the last that random order on both sides does not reject."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(14, 2)), rng.normal(1.5, 1, size=(14, 2))])
    model = cut(X, likelihood, level=0.1, n_permutations=99, block_size=1)
    assert model.n_segments_ == 2

    def fitted(rows):
        return ModelComparisonSegmenter(likelihood, n_segments=1).fit(rows)._orders.costs

    def losses(rows):
        table = fitted(rows).in_order(np.arange(len(rows)))
        totals = table[1:-2, 0] + table[-1, 2:-1]
        return totals - totals.min()

    rng, inside, costs = np.random.default_rng(0), [], fitted(X)
    for place, loss in enumerate(losses(X), start=2):
        orders = np.array(
            [np.concatenate([rng.permutation(place), place + rng.permutation(28 - place)]) for _ in range(99)]
        )
        totals = costs.cuts(orders, 2)
        found = totals - totals.min(axis=1, keepdims=True)
        assert_allclose(found[0], losses(X[orders[0]]), atol=1e-9)
        if 1 + (found[:, place - 2] >= loss - 1e-9).sum() > 0.1 * 100:
            inside.append(place)
    ((first, last),) = model.intervals_
    assert abs(first - min(inside)) <= 2
    assert abs(last - max(inside)) <= 2
    assert first <= model.boundaries_[0] <= last


def test_intervals_hold_the_true_places():
    hits = []
    for seed in range(12):
        X, truth = planted(seed, d=3, n_segments=4)
        model = cut(X, seed=seed, level=0.1, n_permutations=39)
        for (first, last), place in zip(model.intervals_, model.boundaries_, strict=True):
            hits.append(first <= truth[np.abs(truth - place).argmin()] <= last)
    assert len(hits) > 25
    assert len(hits) - sum(hits) <= least_number(0.1, len(hits))


def test_intervals_may_be_wider_than_the_rows_looked_at_first(monkeypatch):
    """A weak change far from the ends of its segments may be many rows away from where it was found."""
    monkeypatch.setattr(_intervals, "_NEAR", 12)
    widths, held = [], 0
    for seed in range(12):
        X = np.random.default_rng(seed).normal(np.repeat([0.0, 0.6], 200)[:, None])
        model = cut(X, "squared_error", seed=seed, level=0.1, n_permutations=59, block_size=1)
        if model.n_segments_ == 2:
            ((first, last),) = model.intervals_
            widths.append(last - first)
            held += first <= 200 <= last
    assert len(widths) >= 6
    assert max(widths) > 2 * 12
    assert len(widths) - held <= least_number(0.1, len(widths))


def test_intervals_are_kept_and_pickled():
    X, _ = planted(0, n_segments=3)
    model = cut(X)
    assert model.intervals_ is model.intervals_
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.intervals_, model.intervals_)
    assert_array_equal(again.pvalues_, model.pvalues_)
    nothing = cut(np.random.default_rng(0).normal(size=(30, 2)))
    assert nothing.intervals_.shape == (0, 2)
    assert nothing.pvalues_.shape == (0,)


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_rows_are_not_cut(engine):
    with engine_context(engine):
        for likelihood in ("diag", "squared_error"):
            model = cut(np.ones((30, 2)), likelihood)
            assert model.n_segments_ == 1
            assert model.block_size_ == 1


def test_random_state():
    X, _ = planted(0, shift=0.5)
    first, second, other = (cut(X, seed=seed).penalty_ for seed in (0, 0, 1))
    assert first == second != other
    drawn = ModelComparisonSegmenter(random_state=np.random.RandomState(0)).fit(X)
    assert_array_equal(drawn.pvalues_, drawn.pvalues_)


def test_what_changed():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal([0, 3, 0], [1, 1, 2.5], size=(60, 3))])
    model = cut(X)
    assert_allclose(model.boundaries_, [60], atol=1)
    place = model.boundaries_[0]
    explanation = model.explain(0)
    assert [change.name for change in explanation.changes] == ["feature 1", "feature 2", "feature 0"]
    change, gain = explanation.changes[0], 0.0
    for part, sign in ((X, 1), (X[:place], -1), (X[place:], -1)):
        gain += sign * len(part) * np.log(part[:, 1].var() + 1e-6)
    assert change.gain == pytest.approx(gain)
    assert_allclose(change.means, [X[:place, 1].mean(), X[place:, 1].mean()])
    assert_allclose(change.deviations, [X[:place, 1].std(), X[place:, 1].std()])
    assert "changed: feature 1: mean" in repr(explanation)
    pandas = pytest.importorskip("pandas")
    named = cut(pandas.DataFrame(X, columns=["a", "b", "c"]))
    assert named.explain(0).changes[0].name == "b"
    constant = cut(np.column_stack([X, np.ones(120)])).explain(0)
    assert constant.changes[-1].gain == 0
    sentences = [row[None] + rng.normal(size=(4, 3)) for row in X]
    assert cut(sentences).explain(0).changes == [], "components of an embedding have no names"


def test_plot_shows_intervals_and_pvalues():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    X, truth = planted(0)
    ax = cut(X).plot()
    assert len(ax.lines) == 4 + len(truth)
    assert [text.get_text() for text in ax.texts] == ["p = 0.05"] * len(truth)
    plt.close("all")


def test_errors():
    X, _ = planted(0)
    with pytest.raises(ValueError, match=r"level=0\.05 finds the number of segments, and n_segments=3 gives it: pass"):
        ModelComparisonSegmenter(level=0.05, n_segments=3).fit(X)
    for level in (0, 1, -0.1, 5, "small"):
        with pytest.raises(ValueError, match="The 'level' parameter"):
            ModelComparisonSegmenter(level=level).fit(X)
    with pytest.raises(
        ValueError, match=r"n_permutations=18 cannot show a p-value of 0\.05 in a sequence of \d+ rows: .* 19"
    ):
        ModelComparisonSegmenter(level=0.05, n_permutations=18).fit(X)
    ModelComparisonSegmenter(level=0.05, n_permutations=19).fit(X)
    for level in (1e-300, 5e-324):  # whose number of permutations is not a number of double precision
        with pytest.raises(ValueError, match=rf"cannot show a p-value of {level} in .* at least 9{{15}}\."):
            ModelComparisonSegmenter(level=level).fit(X)
    with pytest.raises(ValueError, match=r"of 0\.05 in a sequence of 2000 rows: it takes at least 39\."):
        ModelComparisonSegmenter(level=0.05, n_permutations=38).fit(np.zeros((2000, 1)))
    with pytest.raises(
        ValueError, match="block_size=50 divides 100 rows into fewer than 6 blocks, .* choose at most 16"
    ):
        ModelComparisonSegmenter(level=0.05, block_size=50).fit(X[:100])
    with pytest.raises(ValueError, match="'block_size' parameter"):
        ModelComparisonSegmenter(block_size="large").fit(X)
    with pytest.raises(ValueError, match="block_size=50 divides 100 rows into fewer than 6 blocks"):
        ModelComparisonSegmenter(n_segments=2, block_size=50).fit(X[:100])
    long = ModelComparisonSegmenter(n_segments=2, n_permutations=38).fit(np.arange(2000.0)[:, None])
    with pytest.warns(UserWarning, match=r"38 cannot show a p-value of 0\.05 in a sequence of 2000 rows: it takes at"):
        assert long.pvalues_.shape == (1,)
    with pytest.raises(AttributeError, match=r"Intervals need a level: pass level=0\.05"):
        _ = ModelComparisonSegmenter(n_segments=3).fit(X).intervals_
