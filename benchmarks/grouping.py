"""Nearest neighbours and clusters of labelled short texts, for each similarity, over random samples.

    python benchmarks/grouping.py --data DIR [--to doc/results/grouping] [--texts 1500] [--seeds 5]

DIR holds `grouping/*.tsv`, with one label and one text per line, and may hold folders of static models. Texts are read
by GloVe, by each static model, and as the package reads them by default. The script measures, for each method, the
accuracy of 10 nearest neighbours (5 folds), and the agreement (ARI, NMI) of average linkage, spectral clusters and,
where groups are vectors, k-means with the labels, at the true number of classes. It also measures pooled linkage, with
the number of clusters found by the evidence, and plots the evidence.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from encoder import own_encoder
from results import announce, shown, write_results
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, normalize
from tfidf import content_stems, tf_idf
from vectors import (
    DEFAULT,
    DEFAULT_NAME,
    GLOVE,
    centered,
    default_reader,
    embedding,
    glove_reader,
    installed_models,
    static_models,
    static_reader,
    whitened_mean,
)

from sklearn_mcsg import SIF, GroupClustering, MeanVector, ModelComparisonClustering, ModelComparisonSimilarity
from sklearn_mcsg.text.words import words_of

JOBS = 2
MEASURES = {  # digits
    "10-NN accuracy": 3,
    "average ARI": 3,
    "average NMI": 3,
    "spectral ARI": 3,
    "spectral NMI": 3,
    "k-means ARI": 3,
    "GroupClustering ARI": 3,
    "number found": 0,
    "ARI at that number": 3,
}
NUMBERS = range(2, 31)  # of clusters, among which baselines find theirs
POOLED = {
    "ARI at the true number": 3,
    "NMI at the true number": 3,
    "clusters found": 0,
    "ARI at the number found": 3,
}
TITLES = {
    "agnews_test": "News items, 4 classes",
    "searchsnippets": "Search snippets, 8 classes",
}


def baselines():
    """Methods that need no vectors. Each comes with the recipe by which it reads texts."""
    return {
        "TF-IDF": (tf_idf(content_stems), "text"),
        "TF-IDF, 100 singular vectors": (tf_idf(content_stems, n_components=100), "text"),
    }


def word_methods():
    """Methods for raw word vectors."""
    mcs = ModelComparisonSimilarity
    return {
        "cosine of means": (MeanVector("distance"), "plain"),
        "SIF+PCA, Zipf": (SIF(1, "distance"), "zipf"),
        "SIF, Zipf, 3 components": (SIF(3, "distance"), "zipf"),
        "SIF, Zipf, 10 components": (SIF(10, "distance"), "zipf"),
        "half-whitened mean": (whitened_mean(GLOVE), "recipe"),
        "Diag distance, Zipf": (mcs(output="distance", n_jobs=JOBS), "zipf_padded"),
        "Diag divergence, recipe": (mcs(output="divergence", prior_strength=0.5, n_jobs=JOBS), "recipe"),
        "vMF centered, recipe": (centered(likelihood="vmf", n_jobs=JOBS), "recipe"),
        "Diag centered, Zipf, prior_strength=2": (centered(prior_strength=2.0, n_jobs=JOBS), "zipf"),
        "Diag centered, recipe": (centered(n_jobs=JOBS), "recipe"),
        "Embedding": (embedding(GLOVE), "recipe"),
    }


def static_methods(source):
    """Methods for a static model, whose vectors were trained to be averaged."""
    return {
        "its own encoder": (own_encoder(source), "text"),
        "cosine of means": (MeanVector("distance"), "plain"),
        **{f"means, {k} component{'s' * (k > 1)} removed": (SIF(k, "distance"), "plain") for k in (1, 3, 10)},
        "half-whitened mean": (whitened_mean(source), "recipe"),
        "eighth-whitened mean": (whitened_mean(source, 0.125), "recipe"),
        "Diag centered": (centered(n_jobs=JOBS), "recipe"),
        "Embedding": (embedding(source), "recipe"),
    }


def default_methods():
    """Methods for the default vectors."""
    return {
        **{f"{name}, its own encoder": (own_encoder(source), "text") for name, source in installed_models().items()},
        "cosine of means": (MeanVector("distance"), "plain"),
        "half-whitened mean": (whitened_mean(DEFAULT), "recipe"),
        "quarter-whitened mean": (whitened_mean(DEFAULT, 0.25), "recipe"),
        "Diag centered": (centered(n_jobs=JOBS), "recipe"),
        "Embedding, order 0": (embedding(DEFAULT, 0), "recipe"),
        "Embedding, order 0.5": (embedding(DEFAULT, 0.5), "recipe"),
    }


def clusterings():
    mcc = ModelComparisonClustering
    return {
        "**words as observations**": mcc(n_jobs=JOBS),
        "**words as observations, `penalty_scale=4`**": mcc(penalty_scale=4, n_jobs=JOBS),
        "**texts as observations, `balanced=True`**": mcc(balanced=True, n_jobs=JOBS),
        "**texts as observations, `prior_strength=0.5`**": mcc(prior_strength=0.5, balanced=True, n_jobs=JOBS),
    }


def read_samples(path, n_texts, seeds):
    """Random samples of labelled texts that have words."""
    lines = [line.split("\t", 1) for line in path.read_text(encoding="utf8").splitlines()]
    labels, texts = (np.array(column, dtype=object) for column in zip(*lines, strict=True))
    known = np.flatnonzero(np.diff(words_of(texts).offsets))
    orders = (known[np.random.default_rng(seed).permutation(len(known))[:n_texts]] for seed in range(seeds))
    return [(texts[order].tolist(), labels[order].astype(str)) for order in orders]


def compare(estimator, groups):
    """Distances of all pairs and, if the method has vectors of groups, these at unit length."""
    distances = np.maximum(estimator.fit(groups).pairwise(groups), 0)
    if isinstance(estimator, MeanVector):
        return distances, normalize(estimator.embed(groups))
    vectors = None if isinstance(estimator, ModelComparisonSimilarity) else normalize(estimator.transform(groups))
    return distances, vectors


def k_means(vectors, labels, seed):
    """Agreement of k-means with the labels."""
    found = KMeans(len(np.unique(labels)), n_init=10, random_state=seed).fit_predict(vectors)
    return adjusted_rand_score(labels, found)


def group_clusterings(vectors, labels, seed):
    """Agreement of `GroupClustering` at the true number; the number that it finds, and the agreement there."""
    given, found = (
        GroupClustering(k, embedding=FunctionTransformer(), random_state=seed).fit(vectors)
        for k in (len(np.unique(labels)), None)
    )
    return [
        adjusted_rand_score(labels, given.labels_),
        found.n_clusters_,
        adjusted_rand_score(labels, found.labels_),
    ]


def accuracy_of_neighbors(distances, labels, seed):
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    nearest = KNeighborsClassifier(10, metric="precomputed")
    return cross_val_score(nearest, distances, labels, cv=folds).mean()


def evaluate(distances, vectors, labels, seed):
    """Compute the measures for one matrix of distances, and vectors if there are any."""
    k = len(np.unique(labels))
    accuracy = accuracy_of_neighbors(distances, labels, seed)
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


def measure(table, reader, samples):
    results = {name: [] for name in table}
    for seed, (texts, labels) in enumerate(samples):
        for name, (estimator, recipe) in table.items():
            results[name].append(evaluate(*compare(estimator, reader(recipe, texts)), labels, seed))
            print(f"sample {seed}: {name}", flush=True)
    return results


def by_silhouette(points, labels, seed):
    """K-means at the true number, and at the number with the greatest silhouette."""

    def partition(k):
        return KMeans(k, n_init=3, random_state=seed).fit_predict(points)

    return partition(len(np.unique(labels))), max(map(partition, NUMBERS), key=partial(silhouette_score, points))


def by_bic(points, labels, seed):
    """A mixture of Gaussians of the leading components at the true number, and at the number with the least BIC."""
    points = PCA(min(10, *points.shape), random_state=0).fit_transform(points)

    def mixture(k):
        return GaussianMixture(k, covariance_type="diag", reg_covar=1e-4, random_state=seed).fit(points)

    best = min(map(mixture, NUMBERS), key=lambda found: found.bic(points))
    return mixture(len(np.unique(labels))).predict(points), best.predict(points)


FINDERS = {
    "k-means of half-whitened means, number by silhouette": by_silhouette,
    "Gaussian mixture of half-whitened means, number by BIC": by_bic,
}


def measure_clusterings(reader, samples):
    """Agreement of pooled linkage at the true number of classes and at the number found; one evidence curve each.

    Beside it, baselines that find the number among the averages of the groups.
    """
    results, curves = {name: [] for name in [*clusterings(), *FINDERS]}, {}
    for seed, (texts, labels) in enumerate(samples):
        groups = reader("recipe", texts)
        points = normalize(whitened_mean(GLOVE).fit_transform(groups))
        for name, find in FINDERS.items():
            given, found = find(points, labels, seed)
            scores = [adjusted_rand_score(labels, given), normalized_mutual_info_score(labels, given)]
            results[name].append([*scores, len(np.unique(found)), adjusted_rand_score(labels, found)])
        for name, clustering in clusterings().items():
            fitted = clustering.fit(groups)
            cut = fitted.cut(len(np.unique(labels)))
            scores = [adjusted_rand_score(labels, cut), normalized_mutual_info_score(labels, cut)]
            results[name].append([*scores, fitted.n_clusters_, adjusted_rand_score(labels, fitted.labels_)])
            curves.setdefault(name, (fitted.evidence_, fitted.n_clusters_))
    return results, curves


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
        axes.set(
            xscale="log", xlabel="clusters", ylabel="criterion above its minimum", title=name.strip("*").split(",")[0]
        )
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def table(results, measures=MEASURES):
    """Mean and standard deviation of each measure."""
    lines = [f"| | {' | '.join(measures)} |", "|---|" + "--:|" * len(measures)]
    for name, values in results.items():
        columns = zip(np.mean(values, axis=0), np.std(values, axis=0), measures.values(), strict=True)
        cells = [
            "" if np.isnan(mean) else f"{mean:.{digits}f} ± {spread:.{digits}f}" for mean, spread, digits in columns
        ]
        lines.append(f"| {shown(name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with grouping/*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/results/grouping"), help="folder of the tables")
    parser.add_argument("--texts", type=int, default=1500, help="number of texts per sample")
    parser.add_argument("--seeds", type=int, default=5, help="number of samples")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    paths = sorted((options.data / "grouping").glob("*.tsv"))
    if not paths:
        raise SystemExit(f"No .tsv files with labelled texts in {options.data / 'grouping'}.")
    glove = glove_reader()
    sections = {"": (word_methods(), glove)}
    for name, source in static_models(options.data).items():
        sections[f"With the static model {name}:\n\n"] = static_methods(source), static_reader(source)
    sections[f"With the default vectors, {DEFAULT_NAME}:\n\n"] = default_methods(), default_reader()
    for path in paths:
        print(f"{path.stem} ...", flush=True)
        samples = read_samples(path, options.texts, options.seeds)
        parts = []
        common = measure(baselines(), glove, samples)
        for heading, (methods, reader) in sections.items():
            parts.append(heading + table({**common, **measure(methods, reader, samples)}))
        pooled, curves = measure_clusterings(glove, samples)
        k = len(np.unique(samples[0][1]))
        heading = "The number found: `ModelComparisonClustering` with pooled linkage and default weights, and baselines"
        parts.append(f"{heading}:\n\n{table(pooled, POOLED)}")
        write_results(options.to, {path.stem: "\n\n".join(parts)})
        evidence_figure(curves, k, TITLES.get(path.stem, path.stem), options.to / f"{path.stem}.png")


if __name__ == "__main__":
    main()
