"""Sentence pairs with human ratings: the data, systems that rate them, and correlations with the ratings."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from vectors import DEFAULT, GLOVE, PUNCTUATION, Reader, default_reader, installed_models, static_models, static_reader

from sklearn_mcsg import load_word_vectors
from sklearn_mcsg.engine.outputs import OUTPUTS

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
    """Word vectors, sorted by frequency or with word frequencies; or a static model; or the defaults."""

    name: str
    table: object  # parameter `vectors` of EmbeddingVectorizer
    zipf: object = None  # its parameter `frequencies`
    published: bool = False  # whether the paper has results for these vectors
    kind: str = "words"  # or "static", trained to be averaged, or "default"

    def reader(self, counts):
        """What turns sentences into groups, given counts of words for SIF."""
        if self.kind == "words":
            return WordReader(self, counts)
        return static_reader(self.table) if self.kind == "static" else default_reader()


def read_pairs(path):
    lines = [line.split("\t") for line in path.read_text(encoding="utf8").splitlines()]
    gold, left, right = zip(*lines, strict=True)
    return Task(path.stem, np.array(gold, float), list(left), list(right))


def read_tasks(folder):
    tasks = [read_pairs(path) for path in sorted(folder.glob("STS*.tsv"))]
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
        yield Vectors(path.stem, (arrays["words"].tolist(), arrays["vectors"]), zipf, "840B" in path.stem)
    for path in files:
        yield Vectors(path.stem, load_word_vectors(path), "zipf")
    yield Vectors(GLOVE, GLOVE, "zipf")
    for name, source in {**static_models(data), **installed_models()}.items():
        yield Vectors(name, source, kind="static")
    yield Vectors("default", DEFAULT, kind="default")


def read_counts(path):
    pairs = (line.split() for line in path.read_text(encoding="utf8").splitlines())
    return {word: int(count) for word, count in pairs}


class WordReader(Reader):
    """Recipes for tokenised sentences and word vectors; a sentence without known words becomes a full stop."""

    def __init__(self, vectors, counts):
        shared = {"vectors": vectors.table, "tokenizer": str.split, "lowercase": False}
        raw = {**shared, "weighting": None, "unit_norm": False, "unknown": "ignore", **PUNCTUATION}  # as in the paper
        zipf = {**raw, "weighting": "sif", "frequencies": vectors.zipf}
        super().__init__(
            paper={**raw, "pad_token": "."},
            plain=raw,
            wiki={**raw, "weighting": "sif", "frequencies": counts},
            zipf=zipf,
            zipf_padded={**zipf, "pad_token": "."},
            norm={**raw, "weighting": "norm", "pad_token": "."},
            recipe={**shared, "frequencies": vectors.zipf},
        )

    def read(self, recipe, texts):
        unknown = super().read("paper", texts).sizes == 1
        return super().read(recipe, ["." if lost else text for lost, text in zip(unknown, texts, strict=True)])


@dataclass(frozen=True)
class System:
    """A similarity, the recipe for its groups, and what it is fitted on: nothing, the task's texts, or other years'."""

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
        output = getattr(estimator, "output", "distance")  # an embedding returns distances
        return values if OUTPUTS[output].higher_is_nearer else -values


def published(name, tasks):
    """Correlations by sub-task, as listed in the authors' code, or NaN."""
    by_task = dict(zip(TASKS.split(), PUBLISHED.get(name, "").split(), strict=False))
    return np.array([int(by_task[t.name]) / 1e4 if t.name in by_task else np.nan for t in tasks])


def correlation(x, y, ranks=True):
    """Spearman's or Pearson's correlation along the last axis; 0 if all values are equal."""
    if ranks:
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
