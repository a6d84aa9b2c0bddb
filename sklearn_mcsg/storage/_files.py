"""Files that a saved estimator reads and that are too large to be copied, such as those of word vectors.

Each is stored by its path, its path from the folder of the index, its size and its checksum. The first of the two paths
that leads to the same content is taken, so an index may be moved together with its files or without them, and is never
opened with other files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from sklearn_mcsg._disk import FileContent, checksum_of, content_of, open_regular, reason_of


class RefusedError(ValueError):
    """A saved index is whole, but cannot be opened; the message continues a sentence that begins with its path."""


class File(NamedTuple):
    """A file that an estimator reads.

    Attributes
    ----------
    path : str
        Its absolute path.
    content : FileContent or None
        Its content when it was read; None if it was not read yet.
    """

    path: str
    content: FileContent | None = None


def entries_of(files: list[File], folder: Path) -> list[dict[str, Any]]:
    """What is stored of files with an index in a folder; raise ValueError if one is not as it was when it was read."""
    contents = {file.path: _content_now(file.path) for file in files}
    for path, content in files:
        if content not in (None, contents[path]):
            raise ValueError(f"{path} has changed since it was read: fit again. Nothing was written.")
    return [_entry(file.path, contents[file.path], folder) for file in files]


def _entry(path: str, content: FileContent, folder: Path) -> dict[str, Any]:
    size, checksum = content
    return {"path": path, "relative": _relative(path, folder), "size": size, "checksum": checksum}


def _content_now(path: str) -> FileContent:
    try:
        return content_of(path)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({reason_of(error)}): an index needs the files that it was made from. "
            f"Nothing was written."
        ) from error


def _relative(path: str, folder: Path) -> str | None:
    """The path of a file from a folder without links; a file that is a link itself stays one."""
    parent, name = os.path.split(path)
    try:
        return Path(os.path.relpath(os.path.realpath(parent), folder), name).as_posix()
    except ValueError:  # Windows: on another drive
        return None


def find(entry: dict[str, Any], folder: Path) -> File:
    """A file that was stored with an index in a folder; raise RefusedError unless its content is the same."""
    noted, path, relative = FileContent(entry["size"], entry["checksum"]), entry["path"], entry["relative"]
    places = [folder / relative] if relative is not None else []
    trouble = "is missing"
    for place in [*places, Path(path)]:
        if not place.is_absolute():
            continue
        try:
            content = _content_if_of(place, noted.size)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            trouble = f"cannot be read ({reason_of(error)})"
            continue
        if content == noted:
            return File(os.path.normpath(place), content)
        size = f"{content.size} bytes instead of {noted.size}" if content.size != noted.size else "of the same size"
        trouble = f"has changed since the index was saved ({size})"
    raise RefusedError(f"was made from {path}, which {trouble}: put back the file, or build the index again.")


def _content_if_of(place: Path, size: int) -> FileContent:
    """The content of a file; the checksum is computed only if it has a given size."""
    with open_regular(place) as stream:
        found = os.fstat(stream.fileno()).st_size
        return FileContent(found, checksum_of(stream) if found == size else -1)
