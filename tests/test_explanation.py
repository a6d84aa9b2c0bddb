"""Explanations: parts that sum to the similarity, and what is shown of them."""

import sys
import tracemalloc
from functools import partial
from html.parser import HTMLParser

import numpy as np
import oracle
import pytest
import sklearn
from conftest import COMBINATIONS, Exponential, traces_memory
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import (
    LIKELIHOODS,
    Criterion,
    EmbeddingVectorizer,
    Explanation,
    GroupEmbedding,
    Groups,
    ModelComparisonSimilarity,
    PairExplanation,
    VectorExplanation,
    VonMisesFisher,
    explain_texts,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.cli._compare import _details
from sklearn_mcsg.groups import regroup

GAUSSIANS = [name for name in LIKELIHOODS if name != "vmf"]


@pytest.fixture
def plt():
    """pyplot without a display, whose figures are closed in the end."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield pyplot
    pyplot.close("all")


@pytest.fixture
def pair(make_groups):
    groups = make_groups(8, 4, (2, 9), weighted=True)
    return groups[[0]], groups[[1]]


def total(explanation):
    return sum(v.sum() for v in explanation.vectors) + explanation.penalty + explanation.prior + explanation.rest


def assert_exact(explanation, estimator, a, b, rtol=1e-10):
    """The parts sum to what `paired` returns, to rounding of the criteria that it subtracts."""
    scale = np.abs(np.concatenate([estimator.score_samples(g) for g in (a, b)])).sum()
    precision = np.finfo(np.result_type(a.output_dtype, b.output_dtype)).eps
    assert_allclose(total(explanation), explanation.similarity, rtol=0, atol=rtol * scale)
    truth = estimator.paired(a, b, output="similarity")[0]
    assert_allclose(explanation.similarity, truth, rtol=2 * precision, atol=rtol * scale)
    if explanation.features is not None:
        for features, vectors in zip(explanation.features, explanation.vectors, strict=True):
            assert_allclose(features.sum(axis=1), vectors)


# Sums ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
@pytest.mark.parametrize(("n_features", "prior_strength"), [(3, 0), (3, 1.5), (12, 0)])
def test_parts_sum_to_the_similarity(likelihood, criterion, n_features, prior_strength, make_groups):
    corpus = make_groups(6, n_features, (1, 9), weighted=True, seed=2)
    estimator = ModelComparisonSimilarity(
        likelihood, criterion, prior_strength=prior_strength, penalty_scale=0.7, output="distance"
    ).fit(corpus)
    assert 1 in corpus.sizes
    for i in range(0, 4, 2):
        a, b = corpus[[i]], corpus[[i + 1]]
        explanation = estimator.explain(a, b)
        assert_exact(explanation, estimator, a, b)
        assert (explanation.features is not None) == (likelihood in ("diag", "trend") and criterion != "bayes")
        assert (explanation.prior != 0) == (prior_strength > 0 and criterion != "bayes")
        assert (explanation.rest != 0) == (criterion == "bayes")
        assert_array_equal(np.concatenate(explanation.weights), np.concatenate([a.weights, b.weights]))


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
def test_single_precision_and_single_vectors(likelihood, criterion):
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    estimator = ModelComparisonSimilarity(likelihood, criterion).fit(x[:, None])
    explanation = estimator.explain(x[:1], x[1:2])
    assert_exact(explanation, estimator, Groups(x[:1], [0, 1]), Groups(x[1:2], [0, 1]))
    assert explanation.vectors[0].dtype == np.float64


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_shared_table_changes_nothing(likelihood):
    table = np.random.default_rng(0).normal(size=(9, 3))
    shared = Groups(table, [0, 5, 9], indices=[0, 1, 1, 2, 8, 3, 1, 5, 6])
    estimator = ModelComparisonSimilarity(likelihood)
    a, b = estimator.explain(shared[[0]], shared[1:]), estimator.explain(shared[0], shared[1])
    for left, right in zip(a.vectors, b.vectors, strict=True):
        assert_allclose(left, right, rtol=1e-12)


def test_approximate_concentration_sums_exactly_too(pair):
    estimator = ModelComparisonSimilarity(VonMisesFisher("banerjee"))
    assert_exact(estimator.explain(*pair), estimator, *pair)


def test_opposite_directions_have_no_mean_direction():
    """The shared model is uniform on the sphere."""
    explanation = ModelComparisonSimilarity("vmf").explain([[1.0, 0.0]], [[-1.0, 0.0]])
    assert_allclose(total(explanation), explanation.similarity, rtol=1e-12)
    assert_allclose(*explanation.vectors)


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
def test_weightless_vectors_contribute_nothing(likelihood, criterion, make_groups):
    corpus = make_groups(5, 3, (4, 7))
    estimator = ModelComparisonSimilarity(likelihood, criterion).fit(corpus)
    x = np.vstack([corpus[0], np.full((1, 3), 1e200)])
    places = np.append(corpus[[0]].row_positions, 1)
    weightless = Groups(x, [0, len(x)], weights=[1] * (len(x) - 1) + [0], positions=places)
    explanation = estimator.explain(weightless, corpus[1])
    without = estimator.explain(corpus[0], corpus[1])
    assert explanation.vectors[0][-1] == 0
    assert_allclose(explanation.vectors[0][:-1], without.vectors[0], rtol=1e-9)
    assert_allclose(explanation.similarity, without.similarity)


@pytest.mark.parametrize("criterion", ["aic", "bayes"])
def test_an_empty_group_has_only_pseudo_vectors(criterion, make_groups, plt):
    corpus = make_groups(5, 3)
    estimator = ModelComparisonSimilarity("diag", criterion, prior_strength=1).fit(corpus)
    explanation = estimator.explain(np.empty((0, 3)), corpus[0])
    assert len(explanation.vectors[0]) == 0
    assert_allclose(total(explanation), explanation.similarity)
    assert "(no vectors)" in explanation.to_html()
    assert len(explanation.plot().patches) == len(corpus[0])


# Values -------------------------------------------------------------------------------------------------------------


def density(name, x):
    """The best model of a group, by scipy, as the logarithm of its density."""
    if name == "vmf":
        return stats.vonmises_fisher(*stats.vonmises_fisher.fit(x)).logpdf
    if name == "trend":  # places are in the last column
        slope, value = np.polyfit(x[:, -1], x[:, :-1], 1)
        deviation = np.sqrt(np.square(x[:, :-1] - value - np.outer(x[:, -1], slope)).mean(axis=0))
        return lambda y: stats.norm.logpdf(y[:, :-1], value + np.outer(y[:, -1], slope), deviation).sum(axis=1)
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / len(x)
    if name == "spherical":
        covariance = np.eye(x.shape[1]) * np.trace(covariance) / x.shape[1]
    if name == "diag":
        covariance = np.diag(np.diag(covariance))
    return stats.multivariate_normal(x.mean(axis=0), covariance).logpdf


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_contributions_are_differences_of_log_densities(name):
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, size=(9, 3)), rng.normal(0.8, size=(7, 3))
    if name == "vmf":
        a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    explanation = ModelComparisonSimilarity(name, reg_covar=0).explain(a, b)
    a, b = (oracle.observed(name, Groups(x, [0, len(x)]), 0)[0] for x in (a, b))
    shared = density(name, np.vstack([a, b]))
    for x, vectors in zip((a, b), explanation.vectors, strict=True):
        assert_allclose(vectors, 2 * (shared(x) - density(name, x)(x)), rtol=1e-6)


def test_features_are_differences_of_log_densities():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(9, 3)), rng.normal(0.5, size=(7, 3))
    union = np.vstack([a, b])
    explanation = ModelComparisonSimilarity(reg_covar=0).explain(a, b)
    for x, features in zip((a, b), explanation.features, strict=True):
        shared, own = (stats.norm.logpdf(x, y.mean(axis=0), y.std(axis=0)) for y in (union, x))
        assert_allclose(features, 2 * (shared - own), rtol=1e-10)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_prior_is_the_share_of_the_pseudo_vectors(name, make_groups):
    """They have the moments of the corpus, so the corpus itself, lightly weighted, may stand in for them."""
    corpus, strength = make_groups(6, 3, (2, 5)), 1.5
    a, b, light = corpus[0], corpus[1], np.full(corpus.n_rows, strength / corpus.n_rows)
    explanation = ModelComparisonSimilarity(name, prior_strength=strength).fit(corpus).explain(a, b)
    padded = [
        Groups(
            np.vstack([x, corpus.rows()]),
            [0, len(x) + len(light)],
            weights=np.concatenate([np.ones(len(x)), light]),
            positions=np.concatenate([corpus[[i]].row_positions, corpus.row_positions]),
        )
        for i, x in enumerate((a, b))
    ]
    truth = ModelComparisonSimilarity(name).explain(*padded)
    assert_allclose(explanation.similarity, truth.similarity, rtol=1e-9)
    for x, vectors, expected in zip((a, b), explanation.vectors, truth.vectors, strict=True):
        assert_allclose(vectors, expected[: len(x)], rtol=1e-8)
    assert_allclose(explanation.prior, truth.vectors[0][len(a) :].sum() + truth.vectors[1][len(b) :].sum(), rtol=1e-8)


@pytest.mark.parametrize(("criterion", "penalty"), [("aic", 12.0), ("bic", 6 * np.log(5 * 4 / 9))])
def test_penalty_is_what_one_model_saves(criterion, penalty):
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3))
    explanation = ModelComparisonSimilarity("diag", criterion).explain(a, b[:4])
    assert_allclose(explanation.penalty, penalty)
    scaled = ModelComparisonSimilarity("diag", criterion, penalty_scale=0.5).explain(a, b[:4])
    assert_allclose(scaled.penalty, penalty / 2)
    assert_allclose(scaled.vectors[0], explanation.vectors[0])


@pytest.mark.parametrize(("likelihood", "criterion"), COMBINATIONS)
def test_order_and_repetition(likelihood, criterion, make_groups):
    corpus = make_groups(6, 3, (4, 8))
    estimator = ModelComparisonSimilarity(likelihood, criterion).fit(corpus)
    x, b = np.vstack([corpus[0], corpus[0][:1]]), corpus[1]
    places = corpus[[0]].row_positions[[*range(len(corpus[0])), 0]]  # that of the first vector twice
    order = np.random.default_rng(0).permutation(len(x))
    a = Groups(x, [0, len(x)], positions=places)
    explanation = estimator.explain(a, b)
    mixed = estimator.explain(Groups(x[order], [0, len(x)], positions=places[order]), b)
    swapped = estimator.explain(b, a)
    assert_allclose(explanation.vectors[0][0], explanation.vectors[0][-1], rtol=1e-9)
    assert_allclose(mixed.vectors[0], explanation.vectors[0][order], rtol=1e-9)
    assert_allclose(mixed.vectors[1], explanation.vectors[1], rtol=1e-9)
    assert_allclose(swapped.vectors[1], explanation.vectors[0], rtol=1e-9)
    if criterion != "bayes":
        weighted = Groups(corpus[0], [0, len(corpus[0])], weights=[2] + [1] * (len(corpus[0]) - 1))
        assert_allclose(estimator.explain(weighted, b).vectors[0][0], 2 * explanation.vectors[0][0], rtol=1e-9)


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("prior_strength", [0, 0.5])
def test_evidence_is_explained_by_leaving_vectors_out(name, prior_strength, make_groups):
    corpus = make_groups(8, 3, (3, 6))
    estimator = ModelComparisonSimilarity(name, "bayes", prior_strength=prior_strength).fit(corpus)
    a, b = corpus[0], corpus[1]
    explanation = estimator.explain(a, b)
    whole = estimator.paired([a], [b])[0]

    def without(k, i):
        group = corpus[[k]]
        positions = np.delete(group.row_positions, i)
        return Groups(np.delete(group[0], i, axis=0), [0, len(positions)], positions=positions)

    left = [whole - estimator.paired(without(0, i), [b])[0] for i in range(len(a))]
    right = [whole - estimator.paired([a], without(1, i))[0] for i in range(len(b))]
    assert_allclose(explanation.vectors[0], left, rtol=1e-9)
    assert_allclose(explanation.vectors[1], right, rtol=1e-9)
    assert explanation.penalty == explanation.prior == 0
    assert "each left out in turn" in repr(explanation)


class HalfLikelihood(Criterion):
    def goodness(self, fit):
        return 0.5 * fit.log_likelihood

    def penalty(self, fit):
        return 0.0


@pytest.mark.parametrize("criterion", ["bayes", HalfLikelihood()])
def test_the_only_vector_of_a_group_carries_the_whole_similarity(criterion, make_groups):
    corpus = make_groups(8, 3, (3, 6))
    explanation = ModelComparisonSimilarity("diag", criterion).fit(corpus).explain(corpus[0][:1], corpus[1])
    assert_allclose(explanation.vectors[0], explanation.similarity)
    assert_allclose(total(explanation), explanation.similarity)


class ExplainedExponential(Exponential):
    def vector_log_likelihood(self, statistics, vectors):
        mean = statistics.mean[:, None]
        return -np.log(mean) - vectors / mean


def test_likelihoods_of_others():
    a, b = np.random.default_rng(0).exponential(size=(2, 4, 3))
    with pytest.raises(TypeError, match="Exponential defines no vector_log_likelihood"):
        ModelComparisonSimilarity(Exponential()).explain(a, b)
    explanation = ModelComparisonSimilarity(ExplainedExponential()).explain(a, b)
    assert_allclose(total(explanation), explanation.similarity)
    assert explanation.features[0].shape == a.shape


# Views --------------------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Collects words and tooltips, and checks that tags are closed in turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.spans, self.tags = [], [], set()
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append((tag, dict(attrs)))
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and "title" in self.open[-1][1]:
            self.spans.append((data, self.open[-1][1]))


@pytest.fixture
def explanation():
    rng = np.random.default_rng(0)
    labels = [["<script>alert('x')</script>", "plain", '"quoted"', "$5 & $6"], ["plain", "' onclick='x", "Grüße"]]
    a, b = rng.normal(size=(4, 3)), rng.normal(1, size=(3, 3))
    return ModelComparisonSimilarity().explain(a, b, labels=labels)


def test_html_shows_every_label_as_text(explanation):
    html = explanation.to_html()
    reader = Reader(html)
    assert [word for word, _ in reader.spans] == [*explanation.labels[0], *explanation.labels[1]]
    assert reader.tags == {"div", "p", "b", "span", "small"}
    for (_, attributes), value in zip(reader.spans, np.concatenate(explanation.vectors), strict=True):
        assert attributes.keys() == {"style", "title"}
        assert attributes["title"] == f"{value:+.2f}"
    assert f"{explanation.similarity:.2f}" in html
    assert f"penalty {explanation.penalty:+.2f}" in html
    assert explanation._repr_html_() == html


def test_colours_compare_with_the_average_vector(explanation):
    relative = np.concatenate(explanation.tones)
    assert_allclose(relative.sum(), 0, atol=1e-12)
    for (_, attributes), value in zip(Reader(explanation.to_html()).spans, relative, strict=True):
        assert ("rgba(0, 114, 178" in attributes["style"]) == (value > 0)
    strongest = Reader(explanation.to_html()).spans[np.argmax(np.abs(relative))][1]["style"]
    assert "0.45)" in strongest


def test_vectors_that_say_the_same_have_no_colour():
    explanation = ModelComparisonSimilarity().explain([[0.1, 1.3]], [[1.1, 0.2]])
    assert_array_equal(np.concatenate(explanation.tones), 0)
    assert repr(explanation) == "Similarity -42.10 of 1 and 1 vectors: vectors -50.10, penalty +8.00"
    assert all("0.00)" in attributes["style"] for _, attributes in Reader(explanation.to_html()).spans)


def test_repr_names_the_strongest_words(explanation):
    first, pro, contra, last = repr(explanation).splitlines()
    assert first.startswith(f"Similarity {explanation.similarity:.2f} of 4 and 3 vectors: vectors ")
    labels, relative = np.concatenate(explanation.labels), np.concatenate(explanation.tones)
    assert pro.startswith(f"  for:     {labels[relative.argmax()]} {relative.max():+.2f}")
    assert contra.startswith(f"  against: {labels[relative.argmin()]} {relative.min():+.2f}")
    assert "-" not in pro
    assert "+" not in contra
    assert last == "  (compared with the average vector)"


@pytest.mark.parametrize("criterion", ["aic", "bayes"])
def test_frame_sums_to_the_similarity(criterion, pair):
    estimator = ModelComparisonSimilarity("diag", criterion, prior_strength=0.5).fit([g[0] for g in pair])
    explanation = estimator.explain(*pair)
    frame = explanation.to_frame()
    assert list(frame.columns) == ["group", "label", "weight", "contribution"]
    assert_allclose(frame["contribution"].sum(), explanation.similarity)
    assert_allclose(frame.loc[frame["group"] == "B", "contribution"], explanation.vectors[1])
    assert_allclose(frame.loc[frame["group"] == "A", "weight"], pair[0].weights)
    others = frame.loc[frame["group"] == "both", "label"].tolist()
    assert others == (["rest"] if criterion == "bayes" else ["penalty", "prior"])
    assert frame["label"][0] == "A[0]"


def test_plot_has_a_bar_for_each_vector(explanation, plt):
    ax = explanation.plot()
    assert isinstance(ax, plt.Axes)
    widths = [bar.get_width() for bar in ax.patches]
    expected = [*sorted(explanation.vectors[0], reverse=True), *sorted(explanation.vectors[1], reverse=True)]
    assert_allclose(widths, expected)
    assert sorted(text.get_text() for text in ax.get_yticklabels()) == sorted(
        [*explanation.labels[0], *explanation.labels[1]]
    )
    for bar in ax.patches:
        colour = (0, 114, 178) if bar.get_width() > 0 else (230, 159, 0)
        assert_allclose(bar.get_facecolor()[:3], np.divide(colour, 255))
    ax.figure.canvas.draw()
    _, other = plt.subplots()
    assert explanation.plot(other) is other


@pytest.mark.parametrize(
    ("module", "method", "sentence"),
    [
        ("pandas", "to_frame", "needs the package pandas"),
        ("matplotlib.pyplot", "plot", r'pip install "sklearn-mcsg\[plot\]"'),
    ],
)
def test_missing_packages_are_named(module, method, sentence, explanation, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=sentence):
        getattr(explanation, method)()


# Both kinds ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[VectorExplanation, PairExplanation])
def either(request, make_groups):
    X = make_groups(12, 3, (3, 6), weighted=True)
    kind = request.param
    estimator = ModelComparisonSimilarity() if kind is VectorExplanation else GroupEmbedding(prior_strength=1)
    explanation = estimator.fit(X).explain(X[[0]], X[[1]])
    assert type(explanation) is kind
    return explanation


def test_both_kinds_are_shown_alike(either, plt):
    assert isinstance(either, Explanation)
    for values, tones, labels, weights in zip(either.vectors, either.tones, either.labels, either.weights, strict=True):
        assert len(values) == len(tones) == len(labels) == len(weights)
    strongest, weakest = either.strongest(99), either.weakest(99)
    values = [value for *_, value in [*strongest, *reversed(weakest)]]
    assert values == sorted(values, reverse=True)
    assert min(value for *_, value in strongest) > 0 > max(value for *_, value in weakest)
    assert either.strongest(2) == strongest[:2]
    assert either.weakest(2) == weakest[:2]
    for a, b, _ in strongest + weakest:
        assert a is None or a in either.labels[0]
        assert b is None or b in either.labels[1]
        assert (a is not None) + (b is not None) == (2 if isinstance(either, PairExplanation) else 1)
    contributions = either.to_frame().select_dtypes("number").drop(columns="weight", errors="ignore").to_numpy()
    assert_allclose(contributions.sum(), either.similarity)
    assert isinstance(either.plot(), plt.Axes)
    assert either._repr_html_() == either.to_html()


def test_lines_have_every_word_with_its_tone(either):
    shown = []
    lines = either.lines(lambda label, value, tone: shown.append((value, tone)) or f"<{label}>")
    assert [name for name, _ in lines] == ["A", "B"]
    for (_, words), labels in zip(lines, either.labels, strict=True):
        assert words == " ".join(f"<{label}>" for label in labels)
    values, tones = np.transpose(shown)
    assert_array_equal(values, np.concatenate(either.vectors))
    assert_allclose(tones, np.concatenate(either.tones) / np.abs(np.concatenate(either.tones)).max())


def test_equal_parts_keep_their_order_and_rounding_makes_parts_equal():
    vectors = np.array([0.14, 0.31, 0.0, 0.11]), np.array([-0.32, 0.04, -0.28])
    weights = np.zeros(4), np.zeros(3)
    labels = ["a", "b", "c", "d"], ["a", "e", "f"]
    explanation = VectorExplanation(0.0, vectors, labels, weights)
    assert [a or b for a, b, _ in explanation.strongest()] == ["b", "a", "d", "e"]
    assert explanation.strongest(3, decimals=1) == [("b", None, 0.3), ("a", None, 0.1), ("d", None, 0.1)]
    assert len(explanation.strongest(9, decimals=1)) == 3, "0.04 becomes 0"
    assert explanation.weakest() == [(None, "a", -0.32), (None, "f", -0.28)]
    assert explanation.weakest(1, decimals=1) == [(None, "f", -0.3)]


@pytest.mark.parametrize("working_memory", [1e-6, 1])
@pytest.mark.parametrize("n", [0, 1, 3, 7, 99])
def test_pairs_of_the_same_words_are_summed_in_order_of_appearance(n, working_memory):
    rng = np.random.default_rng(0)
    matrix = rng.integers(-2, 3, (8, 9)) / 8  # whose sums are exact in any order
    labels = list(rng.choice(["x", "y", "z"], 8)), list(rng.choice(["z", "u", "x", "v"], 9))
    explanation = PairExplanation(matrix, np.eye(9), labels, (np.ones(8), np.ones(9)))
    with sklearn.config_context(working_memory=working_memory):
        strongest, weakest = explanation.strongest(n), explanation.weakest(n)
    sums = {}
    for (i, j), value in np.ndenumerate(matrix):
        pair = labels[0][i], labels[1][j]
        sums[pair] = sums.get(pair, 0.0) + value
    ranked = [(*pair, value) for pair, value in sorted(sums.items(), key=lambda item: -item[1])]
    assert strongest == [part for part in ranked[:n] if part[2] > 0]
    assert weakest == [part for part in ranked[::-1][:n] if part[2] < 0]


def peak_of(function):
    function()  # imports what it needs
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@traces_memory
def test_few_pairs_of_a_large_matrix_take_little_memory():
    matrix = np.random.default_rng(0).normal(size=(800, 800))
    labels = [f"a{i}" for i in range(800)], [f"b{i}" for i in range(800)]
    explanation = PairExplanation(matrix, np.eye(800), labels, (np.ones(800), np.ones(800)))
    assert peak_of(lambda: explanation.strongest(1)) < 5 * matrix.nbytes
    i, j = np.unravel_index(matrix.argmax(), matrix.shape)
    assert explanation.strongest(1) == [(f"a{i}", f"b{j}", matrix.max())]


@pytest.fixture(scope="module")
def long_groups():
    """Two groups of 3000 vectors with 1000 different names each."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 4)) for _ in range(20)]
    a, b = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 4))
    labels = [[f"{name}{i}" for i in rng.integers(1000, size=3000)] for name in "ab"]
    return X, a, b, labels


