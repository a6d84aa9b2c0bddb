"""Folders of plain arrays and one JSON file, replaced in one step.

    folder/index.json             the content, with the file, size, checksum, dtype and shape of each array
    folder/<token>-0.npy, …       the arrays of one save, which can be memory-mapped
    folder/.lock                  held while one process saves

A save writes its arrays under new names and then replaces index.json, which is one atomic step: whoever reads sees the
old content or the new one, and a save that is killed leaves the old one. The next save removes what it left behind.
Where the file system has no locks, a save removes nothing but its own files and those that it has replaced. If several
save at once, one of them is the last, and the files of the others stay.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import zlib
from collections.abc import Callable
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np

from sklearn_mcsg._disk import described, open_regular
from sklearn_mcsg._memory import NUMBERS
from sklearn_mcsg.storage._files import RefusedError
from sklearn_mcsg.storage._lock import LOCK, locked

MmapMode: TypeAlias = Literal["r", "c"] | None
_Order: TypeAlias = Literal["C", "F"]
FORMAT = "sklearn_mcsg index"
INDEX = "index.json"
KINDS = "biufU"  # of the dtypes of arrays: numbers, truth values and strings
_LARGEST = 2**30  # bytes of index.json, which holds the words of a vocabulary
_WRITTEN = re.compile(r"[0-9a-f]{16}-\d+\.npy|[0-9a-f]{16}\.json", re.ASCII)  # the files of one save
_TRIES = 1000  # to read a folder that others replace at the same time
_LENGTHS = {(1, 0): 2, (2, 0): 4}  # bytes of the length of a header, by version of the array format
_LONGEST_HEADER = 10_000  # as in numpy
_HEADER = re.compile(rb"\{'descr': '([<>|]\w+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n")


def place_of(path: str | os.PathLike[str]) -> Path:
    """The folder that a path leads to, whether it exists or not; raise ValueError if there can be none."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} is not a path: {error}.") from error


