"""What the subcommands of mcsg do: options in, results on standard output, notes on standard error."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_mcsg import _storage
from sklearn_mcsg import _terminal as terminal
from sklearn_mcsg._corpus import Corpus, Pairs, read_corpus, read_pairs
from sklearn_mcsg._version import __version__
from sklearn_mcsg._word_table import INSTALLED
from sklearn_mcsg.baselines import SIF, MeanVector, WordMoversDistance
from sklearn_mcsg.clustering import ModelComparisonClustering
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.duplicates import find_duplicates
from sklearn_mcsg.explanation import Explanation, explain_texts
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.likelihoods import LIKELIHOODS
from sklearn_mcsg.neighbors import GroupNeighbors
from sklearn_mcsg.pairs import PairSimilarity
from sklearn_mcsg.summary import ClusterSummary, summarize_clusters
from sklearn_mcsg.text import EmbeddingVectorizer, make_text_similarity

BASELINES: dict[str, tuple[Any, str | None]] = {  # with the weighting of words that belongs to each
    "mean": (MeanVector(), None),
    "sif": (SIF(), "sif"),
    "sif+pca": (SIF(n_components=1), "sif"),
    "wmd": (WordMoversDistance(), None),
}
_N_REFERENCES = 100  # texts that a single comparison refers to: enough, and compiled code is not needed
_FEW = 10  # texts, below which they have little in common that could be taken away
_N_RESAMPLES = 1000
_SAMPLE = 1000  # texts that the silhouette looks at


def compare(options: argparse.Namespace) -> None:
    texts = load_short_texts().data if options.corpus is None else _read(options, options.corpus).texts
    _check_known(options, [options.a, options.b])
    if len(texts) < 2:
        raise ValueError(f"{options.corpus} holds one text: to say what is near takes two or more.")
    pipeline = _pipeline(options, n_references=_N_REFERENCES, n_jobs=1).fit(texts)
    last = pipeline[-1]
    last.calibrate()
    a, b = (pipeline[:-1].transform([text]) for text in (options.a, options.b))
    explanation = explain_texts(pipeline, options.a, options.b)
    result = {
        "text_a": options.a,
        "text_b": options.b,
        "similarity": explanation.similarity,
        "distance": float(last.paired(a, b)[0]),
        "p_value": float(last.p_value(a, b)[0]),
    }
    if options.format == "json":
        columns = zip(explanation.labels, explanation.weights, explanation.vectors, explanation.relative, strict=True)
        names = "word", "weight", "contribution", "relative"
        words = ([dict(zip(names, row, strict=True)) for row in zip(*column, strict=True)] for column in columns)
        terminal.show_json({**result, "words_a": next(words), "words_b": next(words)})
    else:
        equal = float(np.mean([last.paired(x, x, output="similarity")[0] for x in (a, b)]))
        terminal.show_records([result], options.format, lambda: _show_comparison(result, equal, explanation))


def _show_comparison(result: dict[str, Any], equal: float, explanation: Explanation) -> None:
    percent = f"{100 * result['p_value']:{'.2g' if result['p_value'] < 0.1 else '.0f'}} %"
    rows = {
        "distance": (f"{result['distance']:8.3f}", "0 the same, 1 unrelated, 2 opposite"),
        "p-value": (f"{result['p_value']:8.4f}", f"{percent} of random pairs of texts about this long are as near"),
        "similarity": (f"{result['similarity']:8.2f}", f"evidence for one shared model; equal texts have {equal:.0f}"),
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
    print(terminal.faint("\nWords speak for or against one shared model, compared with the average word."))


def search(options: argparse.Namespace) -> None:
    corpus = _read(options, options.corpus)
    _check_known(options, options.queries)
    index = _open_index(options, corpus)
    n_neighbors = min(options.top, len(corpus.texts))
    distances, places = index.kneighbors(options.queries, n_neighbors=n_neighbors)
    hits = [
        {"query": query, "rank": rank, "distance": float(distance), "line": corpus.lines[i], "text": corpus.texts[i]}
        for query, near, found in zip(options.queries, distances, places, strict=True)
        for rank, (distance, i) in enumerate(zip(near, found, strict=True), start=1)
    ]
    terminal.show_records(hits, options.format, lambda: _show_hits(hits))


def _show_hits(hits: list[dict[str, Any]]) -> None:
    digits = max(len(str(hit["line"])) for hit in hits)
    for hit in hits:
        if hit["rank"] == 1:
            gap = "" if hit is hits[0] else "\n"
            print(gap + terminal.bold(terminal.shortened(hit["query"], terminal.width())))
        text = terminal.shortened(hit["text"], terminal.width() - digits - 12)
        line = terminal.faint(str(hit["line"]).rjust(digits))
        print(f"  {hit['distance']:6.3f}  {line}  {text}")


def _open_index(options: argparse.Namespace, corpus: Corpus) -> GroupNeighbors:
    """The index of a corpus: the saved one, brought up to date, or a new one, saved if a place is given."""
    jobs = {"n_jobs": options.jobs, "verbose": not options.quiet}
    if options.index is None:
        return GroupNeighbors(_pipeline(options), **jobs).fit(corpus.texts)
    _storage.check_place(options.index)
    note = _storage.read_note(options.index)
    n_known = _n_known(options, corpus, note)
    if n_known:
        index = GroupNeighbors.load(options.index).set_params(**jobs)
        if n_known == len(corpus.texts):
            return index
        index.partial_fit(corpus.texts[n_known:])
        _tell(options, f"The index had {_count(n_known, 'text')}; the others were added.")
    else:
        if note is not None:
            _tell(options, "The saved index is of another corpus or other settings and is replaced.")
        index = GroupNeighbors(_pipeline(options), **jobs).fit(corpus.texts)
    _storage.save(options.index, index, note=[len(corpus.texts), _fingerprint(options, corpus.texts)])
    return index


def _n_known(options: argparse.Namespace, corpus: Corpus, note: Any) -> int:
    """How many texts, the first ones of the corpus, a saved index has: 0 if it is of other texts or settings."""
    match note:
        case [int(n_texts), str(fingerprint)] if fingerprint == _fingerprint(options, corpus.texts[:n_texts]):
            return n_texts
    return 0


def _fingerprint(options: argparse.Namespace, texts: list[str]) -> str:
    """What an index depends on, in short."""
    path = Path(options.vectors)
    file = [] if options.vectors in INSTALLED or not path.exists() else [path.stat().st_mtime_ns, path.stat().st_size]
    settings = [__version__, options.vectors, *file, options.likelihood, options.criterion, options.weighting]
    return hashlib.sha256(json.dumps([settings, texts]).encode()).hexdigest()


def cluster(options: argparse.Namespace) -> None:
    corpus = _read(options, options.corpus)
    if isinstance(options.n_clusters, int) and options.n_clusters > len(corpus.texts):
        raise ValueError(
            f"{corpus.name} holds {_count(len(corpus.texts), 'text')}: too few for {options.n_clusters} clusters."
        )
    if options.report is not None:
        _check_writable(Path(options.report))
    pipeline = _pipeline(options).fit(corpus.texts)
    groups = pipeline[:-1].transform(corpus.texts)
    clustering = ModelComparisonClustering(
        options.likelihood,
        options.criterion,
        observations="groups",
        prior_strength=pipeline[-1].prior_strength,
        random_state=0,
        n_jobs=options.jobs,
        verbose=not options.quiet,
    ).fit(groups)
    chosen, n_clusters = _choose_number(options.n_clusters, pipeline[-1], groups, clustering)
    summaries = summarize_clusters(pipeline, corpus.texts, clustering.cut(n_clusters))
    _show_clusters(options, corpus, summaries, chosen)
    if options.report is not None:
        from sklearn_mcsg.report import cluster_report  # loads what only a page needs

        settings = {"corpus": corpus.name, "clusters": f"{n_clusters}, {chosen}"}
        title = f"Clusters of {Path(corpus.name).name}"
        page = cluster_report(corpus.texts, pipeline, clustering, n_clusters=n_clusters, title=title, settings=settings)
        Path(options.report).write_text(page, encoding="utf-8")
        _tell(options, f"Report: {options.report}")


def _choose_number(
    wanted: int | str, similarity: Any, groups: Groups, clustering: ModelComparisonClustering
) -> tuple[str, int]:
    """How the number of clusters came about, and the number."""
    if isinstance(wanted, int):
        return "as asked for", wanted
    n_groups = len(groups)
    if wanted == "evidence" or n_groups < 3:
        return "found by evidence", clustering.n_clusters_
    some = np.sort(np.random.default_rng(0).permutation(n_groups)[:_SAMPLE])
    distances = similarity.pairwise(groups[some], output="centered")
    if not distances.any():
        return "as all texts are equal", 1
    scores = {}
    for n_clusters in range(2, min(n_groups - 1, max(8, isqrt(n_groups))) + 1):
        labels = clustering.cut(n_clusters)[some]
        if 1 < len(np.unique(labels)) < len(some):
            scores[n_clusters] = silhouette_score(distances, labels, metric="precomputed")
    return "chosen by silhouette", max(scores, key=scores.__getitem__)


def _show_clusters(options: argparse.Namespace, corpus: Corpus, summaries: list[ClusterSummary], chosen: str) -> None:
    numbers = np.empty(len(corpus.texts), dtype=int)
    for number, summary in enumerate(summaries, start=1):
        numbers[summary.members] = number
    texts = [
        {"line": line, "cluster": int(number), "text": text}
        for line, number, text in zip(corpus.lines, numbers, corpus.texts, strict=True)
    ]
    if options.format == "csv":
        terminal.show_records(texts, "csv")
    elif options.format == "json":
        clusters = [
            {"cluster": number, "size": len(s.members), "words": s.words, "typical": [texts[i] for i in s.members[:3]]}
            for number, s in enumerate(summaries, start=1)
        ]
        labels = [{name: text[name] for name in ("line", "cluster")} for text in texts]
        terminal.show_json({"n_clusters": len(summaries), "number": chosen, "clusters": clusters, "texts": labels})
    else:
        print(f"{_count(len(texts), 'text')} in {_count(len(summaries), 'cluster')} (number {chosen})")
        for number, summary in enumerate(summaries, start=1):
            words = terminal.printable(", ".join(summary.words))
            print(f"\n{terminal.bold(f'{number:3}  {words}')}  {terminal.faint(_count(len(summary.members), 'text'))}")
            for i in summary.members[:3]:
                print(f"     {terminal.shortened(corpus.texts[i], terminal.width() - 5)}")


def dedupe(options: argparse.Namespace) -> None:
    corpus = _read(options, options.corpus)
    limit = {"threshold": options.threshold} if options.level is None else {"level": options.level}
    similarity, jobs = _pipeline(options), {"n_jobs": options.jobs, "verbose": not options.quiet}
    sets = find_duplicates(corpus.texts, similarity=similarity, **limit, **jobs)
    extra = {int(i) for members in sets for i in members[1:]}
    if options.unique:
        kept = [i for i in range(len(corpus.texts)) if i not in extra]
        records = [{"line": corpus.lines[i], "text": corpus.texts[i]} for i in kept]
        terminal.show_records(records, options.format, lambda: _show_texts(records))
        _tell(options, f"{len(kept)} of {_count(len(corpus.texts), 'text')} kept.")
        return
    records = [
        {"set": number, "line": corpus.lines[i], "text": corpus.texts[i]}
        for number, members in enumerate(sets, start=1)
        for i in members
    ]
    terminal.show_records(records, options.format, lambda: _show_sets(records), fields=("set", "line", "text"))
    _tell(
        options,
        f"{_count(len(sets), 'set')} of near-duplicates; {len(extra)} of {_count(len(corpus.texts), 'text')} could go.",
    )


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


def evaluate(options: argparse.Namespace) -> None:
    pairs = _check_pairs(read_pairs(options.pairs))
    known = np.logical_and(*(_known(options, list(side)) for side in zip(*pairs.texts, strict=True)))
    pairs = _check_pairs(_only(options, pairs, known, "pair", "a text without any word that has a vector"))
    results: list[dict[str, Any]] = []
    for name, pipeline in _systems(options):
        predicted = PairSimilarity(pipeline).fit(pairs.texts).predict(pairs.texts)
        values = [_spearman(pairs.gold[None], predicted[None])[0], *_bootstrap(pairs.gold, predicted)]
        spearman, low, high = (float(value) if np.isfinite(value) else None for value in values)
        results.append({"system": name, "spearman": spearman, "low": low, "high": high})
        _tell(options, f"{name}: {values[0]:.3f}", only_while_waiting=True)
    results.sort(key=lambda result: (result["spearman"] is None, -(result["spearman"] or 0)))
    terminal.show_records(results, options.format)
    _tell(options, f"{len(pairs.texts)} pairs; 95 % intervals from {_N_RESAMPLES} resamples of the pairs.")


def _check_pairs(pairs: Pairs) -> Pairs:
    if len(pairs.texts) < 3:
        raise ValueError(f"{pairs.name} holds {_count(len(pairs.texts), 'pair')}: a rank correlation needs 3.")
    if np.ptp(pairs.gold) == 0:
        raise ValueError(f"{pairs.name}: all judgements are equal, so that there is no order to compare with.")
    return pairs


def _systems(options: argparse.Namespace) -> Iterator[tuple[str, Pipeline]]:
    for likelihood in options.likelihood:
        for criterion in options.criterion:
            try:
                CRITERIA[criterion]().check(LIKELIHOODS[likelihood]())
            except ValueError as error:
                _tell(options, f"{likelihood} {criterion} is left out: {error}")
                continue
            for output in options.output:
                pipeline = _pipeline(options, likelihood=likelihood, criterion=criterion, output=output)
                yield f"{likelihood} {criterion} {output}", pipeline
    for name in options.baseline:
        baseline, weighting = BASELINES[name]
        vectorizer = EmbeddingVectorizer(options.vectors, weighting=weighting, unit_norm=False)
        yield name, make_pipeline(vectorizer, baseline)


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rank correlations of rows."""
    x, y = (rankdata(values, axis=1) - (values.shape[1] + 1) / 2 for values in (x, y))
    norms = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return np.divide((x * y).sum(axis=1), norms, out=np.full(len(x), np.nan), where=norms > 0)


