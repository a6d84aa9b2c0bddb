"""Laws that hold for every likelihood in the registry."""

import numpy as np
import oracle
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import gammaln

from sklearn_mcsg import (
    LIKELIHOODS,
    DiagonalGaussian,
    FullGaussian,
    Groups,
    ModelComparisonSimilarity,
    NormalGamma,
    NormalGammaTrend,
    NormalWishart,
    SphericalGaussian,
    TrendGaussian,
    VonMisesFisher,
)
from sklearn_mcsg.engine.dispatch import choose_engine, engine_context
from sklearn_mcsg.engine.results import DOUBLE
from sklearn_mcsg.groups.blocks import rows_of
from sklearn_mcsg.groups.regroup import balanced
from sklearn_mcsg.likelihoods import Fit

EPS = np.finfo(float).eps
CONJUGATE = [name for name, likelihood in LIKELIHOODS.items() if likelihood().defines("log_evidence")]
every_likelihood = pytest.mark.parametrize("name", LIKELIHOODS)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def statistics_of(name, groups, order=4, reg_covar=1e-6):
    likelihood = LIKELIHOODS[name]() if isinstance(name, str) else name
    return likelihood.statistics(groups, reg_covar=reg_covar, order=order)


def fit(name, groups, order=4, reg_covar=1e-6):
    likelihood = LIKELIHOODS[name]() if isinstance(name, str) else name
    return Fit(likelihood, statistics_of(name, groups, order, reg_covar))


def united(*collections):
    """The unions, row by row, by concatenating vectors, which keep their places."""
    arrays = [np.concatenate(rows) for rows in zip(*collections, strict=True)]
    weights = [
        np.concatenate([g.weights[rows_of(g, i)] if g.weights is not None else np.ones(len(g[i])) for g in collections])
        for i in range(len(arrays))
    ]
    positions = [np.concatenate([g.row_positions[rows_of(g, i)] for g in collections]) for i in range(len(arrays))]
    return Groups.from_list(arrays, weights=weights, positions=positions)


def assert_same_fit(a, b, rtol=1e-10):
    """Equal counts, likelihoods and penalties: all that a criterion sees."""
    assert_allclose(np.ravel(a.n), b.n, rtol=rtol)
    assert_allclose(np.ravel(a.log_likelihood), b.log_likelihood, rtol=rtol, atol=rtol * a.n.max() * a.n_parameters)
    assert_allclose(np.ravel(a.tic_penalty), b.tic_penalty, rtol=10 * rtol)


@every_likelihood
@weighted_or_not
def test_pooling_is_concatenation(name, weighted, make_groups):
    a, b, c = (make_groups(12, 4, (1, 9), weighted=weighted, seed=s) for s in range(3))
    A, B, C = (statistics_of(name, g) for g in (a, b, c))
    likelihood = LIKELIHOODS[name]()
    pool = likelihood.pool
    truth = fit(name, united(a, b))
    assert_same_fit(Fit(likelihood, pool(A, B)), truth)
    assert_same_fit(Fit(likelihood, pool(B, A)), truth)
    three = fit(name, united(a, b, c))
    assert_same_fit(Fit(likelihood, pool(pool(A, B), C)), three)
    assert_same_fit(Fit(likelihood, pool(A, pool(C, B))), three)


@every_likelihood
@weighted_or_not
def test_unpooling_undoes_pooling(name, weighted, make_groups):
    """Rounding errors of the union are measured by the variance that is left, which for single vectors is the noise."""
    a, b, c = (make_groups(12, 4, (1, 9), weighted=weighted, seed=s) for s in range(3))
    A, B, C = (statistics_of(name, g, reg_covar=0.05) for g in (a, b, c))
    likelihood = LIKELIHOODS[name]()
    pool, unpool = likelihood.pool, likelihood.unpool

    def assert_fits(statistics, groups):
        assert_same_fit(Fit(likelihood, statistics), fit(name, groups, reg_covar=0.05), rtol=1e-9)

    assert_fits(unpool(pool(pool(A, C), B), C), united(a, b))
    assert_fits(pool(unpool(pool(A, C), C), B), united(a, b))
    assert_fits(unpool(pool(A, B), B), a)
    nothing = unpool(pool(A, B).consolidated(), pool(B, A))
    assert not nothing.n.any()
    assert not nothing.mean.any()
    assert_fits(pool(nothing, A), a)