def read_content(folder: Path) -> dict[str, Any]:
    """The content of index.json; raise OSError if it cannot be read, and RefusedError if no index was saved there."""
    with open_regular(folder / INDEX) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(size) if size <= _LARGEST else b""
    try:
        if not data:
            raise ValueError(f"it has {size} bytes")
        content = json.loads(data.decode("utf8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r:.60}")
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise RefusedError(f"is damaged or not a saved index: {INDEX} cannot be read ({error}).") from error
    return content


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise if a path holds anything other than a saved estimator, an empty folder or the rest of a killed save."""
    folder = place_of(path)
    try:
        names = os.listdir(folder)
        ours = all(name in (INDEX, LOCK) or _WRITTEN.fullmatch(name) for name in names)
        if ours and INDEX in names:
            read_content(folder)
    except FileNotFoundError:
        return
    except (NotADirectoryError, ValueError):
        ours = False
    except OSError as error:
        raise OSError(error.errno, f"{folder} could not be opened: {described(error)}; nothing was written") from error
    if not ours:
        raise ValueError(f"{folder} exists and is not a saved index: choose another path; nothing was written.")


def write(folder: Path, content: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write content and arrays into a folder, or replace those that it holds."""
    existed = folder.exists()
    token = secrets.token_hex(8)
    with locked(folder) as is_locked:
        try:
            replaced = _named(folder) or ()
            if is_locked:
                _sweep(folder, lambda _: True)
            try:
                _write(folder, token, content, arrays)
            finally:  # by content, because an interrupt may come when the new one is already in place
                _sweep(folder, lambda name: is_locked or name in replaced or name.startswith(token))
        except OSError as error:
            state = "the index that it holds has not changed" if existed else "nothing was written"
            incomplete = f"not everything could be written, as on a full disk ({error})"
            reason = described(error) if error.strerror else incomplete
            raise OSError(error.errno or errno.EIO, f"{folder} could not be saved: {reason}; {state}") from error


def _write(folder: Path, token: str, content: dict[str, Any], arrays: list[np.ndarray]) -> None:
    entries = [_write_array(folder / f"{token}-{i}.npy", array) for i, array in enumerate(arrays)]
    new = folder / f"{token}.json"
    data = json.dumps({**content, "arrays": entries}, indent=1).encode()
    if len(data) > _LARGEST:
        raise OSError(errno.EFBIG, f"{INDEX} would have {len(data)} bytes, more than {_LARGEST}")
    with new.open("xb") as stream:
        stream.write(data)
        _flush(stream)
    _flush_folder(folder)
    os.replace(new, folder / INDEX)
    _flush_folder(folder)
    _flush_folder(folder.parent)


class _Checksummed:
    """A file that is written, and the checksum of what was written. NumPy writes to it as to any stream."""

    def __init__(self, stream: BinaryIO):
        self.stream = stream
        self.checksum = 0

    def write(self, data: bytes) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self.stream.write(data)


def _write_array(file: Path, array: np.ndarray) -> dict[str, Any]:
    """Write an array, and return what is noted about it."""
    with file.open("xb") as stream:
        written = _Checksummed(stream)
        np.lib.format.write_array(written, array, allow_pickle=False)
        _flush(stream)
        facts = {"file": file.name, "size": stream.tell(), "checksum": written.checksum}
    return {**facts, "dtype": array.dtype.str, "shape": array.shape}


def _flush(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    """Let the names of new files survive a loss of power, where the system can do that; Windows cannot."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _named(folder: Path) -> set[str] | None:
    """Names of the arrays that the content of a folder refers to; None if it cannot be read."""
    try:
        return {entry["file"] for entry in read_content(folder)["arrays"]}
    except FileNotFoundError:
        return set()
    except (LookupError, OSError, TypeError, ValueError):
        return None


def _sweep(folder: Path, is_removable: Callable[[str], bool]) -> None:
    """Remove files that the content does not name: those of an earlier save, or of one that was killed."""
    named = _named(folder)
    if named is None:
        return
    for name in os.listdir(folder):
        if _WRITTEN.fullmatch(name) and name not in named and is_removable(name):
            with suppress(OSError):  # Windows keeps files that a reader has open
                (folder / name).unlink()


def read(
    folder: Path, mmap_mode: MmapMode, check: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The content of a folder and its arrays, of one save; raise ValueError or OSError if they are damaged.

    `check` raises an error if a content is not the one that is wanted.
    """
    content = read_content(folder)
    for _ in range(_TRIES):
        check(content)
        try:
            return content, _open_all(folder, content, mmap_mode)
        except FileNotFoundError as error:
            before, content = content, read_content(folder)
            if content == before:  # otherwise it was replaced while it was read
                raise ValueError(f"{Path(error.filename).name} is missing") from error
    raise ValueError(f"it was replaced {_TRIES} times while it was read")


def _open_all(folder: Path, content: dict[str, Any], mmap_mode: MmapMode) -> list[np.ndarray]:
    """Open all files before the first is read: an open file stays readable when another process replaces it."""
    with ExitStack() as stack:
        streams = []
        for entry in content["arrays"]:
            if not _WRITTEN.fullmatch(entry["file"]):
                raise ValueError(f"{entry['file']!r:.60} is not the name of an array")
            streams.append(stack.enter_context(open_regular(folder / entry["file"])))
        return [_open(stream, entry, mmap_mode) for stream, entry in zip(streams, content["arrays"], strict=True)]


def _open(stream: BinaryIO, entry: dict[str, Any], mmap_mode: MmapMode) -> np.ndarray:
    """Open an array of numbers; its size is checked before its header is believed."""
    name, size = entry["file"], os.fstat(stream.fileno()).st_size
    if size != entry["size"]:
        raise ValueError(f"{name} has {size} bytes instead of {entry['size']!r:.60}")
    shape, dtype, order = _header(stream)
    if (dtype.str, list(shape)) != (entry["dtype"], list(entry["shape"])) or dtype.kind not in KINDS:
        raise ValueError(f"{name} holds {dtype} of shape {shape}")
    if stream.tell() + prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} is too short or too long for {dtype} of shape {shape}")
    if mmap_mode is None:
        array = _read_array(stream, shape, dtype, order, entry)
    else:
        array = np.memmap(stream, dtype, mmap_mode, stream.tell(), shape, order)
    if not is_finite(array):
        raise ValueError(f"{name} holds numbers that are not finite")
    return array


def is_finite(array: np.ndarray) -> bool:
    """Whether an array holds neither NaN nor infinity; some numbers are checked at a time."""
    if array.dtype.kind != "f":
        return True
    flat = array.ravel(order="K")
    return all(np.isfinite(flat[i : i + NUMBERS]).all() for i in range(0, len(flat), NUMBERS))


def _read_array(
    stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype, order: _Order, entry: dict[str, Any]
) -> np.ndarray:
    """Read an array after its header; what is compared with the checksum is what is returned."""
    length = stream.tell()
    stream.seek(0)
    header = stream.read(length)
    numbers = np.empty(prod(shape), dtype)
    data: Any = numbers.view(np.uint8)
    if stream.readinto(data) != len(data) or zlib.crc32(data, zlib.crc32(header)) != entry["checksum"]:  # type: ignore[attr-defined]
        raise ValueError(f"the content of {entry['file']} has changed")
    return numbers.reshape(shape, order=order)


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], np.dtype, _Order]:
    """Shape, dtype and order of an array, from a header as numpy writes it.

    numpy's own reader calls the parser of Python, which fails if several threads of Python 3.11 call it at once.
    """
    version = np.lib.format.read_magic(stream)
    if version not in _LENGTHS:
        raise ValueError(f"version {version} of the array format")
    length = int.from_bytes(stream.read(_LENGTHS[version]), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = _HEADER.fullmatch(stream.read(length))
    if header is None:
        raise ValueError("the header of an array cannot be read")
    dtype, is_fortran, shape = header.groups()
    order: _Order = "F" if is_fortran == b"True" else "C"
    return tuple(map(int, re.findall(rb"\d+", shape))), np.dtype(dtype.decode()), order
