"""Files on disk, opened only if they are regular files, and what identifies their content.

A path that others chose may name a pipe that nobody writes to, or a device without an end: opening or reading it would
never return.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, NamedTuple

_BLOCK = 2**20  # bytes that are read at a time
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # Windows has neither: the check before opening has to do
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class FileContent(NamedTuple):
    """What identifies the content of a file."""

    size: int
    checksum: int


def open_regular(path: str | os.PathLike[str], mode: str = "rb", *, follow_links: bool = True) -> BinaryIO:
    """Open a regular file, as `open` does in a binary mode; raise OSError if the path names anything else.

    Examples
    --------
    >>> import os
    >>> from sklearn_mcsg._disk import open_regular
    >>> open_regular(os.curdir)
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] Not a regular file: '.'
    """
    stream: Any = open(path, mode, opener=partial(_descriptor, follow_links=follow_links))  # noqa: SIM115
    return stream


def _descriptor(path: str, flags: int, *, follow_links: bool) -> int:
    """Open a file; it is checked before, because opening a device may change it, and after, because it may be new."""
    with suppress(FileNotFoundError):
        _check_regular(os.stat(path, follow_symlinks=follow_links), path)
    descriptor = os.open(path, flags | _NO_WAIT | (0 if follow_links else _NO_LINK), 0o666)
    try:
        _check_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", os.fspath(path))


def content_of(path: str | os.PathLike[str]) -> FileContent:
    """Size and checksum of a regular file; 6 GB take a second if they are in memory."""
    with open_regular(path) as stream:
        return FileContent(os.fstat(stream.fileno()).st_size, checksum_of(stream))


def checksum_of(stream: BinaryIO) -> int:
    """CRC-32 of the rest of a file."""
    value = 0
    while block := stream.read(_BLOCK):
        value = zlib.crc32(block, value)
    return value
