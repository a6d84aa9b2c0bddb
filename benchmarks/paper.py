"""Reproduce the tables and figures of "Model Comparison for Semantic Grouping" (Vargas et al., ICML 2019).

    python benchmarks/paper.py --data DIR [--to doc/paper] [--resamples 1000]

DIR holds `sts/STSyy.TASK.tsv` (gold score, sentence, sentence; tokens separated by spaces), word vectors `*.npz`
(arrays `words`, `vectors` and, if words are not sorted by frequency, `rank`), and `enwiki_vocab_min200.txt` (one word
and its count per line, for SIF). `--vectors FILE` adds word vectors in any format that `load_word_vectors` reads. The
installed 50-d vectors are always measured. The script writes Markdown tables and PNG figures.
"""

import argparse
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from penalty import write_figures
from scipy.stats import rankdata

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    MeanVector,
    ModelComparisonSimilarity,
    WordMoversDistance,
    load_word_vectors,
    make_text_embedding,
)
from sklearn_mcsg.text.tables import open_table

JOBS = 2
TITLES = {"glove840B_300d_partial": "GloVe 840B 300d, part of the vocabulary (glove840B_300d_partial)"}
# Spearman correlations x 10^4 for GloVe 840B, by sub-task, as listed in the authors' code
TASKS = (
    "STS12.MSRpar STS12.MSRvid STS12.SMTeuroparl STS12.OnWN STS12.SMTnews STS13.FNWN STS13.headlines STS13.OnWN "
    "STS14.deft-forum STS14.deft-news STS14.headlines STS14.images STS14.OnWN STS14.tweet-news STS15.answers-forums "
    "STS15.answers-students STS15.belief STS15.headlines STS15.images STS16.answer-answer STS16.headlines "
    "STS16.plagiarism STS16.postediting STS16.question-question"
)
PUBLISHED = {
    "Diag+AIC": "4455 7342 5259 6628 4972 3312 6994 5719 4133 6635 6161 7262 6986 6670 5613 7206 6633 7151 8101 6350 "
    "7159 8170 8307 6667",
    "SIF": "4760 8015 5363 5985 3470 4154 6751 6473 3808 6783 5772 7284 7278 5361 4846 6905 5952 6892 7817 4974 6807 "
    "7255 7489 6504",
    "SIF+PCA": "3844 8131 5418 6080 4565 4257 6910 7623 4157 6745 5895 7551 8145 6136 6198 6755 7115 7064 8153 5578 "
    "6893 7917 8195 6857",
    "MWV": "4717 6762 5750 6135 3345 3693 6371 5344 3552 6500 5538 6148 6444 5324 3800 6823 5307 6651 7198 4262 6569 "
    "5659 7201 5279",
    "WMD": "5001 5445 5738 6695 4145 3760 6373 3601 3274 6176 5773 6470 5530 6848 4807 7388 6050 6805 7196 5820 6887 "
    "7433 7954 2703",
}


@dataclass(frozen=True)
class Task:
    """Sentence pairs of one sub-task, with human ratings of their similarity."""

    name: str
    gold: np.ndarray
    left: list
    right: list

    @property
    def year(self):
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Vectors:
    """Word vectors, sorted by frequency or with word frequencies."""

    name: str
    table: tuple
    zipf: object  # parameter `frequencies` of EmbeddingVectorizer
    published: bool = False  # whether the paper has results for these vectors


def read_tasks(folder):
    tasks = []
    for path in sorted(folder.glob("STS*.tsv")):
        lines = [line.split("\t") for line in path.read_text(encoding="utf8").splitlines()]
        gold, left, right = zip(*lines, strict=True)
        tasks.append(Task(path.stem, np.array(gold, float), list(left), list(right)))
    if not tasks:
        raise SystemExit(f"No STS*.tsv files in {folder}: see the docstring of benchmarks/paper.py for the layout.")
    return tasks


def read_vectors(data, files):
    for path in sorted(data.glob("*.npz")):
        arrays = np.load(path)
        zipf = "zipf"
        if "rank" in arrays:
            p = 1 / ((arrays["rank"] + 2.7) * np.log(400_000))
            zipf = dict(zip(arrays["words"].tolist(), p.tolist(), strict=True))
        yield Vectors(
            TITLES.get(path.stem, path.stem), (arrays["words"].tolist(), arrays["vectors"]), zipf, "840B" in path.stem
        )
    for path in files:
        yield Vectors(path.stem, load_word_vectors(path), "zipf")
    yield Vectors("GloVe 6B 50d, installed", "glove-6b-50d", "zipf")


