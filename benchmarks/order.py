"""Pairs of sentences that differ in the order of their words: which methods tell one meaning from two, and the price.

    python benchmarks/order.py --data DIR [--to doc/order] [--texts 1500] [--seeds 5]

DIR holds `paws/dev.tsv` (1 for one meaning or 0 for two, sentence, sentence), `sts/STSyy.TASK.tsv` (gold score,
sentence, sentence) and `grouping/*.tsv` (label, text), and may hold folders of static models. The bundled short texts
are measured beside them. All methods are fitted to the texts that they compare.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from encoder import own_encoder
from grouping import TITLES, accuracy_of_neighbors, read_samples
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sts import correlation, read_pairs, read_tasks
from tfidf import Cosine, content_stems, tf_idf
from vectors import (
    DEFAULT,
    DEFAULT_NAME,
    GLOVE,
    default_reader,
    embedding,
    glove_reader,
    installed_models,
    static_models,
    static_reader,
)

from sklearn_mcsg import SIF, MeanVector, WordMoversDistance
from sklearn_mcsg.datasets import load_short_texts

JOBS = 2
ORDERS = (0, 0.5, 1, 1.5, 2)
COMPONENTS = (64, 128, 256, 384, 512, None)
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
            **embeddings(source),
        }
        found[name] = methods, static_reader(source)
    methods = {"cosine of means": (MeanVector("distance"), "plain"), **embeddings(DEFAULT)}
    return found | {"default": (methods, default_reader())}


def component_methods():
    """The default embedding, cut to its leading components; all of them where there are fewer."""

    def leading(number):
        return make_pipeline(embedding(DEFAULT, 0.5), FunctionTransformer(lambda points: points[:, :number]))

    return {str(number or "all"): (Cosine(leading(number)), "recipe") for number in COMPONENTS}


def table(heading, columns, rows):
    """Markdown, with the best figure of each column in bold."""
    shown = {name: ["" if np.isnan(value) else f"{value:.3f}" for value in values] for name, values in rows.items()}
    best = [max(column) for column in zip(*shown.values(), strict=True)]
    lines = [f"| {' | '.join([*heading, *columns])} |", "|---" * len(heading) + "|" + "--:|" * len(columns)]
    for name, cells in shown.items():
        marked = [f"**{cell}**" if cell == top else cell for cell, top in zip(cells, best, strict=True)]
        lines.append(f"| {' | '.join([*name, *marked])} |")
    return "\n".join(lines)


def winners(columns, rows):
    """A line for each column: the best embedding, and the best of the other methods."""
    lines = []
    for i, column in enumerate(columns):
        sides = []
        for ours in (True, False):
            scores = {name: values[i] for name, values in rows.items() if name[1].startswith(OURS) == ours}
            (vectors, method), score = max(scores.items(), key=lambda item: np.nan_to_num(item[1]))
            sides.append((score, f"{method}{'' if vectors == 'none' else f' ({vectors})'} {score:.3f}"))
        (_, better), (_, worse) = sorted(sides, reverse=True)
        lines.append(f"- {column}: {better}, before {worse}")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with paws, sts and grouping")
    parser.add_argument("--to", type=Path, default=Path("doc/order"), help="path of the .md file, without suffix")
    parser.add_argument("--texts", type=int, default=1500, help="number of labelled texts per sample")
    parser.add_argument("--seeds", type=int, default=5, help="number of samples")
    options = parser.parse_args(arguments)
    columns = read_columns(options.data, options.texts, options.seeds)
    rows = {}
    for name, (methods, reader) in sections(options.data).items():
        print(f"{name} ...", flush=True)
        rows |= {(name, method): values for method, values in measure(methods, reader, columns).items()}
    components = {(n,): values for n, values in measure(component_methods(), default_reader(), columns).items()}
    gold = columns[PAWS][0].gold
    parts = [
        "# Order",
        f"{len(gold):,} pairs of sentences (PAWS-Wiki) of nearly the same words, often in another order; "
        f"{np.mean(gold):.0%} of them have one meaning. The figure is the area under the ROC curve: how often a pair "
        "of one meaning is nearer than a pair of two, where 0.5 is chance. The other columns say what a method is "
        "worth elsewhere: Spearman's correlation with human ratings on STS 2012 to 2016, weighted by pairs, and the "
        f"accuracy of 10 nearest neighbours on labelled texts (samples of {options.texts}, mean over {options.seeds}). "
        f"The default vectors are {DEFAULT_NAME}. Every method is fitted to the texts that it compares. TF-IDF is of "
        "stems, without stop words where it counts sequences. Neighbours by WMD would take an hour and are left out.",
        table(["vectors", "method"], columns, rows),
        "A bag of words is nearly the same for both sentences of a pair, whatever they mean. Means of vectors, SIF, "
        "the encoders of static models, WMD and TF-IDF of single words see bags, so no weights and no better vectors "
        "lift them clear of chance, and neither does the embedding at order 0. The factor `order` weighs how the words "
        "change from the beginning of a text to its end: more of it tells more pairs apart, and costs more where order "
        "does not matter. TF-IDF sees order if it counts sequences of words. It then needs the very same words, which "
        "these pairs have and the sentences of STS do not.",
        f"The best embedding and the best of the other methods, by column:\n\n{winners(columns, rows)}",
        f"`make_text_embedding` uses order 0.5, at which little is lost elsewhere. On these pairs it has "
        f"{rows['default', f'{OURS} 0.5'][0]:.3f}, and TF-IDF of up to 3 words "
        f"{rows['none', 'TF-IDF, up to 3 words'][0]:.3f}: whoever looks for changed places of words in nearly equal "
        "sentences should raise `order` or count sequences.",
        "## Components\n\nThe default vectors at order 0.5, cut to the leading components. Meaning is in the first "
        "ones, order in all.",
        table(["components"], columns, components),
        "Written by `make paper`.",
    ]
    text = "\n\n".join(parts) + "\n"
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
