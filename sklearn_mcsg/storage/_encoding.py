"""Fitted estimators as JSON and a list of arrays, and back.

Classes are stored by name and must be registered. The name of a class of this package is its own; that of any other
class includes its module, so neither can pass for the other.

One name may be registered several times. A class may be defined again; and cloudpickle, which Dask uses, sends classes
of ``__main__`` by value. The receiver makes an empty class, which registers itself, and then fills it or, if it has the
class already, throws it away. So a name means

1. the class that its module has under that name, as in pickle;
2. otherwise, as in a worker, the latest class that was filled;
3. otherwise, as inside a function, the latest class.
"""

from __future__ import annotations

import errno
import hashlib
import json
import operator
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import sklearn_mcsg
from sklearn_mcsg._disk import content_of, described
from sklearn_mcsg._sklearn import validate_parameter_constraints
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.storage import _folder
from sklearn_mcsg.storage._files import File, RefusedError, entries_of, find
from sklearn_mcsg.storage._folder import MmapMode

_VERSION = 7
_LONGEST_REASON = 500  # characters
_REGISTERED: dict[str, tuple[type, type | None]] = {}  # by name: the latest class, and the one before it
_TOKENS: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # of registered classes
_ERRORS = (  # of damaged files
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_ANY: Any = object()  # any note


class ReplacedError(RefusedError):
    """A saved index is not the one that was asked for."""


@dataclass
class Attached:
    """What belongs to an encoded object besides its JSON."""

    arrays: list[np.ndarray] = field(default_factory=list)
    files: list[File] = field(default_factory=list)


def register(cls: type) -> type:
    """Register a class, so that its instances can be saved with an index.

    Subclasses of `Likelihood`, `Statistics`, `Criterion`, `Comparison` and `GroupSimilarity` are registered by
    themselves. Any other class needs this function, which can be used as a decorator. What an instance is made of is
    saved:

    * the fields of a dataclass, or else the parameters that scikit-learn's `get_params` returns. The class is called
      with them when the index is loaded.
    * what it learnt from data, if the class defines ``__mcsg_state__(self) -> dict``, which returns it, and
      ``__mcsg_restore__(self, state) -> None``, which puts it back. An empty dictionary means that nothing was learnt
      yet, and is not restored.

    All of these must be numbers, strings, ``None``, dtypes, `Groups`, instances of registered classes, files
    (`sklearn_mcsg.storage.File`), arrays of strings, truth values or finite real numbers, or lists and tuples of such
    values. A method ``__mcsg_check__(self) -> None`` is called last, if there is one; it raises ValueError if the parts
    of a loaded instance do not belong together.

    The index holds the module and the qualified name of the class, and not its code: import that module before you
    load the index. A class that is defined again, as in a notebook, replaces the earlier one.

    Parameters
    ----------
    cls : type
        The class.

    Returns
    -------
    cls : type
        The same class.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_mcsg import GroupNeighbors, MeanVector
    >>> from sklearn_mcsg.storage import register
    >>> @register
    ... class Centred(TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         self.mean_ = np.mean(X, axis=(0, 1))
    ...         return self
    ...     def transform(self, X):
    ...         return X - self.mean_
    ...     def __mcsg_state__(self):
    ...         return {"mean": self.mean_} if hasattr(self, "mean_") else {}
    ...     def __mcsg_restore__(self, state):
    ...         self.mean_ = state["mean"]
    >>> X = np.random.default_rng(0).normal(size=(5, 3, 2))
    >>> index = GroupNeighbors(make_pipeline(Centred(), MeanVector("distance")), n_neighbors=1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(f"{folder}/index")
    ...     loaded = GroupNeighbors.load(f"{folder}/index")
    >>> bool((loaded.kneighbors(X)[1] == index.kneighbors(X)[1]).all())
    True
    """
    _TOKENS[cls] = secrets.token_hex(8)
    cls.__mcsg_token__ = _TOKENS[cls]  # type: ignore[attr-defined]
    _REGISTERED[_name_of(cls)] = cls, _registered(_name_of(cls))
    return cls


def _name_of(cls: type) -> str:
    """The name that a class is stored by; a colon ends the module of a class that is not of this package."""
    if cls.__module__.partition(".")[0] == "sklearn_mcsg":
        return cls.__name__
    return f"{cls.__module__}:{cls.__qualname__}"


def _registered(name: str) -> type | None:
    """What a registered name means: see above."""
    latest, earlier = _REGISTERED.get(name, (None, None))
    if latest is None:
        return None
    found = _found(latest.__module__, latest.__qualname__)
    if isinstance(found, type) and found in _TOKENS and _name_of(found) == name:
        return found
    return earlier if earlier is not None and _was_filled(earlier) and not _was_filled(latest) else latest


def _found(module: str, qualified: str) -> Any:
    """What a module that is imported has under a qualified name, or None."""
    try:
        return operator.attrgetter(qualified)(sys.modules[module])
    except (AttributeError, KeyError):
        return None


def _was_filled(cls: type) -> bool:
    """Whether a class has the attributes of another, of which it is a copy: the token is one of them."""
    return vars(cls)["__mcsg_token__"] != _TOKENS[cls]


def _class_of(name: str) -> type | None:
    """The registered class of a name. One of this package is registered when its room is imported."""
    if name not in _REGISTERED and ":" not in name:
        for public in sklearn_mcsg.__all__:
            getattr(sklearn_mcsg, public)
    return _registered(name)


for _known in (Groups, Pipeline):
    register(_known)


def save(path: str | os.PathLike[str], estimator: BaseEstimator, note: Any = None) -> None:
    """Save a fitted estimator in a folder; one that is there already is replaced in one step.

    `note`, any JSON value, is saved with it for `read_note`.
    """
    folder = _folder.place_of(path)
    _folder.check_place(folder)
    attached = Attached()
    tree = encode(estimator, attached)
    files = entries_of(attached.files, folder)
    content = {"format": _folder.FORMAT, "version": _VERSION, "note": note, "object": tree, "files": files}
    _folder.write(folder, content, attached.arrays)


def read_note(path: str | os.PathLike[str]) -> Any:
    """The note saved with an estimator, or None if there is none."""
    try:
        return _folder.read_content(_folder.place_of(path)).get("note")
    except FileNotFoundError:
        return None


def load(path: str | os.PathLike[str], expected: Any, mmap_mode: MmapMode = None, *, note: Any = _ANY) -> Any:
    """Load a fitted estimator of an expected class.

    Given a note, raise ReplacedError if another one is saved with the estimator.
    """
    if mmap_mode not in (None, "r", "c"):
        raise ValueError(f"mmap_mode must be None, 'r' or 'c', got {mmap_mode!r}.")
    folder = _folder.place_of(path)

    def check(content: dict[str, Any]) -> None:
        _check_version(content["version"])
        if note is not _ANY and content["note"] != note:
            raise ReplacedError("was replaced by another process: open it again.")

    try:
        content, arrays = _folder.read(folder, mmap_mode, check)
        files = [find(entry, folder) for entry in content["files"]]
        with np.errstate(all="ignore"):  # the results are checked
            estimator = decode(content["object"], Attached(arrays, files))
    except RefusedError as error:
        raise type(error)(f"{path} {_in_one_line(error)}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(f"{path} is not a saved index: it has no {_folder.INDEX}.") from error
    except OSError as error:
        raise OSError(error.errno or errno.EIO, f"{path} could not be opened: {described(error)}.") from error
    except MemoryError as error:
        raise MemoryError(f"{path} could not be opened: there is not enough memory.") from error
    except _ERRORS as error:
        why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}, {error}"
        raise ValueError(f"{path} is damaged and was not opened: {_in_one_line(why).rstrip('.')}.") from error
    if not isinstance(estimator, expected):
        raise ValueError(f"{path} holds a {type(estimator).__name__}, not a {expected.__name__}.")
    return estimator


def _in_one_line(message: object) -> str:
    """A message about a file, which may hold anything: one line of bounded length without control characters."""
    line = " ".join(str(message).split())[:_LONGEST_REASON]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _check_version(version: Any) -> None:
    """Raise unless an index has the format of this version."""
    if not isinstance(version, int) or version < 1:
        raise RefusedError(f"is damaged or not a saved index: its version is {version!r:.60}.")
    if version != _VERSION:
        age, remedy = ("a newer", "upgrade to open it") if version > _VERSION else ("an older", "build the index again")
        found = f"{age} version of sklearn_mcsg (format {version}, this one reads {_VERSION})"
        raise RefusedError(f"was saved by {found}: {remedy}.")


def fingerprint(value: object) -> str:
    """A hash of everything that an object is made of: its parameters, what it has learnt, its arrays and its files."""
    attached = Attached()
    digest = hashlib.sha256(json.dumps(encode(value, attached)).encode())
    for array in attached.arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    for file in attached.files:
        digest.update(repr(file.content or content_of(file.path)).encode())
    return digest.hexdigest()


def check_storable(value: object) -> None:
    """Raise TypeError if a saved index cannot hold an object."""
    encode(value, Attached())


def encode(value: object, attached: Attached) -> Any:
    """Encode an object as JSON, and attach its arrays and files, each only once."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
        return encode(value.item(), attached)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in _folder.KINDS:
        if not _folder.is_finite(value):
            raise ValueError(
                "A saved index cannot hold an array with NaN or infinity: keep other numbers in their place."
            )
        return {"array": _place_in(attached.arrays, value, operator.is_)}
    if isinstance(value, File):
        return {"file": _place_in(attached.files, value, operator.eq)}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [encode(item, attached) for item in value]}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    name = _name_of(type(value))
    registered = _class_of(name)
    if registered is None:
        raise TypeError(
            f"A saved index cannot hold {_short(value)}. Give word vectors by name or path, or as a pair (words, "
            f"array), frequencies as 'zipf' or None, and random_state as an integer; register your own classes with "
            f"sklearn_mcsg.storage.register."
        )
    if registered is not type(value):
        raise TypeError(
            f"A saved index cannot hold {_short(value)}: its class was defined again after it was made. Make it again."
        )
    if isinstance(value, Groups):
        state = value.__getstate__()
        parts: dict[str, Any] = {key: state[key] for key in ("vectors", "offsets", "indices", "weights", "positions")}
    elif is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        parts = value.get_params(deep=False)  # type: ignore[attr-defined]
    state = value.__mcsg_state__() if hasattr(value, "__mcsg_state__") else {}
    return {"class": name, "parts": _each(encode, parts, attached), "state": _each(encode, state, attached)}


def decode(value: Any, attached: Attached) -> Any:
    """Decode an object from JSON and what is attached to it."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return attached.arrays[value["array"]]
    if "file" in value:
        return attached.files[value["file"]]
    if "dtype" in value:
        return np.dtype(value["dtype"])
    for kind in (tuple, list):
        if kind.__name__ in value:
            return kind(decode(item, attached) for item in value[kind.__name__])
    cls = _class_of(value["class"])
    if cls is None:
        raise RefusedError(_missing(value["class"]))
    parts, state = (_each(decode, value[key], attached) for key in ("parts", "state"))
    parts.pop("memory", None)  # of a pipeline: a cache on disk cannot be trusted
    decoded = cls(**parts)
    _check_parts(decoded)
    if state:
        decoded.__mcsg_restore__(state)
    if hasattr(decoded, "__mcsg_check__"):
        decoded.__mcsg_check__()
    return decoded


def _missing(name: str) -> str:
    """What to do about a class that is not registered."""
    module, _, qualified = name.rpartition(":")
    if not module:
        return f"holds a {name:.80}, which this version of sklearn_mcsg cannot load."
    remedy = "define it" if module == "__main__" else f"import {module:.80}"
    return f"holds {module:.80}.{qualified:.80}, which is not registered: {remedy}, then load again."


def _check_parts(decoded: Any) -> None:
    """Raise unless parameters are valid and the fields of a dataclass have the types that it declares."""
    if hasattr(decoded, "_parameter_constraints"):
        name, parameters = type(decoded).__name__, decoded.get_params(deep=False)
        validate_parameter_constraints(decoded._parameter_constraints, parameters, caller_name=name)
    if isinstance(decoded, Pipeline):
        _check_steps(decoded.steps)
    if not is_dataclass(decoded):
        return
    hints = get_type_hints(type(decoded))
    for name in (part.name for part in fields(decoded)):
        value = getattr(decoded, name)
        if not _is_a(value, hints[name]):
            raise TypeError(f"{name} of a {type(decoded).__name__} is a {type(value).__name__}")


def _check_steps(steps: Any) -> None:
    """Raise unless all steps of a pipeline have names, and all but the last can transform."""
    for step in steps:
        name, estimator = step
        can_transform = hasattr(estimator, "transform") or estimator in (None, "passthrough") or step is steps[-1]
        if not isinstance(name, str) or not can_transform:
            raise TypeError(f"a {type(estimator).__name__} is not a step of a pipeline")


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, and so are its items, if the type names one for all of them."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return any(_is_a(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    if isinstance(value, list | tuple) and kind is type(value):
        items = [one for one in get_args(hint) if one is not Ellipsis]
        return len(items) > 1 or all(_is_a(item, one) for one in items for item in value)
    if hint is float:
        kind = int | float
    if hint is Any or not isinstance(kind, type | UnionType):  # such as a type variable
        return True
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def _short(value: object) -> str:
    """An object in a few characters, without formatting a large one."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    shown = repr(value) if isinstance(value, BaseEstimator) else ""
    return f"a {type(value).__name__}{f', {shown}' if 0 < len(shown) <= 80 else ''}"


def _each(function: Callable, items: dict[str, Any], attached: Attached) -> dict[str, Any]:
    return {key: function(item, attached) for key, item in items.items()}


def _place_in(known: list, value: object, is_same: Callable[[Any, Any], bool]) -> int:
    """The place of a value in a list; it is appended if it is not there yet."""
    place = next((i for i, other in enumerate(known) if is_same(other, value)), len(known))
    if place == len(known):
        known.append(value)
    return place
