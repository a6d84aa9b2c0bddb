"""Synthetic groups from three sources: which belong together, and which model describes them best?"""

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from sklearn_mcsg import ModelComparisonSimilarity

SOURCES = "abc"


def make_groups(rng, n_groups=30):
    """Groups of 15 to 40 vectors in 8 dimensions, each from one of three sources with a mean and scales of its own."""
    means = rng.normal(scale=0.8, size=(len(SOURCES), 8))
    scales = rng.uniform(0.3, 2.0, size=(len(SOURCES), 8))
    source = np.arange(n_groups) % len(SOURCES)
    groups = [rng.normal(means[s], scales[s], size=(rng.integers(15, 41), 8)) for s in source]
    return groups, source


def show_matrix(matrix, names):
    """Print a small matrix with named rows and columns."""
    print("     " + "".join(f"{name:>7}" for name in names))
    for name, row in zip(names, matrix, strict=True):
        print(f"{name:>5}" + "".join(f"{value:7.0f}" for value in row))


def main():
    """Similarities, clusters, and a choice of likelihood without labels."""
    groups, source = make_groups(np.random.default_rng(0))
    n_vectors = sum(map(len, groups))
    print(f"{len(groups)} groups, {n_vectors} vectors of 8 features, drawn from {len(SOURCES)} sources.\n")

    print("Similarity of the first nine, named by their source (positive: one model explains both better than two):\n")
    names = [f"{SOURCES[s]}{i // len(SOURCES) + 1}" for i, s in enumerate(source[:9])]
    show_matrix(ModelComparisonSimilarity().pairwise(groups[:9]), names)

    distance = ModelComparisonSimilarity(output="distance").fit_transform(groups)
    labels = AgglomerativeClustering(len(SOURCES), metric="precomputed", linkage="average").fit_predict(distance)
    print("\nAverage-linkage clusters on the distances:\n")
    for cluster in range(labels.max() + 1):
        members = "".join(SOURCES[s] for s in source[labels == cluster])
        print(f"    cluster {cluster}: {members}")
    print(f"\n    adjusted Rand index against the sources: {adjusted_rand_score(source, labels):.2f}")

    search = GridSearchCV(ModelComparisonSimilarity(), {"likelihood": ["spherical", "diag", "full"]}, cv=3).fit(groups)
    print("\nMean AIC of held-out groups (lower is better), no labels needed:\n")
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        chosen = "  <- chosen" if params == search.best_params_ else ""
        print(f"    {params['likelihood']:<10}{-score:8.1f}{chosen}")


if __name__ == "__main__":
    main()
