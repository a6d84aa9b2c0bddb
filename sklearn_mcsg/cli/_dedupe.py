"""mcsg dedupe: find sets of near-duplicate texts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus
from sklearn_mcsg.cli._shared import count, make_embedding, open_corpus, open_other, tell, tell_coverage, tell_if_few
from sklearn_mcsg.text import TokenisedTexts, find_duplicate_texts

_NARROWEST = 20  # characters of a text beside a long file name


def run(options: argparse.Namespace) -> None:
    """Find near-duplicates in a corpus, or texts of a corpus that another one has, too."""
    if options.against_column is not None and options.against is None:
        raise ValueError("--against-column is for the file of --against: give both, or leave it out.")
    by_words_alone = options.threshold is None and options.level is None
    if by_words_alone and (options.likelihood is not None or options.weighting is not None):
        raise ValueError("--likelihood and --weighting are for embeddings: add --threshold or --level.")
    corpus = open_corpus(options, options.corpus, keep_columns=options.format != "table")
    other = None if options.against is None else open_other(options, options.against, options.against_column)
    texts = TokenisedTexts.of(corpus.texts)
    pipeline = make_embedding(options)
    if not by_words_alone:
        tell_if_few(options, len(texts))
        vectorizer = pipeline[0].fit(texts)
        tell_coverage(options, vectorizer, vectorizer.oov_rate_)
    settings: Any = {
        "overlap": options.overlap,
        "threshold": options.threshold,
        "level": options.level,
        "pipeline": pipeline,
        "n_jobs": options.jobs,
        "verbose": not options.quiet,
    }
    if other is None:
        _show_duplicates(options, corpus, find_duplicate_texts(texts, **settings))
    else:
        _show_matches(options, corpus, other, find_duplicate_texts(texts, against=other.texts, **settings))


def _show_duplicates(options: argparse.Namespace, corpus: Corpus, sets: list[np.ndarray]) -> None:
    extra = {int(i) for members in sets for i in members[1:]}
    if options.unique:
        _show_unique(options, corpus, extra)
        return
    places = ((number, i) for number, members in enumerate(sets, start=1) for i in members)
    record = _maker_of_records(options, corpus)
    records = (record(i, {"set": number, "line": corpus.lines[i]}) for number, i in places)
    fields = list(record(0, {"set": 0, "line": 0}))
    terminal.show_records(records, options.format, _show_sets, fields=fields)
    removable = f"{len(extra):,} of {count(len(corpus.texts), 'text')} can be removed."
    tell(options, f"{count(len(sets), 'set')} of near-duplicates; {removable}")


def _show_matches(options: argparse.Namespace, corpus: Corpus, other: Corpus, matches: np.ndarray) -> None:
    if options.unique:
        _show_unique(options, corpus, set(matches[:, 0].tolist()))
        return

    record = _maker_of_records(options, corpus)

    def matched(i: int, j: int) -> dict[str, Any]:
        found = {"against_line": other.lines[j], "against_text": other.texts[j]}
        return record(i, {"line": corpus.lines[i]}, found)

    records = (matched(i, j) for i, j in matches.tolist())
    short = Path(corpus.name).name, Path(other.name).name
    show = partial(_show_matched, short if short[0] != short[1] else (corpus.name, other.name))
    terminal.show_records(records, options.format, show, fields=list(matched(0, 0)))
    found = f"{len(matches):,} of {count(len(corpus.texts), 'text')} of {corpus.name}"
    tell(options, f"{found} {'is' if len(matches) == 1 else 'are'} also in {other.name}.")


def _show_unique(options: argparse.Namespace, corpus: Corpus, left_out: set[int]) -> None:
    record = _maker_of_records(options, corpus)
    kept = (record(i, {"line": line}) for i, line in enumerate(corpus.lines) if i not in left_out)
    terminal.show_records(kept, options.format, _show_texts, fields=list(record(0, {"line": 0})))
    tell(options, f"{len(corpus.texts) - len(left_out):,} of {count(len(corpus.texts), 'text')} kept.")


def _maker_of_records(options: argparse.Namespace, corpus: Corpus) -> Callable[..., dict[str, Any]]:
    """A function that returns the columns of a text beside fields of its own, in the chosen format."""
    return partial(corpus.record, as_json=options.format == "json")


def _show_texts(records: list[dict[str, Any]]) -> None:
    for record in records:
        print(terminal.printable(record["text"]))


def _show_sets(records: list[dict[str, Any]]) -> None:
    digits = max((len(str(record["line"])) for record in records), default=0)
    last = 1
    for record in records:
        if record["set"] != last:
            print()
        last = record["set"]
        text = terminal.shortened(record["text"], terminal.width() - digits - 2)
        print(f"{terminal.faint(str(record['line']).rjust(digits))}  {text}")


def _show_matched(names: tuple[str, str], records: list[dict[str, Any]]) -> None:
    """Each text with the one of the other file below it."""
    for number, record in enumerate(records):
        labels = f"{names[0]} {record['line']}", f"{names[1]} {record['against_line']}"
        width = max(map(len, labels))
        if number:
            print()
        for label, text in zip(labels, (record["text"], record["against_text"]), strict=True):
            shown = terminal.shortened(text, max(_NARROWEST, terminal.width() - width - 2))
            print(f"{terminal.faint(terminal.printable(label.ljust(width)))}  {shown}")
