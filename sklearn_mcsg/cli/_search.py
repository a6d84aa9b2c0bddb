"""mcsg search: the texts of a corpus that match each query best, and why."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus
from sklearn_mcsg.cli._shared import (
    check_criterion,
    count,
    distinct,
    make_embedding,
    make_pipeline,
    only_with_words,
    open_corpus,
    open_other,
    tell,
    tell_if_unknown,
)
from sklearn_mcsg.text import Queries, TextHits, TextSearch, TokenisedTexts, update_index
from sklearn_mcsg.text.language import check_language
from sklearn_mcsg.text.words import phrases_in

_N_PAIRS = 4  # pairs of words that say why a text was found


class _Query(NamedTuple):
    """A query, and what must occur in the texts that it finds."""

    name: str
    texts: list[str]
    phrases: list[str]


def run(options: argparse.Namespace) -> None:
    """Search a corpus."""
    _check(options)
    asked = _queries(options)
    _check_order(options)
    corpus = open_corpus(options, options.corpus, keep_columns=options.format != "table")
    texts = TokenisedTexts.of(corpus.texts)
    search = _fitted(options, corpus, texts)
    names, queries = _with_words(options, search, asked)
    found = _find(search, queries, options, corpus.texts if options.format == "table" else None)
    reasons = None if options.exact else _reasons(search, queries, texts, found.indices)
    hits = _hits(corpus, names, found, reasons, as_json=options.format == "json")
    why = [*([] if search.words is None else ["score", "bm25"]), *([] if options.exact else ["why"])]
    place = ["query", "rank", "distance", *(["pvalue"] if options.pvalue else []), "line"]
    fields = list(corpus.record(0, dict.fromkeys(place), dict.fromkeys(why)))
    terminal.show_records(
        hits, options.format, lambda hits: _show(hits, search.words, options.exact, len(search.known_)), fields
    )


def _find(search: TextSearch, queries: Queries, options: argparse.Namespace, texts: Sequence[str] | None) -> TextHits:
    """The best texts for each query; given all texts, a text that occurs several times is found once."""
    n, top = len(search.known_), options.top
    k = min(top, n)
    found = search.search(queries, k, return_pvalue=options.pvalue)
    while texts is not None:
        rows = [distinct([texts[i] for i in row], np.flatnonzero(row >= 0).tolist(), top) for row in found.indices]
        if k == n or all(len(ranks) == top or -1 in row for ranks, row in zip(rows, found.indices, strict=True)):
            return _with_ranks(found, rows)
        k = min(n, 4 * k)
        found = search.search(queries, k, return_pvalue=options.pvalue)
    return found


def _with_ranks(found: TextHits, rows: list[list[int]]) -> TextHits:
    """The hits of each query at some ranks; behind the last one, nothing is found."""
    width = max(1, *map(len, rows))
    ranks = np.array([row + [0] * (width - len(row)) for row in rows], dtype=int).reshape(len(rows), width)
    taken: Any = [None if x is None else np.take_along_axis(x, ranks, axis=1) for x in found]
    taken[0][np.arange(width) >= np.array(list(map(len, rows)))[:, None]] = -1
    return TextHits(*taken)


def _hits(
    corpus: Corpus, names: list[str], found: TextHits, reasons: list[list[str]] | None, as_json: bool
) -> Iterator[dict[str, Any]]:
    """A record of each text that was found."""
    for row, rank in np.argwhere(found.indices >= 0).tolist():
        i = found.indices[row, rank]
        place = {"query": names[row], "rank": rank + 1, "distance": float(found.distances[row, rank])}
        if found.pvalues is not None:
            place["pvalue"] = float(found.pvalues[row, rank])
        place["line"] = corpus.lines[i]
        why: dict[str, Any] = {}
        if found.word_scores is not None:
            why |= {"score": float(found.scores[row, rank]), "bm25": float(found.word_scores[row, rank])}
        if reasons is not None:
            why["why"] = reasons[row][rank]
        yield corpus.record(i, place, why, as_json=as_json)


def _check(options: argparse.Namespace) -> None:
    """Raise if options are given that would have no effect."""
    if options.exact and options.words is not None:
        raise ValueError("--words has no effect with --exact: leave one of them out.")
    if options.language is not None and (options.exact or options.words == "none"):
        raise ValueError("--language has no effect with --exact or --words none: leave one of them out.")
    if options.language not in (None, "none"):
        check_language(options.language)
    check_criterion(options)


def _check_order(options: argparse.Namespace) -> None:
    """Raise if a query seems to be the corpus."""
    if options.corpus == "-" or os.path.exists(options.corpus):
        return
    for text in options.queries or []:
        if os.path.isfile(text):  # which is false for a text too long to be a name
            raise ValueError(
                f"There is no file {options.corpus}, but a file {text}: the corpus comes before the queries."
            )


def _queries(options: argparse.Namespace) -> list[_Query]:
    """The queries; only those that were typed have phrases."""
    queries = [_Query(text, [text], phrases_in(text)) for text in options.queries or []]
    if options.like is not None:
        queries.append(_Query(f"like {options.like}", open_other(options, options.like).texts, []))
    if not options.together:
        return queries
    names, texts, phrases = zip(*queries, strict=True)
    return [_Query(" + ".join(names), list(chain.from_iterable(texts)), list(chain.from_iterable(phrases)))]


def _fitted(options: argparse.Namespace, corpus: Corpus, texts: TokenisedTexts) -> TextSearch:
    """The search of a corpus, from the saved index if there is one."""
    make = make_pipeline if options.exact else make_embedding
    params: Any = {"words": None} if options.exact or options.words == "none" else {}
    if options.words not in (None, "none"):
        params["words"] = options.words
    if options.language is not None:
        params["language"] = None if options.language == "none" else options.language
    jobs: Any = {"n_jobs": options.jobs, "verbose": not options.quiet}
    if options.index is None:
        search = TextSearch(make(options), **params, **jobs).fit(texts)
    else:  # which does not depend on the number of jobs
        search = TextSearch(make(options, n_jobs=None, verbose=0), **params)
        search, n_reused, replaced = update_index(options.index, search, texts, **jobs)
        if replaced:
            tell(options, "The saved index was made from another corpus or with other settings and has been replaced.")
        elif 0 < n_reused < len(texts):
            tell(options, f"The index had {count(n_reused, 'text')}; the new ones were added.")
    known = np.isin(np.arange(len(corpus.texts)), search.known_)
    only_with_words(options, corpus, known, search.vectorizer_[0])
    return search


def _with_words(options: argparse.Namespace, search: TextSearch, asked: list[_Query]) -> tuple[list[str], Queries]:
    """Names of the queries that have words, and the queries; a note names the others."""
    names = [query.name for query in asked]
    queries = replace(Queries.of([query.texts for query in asked]), phrases=[query.phrases for query in asked])
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
    shown, places = np.unique(np.maximum(found, 0), return_inverse=True)
    asked, groups = search.look_up(queries), search.look_up(texts[shown])
    places = places.reshape(found.shape)

    def reason(row: int, rank: int) -> str:
        explanation = search.explain(asked[[row]], groups[[places[row, rank]]])
        return terminal.word_pairs(explanation.strongest(_N_PAIRS))

    n_found = (found >= 0).sum(axis=1)
    return [[reason(row, rank) for rank in range(n)] for row, n in enumerate(n_found)]


def _show(hits: Sequence[dict[str, Any]], words: float | None, exact: bool, n_texts: int) -> None:
    if not hits:
        return
    pvalue = ["pvalue"] if "pvalue" in hits[0] else []
    names = [*(["score"] if words else []), "distance", *pvalue, "line"]
    widths = [max(len(name), *(len(_cell(hit, name)) for hit in hits)) for name in names]
    room = 2 + sum(widths) + 2 * len(widths)
    for hit in hits:
        if hit["rank"] == 1:
            gap = "" if hit is hits[0] else "\n"
            print(gap + terminal.bold(terminal.shortened(hit["query"], terminal.width())))
            print(terminal.faint("  " + "  ".join(map(str.rjust, names, widths))))
        cells = "  ".join(_cell(hit, name).rjust(width) for name, width in zip(names, widths, strict=True))
        print(f"  {cells}  {terminal.shortened(hit['text'], terminal.width() - room)}")
        if hit.get("why"):
            print(" " * room + terminal.faint(terminal.shortened(hit["why"], terminal.width() - room)))
    distance = "of the model comparison, centred" if exact else "1 minus the cosine of the embeddings"
    print(terminal.faint(f"\nDistance: {distance}."))
    if pvalue:
        near = "share of random pairs of a query and a text, of similar length, that are at least as near"
        print(terminal.faint(f"P-value: {near}; by chance, the nearest of {n_texts:,} texts has {1 / n_texts:.2g}."))
    if words:
        counted = f"about {words:g} if an average text has each word of the query once, {words / 4:g} if it has half"
        print(terminal.faint(f"Score: standard deviations of the cosine above its mean, plus BM25: {counted} of them."))


def _cell(hit: dict[str, Any], name: str) -> str:
    return f"{hit[name]:.4f}" if name == "pvalue" else terminal.cell(hit[name])