def read_counts(path):
    pairs = (line.split() for line in path.read_text(encoding="utf8").splitlines())
    return {word: int(count) for word, count in pairs}


class Reader:
    """Turn sentences into groups by a recipe; a sentence without known words becomes a full stop."""

    def __init__(self, vectors, counts):
        self.vectors, self.counts = vectors, counts
        table = open_table(vectors.table)
        self.known, self.width = table.rows, table.vectors.shape[1]
        self.recipes = {
            "paper": {"pad_token": ".", "weighting": None, "unit_norm": False},
            "plain": {"weighting": None, "unit_norm": False},
            "wiki": {"weighting": "sif", "frequencies": counts, "unit_norm": False},
            "zipf": {"weighting": "sif", "frequencies": vectors.zipf, "unit_norm": False},
            "zipf, padded": {"weighting": "sif", "frequencies": vectors.zipf, "unit_norm": False, "pad_token": "."},
            "norm": {"weighting": "norm", "unit_norm": False, "pad_token": "."},
            "recipe": {"frequencies": vectors.zipf},
        }

    def __call__(self, recipe, sentences):
        sentences = [s if any(self.known[w] >= 0 for w in s.split()) else "." for s in sentences]
        vectorizer = EmbeddingVectorizer(
            self.vectors.table, tokenizer=str.split, lowercase=False, **self.recipes[recipe]
        )
        return vectorizer.fit_transform(sentences)


@dataclass(frozen=True)
class System:
    """A similarity, the recipe for its groups, and the texts it is fitted on: none, the task's, or other years'."""

    estimator: object
    recipe: str
    fitted: str = ""
    n_others: int = 200  # sentences of other years to fit on

    def scores(self, reader, task, tasks):
        n = len(task.gold)
        if self.fitted == "task":
            groups = reader(self.recipe, task.left + task.right)
            estimator = self.estimator.fit(groups)
        else:
            others = [s for t in tasks if t.year != task.year for s in t.left + t.right] if self.fitted else []
            if self.fitted and not others:
                return np.full(n, np.nan)
            chosen = np.random.default_rng(0).permutation(len(others))[: self.n_others]
            groups = reader(self.recipe, task.left + task.right + [others[i] for i in chosen])
            estimator = self.estimator.fit(groups[2 * n :]) if self.fitted else self.estimator
        values = estimator.paired(groups[:n], groups[n : 2 * n])
        return values if estimator.higher_is_nearer else -values


def embedding(**params):
    """The embedding of `make_text_embedding` for raw word vectors."""
    return make_text_embedding(**params)["embedding"]


def systems(wmd, width):
    mcs = ModelComparisonSimilarity
    centered = mcs(output="centered", prior_strength=0.5, random_state=0)
    table = {
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
        "Diag+AIC, Zipf": System(mcs(), "zipf, padded"),
        "Diag+AIC, norm": System(mcs(), "norm"),
        "Diag+AIC, prior": System(mcs(prior_strength=0.5), "plain", "task"),
        "Diag+AIC, divergence": System(mcs(output="divergence"), "paper"),
        "Diag centered, recipe (offline)": System(centered, "recipe", "task"),
        "Diag centered, recipe (online)": System(centered, "recipe", "other years"),
        "SIF, Zipf, 3 components": System(SIF(n_components=min(3, width)), "zipf", "task"),
        "SIF, Zipf, 10 components": System(SIF(n_components=min(10, width)), "zipf", "task"),
        "half-whitened mean (offline)": System(embedding(spread=0.0), "recipe", "task"),
        "half-whitened mean (online)": System(embedding(spread=0.0), "recipe", "other years", 2000),
        "Embedding (offline)": System(embedding(), "recipe", "task"),
        "Embedding (online)": System(embedding(), "recipe", "other years", 2000),
    }
    if wmd:
        table["WMD"] = System(WordMoversDistance(n_jobs=JOBS), "plain")
    return table


def correlation(x, y):
    """Spearman correlation along the last axis; 0 if all values are tied."""
    x, y = (rankdata(v, axis=-1) for v in (x, y))
    x, y = (v - v.mean(axis=-1, keepdims=True) for v in (x, y))
    norm = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return np.divide((x * y).sum(axis=-1), norm, out=np.zeros(norm.shape), where=norm > 0)


