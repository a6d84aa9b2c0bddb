"""Segments of sequences: planted ones, Choi's documents, and running times, beside ruptures.

    python benchmarks/segments.py [--data DIR] [--to doc/results/segments] [--quick]

DIR may hold `choi/2/*/*.ref`: documents of ten segments each from different texts, with one sentence per line and
segments between lines of `=`. Without DIR, the tables of documents of an earlier run are kept.

The penalties of ruptures' PELT are set by hand, so it is given the one of many that is best on the very sequences that
are measured: what it could reach at most.
"""

import argparse
import re
import time
import warnings
from pathlib import Path

import numpy as np
from results import announce, write_results
from vectors import GLOVE

from sklearn_mcsg import ModelComparisonSegmenter, make_text_embedding
from sklearn_mcsg.text import segment_texts

SEGMENTS, FEATURES, SEEDS = 6, 4, 10
KINDS = ("means and variances", "means", "variances", "correlations")
FOLDERS = ("3-11", "3-5", "6-8", "9-11")
PUBLISHED = {"C99": (0.12, 0.12, 0.09, 0.09), "TextTiling": (0.54, 0.45, 0.52, 0.53)}


def planted(kind, seed):
    """A sequence of 6 segments of 25 to 60 rows, and its boundaries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(25, 61, SEGMENTS)
    parts = []
    for size in sizes:
        rows = rng.normal(size=(size, FEATURES))
        if kind == "means":
            rows += rng.normal(size=FEATURES)
        elif kind == "variances":
            rows *= np.exp(0.6 * rng.normal(size=FEATURES))
        elif kind == "correlations":
            rows = rows @ np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0] * [2, 1, 0.5, 0.25]
            rows = rows @ np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0]
        else:
            rows = 1.5 * rng.normal(size=FEATURES) + np.exp(0.4 * rng.normal(size=FEATURES)) * rows
        parts.append(rows)
    return np.concatenate(parts), np.cumsum(sizes)[:-1]


def ours(*arguments, **parameters):
    def find(X):
        return ModelComparisonSegmenter(*arguments, random_state=0, **parameters).fit(X).boundaries_

    return find


def theirs(cost, min_size=2, **parameters):
    """An exact search of ruptures over all rows, for `n_bkps` segments or with a penalty `pen`."""
    import ruptures

    def find(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a note on a change of CostNormal in version 1.1.5
            if cost == "normal":
                search = ruptures.Pelt if "pen" in parameters else ruptures.Dynp
                algorithm = search(model=cost, min_size=min_size, jump=1)
            else:  # Dynp and Pelt in compiled code
                algorithm = ruptures.KernelCPD(kernel=cost, min_size=min_size)
            return np.array(algorithm.fit(X).predict(**parameters)[:-1])

    return find


def measure_planted(find, kind, seeds):
    """Share of boundaries found within 2 rows, error of the number of segments, share of false boundaries."""
    results = []
    for seed in range(seeds):
        X, truth = planted(kind, seed)
        found = find(X)
        apart = np.abs(truth[:, None] - found) if len(found) else np.full((len(truth), 1), np.inf)
        hits = (apart.min(axis=1) <= 2).mean()
        results.append((hits, abs(len(found) - len(truth))))
    return np.mean(results, axis=0)


def planted_methods():
    """Methods by name; a list of them means the best of all."""
    n, k = 42.5 * SEGMENTS, FEATURES + FEATURES * (FEATURES + 1) / 2
    penalties = np.round(np.geomspace(0.25, 64, 9), 2)
    normal = [theirs("normal", 10, pen=factor * k * np.log(n)) for factor in (0.25, 0.5, 1)]
    rbf, l2 = ([theirs(cost, pen=pen) for pen in penalties] for cost in ("rbf", "linear"))
    found = {
        "**`diag`, BIC (default)**": [ours()],
        "**`diag`, AIC**": [ours("diag", "aic")],
        "**`diag`, Bayes**": [ours("diag", "bayes")],
        "**`full`, BIC**": [ours("full")],
        "**`diag`, level .05**": [ours(level=0.05)],
        "**`full`, level .05**": [ours("full", level=0.05)],
        "**`squared_error`, level .05**": [ours("squared_error", level=0.05)],
        "ruptures Pelt, CostNormal, `min_size=10`, best penalty of 3": normal,
        "ruptures Pelt, CostRbf, best penalty of 9": rbf,
        "ruptures Pelt, CostL2, best penalty of 9": l2,
    }
    known = {
        "**`diag`**": [ours(n_segments=SEGMENTS)],
        "**`full`**": [ours("full", n_segments=SEGMENTS)],
        "ruptures Dynp, CostNormal, `min_size=10`": [theirs("normal", 10, n_bkps=SEGMENTS - 1)],
        "ruptures Dynp, CostRbf": [theirs("rbf", n_bkps=SEGMENTS - 1)],
        "ruptures Dynp, CostL2": [theirs("linear", n_bkps=SEGMENTS - 1)],
    }
    return found, known


def planted_table(methods, kinds, seeds, numbers):
    """Shares of boundaries found and, if asked for, errors of the number."""
    results = {}
    for name, variants in methods.items():
        print(f"{name} ...", flush=True)
        cells = []
        for kind in kinds:
            measured = [measure_planted(find, kind, seeds) for find in variants]
            cells.append(max(measured, key=lambda m: m[0] - 0.2 * m[1]))
        results[name] = np.array(cells)
    lines = [f"| | {' | '.join(kinds)} |", "|---|" + "--:|" * len(kinds)]
    for name, values in results.items():
        cells = [f"{hits:.2f}" + (f" ({off:.1f})" if numbers else "") for hits, off in values]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(truth, found, n):
    """The errors P_k (Beeferman et al. 1999) and WindowDiff (Pevzner and Hearst 2002), half a segment apart."""
    window = max(round(n / (2 * (len(truth) + 1))), 1)
    labels = [np.searchsorted(cuts, np.arange(n), side="right") for cuts in (truth, found)]
    between = [part[window:] - part[:-window] for part in labels]
    return np.mean((between[0] == 0) != (between[1] == 0)), np.mean(between[0] != between[1])


def read_documents(folder, count):
    """Documents as lists of segments, which are lists of sentences."""
    paths = sorted(folder.glob("*.ref"))[:count]
    parts = [re.split(r"^=+$", path.read_text(encoding="latin1"), flags=re.MULTILINE) for path in paths]
    return [[part.strip().split("\n") for part in document if part.strip()] for document in parts]


def document_methods():
    """Methods of points by name: functions of the true number of segments; and those that find it, the best of some."""
    known = {
        "**squared error**": lambda k: ours("squared_error", n_segments=k),
        "ruptures Dynp, CostL2": lambda k: theirs("linear", n_bkps=k - 1),
        "ruptures Dynp, CostCosine": lambda k: theirs("cosine", n_bkps=k - 1),
        "ruptures Dynp, CostRbf": lambda k: theirs("rbf", n_bkps=k - 1),
    }
    found = {
        f"**squared error, level {level}**": [ours("squared_error", block_size="growing", level=level)]
        for level in (0.05, 0.2)
    }
    for cost in ("cosine", "rbf"):
        variants = [theirs(cost, pen=pen) for pen in np.round(np.geomspace(0.1, 4, 12), 2)]
        found[f"ruptures Pelt, Cost{cost.title()}, best penalty of 12"] = variants
    return known, found


def measure_documents(documents, points, choose):
    """Mean errors and numbers of segments over the documents of each folder."""
    results = []
    for name, some in documents.items():
        rows = []
        for document, z in zip(some, points[name], strict=True):
            truth = np.cumsum([len(part) for part in document])[:-1]
            found = choose(len(document))(z)
            rows.append((*differences(truth, found, len(z)), len(found) + 1))
        results.append(np.mean(rows, axis=0))
    return np.array(results)


def points_of(documents, embedding):
    """Points of the sentences of each document, by an embedding that is fitted to all of them."""
    sentences = [line for some in documents.values() for document in some for part in document for line in part]
    embedding.fit(sentences)
    return {
        name: [embedding.transform([line for part in document for line in part]) for document in some]
        for name, some in documents.items()
    }


def measure_segment_texts(documents, known):
    """The same of `segment_texts`, which fits the embedding to each document alone."""
    sentences = {
        name: [[line for part in document for line in part] for document in some] for name, some in documents.items()
    }
    return measure_documents(
        documents, sentences, lambda k: lambda texts: segment_texts(texts, k if known else None).boundaries
    )


def document_tables(data, count):
    """The tables of documents."""
    documents = {name: read_documents(data / "choi" / "2" / name, count) for name in FOLDERS}
    known, found = document_methods()
    alone = "**`segment_texts`, each document alone**"
    tables = {
        "documents_known": {alone: measure_segment_texts(documents, known=True)},
        "documents_found": {alone: measure_segment_texts(documents, known=False)},
    }
    embeddings = {"default": make_text_embedding(), "GloVe": make_text_embedding(vectors=GLOVE, likelihood="diag")}
    for vectors, embedding in embeddings.items():
        points = points_of(documents, embedding)
        for name, choose in known.items():
            print(f"{name}, {vectors} ...", flush=True)
            tables["documents_known"][f"{name}, {vectors}"] = measure_documents(documents, points, choose)
        for name, variants in found.items():
            print(f"{name}, {vectors} ...", flush=True)
            measured = [measure_documents(documents, points, lambda k, find=find: find) for find in variants]
            tables["documents_found"][f"{name}, {vectors}"] = min(measured, key=lambda m: m[:, 0].mean())
    return {name: document_table(results, "found" in name) for name, results in tables.items()}


def document_table(results, numbers):
    lines = [f"| | {' | '.join(FOLDERS)} |", "|---|" + "--:|" * len(FOLDERS)]
    for name, values in results.items():
        cells = [f"{p_k:.3f} / {window:.3f}" + (f" ({n:.1f})" if numbers else "") for p_k, window, n in values]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if numbers:
        lines += [f"| {name}, published | {' | '.join(f'{v:.2f}' for v in row)} |" for name, row in PUBLISHED.items()]
    return "\n".join(lines)


def speed_table(n, d, segments):
    """Processor time to cut one sequence, the shorter of two runs."""
    rng = np.random.default_rng(0)
    edges = [0, *np.sort(rng.choice(np.arange(20, n - 20), segments - 1, replace=False)), n]
    X = np.concatenate(
        [rng.normal(size=d) + np.exp(0.3 * rng.normal(size=d)) * rng.normal(size=(size, d)) for size in np.diff(edges)]
    )
    import ruptures

    def pelt(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            algorithm = ruptures.Pelt(model="normal", min_size=2).fit(X)  # every fifth row, as it is by default
            return np.array(algorithm.predict(pen=(d + d * (d + 1) / 2) * np.log(n))[:-1])

    methods = {
        "**`diag`, BIC**": ours(max_segments=n),
        "**`spherical`, BIC**": ours("spherical", max_segments=n),
        "**`vmf`, BIC**": ours("vmf", max_segments=n),
        "**`full`, BIC**": ours("full", max_segments=n),
        f"**`diag`, `n_segments={segments}`**": ours(n_segments=segments),
        "**`diag`, level .05**": ours(level=0.05),
        "**`squared_error`, level .05**": ours("squared_error", level=0.05),
        "ruptures Pelt, CostNormal, every fifth row only": pelt,
    }
    lines = [f"| {n:,} rows, {d} features, {segments} segments | seconds | segments found |", "|---|--:|--:|"]
    for name, find in methods.items():
        print(f"{name} ...", flush=True)
        seconds = []
        for _ in range(2):
            start = time.process_time()
            found = find(X)
            seconds.append(time.process_time() - start)
        lines.append(f"| {name} | {min(seconds):.2f} | {len(found) + 1} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with choi/2")
    parser.add_argument("--to", type=Path, default=Path("doc/results/segments"), help="folder of the tables")
    parser.add_argument("--quick", action="store_true", help="few and short sequences")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    kinds, seeds, count = (KINDS[:1], 1, 2) if options.quick else (KINDS, SEEDS, 20)
    found, known = planted_methods()
    size = (150, 2, 3) if options.quick else (10_000, 12, 40)
    tables = {
        "planted": planted_table(found, kinds, seeds, numbers=True),
        "planted_known": planted_table(known, kinds, seeds, numbers=False),
        **(document_tables(options.data, count) if options.data else {}),
        "speed": speed_table(*size),
    }
    write_results(options.to, tables)


if __name__ == "__main__":
    main()
