"""mcsg search: the texts of a corpus nearest to each query."""

from __future__ import annotations

import argparse
from typing import Any

from sklearn_mcsg.cli import terminal
from sklearn_mcsg.cli.shared import KnownTexts, count, make_pipeline, quiet_about_empty_texts, read_texts, tell
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.neighbors import GroupNeighbors
from sklearn_mcsg.text import update_index


def run(options: argparse.Namespace) -> None:
    """Search a corpus."""
    known = read_texts(options, options.corpus)
    texts, queries = _with_words(options, known)
    n_neighbors = min(options.top, len(known.corpus.texts))
    if options.index is None:
        similarity = make_pipeline(options)[-1]
        index = GroupNeighbors(similarity, n_jobs=options.jobs, verbose=not options.quiet).fit(known.groups)
        distances, places = index.kneighbors(queries, n_neighbors=n_neighbors)
    else:
        distances, places = _saved_index(options, known).kneighbors(texts, n_neighbors=n_neighbors)
    corpus, lines = known.corpus.texts, known.corpus.lines
    hits = [
        {"query": query, "rank": rank, "distance": float(distance), "line": lines[i], "text": corpus[i]}
        for query, near, found in zip(texts, distances, places, strict=True)
        for rank, (distance, i) in enumerate(zip(near, found, strict=True), start=1)
    ]
    terminal.show_records(hits, options.format, lambda: _show(hits))


def _with_words(options: argparse.Namespace, known: KnownTexts) -> tuple[list[str], Groups]:
    """The queries that have words, as texts and as groups; a note names the others."""
    with quiet_about_empty_texts():
        groups = known.vectorizer.transform(options.queries)
    texts = []
    for query, size in zip(options.queries, groups.sizes, strict=True):
        if size:
            texts.append(query)
        else:
            tell(options, f"The query {query!r} has no words: nothing to search for.")
    if not texts:
        raise ValueError("No query has a word: give at least one that has.")
    return texts, groups[groups.sizes > 0]


def _saved_index(options: argparse.Namespace, known: KnownTexts) -> GroupNeighbors:
    """The saved index of a corpus, up to date."""
    jobs = {"n_jobs": options.jobs, "verbose": not options.quiet}
    # the index does not depend on the number of jobs
    update = update_index(options.index, make_pipeline(options, n_jobs=None, verbose=0), known.corpus.texts, **jobs)
    if update.replaced:
        tell(options, "The saved index was made from another corpus or with other settings and has been replaced.")
    elif 0 < update.n_reused < len(known.corpus.texts):
        tell(options, f"The index had {count(update.n_reused, 'text')}; the new ones were added.")
    return update.index


def _show(hits: list[dict[str, Any]]) -> None:
    digits = max(len(str(hit["line"])) for hit in hits)
    for hit in hits:
        if hit["rank"] == 1:
            gap = "" if hit is hits[0] else "\n"
            print(gap + terminal.bold(terminal.shortened(hit["query"], terminal.width())))
        text = terminal.shortened(hit["text"], terminal.width() - digits - 12)
        line = terminal.faint(str(hit["line"]).rjust(digits))
        print(f"  {hit['distance']:6.3f}  {line}  {text}")