@every_likelihood
def test_compact_statistics_do_not_grow(name, make_groups):
    groups = [make_groups(5, 3, (1, 6), weighted=True, seed=s) for s in range(6)]
    likelihood = LIKELIHOODS[name]()
    pooled = statistics_of(name, groups[0])
    for other in groups[1:]:
        pooled = likelihood.pool(pooled, statistics_of(name, other)).consolidated()
    assert_same_fit(Fit(likelihood, pooled), fit(name, united(*groups)))
    assert not pooled.keeps_vectors or len(pooled.kept) == 1
    if name == "full":
        assert [factor.sizes.max() for factor in pooled.factors] == [3]


@every_likelihood
@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_every_engine_fits_all_pairs_in_order(name, engine, make_groups):
    a, b = make_groups(3, 4, seed=1), make_groups(2, 4, seed=2)
    A, B = statistics_of(name, a), statistics_of(name, b)
    with engine_context(engine):
        fitted = choose_engine(LIKELIHOODS[name](), A, B, DOUBLE).fit(A, B)
    assert fitted.n.shape == fitted.log_likelihood.shape == fitted.tic_penalty.shape == (3, 2)
    assert_same_fit(fitted, fit(name, united(a[[0, 0, 1, 1, 2, 2]], b[[0, 1, 0, 1, 0, 1]])))


@every_likelihood
@weighted_or_not
def test_a_shared_model_never_explains_more(name, weighted, make_groups):
    a, b = (make_groups(200, 3, (1, 6), weighted=weighted, spread=0.1, seed=s) for s in range(2))
    apart = [fit(name, g, order=2) for g in (a, b)]
    shared = Fit(LIKELIHOODS[name](), LIKELIHOODS[name]().pool(*(statistics_of(name, g, order=2) for g in (a, b))))
    ratio = shared.log_likelihood - apart[0].log_likelihood - apart[1].log_likelihood
    rounding = 100 * EPS * (np.abs(apart[0].log_likelihood) + np.abs(apart[1].log_likelihood))
    assert (ratio <= rounding).all()
    assert (ratio < 0).any()


@every_likelihood
def test_integer_weights_are_repetition(name, make_groups):
    groups = make_groups(10, 3, (2, 6))
    counts = np.random.default_rng(1).integers(0, 4, size=groups.n_rows)
    counts[groups.offsets[:-1]] += 1
    each = groups.split(counts)
    repeated = Groups.from_list(
        [np.repeat(x, n, axis=0) for x, n in zip(groups, each, strict=True)],
        positions=[np.repeat(p, n) for p, n in zip(groups.split(groups.row_positions), each, strict=True)],
    )
    assert_same_fit(fit(name, Groups(groups.vectors, groups.offsets, weights=counts)), fit(name, repeated))


@every_likelihood
def test_zero_weights_vanish_exactly(name, make_groups):
    groups = make_groups(10, 3, (2, 6))
    weights = np.ones(groups.n_rows)
    weights[groups.offsets[:-1]] = 0
    without = Groups.from_list([x[1:] for x in groups])
    vanished, truth = fit(name, Groups(groups.vectors, groups.offsets, weights=weights)), fit(name, without)
    assert_same_fit(vanished, truth, rtol=1e-13)


@every_likelihood
def test_order_of_vectors_does_not_matter(name, make_groups):
    """Where it does, places go with the vectors."""
    groups = make_groups(10, 3, (1, 9))
    rng = np.random.default_rng(0)
    orders = [rng.permutation(n) for n in groups.sizes]
    places = groups.split(groups.row_positions)
    arrays = [x[order] for x, order in zip(groups, orders, strict=True)]
    positions = [p[order] for p, order in zip(places, orders, strict=True)]
    mixed = Groups.from_list(arrays, positions=positions)
    assert_same_fit(fit(name, groups), fit(name, mixed))
    same = np.allclose(fit(name, Groups.from_list(arrays)).log_likelihood, fit(name, groups).log_likelihood)
    assert same != LIKELIHOODS[name].uses_positions


@pytest.mark.parametrize("name", ["spherical", "full", "vmf"])
def test_rotation_does_not_matter(name, make_groups):
    groups = make_groups(10, 4, (1, 9))
    rotation = stats.ortho_group.rvs(4, random_state=0)
    assert_same_fit(fit(name, groups), fit(name, Groups(groups.vectors @ rotation, groups.offsets)))


