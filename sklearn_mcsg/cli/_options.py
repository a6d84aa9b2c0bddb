"""The options of the command mcsg."""

from __future__ import annotations

import argparse
import reprlib
from collections.abc import Callable, Iterable
from math import inf, nan
from pathlib import Path
from typing import Any, NoReturn

from sklearn_mcsg._version import __version__
from sklearn_mcsg.cli import _cluster, _compare, _dedupe, _drift, _evaluate, _search, _segment
from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.likelihoods import LIKELIHOODS
from sklearn_mcsg.text.sources import INSTALLED, RECOMMENDED

_MOST_JOBS = 1024  # threads; no machine has more cores to use
_MOST_DIGITS = 18  # of a whole number, which then fits into 64 bits


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=26, width=min(100, terminal.width()))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print a message on one line, without control characters of the arguments, and exit."""
        super().error(terminal.escaped(" ".join(message.split())))


class _MakesOptional(argparse.Action):
    """An option whose presence makes another argument optional."""

    def __init__(self, *args: Any, optional: argparse.Action, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.optional = optional

    def __call__(self, parser: Any, namespace: argparse.Namespace, value: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, value)
        self.optional.required = False


def parser() -> argparse.ArgumentParser:
    """The parser of all subcommands; each sets `run`, the function to call."""
    command = _Parser(
        prog="mcsg",
        description="Compare, search, cluster, deduplicate and segment texts by model comparison, and find drift.",
        epilog="""examples:
  mcsg compare "A cat sat on the mat." "A kitten lay on the rug."
  mcsg search reviews.csv "the battery died" "slow delivery" --column review
  mcsg cluster headlines.txt --report report.html

mcsg COMMAND --help describes the options of a command.""",
        formatter_class=_Help,
    )
    command.add_argument("--version", action="version", version=f"mcsg {__version__}")
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_compare, _add_search, _add_cluster, _add_dedupe, _add_segment, _add_drift, _add_evaluate):
        add(commands)
    return command


def _add(commands: Any, name: str, run: Callable, summary: str, examples: str) -> argparse.ArgumentParser:
    epilog = "examples:\n" + "\n".join(f"  mcsg {name} {example}" for example in examples.splitlines())
    described = summary[0].upper() + summary[1:] + "."
    command = commands.add_parser(name, help=summary, description=described, epilog=epilog, formatter_class=_Help)
    command.set_defaults(run=run)
    return command


def _add_compare(commands: Any) -> None:
    examples = '"A cat sat on the mat." "A kitten lay on the rug."\n"late again" "no delay" --corpus complaints.txt'
    summary = "show how similar two texts are, and which words make them so"
    corpus = "file of reference texts: p-values hold for texts of its kind (default: the 360 bundled short texts)"
    exact = (
        "compare models in place of embeddings. Fields of json and csv: similarity is then the evidence for one "
        "model and distance goes from 0 to 2; otherwise they are the cosine and 1 - cosine"
    )
    add = _add(commands, "compare", _compare.run, summary, examples).add_argument
    add("a", type=_text, metavar="TEXT", help="the first text")
    add("b", type=_text, metavar="TEXT", help="the second text")
    add("--corpus", metavar="FILE", help=corpus)
    _add_column(add)
    add("--exact", action="store_true", help=exact)
    _add_common(add)


def _add_search(commands: Any) -> None:
    examples = """headlines.txt "storm in the north"
