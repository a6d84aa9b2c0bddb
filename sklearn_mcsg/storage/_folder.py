"""Folders of plain arrays and one JSON file, replaced in one step.

    folder/index.json             the content, with the file, size, checksum, dtype and shape of each array
    folder/<token>-0.npy, …       the arrays of one save, which can be memory-mapped
    folder/.lock                  held while one process saves

A save writes its arrays under new names and then replaces index.json, which is one atomic step: whoever reads sees the
old content or the new one, and a save that is killed leaves the old one. The next save removes what it left behind.
"""

from __future__ import annotations

import ast
import json
import os
import re
import secrets
import zlib
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np
from filelock import FileLock

from sklearn_mcsg._memory import NUMBERS

MmapMode: TypeAlias = Literal["r", "c"] | None
FORMAT = "sklearn_mcsg index"
_INDEX, _LOCK = "index.json", ".lock"
_WRITTEN = re.compile(r"[0-9a-f]{16}-\d+\.npy|[0-9a-f]{16}\.json")  # the files of one save
_TRIES = 1000  # to read a folder that others replace at the same time
_LENGTHS = {(1, 0): 2, (2, 0): 4}  # bytes of the length of a header, by version of the array format
_LONGEST_HEADER = 10_000  # as in numpy


def read_content(folder: Path) -> dict[str, Any]:
    """The content of index.json, or an empty dictionary if it cannot be read."""
    try:
        content = _parsed(folder)
    except (OSError, RecursionError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _parsed(folder: Path) -> Any:
    return json.loads((folder / _INDEX).read_text(encoding="utf8"))


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise if a path holds anything other than a saved estimator, an empty folder or the rest of a killed save."""
    folder = Path(path)
    if not folder.exists():
        return
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else {_INDEX, folder.name}
    ours = all(name in (_INDEX, _LOCK) or _WRITTEN.fullmatch(name) for name in names)
    if not ours or (_INDEX in names and read_content(folder).get("format") != FORMAT):
        raise ValueError(f"{folder} exists and is not a saved index: choose another path; nothing was written.")


def write(folder: Path, content: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write content and arrays into a folder, or replace those that it holds."""
    created = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / _LOCK):
            _sweep(folder)
            try:
                _write(folder, content, arrays)
            finally:
                _sweep(folder)  # by content, because an interrupt may come when the new one is already in place
    except OSError as error:
        if created:
            with suppress(OSError):
                (folder / _LOCK).unlink(missing_ok=True)
                folder.rmdir()
        state = "nothing was written" if created else "the index that it holds has not changed"
        reason = error.strerror or f"not everything could be written, as on a full disk ({error})"
        raise OSError(error.errno, f"{folder} could not be saved: {reason}; {state}") from error


def _write(folder: Path, content: dict[str, Any], arrays: list[np.ndarray]) -> None:
    token = secrets.token_hex(8)
    entries = []
    for i, array in enumerate(arrays):
        file = folder / f"{token}-{i}.npy"
        with file.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
            _flush(stream)
        with file.open("rb") as stream:
            facts: dict[str, Any] = {"checksum": _checksum(stream), "dtype": array.dtype.str, "shape": array.shape}
        entries.append({"file": file.name, "size": file.stat().st_size, **facts})
    new = folder / f"{token}.json"
    with new.open("wb") as stream:
        stream.write(json.dumps({**content, "arrays": entries}, indent=1).encode())
        _flush(stream)
    os.replace(new, folder / _INDEX)


def _flush(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sweep(folder: Path) -> None:
    """Remove arrays that the content does not name: those of an earlier save, or of one that was killed."""
    content = read_content(folder)
    if not content and (folder / _INDEX).exists():  # which arrays it names is not known
        return
    named = {entry.get("file") for entry in content.get("arrays", ()) if isinstance(entry, dict)}
    for file in folder.iterdir():
        if _WRITTEN.fullmatch(file.name) and file.name not in named:
            with suppress(OSError):  # Windows keeps files that a reader has open
                file.unlink()


def read(folder: Path, mmap_mode: MmapMode) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The content of a folder and its arrays, checked; raise ValueError or OSError if they are damaged."""
    content = _parsed(folder)
    for _ in range(_TRIES):
        try:
            return content, _open_all(folder, content, mmap_mode)
        except FileNotFoundError:
            before, content = content, _parsed(folder)
            if content == before:  # otherwise it was replaced while it was read
                raise
    raise OSError(f"it was replaced {_TRIES} times while it was read")


def _open_all(folder: Path, content: dict[str, Any], mmap_mode: MmapMode) -> list[np.ndarray]:
    """Open all files before the first is read: an open file stays readable when another process replaces it."""
    with ExitStack() as stack:
        streams = []
        for entry in content["arrays"]:
            if not _WRITTEN.fullmatch(entry["file"]):
                raise ValueError(f"{entry['file']!r} is not the name of an array")
            streams.append(stack.enter_context((folder / entry["file"]).open("rb")))
        return [_open(stream, entry, mmap_mode) for stream, entry in zip(streams, content["arrays"], strict=True)]


def _open(stream: BinaryIO, entry: dict[str, Any], mmap_mode: MmapMode) -> np.ndarray:
    """Open an array of numbers; its size is checked before its header is believed."""
    name, size = entry["file"], os.fstat(stream.fileno()).st_size
    if size != entry["size"]:
        raise ValueError(f"{name} has {size} bytes instead of {entry['size']}")
    if mmap_mode is None and _checksum(stream) != entry["checksum"]:
        raise ValueError(f"the content of {name} has changed")
    stream.seek(0)
    shape, dtype = _header(stream)
    if (dtype.str, list(shape)) != (entry["dtype"], list(entry["shape"])) or dtype.kind not in "biufU":
        raise ValueError(f"{name} holds {dtype} of shape {shape}")
    if stream.tell() + prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} is too short or too long for {dtype} of shape {shape}")
    stream.seek(0)
    array = np.load(stream if mmap_mode is None else stream.name, mmap_mode, allow_pickle=False)
    if dtype.kind == "f":
        flat = array.reshape(-1)
        if not all(np.isfinite(flat[i : i + NUMBERS]).all() for i in range(0, len(flat), NUMBERS)):
            raise ValueError(f"{name} holds numbers that are not finite")
    return array


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of an array. Unlike numpy, accept no headers of Python 2."""
    version = np.lib.format.read_magic(stream)
    if version not in _LENGTHS:
        raise ValueError(f"version {version} of the array format")
    length = int.from_bytes(stream.read(_LENGTHS[version]), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    try:
        header = ast.literal_eval(stream.read(length).decode("latin1"))
    except SyntaxError as error:
        raise ValueError("the header of an array cannot be read") from error
    return header["shape"], np.dtype(header["descr"])


def _checksum(stream: BinaryIO) -> int:
    value = 0
    while block := stream.read(2**20):
        value = zlib.crc32(block, value)
    return value
