"""Nearest neighbours and clusters of labelled short texts, for each similarity, over random samples.

    python benchmarks/grouping.py --data DIR [--to doc/grouping] [--texts 1500] [--seeds 5]

DIR holds `grouping/*.tsv`, with one label and one text per line, and may hold folders of static models. The script
measures, for each method, the accuracy of 10 nearest neighbours (5 folds), and the agreement (ARI, NMI) of average
linkage, spectral clusters and, where groups are vectors, k-means with the labels, at the true number of classes. It
also measures pooled linkage, with the number of clusters found by the evidence, and plots the evidence.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, normalize

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    GroupClustering,
    MeanVector,
    ModelComparisonClustering,
    ModelComparisonSimilarity,
    make_text_embedding,
)

JOBS = 2
MEASURES = {  # digits
    "10-NN accuracy": 3,
    "average ARI": 3,
    "average NMI": 3,
    "spectral ARI": 3,
    "spectral NMI": 3,
    "k-means ARI": 3,
    "average, then k-means ARI": 3,
    "communities": 0,
    "communities ARI": 3,
}
POOLED = {
    "ARI at the true number": 3,
    "NMI at the true number": 3,
    "clusters found by evidence": 0,
    "ARI at the number found": 3,
}
TITLES = {
    "agnews_test": "News items, 4 classes",
    "searchsnippets": "Search snippets, 8 classes",
}


def methods():
    """Methods for raw word vectors, each with the parameters of its vectorizer."""
    mcs, zipf = ModelComparisonSimilarity, {"weighting": "sif", "unit_norm": False}
    return {
        "cosine of means": (MeanVector("distance"), {"weighting": None, "unit_norm": False}),
        "SIF+PCA, Zipf": (SIF(1, "distance"), zipf),
        "SIF, Zipf, 3 components": (SIF(3, "distance"), zipf),
        "SIF, Zipf, 10 components": (SIF(10, "distance"), zipf),
        "half-whitened mean": (make_text_embedding(spread=0.0)["embedding"], {}),
        "Diag distance, Zipf": (mcs(output="distance", n_jobs=JOBS), {**zipf, "pad_token": "."}),
        "Diag divergence, recipe": (mcs(output="divergence", prior_strength=0.5, n_jobs=JOBS), {}),
        "vMF centered, recipe": (mcs("vmf", output="centered", prior_strength=0.5, random_state=0, n_jobs=JOBS), {}),
        "Diag centered, Zipf, prior_strength=2": (
            mcs(output="centered", prior_strength=2.0, random_state=0, n_jobs=JOBS),
            zipf,
        ),
        "Diag centered, recipe": (mcs(output="centered", prior_strength=0.5, random_state=0, n_jobs=JOBS), {}),
        "Embedding": (make_text_embedding()["embedding"], {}),
    }


def static_methods(path):
    """Methods for a static model, whose vectors were trained to be averaged."""
    plain = {"vectors": path, "weighting": None, "unit_norm": False}
    recipe = {"vectors": path, "weighting": "norm"}
    return {
        "cosine of means": (MeanVector("distance"), plain),
        **{f"means, {k} component{'s' * (k > 1)} removed": (SIF(k, "distance"), plain) for k in (1, 3, 10)},
        "half-whitened mean": (make_text_embedding(vectors=path, whiten=0.5, spread=0.0)["embedding"], recipe),
        "eighth-whitened mean": (make_text_embedding(vectors=path, spread=0.0)["embedding"], recipe),
        "Diag centered": (
            ModelComparisonSimilarity(output="centered", prior_strength=0.5, random_state=0, n_jobs=JOBS),
            recipe,
        ),
        "Embedding": (make_text_embedding(vectors=path)["embedding"], recipe),
    }


def clusterings():
    mcc = ModelComparisonClustering
    return {
        "words as observations": mcc(n_jobs=JOBS),
        "words as observations, `penalty_scale=4`": mcc(penalty_scale=4, n_jobs=JOBS),
        "texts as observations, `balanced=True`": mcc(balanced=True, n_jobs=JOBS),
        "texts as observations, `prior_strength=0.5`": mcc(prior_strength=0.5, balanced=True, n_jobs=JOBS),
    }


def read(path):
    lines = [line.split("\t", 1) for line in path.read_text(encoding="utf8").splitlines()]
    labels, texts = zip(*lines, strict=True)
    return np.array(labels), np.array(texts, dtype=object)


def compare(estimator, groups):
    """Distances of all pairs and, if the method has vectors of groups, these at unit length."""
    estimator.fit(groups)
    if isinstance(estimator, MeanVector):
        return estimator.pairwise(groups), normalize(estimator.embed(groups))
    vectors = None if isinstance(estimator, ModelComparisonSimilarity) else normalize(estimator.transform(groups))
    return estimator.pairwise(groups), vectors


def k_means(vectors, labels, seed):
    """Agreement of k-means with the labels."""
    found = KMeans(len(np.unique(labels)), n_init=10, random_state=seed).fit_predict(vectors)
    return adjusted_rand_score(labels, found)


def group_clusterings(vectors, labels, seed):
    """Agreement of `GroupClustering` at the true number; number of its communities, and their agreement."""
    given, found = (
        GroupClustering(k, embedding=FunctionTransformer(), random_state=seed).fit(vectors)
        for k in (len(np.unique(labels)), None)
    )
    return [
        adjusted_rand_score(labels, given.labels_),
        found.n_clusters_,
        adjusted_rand_score(labels, found.labels_),
    ]


def evaluate(distances, vectors, labels, seed):
    """Compute the measures for one matrix of distances, and vectors if there are any."""
    k = len(np.unique(labels))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    nearest = KNeighborsClassifier(10, metric="precomputed")
    accuracy = cross_val_score(nearest, distances, labels, cv=folds).mean()
    average = AgglomerativeClustering(k, metric="precomputed", linkage="average").fit_predict(distances)
    spectral = SpectralClustering(
        k, affinity="precomputed_nearest_neighbors", n_neighbors=10, assign_labels="cluster_qr", random_state=seed
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        clusters = spectral.fit_predict(distances)
    agreement = [
        score(labels, found)
        for found in (average, clusters)
        for score in (adjusted_rand_score, normalized_mutual_info_score)
    ]
    if vectors is None:
        return [accuracy, *agreement, *[np.nan] * 4]
    return [accuracy, *agreement, k_means(vectors, labels, seed), *group_clusterings(vectors, labels, seed)]


def measure(path, table, n_texts, seeds):
    labels, texts = read(path)
    results = {name: [] for name in table}
    for seed in range(seeds):
        chosen = np.random.default_rng(seed).permutation(len(texts))[:n_texts]
        for name, (estimator, recipe) in table.items():
            groups = EmbeddingVectorizer(**recipe).fit_transform(texts[chosen])
            kept = groups.sizes > 0
            distances, vectors = compare(estimator, groups[kept])
            results[name].append(evaluate(np.maximum(distances, 0), vectors, labels[chosen][kept], seed))
    return results


def measure_clusterings(path, n_texts, seeds):
    """Agreement of pooled linkage at the true number of classes and at the number found; one evidence curve each."""
    labels, texts = read(path)
    results, curves = {name: [] for name in clusterings()}, {}
    for seed in range(seeds):
        chosen = np.random.default_rng(seed).permutation(len(texts))[:n_texts]
        groups = EmbeddingVectorizer().fit_transform(texts[chosen])
        kept = groups.sizes > 0
        truth = labels[chosen][kept]
        for name, clustering in clusterings().items():
            fitted = clustering.fit(groups[kept])
            cut = fitted.cut(len(np.unique(truth)))
            scores = [adjusted_rand_score(truth, cut), normalized_mutual_info_score(truth, cut)]
            results[name].append([*scores, fitted.n_clusters_, adjusted_rand_score(truth, fitted.labels_)])
            curves.setdefault(name, (fitted.evidence_, fitted.n_clusters_))
    return results, curves, len(np.unique(labels))


def evidence_figure(curves, k, title, path):
    """Plot the criterion of the partition above its minimum, against the number of clusters."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(curves)[::2]
    figure, panels = plt.subplots(1, len(names), figsize=(9, 3.6), layout="constrained")
    for name, axes in zip(names, panels, strict=True):
        evidence, found = curves[name]
        clusters = np.arange(1, len(evidence) + 1)
        axes.plot(clusters, evidence - evidence.min(), lw=2)
        axes.plot(found, evidence[found - 1] - evidence.min(), "o", label=f"evidence: {found} clusters")
        axes.axvline(k, color="k", ls="--", lw=1, label=f"labels: {k} classes")
        axes.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))  # shows the minimum
        axes.set_ylim(bottom=0)
        axes.set(xscale="log", xlabel="clusters", ylabel="criterion above its minimum", title=name.split(",")[0])
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def table(results, measures=MEASURES):
    """Mean and standard deviation of each measure; the best scores are in bold."""
    lines = [f"| | {' | '.join(measures)} |", "|---|" + "--:|" * len(measures)]
    means = {name: np.mean(values, axis=0) for name, values in results.items()}
    best = np.nanmax(list(means.values()), axis=0)
    for name, values in results.items():
        cells = []
        for mean, spread, top, digits in zip(means[name], np.std(values, axis=0), best, measures.values(), strict=True):
            mark = "**" if mean == top and digits else ""
            cells.append("" if np.isnan(mean) else f"{mark}{mean:.{digits}f}{mark} ± {spread:.{digits}f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with grouping/*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/grouping"), help="path of the .md file, without suffix")
    parser.add_argument("--texts", type=int, default=1500, help="number of texts per sample")
    parser.add_argument("--seeds", type=int, default=5, help="number of samples")
    options = parser.parse_args(arguments)
    paths = sorted((options.data / "grouping").glob("*.tsv"))
    if not paths:
        raise SystemExit(f"No .tsv files with labelled texts in {options.data / 'grouping'}.")
    parts = [
        "# Grouping short texts",
        f"Word vectors: GloVe 6B 50d, unless a static model is named. Samples of {options.texts} texts; mean and "
        f"standard deviation over {options.seeds} samples. Neighbours: accuracy over five folds. Clusters: "
        "`AgglomerativeClustering` with average linkage, `SpectralClustering` on ten nearest neighbours and, for "
        "methods that give vectors, `KMeans` at unit length, started at random or, by `GroupClustering`, from average "
        "linkage; all at the true number of classes. Communities are those that `GroupClustering` finds without a "
        "number. The row Embedding is what `mcsg cluster` does. "
        "Pooled linkage finds the number of clusters itself. Words of one text are correlated, so texts must be set "
        "as the unit of observation.",
    ]
    for path in paths:
        print(f"{path.stem} ...", flush=True)
        results = measure(path, methods(), options.texts, options.seeds)
        title = TITLES.get(path.stem, path.stem)
        parts.append(f"## {title}\n\n{table(results)}")
        for model in sorted(options.data.glob("*/tokenizer.json")):
            results = measure(path, static_methods(model.parent), options.texts, options.seeds)
            parts.append(f"With the static model {model.parent.name}:\n\n{table(results)}")
        pooled, curves, k = measure_clusterings(path, options.texts, options.seeds)
        figure = options.to.with_name(f"{options.to.name}_{path.stem}.png")
        options.to.parent.mkdir(parents=True, exist_ok=True)
        evidence_figure(curves, k, title, figure)
        parts.append(f"`ModelComparisonClustering` with pooled linkage and default weights:\n\n{table(pooled, POOLED)}")
        parts.append(f"![Criterion by number of clusters]({figure.name})")
    text = "\n\n".join([*parts, "Written by `make paper`."]) + "\n"
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
