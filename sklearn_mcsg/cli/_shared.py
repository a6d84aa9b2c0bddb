"""Functions that the subcommands share: reading texts, building pipelines, and notes on standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_mcsg.cli._corpus import Corpus, is_table, read_corpus
from sklearn_mcsg.cli._terminal import escaped
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.text import (
    EmbeddingVectorizer,
    TokenisedTexts,
    coverage_of,
    make_text_embedding,
    make_text_similarity,
    note_on_language,
    share_of_unknown_words,
)
from sklearn_mcsg.text.sources import has_static_model

_FEW_TEXTS = 10  # with fewer texts, distances relative to the corpus are unreliable


@dataclass(frozen=True, eq=False)
class KnownTexts:
    """The texts of a corpus that have a word with a vector, and a vectorizer that was fitted to all its texts."""

    corpus: Corpus
    texts: TokenisedTexts
    vectorizer: EmbeddingVectorizer


def make_pipeline(options: argparse.Namespace, **params: Any) -> Pipeline:
    """The unfitted pipeline that compares texts exactly."""
    settings = _settings(options) | _likelihood(options)
    if isinstance(options.criterion, str):
        settings["criterion"] = options.criterion
    return make_text_similarity(**{**settings, **params})


def make_embedding(options: argparse.Namespace, **params: Any) -> Pipeline:
    """The unfitted pipeline that turns texts into points."""
    return make_text_embedding(**{**_settings(options), **_likelihood(options), **params})


def check_criterion(options: argparse.Namespace) -> None:
    """Raise if a criterion is chosen that would have no effect."""
    if not options.exact and options.criterion != next(iter(CRITERIA)):
        raise ValueError("--criterion is for exact comparisons: add --exact.")


def _likelihood(options: argparse.Namespace) -> dict[str, str]:
    """The likelihood, if one was chosen; otherwise the recipe decides."""
    return {"likelihood": options.likelihood} if isinstance(options.likelihood, str) else {}


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters that both pipelines have."""
    settings = {"vectors": options.vectors, "random_state": 0, "n_jobs": options.jobs, "verbose": not options.quiet}
    if options.weighting is not None:  # otherwise the recipe for this kind of vectors decides
        settings["weighting"] = None if options.weighting == "none" else tuple(options.weighting.split(","))
    return settings


def read_texts(options: argparse.Namespace, path: str, keep_columns: bool = False) -> KnownTexts:
    """Read the texts of a file and look up their words."""
    return known_texts(options, open_corpus(options, path, keep_columns))


def known_texts(options: argparse.Namespace, corpus: Corpus) -> KnownTexts:
    """Look up the words of texts."""
    texts = TokenisedTexts.of(corpus.texts)
    vectorizer = make_embedding(options)[0].fit(texts)
    known = coverage_of(vectorizer, texts).n_words > 0
    corpus = only_with_words(options, corpus, known, vectorizer)
    return KnownTexts(corpus, texts if known.all() else texts[known], vectorizer)


def open_corpus(
    options: argparse.Namespace, path: str, keep_columns: bool = False, column: str | None = None
) -> Corpus:
    """Read the texts of a file, from a `column` other than that of the options if it is given; print notes."""
    return _told(
        options, read_corpus(path, column or options.column, read_as=options.read_as, keep_columns=keep_columns)
    )


def open_other(options: argparse.Namespace, path: str, column: str | None = None) -> Corpus:
    """Read the texts of a file beside the corpus. Its name tells its format; `read_as` is for standard input."""
    read_as = options.read_as if path == "-" else None
    in_column = is_table(path) or read_as not in (None, "txt")
    return _told(options, read_corpus(path, column or (options.column if in_column else None), read_as=read_as))


def _told(options: argparse.Namespace, corpus: Corpus) -> Corpus:
    """A corpus whose note has been printed."""
    if corpus.note is not None:
        tell(options, corpus.note)
    return corpus


def only_with_words(
    options: argparse.Namespace, corpus: Corpus, known: np.ndarray, vectorizer: EmbeddingVectorizer
) -> Corpus:
    """Keep the texts that have words, and print notes about the rest, about unknown words and about few texts."""
    corpus = only_known(options, corpus, known, "text", "no words")
    if not corpus.texts:
        raise ValueError(f"No text of {corpus.name} has a word: choose another file, or another --column.")
    tell_coverage(options, vectorizer, vectorizer.oov_rate_)
    tell_if_few(options, len(corpus.texts))
    return corpus


def tell_coverage(options: argparse.Namespace, vectorizer: EmbeddingVectorizer, oov_rate: float) -> None:
    """Print a note if some words have no vector."""
    if oov_rate:
        tell(options, share_of_unknown_words(vectorizer, oov_rate))


def tell_unless_english(options: argparse.Namespace, vectorizer: EmbeddingVectorizer, texts: TokenisedTexts) -> None:
    """Print a note if texts do not look English but the vectors are; of texts that it is fitted to, `fit` warns."""
    note = note_on_language(vectorizer, texts)
    if note:
        tell(options, note)


def tell_if_unknown(
    options: argparse.Namespace, vectorizer: EmbeddingVectorizer, name: str, texts: TokenisedTexts
) -> None:
    """Print a note if no word of the texts has a vector."""
    if not has_static_model(vectorizer.vectors) and coverage_of(vectorizer, texts).oov_rate == 1:
        tell(options, f"No word of {name} has a vector: spelling alone decides, and unknown words look alike.")


def tell_if_few(options: argparse.Namespace, n: int) -> None:
    """Print a note if there are too few texts for distances to be reliable."""
    if n < _FEW_TEXTS:
        note = f"Only {count(n, 'text')}: distances are relative to the corpus and unreliable below {_FEW_TEXTS}."
        tell(options, note)


def only_known(options: argparse.Namespace, found: Any, known: np.ndarray, noun: str, why: str) -> Any:
    """Keep the known part of a corpus or of pairs, and print a note about the rest."""
    if known.all():
        return found
    first = found.lines[int(np.argmin(known))]
    n_left_out = len(known) - int(known.sum())
    tell(options, f"{n_left_out} of {count(len(known), noun)} left out, with {why} (the first in line {first}).")
    return found[known]


def distinct(texts: Sequence[str], places: Iterable[int], most: int) -> list[int]:
    """The first places that hold different texts."""
    first: dict[str, int] = {}
    for i in places:
        if len(first) < most:
            first.setdefault(texts[i], i)
    return list(first.values())


def count(n: int, noun: str) -> str:
    """A number with its noun, singular or plural."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def tell(options: argparse.Namespace, message: str, only_while_waiting: bool = False) -> None:
    """Print a note on standard error unless `quiet` is set; notes `only_while_waiting` need a terminal."""
    if not options.quiet and (sys.stderr.isatty() or not only_while_waiting):
        print(escaped(message), file=sys.stderr)