headlines.txt '"storm surge" near the coast'
reviews.csv --column review "the battery died" --index reviews.index
papers.txt --like relevant.txt -k 20"""
    summary = "find the texts of a corpus that match each query best"
    like = "search for texts like those of a file, which together are one query"
    index = (
        "save the index in a folder and reuse it; texts added at the end of the corpus are added, any other change "
        "makes a new index"
    )
    words = (
        "weight of shared words: what a text of average length that has each word of the query once gains, in standard "
        "deviations of the cosine (default: 20); none to search by the embedding alone"
    )
    language = (
        "language of the texts, such as german (default: english): words are compared by their stems, and stop words "
        "do not count unless a query has no others; none to compare words as they are written"
    )
    pvalue = (
        "show p-values of the distances: the share of random pairs of a query and a text, of similar length, that are "
        "at least as near"
    )
    query = 'text to search for; texts must contain what is in "double quotes"; optional with --like'
    add = _add(commands, "search", _search.run, summary, examples).add_argument
    _add_corpus(add)
    queries = add("queries", type=_text, metavar="QUERY", nargs="+", help=query)
    add("--like", metavar="FILE", action=_MakesOptional, optional=queries, help=like)
    add("--together", action="store_true", help="make all queries one query")
    add("-k", "--top", type=_positive, default=5, metavar="K", help="number of texts to show (default: 5)")
    add("--index", metavar="FOLDER", help=index)
    add("--words", type=_words, metavar="W", help=words)
    add("--language", metavar="NAME", help=language)
    add("--pvalue", action="store_true", help=pvalue)
    add("--exact", action="store_true", help="compare models pair by pair; no embedding, words or reasons")
    _add_common(add)


def _add_cluster(commands: Any) -> None:
    examples = """headlines.txt --report report.html
reviews.csv --column review -n 8 --format csv > clusters.csv
reviews.csv --column review --by country"""
    summary = "group the texts of a corpus and describe each group"
    number = "number of clusters, or auto (default): the number on which random halves of the texts agree"
    resolution = "with -n auto: more and smaller clusters above 1, fewer below (default: 1)"
    add = _add(commands, "cluster", _cluster.run, summary, examples).add_argument
    _add_corpus(add)
    add("-n", "--n-clusters", type=_number_or_auto, default="auto", metavar="N", help=number)
    add("--resolution", type=_above_zero, metavar="R", help=resolution)
    report = "write an HTML page with a map, the tree, explanations and the texts; it is as confidential as the corpus"
    add("--report", metavar="FILE", help=report)
    by = (
        "test, for each cluster and each value of a column, whether the cluster holds more of these texts, and whether "
        "their content differs; with --format csv this is printed in place of the texts"
    )
    add("--by", metavar="COLUMN", help=by)
    _add_common(add, criterion=False)


def _add_dedupe(commands: Any) -> None:
    examples = """headlines.txt
