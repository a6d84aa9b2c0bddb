"""mcsg compare: how similar two texts are, how rare that is, and which words make them so."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._shared import (
    check_criterion,
    distinct,
    make_embedding,
    make_pipeline,
    read_texts,
    tell,
    tell_coverage,
    tell_if_unknown,
    tell_unless_english,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.engine.chance import FEW_GROUPS
from sklearn_mcsg.explanation import Explanation
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.text import EmbeddingVectorizer, TextCalibration, TokenisedTexts, calibrate_texts, coverage_of

_N_REFERENCES = 100  # reference texts for a single comparison: enough, and too few to need compiled code
_N_FOLDS = 5
_MOST_PAIRS = 10_000  # pairs of words for, and as many against, that JSON lists
_LARGE = 5000  # in a larger corpus fitted texts and new ones are equally far apart by chance: no folds are needed


def run(options: argparse.Namespace) -> None:
    """Compare two texts."""
    check_criterion(options)
    if options.corpus is None and (options.column is not None or options.read_as is not None):
        raise ValueError("--column and --read-as are for the file of --corpus: give it, or leave them out.")
    pipeline, calibration = _learn(options)
    pair = _read_pair(options, pipeline[0])
    a, b = pair[[0]], pair[[1]]
    explanation = pipeline[-1].explain(a, b)
    distance = float(pipeline[-1].paired(a, b)[0])
    result = {
        "text_a": options.a,
        "text_b": options.b,
        "similarity": explanation.similarity if options.exact else 1 - distance,
        "distance": distance,
        "pvalue": None if calibration is None else float(calibration.pvalue(a, b)[0]),
        "order": None if options.exact else explanation.order,
    }
    if options.format == "json":
        corpus = None if calibration is None else calibration.corpus
        terminal.show_json({**result, "pvalue_corpus": corpus, **_details(explanation, options.exact)})
        return
    needed = f"needs a corpus of at least {FEW_GROUPS} different texts"
    meaning = needed if calibration is None else terminal.printable(calibration.sentence(result["pvalue"]))
    equal = float(pipeline[-1].paired(pair, pair, output="similarity").mean()) if options.exact else 1.0
    terminal.show_records([result], options.format, lambda _: _show(result, meaning, explanation, equal, options.exact))


def _read_pair(options: argparse.Namespace, vectorizer: EmbeddingVectorizer) -> Groups:
    """The two texts as groups, with notes on words without a vector."""
    if os.path.isfile(options.a) and os.path.isfile(options.b):  # which is false for a text too long to be a name
        tell(options, "There are files of these names. Here the names are compared; mcsg drift compares files.")
    texts = TokenisedTexts.of([options.a, options.b])
    coverage = coverage_of(vectorizer, texts)
    for text, n_words in zip(texts, coverage.n_words, strict=True):
        if not n_words:
            raise ValueError(f"{text!r} has no words: there is nothing to compare.")
    tell_coverage(options, vectorizer, coverage.oov_rate)
    tell_unless_english(options, vectorizer, texts)
    tell_if_unknown(options, vectorizer, "A", texts[:1])
    tell_if_unknown(options, vectorizer, "B", texts[1:])
    return vectorizer.transform(texts)


def _learn(options: argparse.Namespace) -> tuple[Pipeline, TextCalibration | None]:
    """The pipeline, fitted to the reference texts, and its calibration if there are enough texts."""
    vectorizer, last = (make_pipeline if options.exact else make_embedding)(options, n_jobs=1)
    if options.exact:
        last.set_params(n_references=_N_REFERENCES)
    if options.corpus is None:
        texts = load_short_texts().data
        groups = vectorizer.fit_transform(texts)
        name = f"the {len(texts)} bundled short texts"
    else:
        known = read_texts(options, options.corpus)
        vectorizer = known.vectorizer
        texts = known.corpus.texts
        groups = vectorizer.transform(known.texts)
        name = Path(known.corpus.name).name
        if len(groups) < 2:
            raise ValueError(f"{name} holds one text: distances need a corpus of two or more.")
    pipeline = Pipeline([("vectorizer", vectorizer), ("last", last.fit(groups))])
    return pipeline, _calibrate(pipeline, groups, texts, name)


def _calibrate(pipeline: Pipeline, groups: Groups, texts: list[str], name: str) -> TextCalibration | None:
    different = distinct(texts, range(len(texts)), len(texts))
    if len(different) < FEW_GROUPS:
        return None
    cv = _N_FOLDS if len(different) <= _LARGE else None
    return calibrate_texts(pipeline, groups[different], name=name, cv=cv, random_state=0)


def _details(explanation: Explanation, exact: bool) -> dict[str, Any]:
    """What an explanation says about words and, if it is one of a cosine, about the strongest pairs of words."""
    columns: dict[str, Any] = {"word": explanation.labels, "weight": explanation.weights}
    columns["contribution"] = explanation.vectors
    pairs = {}
    if exact:
        columns["tone"] = explanation.tones
    else:
        found = [*explanation.strongest(_MOST_PAIRS), *reversed(explanation.weakest(_MOST_PAIRS))]
        pairs = {"pairs": [dict(zip(("word_a", "word_b", "contribution"), pair, strict=True)) for pair in found]}
    words = (zip(*(sides[k] for sides in columns.values()), strict=True) for k in range(2))
    in_a, in_b = ([dict(zip(columns, row, strict=True)) for row in rows] for rows in words)
    return {"words_a": in_a, "words_b": in_b, **pairs}


def _show(result: dict[str, Any], meaning: str, explanation: Explanation, equal: float, exact: bool) -> None:
    p = result["pvalue"]
    chance = ("-" if p is None else f"{p:.4f}", meaning)
    if exact:
        evidence = f"evidence for one shared model; identical texts: {equal:.0f}"
        rows = {"distance": (f"{result['distance']:.3f}", "0 identical, 1 unrelated, 2 opposite"), "p-value": chance}
        rows["similarity"] = f"{result['similarity']:.2f}", evidence
        rounding, decimals = 1, 1
        foot = "Evidence of each word for or against one shared model, relative to the average word."
    else:
        rows = {"cosine": (f"{result['similarity']:.3f}", "1 identical, 0 unrelated, -1 opposite"), "p-value": chance}
        if result["order"] is not None:
            without = f"without the order of their words the cosine is {result['similarity'] - result['order']:z.3f}"
            rows["order"] = f"{result['order']:+z.3f}", without
        rounding, decimals = None, 2
        foot = "Pairs of words that increase or reduce the cosine. Colours show the sum of all pairs of a word."
    for name, (value, text) in rows.items():
        print(f"{terminal.bold(name.ljust(10))}  {value:>8}   {text}")
    print()
    for name, words in explanation.lines(lambda word, _, tone: terminal.toned(terminal.printable(word), tone)):
        print(f"{terminal.bold(name)}  {words}")
    print()
    listed = {"for": explanation.strongest(decimals=rounding), "against": explanation.weakest(decimals=rounding)}
    for tone, (name, parts) in zip((0.3, -0.3), listed.items(), strict=True):
        words = terminal.word_pairs(parts, decimals) or "nothing"
        print(f"{terminal.toned(name, tone)}{' ' * (9 - len(name))}{words}")
    print(terminal.faint(f"\n{foot}"))
