"""Pairs of sentences that differ in the order of their words: which methods tell one meaning from two, and the price.

    python benchmarks/order.py --data DIR [--to doc/results/order] [--texts 1500] [--seeds 5]

DIR holds `paws/dev.tsv` (1 for one meaning or 0 for two, sentence, sentence), `sts/STSyy.TASK.tsv` (gold score,
sentence, sentence) and `grouping/*.tsv` (label, text), and may hold folders of static models. The bundled short texts
are measured beside them. All methods are fitted to the texts that they compare.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from encoder import own_encoder
from grouping import TITLES, accuracy_of_neighbors, read_samples
from results import announce, shown, write_results
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sts import correlation, read_pairs, read_tasks
from tfidf import Cosine, content_stems, tf_idf
from vectors import (
    DEFAULT,
    GLOVE,
    default_reader,
    embedding,
    glove_reader,
    installed_models,
    static_models,
    static_reader,
    whitened_mean,
)

from sklearn_mcsg import SIF, MeanVector, WordMoversDistance
from sklearn_mcsg.datasets import load_short_texts

JOBS = 2
ORDERS = (0, 0.5, 1, 1.5, 2)
COMPONENTS = (64, 128, 256, 384, 512, None)
FEWER = (64, 128, 256, None)  # the average has 306
OURS = "embedding, order"
PAWS, STS = "PAWS, AUC", "STS, Spearman"


@dataclass(frozen=True)
class Pairs:
    """Sentences, the left ones before the right ones, and what people say about the pairs."""

    texts: list
    gold: np.ndarray
    agreement: Callable

    def score(self, estimator, groups):
        n = len(self.gold)
        return self.agreement(self.gold, -estimator.fit(groups).paired(groups[:n], groups[n:]))


@dataclass(frozen=True)
class Labelled:
    """A sample of labelled texts."""

    texts: list
    labels: np.ndarray
    seed: int

    def score(self, estimator, groups):
        if isinstance(estimator, WordMoversDistance):
            return np.nan  # minutes for each sample
        distances = np.maximum(estimator.fit(groups).pairwise(groups), 0)
        return accuracy_of_neighbors(distances, self.labels, self.seed)


def read_columns(data, n_texts, seeds):
    """What each column of the tables is measured on."""
    paws, tasks = read_pairs(data / "paws" / "dev.tsv"), read_tasks(data / "sts")
    columns = {
        PAWS: [Pairs(paws.left + paws.right, paws.gold, roc_auc_score)],
        STS: [Pairs(task.left + task.right, task.gold, correlation) for task in tasks],
    }
    for path in sorted((data / "grouping").glob("*.tsv")):
        samples = read_samples(path, n_texts, seeds)
        columns[f"{TITLES.get(path.stem, path.stem).split(',')[0]}, 10-NN"] = [
            Labelled(texts, labels, seed) for seed, (texts, labels) in enumerate(samples)
        ]
    short = load_short_texts()
    return columns | {"Short texts, 10-NN": [Labelled(short.data, short.target, seed) for seed in range(seeds)]}


def measure(methods, reader, columns):
    """Mean scores of each method, one for each column; a pair counts as much as another."""

    def scores(corpus):
        print(f"  {len(corpus.texts):,} texts", flush=True)
        return [corpus.score(estimator, reader(recipe, corpus.texts)) for estimator, recipe in methods.values()]

    means = [
        np.average([scores(corpus) for corpus in corpora], axis=0, weights=[len(corpus.texts) for corpus in corpora])
        for corpora in columns.values()
    ]
    return dict(zip(methods, np.transpose(means), strict=True))


def embeddings(vectors):
    return {f"{OURS} {order}": (embedding(vectors, order), "recipe") for order in ORDERS}


def sections(data):
    """Methods and the reader of their texts, by the name of the vectors."""
    found = {
        "none": (
            {
                "TF-IDF": (tf_idf(), "text"),
                "TF-IDF, up to 2 words": (tf_idf(content_stems, longest=2), "text"),
                "TF-IDF, up to 3 words": (tf_idf(content_stems, longest=3), "text"),
            },
            glove_reader(),
        ),
        "GloVe 6B 50d": (
            {
                "cosine of means": (MeanVector("distance"), "plain"),
                "SIF, 1 component removed": (SIF(1, "distance"), "zipf"),
                "half-whitened mean": (whitened_mean(GLOVE), "recipe"),
                "WMD": (WordMoversDistance(n_jobs=JOBS), "plain"),
                **embeddings(GLOVE),
            },
            glove_reader(),
        ),
    }
    for name, source in {**static_models(data), **installed_models()}.items():
        methods = {
            "its own encoder": (own_encoder(source), "text"),
            "cosine of means": (MeanVector("distance"), "plain"),
            "eighth-whitened mean": (whitened_mean(source, 0.125), "recipe"),
            **embeddings(source),
        }
        found[name] = methods, static_reader(source)
    methods = {
        "cosine of means": (MeanVector("distance"), "plain"),
        "quarter-whitened mean": (whitened_mean(DEFAULT, 0.25), "recipe"),
        **embeddings(DEFAULT),
    }
    return found | {"default": (methods, default_reader())}


def component_methods():
    """Leading components of the default embedding and of baselines; all of them where there are fewer."""

    def leading(estimator, number):
        return Cosine(make_pipeline(estimator, FunctionTransformer(lambda points: points[:, :number])))

    cut = {
        (f"{OURS} 0.5", str(number or "all")): (leading(embedding(DEFAULT, 0.5), number), "recipe")
        for number in COMPONENTS
    }
    average, words = whitened_mean(DEFAULT, 0.25), partial(tf_idf, content_stems, longest=3)
    cut |= {("quarter-whitened mean", str(n or "all")): (leading(average, n), "recipe") for n in FEWER}
    singular = {("TF-IDF, up to 3 words", str(n)): (words(n_components=n), "text") for n in COMPONENTS if n}
    return cut | singular | {("TF-IDF, up to 3 words", "all"): (words(), "text")}


def table(heading, columns, rows):
    """Markdown, with figures by names that may have several parts."""
    lines = [f"| {' | '.join([*heading, *columns])} |", "|---" * len(heading) + "|" + "--:|" * len(columns)]
    for name, values in rows.items():
        cells = ["" if np.isnan(value) else f"{value:.3f}" for value in values]
        lines.append(f"| {' | '.join([*map(shown, name), *cells])} |")
    return "\n".join(lines)


def winners(columns, rows):
    """A line for each column: the best embedding, and the best of the other methods."""
    lines = []
    for i, column in enumerate(columns):
        sides = []
        for ours in (True, False):
            scores = {name: values[i] for name, values in rows.items() if name[1].startswith(OURS) == ours}
            (vectors, method), score = max(scores.items(), key=lambda item: np.nan_to_num(item[1]))
            sides.append((score, f"{shown(method)}{'' if vectors == 'none' else f' ({vectors})'} {score:.3f}"))
        (_, better), (_, worse) = sorted(sides, reverse=True)
        lines.append(f"- {column}: {better}, before {worse}")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with paws, sts and grouping")
    parser.add_argument("--to", type=Path, default=Path("doc/results/order"), help="folder of the tables")
    parser.add_argument("--texts", type=int, default=1500, help="number of labelled texts per sample")
    parser.add_argument("--seeds", type=int, default=5, help="number of samples")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    columns = read_columns(options.data, options.texts, options.seeds)
    rows = {}
    for name, (methods, reader) in sections(options.data).items():
        print(f"{name} ...", flush=True)
        rows |= {(name, method): values for method, values in measure(methods, reader, columns).items()}
    print("components ...", flush=True)
    components = measure(component_methods(), default_reader(), columns)
    tables = {
        "methods": table(["vectors", "method"], columns, rows),
        "best": winners(columns, rows),
        "components": table(["method", "components"], columns, components),
    }
    write_results(options.to, tables)


if __name__ == "__main__":
    main()