reviews.jsonl --column body --unique --format csv > unique.csv
train.csv --against test.csv"""
    summary = "find sets of texts that say the same in nearly the same words"
    overlap = (
        "find texts that have this share of their words in common, such as 0.7 for texts with another last sentence "
        "(default: no word may make a difference)"
    )
    against = "find the texts that are also in another file"
    column = "column that holds the texts of --against (default: that of --column)"
    threshold = (
        "largest distance between the embeddings of duplicates, from 0 (equal) to 2, where 1 means unrelated; texts "
        "with a word that makes a difference are never duplicates, whatever the distance (default: words alone decide)"
    )
    level = "learn the threshold instead: the share of random pairs that may lie within it"
    command = _add(commands, "dedupe", _dedupe.run, summary, examples)
    _add_corpus(command.add_argument)
    command.add_argument("--against", metavar="FILE", help=against)
    command.add_argument("--against-column", metavar="NAME", help=column)
    command.add_argument("--overlap", type=_share, metavar="SHARE", help=overlap)
    limit = command.add_mutually_exclusive_group()
    limit.add_argument("--threshold", type=_distance, metavar="D", help=threshold)
    limit.add_argument("--level", type=_level, metavar="P", help=level)
    unique = "print the corpus without duplicates, or without the texts that are also in the file of --against"
    command.add_argument("--unique", action="store_true", help=unique)
    _add_common(command.add_argument, criterion=False)


def _add_drift(commands: Any) -> None:
    examples = "2025.txt 2026.txt\nlast_week.csv this_week.csv --column message --format json"
    summary = "test whether the texts of two corpora differ, and show the words that make the difference"
    permutations = "number of random divisions of all texts, to compare the given one with (default: 999)"
    add = _add(commands, "drift", _drift.run, summary, examples).add_argument
    add(
        "corpus",
        metavar="OLD",
        help="a corpus: .txt (one text per line), .csv, .tsv, .jsonl or .parquet; - for standard input",
    )
    add("new", metavar="NEW", help="another corpus, read by its name")
    _add_column(add)
    add("--new-column", metavar="NAME", help="column that holds the texts of NEW (default: that of --column)")
    add("-k", "--top", type=_positive, default=20, metavar="K", help="number of words to show (default: 20)")
    add("--permutations", type=_positive, default=999, metavar="N", help=permutations)
    _add_common(add, criterion=False)


def _add_segment(commands: Any) -> None:
    examples = "minutes.txt\nbook.txt --sentences -n 12\ntalk.jsonl --column sentence --format csv > segments.csv"
    summary = "cut a sequence of sentences where the subject changes and describe each segment"
    number = "number of segments, or auto (default): as many as --level allows"
    level = "with -n auto: largest probability that a text in which nothing changes is cut anywhere (default: 0.05)"
    sentences = (
        "split running text into sentences: blank lines and items of lists separate them, other ends of lines do not; "
        "always if there is only one text"
    )
    add = _add(commands, "segment", _segment.run, summary, examples).add_argument
    _add_corpus(add, "one sentence per line")
    add("-n", "--n-segments", type=_number_or_auto, default="auto", metavar="N", help=number)
    add("--level", type=_level, metavar="P", help=level)
    add("--sentences", action="store_true", help=sentences)
    _add_common(add, criterion=False)


def _add_evaluate(commands: Any) -> None:
    examples = "pairs.tsv\n--likelihood diag,vmf --criterion aic,tic --baseline mean,sif+pca pairs.tsv"
    summary = "measure how well similarities agree with human judgements"
    add = _add(commands, "evaluate", _evaluate.run, summary, examples).add_argument
    add("pairs", metavar="PAIRS.tsv", help="tab-separated lines of score, text, text; - for standard input")
    _add_names(add, "output", [*OUTPUTS, _evaluate.EMBEDDING], ["centered", _evaluate.EMBEDDING])
    _add_names(add, "baseline", list(_evaluate.BASELINES), ["mean", "sif+pca"])
    _add_common(add, several=True)


def _add_corpus(add: Callable, lines: str = "one text per line") -> None:
    formats = f".txt ({lines}), .csv, .tsv, .jsonl or .parquet; - for standard input"
    add("corpus", metavar="CORPUS", help=formats)
    _add_column(add)


def _add_column(add: Callable) -> None:
    read_as = "format of the corpus, whatever its name: txt (default for standard input), csv, tsv or jsonl"
    add("--column", metavar="NAME", help="column that holds the texts (default: the only column, or 'text')")
    add("--read-as", choices=["txt", "csv", "tsv", "jsonl"], metavar="NAME", help=read_as)


def _add_common(add: Callable, several: bool = False, criterion: bool = True) -> None:
    """Options that all commands have; the criterion is for those that can compare models."""
    default = "default: trend, which knows the order of words, for embeddings, and diag for comparisons of models"
    likelihood = f"model of a text: {', '.join(LIKELIHOODS)} ({default})"
    if several:
        add(
            "--likelihood", type=_several(list(LIKELIHOODS)), metavar="NAMES", help=f"{likelihood}; several with commas"
        )
        _add_names(add, "criterion", list(CRITERIA), ["aic"], "information criterion: ")
    else:
        add("--likelihood", choices=LIKELIHOODS, metavar="NAME", help=likelihood)
    if criterion and not several:
        listed = f"information criterion: {_listed(CRITERIA, ['aic'])}"
        add("--criterion", choices=CRITERIA, default="aic", metavar="NAME", help=listed)
    vectors = (
        f"a file of word vectors, the folder of a static model, {' or '.join(INSTALLED)}; several with commas are one "
        f"table (default: {','.join(RECOMMENDED)})"
    )
    weighting = (
        "weights of words: by rarity (sif), by vector length (norm), sif,norm or none (default: norm if a static "
        "model such as wordllama is among the vectors, otherwise sif,norm)"
    )
    formats = ["table", "json", "csv"]
    add("--vectors", type=_vectors, default=RECOMMENDED, metavar="NAMES", help=vectors)
    add("--weighting", choices=["sif,norm", "sif", "norm", "none"], metavar="NAME", help=weighting)
    listed = f"{_listed(formats, ['table'])}; in a file or pipe, json and csv are in UTF-8 whatever the locale"
    add("--format", choices=formats, default="table", metavar="NAME", help=listed)
    add("--jobs", type=_jobs, default=-1, metavar="N", help="number of threads (default: one per core)")
    add("--quiet", action="store_true", help="no progress bars, notes or warnings")


def _vectors(value: str) -> str | list[str]:
    """A name or a path, which may hold commas, or several of them."""
    if Path(value).exists() and value:
        return value
    names = value.split(",")
    if not all(names):
        raise argparse.ArgumentTypeError(f"names or paths are expected, several with commas, got {reprlib.repr(value)}")
    return names if len(names) > 1 else value


def _add_names(add: Callable, option: str, names: list[str], default: list[str], what: str = "") -> None:
    """An option that takes several names, separated by commas."""
    listed = f"{what}{_listed(names, default)}; several with commas"
    add(f"--{option}", type=_several(names), default=default, metavar="NAMES", help=listed)


def _listed(names: Iterable[str], default: list[str]) -> str:
    return ", ".join(f"{name} (default)" if name in default else name for name in names)


def _several(names: list[str]) -> Callable[[str], list[str]]:
    """A type for names separated by commas, each once."""

    def split(text: str) -> list[str]:
        chosen = list(dict.fromkeys(text.split(",")))
        wrong = [name for name in chosen if name not in names]
        if wrong:
            raise argparse.ArgumentTypeError(f"invalid choice: {wrong[0]!r} (choose from {', '.join(names)})")
        return chosen

    return split


def _text(text: str) -> str:
    """A text that is Unicode: bytes of the command line that are not in the locale's encoding become surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        message = f"expected a text in the encoding of the locale, as UTF-8, got {reprlib.repr(text)}"
        raise argparse.ArgumentTypeError(message) from None
    return text


