"""mcsg drift: whether two corpora differ, and by which words."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus
from sklearn_mcsg.cli._shared import distinct, make_embedding, only_known, open_corpus, tell_coverage
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.samples import SampleComparison, compare_samples
from sklearn_mcsg.text import TokenisedTexts
from sklearn_mcsg.text.language import STOP_WORDS

_TEXTS_SHOWN = 2  # of each corpus
_SMALL = 0.05  # p-value above which a difference is not unusual


def run(options: argparse.Namespace) -> None:
    """Compare an old corpus with a new one."""
    old, new = open_corpus(options, options.corpus), open_corpus(options, options.new, column=options.new_column)
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
    records = _words(found, groups, n)[: options.words]
    if options.format == "csv":
        terminal.show_records(records, "csv", fields=["word", "change", "old", "new", "part"])
    elif options.format == "json":
        facts = {"pvalue": found.pvalue, "statistic": found.statistic, "old": n, "new": len(groups) - n}
        terminal.show_json({**facts, "words": records, "texts": _texts(found, old, new)})
    else:
        _show(found, records, _texts(found, old, new))


def _words(found: SampleComparison, groups: Groups, n: int) -> list[dict[str, Any]]:
    """Words that make the difference, the most important first, with the shares of the texts that have them."""
    labels: Any = groups.labels
    spellings = Counter(labels.tolist())
    parts: defaultdict[str, float] = defaultdict(float)
    for word, both in found.words.items():
        parts[word.lower()] += float(both.sum())
    shares = _shares_of_texts(labels, groups, n)
    shown = {word.lower(): word for word, _ in reversed(spellings.most_common())}
    records = []
    for word, part in sorted(parts.items(), key=lambda item: -item[1]):
        old, new = shares[word]
        if part > 0 and old != new and word not in STOP_WORDS and any(map(str.isalpha, word)):
            change = "came" if new > old else "went"
            records.append(
                {"word": shown[word], "change": change, "old": old, "new": new, "part": part / found.statistic}
            )
    return records


def _shares_of_texts(labels: np.ndarray, groups: Groups, n: int) -> dict[str, tuple[float, float]]:
    """Shares of the old and of the new texts that have each word, in lower case."""
    names, numbers = np.unique([label.lower() for label in labels.tolist()], return_inverse=True)
    owners = np.repeat(np.arange(len(groups)), groups.sizes)
    owners, words = np.divmod(np.unique(owners * len(names) + numbers), len(names))
    old, new = (
        np.bincount(words[rows], minlength=len(names)) / size
        for rows, size in ((owners < n, n), (owners >= n, len(groups) - n))
    )
    return dict(zip(names.tolist(), zip(old.tolist(), new.tolist(), strict=True), strict=True))


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
    for change, title in (("came", "Words that came"), ("went", "Words that went")):
        rows = [word for word in words if word["change"] == change]
        if rows:
            print(f"\n{terminal.bold(title)}  {terminal.faint('share of the old texts, and of the new ones')}")
            width = max(len(row["word"]) for row in rows)
            for row in rows:
                word = terminal.printable(row["word"]).ljust(width)
                print(f"  {word}  {100 * row['old']:5.1f} %  {100 * row['new']:5.1f} %")
    if found.pvalue <= _SMALL:
        print(f"\n{terminal.bold('Typical of the difference')}")
    for record in texts if found.pvalue <= _SMALL else ():
        print(f"  {record['corpus']}  {terminal.shortened(record['text'], terminal.width() - 7)}")
