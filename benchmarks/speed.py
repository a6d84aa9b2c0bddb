"""Time to compare all pairs of groups, for this library and its alternatives, in one run.

Times are relative to scikit-learn's `cosine_similarity` of the group means, measured in the same run: absolute times
say more about the machine than about the code. The script writes a Markdown table and a plot.

    python benchmarks/speed.py [--quick] [--scale] [--to doc/results/speed]

`--scale` measures collections of up to a million texts instead, which may take an hour, and writes tables of its own.
"""

import argparse
import importlib.metadata
import os
import platform
import time
import tracemalloc
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from results import announce, write_results
from scipy.sparse import csr_array
from sklearn.cluster import AgglomerativeClustering
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from sklearn_mcsg import (
    EmbeddingVectorizer,
    GroupEmbedding,
    GroupNeighbors,
    Groups,
    ModelComparisonClustering,
    ModelComparisonSimilarity,
)
from sklearn_mcsg.engine.results import Target

JOBS = 2
COSINE = "cosine of means"


@dataclass
class Measurement:
    """Time and memory of one method on one set of groups."""

    method: str
    n_groups: int
    n_features: int
    dtype: str
    seconds: float
    n_pairs: int  # distinct pairs computed
    cosine: float  # seconds of the cosine for all pairs of the same groups, in the same round
    peak: float = float("nan")  # peak MiB, without the output

    @property
    def ratio(self):
        """Time for all pairs of the groups, relative to the cosine."""
        return self.seconds / self.n_pairs * (self.n_groups**2 / 2) / self.cosine


def make_groups(n_groups, n_features, dtype, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 21, n_groups)
    vectors = rng.normal(size=(sizes.sum(), n_features)).astype(dtype)
    return Groups(vectors, np.concatenate([[0], np.cumsum(sizes)]))


def group_means(groups):
    return (groups.sum(groups.rows()) / groups.totals[:, None]).astype(groups.vectors.dtype)


