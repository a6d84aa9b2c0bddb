"""Search of labelled short texts by the embedding, by BM25 and by both.

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
from grouping import TITLES, read

from sklearn_mcsg import TextSearch, make_text_embedding, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text.words import words_of

N_BEST = 10
QUERY_SHARE = 0.4
BM25, BOTH, SHARE = "BM25", "embedding + BM25, z-scores", "embedding + BM25, share"
COLUMNS = ["embedding", "centered", BM25, BOTH, SHARE]


def methods(embedding):
    return {
        "embedding": TextSearch(embedding, words=None),
        "centered": TextSearch(make_text_similarity(random_state=0, vectors=embedding[0].vectors), words=None),
        BOTH: TextSearch(embedding),
        SHARE: TextSearch(embedding, words="share"),
    }


def share_on_topic(indices, labels):
    return np.mean(labels[indices[:, :N_BEST]] == labels[:, None])


def reciprocal_rank(indices):
    return np.mean(1 / (1 + np.argmax(indices == np.arange(len(indices))[:, None], axis=1)))


def by_words(search, queries):
    """Indices of the texts by BM25 alone; a text is not found by itself if there are no queries."""
    index = search.words_
    scores = index.scores(index.own_numbers() if queries is None else index.numbers(words_of(queries)))
    if queries is None:
        np.fill_diagonal(scores, -1)
    return np.argsort(-scores, axis=1, kind="stable")


def divided(texts):
    """Two parts of each text that has enough words."""
    words = [text.split() for text in texts if len(text.split()) >= 5]
    cuts = [round(QUERY_SHARE * len(text)) for text in words]
    parts = [(" ".join(text[:cut]), " ".join(text[cut:])) for text, cut in zip(words, cuts, strict=True)]
    known = [pair for pair in parts if np.diff(words_of(pair).offsets).all()]
    return [query for query, _ in known], [text for _, text in known]


def measure(texts, labels, embedding):
    """Share on topic and mean reciprocal rank of each method."""
    known = np.diff(words_of(texts).offsets) > 0
    texts, labels = np.asarray(texts, dtype=object)[known].tolist(), np.asarray(labels)[known]
    queries, rests = divided(texts)
    result = {}
    for name, search in methods(embedding).items():
        search.fit(texts)
        on_topic = share_on_topic(search.search(n_neighbors=N_BEST).indices, labels)
        words_on_topic = by_words(search, None) if name == BOTH else None
        search.fit(rests)
        result[name] = on_topic, reciprocal_rank(search.search(queries, len(rests)).indices)
        if name == BOTH:
            result[BM25] = share_on_topic(words_on_topic, labels), reciprocal_rank(by_words(search, queries))
    return [result[name] for name in COLUMNS]


def table(rows):
    """Markdown, with the best figure of each row in bold."""
    lines = [f"| | {' | '.join(COLUMNS)} |", f"|---|{'--:|' * len(COLUMNS)}"]
    for name, values in rows:
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
        labels, texts = read(path)
        orders = (np.random.default_rng(seed).permutation(len(texts))[: options.texts] for seed in range(options.seeds))
        samples[TITLES.get(path.stem, path.stem)] = [(texts[order], labels[order]) for order in orders]
    embeddings = {"GloVe 6B 50d": make_text_embedding()}
    for model in sorted(options.data.glob("*/tokenizer.json")):
        embeddings[f"The static model {model.parent.name}"] = make_text_embedding(vectors=str(model.parent))
    parts = [
        "# Searching short texts",
        f"Samples of {options.texts} texts, mean over {options.seeds} samples. Topic: each text is a query, and the "
        f"figure is the share of texts with its label among the {N_BEST} best. Rest: the first two fifths of a text "
        "are the query, and the figure is the mean reciprocal rank of the remaining words among those of all texts.",
    ]
    for name, embedding in embeddings.items():
        rows = []
        for title, drawn in samples.items():
            values = np.mean([measure(texts, labels, embedding) for texts, labels in drawn], axis=0)
            rows += [(f"topic, {title}", values[:, 0]), (f"rest, {title}", values[:, 1])]
        parts.append(f"## {name}\n\n{table(rows)}")
    options.to.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