def test_axis_scales_only_shift_a_diagonal_model(make_groups):
    groups = make_groups(10, 4, (2, 9))
    scales = np.array([1e-3, 1, 7, 1e4])
    plain = fit("diag", groups, reg_covar=0.0)
    scaled = fit("diag", Groups(groups.vectors * scales, groups.offsets), reg_covar=0.0)
    assert_allclose(scaled.log_likelihood, plain.log_likelihood - plain.n * np.log(scales).sum(), rtol=1e-12)
    assert_allclose(scaled.tic_penalty, plain.tic_penalty, rtol=1e-12)


def true_sample(name, n, d, rng):
    if name == "vmf":
        return stats.vonmises_fisher(np.eye(d)[0], 5).rvs(n, random_state=rng)
    own = np.diag(np.arange(1.0, d + 1))
    mixing = {"spherical": 2 * np.eye(d), "diag": own, "full": rng.normal(size=(d, d)), "trend": own}[name]
    line = np.outer(np.linspace(-1, 1, n), np.arange(d)) if name == "trend" else 0
    return rng.normal(size=(n, d)) @ mixing + 1 + line


@every_likelihood
def test_tic_penalty_counts_parameters_when_the_model_is_true(name):
    d, n, draws = 3, 20_000, 20
    rng = np.random.default_rng(0)
    groups = Groups.from_list([true_sample(name, n, d, rng) for _ in range(draws)])
    penalty = fit(name, groups).tic_penalty
    k = LIKELIHOODS[name]().n_parameters(d)
    error = penalty.std(ddof=1) / np.sqrt(draws)
    assert error < 0.02 * k
    assert abs(penalty.mean() - k) < 4 * error


@every_likelihood
def test_one_vector_pays_exactly_for_its_parameters(name):
    """A group of one vector is pure noise of the model's own form."""
    penalty = fit(name, Groups.from_list([np.full((1, 5), 0.3)])).tic_penalty
    assert_allclose(penalty, LIKELIHOODS[name]().n_parameters(5), rtol=1e-9)


@every_likelihood
def test_pseudo_group_is_the_corpus_in_small(name, make_groups):
    """With the corpus' own weight the pseudo-vectors have its likelihood; with any other, in proportion."""
    corpus = make_groups(30, 3, (1, 6), weighted=True)
    statistics = statistics_of(name, corpus)
    truth = fit(name, corpus.pooled())
    likelihood = LIKELIHOODS[name]()
    for strength in (truth.n[0], 0.5):
        pseudo = Fit(likelihood, likelihood.pseudo_group(statistics, strength))
        assert_allclose(pseudo.log_likelihood, truth.log_likelihood * strength / truth.n, rtol=1e-11)
        assert_allclose(pseudo.tic_penalty, likelihood.n_parameters(3), rtol=1e-9)


def test_full_covariance_compresses_large_groups(make_groups):
    """Groups with more vectors than features keep a triangular factor; the fit is that of all vectors."""
    groups = make_groups(6, 3, (2, 40), weighted=True)
    fitted = fit("full", groups)
    assert statistics_of("full", groups).factors[0].sizes.max() == 3
    for i, x in enumerate(groups):
        c = groups.weights[rows_of(groups, i)]
        covariance = np.cov(x.T, aweights=c, bias=True) + 1e-6 * np.eye(3)
        truth = -0.5 * c.sum() * (3 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + 3)
        assert_allclose(fitted.log_likelihood[i], truth, rtol=1e-10)


def test_banerjee_concentration_by_name(make_groups):
    groups = make_groups(5, 6, (2, 9))
    exact, approximate = fit(VonMisesFisher(), groups), fit(VonMisesFisher("banerjee"), groups)
    assert (approximate.log_likelihood < exact.log_likelihood).all()
    assert_allclose(approximate.log_likelihood, exact.log_likelihood, atol=0.5)
    with pytest.raises(ValueError, match=r"concentration must be one of \['banerjee', 'exact'\], got 'newton'"):
        fit(VonMisesFisher("newton"), groups)


