"""Files on disk: one writer that replaces a file, one test of identity, and what an error of the system means."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which does not remove files that are open
    fcntl = None  # type: ignore[assignment]

_DRAFT = re.compile(r"\.mcsg-[0-9a-f]{32}")  # content that is not yet in place: short, because names have a limit
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EMFILE: "no file handles are left: close files, or raise the limit (ulimit -n)",
    errno.ENFILE: "no file handles are left on this machine",
    errno.ELOOP: "the link leads back to itself",
}


def reason_of(error: OSError) -> str:
    """What an error of the system means, in words.

    Examples
    --------
    >>> from sklearn_mcsg._disk import reason_of
    >>> reason_of(OSError(28, "No space left on device"))
    'the disk is full'
    """
    return _REASONS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


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
            if fcntl is not None:  # while the lock is held, so that nobody sweeps it
                os.replace(draft, target)
        if fcntl is None:
            os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _new_draft(folder: Path, mode: int) -> tuple[Path, int]:
    """An empty hidden file and its descriptor, locked until this process closes it or ends."""
    while True:
        draft = folder / f".mcsg-{secrets.token_hex(16)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        if _lock(descriptor) is not False and draft.exists():
            return draft, descriptor
        os.close(descriptor)  # another process swept it before it was locked


def _lock(descriptor: int) -> bool | None:
    """Whether a lock was obtained; None if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


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
    if fcntl is None:
        os.unlink(draft)
        return
    descriptor = os.open(draft, os.O_RDWR)
    try:
        if _lock(descriptor):
            os.unlink(draft)
    finally:
        os.close(descriptor)
