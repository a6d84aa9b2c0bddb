"""Reproduce the tables and figures of "Model Comparison for Semantic Grouping" (Vargas et al., ICML 2019).

    python benchmarks/paper.py --data DIR [--to doc/results/paper] [--resamples 1000]

DIR holds `sts/STSyy.TASK.tsv` (gold score, sentence, sentence; tokens separated by spaces), word vectors `*.npz`
(arrays `words`, `vectors` and, if words are not sorted by frequency, `rank`), folders of static models
(`tokenizer.json` and `.safetensors`), and `enwiki_vocab_min200.txt` (one word and its count per line, for SIF).
`--vectors FILE` adds word vectors in any format that `load_word_vectors` reads. The installed 50-d vectors are always
measured, the default vectors, and WordLlama if it is installed. The script writes Markdown tables and PNG figures.
"""

import argparse
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from encoder import own_encoder
from joblib import Parallel, delayed
from penalty import write_figures
from results import announce, shown, write_results
from sts import System, bootstrap, correlation, mmd_test, published, read_counts, read_tasks, read_vectors
from tfidf import tf_idf
from vectors import DEFAULT, GLOVE, centered, embedding, installed_models, whitened_mean

from sklearn_mcsg import SIF, MeanVector, ModelComparisonSimilarity, WordMoversDistance

JOBS = 2


def default_systems():
    """Systems for the vectors that are the default."""
    table = {"TF-IDF": System(tf_idf(), "text", "task")}
    for name, source in installed_models().items():
        table[f"{name}, its own encoder"] = System(own_encoder(source), "text")
    table |= {
        "cosine of means": System(MeanVector(), "plain"),
        "half-whitened mean (offline)": System(whitened_mean(DEFAULT), "recipe", "task"),
        "quarter-whitened mean (online)": System(whitened_mean(DEFAULT, 0.25), "recipe", "other years", 2000),
        "quarter-whitened mean (offline)": System(whitened_mean(DEFAULT, 0.25), "recipe", "task"),
        "Diag centered (offline)": System(centered(), "recipe", "task"),
    }
    for order in (0, 0.5):
        ordered = embedding(DEFAULT, order)
        table[f"Embedding, order {order} (online)"] = System(ordered, "recipe", "other years", 2000)
        table[f"Embedding, order {order} (offline)"] = System(ordered, "recipe", "task")
    return table


def static_systems(source, wmd):
    """Systems for vectors that were trained to be averaged, with their frequencies built in."""
    table = {
        "TF-IDF": System(tf_idf(), "text", "task"),
        "its own encoder": System(own_encoder(source), "text"),
        "Diag+AIC": System(ModelComparisonSimilarity(), "paper"),
        "cosine of means": System(MeanVector(), "plain"),
        "centred cosine": System(embedding(source, whiten=0.0, spread=0.0), "plain", "task"),
        **{
            f"means, {k} component{'s' * (k > 1)} removed": System(SIF(n_components=k), "plain", "task")
            for k in (1, 3, 10)
        },
        "Diag centered (offline)": System(centered(), "recipe", "task"),
        "half-whitened mean (offline)": System(whitened_mean(source), "recipe", "task"),
        "eighth-whitened mean (online)": System(whitened_mean(source, 0.125), "recipe", "other years", 2000),
        "eighth-whitened mean (offline)": System(whitened_mean(source, 0.125), "recipe", "task"),
        "Embedding (online)": System(embedding(source), "recipe", "other years", 2000),
        "Embedding (offline)": System(embedding(source), "recipe", "task"),
    }
    if wmd:
        table["WMD"] = System(WordMoversDistance(n_jobs=JOBS), "plain")
    return table


