"""Command mcsg: compare, search, cluster, deduplicate and segment texts, find drift, and evaluate similarities.

In come arguments, and texts from files or standard input. Out go results to standard output, and everything else to
standard error. The exit code is 0 on success, 1 after an error in the data or files, 2 after an error in the command
itself, and as usual 130 after an interrupt and 141 if the reader of the output closes the pipe.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence

from sklearn_mcsg._disk import reason_of
from sklearn_mcsg.cli._terminal import escaped, prepare_output

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : list of str, default=None
        Arguments; ``None`` means those of the process.

    Returns
    -------
    code : int
        0; 1 after an error that has been reported on standard error; 130 after an interrupt; 141 if the reader of the
        output has closed the pipe.

    Examples
    --------
    >>> from sklearn_mcsg.cli import main
    >>> main(["compare", "A cat sat on the mat.", "A kitten lay on the rug.", "--format", "csv"])
    text_a,text_b,similarity,distance,pvalue,order
    A cat sat on the mat.,A kitten lay on the rug.,...
    0
    """
    if sys.stderr is None:  # closed: notes would go to standard output, or into the next file that is opened
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        print("mcsg: error: standard output is closed.", file=sys.stderr)
        return 1
    try:
        from sklearn_mcsg.cli._options import parser  # imported here, so that an interrupt while loading is also caught
        from sklearn_mcsg.cli._paths import check_paths

        options = parser().parse_args(arguments)
        check_paths(options)
        prepare_output(options.format)
        with warnings.catch_warnings():
            _say_warnings(options.quiet)
            options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (ImportError, MemoryError, OSError, ValueError) as error:
        print(f"mcsg: error: {escaped(_sentence(error))}", file=sys.stderr)
        return 1
    return 0


def _sentence(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, MemoryError):
        text = "There is not enough memory for a corpus of this size."
    elif isinstance(error, OSError) and error.errno is not None and error.strerror == os.strerror(error.errno):
        text = f"{_place(error)}: {reason_of(error)}."
    elif isinstance(error, OSError) and error.strerror:  # a sentence of ours
        text = error.strerror
    return " ".join(text.split()) or type(error).__name__


def _place(error: OSError) -> str:
    """Where an error of the system came from: a file, or else a stream, unless no file could be opened at all."""
    if error.filename is not None:
        return str(error.filename) or "''"
    return "Files" if error.errno in (errno.EMFILE, errno.ENFILE) else "Standard input or output"


def _say_warnings(quiet: bool) -> None:
    """Show warnings as sentences, each once, or not at all."""
    shown: set[str] = set()  # what Python notes is forgotten whenever filters change

    def show(sentence: str) -> None:
        if sentence not in shown:
            shown.add(sentence)
            print(f"mcsg: warning: {escaped(sentence)}", file=sys.stderr)

    warnings.simplefilter("ignore")
    if not quiet:
        warnings.simplefilter("always", UserWarning)
    warnings.showwarning = lambda message, *_: show(str(message))