def _bootstrap(gold: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of rank correlations of resampled pairs."""
    rng = np.random.default_rng(0)
    chosen = (rng.integers(len(gold), size=(50, len(gold))) for _ in range(_N_RESAMPLES // 50))
    values = np.concatenate([_spearman(gold[rows], predicted[rows]) for rows in chosen])
    low, high = np.nanquantile(values, [0.025, 0.975]) if np.isfinite(values).any() else (np.nan, np.nan)
    return float(low), float(high)


# What they share ----------------------------------------------------------------------------------------------------


def _read(options: argparse.Namespace, path: str) -> Corpus:
    """The texts of a file that have a word with a vector."""
    corpus = read_corpus(path, options.column)
    corpus = _only(options, corpus, _known(options, corpus.texts), "text", "no word that has a vector")
    if not corpus.texts:
        raise ValueError(f"No word of {corpus.name} has a vector: other --vectors may be for its language.")
    if len(corpus.texts) < _FEW:
        _tell(options, f"{_count(len(corpus.texts), 'text')} are few: what is near depends on what all have in common.")
    return corpus


def _known(options: argparse.Namespace, texts: list[str]) -> np.ndarray:
    """Which texts have a word with a vector."""
    vectorizer = EmbeddingVectorizer(options.vectors, weighting=None, unit_norm=False)
    return vectorizer.fit_transform(texts).sizes > 0


def _check_known(options: argparse.Namespace, texts: list[str]) -> None:
    for text, known in zip(texts, _known(options, texts), strict=True):
        if not known:
            raise ValueError(f"No word of {text!r} has a vector: there is nothing to compare.")


def _only(options: argparse.Namespace, found: Any, known: np.ndarray, noun: str, why: str) -> Any:
    """What is known of a corpus or of pairs, after a note on what is not."""
    if known.all():
        return found
    first = found.lines[int(np.argmin(known))]
    n_left_out = len(known) - int(known.sum())
    _tell(options, f"{n_left_out} of {_count(len(known), noun)} left out, with {why} (the first in line {first}).")
    return found[known]


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file for the report.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: there is no such folder.")


def _pipeline(options: argparse.Namespace, **params: Any) -> Pipeline:
    weighting = None if options.weighting == "none" else tuple(options.weighting.split(","))
    settings = {"vectors": options.vectors, "weighting": weighting, "random_state": 0}
    settings |= {"n_jobs": options.jobs, "verbose": not options.quiet}
    if isinstance(options.likelihood, str):
        settings |= {"likelihood": options.likelihood, "criterion": options.criterion}
    return make_text_similarity(**{**settings, **params})


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _tell(options: argparse.Namespace, message: str, only_while_waiting: bool = False) -> None:
    """Say something on standard error, unless asked to be quiet; some of it only to somebody who waits there."""
    if not options.quiet and (sys.stderr.isatty() or not only_while_waiting):
        print(message, file=sys.stderr)
