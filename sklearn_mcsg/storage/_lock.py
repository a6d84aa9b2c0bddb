"""The lock of a folder: whoever saves waits until nobody else does.

The lock is the system's own, on a file that stays in the folder, so that of a killed process is free at once. A file
system may have no locks, as some network and user-space ones. There, nobody waits, and whoever saves must not
touch what others may be writing.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sklearn_mcsg._disk import described, open_regular, release_lock, take_lock

LOCK = ".lock"
_PATIENCE = 600.0  # seconds: several times what saving the largest index takes
_PAUSE = 0.01  # seconds between two attempts


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder, which is created if it does not exist and removed again if it stays empty.

    Yield whether the file system has locks. A folder that another process keeps locked raises TimeoutError.
    """
    created = not folder.exists()
    try:
        stream, is_locked = _acquired(folder)
    except OSError as error:
        message = f"{folder} could not be saved: {described(error)}; nothing was written"
        raise OSError(error.errno or errno.EIO, message) from error
    try:
        yield is_locked
    finally:
        if sys.platform == "win32":
            _release(stream, is_locked)  # an open file cannot be removed, so neither can one that another process holds
        if created:
            _remove_empty(folder)  # with the lock held: whoever waits for it notices that it is gone
        if sys.platform != "win32":
            _release(stream, is_locked)


def _acquired(folder: Path) -> tuple[BinaryIO, bool]:
    """The open file of the lock, and whether it is held: it cannot be where the file system has no locks."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError), ExitStack() as stack:  # another process that failed has removed the folder
            stream = stack.enter_context(open_regular(folder / LOCK, "ab", follow_links=False))
            is_locked = _try_to_lock(stream, folder / LOCK)
            if is_locked is not False:
                stack.pop_all()
                return stream, is_locked is True
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"another process has been saving it for {_PATIENCE:.0f} seconds")
        time.sleep(_PAUSE)


def _try_to_lock(stream: BinaryIO, path: Path) -> bool | None:
    """Whether an open file was locked and is still the one at its path; None if the file system has no locks."""
    taken = take_lock(stream.fileno())
    return taken and os.path.samestat(os.fstat(stream.fileno()), os.lstat(path))


def _release(stream: BinaryIO, is_locked: bool) -> None:
    with stream:
        if is_locked:
            release_lock(stream.fileno())


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        if os.listdir(folder) == [LOCK]:
            (folder / LOCK).unlink()
            folder.rmdir()