def bootstrap(scores, gold, resamples, seed):
    """Correlations of all systems with the gold standard, on the same resamples of the pairs."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(gold), (resamples, len(gold)))
    return np.stack([correlation(scores[:, rows], gold[rows]) for rows in chosen])


def mmd_test(x, y, n_permutations=1000, seed=0):
    """Unbiased squared maximum mean discrepancy of two samples (Gaussian kernel of width 1), and permutation p."""
    pooled = np.concatenate([x, y])
    kernel = np.exp(-((pooled[:, None] - pooled) ** 2))
    rng = np.random.default_rng(seed)

    def statistic(order):
        a, b = order[: len(x)], order[len(x) :]
        within = [
            (kernel[np.ix_(g, g)].sum() - np.trace(kernel[np.ix_(g, g)])) / (len(g) * (len(g) - 1)) for g in (a, b)
        ]
        return sum(within) - 2 * kernel[np.ix_(a, b)].mean()

    observed = statistic(np.arange(len(pooled)))
    null = [statistic(rng.permutation(len(pooled))) for _ in range(n_permutations)]
    return observed, (1 + np.sum(np.array(null) >= observed - 1e-15)) / (1 + n_permutations)


@dataclass
class Result:
    """Correlations of every system on every task, and their bootstrap resamples."""

    tasks: list
    names: list
    rho: np.ndarray  # (systems, tasks)
    resampled: np.ndarray  # (resamples, systems, tasks)
    information: dict  # mean AIC of diag and spherical for each task

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
    reader = Reader(vectors, counts)
    table = systems(wmd, reader.width)
    scores = {task.name: np.stack([s.scores(reader, task, tasks) for s in table.values()]) for task in tasks}
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
    }
    return Result(tasks, list(table), rho, np.stack(resampled, axis=2), information)


def running_times(vectors, tasks, counts, wmd):
    """Seconds to compute the similarities of all pairs from looked-up vectors, as the paper reports them."""
    reader = Reader(vectors, counts)
    seconds = {}
    for name, system in systems(wmd, reader.width).items():
        if system.fitted == "other years":
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
    reader = Reader(vectors, counts)
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
    lines = ["| output | level | random pairs | shortest quarter | longest quarter | gold score of 4 or more |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    size = one.sizes + shuffled.sizes
    short, long = size <= np.quantile(size, 0.25), size >= np.quantile(size, 0.75)
    for output in ("distance", "centered"):
        model = ModelComparisonSimilarity(output=output, prior_strength=0.5, random_state=0)
        model.fit(groups[: len(seen)]).calibrate()
        chance, power = model.p_value(one, shuffled), model.p_value(one, other)[alike]
        for level in (0.05, 0.01):
            shares = [(p <= level).mean() for p in (chance, chance[short], chance[long], power)]
            lines.append(f"| {output} | {level} | {' | '.join(f'{share:.3f}' for share in shares)} |")
    return "\n".join(lines)


def published(name, tasks):
    """Correlations by sub-task, as listed in the authors' code, or NaN."""
    by_task = dict(zip(TASKS.split(), PUBLISHED.get(name, "").split(), strict=False))
    return np.array([int(by_task[t.name]) / 1e4 if t.name in by_task else np.nan for t in tasks])


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
        lines.append(f"| {name} | {' | '.join(cells)} | {low:.3f} to {high:.3f} |")
    return "\n".join(lines)


def information_table(result):
    years = sorted({t.year for t in result.tasks})
    lines = ["| mean AIC per sentence | " + " | ".join(years) + " |", "|---|" + "--:|" * len(years)]
    for column, name in enumerate(("Diag", "Spherical")):
        values = np.array([result.information[t.name][column] for t in result.tasks])
        cells = [f"{np.average(values, weights=result.weights(year)):,.0f}" for year in years]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def significance_table(result, names):
    """Differences from Diag+AIC with paired bootstrap intervals."""
    names = [n for n in names if n in result.names]
    lines = ["| system | difference from Diag+AIC | 95 % interval | significant |", "|---|--:|--:|---|"]
    for name in names:
        if name != "Diag+AIC":
            low, high = result.interval(name, than="Diag+AIC")
            gap = result.average(name) - result.average("Diag+AIC")
            lines.append(f"| {name} | {gap:+.3f} | {low:+.3f} to {high:+.3f} | {'yes' if low * high > 0 else 'no'} |")
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
    lines += [f"| {n} | {s:.2f} | {known.get(n, '')} |" for n, s in sorted(seconds.items(), key=lambda item: item[1])]
    return "\n".join(lines)


