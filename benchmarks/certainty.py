"""What p-values are worth: how often they are small where there is nothing to find, and where there is something.

    python benchmarks/certainty.py [--data DIR] [--to doc/certainty] [--jobs 1] [--quick]

DIR may hold `grouping/agnews_test.tsv`, with a label and a text in each line: the running times are then those of news
items, and otherwise those of texts that are put together from the bundled ones. Everything else is simulated.

A p-value of another kind is one more entry of `KEPT` or `BROKEN`, and a section of the page one more of `SECTIONS`.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from scipy.stats import binom, f, ks_2samp

from sklearn_mcsg import (
    GroupEmbedding,
    Groups,
    ModelComparisonClassifier,
    ModelComparisonSimilarity,
    calibrate_texts,
    compare_samples,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts

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


def pair_pvalues(fitted, X, Y):
    return fitted.p_value(X, Y)


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
        pair_pvalues(model.fit(draw(rng, CORPUS)).calibrate(), draw(rng, PER_CORPUS), draw(rng, PER_CORPUS))
        for _ in range(n // PER_CORPUS)
    ]
    return np.concatenate(found)


def by_embedded_pairs(rng, n):
    """The same by an embedding, with random pairs of groups that it was not fitted to."""
    embedding = GroupEmbedding(prior_strength=1.0, random_state=0)
    found = [
        pair_pvalues(
            embedding.fit(draw(rng, CORPUS)).calibrate(draw(rng, CORPUS)), draw(rng, PER_CORPUS), draw(rng, PER_CORPUS)
        )
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
        return pair_pvalues(calibration, list(new[left]), list(new[right]))

    return find


def by_reject(rng, n):
    """The smallest level at which a new group of one of 5 classes of 20 groups is rejected."""
    centres, y = rng.normal(size=(5, 4)), np.arange(100) % 5
    X, new = ([rng.normal(centres[k], size=(rng.integers(5, 16), 4)) for k in some] for some in (y, np.arange(n) % 5))
    classifier = ModelComparisonClassifier(reject=True).fit(X, y)
    rejected = [classifier.set_params(level=level).predict(new) == -1 for level in ALPHAS[:-1]]
    return ALPHAS[np.argmax([*rejected, np.ones(n, bool)], axis=0)]


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
        found.append(pair_pvalues(model, new[::2], new[1::2]))
    return np.concatenate(found)


KEPT = {
    "`paired_test`": by_paired_test,
    "`compare_samples`, models": by_samples(None),
    "`compare_samples`, points": by_samples(GroupEmbedding(prior_strength=1.0)),
    "pairs, `ModelComparisonSimilarity`": by_model_pairs,
    "pairs, `GroupEmbedding`": by_embedded_pairs,
    "`calibrate_texts`, `cv=5`": by_texts(cv=5),
    "`ModelComparisonClassifier`, reject": by_reject,
}
BROKEN = {
    "`paired_test`, vectors depend": by_paired_test_of_samples,
    "`compare_samples`, groups depend": by_samples_of_days,
    "`compare_samples`, larger groups": by_samples_of_sizes,
    "pairs of another kind": by_another_kind,
    "`calibrate_texts`, no folds": by_texts(cv=None),
}


def null_section(options):
    n_chunks, n = (2, 10) if options.quick else (20, 200)
    workers = Parallel(n_jobs=options.jobs)
    shares, tables = {}, []
    for kind, (title, functions) in enumerate((("", KEPT), ("An assumption is broken", BROKEN))):
        head = f"| {title} | {' | '.join(f'at most {level:g}' for level in LEVELS)} |"
        rows = [head, "|---|" + "--:|" * len(LEVELS)]
        for i, (name, find) in enumerate(functions.items()):
            print(f"{name} ...", flush=True)
            found = np.array(workers(delayed(find)(np.random.default_rng([kind, i, j]), n) for j in range(n_chunks)))
            shares[name] = (found[..., None] <= ALPHAS).mean(axis=(0, 1))
            by_chunk = (found[..., None] <= LEVELS).mean(axis=1)
            errors = by_chunk.std(axis=0, ddof=1) / np.sqrt(n_chunks)
            cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(by_chunk.mean(axis=0), errors, strict=True)]
            rows.append(f"| {name} | {' | '.join(cells)} |")
        tables.append("\n".join(rows))
    path = options.to.with_name(f"{options.to.name}_null.png")
    plot_shares(shares, n_chunks * n, path)
    return f"""## Where there is nothing to find

Share of p-values that are at most .01, .05 and .1: a test keeps its level if the share is not larger. There are
{n_chunks * n:,} p-values of each kind, in {n_chunks} parts, from which the standard errors come.