@traces_memory
def test_long_texts_are_explained_in_blocks(long_groups):
    X, a, b, labels = long_groups
    embedding = GroupEmbedding(prior_strength=1).fit(X)
    explanation = embedding.explain(a, b, labels=labels)
    for use in (explanation.strongest, explanation.weakest, explanation.to_html, lambda: repr(explanation)):
        with sklearn.config_context(working_memory=2):
            assert peak_of(use) < 12 * 2**20, "the matrix alone takes 69 MiB, its sums by name 7.6"
    assert_allclose(explanation.vectors[0], explanation.matrix.sum(axis=1), atol=1e-15)
    assert_allclose(explanation.vectors[1], explanation.matrix.sum(axis=0), atol=1e-15)
    matrix = explanation.matrix
    whole = PairExplanation(matrix, np.eye(matrix.shape[1]), explanation.labels, explanation.weights)
    for part, expected in zip(explanation.strongest(50), whole.strongest(50), strict=True):
        assert part[:2] == expected[:2]
        assert part[2] == pytest.approx(expected[2])


def test_json_lists_the_strongest_pairs_of_long_texts(long_groups):
    X, a, b, labels = long_groups
    explanation = GroupEmbedding(prior_strength=1).fit(X).explain(a, b, labels=labels)
    pairs = _details(explanation, exact=False)["pairs"]
    values = [pair["contribution"] for pair in pairs]
    assert values == sorted(values, reverse=True)
    assert np.sign(values).tolist() == [1] * 10_000 + [-1] * 10_000


