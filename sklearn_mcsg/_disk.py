"""Files on disk: one reader of regular files, one writer that replaces a file, and what both need to know.

A path that others chose may name a pipe that nobody writes to, or a device without an end: opening or reading it would
never return.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

_BLOCK = 2**20  # bytes that are read at a time
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # Windows has neither: there the check before opening must suffice
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)  # by another process; any other error means that there are no locks
_DRAFT = re.compile(r"\.mcsg-[0-9a-f]{32}")  # content that is not yet in place: short, because names have a limit
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EMFILE: "no file handles are left: close files, or raise the limit (ulimit -n)",
    errno.ENFILE: "no file handles are left on this machine",
    errno.ELOOP: "the link leads back to itself",
}


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


def reason_of(error: OSError) -> str:
    """What an error of the system means, in words.

    Examples
    --------
    >>> from sklearn_mcsg._disk import reason_of
    >>> reason_of(OSError(28, "No space left on device"))
    'the disk is full'
    """
    return _REASONS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


def described(error: OSError) -> str:
    """What an error of the system means, after the name of the file, if that is known."""
    name = "" if error.filename is None else f"{Path(os.fsdecode(error.filename)).name}: "
    return f"{name}{reason_of(error)}"


def identity_of(path: str | os.PathLike[str] | int) -> tuple[int, int] | None:
    """Device and inode of the file or folder that a path or descriptor leads to: the same for all its names.

    What does not exist has none, nor have pipes and devices, such as a terminal: they can be read and written to at
    once without a loss.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_mcsg._disk import identity_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     identity_of(folder) == identity_of(f"{folder}/."), identity_of(f"{folder}/missing")
    (True, None)
    """
    status = _status_of(path)
    if status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return None
    return status.st_dev, status.st_ino


def _status_of(path: str | os.PathLike[str] | int) -> os.stat_result | None:
    """The status of a file, links followed; None if there is no such file."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _real(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to, which need not exist."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError:  # there is no working folder any more
        return Path(path)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def release_lock(descriptor: int) -> None:
        """Release the lock of an open file."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release_lock(descriptor: int) -> None:
        """Release the lock of an open file, also for processes that were forked meanwhile and have it open, too."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def take_lock(descriptor: int) -> bool | None:
    """Whether the system's lock of an open file was obtained; None if the file system has no locks.

    A process that ends, or is killed, releases it.
    """
    try:
        _lock(descriptor)
    except OSError as error:
        return False if error.errno in _HELD else None
    return True


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if `replace_file` could not write to a path."""
    status = _status_of(path)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, f"{os.fspath(path)} is a folder: name a file.")
    if not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, f"{os.fspath(path)!r} does not name a file.")
    folder = _real(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"{os.fspath(path)}: the folder does not exist.")
    if status is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, f"{os.fspath(path)}: there is no permission to write to it.")
    if (status is None or stat.S_ISREG(status.st_mode)) and not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"{os.fspath(path)}: there is no permission to write to its folder.")


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file in one step: it has the old content or the new one, never a part of it.

    The new content is written to a hidden file beside the old one, which takes its place. A process that is killed
    leaves the hidden file; the next one that replaces a file of the same folder removes it.

    Parameters
    ----------
    path : str or path-like
        The file. If it exists, it keeps its owner, group and mode; the mode of a new one follows the umask. Links
        are followed. A pipe or a device is written to.
    content : bytes
        The content.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_mcsg._disk import replace_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(f"{folder}/a", b"new")
    ...     os.listdir(folder)
    ['a']
    """
    check_replaceable(path)
    old = _status_of(path)
    state = "; nothing was written" if old is None else "; it has not changed"
    try:
        if old is not None and not stat.S_ISREG(old.st_mode):
            state = ""
            Path(path).write_bytes(content)
        else:
            _replace(_real(path), content, old)
    except OSError as error:
        text = f"{os.fspath(path)} could not be written: {reason_of(error)}{state}."
        raise (OSError(text) if error.errno is None else OSError(error.errno, text)) from error


def _replace(target: Path, content: bytes, old: os.stat_result | None) -> None:
    _sweep(target.parent)
    draft, descriptor = _new_draft(target.parent, 0o666 if old is None else 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
            if old is not None and os.name == "posix":
                _hand_over(descriptor, old)
            if os.name == "posix":  # while the lock is held, so that nobody sweeps it
                os.replace(draft, target)
        if os.name != "posix":  # where an open file cannot be replaced
            os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _new_draft(folder: Path, mode: int) -> tuple[Path, int]:
    """An empty hidden file and its descriptor, locked until this process closes it or ends."""
    while True:
        draft = folder / f".mcsg-{secrets.token_hex(16)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        if take_lock(descriptor) is not False and draft.exists():
            return draft, descriptor
        os.close(descriptor)  # another process swept it before it was locked


def _hand_over(descriptor: int, old: os.stat_result) -> None:
    """Give a draft the owner, group and mode of a file; without the group, its members get the rights of others."""
    mode = stat.S_IMODE(old.st_mode) & 0o777
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, -1, old.st_gid)
        with suppress(OSError):
            os.fchown(descriptor, old.st_uid, -1)
        if os.fstat(descriptor).st_gid != old.st_gid:
            mode = (mode & 0o707) | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)


def _sweep(folder: Path) -> None:
    """Remove the drafts of this user whose writers were killed."""
    with suppress(OSError), os.scandir(folder) as entries:
        for draft in [entry for entry in entries if _DRAFT.fullmatch(entry.name)]:
            with suppress(OSError):  # another process has removed it
                if _is_own(draft.stat(follow_symlinks=False)):
                    _remove_if_abandoned(draft.path)


def _is_own(status: os.stat_result) -> bool:
    """Whether a status is that of a file of this user, and not that of a link."""
    return stat.S_ISREG(status.st_mode) and (os.name != "posix" or status.st_uid == os.geteuid())


def _remove_if_abandoned(draft: str) -> None:
    descriptor = os.open(draft, os.O_RDWR)
    try:
        is_abandoned = take_lock(descriptor)
        if is_abandoned and os.name == "posix":
            os.unlink(draft)
    finally:
        os.close(descriptor)
    if is_abandoned and os.name != "posix":  # where an open file cannot be removed
        os.unlink(draft)
