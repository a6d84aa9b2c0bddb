"""mcsg cluster: cluster the texts of a corpus and describe each cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn_mcsg._disk import check_replaceable
from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus
from sklearn_mcsg.cli._shared import count, distinct, make_embedding, read_texts, tell
from sklearn_mcsg.text import TextClusters, cluster_texts

_TYPICAL = 3  # texts shown of each cluster, and texts shown that are far from every cluster


def run(options: argparse.Namespace) -> None:
    """Cluster a corpus."""
    if options.resolution is not None and options.n_clusters is not None:
        raise ValueError("--resolution decides how many clusters are found: leave it or -n out.")
    if options.report is not None:
        check_replaceable(options.report)
    known = read_texts(options, options.corpus, keep_columns=options.format == "csv" or options.report is not None)
    corpus = known.corpus
    if options.n_clusters is not None and options.n_clusters > len(corpus.texts):
        raise ValueError(
            f"{corpus.name} holds {count(len(corpus.texts), 'text')}: too few for {options.n_clusters} clusters."
        )
    clusters = cluster_texts(
        known.texts,
        options.n_clusters,
        pipeline=make_embedding(options),
        resolution=1.0 if options.resolution is None else options.resolution,
        n_jobs=options.jobs,
        verbose=not options.quiet,
    )
    how = "as many as are found again in halves of the texts" if options.n_clusters is None else "as requested"
    if options.report is not None:  # before anything is printed, because the reader may close the pipe
        _write_report(options, corpus, clusters, how)
    _SHOW[options.format](corpus, clusters, how)


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
    return [(n, f"--resolution {r:g}") for r, n in sorted(clusters.alternatives.items())]


# The formats --------------------------------------------------------------------------------------------------------


def _show_csv(corpus: Corpus, clusters: TextClusters, how: str) -> None:
    """Print the columns of the corpus, with line, cluster, label and distance."""
    labels = [summary.title for summary in clusters.summaries]
    places = zip(corpus.lines, clusters.labels.tolist(), clusters.distances.tolist(), strict=True)
    records = (
        corpus.record(i, {"line": line}, {"cluster": k + 1, "label": labels[k], "distance": distance})
        for i, (line, k, distance) in enumerate(places)
    )
    terminal.show_records(records, "csv")


def _show_json(corpus: Corpus, clusters: TextClusters, how: str) -> None:
    columns = corpus.lines, (clusters.labels + 1).tolist(), clusters.distances.tolist(), corpus.texts
    names = "line", "cluster", "distance", "text"
    texts = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    described = [
        {
            "cluster": summary.label + 1,
            "size": len(summary.members),
            "label": summary.title,
            "words": summary.words,
            "typical": [texts[i] for i in distinct(corpus.texts, summary.members.tolist(), _TYPICAL)],
        }
        for summary in clusters.summaries
    ]
    terminal.show_json(
        {
            "n_clusters": len(clusters),
            "number": how,
            "alternatives": [{"n_clusters": n, "option": option} for n, option in _alternatives(clusters)],
            "clusters": described,
            "outliers": [texts[i] for i in distinct(corpus.texts, clusters.outliers.tolist(), _TYPICAL)],
            "texts": [{name: text[name] for name in names[:3]} for text in texts],
        }
    )


def _show_table(corpus: Corpus, clusters: TextClusters, how: str) -> None:
    print(f"{count(len(corpus.texts), 'text')} in {count(len(clusters), 'cluster')} ({how})")
    others = "".join(f"{n} with {option}, " for n, option in _alternatives(clusters))
    if others:
        print(terminal.faint(f"Other numbers: {others}or any with -n."))
    for summary in clusters.summaries:
        words = terminal.printable(", ".join(summary.words))
        size = terminal.faint(count(len(summary.members), "text"))
        print(f"\n{terminal.bold(f'{summary.label + 1:3}  {words}')}  {size}")
        _show_texts(corpus, summary.members.tolist())
    if len(corpus.texts) > len(clusters) * _TYPICAL:
        print(f"\n     {terminal.bold('Far from every cluster')}")
        _show_texts(corpus, clusters.outliers.tolist())


def _show_texts(corpus: Corpus, places: list[int]) -> None:
    """Print the first few different texts."""
    for i in distinct(corpus.texts, places, _TYPICAL):
        print(f"     {terminal.shortened(corpus.texts[i], terminal.width() - 5)}")


_SHOW = {"csv": _show_csv, "json": _show_json, "table": _show_table}