def word_systems(wmd):
    """The systems of the paper and later ones, for raw word vectors."""
    mcs = ModelComparisonSimilarity
    table = {
        "TF-IDF": System(tf_idf(), "text", "task"),
        "Diag+AIC": System(mcs(), "paper"),
        "Diag+TIC": System(mcs(criterion="tic"), "paper"),
        "Diag+BIC": System(mcs(criterion="bic"), "paper"),
        "Diag+Bayes": System(mcs(criterion="bayes"), "paper", "task"),
        "Spherical+AIC": System(mcs("spherical"), "paper"),
        "vMF+AIC": System(mcs("vmf"), "paper"),
        "vMF+TIC": System(mcs("vmf", "tic"), "paper"),
        "MWV": System(MeanVector(), "plain"),
        "SIF": System(SIF(), "wiki"),
        "SIF+PCA": System(SIF(n_components=1), "wiki", "task"),
        "SIF, Zipf": System(SIF(), "zipf"),
        "SIF+PCA, Zipf": System(SIF(n_components=1), "zipf", "task"),
        "Diag+AIC, Zipf": System(mcs(), "zipf_padded"),
        "Diag+AIC, norm": System(mcs(), "norm"),
        "Diag+AIC, prior": System(mcs(prior_strength=0.5), "plain", "task"),
        "Diag+AIC, divergence": System(mcs(output="divergence"), "paper"),
        "Diag centered, recipe (offline)": System(centered(), "recipe", "task"),
        "Diag centered, recipe (online)": System(centered(), "recipe", "other years"),
        "SIF, Zipf, 3 components": System(SIF(n_components=3), "zipf", "task"),
        "SIF, Zipf, 10 components": System(SIF(n_components=10), "zipf", "task"),
        "half-whitened mean (offline)": System(whitened_mean(GLOVE), "recipe", "task"),
        "half-whitened mean (online)": System(whitened_mean(GLOVE), "recipe", "other years", 2000),
        "Embedding (offline)": System(embedding(GLOVE), "recipe", "task"),
        "Embedding (online)": System(embedding(GLOVE), "recipe", "other years", 2000),
    }
    if wmd:
        table["WMD"] = System(WordMoversDistance(n_jobs=JOBS), "plain")
    return table


def systems(vectors, wmd):
    if vectors.kind == "default":
        return default_systems()
    return word_systems(wmd) if vectors.kind == "words" else static_systems(vectors.table, wmd)


@dataclass
class Result:
    """Correlations of every system on every task, and their bootstrap resamples."""

    tasks: list
    names: list
    rho: np.ndarray  # (systems, tasks)
    resampled: np.ndarray  # (resamples, systems, tasks)
    information: dict  # mean AIC of diag and spherical for each task, for word vectors
    scores: dict  # (systems, pairs) for each task

    def weights(self, year=None):
        return np.array([len(t.gold) * (year is None or t.year == year) for t in self.tasks], float)

    def average(self, name, year=None):
        return np.average(self.rho[self.names.index(name)], weights=self.weights(year))

    def interval(self, name, than=None):
        values = self.resampled[:, self.names.index(name)]
        if than is not None:
            values = values - self.resampled[:, self.names.index(than)]
        return np.quantile(np.average(values, axis=1, weights=self.weights()), [0.025, 0.975])


def run(vectors, tasks, counts, resamples, wmd):
    reader = vectors.reader(counts)
    table = systems(vectors, wmd)
    scores = {}
    for task in tasks:
        print(f"  {task.name}", flush=True)
        scores[task.name] = np.stack([system.scores(reader, task, tasks) for system in table.values()])
    rho = np.stack([correlation(scores[t.name], t.gold) for t in tasks], axis=1)
    resampled = Parallel(n_jobs=JOBS)(
        delayed(bootstrap)(scores[t.name], t.gold, resamples, seed) for seed, t in enumerate(tasks)
    )
    information = {
        t.name: [
            -ModelComparisonSimilarity(likelihood).score(reader("paper", t.left + t.right))
            for likelihood in ("diag", "spherical")
        ]
        for t in tasks
        if vectors.kind == "words"
    }
    return Result(tasks, list(table), rho, np.stack(resampled, axis=2), information, scores)


