"""Search of labelled short texts by the embedding, by words and by both.

    python benchmarks/search.py --data DIR [--to doc/search] [--texts 1500] [--seeds 3]

DIR holds `grouping/*.tsv`, with one label and one text per line, and may hold folders of static models. The bundled
short texts are measured beside them. There are two tasks:

- topic: each text is a query; the share of texts with its label among the ten best;
- rest: the first two fifths of the words of each text are a query, the other words a text; the mean reciprocal rank of
  the text that continues the query.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from encoder import own_encoder
from grouping import TITLES, read_samples
from tfidf import content_stems, tf_idf
from vectors import DEFAULT_NAME, GLOVE, installed_models, static_models

from sklearn_mcsg import TextSearch, make_text_embedding, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text.words import WordIndex, words_of

N_BEST = 10
QUERY_SHARE = 0.4


def by_search(search):
    """Rank by an index of texts."""

    def rank(texts, queries=None):
        n_best = N_BEST if queries is None else len(texts)
        return search.fit(texts).search(queries, n_best).indices

    return rank


def by_cosine(similarity):
    """Rank by the cosine of vectors of texts."""

    def rank(texts, queries=None):
        return ranked(-similarity.fit(texts).pairwise(texts if queries is None else queries, texts), queries)

    return rank


def by_bm25(tokenizer=None):
    """Rank by the words that texts have in common."""

    def rank(texts, queries=None):
        index = WordIndex.of(words_of(texts, tokenizer))
        asked = index.own_numbers() if queries is None else index.numbers(words_of(queries, tokenizer))
        return ranked(index.scores(asked), queries)

    return rank


def ranked(scores, queries):
    """Indices of the texts, the best first; a text is not found by itself if there are no queries."""
    if queries is None:
        np.fill_diagonal(scores, -np.inf)
    return np.argsort(-scores, axis=1, kind="stable")


def word_methods():
    return {
        "TF-IDF": by_cosine(tf_idf(content_stems)),
        "BM25": by_bm25(),
        "BM25, stems": by_bm25(content_stems),
    }


def methods(embedding, encoders):
    """Methods for an embedding and its vectors, beside the own encoders of static models."""
    centered = make_text_similarity(random_state=0, vectors=embedding[0].vectors)
    return {
        "embedding": by_search(TextSearch(embedding, words=None)),
        "centered": by_search(TextSearch(centered, words=None)),
        **{name: by_cosine(own_encoder(source)) for name, source in encoders.items()},
        "embedding + BM25, z-scores": by_search(TextSearch(embedding)),
        "embedding + BM25, share": by_search(TextSearch(embedding, words="share")),
    }


def share_on_topic(indices, labels):
    return np.mean(labels[indices[:, :N_BEST]] == labels[:, None])


def reciprocal_rank(indices):
    return np.mean(1 / (1 + np.argmax(indices == np.arange(len(indices))[:, None], axis=1)))


def divided(texts):
    """Two parts of each text that has enough words."""
    words = [text.split() for text in texts if len(text.split()) >= 5]
    cuts = [round(QUERY_SHARE * len(text)) for text in words]
    parts = [(" ".join(text[:cut]), " ".join(text[cut:])) for text, cut in zip(words, cuts, strict=True)]
    known = [pair for pair in parts if np.diff(words_of(pair).offsets).all()]
    return [query for query, _ in known], [text for _, text in known]


def measure(rank, samples):
    """Share on topic and mean reciprocal rank, over samples."""
    figures = []
    for texts, labels in samples:
        queries, rests = divided(texts)
        figures.append((share_on_topic(rank(texts), labels), reciprocal_rank(rank(rests, queries))))
    return np.mean(figures, axis=0)


def table(columns, rows):
    """Markdown, with the best figure of each row in bold."""
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for name, *values in rows:
        shown = [f"{value:.3f}" for value in values]
        best = max(shown)
        lines.append(f"| {name} | {' | '.join(f'**{s}**' if s == best else s for s in shown)} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with grouping/*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/search"), help="path of the .md file, without suffix")
    parser.add_argument("--texts", type=int, default=1500, help="number of texts per sample")
    parser.add_argument("--seeds", type=int, default=3, help="number of samples")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", message=".* have no words")
    short = load_short_texts()
    samples = {f"{len(short.data)} short texts, 12 topics": [(short.data, short.target)]}
    for path in sorted((options.data / "grouping").glob("*.tsv")):
        samples[TITLES.get(path.stem, path.stem)] = read_samples(path, options.texts, options.seeds)

    def figures(methods):
        """For each sample, one row of both figures for each method."""
        return {
            title: np.array([measure(rank, drawn) for rank in methods.values()]) for title, drawn in samples.items()
        }

    sections = {"GloVe 6B 50d": methods(make_text_embedding(vectors=GLOVE, likelihood="diag"), {})}
    for name, source in static_models(options.data).items():
        embedding = make_text_embedding(vectors=source, likelihood="diag")
        sections[f"The static model {name}"] = methods(embedding, {"its own encoder": source})
    encoders = {f"{name}, its own encoder": source for name, source in installed_models().items()}
    sections[f"The default vectors, {DEFAULT_NAME}"] = methods(make_text_embedding(), encoders)
    by_words = word_methods()
    common = figures(by_words)
    parts = [
        "# Searching short texts",
        f"Samples of {options.texts} texts, mean over {options.seeds} samples. Topic: each text is a query, and the "
        f"figure is the share of texts with its label among the {N_BEST} best. Rest: the first two fifths of a text "
        "are the query, and the figure is the mean reciprocal rank of the remaining words among those of all texts. "
        "TF-IDF, which is sublinear, and the second BM25 are of stems (English Snowball) without stop words.",
    ]
    for name, found in sections.items():
        print(f"{name} ...", flush=True)
        rows = []
        for title, values in figures(found).items():
            topic, rest = np.concatenate([common[title], values]).T
            rows += [(f"topic, {title}", *topic), (f"rest, {title}", *rest)]
        parts.append(f"## {name}\n\n{table([*by_words, *found], rows)}")
    options.to.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