@pytest.mark.parametrize("name", [name for name, kind in LIKELIHOODS.items() if kind().defines("balance")])
@weighted_or_not
def test_balancing_statistics_is_balancing_weights(name, weighted, make_groups):
    groups = Groups.concatenate([make_groups(12, 4, (1, 9), weighted=weighted), Groups(np.empty((0, 4)), [0, 0])])
    found = LIKELIHOODS[name]().balance(statistics_of(name, groups, order=2))
    truth = statistics_of(name, balanced(groups), order=2)
    for name, expected in vars(truth).items():
        if isinstance(expected, np.ndarray):
            assert_allclose(getattr(found, name), expected, rtol=1e-12, atol=1e-14, err_msg=name)


# Places ---------------------------------------------------------------------------------------------------------------


def test_a_line_is_that_of_least_squares(make_groups):
    groups = make_groups(10, 3, (3, 9), weighted=True)
    statistics = statistics_of("trend", groups)
    parts = zip(groups, groups.split(groups.weights), groups.split(groups.row_positions), strict=True)
    for i, (x, c, p) in enumerate(parts):
        slope, value = np.polyfit(p, x, 1, w=np.sqrt(c))
        assert_allclose(statistics.slope[i], slope, rtol=1e-10)
        assert_allclose(statistics.at(np.zeros(10))[i], value, rtol=1e-10)


def test_a_line_is_a_mean_where_places_do_not_vary(make_groups):
    """The likelihood is that of the diagonal model; a group of one vector has one place, whatever it is."""
    a, b = make_groups(20, 3, (1, 9), seed=1), make_groups(20, 3, (1, 9), seed=2)
    level = Groups(a.vectors, a.offsets, positions=np.repeat(np.linspace(-1, 1, 20), a.sizes))
    assert_allclose(fit("trend", level).log_likelihood, fit("diag", a).log_likelihood, rtol=1e-13)
    assert not statistics_of("trend", level).slope.any()
    zeros = [Groups(g.vectors, g.offsets, positions=np.zeros(g.n_rows)) for g in (a, b)]
    similarity = ModelComparisonSimilarity("diag", penalty_scale=0).pairwise(a, b)
    for engine in ("numpy", "numba"):
        with engine_context(engine):
            lines = ModelComparisonSimilarity("trend", penalty_scale=0).pairwise(*zeros)
        assert_allclose(lines, similarity, rtol=1e-10, atol=1e-10)


def test_lines_of_many_pairs_in_arrays_of_any_library(make_groups):
    """Places that do not vary beside others that do; NumPy's arrays are of a library too."""
    groups = make_groups(60, 5, (1, 7), weighted=True)
    positions = np.random.default_rng(0).uniform(-1, 1, groups.n_rows)
    positions[: groups.offsets[20]] = 0.25
    likelihood = TrendGaussian()
    statistics = statistics_of(likelihood, Groups(groups.rows(), groups.offsets, positions=positions), order=2)
    i, j = np.divmod(np.arange(30 * 60), 60)
    truth = likelihood.log_likelihood(likelihood.pool(statistics[i], statistics[j])).reshape(30, 60)
    found = likelihood.log_likelihood(likelihood.array_unions(statistics[:30], statistics))
    assert_allclose(found, truth, rtol=1e-11, atol=1e-11 * np.abs(truth).max())


def test_a_line_goes_through_two_vectors():
    """The noise alone is left, of one group and of two groups of one vector."""
    x = np.array([[0.0, 5.0], [1e3, -5.0]])
    two = fit("trend", Groups(x, [0, 2]))
    noise = -0.5 * 2 * 2 * (np.log(2 * np.pi * 1e-6) + 1)
    assert_allclose(two.log_likelihood, noise, rtol=1e-12)
    assert_allclose(two.tic_penalty, 6, rtol=1e-9)
    single = Groups(x, [0, 1, 2], positions=[-1, 0.5])
    for engine in ("numpy", "numba"):
        with engine_context(engine):
            matrix = ModelComparisonSimilarity("trend", penalty_scale=0).pairwise(single)
        assert_allclose(matrix, 0, atol=1e-9)


def test_stretched_and_moved_places_change_nothing(make_groups):
    groups = make_groups(10, 3, (1, 9), weighted=True)
    moved = Groups(groups.vectors, groups.offsets, weights=groups.weights, positions=0.3 + groups.row_positions / 3)
    assert_same_fit(fit("trend", groups), fit("trend", moved))


