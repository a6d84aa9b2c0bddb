"""mcsg dedupe: find sets of near-duplicate texts."""

from __future__ import annotations

import argparse
from typing import Any

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._shared import count, make_embedding, open_corpus, tell, tell_coverage, tell_if_few
from sklearn_mcsg.text import TokenisedTexts, find_duplicate_texts


def run(options: argparse.Namespace) -> None:
    """Find near-duplicates in a corpus."""
    corpus = open_corpus(options, options.corpus, keep_columns=options.format == "csv")
    texts, lines = TokenisedTexts.of(corpus.texts), corpus.lines
    if options.threshold is not None:  # otherwise words decide
        tell_if_few(options, len(texts))
    pipeline = make_embedding(options)
    vectorizer = pipeline[0].fit(texts)
    tell_coverage(options, vectorizer, vectorizer.oov_rate_)
    sets = find_duplicate_texts(
        texts,
        threshold=options.threshold,
        level=options.level,
        pipeline=pipeline,
        n_jobs=options.jobs,
        verbose=not options.quiet,
    )
    extra = {int(i) for members in sets for i in members[1:]}
    if options.unique:
        kept = (corpus.record(i, {"line": line}) for i, line in enumerate(lines) if i not in extra)
        terminal.show_records(kept, options.format, _show_texts)
        tell(options, f"{len(texts) - len(extra):,} of {count(len(texts), 'text')} kept.")
        return
    places = ((number, i) for number, members in enumerate(sets, start=1) for i in members)
    records = (corpus.record(i, {"set": number, "line": lines[i]}) for number, i in places)
    fields = list(corpus.record(0, {"set": 0, "line": 0}))
    terminal.show_records(records, options.format, _show_sets, fields=fields)
    removable = f"{len(extra):,} of {count(len(texts), 'text')} can be removed."
    tell(options, f"{count(len(sets), 'set')} of near-duplicates; {removable}")


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
