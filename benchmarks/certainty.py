"""What p-values are worth: how often they are small where there is nothing to find, and where there is something.

    python benchmarks/certainty.py [--data DIR] [--to doc/results/certainty] [--jobs 1] [--quick]

DIR may hold `grouping/agnews_test.tsv`, with a label and a text in each line: the running times are then those of news
items, and otherwise those of texts that are put together from the bundled ones. Everything else is simulated, with
generators whose seeds are the numbers of what is simulated: kind of p-value or sequence, method, part or run.

A p-value of another kind is one more entry of `KEPT` or `BROKEN`, and a group of tables one more of `SECTIONS`.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from results import announce, write_results
from scipy.signal import lfilter
from scipy.spatial.distance import cdist
from scipy.stats import binom, f, ks_2samp
from segments import planted
from sklearn.preprocessing import normalize

from sklearn_mcsg import (
    EmbeddingVectorizer,
    GroupClustering,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    ModelComparisonClassifier,
    ModelComparisonSegmenter,
    ModelComparisonSimilarity,
    TextSearch,
    calibrate_texts,
    cluster_texts,
    compare_samples,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.likelihoods import load_segment_kernels

SHARED = 0.3  # of the variance of a vector: what all vectors of its group have in common
FEATURES = 10
ALPHAS = np.geomspace(0.001, 1, 61)
LEVELS = (0.01, 0.05, 0.1)
CORPUS = 300  # groups that random pairs are drawn from
PER_CORPUS = 10  # p-values by the same random pairs
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def draw(rng, n_groups, shift=0.0, spread=1.0, times=1, n_features=FEATURES):
    """Groups of 5 to 15 vectors that depend on each other, as those of one text do; vectors have variance 1."""
    sizes = times * rng.integers(5, 16, size=n_groups)
    own = np.sqrt(SHARED) * rng.normal(size=(n_groups, n_features))
    noise = np.sqrt(1 - SHARED) * rng.normal(size=(sizes.sum(), n_features))
    return Groups(shift + spread * (np.repeat(own, sizes, axis=0) + noise), np.concatenate([[0], np.cumsum(sizes)]))


# P-values where there is nothing to find: functions of a random generator and a number, which return so many p-values.


def seed(rng):
    """A seed for the permutations of one test: the same ones for all tests would not average out."""
    return int(rng.integers(2**31))


def by_paired_test(rng, n):
    """Two groups of skewed vectors."""
    pairs = rng.exponential(size=(n, 2, 12, 4))
    return [ModelComparisonSimilarity(random_state=seed(rng)).paired_test(*pair).pvalue for pair in pairs]


def by_samples(similarity):
    def find(rng, n):
        samples = ([draw(rng, n_groups, n_features=4) for n_groups in (15, 12)] for _ in range(n))
        return [compare_samples(*both, similarity=similarity, random_state=seed(rng)).pvalue for both in samples]

    return find


def by_model_pairs(rng, n):
    """Pairs of new groups, of which each corpus sees a few."""
    model = ModelComparisonSimilarity(output="distance", random_state=0)
    found = [
        model.fit(draw(rng, CORPUS)).calibrate().pvalue(draw(rng, PER_CORPUS), draw(rng, PER_CORPUS))
        for _ in range(n // PER_CORPUS)
    ]
    return np.concatenate(found)


def by_embedded_pairs(rng, n):
    """The same by an embedding, with random pairs of groups that it was not fitted to."""
    embedding = GroupEmbedding(prior_strength=1.0, random_state=0)
    found = [
        embedding.fit(draw(rng, CORPUS))
        .calibrate(draw(rng, CORPUS))
        .pvalue(draw(rng, PER_CORPUS), draw(rng, PER_CORPUS))
        for _ in range(n // PER_CORPUS)
    ]
    return np.concatenate(found)


def by_texts(cv):
    """Pairs of texts from one half of the bundled ones; the pipeline and the random pairs know the other half."""

    def find(rng, n):
        texts = np.array(load_short_texts().data, dtype=object)
        known, new = np.split(rng.permutation(texts), 2)
        pipeline = make_text_embedding().fit(known)
        left = rng.integers(len(new), size=n)
        right = (left + rng.integers(1, len(new), size=n)) % len(new)
        calibration = calibrate_texts(pipeline, list(known), cv=cv, random_state=0)
        return calibration.pvalue(list(new[left]), list(new[right]))

    return find


def by_reject(rng, n):
    """The smallest level at which a new group of one of 5 classes of 20 groups is rejected."""
    centres, y = rng.normal(size=(5, 4)), np.arange(100) % 5
    X, new = ([rng.normal(centres[k], size=(rng.integers(5, 16), 4)) for k in some] for some in (y, np.arange(n) % 5))
    classifier = ModelComparisonClassifier(reject=True).fit(X, y)
    rejected = [classifier.set_params(level=level).predict(new) == -1 for level in ALPHAS[:-1]]
    return ALPHAS[np.argmax([*rejected, np.ones(n, bool)], axis=0)]


def by_boundary(likelihood):
    """The boundary of the best two segments of a sequence of noise."""

    def find(rng, n):
        load_segment_kernels()  # faster than pooling, also for short sequences
        best = ModelComparisonSegmenter(likelihood, n_segments=2, n_permutations=99)
        return [best.set_params(random_state=seed(rng)).fit(rng.normal(size=(100, 4))).pvalues_[0] for _ in range(n)]

    return find


def by_neighbours(similarity):
    """A new group and one of 120 indexed groups that is chosen at random."""

    def groups(rng, n):
        return [rng.normal(rng.normal(size=8), size=(rng.integers(3, 25), 8)) for _ in range(n)]

    def find(rng, n):
        found = []
        for _ in range(n):
            index = GroupNeighbors(similarity, n_neighbors=120).fit(groups(rng, 120))
            indices, pvalues = index.kneighbors(groups(rng, 1), return_distance=False, return_pvalue=True)
            found.append(pvalues[indices == rng.integers(120)][0])
        return found

    return find


def by_queries(rng, n):
    """One to five words of a text that is not indexed, and one of 240 indexed texts that is chosen at random."""
    texts = [text.replace('"', "") for text in rng.permutation(load_short_texts().data)]
    search = TextSearch(words=None).fit(texts[:240])
    queries = []
    for i in rng.integers(240, len(texts), size=n):
        words = texts[i].split()
        length = rng.integers(1, min(5, len(words)) + 1)
        start = rng.integers(len(words) - length + 1)
        queries.append(" ".join(words[start : start + length]))
    hits = search.search(queries, 240, return_pvalue=True)
    return hits.pvalues[hits.indices == rng.integers(240, size=(n, 1))]


def by_kinds(question, n_permutations):
    """The first of two clusters of 60 texts, whose kinds are drawn at random, several times for the same clusters."""

    def find(rng, n):
        centres = 4 * np.eye(2, 6)[np.arange(60) % 2]
        vectors = dict(zip([f"word{i}" for i in range(60)], centres + rng.normal(size=(60, 6)), strict=True))
        pipeline = make_text_embedding(vectors=vectors, weighting=None)
        found = []
        for _ in range(n // PER_CORPUS):
            texts = [" ".join(f"word{2 * k + i % 2}" for k in rng.integers(30, size=8)) for i in range(60)]
            clusters = cluster_texts(texts, 2, pipeline=pipeline)
            for _ in range(PER_CORPUS):
                compared = clusters.compare(
                    rng.permutation(["a", "b"] * 30), n_permutations=n_permutations, random_state=seed(rng)
                )
                found.append(getattr(compared[0], question))
        return found

    return find


def by_paired_test_of_samples(rng, n):
    """All vectors of some groups against all vectors of others, exchanged singly."""
    samples = ([draw(rng, 4, n_features=4).rows() for _ in range(2)] for _ in range(n))
    return [ModelComparisonSimilarity(random_state=seed(rng)).paired_test(*both).pvalue for both in samples]


def by_samples_of_days(rng, n):
    """Samples of 3 days of 5 groups each, where the groups of one day are alike."""

    def sample():
        groups = draw(rng, 15, n_features=4)
        days = np.repeat(np.sqrt(SHARED) * rng.normal(size=(3, 4)), 5, axis=0)
        return Groups(groups.rows() + np.repeat(days, groups.sizes, axis=0), groups.offsets)

    return [compare_samples(sample(), sample(), random_state=seed(rng)).pvalue for _ in range(n)]


def by_samples_of_sizes(rng, n):
    """Samples by points, where the groups of the second have three times as many vectors of the same kind."""
    samples = ([draw(rng, 30, times=times, n_features=4) for times in (1, 3)] for _ in range(n))
    embedding = GroupEmbedding()
    return [compare_samples(*both, similarity=embedding, random_state=seed(rng)).pvalue for both in samples]


def by_another_kind(rng, n):
    """Pairs of groups whose means vary less than those of the groups that random pairs are drawn from."""
    model = ModelComparisonSimilarity(output="distance", random_state=0)
    found = []
    for _ in range(n // PER_CORPUS):
        model.fit(draw(rng, CORPUS)).calibrate()
        new = [
            rng.normal(0.7 * np.sqrt(SHARED) * rng.normal(size=FEATURES), np.sqrt(1 - SHARED), (10, FEATURES))
            for _ in range(2 * PER_CORPUS)
        ]
        found.append(model.pvalue(new[::2], new[1::2]))
    return np.concatenate(found)


KEPT = {
    "**`paired_test`**": by_paired_test,
    "**`compare_samples`, models**": by_samples(None),
    "**`compare_samples`, points**": by_samples(GroupEmbedding(prior_strength=1.0)),
    "**pairs, `ModelComparisonSimilarity`**": by_model_pairs,
    "**pairs, `GroupEmbedding`**": by_embedded_pairs,
    "**`calibrate_texts`, `cv=5`**": by_texts(cv=5),
    "**`ModelComparisonClassifier`, reject**": by_reject,
    "**boundary, `diag`**": by_boundary("diag"),
    "**boundary, `squared_error`**": by_boundary("squared_error"),
    "**neighbours, models**": by_neighbours(None),
    "**neighbours, points**": by_neighbours(GroupEmbedding(prior_strength=0.5)),
    "**`TextSearch`, random text**": by_queries,
    "**`TextClusters.compare`, share**": by_kinds("share_pvalue", 1),
    "**`TextClusters.compare`, content**": by_kinds("content_pvalue", 199),
}
BROKEN = {
    "**`paired_test`, vectors depend**": by_paired_test_of_samples,
    "**`compare_samples`, groups depend**": by_samples_of_days,
    "**`compare_samples`, larger groups**": by_samples_of_sizes,
    "**pairs of another kind**": by_another_kind,
    "**`calibrate_texts`, no folds**": by_texts(cv=None),
}


def null_section(options):
    n_parts, n = (2, 10) if options.quick else (20, 50)
    workers = Parallel(n_jobs=options.jobs)
    shares, tables = {}, {}
    for kind, (table, functions) in enumerate((("kept", KEPT), ("broken", BROKEN))):
        rows = [f"| | {' | '.join(f'at most {level:g}' for level in LEVELS)} |", "|---|" + "--:|" * len(LEVELS)]
        for i, (name, find) in enumerate(functions.items()):
            start = time.time()
            found = np.array(workers(delayed(find)(np.random.default_rng([kind, i, j]), n) for j in range(n_parts)))
            print(f"{name}: {time.time() - start:.0f} s", flush=True)
            shares[name] = (found[..., None] <= ALPHAS).mean(axis=(0, 1))
            by_part = (found[..., None] <= LEVELS).mean(axis=1)
            errors = by_part.std(axis=0, ddof=1) / np.sqrt(n_parts)
            cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(by_part.mean(axis=0), errors, strict=True)]
            rows.append(f"| {name} | {' | '.join(cells)} |")
        tables[table] = "\n".join(rows)
    plot_shares(shares, n_parts * n, options.to / "null.png")
    return tables


def plot_shares(shares, n, path):
    """One panel for each kind; those with a broken assumption begin a new row."""
    import matplotlib.pyplot as plt

    columns = 5
    names = [name for functions in (KEPT, BROKEN) for name in [*functions, *[None] * (-len(functions) % columns)]]
    rows = len(names) // columns
    figure, panels = plt.subplots(
        rows, columns, figsize=(11, 2.4 * rows), sharex=True, sharey=True, layout="constrained"
    )
    low, high = (np.maximum(limit / n, 1e-9) for limit in binom.interval(0.95, n, ALPHAS))
    for panel, name in zip(panels.flat, names, strict=True):
        if name is None:
            panel.set_visible(False)
            continue
        share = np.where(shares[name] > 0, shares[name], np.nan)
        panel.fill_between(ALPHAS, low, high, color="0.85")
        panel.plot(ALPHAS, ALPHAS, color="0.5", lw=0.8)
        panel.plot(ALPHAS, share, color=ORANGE if name in BROKEN else BLUE)
        panel.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(3e-4, 1.1))
        panel.set_title(name.replace("`", "").strip("*").replace(", ", ",\n", 1), fontsize="small")
        panel.tick_params(labelbottom=True)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("level", fontsize="medium")
    figure.supylabel("share of p-values at most the level", fontsize="medium")
    figure.savefig(path, dpi=150)
    plt.close(figure)


# Groups that a clustering rejects


def rejected_members(level, normalized, run):
    """Share of new groups of three clusters that are rejected; 100 groups of each cluster were fitted."""
    rng = np.random.default_rng([run, int(100 * level)])
    centres = 12 * normalize(rng.normal(size=(3, 8)))

    def draw_members():
        return [c + 0.5 * rng.normal(size=8) + rng.normal(size=(10, 8)) for _ in range(100) for c in centres]

    embedding = GroupEmbedding(prior_strength=0.5, normalize=normalized)
    clustering = GroupClustering(3, embedding=embedding, reject=True, level=level, random_state=run)
    return np.mean(clustering.fit(draw_members()).predict(draw_members()) == -1)


def rejection_section(options):
    runs, levels = 2 if options.quick else 100, (0.01, 0.05, 0.2)
    rows = [f"| | {' | '.join(f'level {level:g}' for level in levels)} |", "|---|" + "--:|" * len(levels)]
    print("rejected ...", flush=True)
    for name, normalized in (("**distances**", False), ("**directions, `normalize=True`**", True)):
        found = [[rejected_members(level, normalized, run) for run in range(runs)] for level in levels]
        errors = np.std(found, axis=1, ddof=1) / np.sqrt(runs)
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(np.mean(found, axis=1), errors, strict=True)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return {"rejected": "\n".join(rows)}


# Two samples of groups


def group_means(groups):
    return groups.sum(groups.rows()) / groups.sizes[:, None]


def group_summaries(groups):
    """Means and logarithms of standard deviations, side by side."""
    means = group_means(groups)
    squares = groups.sum(np.square(groups.rows() - np.repeat(means, groups.sizes, axis=0)))
    return np.hstack([means, 0.5 * np.log(squares / (groups.sizes[:, None] - 1))])


def kolmogorov_smirnov(X, Y):
    """The smallest p-value of all features, times their number."""
    smallest = min(ks_2samp(x, y, method="asymp").pvalue for x, y in zip(X.T, Y.T, strict=True))
    return min(1.0, X.shape[1] * smallest)


def hotelling(X, Y):
    """The test of equal means of normal vectors with one covariance."""
    (n, d), m = X.shape, len(Y)
    difference = X.mean(axis=0) - Y.mean(axis=0)
    covariance = ((n - 1) * np.cov(X.T) + (m - 1) * np.cov(Y.T)) / (n + m - 2)
    squared = n * m / (n + m) * difference @ np.linalg.solve(covariance, difference)
    return f.sf((n + m - d - 1) / (d * (n + m - 2)) * squared, d, n + m - d - 1)


def energy(X, Y, rng, n_permutations=999):
    """A permutation test of the energy distance (Szekely and Rizzo)."""
    n, joined = len(X), np.concatenate([X, Y])
    distances = cdist(joined, joined)
    first = np.zeros((n_permutations + 1, len(joined)))
    first[0, :n] = 1
    first[1:] = rng.permuted(np.tile(first[0], (n_permutations, 1)), axis=1)
    own, cross = (np.einsum("ij,ij->i", first @ distances, other) for other in (first, 1 - first))
    m, rest = len(Y), distances.sum() - own - 2 * cross
    found = 2 * cross / (n * m) - own / n**2 - rest / m**2
    return np.mean(found >= found[0] * (1 - 1e-9))


METHODS = {
    "**`compare_samples`, models**": lambda X, Y, rng: compare_samples(X, Y, random_state=seed(rng)).pvalue,
    "**`compare_samples`, points**": lambda X, Y, rng: (
        compare_samples(X, Y, similarity=GroupEmbedding(prior_strength=1.0), random_state=seed(rng)).pvalue
    ),
    "Kolmogorov-Smirnov, all vectors": lambda X, Y, _: kolmogorov_smirnov(X.rows(), Y.rows()),
    "Kolmogorov-Smirnov, group means": lambda X, Y, _: kolmogorov_smirnov(group_means(X), group_means(Y)),
    "energy distance, group means": lambda X, Y, rng: energy(group_means(X), group_means(Y), rng),
    "Hotelling's T², group means": lambda X, Y, _: hotelling(group_means(X), group_means(Y)),
    "Hotelling's T², means and log deviations": lambda X, Y, _: hotelling(group_summaries(X), group_summaries(Y)),
}
DIFFERENCES = {  # what the second sample is drawn with, for a difference δ
    "all means shifted by δ": lambda δ: {"shift": δ},
    "one mean shifted by δ": lambda δ: {"shift": δ * np.eye(FEATURES)[0]},
    "spread times 1 + δ": lambda δ: {"spread": 1 + δ},
}
DELTAS = (0.05, 0.1, 0.2, 0.3, 0.5)
SHOWN = 0.3  # the difference of the table, with twice as many runs


def rejected(parameters, rng, n_groups):
    """Which methods call two samples different at level .05."""
    X, Y = draw(rng, n_groups), draw(rng, n_groups, **parameters)
    return [method(X, Y, rng) <= 0.05 for method in METHODS.values()]


def samples_section(options):
    runs, n_groups, deltas = (4, 12, (SHOWN,)) if options.quick else (400, 60, DELTAS)
    workers = Parallel(n_jobs=options.jobs)

    def measured(kind, δ, parameters):
        numbers = range(runs if δ in (0, SHOWN) else runs // 2)
        generators = (np.random.default_rng([kind, int(100 * δ), number]) for number in numbers)
        found = workers(delayed(rejected)(parameters, rng, n_groups) for rng in generators)
        return np.mean(found, axis=0)

    print("equal samples ...", flush=True)
    equal = measured(0, 0, {})
    power = {}
    for kind, (name, parameters) in enumerate(DIFFERENCES.items(), 1):
        print(f"{name} ...", flush=True)
        power[name] = np.array([equal, *(measured(kind, δ, parameters(δ)) for δ in deltas)])
    at = 1 + deltas.index(SHOWN)
    rows = [
        f"| | equal samples | {' | '.join(name.replace('δ', str(SHOWN)) for name in DIFFERENCES)} |",
        "|---|--:|--:|--:|--:|",
    ]
    for j, name in enumerate(METHODS):
        cells = [equal[j], *(found[at, j] for found in power.values())]
        rows.append(f"| {name} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    plot_power(power, (0, *deltas), options.to / "power.png")
    return {"samples": "\n".join(rows)}


def plot_power(power, deltas, path):
    import matplotlib.pyplot as plt

    styles = [(BLUE, "-"), (BLUE, "--"), ("0.6", ":"), ("0.3", ":"), (GREEN, "-."), (ORANGE, "-"), (ORANGE, "--")]
    figure, panels = plt.subplots(1, len(power), figsize=(9.5, 3.8), sharey=True, layout="constrained")
    for panel, (name, found) in zip(panels, power.items(), strict=True):
        for method, share, (colour, style) in zip(METHODS, found.T, styles, strict=True):
            panel.plot(deltas, share, color=colour, ls=style, marker=".", label=method.replace("`", "").strip("*"))
        panel.axhline(0.05, color="0.5", lw=0.8)
        panel.set(xlabel="δ", ylim=(0, 1.02))
        panel.set_title(name, fontsize="medium")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of tests that reject at .05")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


# Segments of sequences


def autoregressive(rng, n_features):
    """600 rows of variance 1 and autocorrelation .9."""
    return lfilter([np.sqrt(1 - 0.9**2)], [1, -0.9], rng.normal(size=(800, n_features)), axis=0)[200:]


NOISE = {  # sequences without change
    "normal": lambda rng: rng.normal(size=(300, 4)),
    "t": lambda rng: rng.standard_t(3, size=(300, 4)),
    "AR, d = 1": lambda rng: autoregressive(rng, 1),
    "AR, d = 4": lambda rng: autoregressive(rng, 4),
    "groups": lambda rng: [rng.normal(size=(rng.integers(5, 13), 4)) for _ in range(40)],
}
INDEPENDENT, ROWS = tuple(NOISE)[:2], tuple(NOISE)[:4]


def segmenter(likelihood, n_permutations, number):
    load_segment_kernels()  # also faster for short sequences and few orders
    return ModelComparisonSegmenter(likelihood, level=0.05, n_permutations=n_permutations, random_state=number)


def deviation(X):
    """Standard deviations of features within segments, from differences of neighbouring rows."""
    return np.sqrt(np.square(np.diff(X, axis=0)).mean(axis=0) / 2)


def ruptures_normal(X, number, jump=1):
    """Penalty of BIC for means and covariances."""
    import ruptures

    d = X.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a note on a change of CostNormal in version 1.1.5
        search = ruptures.Pelt(model="normal", min_size=10, jump=jump).fit(X)
        return search.predict(pen=(d + d * (d + 1) / 2) * np.log(len(X)))[:-1]


def ruptures_l2(X, number):
    """Penalty of BIC for means of known variance; the search of Pelt in compiled code, at every row."""
    import ruptures

    pen = np.log(len(X)) * np.square(deviation(X)).sum()
    return ruptures.KernelCPD(kernel="linear").fit(X).predict(pen=pen)[:-1]


def skchange_gaussian(X, number):
    from skchange.detectors import PELT
    from skchange.interval_scorers import GaussianCost

    return PELT(GaussianCost()).fit(X).predict(X)


def skchange_l2(X, number):
    from skchange.detectors import PELT
    from skchange.interval_scorers import L2Cost

    return PELT(L2Cost()).fit(X / deviation(X)).predict(X / deviation(X))


def skchange_level(X, number):
    """A penalty by which a share .05 of random orders of the sequence is cut."""
    from skchange.detectors import SeededBinarySegmentation
    from skchange.interval_scorers import CostChangeScore, GaussianCost
    from skchange.tuning import CalibratedDetectorFWER

    search = SeededBinarySegmentation(CostChangeScore(GaussianCost()))
    calibrated = CalibratedDetectorFWER(search, level=0.05, n_simulations=99, random_state=number)
    return calibrated.fit(X).predict(X)


PEERS = {
    "ruptures Pelt, CostNormal, BIC": ruptures_normal,
    "ruptures Pelt, CostL2, BIC": ruptures_l2,
    "skchange PELT, GaussianCost": skchange_gaussian,
    "skchange PELT, L2Cost": skchange_l2,
    "skchange SeededBinarySegmentation, `level=0.05`": skchange_level,
}
N_ORDERS = 19  # the fewest for .05: the level is as exact as with more, and time is short
NOISE_METHODS = {  # a method, and the kinds of noise that it is applied to
    "**`diag`, `level=0.05`**": (lambda X, i: segmenter("diag", N_ORDERS, i).fit(X).boundaries_, tuple(NOISE)),
    "**`squared_error`, `level=0.05`**": (
        lambda X, i: segmenter("squared_error", N_ORDERS, i).fit(X).boundaries_,
        ROWS,
    ),
    "**`diag`, BIC (default)**": (lambda X, i: ModelComparisonSegmenter().fit(X).boundaries_, ROWS),
    **{name: (find, ROWS) for name, find in PEERS.items()},
    "ruptures Pelt, CostNormal, BIC": (lambda X, i: ruptures_normal(X, i, jump=5), ROWS),  # the default, and faster
    "skchange SeededBinarySegmentation, `level=0.05`": (skchange_level, INDEPENDENT),
}


def is_cut(find, kind, number):
    X = NOISE[kind](np.random.default_rng([list(NOISE).index(kind), number]))
    return len(find(X, number)) > 0


def noise_section(options):
    workers = Parallel(n_jobs=options.jobs)
    rows = [f"| | {' | '.join(NOISE)} |", "|---|" + "--:|" * len(NOISE)]
    for name, (find, kinds) in NOISE_METHODS.items():
        start, cells = time.time(), dict.fromkeys(NOISE, "")
        for kind in kinds:
            n = 100 if find is skchange_level else 400
            numbers = range(1 if options.quick else n)
            cells[kind] = f"{np.mean(workers(delayed(is_cut)(find, kind, number) for number in numbers)):.3f}"
        print(f"{name}: {time.time() - start:.0f} s", flush=True)
        rows.append(f"| {name} | {' | '.join(cells.values())} |")
    return {"noise": "\n".join(rows)}


def with_intervals(likelihood):
    def find(X, number):
        fitted = segmenter(likelihood, 99, number).fit(X)
        return fitted.boundaries_, fitted.intervals_

    return find


PLANTED_METHODS = {
    "**`diag`, `level=0.05`**": with_intervals("diag"),
    "**`squared_error`, `level=0.05`**": with_intervals("squared_error"),
    "**`diag`, BIC (default)**": lambda X, number: (ModelComparisonSegmenter().fit(X).boundaries_, None),
    **{name: lambda X, number, find=find: (find(X, number), None) for name, find in PEERS.items()},
}


def measure_boundaries(find, kind, number):
    """True boundaries found within 2 and 5 rows, their number, false ones, intervals that hold, widths."""
    X, truth = planted(kind, number)
    found, intervals = find(X, number)
    apart = np.abs(truth[:, None] - np.asarray(found, dtype=float).reshape(1, -1))
    nearest = apart.min(axis=1, initial=np.inf)
    n_false = np.count_nonzero(apart.min(axis=0) > 5)
    if intervals is None:
        return np.array([(nearest <= 2).sum(), (nearest <= 5).sum(), len(truth), n_false, np.nan, np.nan, len(found)])
    own = truth[apart.argmin(axis=0)]
    held = np.count_nonzero((intervals[:, 0] <= own) & (own <= intervals[:, 1]))
    width = (intervals[:, 1] - intervals[:, 0] + 1).sum()
    return np.array([(nearest <= 2).sum(), (nearest <= 5).sum(), len(truth), n_false, held, width, len(found)])


def planted_section(options):
    numbers = range(100, 101 if options.quick else 200)
    workers = Parallel(n_jobs=options.jobs)
    tables = {}
    for kind in ("means and variances", "means"):
        rows = [
            f"| {kind} | found within 2 rows | within 5 | false per sequence | intervals that hold | mean width |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        for name, find in PLANTED_METHODS.items():
            start = time.time()
            measured = workers(delayed(measure_boundaries)(find, kind, number) for number in numbers)
            near, close, n_true, n_false, held, width, n_found = np.sum(measured, axis=0)
            cells = [f"{near / n_true:.3f}", f"{close / n_true:.3f}", f"{n_false / len(numbers):.2f}"]
            cells += ["", ""] if np.isnan(held) else [f"{held / n_found:.3f}", f"{width / n_found:.1f}"]
            print(f"{name}: {time.time() - start:.0f} s", flush=True)
            rows.append(f"| {name} | {' | '.join(cells)} |")
        tables[f"planted_{kind.replace(' ', '_')}"] = "\n".join(rows)
    return tables


# Time


def read_texts(data, n):
    """Different texts and what they are: news items, or else halves of the bundled texts, put together."""
    rng = np.random.default_rng(0)
    if data is not None:
        lines = (data / "grouping" / "agnews_test.tsv").read_text(encoding="utf8").splitlines()
        return [line.partition("\t")[2] for line in rng.permutation(lines)[:n]], "news items"
    words = [text.split() for text in load_short_texts().data]
    pairs = rng.permutation([(i, j) for i in range(len(words)) for j in range(len(words)) if i != j])[:n]
    halves = ([*words[i][: len(words[i]) // 2], *words[j][len(words[j]) // 2 :]] for i, j in pairs)
    return [" ".join(half) for half in halves], "halves of bundled texts, put together"


def seconds(call):
    """Processor time, the shorter of two runs."""
    found = []
    for _ in range(2):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def time_section(options):
    n = 60 if options.quick else 1000
    texts, what = read_texts(options.data, 2 * n)
    print("time ...", flush=True)
    embedding = seconds(lambda: make_text_embedding().fit_transform(texts))
    groups = EmbeddingVectorizer().fit_transform(texts)
    rng = np.random.default_rng(0)
    means = seconds(lambda: energy(group_means(groups[:n]), group_means(groups[n:]), rng))
    rows = [f"| energy distance, group means | {means / embedding:.1f} |"]
    for name, pipeline in (("points", make_text_embedding()), ("models", make_text_similarity())):
        test = seconds(lambda p=pipeline: compare_samples(texts[:n], texts[n:], similarity=p, random_state=0))
        rows.append(f"| **`compare_samples`, {name}** | {test / embedding:.1f} |")
    return {"time": "\n".join([f"| {2 * n:,} {what} | times |", "|---|--:|", *rows])}


SECTIONS = (noise_section, planted_section, null_section, rejection_section, samples_section, time_section)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with grouping/agnews_test.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/results/certainty"), help="folder of tables and figures")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--quick", action="store_true", help="few and small samples")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    options.to.mkdir(parents=True, exist_ok=True)
    for section in SECTIONS:
        start = time.time()
        write_results(options.to, section(options))
        print(f"{section.__name__}: {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
