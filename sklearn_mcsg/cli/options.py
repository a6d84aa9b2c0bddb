"""The options of the command mcsg."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from math import inf, nan
from typing import Any

from sklearn_mcsg import _commands
from sklearn_mcsg import _terminal as terminal
from sklearn_mcsg._pairwise import OUTPUTS
from sklearn_mcsg._version import __version__
from sklearn_mcsg._word_table import INSTALLED
from sklearn_mcsg.criteria import CRITERIA
from sklearn_mcsg.likelihoods import LIKELIHOODS


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=26, width=min(100, terminal.width()))


def parser() -> argparse.ArgumentParser:
    """The options of all subcommands; `run` is what a subcommand does."""
    command = argparse.ArgumentParser(
        prog="mcsg",
        description="Compare, search and cluster texts: are two texts better explained by one model, or by two?",
        epilog="""examples:
  mcsg compare "A cat sat on the mat." "A kitten lay on the rug."
  mcsg search reviews.csv "the battery died" "slow delivery" --column review
  mcsg cluster headlines.txt --report report.html

mcsg COMMAND --help tells more of each.""",
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
    command.set_defaults(run=run, column=None)
    return command


def _add_compare(commands: Any) -> None:
    examples = '"A cat sat on the mat." "A kitten lay on the rug."\n"late again" "no delay" --corpus complaints.txt'
    command = _add(
        commands, "compare", _commands.compare, "how similar two texts are, and which words say so", examples
    )
    command.add_argument("a", metavar="TEXT", help="a text")
    command.add_argument("b", metavar="TEXT", help="another")
    command.add_argument(
        "--corpus", help="texts to compare with: what is common to them counts little (default: a few hundred built in)"
    )
    _add_column(command)
    _add_common(command)


def _add_search(commands: Any) -> None:
    examples = (
        'headlines.txt "storm in the north"\nreviews.csv --column review "the battery died" --index reviews.index'
    )
    command = _add(commands, "search", _commands.search, "find the texts of a corpus nearest to each query", examples)
    _add_corpus(command)
    command.add_argument("queries", metavar="QUERY", nargs="+", help="what to look for")
    command.add_argument("-k", "--top", type=_positive, default=5, metavar="K", help="texts to show (default: 5)")
    command.add_argument("--index", metavar="FOLDER", help="keep the index there, and use it again while it fits")
    _add_common(command)


def _add_cluster(commands: Any) -> None:
    examples = "headlines.txt --report report.html\nreviews.csv --column review -n 8 --format csv > clusters.csv"
    command = _add(
        commands, "cluster", _commands.cluster, "group the texts of a corpus and say what each group is about", examples
    )
    _add_corpus(command)
    command.add_argument(
        "-n",
        "--n-clusters",
        type=_number_of_clusters,
        default="silhouette",
        metavar="N",
        help="a number, or how to find it: silhouette, or evidence, which few texts support less (default: silhouette)",
    )
    command.add_argument("--report", metavar="FILE", help="write an HTML page with map, tree and explanations")
    _add_common(command)


def _add_dedupe(commands: Any) -> None:
    examples = "headlines.txt\nreviews.jsonl --column body --unique --format csv > unique.csv"
    command = _add(
        commands, "dedupe", _commands.dedupe, "find sets of texts that each say nearly the same as another", examples
    )
    _add_corpus(command)
    limit = command.add_mutually_exclusive_group()
    limit.add_argument(
        "--threshold", type=_distance, default=0.15, help="largest distance: 0 the same, 1 unrelated (default: 0.15)"
    )
    limit.add_argument(
        "--level", type=_level, help="instead, the share of unrelated pairs that may be taken for such: try 1e-6"
    )
    command.add_argument("--unique", action="store_true", help="print all texts, of each set the first only")
    _add_common(command)


def _add_evaluate(commands: Any) -> None:
    examples = "pairs.tsv\npairs.tsv --likelihood diag vmf --criterion aic tic --baseline mean sif+pca"
    summary = "rank correlation of similarities with people's judgements"
    command = _add(commands, "evaluate", _commands.evaluate, summary, examples)
    command.add_argument("pairs", metavar="PAIRS.tsv", help="lines of gold, text, text with tabs between; - for stdin")
    for name, registry, default in (
        ("output", OUTPUTS, ["centered"]),
        ("baseline", _commands.BASELINES, ["mean", "sif+pca"]),
    ):
        listed = _listed(registry, default)
        command.add_argument(f"--{name}", nargs="+", choices=registry, default=default, metavar="NAME", help=listed)
    _add_common(command, several=True)


def _add_corpus(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "corpus", metavar="CORPUS", help=".txt (a text a line), .csv, .tsv, .jsonl, .parquet; - for stdin"
    )
    _add_column(command)


def _add_column(command: argparse.ArgumentParser) -> None:
    command.add_argument("--column", metavar="NAME", help="column of the texts (default: the only one, or 'text')")


def _add_common(command: argparse.ArgumentParser, several: bool = False) -> None:
    vectors = ", ".join(INSTALLED)
    command.add_argument(
        "--vectors", default=next(iter(INSTALLED)), help=f"a file of word vectors, or {vectors} (default)"
    )
    for name, registry, what in (("likelihood", LIKELIHOODS, "model of a text"), ("criterion", CRITERIA, "its price")):
        first = next(iter(registry))
        more: dict[str, Any] = {"nargs": "+", "default": [first]} if several else {"default": first}
        listed = f"{what}: {_listed(registry, [first])}"
        command.add_argument(f"--{name}", choices=registry, metavar="NAME", help=listed, **more)
    command.add_argument(
        "--weighting",
        choices=["sif,norm", "sif", "norm", "none"],
        default="sif,norm",
        metavar="NAME",
        help="weights of words: sif,norm (default: by rarity and by length of the vector), sif, norm, none",
    )
    command.add_argument(
        "--format", choices=["table", "json", "csv"], default="table", metavar="NAME", help="table (default), json, csv"
    )
    command.add_argument("--jobs", type=_jobs, default=-1, metavar="N", help="threads (default: one for each core)")
    command.add_argument("--quiet", action="store_true", help="no progress bars, notes or warnings")


def _listed(names: Iterable[str], default: list[str]) -> str:
    return ", ".join(f"{name} (default)" if name in default else name for name in names)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    return value


def _distance(text: str) -> float:
    if not 0 <= _number(text) < inf:
        raise argparse.ArgumentTypeError(f"a distance from 0 on is expected, got {text!r}")
    return float(text)


def _level(text: str) -> float:
    if not 0 < _number(text) < 1:
        raise argparse.ArgumentTypeError(f"a share between 0 and 1 is expected, got {text!r}")
    return float(text)


def _jobs(text: str) -> int:
    if not text.removeprefix("-").isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a number of threads is expected, or -1 for all, got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on is expected, got {text!r}")
    return int(text)


def _number_of_clusters(text: str) -> int | str:
    if text in ("silhouette", "evidence"):
        return text
    try:
        return _positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"a number, silhouette or evidence is expected, got {text!r}") from None