def test_large_groups_are_read_in_pieces(make_groups):
    groups = make_groups(3, 4, (400, 500), weighted=True)
    truth = fit("trend", groups)
    with sklearn.config_context(working_memory=0.01):
        assert_same_fit(fit("trend", groups), truth)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-11), (np.float32, 2e-5)])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_lines_of_many_pairs_by_compiled_code(dtype, rtol, scale, make_groups):
    """More groups than a tile, places that do not vary beside others that do, and groups on both sides of them."""
    groups = make_groups(300, 19, (1, 7), weighted=True, scale=scale)
    positions = np.random.default_rng(0).uniform(-1, 1, groups.n_rows)
    positions[: groups.offsets[40]] = 0.25
    placed = Groups(groups.vectors, groups.offsets, weights=groups.weights, positions=positions)
    likelihood = TrendGaussian()
    statistics = statistics_of(likelihood, placed, order=2, reg_covar=1e-6 * scale**2)
    unions = likelihood.unions(likelihood, statistics[:37], statistics, np.dtype(dtype))
    i, j = np.divmod(np.arange(37 * 300), 300)
    truth = likelihood.log_likelihood(likelihood.pool(statistics[i], statistics[j])).reshape(37, 300)
    assert_allclose(unions.compute("log_likelihood"), truth, rtol=rtol, atol=rtol * np.abs(truth).max())


# Evidence -----------------------------------------------------------------------------------------------------------

PRIORS = {
    "diag": DiagonalGaussian(NormalGamma(mean=np.array([0.3, -1.0]), kappa=0.7, alpha=2.5, beta=np.array([1.5, 0.4]))),
    "spherical": SphericalGaussian(NormalGamma(mean=np.array([0.3, -1.0]), kappa=0.7, alpha=2.5, beta=1.5)),
    "full": FullGaussian(
        NormalWishart(mean=np.array([0.3, -1.0]), kappa=0.7, dof=3.5, scatter=np.array([[1.5, 0.4], [0.4, 0.9]]))
    ),
    "trend": TrendGaussian(
        NormalGammaTrend(np.array([0.3, -1.0]), 0.7, 2.5, np.array([1.5, 0.4]), np.array([-0.5, 2.0]), 0.3)
    ),
}


@pytest.mark.parametrize("name", CONJUGATE)
@pytest.mark.parametrize("weight", [1, 0.4])
def test_evidence_by_quadrature_in_one_dimension(name, weight):
    x, mean, kappa, alpha, beta = np.array([0.3, 1.1, -0.4]), 0.2, 0.7, 2.5, 1.5
    prior = NormalGamma(mean, kappa, alpha, beta)
    if name == "full":
        prior = NormalWishart(mean, kappa, 2 * alpha, np.array([[2 * beta]]))
    if name == "trend":
        prior = NormalGammaTrend(mean, kappa, alpha, beta, slope=1.0, kappa_slope=0.5)
    likelihood = LIKELIHOODS[name](prior)

    # the trapezoidal rule converges exponentially on smooth integrands that fall off on both sides
    log_precision = np.linspace(-25, 6, 3001)[:, None]
    precision = np.exp(log_precision)
    mu = mean + np.linspace(-12, 12, 1001) / np.sqrt(kappa * precision)
    log = weight * sum(stats.norm.logpdf(v, mu, precision**-0.5) for v in x)
    log += stats.norm.logpdf(mu, mean, (kappa * precision) ** -0.5)
    log += stats.gamma.logpdf(precision, alpha, scale=1 / beta) + log_precision
    inner = integrate.trapezoid(np.exp(log), mu, axis=1)
    evidence = integrate.trapezoid(inner, log_precision[:, 0])
    groups = Groups(x[:, None], [0, 3], weights=[weight] * 3, positions=[0] * 3)  # where a slope has no effect
    assert_allclose(fit(likelihood, groups).log_evidence, np.log(evidence), rtol=1e-10)


def predictive(name, prior, seen, x):
    """Log density of the next vector: a Student t."""
    n, d = len(seen), len(x)
    kappa = prior.kappa + n
    centre = (prior.kappa * prior.mean + seen.sum(axis=0)) / kappa
    scatter = sum((np.outer(v - centre, v - centre) for v in seen), np.zeros((d, d)))
    scatter += prior.kappa * np.outer(prior.mean - centre, prior.mean - centre)
    grow = (kappa + 1) / kappa
    if name == "trend":
        return predictive_of_lines(prior, seen, x)
    if name == "full":
        dof = prior.dof + n - d + 1
        return stats.multivariate_t.logpdf(x, centre, (prior.scatter + scatter) * grow / dof, dof)
    if name == "spherical":
        alpha = prior.alpha + n * d / 2
        scale = (prior.beta + np.trace(scatter) / 2) * grow / alpha
        return stats.multivariate_t.logpdf(x, centre, scale * np.eye(d), 2 * alpha)
    alpha = prior.alpha + n / 2
    scale = (prior.beta + np.diag(scatter) / 2) * grow / alpha
    return stats.t.logpdf(x, 2 * alpha, centre, np.sqrt(scale)).sum()


