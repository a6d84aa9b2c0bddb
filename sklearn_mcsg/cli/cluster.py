"""mcsg cluster: cluster the texts of a corpus and describe each cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_mcsg.cli import terminal
from sklearn_mcsg.cli.corpus import Corpus
from sklearn_mcsg.cli.shared import count, make_pipeline, read_texts, tell
from sklearn_mcsg.clustering import ModelComparisonClustering, choose_n_clusters
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.text import ClusterSummary, summarize_clusters

_SAMPLE = 1000  # texts that the silhouette uses


def run(options: argparse.Namespace) -> None:
    """Cluster a corpus."""
    if options.report is not None:
        _check_writable(Path(options.report))
    known = read_texts(options, options.corpus)
    corpus, groups = known.corpus, known.groups
    if isinstance(options.n_clusters, int) and options.n_clusters > len(corpus.texts):
        raise ValueError(
            f"{corpus.name} holds {count(len(corpus.texts), 'text')}: too few for {options.n_clusters} clusters."
        )
    similarity = make_pipeline(options)[-1].fit(groups)
    pipeline = Pipeline([("vectorizer", known.vectorizer), ("similarity", similarity)])
    clustering = ModelComparisonClustering(
        options.likelihood,
        options.criterion,
        observations="groups",
        prior_strength=similarity.prior_strength,
        random_state=0,
        n_jobs=options.jobs,
        verbose=not options.quiet,
    ).fit(groups)
    chosen, n_clusters = _choose_number(options.n_clusters, similarity, clustering)
    summaries = summarize_clusters(pipeline, corpus.texts, clustering.cut(n_clusters), groups=groups)
    _show(options, corpus, summaries, chosen)
    if options.report is not None:
        from sklearn_mcsg.report import cluster_report  # imported here, because only reports need it

        settings = {"corpus": corpus.name, "clusters": f"{n_clusters}, {chosen}"}
        title = f"Clusters of {Path(corpus.name).name}"
        page = cluster_report(
            corpus.texts,
            pipeline,
            clustering,
            n_clusters=n_clusters,
            title=title,
            settings=settings,
            groups=groups,
            summaries=summaries,
        )
        Path(options.report).write_text(page, encoding="utf-8")
        tell(options, f"Report: {options.report}")


def _choose_number(
    wanted: int | str, similarity: ModelComparisonSimilarity, clustering: ModelComparisonClustering
) -> tuple[str, int]:
    """How the number of clusters was chosen, and the number."""
    if isinstance(wanted, int):
        return "as requested", wanted
    n_groups = clustering.n_groups_
    if wanted == "evidence" or n_groups < 3:
        return "found by evidence", clustering.n_clusters_
    learnt, centered = similarity.learnt(), OUTPUTS["centered"]
    sample = np.sort(np.random.default_rng(0).permutation(n_groups)[:_SAMPLE])
    distances = learnt.comparison.all_pairs(learnt.fitted(centered)[sample], None, centered)
    n_clusters = choose_n_clusters(clustering, distances, sample=sample)
    return ("chosen by silhouette" if distances.any() else "chosen because all texts are equal"), n_clusters


def _show(options: argparse.Namespace, corpus: Corpus, summaries: list[ClusterSummary], chosen: str) -> None:
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
        print(f"{count(len(texts), 'text')} in {count(len(summaries), 'cluster')} (number {chosen})")
        for number, summary in enumerate(summaries, start=1):
            words = terminal.printable(", ".join(summary.words))
            print(f"\n{terminal.bold(f'{number:3}  {words}')}  {terminal.faint(count(len(summary.members), 'text'))}")
            for i in summary.members[:3]:
                print(f"     {terminal.shortened(corpus.texts[i], terminal.width() - 5)}")


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file for the report.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: the folder does not exist.")
