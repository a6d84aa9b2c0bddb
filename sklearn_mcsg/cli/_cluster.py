"""mcsg cluster: cluster the texts of a corpus and describe each cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

from sklearn_mcsg._disk import check_replaceable
from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus
from sklearn_mcsg.cli._shared import count, distinct, make_embedding, read_texts, tell
from sklearn_mcsg.clustering import FEWEST_SPLIT
from sklearn_mcsg.text import KindComparison, KindInCluster, TextClusters, check_kinds, cluster_texts, shown_pvalue

_TYPICAL = 3  # texts shown of each cluster, and texts shown that are far from every cluster
_TESTED = "share", "share_elsewhere", "share_pvalue", "share_adjusted", "content_pvalue", "content_adjusted"
_SMALL = 0.05  # corrected p-value up to which a kind of text is shown


def run(options: argparse.Namespace) -> None:
    """Cluster a corpus."""
    if options.resolution is not None and options.n_clusters is not None:
        raise ValueError("--resolution decides how many clusters are found: leave it or -n out.")
    if options.report is not None:
        check_replaceable(options.report)
    keep_columns = options.format == "csv" or options.report is not None or options.by is not None
    known = read_texts(options, options.corpus, keep_columns=keep_columns)
    corpus = known.corpus
    if options.n_clusters is not None and options.n_clusters > len(corpus.texts):
        raise ValueError(
            f"{corpus.name} holds {count(len(corpus.texts), 'text')}: too few for {options.n_clusters} clusters."
        )
    by = None if options.by is None else _column(corpus, options.by)
    clusters = cluster_texts(
        known.texts,
        options.n_clusters,
        pipeline=make_embedding(options),
        resolution=1.0 if options.resolution is None else options.resolution,
        n_jobs=options.jobs,
        verbose=not options.quiet,
    )
    if options.n_clusters is not None:
        how = "as requested" if len(clusters) == options.n_clusters else f"{options.n_clusters} were requested"
    elif options.resolution is None and len(known.texts) >= FEWEST_SPLIT:
        how = "the number on which random halves of the texts agree"
    else:
        how = f"found at resolution {options.resolution or 1:g}"
    if options.report is not None:  # before anything is printed, because the reader may close the pipe
        _write_report(options, corpus, clusters, how)
    kinds = None if by is None else clusters.compare(by, verbose=not options.quiet)
    _SHOW[options.format](corpus, clusters, how, kinds)


def _column(corpus: Corpus, name: str) -> list[Any]:
    """The kind of each text; raise unless a column has kinds."""
    if name not in corpus.names:
        found = f"its columns are {', '.join(corpus.names)}" if corpus.names else "it has no columns"
        raise ValueError(f"{corpus.name} has no column {name!r} for --by: {found}.")
    values = corpus.columns[name]
    check_kinds(values, len(corpus.texts), f"Column {name!r}", [f"line {line}" for line in corpus.lines])
    return values


def _write_report(options: argparse.Namespace, corpus: Corpus, clusters: TextClusters, how: str) -> None:
    from sklearn_mcsg.report import cluster_report  # imported here, because only reports need it

    report = cluster_report(
        corpus.texts,
        clusters,
        columns=corpus.columns,
        title=f"Clusters of {Path(corpus.name).name}",
        settings={"corpus": corpus.name, "clusters": f"{len(clusters)}, {how}"},
        verbose=not options.quiet,
    )
    report.save(options.report)
    tell(options, f"Report: {options.report}")


def _alternatives(clusters: TextClusters) -> list[tuple[int, str]]:
    """Other numbers of clusters, and the options that give them; none if the number was given."""
    return [(n, f"--resolution {r:g}") for r, n in sorted(clusters.alternatives.items()) if n != len(clusters)]


def _numbers(values: Any) -> list[float | None]:
    """Numbers, with None for those that are infinite or missing."""
    return [value if abs(value) < float("inf") else None for value in values.tolist()]


def _places(clusters: TextClusters) -> Iterator[dict[str, Any]]:
    """Distance, margin and second-best cluster of each text; None if there is only one cluster."""
    seconds = (k + 1 if k >= 0 else None for k in clusters.second.tolist())
    columns = clusters.distances.tolist(), _numbers(clusters.margins), seconds
    for distance, margin, second in zip(*columns, strict=True):
        yield {"distance": distance, "margin": margin, "second": second}


def _records(clusters: TextClusters, kinds: KindComparison) -> Iterator[dict[str, Any]]:
    """Kinds of texts in clusters, with None for what was not tested."""
    for row in kinds:
        facts = {"cluster": row.cluster + 1, "label": clusters.summaries[row.cluster].title}
        values = {name: getattr(row, name) for name in _TESTED}
        tested = {name: None if isnan(value) else value for name, value in values.items()}
        words = {"words": row.words, "other_words": row.other_words}
        yield {**facts, "kind": row.kind, "texts": row.n_texts, **tested, **words}


# The formats --------------------------------------------------------------------------------------------------------


def _show_csv(corpus: Corpus, clusters: TextClusters, how: str, kinds: KindComparison | None) -> None:
    """Print the columns of the corpus, with line, cluster and how sure it is; or the kinds of texts."""
    if kinds is not None:
        found = _records(clusters, kinds)
        joined = ({name: ", ".join(v) if isinstance(v, list) else v for name, v in record.items()} for record in found)
        return terminal.show_records(joined, "csv")
    labels, stability = [summary.title for summary in clusters.summaries], _numbers(clusters.stability)
    records = (
        corpus.record(
            i, {"line": corpus.lines[i]}, {"cluster": k + 1, "label": labels[k], **place, "stability": stability[k]}
        )
        for i, (k, place) in enumerate(zip(clusters.labels.tolist(), _places(clusters), strict=True))
    )
    return terminal.show_records(records, "csv")


def _show_json(corpus: Corpus, clusters: TextClusters, how: str, kinds: KindComparison | None) -> None:
    columns = corpus.lines, (clusters.labels + 1).tolist(), _places(clusters)
    texts = [{"line": line, "cluster": k, **place} for line, k, place in zip(*columns, strict=True)]
    stability = _numbers(clusters.stability)

    def shown(i: int) -> dict[str, Any]:
        return {**texts[i], "text": corpus.texts[i]}

    described = [
        {
            "cluster": summary.label + 1,
            "size": len(summary.members),
            "stability": stability[summary.label],
            "label": summary.title,
            "words": summary.words,
            "typical": [shown(i) for i in distinct(corpus.texts, summary.members.tolist(), _TYPICAL)],
        }
        for summary in clusters.summaries
    ]
    terminal.show_json(
        {
            "n_clusters": len(clusters),
            "how": how,
            "alternatives": [{"n_clusters": n, "option": option} for n, option in _alternatives(clusters)],
            "clusters": described,
            "outliers": [shown(i) for i in distinct(corpus.texts, clusters.outliers.tolist(), _TYPICAL)],
            "texts": texts,
            **({} if kinds is None else {"kinds": list(_records(clusters, kinds))}),
        }
    )


def _show_table(corpus: Corpus, clusters: TextClusters, how: str, kinds: KindComparison | None) -> None:
    print(f"{count(len(corpus.texts), 'text')} in {count(len(clusters), 'cluster')} ({how})")
    others = "".join(f"{n} with {option}, " for n, option in _alternatives(clusters))
    if others:
        print(terminal.faint(f"Other numbers: {others}or any with -n."))
    if len(clusters) > 1:
        print(
            terminal.faint("Stability is the share of pairs of texts that are together again in halves of the corpus.")
        )
    for summary in clusters.summaries:
        words = terminal.printable(", ".join(summary.words))
        facts = terminal.faint(count(len(summary.members), "text") + _stability_of(clusters, summary.label))
        print(f"\n{terminal.bold(f'{summary.label + 1:3}  {words}')}  {facts}")
        _show_texts(corpus, summary.members.tolist())
    if len(corpus.texts) > len(clusters) * _TYPICAL:
        print(f"\n     {terminal.bold('Far from every cluster')}")
        _show_texts(corpus, clusters.outliers.tolist())
    if kinds is not None:
        _show_kinds(clusters, kinds)


def _stability_of(clusters: TextClusters, label: int) -> str:
    value = clusters.stability[label]
    return "" if len(clusters) == 1 or isnan(value) else f", stability {value:.2f}"


def _show_kinds(clusters: TextClusters, kinds: KindComparison) -> None:
    """Print the kinds that some cluster holds more or less of, and those whose content differs."""
    found = [row for row in kinds if min(row.share_adjusted, row.content_adjusted) <= _SMALL]
    corrected = terminal.faint(f"p-values are corrected for all {len(kinds)} comparisons of a cluster and a kind")
    print(f"\n     {terminal.bold('Kinds of texts')}  {corrected}")
    if found:
        terminal.show_records([_kind_in_table(clusters, row) for row in found], "table")
    n_rest = len(kinds) - len(found)
    rest = "They show" if not found else "1 other shows" if n_rest == 1 else f"{n_rest} others show"
    if n_rest:
        print(terminal.faint(f"{rest} no difference (corrected p above {_SMALL})."))
    if any(isnan(row.content_pvalue) for row in found):
        print(terminal.faint("-: fewer than two texts of the kind, or of other kinds, so contents were not compared."))


def _kind_in_table(clusters: TextClusters, row: KindInCluster) -> dict[str, str]:
    return {
        "cluster": f"{row.cluster + 1:3}  {clusters.summaries[row.cluster].title}",
        "kind": row.kind,
        "share": f"{100 * row.share:3.0f} %",
        "elsewhere": "-" if isnan(row.share_elsewhere) else f"{100 * row.share_elsewhere:3.0f} %",
        "p": shown_pvalue(row.share_adjusted),
        "content p": shown_pvalue(row.content_adjusted),
        "words": row.difference,
    }


def _show_texts(corpus: Corpus, places: list[int]) -> None:
    """Print the first few different texts."""
    for i in distinct(corpus.texts, places, _TYPICAL):
        print(f"     {terminal.shortened(corpus.texts[i], terminal.width() - 5)}")


_SHOW = {"csv": _show_csv, "json": _show_json, "table": _show_table}