@pytest.mark.parametrize("kind", [VectorExplanation, PairExplanation])
def test_drawings_of_long_texts_show_the_words_that_contribute_most(kind, long_groups, plt):
    X, a, b, labels = long_groups
    estimator = GroupEmbedding(prior_strength=1) if kind is PairExplanation else ModelComparisonSimilarity()
    explanation = estimator.fit(X).explain(a, b[:20], labels=[labels[0], labels[1][:20]])
    said = "Of 3000 and 20 vectors, the 60 and 20 that contribute most are shown."
    axes = explanation.plot()
    assert said in axes.get_title(loc="left")
    shown = [text.get_text() for text in axes.get_yticklabels()][:60]
    most = np.sort(np.argsort(-np.abs(explanation.vectors[0]))[:60])
    assert sorted(shown) == sorted(labels[0][i] for i in most)
    assert axes.figure.get_size_inches().max() < 30
    html = explanation.to_html()
    assert html.count("<span") >= 3020, "the texts are shown in full"
    assert len(html) < 3020 * 150 + 60 * 20 * 300
    if kind is PairExplanation:
        assert html.count("<td") == 60 * 20
        assert said in html
        assert shown == [labels[0][i] for i in most]


@traces_memory
def test_vectors_are_left_out_in_blocks(make_groups):
    groups = make_groups(3, 4, (300, 301), weighted=True)
    model = ModelComparisonSimilarity("diag", "bayes").fit(groups)
    whole = model.explain(groups[[0]], groups[[1]])
    with sklearn.config_context(working_memory=0.1):
        assert peak_of(lambda: model.explain(groups[[0]], groups[[1]])) < 2 * 2**20
        parts = model.explain(groups[[0]], groups[[1]])
    for left, right in zip(parts.vectors, whole.vectors, strict=True):
        assert_allclose(left, right, atol=1e-9)


