"""mcsg evaluate: rank correlation of similarities with human judgements."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_steps

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Pairs, read_pairs
from sklearn_mcsg.cli._shared import count, make_embedding, make_pipeline, only_known, tell
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.likelihoods import LIKELIHOODS
from sklearn_mcsg.similarity.baselines import SIF, MeanVector, WordMoversDistance, import_pot
from sklearn_mcsg.similarity.pairs import PairSimilarity, spearman_interval
from sklearn_mcsg.text import EmbeddingVectorizer, TokenisedTexts, coverage_of
from sklearn_mcsg.text.sources import has_order

BASELINES: dict[str, tuple[Any, str | None]] = {  # each with its usual weighting of words
    "mean": (MeanVector(), None),
    "sif": (SIF(), "sif"),
    "sif+pca": (SIF(n_components=1), "sif"),
    "wmd": (WordMoversDistance(), None),
}
EMBEDDING = "embedding"  # its name beside those of the outputs
_N_RESAMPLES = 1000


def run(options: argparse.Namespace) -> None:
    """Evaluate similarities on judged pairs."""
    if "wmd" in options.baseline:
        import_pot()
    pairs = _check_pairs(read_pairs(options.pairs))
    first, second = (TokenisedTexts.of(side) for side in zip(*pairs.texts, strict=True))
    vectorizer = EmbeddingVectorizer(options.vectors).fit(first)
    known = np.logical_and(*(coverage_of(vectorizer, side).n_words > 0 for side in (first, second)))
    pairs = _check_pairs(only_known(options, pairs, known, "pair", "a text without words"))
    results: list[dict[str, Any]] = []
    for name, pipeline in _systems(options, vectorizer.transform(first).n_features):
        predicted = PairSimilarity(pipeline).fit(pairs.texts).predict(pairs.texts)
        values = spearman_interval(pairs.gold, predicted, n_resamples=_N_RESAMPLES, random_state=0)
        spearman, low, high = (value if np.isfinite(value) else None for value in values)
        results.append({"system": name, "spearman": spearman, "low": low, "high": high})
        tell(options, f"{name}: {values[0]:.3f}", only_while_waiting=True)
    results.sort(key=lambda result: (result["spearman"] is None, -(result["spearman"] or 0)))
    terminal.show_records(results, options.format)
    tell(options, f"{len(pairs.texts):,} pairs; 95 % intervals from {_N_RESAMPLES} resamples of the pairs.")


def _check_pairs(pairs: Pairs) -> Pairs:
    if len(pairs.texts) < 3:
        raise ValueError(f"{pairs.name} holds {count(len(pairs.texts), 'pair')}: a rank correlation needs at least 3.")
    if np.ptp(pairs.gold) == 0:
        raise ValueError(f"{pairs.name}: all judgements are equal, so they do not order the pairs.")
    return pairs


def _systems(options: argparse.Namespace, n_features: int) -> Iterator[tuple[str, Pipeline]]:
    outputs = [output for output in options.output if output != EMBEDDING]
    for likelihood in (options.likelihood or ["trend"]) if EMBEDDING in options.output else ():
        most = LIKELIHOODS[likelihood]().max_coordinate_features
        if most is not None and n_features > most:
            tell(options, f"{likelihood} {EMBEDDING} is left out: it takes up to {most} features, not {n_features}.")
            continue
        yield f"{likelihood} {EMBEDDING}", make_embedding(options, likelihood=likelihood)
    for likelihood in options.likelihood or ["diag"]:
        for criterion in options.criterion if outputs else ():
            try:
                CRITERIA[criterion]().check(LIKELIHOODS[likelihood]())
            except ValueError as error:
                tell(options, f"{likelihood} {criterion} is left out: {error}")
                continue
            for output in outputs:
                pipeline = make_pipeline(options, likelihood=likelihood, criterion=criterion, output=output)
                yield f"{likelihood} {criterion} {output}", pipeline
    for name in options.baseline:
        baseline, weighting = BASELINES[name]
        frequencies = "zipf" if has_order(options.vectors) else None
        vectorizer = EmbeddingVectorizer(options.vectors, weighting=weighting, frequencies=frequencies, unit_norm=False)
        yield name, make_steps(vectorizer, baseline)