def _number(accepts: Callable[[float], bool], expected: str) -> Callable[[str], float]:
    """A type for numbers that are accepted."""

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not accepts(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return convert


_distance = _number(lambda value: 0 <= value <= 2, "a distance from 0 to 2")
_share = _number(lambda value: 0 < value <= 1, "a share above 0, at most 1")
_level = _number(lambda value: 0 < value < 1, "a number between 0 and 1")
_above_zero = _number(lambda value: 0 < value < inf, "a number above 0")


def _words(text: str) -> float | str:
    return text if text == "none" else _number(lambda value: 0 < value < inf, "a number above 0, or none")(text)


def _whole(text: str, accepts: Callable[[int], bool], expected: str) -> int:
    """A whole number that is accepted; its digits are limited."""
    value = int(text) if text.removeprefix("-").isdecimal() and len(text) <= _MOST_DIGITS else 0
    if not accepts(value):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {reprlib.repr(text)}")
    return value


def _jobs(text: str) -> int:
    jobs = _whole(text, bool, "a number of threads, or -1 for all cores")
    if jobs > _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"expected at most {_MOST_JOBS} threads, got {text}")
    return jobs


def _positive(text: str, expected: str = "a positive whole number") -> int:
    return _whole(text, lambda value: value > 0, expected)


def _number_or_auto(text: str) -> int | None:
    return None if text == "auto" else _positive(text, "a number above 0, or auto")
