"""Large collections: approximate search, clusters, and a corpus in parts on two worker processes.

Texts of 15 words are simulated from real word vectors: nearly half of a text's words belong to one of 3000 topics, a
word and its nearest neighbours, and the rest are drawn by frequency. Every measurement runs in a process of its own, so
that its peak memory is its own; those of a quick run share one. `speed.py --scale` writes the results.
"""

import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize
from vectors import GLOVE

from sklearn_mcsg import (
    GroupNeighbors,
    MeanVector,
    PartitionedClustering,
    PartitionedNeighbors,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.clustering import cluster_points
from sklearn_mcsg.text.sources import open_table

JOBS = 2
N_WORDS, N_TOPICS, N_NEAR, VOCABULARY = 15, 3000, 60, 50_000
FEW = "embedding, 256 components"
RECIPES = {
    "embedding": make_text_embedding,
    FEW: partial(make_text_embedding, n_components=256),
    "embedding, GloVe as sets": partial(make_text_embedding, vectors=GLOVE, likelihood="diag"),
    "centered, GloVe": partial(make_text_similarity, vectors=GLOVE),
}


def simulated_texts(n_texts, seed=0, n_topics=N_TOPICS):
    """Texts about topics."""
    rng = np.random.default_rng(seed)
    table = open_table(GLOVE)
    vectors = np.asarray(table.vectors[:VOCABULARY], dtype=np.float32)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    heads = np.random.default_rng(1).choice(np.arange(500, 20_000), n_topics, replace=False)
    near = np.argpartition(-(vectors[heads] @ vectors.T), N_NEAR, axis=1)[:, :N_NEAR]
    frequency = 1 / (np.arange(len(vectors)) + 2.7)
    common = np.searchsorted(np.cumsum(frequency / frequency.sum()), rng.random((n_texts, N_WORDS)))
    topical = near[rng.integers(n_topics, size=(n_texts, 1)), rng.integers(N_NEAR, size=(n_texts, N_WORDS))]
    chosen = np.where(rng.random((n_texts, N_WORDS)) < 0.45, topical, common.clip(0, len(vectors) - 1))
    words = np.array(list(table.rows)[: len(vectors)], dtype=object)
    return [" ".join(row) for row in words[chosen]]


def new_process():
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def call_in(process, function, *args):
    return process.submit(function, *args).result()


def alone(function, *args):
    """Call a function in a new process; return its result."""
    with new_process() as process:
        return call_in(process, function, *args)


def resident():
    """MiB of memory that the process has used at most until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(function, repeats=1):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return result, min(times)


def write_texts(path, *args):
    Path(path).write_text("\n".join(simulated_texts(*args)), encoding="utf8")


def read_texts(path):
    return Path(path).read_text(encoding="utf8").splitlines()


def search(recipe, path, queries):
    """Build an index from texts, measure its recall, and time one query at a time."""
    texts, queries = read_texts(path), read_texts(queries)
    pipeline = RECIPES[recipe](n_jobs=JOBS).set_params(vectorizer__tokenizer=str.split)
    index, building = timed(lambda: GroupNeighbors(pipeline, algorithm="approximate", n_jobs=JOBS).fit(texts))
    memory = resident()
    index.kneighbors(queries[:1], 10)
    recall = index.recall(queries, n_neighbors=10)
    approximate = np.median([timed(lambda q=q: index.kneighbors([q], 10))[1] for q in queries[:50]])
    index.set_params(algorithm="exact")
    index.kneighbors(queries[:1], 10)
    exact = np.median([timed(lambda q=q: index.kneighbors([q], 10))[1] for q in queries[:10]])
    return building, memory, recall, 1000 * approximate, 1000 * exact


def averaged(path, vectorizer):
    """Averages of the vectors of texts, at unit length."""
    return normalize(MeanVector().embed(vectorizer.transform(read_texts(path)))).astype(np.float32)


def search_averages(path, queries):
    """The same for averages in an inverted file of faiss that visits as few lists as a recall of .99 needs."""
    import faiss

    faiss.omp_set_num_threads(JOBS)
    vectorizer = RECIPES["embedding"]()[0].set_params(tokenizer=str.split).fit(["a text"])

    def build():
        points = averaged(path, vectorizer)
        flat = faiss.IndexFlatIP(points.shape[1])
        n_lists = max(4, int(4 * np.sqrt(len(points))))
        index = faiss.IndexIVFFlat(flat, points.shape[1], n_lists, faiss.METRIC_INNER_PRODUCT)
        index.train(points[: 50 * n_lists])
        index.add(points)
        return index, points

    (index, points), building = timed(build)
    memory = resident()
    asked = averaged(queries, vectorizer)
    exact = faiss.IndexFlatIP(points.shape[1])
    exact.add(points)
    nearest = exact.search(asked, 10)[1]

    def recall(n_visited):
        index.nprobe = n_visited
        found = index.search(asked, 10)[1]
        return np.mean([len(np.intersect1d(*rows)) / 10 for rows in zip(found, nearest, strict=True)])

    powers = [2**i for i in range(int(np.log2(index.nlist)) + 1)]
    reached = recall(next((n for n in powers if recall(n) >= 0.99), index.nlist))
    fast = np.median([timed(lambda q=q: index.search(q[None], 10))[1] for q in asked[:50]])
    slow = np.median([timed(lambda q=q: exact.search(q[None], 10))[1] for q in asked[:10]])
    return building, memory, reached, 1000 * fast, 1000 * slow


def processor():
    """Seconds of processor time of this process and of those that it has waited for."""
    return sum(
        spent.ru_utime + spent.ru_stime
        for spent in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def cluster(n_clusters, path):
    """Cluster embedded texts; return processor time of both steps, time, the number of clusters, and memory."""
    vectorizer, embedding = RECIPES[FEW](n_jobs=JOBS).set_params(vectorizer__tokenizer=str.split)
    start, before = time.perf_counter(), processor()
    points = embedding.fit_transform(vectorizer.fit_transform(read_texts(path)))
    embedded = processor()
    clusters = cluster_points(points, n_clusters, by_cosine=True, random_state=0, n_jobs=JOBS)
    done, seconds, memory = processor(), time.perf_counter() - start, resident()
    return embedded - before, done - embedded, seconds, len(clusters.centers), memory


def cluster_averages(n_clusters, path):
    """The same for averages by scikit-learn."""
    vectorizer = RECIPES[FEW]()[0].set_params(tokenizer=str.split).fit(["a text"])
    start, before = time.perf_counter(), processor()
    points = averaged(path, vectorizer)
    embedded = processor()
    MiniBatchKMeans(n_clusters, random_state=0).fit(points)
    return embedded - before, processor() - embedded, time.perf_counter() - start, n_clusters, resident()


class ReadTexts:
    """From a file of texts to groups."""

    def __init__(self, vectorizer):
        self.vectorizer = vectorizer

    def __call__(self, path):
        return self.vectorizer.transform(read_texts(path))


def loopback():
    """Bytes that this machine has sent to itself, or nan where that is not told."""
    lines = Path("/proc/net/dev").read_text().splitlines() if Path("/proc/net/dev").exists() else []
    counts = [float(line.split()[1]) for line in lines if line.strip().startswith("lo:")]
    return counts[0] if counts else float("nan")


def worker_memory(dask_worker):
    return resident()


def partitions(path, queries, n_parts=20):
    """Learn, index, search and cluster files on two worker processes; return seconds and MiB moved of each.

    The third pair is of clusters. The last number is MiB of a worker.
    """
    from distributed import Client, LocalCluster

    texts = read_texts(path)
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{i}.txt" for i in range(n_parts)]
        for i, part in enumerate(paths):
            Path(part).write_text("\n".join(texts[i::n_parts]), encoding="utf8")
        vectorizer, embedding = RECIPES[FEW]().set_params(vectorizer__tokenizer=str.split)
        queries = vectorizer.fit_transform(read_texts(queries))
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=folder) as workers,
            Client(workers) as client,
        ):
            before = loopback()
            index, building = timed(
                lambda: PartitionedNeighbors(embedding, load=ReadTexts(vectorizer), client=client).fit(paths)
            )
            built = loopback()
            index.kneighbors(queries[:1], 10)
            middle = loopback()
            _, searching = timed(lambda: index.kneighbors(queries, 10))
            searched = loopback()
            clustering = PartitionedClustering(
                50, embedding=index.similarity_, load=ReadTexts(vectorizer), client=client, random_state=0
            )
            _, clustering_seconds = timed(lambda: clustering.fit(paths))
            moved = [(b - a) / 2**20 for a, b in ((before, built), (middle, searched), (searched, loopback()))]
            memory = max(client.run(worker_memory).values())
    return (building, moved[0]), (searching, moved[1]), (clustering_seconds, moved[2]), memory


SEARCH = """\
| texts | method | build, s | MiB | recall@10 | ms per query | exact, ms | faster |
|--:|---|--:|--:|--:|--:|--:|--:|"""
CLUSTERS = """\
| texts | method | found | processor s, vectors | processor s, clusters | seconds of both | MiB |
|--:|---|--:|--:|--:|--:|--:|"""
PARTITIONS = """\
| texts | queries | learn and index, s | MiB moved | search, s | MiB moved | cluster, s | MiB moved | MiB of a worker |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def tables(quick=False):
    """Search, clusters and partitions of large collections.

    One query at a time is timed, warm. MiB is the peak memory of the whole process, texts included. Clusters are of
    texts that are embedded with 256 components, and processor seconds are those of all threads and processes. Parts
    are indexed by two worker processes with one thread each, and then clustered with the same embedding; what moved is
    counted at the loopback interface, and includes what passes the scheduler.
    """
    lines = {"search": [SEARCH], "clusters": [CLUSTERS], "partitions": [PARTITIONS]}

    def add(name, row):
        print(row, flush=True)
        lines[name].append(row)

    with tempfile.TemporaryDirectory() as folder, new_process() as shared:
        call = partial(call_in, shared) if quick else alone
        path, queries = f"{folder}/texts.txt", f"{folder}/queries.txt"
        n_queries, n_topics = (20, 50) if quick else (1000, N_TOPICS)
        call(write_texts, queries, n_queries, 2, n_topics)
        for n_texts in (300,) if quick else (100_000, 1_000_000):
            call(write_texts, path, n_texts, 0, n_topics)
            methods = {f"**{recipe}**": partial(search, recipe) for recipe in RECIPES}
            for method, function in {**methods, "averages, faiss": search_averages}.items():
                building, memory, recall, fast, slow = call(function, path, queries)
                times = f"{fast:.1f} | {slow:.1f} | {slow / fast:.0f} x"
                add("search", f"| {n_texts:,} | {method} | {building:.0f} | {memory:,.0f} | {recall:.3f} | {times} |")
            *steps, memory = call(partitions, path, queries)
            moved = " | ".join(f"{seconds:.1f} | {mebibytes:,.1f}" for seconds, mebibytes in steps)
            add("partitions", f"| {n_texts:,} | {n_queries:,} | {moved} | {memory:,.0f} |")
            methods = {
                "**given number**": partial(cluster, 50),
                "**number found**": partial(cluster, None),
                "averages, `MiniBatchKMeans`": partial(cluster_averages, 50),
            }
            for method, function in methods.items():
                embedding, clusters, seconds, found, memory = call(function, path)
                times = f"{embedding:.0f} | {clusters:.0f} | {seconds:.0f}"
                add("clusters", f"| {n_texts:,} | {method} | {found} | {times} | {memory:,.0f} |")
    return {name: "\n".join(rows) for name, rows in lines.items()}
