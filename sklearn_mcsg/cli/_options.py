"""The options of the command mcsg."""

from __future__ import annotations

import argparse
import reprlib
from collections.abc import Callable, Iterable, Sequence
from math import inf, nan
from typing import Any, NoReturn

from sklearn_mcsg._version import __version__
from sklearn_mcsg.cli import _cluster, _compare, _dedupe, _evaluate, _search
from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.likelihoods import LIKELIHOODS
from sklearn_mcsg.text.tables import INSTALLED

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
        description="Compare, search and cluster texts by model comparison: do two texts need one model or two?",
        epilog="""examples:
  mcsg compare "A cat sat on the mat." "A kitten lay on the rug."
  mcsg search reviews.csv "the battery died" "slow delivery" --column review
  mcsg cluster headlines.txt --report report.html

mcsg COMMAND --help describes the options of a command.""",
        formatter_class=_Help,
    )
    command.add_argument("--version", action="version", version=f"mcsg {__version__}")
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_compare, _add_search, _add_cluster, _add_dedupe, _add_evaluate):
        add(commands)
    return command


def _add(commands: Any, name: str, run: Callable, summary: str, examples: str) -> argparse.ArgumentParser:
    epilog = "examples:\n" + "\n".join(f"  mcsg {name} {example}" for example in examples.splitlines())
    command = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", epilog=epilog, formatter_class=_Help
    )
    command.set_defaults(run=run, column=None, read_as=None)
    return command


def _add_compare(commands: Any) -> None:
    examples = '"A cat sat on the mat." "A kitten lay on the rug."\n"late again" "no delay" --corpus complaints.txt'
    command = _add(
        commands, "compare", _compare.run, "show how similar two texts are, and which words make them so", examples
    )
    command.add_argument("a", metavar="TEXT", help="the first text")
    command.add_argument("b", metavar="TEXT", help="the second text")
    command.add_argument(
        "--corpus",
        help="file of reference texts: p-values hold for texts of its kind (default: the 360 bundled short texts)",
    )
    _add_column(command)
    command.add_argument(
        "--exact",
        action="store_true",
        help="compare models in place of embeddings. Fields of json and csv: similarity is then the evidence for one "
        "model and distance goes from 0 to 2; otherwise they are the cosine and 1 - cosine",
    )
    _add_models(command)
    _add_common(command)


def _add_search(commands: Any) -> None:
    examples = """headlines.txt "storm in the north"
reviews.csv --column review "the battery died" --index reviews.index
papers.txt --like relevant.txt -k 20"""
    command = _add(commands, "search", _search.run, "find the texts of a corpus that match each query best", examples)
    _add_corpus(command)
    queries = command.add_argument(
        "queries", metavar="QUERY", nargs="+", help="text to search for; optional with --like"
    )
    like = "search for texts like those of a file, which together are one query"
    command.add_argument("--like", metavar="FILE", action=_MakesOptional, optional=queries, help=like)
    command.add_argument("--together", action="store_true", help="make all queries one query")
    command.add_argument(
        "-k", "--top", type=_positive, default=5, metavar="K", help="number of texts to show (default: 5)"
    )
    command.add_argument(
        "--index", metavar="FOLDER", help="save the index in a folder and reuse it; new texts of the corpus are added"
    )
    command.add_argument(
        "--words",
        choices=["z-score", "share", "none"],
        metavar="NAME",
        help="how words count beside the embedding: z-score (default: as much as the embedding), share (less, unless a "
        "text has most words of the query), none",
    )
    command.add_argument(
        "--exact", action="store_true", help="compare models pair by pair; no embedding, words or reasons"
    )
    _add_models(command)
    _add_common(command)


def _add_cluster(commands: Any) -> None:
    examples = "headlines.txt --report report.html\nreviews.csv --column review -n 8 --format csv > clusters.csv"
    command = _add(commands, "cluster", _cluster.run, "group the texts of a corpus and describe each group", examples)
    _add_corpus(command)
    command.add_argument(
        "-n",
        "--n-clusters",
        type=_number_of_clusters,
        default="auto",
        metavar="N",
        help="a number, or auto (default): communities of similar texts, which decide how many there are",
    )
    command.add_argument(
        "--resolution",
        type=_above_zero,
        metavar="R",
        help="with -n auto: more and smaller clusters above 1, fewer below (default: 1)",
    )
    command.add_argument("--report", metavar="FILE", help="write an HTML page with a map, the tree and explanations")
    _add_models(command, criterion=False)
    _add_common(command)


def _add_dedupe(commands: Any) -> None:
    examples = "headlines.txt\nreviews.jsonl --column body --unique --format csv > unique.csv"
    command = _add(
        commands, "dedupe", _dedupe.run, "find sets of texts that say the same in nearly the same words", examples
    )
    _add_corpus(command)
    limit = command.add_mutually_exclusive_group()
    limit.add_argument(
        "--threshold",
        type=_distance,
        help="largest distance between the embeddings of duplicates, from 0 (the same) to 1 (unrelated); a word that "
        "makes a difference separates texts at any distance (default: 0.6, or none below 50 texts)",
    )
    limit.add_argument(
        "--level", type=_level, help="accepted rate of random pairs within the threshold, in place of --threshold"
    )
    command.add_argument("--unique", action="store_true", help="print the corpus without duplicates")
    _add_models(command, criterion=False)
    _add_common(command)