# Texts --------------------------------------------------------------------------------------------------------------

WORDS = {"the": [1.0, 1.0], "cat": [3.0, 0.0], "kitten": [2.5, 0.5], "Dog": [2.0, 1.0], "tax": [0.0, 4.0]}
TEXTS = ["the cat", "the kitten", "the Dog", "the tax", "cat tax"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, (["the", "cat", "the"], ["the", "tax"])),
        ({"lowercase": False}, (["the", "cat", "the", "Dog"], ["the", "tax"])),
        ({"pad_token": "kitten"}, (["the", "cat", "the", "kitten"], ["the", "tax", "kitten"])),
        ({"tokenizer": str.split}, (["the", "cat", "the"], ["the"])),
        ({"weighting": None, "unit_norm": False}, (["the", "cat", "the"], ["the", "tax"])),
        ({"unknown": "spelling"}, (["the", "cat", "bit", "the", "dog"], ["the", "tax"])),
    ],
)
def test_texts_are_explained_by_their_words(params, words):
    pipeline = make_text_similarity(vectors=WORDS)
    pipeline["vectorizer"].set_params(**{"unknown": "ignore", **params})
    pipeline.fit(TEXTS)
    a, b = "The cat bit the Dog", "the tax."
    explanation = explain_texts(pipeline, a, b)
    assert explanation.labels == words
    left, right = (pipeline[0].transform([text]) for text in (a, b))
    assert_exact(explanation, pipeline[-1], left, right)
    same = pipeline[0].transform(["the cat the"])
    if not params:
        assert_allclose(explanation.vectors[0], pipeline[-1].explain(same, right).vectors[0])