def best(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_beyond_output(function):
    """Peak memory in MiB, without the result."""
    tracemalloc.start()
    result = function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (peak - result.nbytes) / 2**20


def fitted_pairs(groups, likelihood, criterion, n_jobs=JOBS):
    """Return a function that compares all pairs of fitted groups; computing the statistics is not timed."""
    model = ModelComparisonSimilarity(likelihood, criterion, n_jobs=n_jobs).fit(groups)
    comparer, target = model.__mcsg_comparer__(), Target(groups.output_dtype)
    return lambda: comparer.comparison.matrix(comparer.prepared, comparer.prepared, comparer.name, target)


def blocked_numpy(groups):
    """Diagonal AIC in NumPy over the upper triangle, in blocks of rows that fit into the cache."""
    vectors = groups.rows()
    n = groups.totals
    mean = groups.sum(vectors) / n[:, None]
    scatter = groups.sum((vectors - np.repeat(mean, groups.sizes, axis=0)) ** 2) + 1e-6 * n[:, None]

    def rows(i):
        total = n[i] + n[i:]
        weight = n[i] * n[i:] / total
        pooled = (scatter[i] + scatter[i:] + weight[:, None] * (mean[i] - mean[i:]) ** 2) / total[:, None]
        return total * np.log(pooled).sum(axis=1)

    return Parallel(n_jobs=JOBS, prefer="threads")(delayed(rows)(i) for i in range(len(n)))


def per_pair_loop(groups, pairs):
    """Concatenate, fit and score each pair, as the code of the paper does."""

    def aic(x):
        variance = x.var(axis=0) + 1e-6
        return len(x) * (np.log(2 * np.pi * variance) + 1).sum() + 4 * x.shape[1]

    return [aic(groups[i]) + aic(groups[j]) - aic(np.concatenate([groups[i], groups[j]])) for i, j in pairs]


def word_movers_distance(groups, pairs):
    """Exact optimal transport between the vectors, by POT."""
    import ot

    return [
        ot.emd2([], [], ot.dist(groups[i].astype(float), groups[j].astype(float), metric="euclidean")) for i, j in pairs
    ]


def max_sim(groups):
    """Late interaction: best cosine in the other group, averaged over the vectors of one group, by matrix products."""
    vectors = groups.rows()
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    result = np.empty((len(groups), len(groups)))
    for i in range(len(groups)):
        start, stop = groups.offsets[i : i + 2]
        scores = vectors[start:stop] @ vectors.T
        result[i] = np.maximum.reduceat(scores, groups.offsets[:-1], axis=1).mean(axis=0)
    return result


def random_pairs(n_groups, count):
    return np.random.default_rng(1).integers(0, n_groups, size=(count, 2))


def measure(n_groups, n_features, dtype, methods, repeats=3, memory=False):
    """Time each method and the cosine, in turn, on the same groups."""
    groups = make_groups(n_groups, n_features, dtype)
    means = group_means(groups)
    every = n_groups**2 / 2
    few = random_pairs(n_groups, 200)
    small = groups[: min(n_groups, 500)]
    results = []
    for method in methods:
        if isinstance(method, tuple):
            name, run, n_pairs = f"**{' '.join(method)}**", fitted_pairs(groups, *method), every
        else:
            name = method
            run, n_pairs = {
                "blocked NumPy, diag AIC": (lambda: blocked_numpy(groups), every),
                "per-pair loop, diag AIC": (lambda: per_pair_loop(groups, few), len(few)),
                "exact optimal transport (POT)": (lambda: word_movers_distance(groups, few), len(few)),
                "MaxSim, late interaction": (lambda: max_sim(small), len(small) ** 2 / 2),
            }[method]
        run()
        cosine = best(lambda: cosine_similarity(means), repeats)
        seconds = best(run, 1 if isinstance(method, str) else repeats)
        cosine = min(cosine, best(lambda: cosine_similarity(means), repeats))
        peak = peak_beyond_output(run) if memory and isinstance(method, tuple) else float("nan")
        results.append(
            Measurement(name, n_groups, n_features, np.dtype(dtype).name, seconds, int(n_pairs), cosine, peak)
        )
        print(f"  {name}: {results[-1].ratio:,.2f} x cosine", flush=True)
    least = min(result.cosine for result in results)
    peak = peak_beyond_output(lambda: cosine_similarity(means)) if memory else float("nan")
    unit = Measurement(COSINE, n_groups, n_features, np.dtype(dtype).name, least, int(every), least, peak)
    return [unit, *results]


def embedding_table(n_groups, n_features=300, repeats=5):
    """Time to embed groups and compare all pairs, relative to averaging them and comparing the means."""
    lines = [
        "| method | components | precision | time relative to cosine | of that, vectors |",
        "|---|--:|---|--:|--:|",
    ]
    for dtype in (np.float64, np.float32):
        groups = make_groups(n_groups, n_features, dtype)
        for n_components in (None, 256):
            model = GroupEmbedding(whiten=0.5, prior_strength=0.5, n_components=n_components, n_jobs=JOBS).fit(groups)

            def means(groups=groups):
                return cosine_similarity(group_means(groups))

            cosine = best(means, repeats)
            embedding, whole = (best(lambda f=f, g=groups: f(g), repeats) for f in (model.transform, model.pairwise))
            cosine = min(cosine, best(means, repeats))
            ratios = f"{whole / cosine:.2f} | {embedding / cosine:.2f}"
            lines.append(f"| **`GroupEmbedding`** | {model.n_components_} | {np.dtype(dtype).name} | {ratios} |")
            print(lines[-1], flush=True)
        averaging = best(lambda g=groups: group_means(g), repeats) / best(means, repeats)
        lines.append(f"| {COSINE} | {n_features} | {np.dtype(dtype).name} | 1.00 | {averaging:.2f} |")
    return "\n".join(lines)


def shared_table(n_texts, n_words=15, n_features=50, vocabulary=100_000):
    """Texts of random words that share a table of vectors."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(vocabulary, n_features)).astype(np.float32)
    indices = rng.integers(0, vocabulary, n_texts * n_words, dtype=np.int32)
    return Groups(table, np.arange(0, n_texts * n_words + 1, n_words), indices=indices)


def traced(function):
    """What a function returns, its time, and its peak memory in MiB, result included."""
    start = time.perf_counter()
    tracemalloc.start()
    result = function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, time.perf_counter() - start, peak / 2**20


def many_texts(n_texts):
    """Fit, embed and average texts that share a table of vectors, without copying them."""
    texts = shared_table(n_texts)
    embedding = GroupEmbedding(whiten=0.5, prior_strength=0.5, normalize=True, n_jobs=JOBS)
    calls = {
        "**`ModelComparisonSimilarity.fit`**": lambda: ModelComparisonSimilarity().fit(texts),
        "**`GroupEmbedding.fit_transform`**": lambda: embedding.fit_transform(texts),
        "averages, a sparse product in SciPy": lambda: averages(texts),
    }
    task = f"{n_texts:,} texts of 15 words, a table of 50 features"
    rows = []
    for method, call in calls.items():
        _, seconds, peak = traced(call)
        rows.append((task, method, f"{seconds:.1f} s", f"{peak:,.0f}"))
    return rows


def averages(texts):
    """Means of the vectors of texts that share a table."""
    weights = np.full(len(texts.indices), 1 / 15, dtype=np.float32)
    return csr_array((weights, texts.indices, texts.offsets), (len(texts), len(texts.vectors))) @ texts.vectors


def reading_texts(n_texts, n_words=15, n_features=50, vocabulary=100_000):
    """Turn texts into weighted groups, or count their words, on one core."""
    rng = np.random.default_rng(0)
    words = ["the", "and", "for", "that", *(f"w{i}" for i in range(4, vocabulary))]
    ranks = np.minimum(rng.zipf(1.3, size=(n_texts, n_words)) - 1, vocabulary - 1)
    texts = [" ".join([words[i] for i in row]) for row in ranks]
    vectors = (words, rng.normal(size=(vocabulary, n_features)).astype(np.float32))
    vectorizers = {
        "**`EmbeddingVectorizer`, `str.split`**": EmbeddingVectorizer(vectors, tokenizer=str.split),
        "**`EmbeddingVectorizer`, its own tokenizer**": EmbeddingVectorizer(vectors),
        "`CountVectorizer`, `str.split`": CountVectorizer(vocabulary=words, analyzer=str.split),
        "`CountVectorizer`, its own tokenizer": CountVectorizer(vocabulary=words),
    }
    rows = []
    for method, vectorizer in vectorizers.items():
        vectorizer.fit(texts[:10])
        seconds = best(lambda v=vectorizer: v.transform(texts), 3)
        rows.append(("tokens read", method, f"{n_texts * n_words / seconds / 1e6:.1f} million per second", ""))
    return rows


def retrieval(n_groups, n_queries, n_features=50):
    """Search an index exactly, with many queries and with one, beside searches by the cosine of the means."""
    groups = make_groups(n_groups, n_features, np.float64)
    models = GroupNeighbors(n_neighbors=10, n_jobs=JOBS).fit(groups)
    points = GroupNeighbors(GroupEmbedding(prior_strength=0.5), n_neighbors=10, n_jobs=JOBS).fit(groups)
    means = normalize(group_means(groups)).astype(np.float32)

    def by_numpy(queries):
        return np.argpartition(-(queries @ means.T), 10, axis=1)[:, :10]

    searches = {
        "**`GroupNeighbors`, models**": (models.kneighbors, groups),
        "**`GroupNeighbors`, points**": (points.kneighbors, groups),
        f"{COSINE}, NumPy": (by_numpy, means),
    }
    if find_spec("faiss"):
        import faiss

        faiss.omp_set_num_threads(JOBS)
        flat = faiss.IndexFlatIP(n_features)
        flat.add(means)
        searches[f"{COSINE}, faiss (flat)"] = (lambda queries: flat.search(queries, 10), means)
    rows = []
    for method, (search, queries) in searches.items():
        search(queries[:1])
        _, seconds, peak = traced(lambda s=search, q=queries: s(q[:n_queries]))
        one = best(lambda s=search, q=queries: s(q[:1]), 5)
        task = f"{n_queries:,} queries among {n_groups:,} groups, 50 features"
        rows.append((task, method, f"{seconds:.1f} s; one in {1000 * one:.1f} ms", f"{peak:,.0f}"))
    return rows


def clustering(n_groups, n_features=50, n_clusters=20):
    """Pooled linkage of simulated clusters, and Ward linkage of their means at the true number."""
    rng = np.random.default_rng(0)
    sizes, truth = rng.integers(3, 21, n_groups), rng.integers(n_clusters, size=n_groups)
    centres = 2 * rng.normal(size=(n_clusters, n_features))
    vectors = np.repeat(centres[truth], sizes, axis=0) + rng.normal(size=(sizes.sum(), n_features))
    groups = Groups(vectors, np.concatenate([[0], np.cumsum(sizes)]))
    methods = {
        "**`ModelComparisonClustering`**": (ModelComparisonClustering(n_jobs=JOBS), groups),
        "Ward linkage of means, number given": (AgglomerativeClustering(n_clusters), group_means(groups)),
    }
    rows = []
    for method, (estimator, X) in methods.items():
        fitted, seconds, peak = traced(lambda e=estimator, X=X: e.fit(X))
        found = f"{fitted.n_clusters_} of {n_clusters} found, ARI {adjusted_rand_score(truth, fitted.labels_):.2f}"
        rows.append(
            (f"clusters of {n_groups:,} groups, 50 features", method, f"{seconds:.0f} s; {found}", f"{peak:,.0f}")
        )
    return rows


def growth_exponent(results):
    """Slope of log time against log number of groups, over the larger sizes, where fixed costs are negligible."""
    results = results[len(results) // 2 :] if len(results) > 2 else results
    n = np.log([r.n_groups for r in results])
    return np.polyfit(n, np.log([r.seconds for r in results]), 1)[0]


def describe_machine():
    packages = ("sklearn-mcsg", "numpy", "scipy", "scikit-learn", "numba", "joblib", "pot")
    versions = [f"{p} {importlib.metadata.version(p)}" for p in packages if _installed(p)]
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {JOBS} threads; Python {platform.python_version()}, {', '.join(versions)}."
    )


def _installed(package):
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def table(results):
    lines = [
        "| method | groups | features | precision | time relative to cosine | pairs per second | extra MiB |",
        "|---|--:|--:|---|--:|--:|--:|",
    ]
    for r in results:
        peak = "" if np.isnan(r.peak) else f"{r.peak:,.0f}"
        ratio = f"{r.ratio:.1f}" if r.ratio < 100 else f"{r.ratio:,.0f}"
        speed = f"{r.n_pairs / r.seconds:,.0f}"
        lines.append(f"| {r.method} | {r.n_groups:,} | {r.n_features} | {r.dtype} | {ratio} | {speed} | {peak} |")
    return "\n".join(lines)


def plot(by_size, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, results in by_size.items():
        slope = f", exponent {growth_exponent(results):.2f}" if len(results) > 1 else ""
        style = "k--" if name == COSINE else "o-"
        label = f"{name.strip('*')}{slope}"
        axes.loglog([r.n_groups for r in results], [r.seconds for r in results], style, label=label)
    axes.set(xlabel="groups", ylabel="seconds for all pairs", title="All pairs of groups, 50 features, 2 threads")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def measure_all(quick):
    """Measurements for the main table, and measurements by size."""
    base = 120 if quick else 4000
    peers = ["blocked NumPy, diag AIC", "per-pair loop, diag AIC", "MaxSim, late interaction"]
    peers += ["exact optimal transport (POT)"] if _installed("pot") else []
    combinations = [
        ("diag", "aic"),
        ("diag", "bic"),
        ("diag", "bayes"),
        ("diag", "tic"),
        ("spherical", "aic"),
        ("vmf", "aic"),
        ("trend", "aic"),
    ]

    print(f"{base} groups of 3 to 20 vectors, 300 features, float64", flush=True)
    main_results = measure(base, 300, np.float64, combinations + peers, memory=True)
    print("float32", flush=True)
    main_results += measure(base, 300, np.float32, [("diag", "aic"), ("spherical", "aic"), ("vmf", "aic")], memory=True)
    print("slower models, on fewer groups", flush=True)
    main_results += measure(base // 2, 300, np.float64, [("spherical", "tic"), ("vmf", "tic")], repeats=6)
    for n_features in (40, 300):
        main_results += measure(base // 4, n_features, np.float64, [("full", "aic")])
    print("other dimensions", flush=True)
    for n_features in (50, 768):
        main_results += measure(base, n_features, np.float64, [("diag", "aic"), ("spherical", "aic"), ("vmf", "aic")])

    sizes = (100, 200) if quick else (1000, 2000, 4000, 8000, 20_000)
    names = [("diag", "aic"), ("spherical", "aic"), ("vmf", "aic")]
    by_size = {COSINE: [], **{f"**{' '.join(name)}**": [] for name in names}}
    for n_groups in sizes:
        print(f"{n_groups} groups, 50 features", flush=True)
        for result in measure(n_groups, 50, np.float64, names, memory=n_groups == sizes[-1]):
            by_size[result.method].append(result)

    return main_results, by_size


def collections_table(quick):
    """Large collections, beside averages."""
    lines = ["| task | method | time | MiB |", "|---|---|--:|--:|"]
    for part in (
        lambda: many_texts(2000 if quick else 1_000_000),
        lambda: reading_texts(1000 if quick else 200_000),
        lambda: retrieval(*((500, 20) if quick else (100_000, 1000))),
        lambda: clustering(100 if quick else 10_000),
    ):
        for row in part():
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
    statistics, vectors = (8 * 1_000_000 * width / 2**20 for width in (101, 375))
    note = (
        f"A million texts have {statistics:,.0f} MiB of statistics; their vectors in float32 would be {vectors:,.0f}."
    )
    return "\n".join([*lines, "", note])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
    parser.add_argument("--scale", action="store_true", help="large collections instead, up to an hour")
    parser.add_argument("--to", type=Path, default=Path("doc/results/speed"), help="folder of tables and figure")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    if options.scale:
        from scale import tables

        write_results(options.to, tables(options.quick))
        return
    main_results, by_size = measure_all(options.quick)
    print("large collections", flush=True)
    collections = collections_table(options.quick)
    print("embedding", flush=True)
    embedding = embedding_table(300 if options.quick else 4000)
    largest = [results[-1] for results in by_size.values()]
    growth = "; ".join(f"{name.strip('*')} {growth_exponent(results):.2f}" for name, results in by_size.items())
    write_results(
        options.to,
        {
            "pairs": f"{describe_machine()}\n\n{table(main_results)}",
            "largest": f"{table(largest)}\n\nGrowth exponent of the time with the number of groups (2 is quadratic): "
            f"{growth}.",
            "embedding": embedding,
            "collections": collections,
        },
    )
    plot(by_size, options.to / "seconds.png")


if __name__ == "__main__":
    main()