def predictive_of_lines(prior, seen, x):
    """The same for vectors at places of `PLACES`: a Student t around the posterior line."""
    design = np.column_stack([np.ones(6), PLACES])
    before, now = design[: len(seen)], design[len(seen)]
    precision0 = np.diag([prior.kappa, prior.kappa_slope])
    precision = precision0 + before.T @ before
    line0 = np.array([prior.mean, prior.slope])
    line = np.linalg.solve(precision, precision0 @ line0 + before.T @ seen)
    square = ((seen - before @ line) ** 2).sum(axis=0) + np.diag((line - line0).T @ precision0 @ (line - line0))
    alpha = prior.alpha + len(seen) / 2
    scale = (prior.beta + square / 2) / alpha * (1 + now @ np.linalg.solve(precision, now))
    return stats.t.logpdf(x, 2 * alpha, now @ line, np.sqrt(scale)).sum()


PLACES = np.array([0.1, -0.9, 0.4, 0.4, 1.0, -0.2])


@pytest.mark.parametrize("name", CONJUGATE)
def test_evidence_is_the_product_of_predictions(name):
    x = np.random.default_rng(3).normal(size=(6, 2))
    likelihood = PRIORS[name]
    truth = sum(predictive(name, likelihood.prior, x[:i], x[i]) for i in range(6))
    assert_allclose(fit(likelihood, Groups(x, [0, 6], positions=PLACES)).log_evidence, truth, rtol=1e-11)


@pytest.mark.parametrize("name", CONJUGATE)
def test_learnt_prior_finds_the_generating_one(name):
    """Groups drawn from the prior predictive give back its parameters."""
    rng = np.random.default_rng(5)
    d, n_groups, kappa, alpha, beta = 3, 4000, 0.5, 6.0, 10.0
    arrays = []
    for _ in range(n_groups):
        shared = rng.gamma(alpha, 1 / beta)
        precision = rng.gamma(alpha, 1 / beta, size=d) if name in ("diag", "trend") else np.full(d, shared)
        mean = 2 + rng.normal(size=d) / np.sqrt(kappa * precision)
        arrays.append(mean + rng.normal(size=(rng.integers(1, 9), d)) / np.sqrt(precision))
        if name == "trend":
            slope = 3 + rng.normal(size=d) / np.sqrt(2 * precision)
            arrays[-1] += np.outer(Groups(arrays[-1], [0, len(arrays[-1])]).row_positions, slope)
    prior = LIKELIHOODS[name]().learn_prior(statistics_of(name, Groups.from_list(arrays)))
    assert_allclose(prior.mean, 2, atol=0.2)
    assert_allclose(prior.kappa, kappa, rtol=0.1)
    shape = (prior.dof - d + 1) / 2 if name == "full" else prior.alpha
    scale = np.diag(prior.scatter) / 2 if name == "full" else prior.beta
    assert_allclose(shape, alpha, rtol=0.25)
    assert_allclose(scale / (shape - 1), beta / (alpha - 1), rtol=0.1)
    if name == "trend":
        assert_allclose(prior.slope, 3, atol=0.1)
        assert_allclose(prior.kappa_slope, 2, rtol=0.1)


@pytest.mark.parametrize("name", CONJUGATE)
def test_learnt_prior_of_single_vectors_is_proper(name, make_groups):
    groups = make_groups(20, 3, (1, 2))
    likelihood = LIKELIHOODS[name]()
    likelihood.prior = likelihood.learn_prior(statistics_of(name, groups))
    assert np.isfinite(fit(likelihood, groups).log_evidence).all()


