"""Static models: vectors of pieces of words, with the tokenizer that belongs to them.

    word --tokenizer--> pieces, without special and unknown ones --> rows of one matrix

The vectors of a static model, such as those of model2vec and WordLlama, were trained to be averaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_mcsg._extras import import_extra, missing_extra
from sklearn_mcsg.groups.checks import check_numeric
from sklearn_mcsg.text._tokenised import listed

_SUFFIXES = (".json", ".safetensors")
_LONGEST_REASON = 300  # characters
_LARGEST_ID = 2**24  # of a token; published vocabularies end below 2**20


class Splitting(NamedTuple):
    """A function that splits words into pieces or their ids, and the pieces that are left out."""

    split: Callable[[Sequence[str]], Iterable[list[Any]]]
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
    with _explained(f"{vectors} cannot be read as a static model"):
        arrays = load_file(vectors)
    matrices = [array for array in arrays.values() if array.ndim == 2]
    if len(matrices) != 1:
        raise ValueError(f"{vectors} must hold one matrix, with a row for each token, got {_shapes(arrays)}.")
    parts = {**arrays, "embeddings": matrices[0]}
    known = {name: parts.get(name) for name in ("embeddings", "mapping", "weights")}
    return _with_vocabulary(own, known, str(vectors), f"The tokenizer {tokenizer}")


def open_tokenizer(path: Path) -> Any:
    """Read a tokenizer in the format of the package tokenizers."""
    tokenizers = import_extra("tokenizers", f"The static model in {path.parent}")
    with _explained(f"{path} cannot be read as a tokenizer"):
        return tokenizers.Tokenizer.from_file(str(path))


def from_model(model: Any) -> StaticModel:
    """The vectors and the tokenizer of a `StaticModel` of model2vec, or of an object with the same attributes."""
    parts = {"embedding": "embeddings", "token_mapping": "mapping", "weights": "weights"}
    arrays = {part: getattr(model, name, None) for name, part in parts.items()}
    if not _has_vocabulary(model.tokenizer):
        got = type(model.tokenizer).__name__
        raise TypeError(f"The tokenizer of a static model must be one of the package tokenizers, got {got}.")
    return _with_vocabulary(model.tokenizer, arrays, f"The {type(model).__name__}")


def from_pair(tokenizer: Any, vectors: np.ndarray) -> StaticModel:
    """A tokenizer, and a matrix with one row per token id."""
    if _has_vocabulary(tokenizer):
        return _with_vocabulary(tokenizer, {"embeddings": vectors}, "The table")
    if vectors.ndim != 2:
        raise ValueError(f"The table must be a 2-d array with one row per token id, got shape {vectors.shape}.")
    return StaticModel(None, vectors, splitting_of(tokenizer))


def splitting_of(tokenizer: Any, name: str = "The tokenizer") -> Splitting:
    """How a tokenizer splits words into pieces."""
    if not _has_vocabulary(tokenizer):
        return Splitting(partial(_tokenised, tokenizer))
    _vocabulary(tokenizer, name)
    with _explained(f"{name} cannot be used"):
        own = _unlimited(tokenizer)
        return Splitting(partial(_encoded, own, name), _left_out(own))


def _has_vocabulary(tokenizer: Any) -> bool:
    """Whether a tokenizer is one of `tokenizers`, or a fast one of `transformers`, which holds one."""
    return hasattr(tokenizer, "backend_tokenizer") or hasattr(tokenizer, "to_str")


def _with_vocabulary(
    tokenizer: Any, arrays: dict[str, Any], name: str, tokenizer_name: str = "The tokenizer"
) -> StaticModel:
    arrays = {part: np.asarray(array) for part, array in arrays.items() if array is not None}
    matrix, mapping, weights = (arrays.get(part) for part in ("embeddings", "mapping", "weights"))
    splitting = splitting_of(tokenizer, tokenizer_name)
    vocabulary = _vocabulary(tokenizer, tokenizer_name)
    tokens = sorted(vocabulary.keys() - splitting.left_out, key=vocabulary.__getitem__)
    if not tokens:
        raise ValueError(f"{tokenizer_name} has no tokens.")
    ids = np.array([vocabulary[token] for token in tokens], dtype=np.int64)
    n_ids = int(ids.max()) + 1
    by_id = {"embeddings": matrix} if mapping is None else {"mapping": mapping}
    by_id |= {} if weights is None else {"weights": weights}
    dimensions = {"embeddings": 2, "mapping": 1, "weights": 1}
    if matrix is None or matrix.ndim != 2 or not all(_has_each(by_id[part], n_ids, dimensions[part]) for part in by_id):
        raise ValueError(f"{name} must hold a row for each of the {n_ids} tokens, got {_shapes(arrays)}.")
    rows = ids if mapping is None else _checked_rows(mapping[ids], len(matrix), name)
    in_order = np.array_equal(rows, np.arange(n_ids - len(rows), n_ids))  # after the special tokens: a view will do
    vectors: np.ndarray = matrix[n_ids - len(rows) : n_ids] if in_order else matrix[rows]
    if weights is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # the table of vectors says which token is not finite
            vectors = vectors * check_numeric(weights, f"weights of {name}")[ids, None]
    return StaticModel(tokens, vectors, splitting)


def _vocabulary(tokenizer: Any, name: str) -> dict[str, int]:
    """The id of each token; raise before the package tokenizers would reserve memory for ids that no model has."""
    vocabulary = getattr(tokenizer, "backend_tokenizer", tokenizer).get_vocab()
    for token, number in vocabulary.items():
        if number > _LARGEST_ID:
            raise ValueError(f"{name} gives {token!r:.60} the id {number}: ids up to {_LARGEST_ID} are expected.")
    return vocabulary


def _has_each(array: np.ndarray | None, n_ids: int, n_dimensions: int) -> bool:
    return array is not None and array.ndim == n_dimensions and len(array) >= n_ids


def _checked_rows(rows: np.ndarray, n_rows: int, name: str) -> np.ndarray:
    """The rows of tokens; raise unless all are rows of the matrix."""
    is_whole = rows.dtype.kind in "iu"
    if not is_whole or rows.min() < 0 or rows.max() >= n_rows:
        got = f"{rows.min()} to {rows.max()}" if is_whole else rows.dtype
        raise ValueError(f"mapping of {name} must hold numbers of its {n_rows} rows, from 0, got {got}.")
    return rows


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


def _encoded(tokenizer: Any, name: str, words: Sequence[str]) -> Iterator[list[str]]:
    """Pieces of words, by the package tokenizers."""
    word = ""

    def sentence() -> str:
        return f"{name} cannot split {word!r:.60}"

    with _explained(sentence):
        for word in words:
            yield tokenizer.encode(word, add_special_tokens=False).tokens


def _tokenised(tokenizer: Callable[[str], Iterable[Any]], words: Sequence[str]) -> Iterator[list[Any]]:
    """Pieces of words, by any function."""
    for word in words:
        yield listed(tokenizer(word), f"the word {word!r:.60}")


@contextmanager
def _explained(sentence: str | Callable[[], str]) -> Iterator[None]:
    """Turn what tokenizers and safetensors raise, plain exceptions and panics of Rust, into a sentence."""
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"
        if isinstance(error, MemoryError) or not (isinstance(error, Exception) or is_panic):
            raise
        said = sentence if isinstance(sentence, str) else sentence()
        raise ValueError(f"{said}: {str(error).rstrip('.')[:_LONGEST_REASON]}.") from error