@traces_memory
def test_long_texts_are_explained_in_bounded_memory():
    pipeline = make_text_embedding(vectors=WORDS).fit(TEXTS)
    text = "the kitten cat " * 4000
    tracemalloc.start()
    explanation = explain_texts(pipeline, text, text)
    shown = repr(explanation)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert explanation.similarity == pytest.approx(1)
    assert "cat ~ kitten" in shown
    assert peak < 3e8, "pairs of all words would take more than 1 GB"


@pytest.mark.parametrize("make", [partial(make_text_embedding, likelihood="diag"), make_text_similarity])
def test_texts_of_many_words_are_explained_by_their_different_words(make):
    pipeline = make(vectors=WORDS).fit(TEXTS)
    a, b = "the kitten cat " * 40_000, "the cat"
    long = explain_texts(pipeline, a, b)
    assert sorted(long.labels[0]) == ["cat", "kitten", "the"]
    groups = [pipeline[0].transform([text]) for text in (a, b)]
    whole = pipeline[-1].explain(*groups)
    assert len(whole.labels[0]) == 120_000
    assert long.similarity == pytest.approx(whole.similarity)
    for word in long.labels[0]:
        expected = whole.vectors[0][np.array(whole.labels[0]) == word].sum()
        assert long.vectors[0][long.labels[0].index(word)] == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:.*no words")
