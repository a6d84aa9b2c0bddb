"""How well p-values of pairs of texts keep their level, within a kind of text and across kinds.

    python benchmarks/levels.py --data DIR [--to doc/results/levels]

DIR holds `sts/STS*.tsv`: lines of gold score, sentence, sentence. The pairs of each sub-task are divided into halves.
Pipelines are fitted and calibrated on the sentences of one half, and asked about random pairs of the other half.
"""

import argparse
from pathlib import Path

import numpy as np
from results import announce, write_results
from sklearn.pipeline import make_pipeline
from sts import read_tasks
from vectors import DEFAULT, GLOVE, PUNCTUATION, whitened_mean

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    MeanVector,
    calibrate_texts,
    make_text_embedding,
    make_text_similarity,
)

KINDS = {
    "STS15.headlines": "headlines",
    "STS15.images": "captions",
    "STS15.answers-students": "answers of students",
    "STS15.answers-forums": "forum posts",
    "STS14.OnWN": "definitions",
    "STS16.question-question": "questions",
}


def cosine_of_means():
    return make_pipeline(EmbeddingVectorizer(**PUNCTUATION), MeanVector("distance"))


SYSTEMS = {
    "**`make_text_embedding`**": make_text_embedding,
    "**`make_text_similarity`**": lambda: make_text_similarity(random_state=0),
    "**`make_text_embedding`, GloVe**": lambda: make_text_embedding(vectors=GLOVE, likelihood="diag"),
    "**`make_text_similarity`, GloVe**": lambda: make_text_similarity(vectors=GLOVE, random_state=0),
    "cosine of means": cosine_of_means,
    "quarter-whitened mean": lambda: make_pipeline(EmbeddingVectorizer(), whitened_mean(DEFAULT, 0.25)),
    "SIF, GloVe, one component removed": lambda: make_pipeline(
        EmbeddingVectorizer(GLOVE, weighting="sif", **PUNCTUATION), SIF(n_components=1)
    ),
}


class Half:
    """Different sentences of half of the pairs of a sub-task, and the pairs that people rate as equivalent."""

    def __init__(self, task, chosen):
        pairs = [(task.left[i], task.right[i]) for i in chosen]
        self.texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        self.alike = [pair for i, pair in zip(chosen, pairs, strict=True) if task.gold[i] >= 4 and len({*pair}) == 2]

    def random_pairs(self, n_pairs):
        rng = np.random.default_rng(1)
        left = rng.integers(len(self.texts), size=n_pairs)
        return left, (left + rng.integers(1, len(self.texts), size=n_pairs)) % len(self.texts)


def halves(task):
    order = np.random.default_rng(0).permutation(len(task.gold))
    return Half(task, order[: len(order) // 2]), Half(task, order[len(order) // 2 :])


def p_of_random_pairs(calibration, asked, n_pairs):
    """P-values of random pairs, and the shorter length of each pair."""
    groups = calibration.pipeline[:-1].transform(asked.texts)
    left, right = asked.random_pairs(n_pairs)
    return calibration.pvalue(groups[left], groups[right]), np.minimum(groups.sizes[left], groups.sizes[right])


def within(make, tasks, n_pairs):
    """Shares of random pairs called similar, one row per task: as fitted, by folds, short, long, and of alike pairs."""
    rows = []
    for seen, asked in map(halves, tasks):
        pipeline = make().fit(seen.texts)
        row = []
        for cv in (None, 5):
            calibration = calibrate_texts(pipeline, seen.texts, cv=cv, random_state=0)
            p, length = p_of_random_pairs(calibration, asked, n_pairs)
            row += [(p <= 0.05).mean(), (p <= 0.01).mean()]
        order = np.argsort(length, kind="stable")
        row += [(p[part] <= 0.05).mean() for part in (order[: len(order) // 4], order[-(len(order) // 4) :])]
        rows.append([*row, (calibration.pvalue(*map(list, zip(*asked.alike, strict=True))) <= 0.01).mean()])
    return np.array(rows)


def across(make, tasks, n_pairs, level):
    """Shares of random pairs of each kind called similar: calibrated on the first kind, and on the kind asked about."""
    parts = [halves(task) for task in tasks]
    shares = np.empty((2, len(tasks), len(tasks)))
    for i, (seen, _) in enumerate(parts):
        pipeline = make().fit(seen.texts)
        own = calibrate_texts(pipeline, seen.texts, cv=5, random_state=0)
        for j, (other, asked) in enumerate(parts):
            right = own if i == j else calibrate_texts(pipeline, other.texts, random_state=0)
            shares[:, i, j] = [(p_of_random_pairs(c, asked, n_pairs)[0] <= level).mean() for c in (own, right)]
    return shares


def level_table(tasks, n_pairs):
    measures = [
        "as fitted, .05",
        "as fitted, .01",
        "by folds, .05",
        "by folds, .01",
        "by folds, .05, shortest quarter",
        "by folds, .05, longest quarter",
        "rated 4 or more, .01",
    ]
    lines = [f"| | {' | '.join(SYSTEMS)} |", "|---|" + "--:|" * len(SYSTEMS)]
    results = []
    for name, make in SYSTEMS.items():
        print(f"{name} ...", flush=True)
        results.append(within(make, tasks, n_pairs).T)
    for name, rows in zip(measures, zip(*results, strict=True), strict=True):
        lines.append(f"| {name} | {' | '.join(f'{r.mean():.3f} ({r.min():.3f} to {r.max():.3f})' for r in rows)} |")
    return "\n".join(lines)


def cross_table(names, ours, baseline):
    """Shares by kind for the embedding, and the least and greatest of other kinds for both."""
    lines = ["| method | calibrated on | " + " | ".join(names) + " |", "|---|---|" + "--:|" * len(names)]
    method = "**`make_text_embedding`**"
    rows = [(method, name, [f"{share:.3f}" for share in row]) for name, row in zip(names, ours[0], strict=True)]
    for name, shares in ((method, ours), ("cosine of means", baseline)):
        for kind, found in zip(("another kind", "the kind asked about"), shares, strict=True):
            others = [np.delete(found[:, j], j) for j in range(len(names))]
            rows.append((name, kind, [f"{x.min():.3f} to {x.max():.3f}" for x in others]))
    return "\n".join([*lines, *(f"| {name} | {kind} | {' | '.join(cells)} |" for name, kind, cells in rows)])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with sts/STS*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/results/levels"), help="folder of the tables")
    parser.add_argument("--pairs", type=int, default=20_000, help="number of random pairs asked about")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    tasks = read_tasks(options.data / "sts")
    tasks = [task for task in tasks if task.name in KINDS] or tasks
    names = [KINDS.get(task.name, task.name) for task in tasks]
    one_kind = level_table(tasks, options.pairs)
    print("other kinds ...", flush=True)
    ours, baseline = (across(make, tasks, options.pairs, 0.01) for make in (make_text_embedding, cosine_of_means))
    write_results(options.to, {"one_kind": one_kind, "other_kind": cross_table(names, ours, baseline)})


if __name__ == "__main__":
    main()