SECTIONS = {
    "vMF with TIC and diagonal model with AIC": ["vMF+TIC", "Diag+AIC"],
    "Online systems: nothing learnt from the sentences": ["Diag+AIC", "SIF", "MWV", "WMD"],
    "Offline systems: SIF component learnt from each sub-task": ["Diag+AIC", "SIF+PCA"],
    "Criteria": ["Diag+AIC", "Diag+Bayes", "Diag+BIC"],
    "Spherical and diagonal models": ["Spherical+AIC", "Diag+AIC"],
    "TIC and AIC": ["vMF+AIC", "vMF+TIC", "Diag+AIC", "Diag+TIC"],
    "Beyond the paper": [
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
NOTES = """The tables show Spearman's correlation with the gold standard, by year and on average,
with sub-tasks weighted by their number of pairs. Values in brackets are those listed in the authors' code for the
full GloVe 840B (the text of the paper gives 0.656 for the average of Diag+AIC). Intervals are bootstrapped over the
pairs, with the same resamples for all systems. Tokens are split by `str.split`. The systems of the paper use raw,
unweighted vectors padded with "."; SIF uses Wikipedia frequencies. "Offline", "prior" and "Bayes" systems are fitted on
the sentences of each sub-task, the "online" `centered` system on 200 sentences of other years, the
"online" embedding and half-whitened mean on 2000."""


def report(vectors, result):
    beside = vectors.published
    parts = [f"## {vectors.name}"]
    for title, names in SECTIONS.items():
        parts.append(f"### {title}\n\n{score_table(result, names, beside)}")
        if title.startswith("Spherical"):
            parts.append(information_table(result))
    every = dict.fromkeys(name for names in SECTIONS.values() for name in names)
    parts += [f"### Ranking of systems\n\n{orderings(result)}"]
    parts += [f"### Significance\n\n{significance_table(result, every)}", mmd_list(result)]
    return "\n\n".join(parts)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with sentences, vectors and counts")
    parser.add_argument("--vectors", type=Path, action="append", default=[], help="file of additional word vectors")
    parser.add_argument("--to", type=Path, default=Path("doc/paper"), help="path of .md and .png, without suffix")
    parser.add_argument("--resamples", type=int, default=1000, help="number of bootstrap resamples")
    parser.add_argument("--no-wmd", action="store_true", help="leave out the word mover's distance")
    options = parser.parse_args(arguments)
    tasks = read_tasks(options.data / "sts")
    counts = read_counts(options.data / "enwiki_vocab_min200.txt")
    n_pairs = sum(len(t.gold) for t in tasks)
    parts = [f"# The tables of the paper, reproduced\n\n{len(tasks)} sub-tasks, {n_pairs:,} pairs. {NOTES}"]
    timing = ""
    for vectors in read_vectors(options.data, options.vectors):
        print(f"{vectors.name} ...", flush=True)
        wmd = not options.no_wmd
        parts.append(report(vectors, run(vectors, tasks, counts, options.resamples, wmd)))
        if not timing:
            shares = threshold_table(vectors, tasks, counts)
            timing = (
                f"## Thresholds\n\n{vectors.name}: share of pairs that `similar` calls similar. Calibrated on the "
                f"sentences of half of the pairs and tested on the other half.\n\n{shares}\n\n"
                f"## Running times\n\n{vectors.name}: {n_pairs:,} pairs on {JOBS} cores, excluding the lookup of "
                f"vectors.\n\n"
                f"{time_table(running_times(vectors, tasks, counts, wmd))}"
            )
    options.to.parent.mkdir(parents=True, exist_ok=True)
    write_figures(options.to)
    name = options.to.name
    parts += [
        timing,
        "## TIC penalty if the model is true\n\nMean and standard deviation over 40 groups.",
        f"![Standard normal]({name}_normal.png)\n\n![Uniform on the sphere]({name}_sphere.png)",
        "Written by `make paper`.",
    ]
    text = "\n\n".join(parts) + "\n"
    options.to.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
