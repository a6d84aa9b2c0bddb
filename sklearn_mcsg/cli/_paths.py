"""The files that a command reads and writes: none may be both, because what is written would replace what is read."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sklearn_mcsg._disk import identity_of
from sklearn_mcsg.text.sources import files_of

_READ = {
    "corpus": "the corpus",
    "new": "the second corpus",
    "pairs": "the file of pairs",
    "like": "--like",
    "against": "--against",
}


class _Use(NamedTuple):
    """A file that is used: by which argument, its path or descriptor, and whether it is written."""

    by: str
    path: str | Path | int
    is_written: bool


def check_paths(options: argparse.Namespace) -> None:
    """Raise if standard input is read twice, or if a file is written for one argument and used for another."""
    streams = [by for option, by in _READ.items() if getattr(options, option, None) == "-"]
    if len(streams) > 1:
        raise ValueError(f"Standard input can be read once: name a file for {' or '.join(streams)}.")
    known: dict[tuple[int, int], _Use] = {}
    for use in _uses(options):
        identity = identity_of(use.path)
        if identity is None:
            continue
        other = known.setdefault(identity, use)
        if other.by != use.by and use.is_written:
            names = [f", {path}" for path in (use.path, other.path) if not isinstance(path, int)]
            sentence = f"{other.by} and {use.by} are one file{''.join(names[:1])}: write to another one."
            raise ValueError(sentence[0].upper() + sentence[1:])


def _uses(options: argparse.Namespace) -> Iterator[_Use]:
    """The files that are read, and then those that are written."""
    for option, by in _READ.items():
        path = getattr(options, option, None)
        if path is not None:
            yield from _stream(by, sys.stdin, is_written=False) if path == "-" else [_Use(by, path, False)]
    yield from (_Use("--vectors", path, False) for own in files_of(options.vectors) for path in own)
    if getattr(options, "report", None) is not None:
        yield _Use("--report", options.report, True)
    if getattr(options, "index", None) is not None:
        yield from (_Use("--index", path, True) for path in _folder(options.index))
    yield from _stream("standard output", sys.stdout, is_written=True)


def _stream(by: str, stream: Any, is_written: bool) -> Iterator[_Use]:
    """The file behind a stream, unless it is closed or made by Python."""
    try:
        yield _Use(by, stream.fileno(), is_written)
    except (AttributeError, OSError, ValueError):
        return


def _folder(path: str) -> Iterator[str]:
    """A folder and the files in it."""
    yield path
    if os.path.isdir(path):
        yield from (os.path.join(path, name) for name in os.listdir(path))