@pytest.mark.parametrize("name", CONJUGATE)
def test_learnt_prior_is_continuous_in_the_weights(name, make_groups):
    """Weights that sum to 1 in each group, a little less or a little more."""
    groups = make_groups(20, 3, (2, 6))
    priors = []
    for total in (1 - 1e-9, 1, 1 + 1e-9):
        weighted = Groups(
            groups.vectors, groups.offsets, weights=total / np.repeat(groups.totals, groups.sizes, axis=0)
        )
        priors.append(LIKELIHOODS[name]().learn_prior(statistics_of(name, weighted)))
    for prior in priors[1:]:
        for field in vars(prior):
            assert_allclose(getattr(prior, field), getattr(priors[0], field), rtol=1e-6)
    scale = np.diag(priors[0].scatter) if name == "full" else priors[0].beta
    assert np.max(scale) < 1e3


@pytest.mark.parametrize("name", CONJUGATE)
def test_learnt_prior_of_a_constant_feature(name, make_groups):
    groups = make_groups(20, 3, (1, 5))
    varying = [0, 0, 0] if name == "spherical" else [1, 0, 1]
    constant = Groups(groups.vectors * varying, groups.offsets)
    assert np.isfinite(ModelComparisonSimilarity(name, "bayes").fit_transform(constant)).all()
    with pytest.raises(ValueError, match="learnt prior is degenerate.*reg_covar > 0"):
        ModelComparisonSimilarity(name, "bayes", reg_covar=0).fit(constant)


def test_bad_priors_get_a_sentence():
    with pytest.raises(ValueError, match="kappa of a NormalGamma prior must be positive and finite, got 0"):
        NormalGamma(0, 0, 1, 1)
    with pytest.raises(ValueError, match=r"alpha of a NormalGamma prior must be one number, .* shape \(2,\)"):
        NormalGamma(0, 1, [2, 5], 1)
    with pytest.raises(ValueError, match="beta of a NormalGamma prior must be positive"):
        NormalGamma(0, 1, 1, [1, -1])
    with pytest.raises(ValueError, match="dof must be greater than n_features - 1 = 1, got 1"):
        NormalWishart(0, 1, 1, np.eye(2))
    with pytest.raises(ValueError, match="scatter must be a symmetric matrix"):
        NormalWishart(0, 1, 5, np.array([[1, 2], [0, 1]]))
    with pytest.raises(ValueError, match="scatter must be a symmetric matrix"):
        NormalWishart(0, 1, 5, np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"scatter must be a symmetric matrix of finite numbers, got array\(\[\[inf"):
        NormalWishart(0, 1, 5, np.diag([np.inf, 1]))
    with pytest.raises(ValueError, match="scatter must be positive definite"):
        NormalWishart(0, 1, 5, np.diag([1, -1]))


def test_evidence_by_hand():
    """Two coinciding vectors in one dimension, where the evidence has a closed value by hand."""
    prior = NormalGamma(mean=0, kappa=1, alpha=1, beta=1)
    evidence = fit(DiagonalGaussian(prior), Groups([[0.0], [0.0]], [0, 2])).log_evidence
    by_hand = -np.log(2 * np.pi) + 0.5 * np.log(1 / 3) + gammaln(2)
    assert_allclose(evidence, by_hand, rtol=1e-14)


@pytest.mark.parametrize("n_vectors", [2, 3, 5, 9])
@pytest.mark.parametrize("constant", [(0,), (0, 1), (2,)])
def test_full_with_constant_features_anywhere(n_vectors, constant):
    """The score must not depend on the order of features, whichever of them vary."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_vectors, 5))
    x[:, constant] = 1.0
    for weights in (np.ones(n_vectors), rng.uniform(0.1, 2, size=n_vectors)):
        turned = Groups.from_list([x, x[:, ::-1], np.roll(x, 2, axis=1)], weights=[weights] * 3)
        scores = ModelComparisonSimilarity("full").score_samples(turned)
        expected = oracle.information("full", "aic", x, weights, 1e-6, None)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_log_densities_of_vectors_sum_to_the_log_likelihood(name, make_groups):
    likelihood = LIKELIHOODS[name]()
    groups = make_groups(weighted=True)
    statistics = likelihood.statistics(groups, reg_covar=1e-3, order=2)
    for i, group in enumerate(groups):
        densities = likelihood.vector_log_likelihood(statistics, group)
        assert densities.shape[:2] == (len(groups), len(group))
        summed = groups[i : i + 1].weights @ densities[i].reshape(len(group), -1).sum(axis=1)
        np.testing.assert_allclose(summed, likelihood.log_likelihood(statistics)[i], rtol=1e-10)