def _add_evaluate(commands: Any) -> None:
    examples = "pairs.tsv\n--likelihood diag,vmf --criterion aic,tic --baseline mean,sif+pca pairs.tsv"
    summary = "measure how well similarities agree with human judgements"
    command = _add(commands, "evaluate", _evaluate.run, summary, examples)
    command.add_argument(
        "pairs", metavar="PAIRS.tsv", help="tab-separated lines of score, text, text; - for standard input"
    )
    for name, registry, default in (
        ("output", [*OUTPUTS, _evaluate.EMBEDDING], ["centered", _evaluate.EMBEDDING]),
        ("baseline", list(_evaluate.BASELINES), ["mean", "sif+pca"]),
    ):
        listed = f"{_listed(registry, default)}; several with commas"
        command.add_argument(f"--{name}", type=_several(registry), default=default, metavar="NAMES", help=listed)
    _add_models(command, several=True)
    _add_common(command)


def _add_corpus(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "corpus",
        metavar="CORPUS",
        help=".txt (one text per line), .csv, .tsv, .jsonl or .parquet; - for standard input",
    )
    _add_column(command)


def _add_column(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--column", metavar="NAME", help="column that holds the texts (default: the only column, or 'text')"
    )
    command.add_argument(
        "--read-as",
        choices=["txt", "csv", "tsv", "jsonl"],
        metavar="NAME",
        help="format of the corpus if its name does not tell, as for standard input: txt (default), csv, tsv, jsonl",
    )


def _add_models(command: argparse.ArgumentParser, several: bool = False, criterion: bool = True) -> None:
    """Options of the model of a text and, for exact comparisons, of the criterion."""
    named: list[tuple[str, Any, str]] = [("likelihood", LIKELIHOODS, "model of a text")]
    named += [("criterion", CRITERIA, "information criterion")] if criterion else []
    for name, registry, what in named:
        first = next(iter(registry))
        listed = f"{what}: {_listed(registry, [first])}"
        if several:
            type_ = _several(list(registry))
            command.add_argument(
                f"--{name}", type=type_, default=[first], metavar="NAMES", help=f"{listed}; several with commas"
            )
        else:
            command.add_argument(f"--{name}", choices=registry, default=first, metavar="NAME", help=listed)


def _add_common(command: argparse.ArgumentParser) -> None:
    default, *others = INSTALLED
    command.add_argument(
        "--vectors",
        default=default,
        help=f"a file of word vectors, the folder of a static model, {', '.join(others)} or {default} (default)",
    )
    command.add_argument(
        "--weighting",
        choices=["sif,norm", "sif", "norm", "none"],
        metavar="NAME",
        help="weights of words: by rarity (sif), by vector length (norm), sif,norm or none (default: sif,norm for word "
        "vectors, norm for static models)",
    )
    command.add_argument(
        "--format", choices=["table", "json", "csv"], default="table", metavar="NAME", help="table (default), json, csv"
    )
    command.add_argument(
        "--jobs", type=_jobs, default=-1, metavar="N", help="number of threads (default: one per core)"
    )
    command.add_argument("--quiet", action="store_true", help="no progress bars, notes or warnings")


def _listed(names: Iterable[str], default: list[str]) -> str:
    return ", ".join(f"{name} (default)" if name in default else name for name in names)


def _several(names: Sequence[str]) -> Callable[[str], list[str]]:
    """A type for names separated by commas, each once."""

    def split(text: str) -> list[str]:
        chosen = list(dict.fromkeys(text.split(",")))
        wrong = [name for name in chosen if name not in names]
        if wrong:
            raise argparse.ArgumentTypeError(f"invalid choice: {wrong[0]!r} (choose from {', '.join(names)})")
        return chosen

    return split


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    return value


def _distance(text: str) -> float:
    if not 0 <= _number(text) < inf:
        raise argparse.ArgumentTypeError(f"expected a distance of at least 0, got {text!r}")
    return float(text)


def _level(text: str) -> float:
    if not 0 < _number(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, got {text!r}")
    return float(text)


def _jobs(text: str) -> int:
    jobs = _whole(text)
    if jobs == 0:
        got = reprlib.repr(text)
        raise argparse.ArgumentTypeError(f"expected a number of threads, or -1 for all cores, got {got}")
    if jobs > _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"expected at most {_MOST_JOBS} threads, got {text}")
    return jobs


def _positive(text: str) -> int:
    if _whole(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, got {reprlib.repr(text)}")
    return _whole(text)


def _whole(text: str) -> int:
    """A whole number, or 0 if the text is not one or has too many digits."""
    return int(text) if text.removeprefix("-").isdecimal() and len(text) <= _MOST_DIGITS else 0


def _above_zero(text: str) -> float:
    if not 0 < _number(text) < inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return float(text)


def _number_of_clusters(text: str) -> int | None:
    if text == "auto":
        return None
    try:
        return _positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected a number or auto, got {reprlib.repr(text)}") from None
