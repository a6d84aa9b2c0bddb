"""Saving of fitted estimators as a folder of plain arrays and JSON, which cannot run code.

`_folder` writes and reads the folder. `encode` turns an object into JSON and a list of arrays. Classes are stored by
name and must be registered. Those of this package are; subclasses of `Likelihood`, `Criterion`, `Statistics` and
`GroupSimilarity` are registered when the module that defines them is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import sklearn_mcsg
from sklearn_mcsg._sklearn import validate_parameter_constraints
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.storage import folder as _folder
from sklearn_mcsg.storage.folder import MmapMode

__all__ = ["register"]

_FORMAT, _VERSION = "sklearn_mcsg index", 3
_REGISTERED: dict[str, type] = {}
_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


class UnregisteredError(ValueError):
    """A saved index holds a class that is not registered."""


def register(cls: type) -> type:
    """Register a class, so that its instances can be saved with an index, under the name of the class.

    The class must be a dataclass or have scikit-learn's `get_params`. If it learns from data, it must also define
    `stored_state()`, which returns a dictionary of arrays, numbers, strings and registered classes, and
    `restore_state(state)`, which restores it. `register` can be used as a decorator. A later class replaces an earlier
    one of the same name, but never a class of this package.

    Parameters
    ----------
    cls : type
        The class.

    Returns
    -------
    cls : type
        The same class.
    """
    known = _REGISTERED.get(cls.__name__)
    reserved = known is not None and known.__module__.split(".")[0] in ("sklearn", "sklearn_mcsg")
    if not reserved or cls.__module__ == known.__module__:
        _REGISTERED[cls.__name__] = cls
    return cls


for _known in (Groups, Pipeline):
    register(_known)


def save(path: str | os.PathLike[str], estimator: BaseEstimator, note: Any = None) -> None:
    """Save a fitted estimator in a folder; one that is there already is replaced in one step.

    `note`, any JSON value, is saved with it for `read_note`.
    """
    folder = Path(path).resolve()
    check_place(folder)
    arrays: list[np.ndarray] = []
    tree = encode(estimator, arrays)
    _folder.write(folder, {"format": _FORMAT, "version": _VERSION, "note": note, "object": tree}, arrays)


def read_note(path: str | os.PathLike[str]) -> Any:
    """The note saved with an estimator, or None if it cannot be read."""
    return _folder.read_content(Path(path)).get("note")


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise if the path holds anything other than a saved estimator or an empty folder."""
    _folder.check_place(Path(path), _FORMAT)


def load(path: str | os.PathLike[str], expected: Any, mmap_mode: MmapMode = None) -> Any:
    """Load a fitted estimator of an expected class."""
    path = Path(path)
    if mmap_mode not in (None, "r", "c"):
        raise ValueError(f"mmap_mode must be None, 'r' or 'c', got {mmap_mode!r}.")
    if not (path / "index.json").is_file():
        raise FileNotFoundError(f"{path} is not a saved index: it has no index.json.")
    content = _folder.read_content(path)
    try:
        known, version = content["format"] == _FORMAT, int(content["version"])
        if not known or version < 1:
            raise ValueError(f"format {content['format']!r:.60}, version {version}")
    except _ERRORS as error:
        raise ValueError(f"{path} is damaged or not a saved index: index.json cannot be read ({error}).") from error
    if version != _VERSION:
        age, remedy = ("a newer", "upgrade to open it") if version > _VERSION else ("an older", "make the index again")
        raise ValueError(
            f"{path} was saved by {age} version of sklearn_mcsg (format {version}, this one reads {_VERSION}): "
            f"{remedy}."
        )
    try:
        content, arrays = _folder.read(path, mmap_mode)
        estimator = decode(content["object"], arrays)
        if isinstance(estimator, expected):
            estimator.check_restored()
    except UnregisteredError as error:
        raise ValueError(f"{path} {error}") from error
    except _ERRORS as error:
        why = str(error) if isinstance(error, OSError | ValueError) else f"{type(error).__name__}, {error}"
        raise ValueError(f"{path} is damaged and was not opened: {why.rstrip('.')}.") from error
    if not isinstance(estimator, expected):
        raise ValueError(f"{path} holds a {type(estimator).__name__}, not a {expected.__name__}.")
    return estimator


def _class_of(name: str) -> type | None:
    """The class of a name: a public one of this package, which is imported first, or a registered one."""
    public = getattr(sklearn_mcsg, name) if name in sklearn_mcsg.__all__ else None
    return public if isinstance(public, type) else _REGISTERED.get(name)


def encode(value: object, arrays: list[np.ndarray]) -> Any:
    """Encode an object as JSON, and append its arrays to a list."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item(), arrays)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    name = type(value).__name__
    if _class_of(name) is not type(value):
        raise TypeError(
            f"A saved index cannot hold {_short(value)}. Give word vectors by name or path, or as a pair (words, "
            f"array), frequencies as 'zipf' or None, and random_state as an integer; register your own classes with "
            f"sklearn_mcsg.storage.register, under a name that no class of sklearn_mcsg has."
        )
    if isinstance(value, Groups):
        state = value.__getstate__()
        parts: dict[str, Any] = {key: state[key] for key in ("vectors", "offsets", "indices", "weights")}
    elif is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        parts = value.get_params(deep=False)  # type: ignore[attr-defined]
    state = value.stored_state() if hasattr(value, "stored_state") else {}
    return {"class": name, "parts": _each(encode, parts, arrays), "state": _each(encode, state, arrays)}


def decode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Decode an object from JSON and arrays."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "dtype" in value:
        return np.dtype(value["dtype"])
    for kind in (tuple, list):
        if kind.__name__ in value:
            return kind(decode(item, arrays) for item in value[kind.__name__])
    parts, state = (_each(decode, value[key], arrays) for key in ("parts", "state"))
    parts.pop("memory", None)  # of a pipeline: a cache on disk cannot be trusted
    cls = _class_of(value["class"])
    if cls is None:
        raise UnregisteredError(
            f"holds a {value['class']}, which is not registered: import the module that defines it, then load again."
        )
    decoded = cls(**parts)
    _check_parts(decoded)
    if state:
        decoded.restore_state(state)
    return decoded


def _check_parts(decoded: Any) -> None:
    """Raise unless parameters are valid and the fields of a dataclass have the types that it declares."""
    if hasattr(decoded, "_parameter_constraints"):
        name, parameters = type(decoded).__name__, decoded.get_params(deep=False)
        validate_parameter_constraints(decoded._parameter_constraints, parameters, caller_name=name)
    if not is_dataclass(decoded):
        return
    hints = get_type_hints(type(decoded))
    for field in fields(decoded):
        value = getattr(decoded, field.name)
        if not _is_a(value, hints[field.name]):
            raise TypeError(f"{field.name} of a {type(decoded).__name__} is a {type(value).__name__}")


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type; the items of containers are not looked at."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return any(_is_a(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    if hint is float:
        kind = int | float
    if hint is Any or not isinstance(kind, type | UnionType):  # such as a type variable
        return True
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def _short(value: object) -> str:
    """An object in a few characters, without formatting a large one."""
    shown = repr(value) if isinstance(value, BaseEstimator) else ""
    return f"a {type(value).__name__}{f', {shown}' if 0 < len(shown) <= 80 else ''}"


def _each(function: Callable, items: dict[str, Any], arrays: list[np.ndarray]) -> dict[str, Any]:
    return {key: function(item, arrays) for key, item in items.items()}