def running_times(vectors, tasks, counts, wmd):
    """Seconds to compute the similarities of all pairs from looked-up vectors, as the paper reports them."""
    reader = vectors.reader(counts)
    seconds = {}
    for name, system in systems(vectors, wmd).items():
        if system.fitted == "other years" or system.recipe == "text":
            continue
        whole = [s for t in tasks for s in t.left], [s for t in tasks for s in t.right]
        jobs = [(t.left, t.right) for t in tasks] if system.fitted else [whole]
        sides = [(reader(system.recipe, left), reader(system.recipe, right)) for left, right in jobs]
        both = [reader(system.recipe, left + right) if system.fitted else None for left, right in jobs]
        best = np.inf
        for _ in range(1 if name == "WMD" else 3):
            start = time.perf_counter()
            for (left, right), corpus in zip(sides, both, strict=True):
                estimator = system.estimator.fit(corpus) if corpus is not None else system.estimator
                estimator.paired(left, right)
            best = min(best, time.perf_counter() - start)
        seconds[name] = best
    return seconds


def threshold_table(vectors, tasks, counts):
    """Share of held-out pairs called similar, for random pairs and for pairs rated as equivalent."""
    reader = vectors.reader(counts)
    rng = np.random.default_rng(0)
    left, right = [s for t in tasks for s in t.left], [s for t in tasks for s in t.right]
    order = rng.permutation(len(left))
    half, rest = order[: min(1500, len(order) // 2)], order[len(order) // 2 :]
    seen = [side[i] for side in (left, right) for i in half]
    left, right = ([side[i] for i in rest] for side in (left, right))
    alike = np.concatenate([t.gold for t in tasks])[rest] >= 4
    groups = reader("recipe", seen + left + right)
    one, other = groups[len(seen) : len(seen) + len(left)], groups[len(seen) + len(left) :]
    shuffled = other[rng.permutation(len(other))]
    lines = ["| method | level | random pairs | shortest quarter | longest quarter | gold score of 4 or more |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    size = one.sizes + shuffled.sizes
    short, long = size <= np.quantile(size, 0.25), size >= np.quantile(size, 0.75)
    models = {
        f'**`output="{output}"`**': ModelComparisonSimilarity(output=output, prior_strength=0.5, random_state=0)
        for output in ("distance", "centered")
    }
    models |= {"mean, 1 component removed": SIF(1, "distance"), "half-whitened mean": whitened_mean(GLOVE)}
    for name, model in models.items():
        model.fit(groups[: len(seen)]).calibrate(groups[: len(seen)], random_state=0)
        chance, power = model.pvalue(one, shuffled), model.pvalue(one, other)[alike]
        for level in (0.05, 0.01):
            shares = [(p <= level).mean() for p in (chance, chance[short], chance[long], power)]
            lines.append(f"| {name} | {level} | {' | '.join(f'{share:.3f}' for share in shares)} |")
    return "\n".join(lines)


def score_table(result, names, beside):
    years = sorted({t.year for t in result.tasks})
    head = "| system | " + " | ".join(years) + " | average | 95 % interval |"
    lines = [head, "|---|" + "--:|" * (len(years) + 2)]
    for name in names:
        if name not in result.names:
            continue
        known = published(name, result.tasks)
        cells = []
        for year in [*years, None]:
            value = f"{result.average(name, year):.3f}"
            weights = result.weights(year)
            if beside and not np.isnan(known[weights > 0]).any():
                value += f" ({np.average(known[weights > 0], weights=weights[weights > 0]):.3f})"
            cells.append(value)
        low, high = result.interval(name)
        lines.append(f"| {shown(name)} | {' | '.join(cells)} | {low:.3f} to {high:.3f} |")
    return "\n".join(lines)


def information_table(result):
    years = sorted({t.year for t in result.tasks})
    lines = ["| mean AIC per sentence | " + " | ".join(years) + " |", "|---|" + "--:|" * len(years)]
    for column, name in enumerate(("Diag", "Spherical")):
        values = np.array([result.information[t.name][column] for t in result.tasks])
        cells = [f"{np.average(values, weights=result.weights(year)):,.0f}" for year in years]
        lines.append(f"| {shown(name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measures_table(result, names):
    """Spearman's and Pearson's correlations: weighted mean of sub-tasks, and mean of whole years."""
    years = sorted({t.year for t in result.tasks})
    lines = ["| system | Spearman | Pearson | Spearman `all` | Pearson `all` |", "|---|--:|--:|--:|--:|"]
    for name in names:
        row = result.names.index(name)
        cells = []
        for whole in (False, True):
            parts = [[t for t in result.tasks if t.year == y] for y in years] if whole else [[t] for t in result.tasks]
            weights = None if whole else result.weights()
            for ranks in (True, False):
                values = [
                    correlation(
                        np.concatenate([result.scores[t.name][row] for t in part]),
                        np.concatenate([t.gold for t in part]),
                        ranks,
                    )
                    for part in parts
                ]
                cells.append(f"{np.average(values, weights=weights):.3f}")
        lines.append(f"| {shown(name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def significance_table(result, names):
    """Differences from Diag+AIC with paired bootstrap intervals."""
    names = [n for n in names if n in result.names]
    lines = ["| system | difference from Diag+AIC | 95 % interval | significant |", "|---|--:|--:|---|"]
    for name in names:
        if name != "Diag+AIC":
            low, high = result.interval(name, than="Diag+AIC")
            gap = result.average(name) - result.average("Diag+AIC")
            verdict = "yes" if low * high > 0 else "no"
            lines.append(f"| {shown(name)} | {gap:+.3f} | {low:+.3f} to {high:+.3f} | {verdict} |")
    return "\n".join(lines)


def mmd_list(result):
    """Test of the paper: which pairs of systems differ in the distribution of their sub-task correlations."""
    rows = {name: result.rho[result.names.index(name)] for name in TESTED if name in result.names}
    tested = [(a, b, mmd_test(rows[a], rows[b])[1]) for a, b in combinations(rows, 2)]
    differ = [f"- {a} and {b}: p = {p:.3f}" for a, b, p in tested if p < 0.05] or ["- none"]
    head = (
        f"MMD permutation test on the {len(result.tasks)} sub-task correlations, as in the paper. Of {len(tested)} "
        f"pairs of systems, these differ at level 0.05:"
    )
    return "\n".join([head, "", *differ])


def orderings(result):
    """Compare the ranking of systems with that of the paper."""
    lines = ["| result of the paper | measured here | |", "|---|---|---|"]
    for better, worse, years in ORDERINGS:
        for year in years or [None]:
            pair = [result.average(name, year) for name in (better, worse) if name in result.names]
            if len(pair) < 2 or (year is not None and not result.weights(year).any()):
                continue
            where = f" on {year}" if year else ""
            holds = "holds" if pair[0] > pair[1] else "does not hold"
            lines.append(f"| {better} above {worse}{where} | {pair[0]:.3f} and {pair[1]:.3f} | {holds} |")
    return "\n".join(lines)


def time_table(seconds):
    lines = ["| system | seconds | published |", "|---|--:|--:|"]
    known = {"Diag+AIC": "1.97", "SIF+PCA": "2.94"}
    rows = sorted(seconds.items(), key=lambda item: item[1])
    lines += [f"| {shown(name)} | {found:.2f} | {known.get(name, '')} |" for name, found in rows]
    return "\n".join(lines)


SECTIONS = {
    "vMF with TIC and diagonal model with AIC": ["vMF+TIC", "Diag+AIC"],
    "Online systems: nothing learnt from the sentences": ["Diag+AIC", "SIF", "MWV", "WMD"],
    "Offline systems: SIF component learnt from each sub-task": ["Diag+AIC", "SIF+PCA"],
    "Criteria": ["Diag+AIC", "Diag+Bayes", "Diag+BIC"],
    "Spherical and diagonal models": ["Spherical+AIC", "Diag+AIC"],
    "TIC and AIC": ["vMF+AIC", "vMF+TIC", "Diag+AIC", "Diag+TIC"],
    "Beyond the paper": [
        "TF-IDF",
        "Diag+AIC, Zipf",
        "Diag+AIC, norm",
        "Diag+AIC, prior",
        "Diag+AIC, divergence",
        "SIF, Zipf",
        "SIF+PCA, Zipf",
        "SIF, Zipf, 3 components",
        "SIF, Zipf, 10 components",
        "Diag centered, recipe (online)",
        "Diag centered, recipe (offline)",
        "half-whitened mean (online)",
        "half-whitened mean (offline)",
        "Embedding (online)",
        "Embedding (offline)",
    ],
}
MEASURED = (
    "TF-IDF",
    "Diag+AIC",
    "MWV",
    "SIF+PCA, Zipf",
    "SIF, Zipf, 3 components",
    "half-whitened mean (offline)",
    "Diag centered, recipe (offline)",
    "Embedding (offline)",
)
TESTED = ("Diag+AIC", "vMF+TIC", "SIF", "SIF+PCA", "MWV", "WMD", "Diag centered, recipe (offline)")
ORDERINGS = [  # better, worse, years
    ("Diag+AIC", "Spherical+AIC", ()),
    ("Diag+AIC", "vMF+TIC", ()),
    ("Diag+AIC", "WMD", ()),
    ("Diag+AIC", "MWV", ()),
    ("Diag+AIC", "SIF", ()),
    ("SIF+PCA", "Diag+AIC", ()),
    ("Diag+AIC", "Diag+BIC", ("STS12", "STS16")),
    ("Diag+AIC", "Diag+Bayes", ("STS12", "STS16")),
]


def report(vectors, result):
    beside = vectors.published
    if vectors.kind != "words":
        averages = f"### Other averages\n\n{measures_table(result, result.names)}"
        return f"{score_table(result, result.names, False)}\n\n{averages}"
    parts = []
    for title, names in SECTIONS.items():
        parts.append(f"### {title}\n\n{score_table(result, names, beside)}")
        if title.startswith("Spherical"):
            parts.append(information_table(result))
    every = dict.fromkeys(name for names in SECTIONS.values() for name in names)
    measured = [name for name in MEASURED if name in result.names]
    parts += [f"### Other averages\n\n{measures_table(result, measured)}"]
    parts += [f"### Ranking of systems\n\n{orderings(result)}"]
    parts += [f"### Significance\n\n{significance_table(result, every)}", mmd_list(result)]
    return "\n\n".join(parts)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with sentences, vectors and counts")
    parser.add_argument("--vectors", type=Path, action="append", default=[], help="file of additional word vectors")
    parser.add_argument("--to", type=Path, default=Path("doc/results/paper"), help="folder of tables and figures")
    parser.add_argument("--resamples", type=int, default=1000, help="number of bootstrap resamples")
    parser.add_argument("--no-wmd", action="store_true", help="leave out the word mover's distance")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    tasks = read_tasks(options.data / "sts")
    counts = read_counts(options.data / "enwiki_vocab_min200.txt")
    tables = {}
    for vectors in read_vectors(options.data, options.vectors):
        print(f"{vectors.name} ...", flush=True)
        wmd = not options.no_wmd
        tables[vectors.name] = report(vectors, run(vectors, tasks, counts, options.resamples, wmd))
        if "thresholds" not in tables:
            print("thresholds and times ...", flush=True)
            tables["thresholds"] = threshold_table(vectors, tasks, counts)
            tables["times"] = time_table(running_times(vectors, tasks, counts, wmd))
    write_results(options.to, tables)
    write_figures(options.to)


if __name__ == "__main__":
    main()
