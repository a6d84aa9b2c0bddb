"""mcsg search: the texts of a corpus that match each query best, and why."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus, is_table, read_corpus
from sklearn_mcsg.cli._shared import (
    count,
    make_embedding,
    make_pipeline,
    only_with_words,
    open_corpus,
    tell,
    tell_if_unknown,
)
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.text import Queries, TextHits, TextSearch, TokenisedTexts, update_index

_DEFAULT_WORDS = "z-score"
_SCORES = {
    "z-score": "how many standard deviations cosine and word match (BM25) lie above the corpus average, added up",
    "share": "the cosine, plus twice the share of the query's words that the text has, weighted by rarity (BM25)",
}
_N_PAIRS = 4  # pairs of words that say why a text was found


def run(options: argparse.Namespace) -> None:
    """Search a corpus."""
    _check(options)
    named = _queries(options)
    _check_order(options)
    corpus = open_corpus(options, options.corpus, keep_columns=options.format == "csv")
    texts = TokenisedTexts.of(corpus.texts)
    search = _fitted(options, corpus, texts)
    names, queries = _with_words(options, search, named)
    found = search.search(queries, min(options.top, len(search.known_)))
    reasons = None if options.exact else _reasons(search, queries, texts, found.indices)
    hits = _hits(corpus, names, found, reasons)
    terminal.show_records(hits, options.format, lambda hits: _show(hits, search.words, options.exact))


def _hits(
    corpus: Corpus, names: list[str], found: TextHits, reasons: list[list[str]] | None
) -> Iterator[dict[str, Any]]:
    """A record of each text that was found."""
    for row, name in enumerate(names):
        for rank, i in enumerate(found.indices[row]):
            distance = float(found.distances[row, rank])
            place = {"query": name, "rank": rank + 1, "distance": distance, "line": corpus.lines[i]}
            why: dict[str, Any] = {}
            if found.word_scores is not None:
                why |= {"score": float(found.scores[row, rank]), "bm25": float(found.word_scores[row, rank])}
            if reasons is not None:
                why["why"] = reasons[row][rank]
            yield corpus.record(i, place, why)


def _check(options: argparse.Namespace) -> None:
    """Raise if options are given that would have no effect."""
    if options.exact and options.words is not None:
        raise ValueError("--words is for the search by embedding: leave it or --exact out.")
    if not options.exact and options.criterion != next(iter(CRITERIA)):
        raise ValueError("--criterion is for exact comparisons: add --exact.")


def _check_order(options: argparse.Namespace) -> None:
    """Raise if a query seems to be the corpus."""
    if options.corpus == "-" or os.path.exists(options.corpus):
        return
    for text in options.queries or []:
        if os.path.isfile(text):  # which is false for a text too long to be a name
            raise ValueError(
                f"There is no file {options.corpus}, but a file {text}: the corpus comes before the queries."
            )


def _queries(options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """Names and texts of the queries."""
    queries = [(text, [text]) for text in options.queries or []]
    if options.like is not None:
        examples = read_corpus(options.like, options.column if is_table(options.like) else None)
        queries.append((f"like {options.like}", examples.texts))
    if not options.together:
        return queries
    return [(" + ".join(name for name, _ in queries), [text for _, texts in queries for text in texts])]


def _fitted(options: argparse.Namespace, corpus: Corpus, texts: TokenisedTexts) -> TextSearch:
    """The search of a corpus, from the saved index if there is one."""
    make = make_pipeline if options.exact else make_embedding
    words = None if options.exact or options.words == "none" else options.words or _DEFAULT_WORDS
    jobs: Any = {"n_jobs": options.jobs, "verbose": not options.quiet}
    if options.index is None:
        search = TextSearch(make(options), words=words, **jobs).fit(texts)
    else:  # which does not depend on the number of jobs
        search = TextSearch(make(options, n_jobs=None, verbose=0), words=words)
        search, n_reused, replaced = update_index(options.index, search, texts, **jobs)
        if replaced:
            tell(options, "The saved index was made from another corpus or with other settings and has been replaced.")
        elif 0 < n_reused < len(texts):
            tell(options, f"The index had {count(n_reused, 'text')}; the new ones were added.")
    known = np.isin(np.arange(len(corpus.texts)), search.known_)
    only_with_words(options, corpus, known, search.vectorizer_[0])
    return search


def _with_words(
    options: argparse.Namespace, search: TextSearch, named: list[tuple[str, list[str]]]
) -> tuple[list[str], Queries]:
    """Names of the queries that have words, and the queries; a note names the others."""
    names = [name for name, _ in named]
    queries = Queries.of([texts for _, texts in named])
    has_words = search.look_up(queries).sizes > 0
    for i, name in enumerate(names):
        if not has_words[i]:
            tell(options, f"The query {name!r} has no words: nothing to search for.")
        else:
            tell_if_unknown(options, search.vectorizer_[0], f"the query {name!r}", queries.texts_of(i))
    if not has_words.any():
        raise ValueError("No query has a word: give at least one that has.")
    return [name for name, has in zip(names, has_words, strict=True) if has], queries[has_words]


def _reasons(search: TextSearch, queries: Queries, texts: TokenisedTexts, found: np.ndarray) -> list[list[str]]:
    """The pairs of words that say why each query found its texts."""
    shown, places = np.unique(found, return_inverse=True)
    asked, groups = search.look_up(queries), search.look_up(texts[shown])
    return [
        [terminal.word_pairs(search.explain(asked[[row]], groups[[place]]).strongest(_N_PAIRS)) for place in own]
        for row, own in enumerate(places.reshape(found.shape))
    ]


def _show(hits: Sequence[dict[str, Any]], words: str | None, exact: bool) -> None:
    names = ["score", "distance", "line"] if words else ["distance", "line"]
    widths = [max(len(name), *(len(terminal.cell(hit[name])) for hit in hits)) for name in names]
    room = 2 + sum(widths) + 2 * len(widths)
    for hit in hits:
        if hit["rank"] == 1:
            gap = "" if hit is hits[0] else "\n"
            print(gap + terminal.bold(terminal.shortened(hit["query"], terminal.width())))
            print(terminal.faint("  " + "  ".join(map(str.rjust, names, widths))))
        cells = "  ".join(terminal.cell(hit[name]).rjust(width) for name, width in zip(names, widths, strict=True))
        print(f"  {cells}  {terminal.shortened(hit['text'], terminal.width() - room)}")
        if hit.get("why"):
            print(" " * room + terminal.faint(terminal.shortened(hit["why"], terminal.width() - room)))
    distance = "of the model comparison, centred" if exact else "1 minus the cosine of the embeddings"
    print(terminal.faint(f"\nDistance: {distance}."))
    if words:
        print(terminal.faint(f"Score: {_SCORES[words]}."))
