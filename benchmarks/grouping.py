"""Labelled short texts: neighbours and clusters from each similarity, over random samples.

    python benchmarks/grouping.py --data DIR [--to doc/grouping] [--texts 1500] [--seeds 5]

DIR holds `grouping/*.tsv`, a label and a text a line. For each method: accuracy of 10 nearest neighbours (5 folds), and
agreement (ARI, NMI) of average-linkage and spectral clusters with the labels, at the true number of classes.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import AgglomerativeClustering, SpectralClustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from sklearn_mcsg import SIF, EmbeddingVectorizer, MeanVector, ModelComparisonSimilarity

JOBS = 2
MEASURES = ("10-NN accuracy", "average ARI", "average NMI", "spectral ARI", "spectral NMI")


def methods():
    mcs, zipf = ModelComparisonSimilarity, {"weighting": "sif", "unit_norm": False}
    return {
        "cosine of means": (MeanVector("distance"), {"weighting": None, "unit_norm": False}),
        "SIF+PCA, Zipf": (SIF(1, "distance"), zipf),
        "Diag distance, Zipf": (mcs(output="distance", n_jobs=JOBS), {**zipf, "pad_token": "."}),
        "Diag divergence, recipe": (mcs(output="divergence", prior_strength=0.5, n_jobs=JOBS), {}),
        "vMF centered, recipe": (mcs("vmf", output="centered", prior_strength=0.5, random_state=0, n_jobs=JOBS), {}),
        "Diag centered, Zipf, prior_strength=2": (
            mcs(output="centered", prior_strength=2.0, random_state=0, n_jobs=JOBS),
            zipf,
        ),
        "Diag centered, recipe": (mcs(output="centered", prior_strength=0.5, random_state=0, n_jobs=JOBS), {}),
    }


def read(path):
    lines = [line.split("\t", 1) for line in path.read_text(encoding="utf8").splitlines()]
    labels, texts = zip(*lines, strict=True)
    return np.array(labels), np.array(texts, dtype=object)


def evaluate(distances, labels, seed):
    """The five measures for one matrix of distances."""
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
    return [accuracy, *agreement]


def measure(path, n_texts, seeds):
    labels, texts = read(path)
    results = {name: [] for name in methods()}
    for seed in range(seeds):
        chosen = np.random.default_rng(seed).permutation(len(texts))[:n_texts]
        for name, (estimator, recipe) in methods().items():
            groups = EmbeddingVectorizer(**recipe).fit_transform(texts[chosen])
            kept = groups.sizes > 0
            distances = estimator.fit_transform(groups[kept])
            results[name].append(evaluate(np.maximum(distances, 0), labels[chosen][kept], seed))
    return results


def table(results):
    lines = [f"| | {' | '.join(MEASURES)} |", "|---|" + "--:|" * len(MEASURES)]
    means = {name: np.mean(values, axis=0) for name, values in results.items()}
    best = np.max(list(means.values()), axis=0)
    for name, values in results.items():
        spread = np.std(values, axis=0)
        cells = [
            f"**{m:.3f}** ± {s:.3f}" if m == top else f"{m:.3f} ± {s:.3f}"
            for m, s, top in zip(means[name], spread, best, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with grouping/*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/grouping"), help="where to write .md")
    parser.add_argument("--texts", type=int, default=1500, help="in each sample")
    parser.add_argument("--seeds", type=int, default=5, help="number of samples")
    options = parser.parse_args(arguments)
    paths = sorted((options.data / "grouping").glob("*.tsv"))
    if not paths:
        raise SystemExit(f"{options.data / 'grouping'} holds no .tsv with labelled texts.")
    parts = [
        "# Grouping short texts",
        f"GloVe 6B 50d; samples of {options.texts} texts, mean and standard deviation over {options.seeds} of them. "
        "Neighbours: accuracy over five folds. Clusters: `AgglomerativeClustering` with average linkage and "
        "`SpectralClustering` on ten nearest neighbours, both at the true number of classes.",
    ]
    for path in paths:
        print(f"{path.stem} ...", flush=True)
        results = measure(path, options.texts, options.seeds)
        parts.append(f"## {path.stem}\n\n{table(results)}")
    text = "\n\n".join([*parts, "Written by `make paper`."]) + "\n"
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