{tables[0]}

- `paired_test`: two groups of 12 vectors from one skewed (exponential) distribution.
- `compare_samples`: samples of 15 and 12 groups of 5 to 15 vectors, where {SHARED} of the variance is shared within a
  group; by models (`ModelComparisonSimilarity`) and by points (`GroupEmbedding`).
- Pairs: two new groups, compared with random pairs of a corpus of {CORPUS} groups (`calibrate`).
- `calibrate_texts`: pairs of texts from one half of the bundled short texts, with the other half as corpus.
- Reject: new groups of 5 known classes, of 20 groups each, and the smallest `level` at which they are rejected.

{tables[1]}

- Vectors depend: all vectors of 4 groups against those of 4 other groups, exchanged singly. `compare_samples` exchanges
  whole groups.
- Groups depend: samples of 3 days of 5 groups, where {SHARED} of the variance is shared within a day. Pool each day
  into one group, if there are enough days.
- Larger groups: samples of 30 groups, by points without `prior_strength`; those of the second have three times as many
  vectors, from the same distribution. The variances of small groups are too small.
- Another kind: the means of the pairs' groups vary 0.7 times as much as those of the corpus.
- No folds: the pipeline is fitted to the corpus that random pairs are drawn from, and new texts are asked about.

![Share of p-values that are at most the level, by level, for each kind]({path.name})

Blue: the assumptions hold. Orange: one of them is broken. Grey: where 95 % of shares lie if the level is exact and all
p-values are independent."""


def plot_shares(shares, n, path):
    """One panel for each kind; those with a broken assumption begin a new row."""
    import matplotlib.pyplot as plt

    columns = 4
    names = [name for functions in (KEPT, BROKEN) for name in [*functions, *[None] * (-len(functions) % columns)]]
    rows = len(names) // columns
    figure, panels = plt.subplots(
        rows, columns, figsize=(9.5, 2.6 * rows), sharex=True, sharey=True, layout="constrained"
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
        panel.set_title(name.replace("`", "").replace(", ", ",\n", 1), fontsize="small")
        panel.tick_params(labelbottom=True)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("level", fontsize="medium")
    figure.supylabel("share of p-values at most the level", fontsize="medium")
    figure.savefig(path, dpi=150)
    plt.close(figure)


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
    path = options.to.with_name(f"{options.to.name}_power.png")
    plot_power(power, (0, *deltas), path)
    table = "\n".join(rows)
    return f"""## Two samples of groups

Share of tests at level .05 that call two samples different, of {runs} pairs of samples: {n_groups} groups of 5 to 15
vectors each, {FEATURES} features; {SHARED} of the variance of a vector is shared by all vectors of its group. Shifts
are in standard deviations of a vector. Less is better for equal samples, and more is better for all others. The
standard error is at most {np.sqrt(0.25 / runs):.3f}, and {np.sqrt(0.05 * 0.95 / runs):.3f} for a share of .05.
The bounds of `compare_samples` are .08, at most, for equal samples, and .8, at least, where all means are shifted by
{SHOWN}.

{table}

The test on all vectors takes them for independent, and its level fails. The tests on groups keep it. Where means
differ, `compare_samples` by points and the energy distance of group means are level. Where the spread differs, a test
on means and log deviations finds smaller differences than `compare_samples` does; it pays for them where means differ.

![Share of tests that call samples different, by δ]({path.name})

Half as many pairs of samples for each δ but 0 and {SHOWN}."""


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
    rows = []
    for name, pipeline in (("points", make_text_embedding()), ("models", make_text_similarity())):
        test = seconds(lambda p=pipeline: compare_samples(texts[:n], texts[n:], similarity=p, random_state=0))
        rows.append(f"| `compare_samples`, {name} | {test / embedding:.1f} |")
    table = "\n".join(rows)
    return f"""## Time

Processor time of one test of {n:,} texts against {n:,} others with 999 permutations, as a multiple of the time in which
`make_text_embedding` embeds all of them, which is a part of the test. The texts are {what}. The bound is 20.

| | times |
|---|--:|
{table}"""


SECTIONS = (null_section, samples_section, time_section)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with grouping/agnews_test.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/certainty"), help="path of .md and .png, without suffix")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--quick", action="store_true", help="few and small samples")
    options = parser.parse_args(arguments)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    intro = "Simulations with fixed seeds. [How sure](guide/certainty.rst) says what each number means."
    parts = [
        "# Certainty of p-values",
        intro,
        *(section(options) for section in SECTIONS),
        "Written by `make certainty`.",
    ]
    text = "\n\n".join(parts) + "\n"
    options.to.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