def test_texts_without_known_words():
    pipeline = make_text_similarity(vectors=WORDS).fit(TEXTS)
    assert explain_texts(pipeline, "???", "the cat").labels == ([], ["the", "cat"])
    pipeline = make_pipeline(EmbeddingVectorizer(WORDS), ModelComparisonSimilarity()).fit(TEXTS)
    with pytest.raises(ValueError, match="b has no vectors: there is nothing to compare.*For texts, set pad_token"):
        explain_texts(pipeline, "the cat", "")


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "labels", "sentence"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), None, "a has 3 features, but b has 4"),
        (np.ones((2, 3)), np.ones((0, 3)), None, "b has no vectors: there is nothing"),
        ([], np.ones((2, 3)), None, "a has no vectors: there is nothing"),
        (Groups(np.ones((1, 3)), [0, 1], weights=[0]), np.ones((2, 3)), None, "a has no vectors of positive weight"),
        (np.ones(3), np.ones((2, 3)), None, r"^a has 1 dimension\(s\), but a group is a 2-d array"),
        (Groups(np.ones((2, 3)), [0, 1, 2]), np.ones((2, 3)), None, r"a holds 2 groups.*pass one of them"),
        (np.ones((2, 3)), [[1, 2, np.nan]], None, "Input b contains NaN"),
        (np.ones((2, 3)), np.ones((1, 3)), [["x"], ["y"]], "a has 2 vectors but 1 labels"),
        (np.ones((2, 3)), np.ones((1, 3)), [["x", "y"], "z"], "labels must be two lists of labels"),
        (np.ones((2, 3)), np.ones((1, 3)), "xy", "labels must be two lists of labels"),
        (np.ones((2, 3)), np.ones((1, 3)), [["x", "y", "z"]], "labels must be two lists of labels"),
    ],
)
def test_wrong_input_gets_a_sentence(a, b, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        ModelComparisonSimilarity().explain(a, b, labels=labels)


def test_wrong_types_get_a_sentence():
    estimator, x = ModelComparisonSimilarity(), np.ones((2, 3))
    with pytest.raises(TypeError, match="a is a string; a group of vectors is required. For texts call explain_texts"):
        estimator.explain("the cat", x)
    with pytest.raises(TypeError, match="^b is missing, got None: pass its vectors"):
        estimator.explain(x, None)
    with pytest.raises(TypeError, match="of an EmbeddingVectorizer and .*; got ModelComparisonSimilarity"):
        explain_texts(estimator, "the cat", "the Dog")
    pipeline = make_text_similarity(vectors=WORDS).fit(TEXTS)
    with pytest.raises(TypeError, match="b must be one text, a string, got list"):
        explain_texts(pipeline, "the cat", ["the Dog"])
    with pytest.raises(NotFittedError, match="prior_strength > 0 must be learnt"):
        ModelComparisonSimilarity(prior_strength=1).explain(x, x)


def test_order_counts_in_explanations_of_long_texts(monkeypatch):
    """A long text is explained by its different words only where their order does not matter."""
    monkeypatch.setattr(regroup, "block_rows", lambda groups: 4)
    texts = ["dog bites man and man bites dog", "man bites dog and the dog bites", "a storm at sea", "cold winds blow"]
    for likelihood, n_words in (("trend", 7), ("diag", 4)):
        pipeline = make_text_embedding(likelihood=likelihood).fit(texts)
        explanation = explain_texts(pipeline, *texts[:2])
        groups = pipeline[0].transform(texts[:2])
        cosine = pipeline[-1].paired(groups[:1], groups[1:], output="similarity")[0]
        assert_allclose(explanation.similarity, cosine, atol=1e-6)
        assert len(explanation.labels[0]) == n_words
