"""mcsg drift: whether two corpora differ, and by which words."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus
from sklearn_mcsg.cli._shared import distinct, make_embedding, only_known, open_corpus, open_other, tell_coverage
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.samples import SampleComparison, compare_samples
from sklearn_mcsg.text import TokenisedTexts, deciding_words

_TEXTS_SHOWN = 2  # of each corpus
_SMALL = 0.05  # p-value above which a difference is not unusual


def run(options: argparse.Namespace) -> None:
    """Compare an old corpus with a new one."""
    old, new = open_corpus(options, options.corpus), open_other(options, options.new, options.new_column)
    texts = TokenisedTexts.of([*old.texts, *new.texts])
    pipeline = make_embedding(options)
    groups = pipeline[0].fit_transform(texts)
    known, n = groups.sizes > 0, len(old.texts)
    old, new = (
        only_known(options, corpus, rows, "text", f"no words in {corpus.name}")
        for corpus, rows in ((old, known[:n]), (new, known[n:]))
    )
    for corpus in (old, new):
        if len(corpus.texts) < 2:
            raise ValueError(f"{corpus.name} has fewer than two texts with words: there is nothing to compare.")
    tell_coverage(options, pipeline[0], pipeline[0].oov_rate_)
    groups, n = groups[known], len(old.texts)
    found = compare_samples(
        groups[:n], groups[n:], similarity=pipeline[-1], n_permutations=options.permutations, random_state=0
    )
    records = _words(found, groups)[: options.top]
    if options.format == "csv":
        terminal.show_records(records, "csv", fields=["word", "change", "share_old", "share_new", "part"])
    elif options.format == "json":
        facts = {"pvalue": found.pvalue, "statistic": found.statistic, "n_old": n, "n_new": len(groups) - n}
        terminal.show_json({**facts, "words": records, "texts": _texts(found, old, new)})
    else:
        _show(found, records, _texts(found, old, new))


def _words(found: SampleComparison, groups: Groups) -> list[dict[str, Any]]:
    """Words that make the difference, the most important first, with the shares of the texts that have them."""
    return [
        {"word": word, "change": "more" if new > old else "less", "share_old": old, "share_new": new, "part": part}
        for word, old, new, part in deciding_words(found, groups)
    ]


def _texts(found: SampleComparison, old: Corpus, new: Corpus) -> list[dict[str, Any]]:
    """The different texts of both corpora that make most of the difference."""
    records = []
    for name, corpus, parts in (("old", old, found.groups[0]), ("new", new, found.groups[1])):
        for i in distinct(corpus.texts, np.argsort(-parts, kind="stable").tolist(), _TEXTS_SHOWN):
            records.append({"corpus": name, "line": corpus.lines[i], "text": corpus.texts[i]})
    return records


def _show(found: SampleComparison, words: list[dict[str, Any]], texts: list[dict[str, Any]]) -> None:
    n, m = map(len, found.groups)
    print(f"{terminal.bold(f'p = {found.pvalue:.3g}')}  {n:,} old texts, {m:,} new ones")
    n_divisions = len(found.permuted)
    as_much = f"{round(found.pvalue * n_divisions):,} of {n_divisions:,}"
    print(
        terminal.faint(
            f"Of all divisions of these texts that were tried, {as_much} differ at least as much as this one."
        )
    )
    if found.pvalue > _SMALL:
        print("Differences as large as this one are usual by chance, so the words below may mean nothing.")
    for change, title in (("more", "More frequent now"), ("less", "Less frequent now")):
        rows = [word for word in words if word["change"] == change]
        if rows:
            print(f"\n{terminal.bold(title)}  {terminal.faint('share of the old texts, and of the new ones')}")
            written = [terminal.printable(row["word"]) for row in rows]
            width = max(map(terminal.columns, written))
            for word, row in zip(written, rows, strict=True):
                shares = f"{100 * row['share_old']:5.1f} %  {100 * row['share_new']:5.1f} %"
                print(f"  {terminal.padded(word, width)}  {shares}")
    if found.pvalue > _SMALL:
        return
    print(f"\n{terminal.bold('Typical of the difference')}")
    for record in texts:
        print(f"  {record['corpus']}  {terminal.shortened(record['text'], terminal.width() - 7)}")
