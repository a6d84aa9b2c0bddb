"""Static models: token vectors with the tokenizer that belongs to them.

    text --tokenizer--> tokens, without special and unknown ones --> rows of one matrix

The vectors of a static model, such as those of model2vec and WordLlama, were trained to be averaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_mcsg._extras import import_extra, missing_extra

_SUFFIXES = (".json", ".safetensors")


class Splitting(NamedTuple):
    """A function that splits a text into tokens or their ids, and the tokens that are left out."""

    tokenize: Callable[[str], Iterable[Any]]
    left_out: frozenset[str] = frozenset()  # special tokens and the unknown one, which stand for no part of a text


class StaticModel(NamedTuple):
    """Tokens and their vectors, and how texts are split into tokens."""

    tokens: list[str] | None  # None for a tokenizer that returns ids, which are the numbers of rows
    vectors: np.ndarray
    splitting: Splitting


def is_file(path: Path) -> bool:
    """Whether a path is the folder or one of the files of a static model, by its name."""
    return path.is_dir() or path.suffix in _SUFFIXES


def is_tokenizer(value: Any) -> bool:
    """Whether a value is a tokenizer of `tokenizers`, a fast one of `transformers`, or a function."""
    return callable(value) or hasattr(value, "get_vocab")


def find_files(path: Path) -> tuple[Path, Path]:
    """Tokenizer and vectors of a static model, given its folder or either file."""
    folder = path if path.is_dir() else path.parent
    nested = folder / "0_StaticEmbedding"  # as sentence-transformers saves it
    if path.is_dir() and nested.is_dir():
        folder = nested
    tokenizer = path if path.suffix == ".json" and path.is_file() else folder / "tokenizer.json"
    matrices = [path] if path.suffix == ".safetensors" and path.is_file() else sorted(folder.glob("*.safetensors"))
    if not tokenizer.is_file() or len(matrices) != 1:
        raise ValueError(
            f"{folder} is not the folder of a static model: it must hold tokenizer.json and one .safetensors file. "
            f"Files with other names are passed as a pair of paths, (tokenizer, vectors)."
        )
    return tokenizer, matrices[0]


def find_wordllama() -> tuple[Path, Path]:
    """Tokenizer and vectors that are installed with the package wordllama, which is not imported."""
    spec = find_spec("wordllama")
    folder = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else Path()
    files = folder / "tokenizers/l2_supercat_tokenizer_config.json", folder / "weights/l2_supercat_256.safetensors"
    if spec is None or not all(file.is_file() for file in files):
        raise missing_extra("wordllama", "vectors='wordllama'", "pass other vectors")
    return files


def read_files(tokenizer: Path, vectors: Path) -> StaticModel:
    """Read a static model, as model2vec saves it: row i of the only matrix belongs to token i.

    If its vocabulary was quantised, `mapping` has the row of each token, and `weights` the factor of its vector.
    """
    load_file = import_extra("safetensors.numpy", f"The static model in {vectors.parent}").load_file
    own = open_tokenizer(tokenizer)
    try:
        arrays = load_file(vectors)
    except Exception as error:  # safetensors has errors of its own
        raise ValueError(f"{vectors} cannot be read as a static model: {error}.") from error
    matrices = [array for array in arrays.values() if array.ndim == 2]
    if len(matrices) != 1:
        raise ValueError(f"{vectors} must hold one matrix, with a row for each token, got {_shapes(arrays)}.")
    parts = {**arrays, "embeddings": matrices[0]}
    return _with_vocabulary(own, {name: parts.get(name) for name in ("embeddings", "mapping", "weights")}, str(vectors))


def open_tokenizer(path: Path) -> Any:
    """Read a tokenizer in the format of the package tokenizers."""
    tokenizers = import_extra("tokenizers", f"The static model in {path.parent}")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain exceptions
        raise ValueError(f"{path} cannot be read as a tokenizer: {error}.") from error


def from_model(model: Any) -> StaticModel:
    """The vectors and the tokenizer of a `StaticModel` of model2vec, or of an object with the same attributes."""
    parts = {"embedding": "embeddings", "token_mapping": "mapping", "weights": "weights"}
    arrays = {part: getattr(model, name, None) for name, part in parts.items()}
    return _with_vocabulary(model.tokenizer, arrays, f"The {type(model).__name__}")


def from_pair(tokenizer: Any, vectors: np.ndarray) -> StaticModel:
    """A tokenizer, and a matrix with one row per token id."""
    if _has_vocabulary(tokenizer):
        return _with_vocabulary(tokenizer, {"embeddings": vectors}, "The table")
    if vectors.ndim != 2:
        raise ValueError(f"The table must be a 2-d array with one row per token id, got shape {vectors.shape}.")
    return StaticModel(None, vectors, Splitting(tokenizer))


def splitting_of(tokenizer: Any) -> Splitting:
    """How a tokenizer splits texts into tokens."""
    if not _has_vocabulary(tokenizer):
        return Splitting(tokenizer)
    own = _unlimited(tokenizer)
    return Splitting(partial(_encode, own), _left_out(own))


def _has_vocabulary(tokenizer: Any) -> bool:
    """Whether a tokenizer is one of `tokenizers`, or a fast one of `transformers`, which holds one."""
    return hasattr(tokenizer, "backend_tokenizer") or hasattr(tokenizer, "to_str")


def _with_vocabulary(tokenizer: Any, arrays: dict[str, Any], name: str) -> StaticModel:
    arrays = {part: np.asarray(array) for part, array in arrays.items() if array is not None}
    matrix, mapping, weights = (arrays.get(part) for part in ("embeddings", "mapping", "weights"))
    own = _unlimited(tokenizer)
    vocabulary, left_out = own.get_vocab(), _left_out(own)
    tokens = sorted(vocabulary.keys() - left_out, key=vocabulary.__getitem__)
    ids = np.array([vocabulary[token] for token in tokens], dtype=np.int64)
    n_ids = int(ids.max(initial=-1)) + 1
    by_id = [array for array in (matrix if mapping is None else mapping, weights) if array is not None]
    complete = matrix is not None and matrix.ndim == 2 and all(len(array) >= n_ids for array in by_id)
    rows = ids if mapping is None or not complete else mapping[ids]
    if not complete or rows.max(initial=0) >= len(matrix):  # type: ignore[arg-type]
        raise ValueError(f"{name} must hold a row for each of the {n_ids} tokens, got {_shapes(arrays)}.")
    in_order = np.array_equal(rows, np.arange(n_ids - len(rows), n_ids))  # after the special tokens: a view will do
    vectors: np.ndarray = matrix[n_ids - len(rows) : n_ids] if in_order else matrix[rows]  # type: ignore[index]
    if weights is not None:
        vectors = vectors * weights[ids, None]
    return StaticModel(tokens, vectors, Splitting(partial(_encode, own), left_out))


def _shapes(arrays: dict[str, np.ndarray]) -> str:
    return ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "no arrays"


def _unlimited(tokenizer: Any) -> Any:
    """A copy of a tokenizer that neither pads nor truncates."""
    own = deepcopy(getattr(tokenizer, "backend_tokenizer", tokenizer))
    own.no_padding()
    own.no_truncation()
    return own


def _left_out(tokenizer: Any) -> frozenset[str]:
    """The special tokens, such as [CLS] and [PAD], and the unknown one."""
    model = json.loads(tokenizer.to_str())["model"]
    unknown = model.get("unk_token") if model.get("unk_id") is None else tokenizer.id_to_token(model["unk_id"])
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    return frozenset(special | ({unknown} if unknown else set()))


def _encode(tokenizer: Any, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens
