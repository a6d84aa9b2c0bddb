"""Search of texts by the embedding, by words and by both.

    python benchmarks/search.py --data DIR [--to doc/results/search] [--texts 1500] [--seeds 3]

DIR holds `grouping/*.tsv`, with one label and one text per line. It may hold folders of static models; `cranfield`,
with `documents.txt` and `queries.txt`, one per line, and `judgements.tsv`, with the numbers of a query and of a
relevant document on each line; and `known_items/*.tsv`, with one query and the text that it asks for on each line, as
`known_items.py` writes them. The bundled short texts are measured beside them. There are four tasks:

- cranfield: questions and judgements; nDCG of the ten best;
- known items: the mean reciprocal rank of the text that a query asks for;
- rest: the same, where the first two fifths of the words of a text are the query, and the other words the text;
- topic: each text is a query; the share of texts with its label among the ten best.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from encoder import own_encoder
from grouping import TITLES, read_samples
from results import announce, shown, write_results
from scipy.stats import rankdata
from tfidf import content_stems, tf_idf
from vectors import GLOVE, installed_models, static_models

from sklearn_mcsg import TextSearch, make_text_embedding, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text.words import WordIndex, words_of

N_BEST = 10
QUERY_SHARE = 0.4
HALVES = {"chosen on": slice(0, None, 2), "tested on": slice(1, None, 2)}  # of the queries


class Task(NamedTuple):
    """Texts, queries, and a figure for each query; without queries, each text is one and does not find itself."""

    texts: list[str]
    queries: list[str] | None
    figures: Any

    def measure(self, method):
        """The figure of each query, for a method that scores all texts for all queries."""
        scores = np.array(method(self.texts, self.queries), dtype=np.float64)
        if self.queries is None:
            np.fill_diagonal(scores, -np.inf)
        return self.figures(np.argsort(-scores, axis=1, kind="stable"))


def discounted_gains(relevant, order):
    """The nDCG of the best texts of each query, given its relevant texts."""
    gains = 1 / np.log2(2 + np.arange(min(N_BEST, order.shape[1])))
    found = np.array([np.isin(row[:N_BEST], list(own)) for row, own in zip(order, relevant, strict=True)])
    return found @ gains / [gains[: len(own)].sum() for own in relevant]


def reciprocal_ranks(order):
    return 1 / (1 + np.argmax(order == np.arange(len(order))[:, None], axis=1))


def shares_on_topic(labels, order):
    return (labels[order[:, :N_BEST]] == labels[:, None]).mean(axis=1)


# Tasks --------------------------------------------------------------------------------------------------------------


def read_cranfield(folder):
    texts, queries, lines = (
        (folder / name).read_text(encoding="utf8").splitlines()
        for name in ("documents.txt", "queries.txt", "judgements.tsv")
    )
    relevant = [set() for _ in queries]
    for line in lines:
        query, text = map(int, line.split("\t")[:2])
        relevant[query - 1].add(text - 1)
    judged = [i for i, own in enumerate(relevant) if own]
    return Task(texts, [queries[i] for i in judged], partial(discounted_gains, [relevant[i] for i in judged]))


def read_known_items(path):
    lines = [line.split("\t") for line in path.read_text(encoding="utf8").splitlines()]
    return Task([text for _, text in lines], [query for query, _ in lines], reciprocal_ranks)


def divided(texts):
    """Two parts of each text that has enough words."""
    words = [text.split() for text in texts if len(text.split()) >= 5]
    cuts = [round(QUERY_SHARE * len(text)) for text in words]
    parts = [(" ".join(text[:cut]), " ".join(text[cut:])) for text, cut in zip(words, cuts, strict=True)]
    known = [pair for pair in parts if np.diff(words_of(pair).offsets).all()]
    return Task([text for _, text in known], [query for query, _ in known], reciprocal_ranks)


def read_tasks(data, n_texts, seeds):
    """Tasks by title: those with queries that people or books made, and those made from labelled texts, as samples."""
    asked = {}
    if (data / "cranfield").is_dir():
        asked["Cranfield, nDCG"] = read_cranfield(data / "cranfield")
    for path in sorted((data / "known_items").glob("*.tsv")):
        asked[f"{path.stem}, MRR"] = read_known_items(path)
    short = load_short_texts()
    samples = {f"{len(short.data)} short texts, 12 topics": [(short.data, short.target)]}
    for path in sorted((data / "grouping").glob("*.tsv")):
        samples[TITLES.get(path.stem, path.stem)] = read_samples(path, n_texts, seeds)
    made = {}
    for title, drawn in samples.items():
        made[f"topic, {title}"] = [
            Task(texts, None, partial(shares_on_topic, np.asarray(labels))) for texts, labels in drawn
        ]
        made[f"rest, {title}"] = [divided(texts) for texts, _ in drawn]
    return asked, made


# Methods ------------------------------------------------------------------------------------------------------------


def by_search(search):
    """Scores of a search; each query is an example, so that its quotes exclude no text."""

    def scores(texts, queries):
        asked = None if queries is None else [[query] for query in queries]
        found = search.fit(texts).search(asked, len(texts) - (queries is None))
        rows = np.zeros((len(found.indices), len(texts)))
        np.put_along_axis(rows, found.indices, found.scores, axis=1)
        return rows

    return scores


def by_cosine(similarity):
    """Cosines of vectors of texts."""
    return lambda texts, queries: -similarity.fit(texts).pairwise(texts if queries is None else queries, texts)


def by_bm25(language=None):
    """BM25 of stems without stop words, or of words as they are written."""
    return lambda texts, queries: bm25(texts, queries, language)[0]


def bm25(texts, queries, language):
    """Scores, and their unit for each query."""
    index = WordIndex.of(words_of(texts), language)
    asked = index.own_numbers() if queries is None else index.numbers(words_of(queries))
    return index.scores(asked), index.units(asked)


def by_rank(*scorers):
    """Sums of reciprocal ranks by several methods, the usual way to join them (Cormack et al. 2009, k = 60)."""

    return lambda texts, queries: sum(reciprocal(scorer(texts, queries)) for scorer in scorers)


def reciprocal(scores):
    """Reciprocal ranks in each row, where equal scores have the last of their ranks."""
    return 1 / (60 + rankdata(-np.nan_to_num(scores, nan=-np.inf), method="max", axis=1))


def word_methods():
    return {"TF-IDF": by_cosine(tf_idf(content_stems)), "BM25": by_bm25(), "BM25, stems": by_bm25("english")}


def methods(embedding, encoders, whiten):
    """Methods for an embedding and its vectors, beside the own encoders of static models and whitened averages."""
    vectors = embedding[0].vectors
    centered = make_text_similarity(random_state=0, vectors=vectors)
    means = make_text_embedding(vectors=vectors, likelihood="diag", whiten=whiten, spread=0.0)
    average = by_search(TextSearch(means, words=None))
    return {
        "embedding": by_search(TextSearch(embedding, words=None)),
        "centered": by_search(TextSearch(centered, words=None)),
        **{name: by_cosine(own_encoder(source)) for name, source in encoders.items()},
        "whitened mean": average,
        "whitened mean and BM25, by ranks": by_rank(average, by_bm25("english")),
        "**TextSearch**": by_search(TextSearch(embedding)),
    }


def joins():
    """Ways to join the cosines of texts, their BM25 scores and the unit of these."""

    def z(rows):
        deviations = rows - np.nanmean(rows, axis=1, keepdims=True)
        return deviations / np.maximum(np.nanstd(rows, axis=1, keepdims=True), 1e-9)

    def share(scores, units):
        return scores / np.maximum(units, 1e-9)[:, None]

    ways = {
        "BM25, stems": lambda cosines, scores, units: scores,
        "reciprocal ranks": lambda cosines, scores, units: reciprocal(cosines) + reciprocal(scores),
        "embedding": lambda cosines, scores, units: cosines,
    }
    for w in (0.5, 1, 2, 3):
        ways[f"**z(cosine) + {w} z(BM25)**"] = lambda cosines, scores, units, w=w: z(cosines) + w * z(scores)
    for w in (5, 10, 20, 40):
        ways[f"**z(cosine) + {w} s**"] = lambda cosines, scores, units, w=w: z(cosines) + w * share(scores, units)
    for w in (5, 10, 20, 40):
        ways[f"**z(cosine) + {w} s²**"] = lambda cosines, scores, units, w=w: z(cosines) + w * share(scores, units) ** 2
    return ways


def joined(task):
    """Figures of each query for each way to join, for the default vectors; cosines and BM25 are computed once."""
    cosines = by_search(TextSearch(words=None))(task.texts, task.queries)
    scores, units = bm25(task.texts, task.queries, "english")
    if task.queries is None:
        np.fill_diagonal(cosines, np.nan)
        np.fill_diagonal(scores, np.nan)
    return {name: task.measure(lambda *_, join=join: join(cosines, scores, units)) for name, join in joins().items()}


# Page ---------------------------------------------------------------------------------------------------------------


def table(columns, rows):
    lines = [f"| | {' | '.join(map(shown, columns))} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {shown(name)} | {' | '.join(f'{figure:.3f}' for figure in figures)} |" for name, *figures in rows]
    return "\n".join(lines)


def table_of_joins(asked, made):
    """Figures of all ways to join: by halves of the queries where they were chosen, whole elsewhere."""
    columns = {}
    for title, task in asked.items():
        found = joined(task)
        for half, part in HALVES.items():
            columns[f"{title}, {half}"] = {name: values[part].mean() for name, values in found.items()}
    for title, tasks in made.items():
        found = [joined(task) for task in tasks]
        columns[title] = {name: np.mean([values[name].mean() for values in found]) for name in joins()}
    rows = [(name, *(figures[name] for figures in columns.values())) for name in joins()]
    return table(list(columns), rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with grouping/*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/results/search"), help="folder of the tables")
    parser.add_argument("--texts", type=int, default=1500, help="number of texts per sample")
    parser.add_argument("--seeds", type=int, default=3, help="number of samples")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    warnings.filterwarnings("ignore", message=".* have no words")
    asked, made = read_tasks(options.data, options.texts, options.seeds)
    tasks = {**{title: [task] for title, task in asked.items()}, **made}

    def figures(methods):
        """For each task, the mean figure of each method."""
        found = {}
        for title, samples in tasks.items():
            print(f"  {title}", flush=True)
            found[title] = [np.mean([task.measure(method).mean() for task in samples]) for method in methods.values()]
        return found

    sections = {
        "default": methods(
            make_text_embedding(),
            {f"{name}, its own encoder": source for name, source in installed_models().items()},
            whiten=0.25,
        )
    }
    for name, source in static_models(options.data).items():
        embedding = make_text_embedding(vectors=source, likelihood="diag")
        sections[name] = methods(embedding, {"its own encoder": source}, whiten=0.125)
    sections["glove"] = methods(make_text_embedding(vectors=GLOVE, likelihood="diag"), {}, whiten=0.5)
    print("joins ...", flush=True)
    tables = {"joins": table_of_joins(asked, made)}
    by_words = word_methods()
    common = figures(by_words)
    for name, found in sections.items():
        print(f"{name} ...", flush=True)
        values = figures(found)
        tables[name] = table([*by_words, *found], [(title, *common[title], *values[title]) for title in tasks])
    write_results(options.to, tables)


if __name__ == "__main__":
    main()
