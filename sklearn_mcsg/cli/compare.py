"""mcsg compare: how similar two texts are, and which words make them so."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from sklearn_mcsg.cli import terminal
from sklearn_mcsg.cli.shared import look_up, make_pipeline, read_texts
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.explanation import Explanation

_N_REFERENCES = 100  # reference texts for a single comparison: enough, and too few to need compiled code


def run(options: argparse.Namespace) -> None:
    """Compare two texts."""
    vectorizer, similarity = make_pipeline(options, n_references=_N_REFERENCES, n_jobs=1)
    if options.corpus is None:
        groups = vectorizer.fit_transform(load_short_texts().data)
    else:
        known = read_texts(options, options.corpus)
        vectorizer, groups = known.vectorizer, known.groups
        if len(groups) < 2:
            raise ValueError(f"{options.corpus} holds one text: distances need a corpus of two or more.")
    pair = look_up(vectorizer, [options.a, options.b])
    a, b = pair[[0]], pair[[1]]
    similarity.fit(groups).calibrate()
    explanation = similarity.explain(a, b)
    result = {
        "text_a": options.a,
        "text_b": options.b,
        "similarity": explanation.similarity,
        "distance": float(similarity.paired(a, b)[0]),
        "p_value": float(similarity.p_value(a, b)[0]),
    }
    if options.format == "json":
        columns = zip(explanation.labels, explanation.weights, explanation.vectors, explanation.relative, strict=True)
        names = "word", "weight", "contribution", "relative"
        words = ([dict(zip(names, row, strict=True)) for row in zip(*column, strict=True)] for column in columns)
        terminal.show_json({**result, "words_a": next(words), "words_b": next(words)})
    else:
        equal = float(similarity.paired(pair, pair, output="similarity").mean())
        terminal.show_records([result], options.format, lambda: _show(result, equal, explanation))


def _show(result: dict[str, Any], equal: float, explanation: Explanation) -> None:
    percent = f"{100 * result['p_value']:{'.2g' if result['p_value'] < 0.1 else '.0f'}} %"
    rows = {
        "distance": (f"{result['distance']:8.3f}", "0 identical, 1 unrelated, 2 opposite"),
        "p-value": (
            f"{result['p_value']:8.4f}",
            f"{percent} of random pairs of corpus texts of similar length are at least as near",
        ),
        "similarity": (f"{result['similarity']:8.2f}", f"evidence for one shared model; identical texts: {equal:.0f}"),
    }
    for name, (value, meaning) in rows.items():
        print(f"{terminal.bold(name.ljust(10))}  {value}   {meaning}")
    print()
    largest = max(np.abs(tones).max(initial=0) for tones in explanation.relative) or 1
    for name, words, tones in zip("AB", explanation.labels, explanation.relative, strict=True):
        line = " ".join(terminal.toned(terminal.printable(w), t / largest) for w, t in zip(words, tones, strict=True))
        print(f"{terminal.bold(name)}  {line}")
    words = [f"{word} ({name})" for name, side in zip("AB", explanation.labels, strict=True) for word in side]
    relative = np.concatenate(explanation.relative).round(1)
    order = np.argsort(-relative, kind="stable")
    sides = {"for": [i for i in order if relative[i] > 0], "against": [i for i in order[::-1] if relative[i] < 0]}
    print()
    for name, chosen in sides.items():
        tone = 1 if name == "for" else -1
        listed = ", ".join(f"{terminal.printable(words[i])} {relative[i]:+.1f}" for i in chosen[:5])
        print(f"{terminal.toned(name, 0.3 * tone)}{' ' * (9 - len(name))}{listed or 'no word'}")
    print(terminal.faint("\nEvidence of each word for or against one shared model, relative to the average word."))
