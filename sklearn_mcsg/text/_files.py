"""Word vectors from the files they are published in: GloVe, word2vec and fastText."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

_CHUNK = 2**18  # bytes: enough to recognise a format, few enough for caches
_FIELD = re.compile(rb"[^ \t]+")
_HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+([1-9]\d{0,17})[ \t\r]*")
_NUMBERS = re.compile(rb"(?:(?:^|[ \t]+)[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_LONGEST = 2**20  # bytes of a line, or of the word of a record: a hundred times those of published files
_WIDEST = 2**18  # numbers per vector
_SHOWN = 40  # characters of a word or number in a message
_POWERS = 10.0 ** np.arange(23)  # powers of ten that double precision holds exactly
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)


def load_word_vectors(
    path: str | os.PathLike[str],
    *,
    vocabulary: Iterable[str] | None = None,
    limit: int | None = None,
    on_error: str = "raise",
    verbose: int = 0,
) -> tuple[list[str], np.ndarray]:
    r"""Load word vectors from a GloVe, word2vec or fastText file.

    Parameters
    ----------
    path : str or path-like
        The file: text with or without a header (GloVe .txt, word2vec .txt, fastText .vec) or word2vec's binary format
        (.bin); plain, compressed by gzip, or the only file of a zip archive. The format is recognised by content.
    vocabulary : iterable of str, default=None
        The words to load; ``None`` means all. Reading stops when all have been found.
    limit : int, default=None
        Read only the first `limit` entries of the file. In most files these are the most frequent words.
    on_error : {"raise", "skip"}, default="raise"
        What to do about truncated files and bad entries: too few or too many fields, values that are not finite
        numbers, words that are not UTF-8 or are duplicates, and entries beyond the header's count. ``"skip"`` leaves
        them out and gives one warning. For words outside `vocabulary`, only missing fields are noticed. Words may hold
        spaces, as some of GloVe 840B do, unless their last part is a number.
    verbose : int, default=0
        Whether to show progress bars. They are shown on standard error, if it is a terminal.

    Returns
    -------
    words : list of str
        The words, in the order of the file.
    vectors : ndarray of shape (n_words, n_features)
        Their vectors, in single precision.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn_mcsg import load_word_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "glove.txt")
    ...     _ = path.write_text("the 0.5 1\nof -1 0.25\nand 2 0\n")
    ...     words, vectors = load_word_vectors(path, vocabulary={"and", "the", "zebra"})
    >>> words, vectors.tolist()
    (['the', 'and'], [[0.5, 1.0], [2.0, 0.0]])
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}.')
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
        raise ValueError(f"limit must be a positive integer, or None to read the whole file, got {limit!r}.")
    words = None if vocabulary is None else list(vocabulary)
    if isinstance(vocabulary, str) or not all(isinstance(word, str) for word in words or ()):
        raise TypeError(f"vocabulary must be a collection of strings, one for each word, got {vocabulary!r:.60}.")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{os.fspath(path)} is a directory: pass the path of one file of word vectors.")
    wanted = None if words is None else {word.encode("utf-8", "surrogatepass") for word in words}
    reader = _Reader(os.path.basename(path), wanted, limit, on_error == "skip")
    with open(path, "rb") as file, _progress(path, verbose) as bar:
        reader.read(_chunks(file, reader.name, bar))
    if reader.trouble():
        warnings.warn(f"{reader.name}: {reader.trouble()}.", UserWarning, stacklevel=2)
    return list(reader.words), np.frombuffer(reader.values, dtype=np.float32).reshape(-1, reader.dim)


def _progress(path: Any, verbose: int) -> Any:
    """A progress bar in bytes, if `verbose` is set and standard error is a terminal."""
    if not verbose:
        return nullcontext()
    from tqdm import tqdm

    return tqdm(total=os.path.getsize(path), desc="reading", unit="B", unit_scale=True, disable=None)


def _chunks(file: Any, name: str, bar: Any) -> Iterator[bytes]:
    """Chunks of decompressed bytes, including all bytes before an error of `_BROKEN`."""
    chunk = b""
    try:
        for piece in _decompressed(file, name):
            chunk += piece
            if len(chunk) >= _CHUNK:
                yield chunk
                chunk = b""
            if bar is not None:
                bar.update(file.tell() - bar.n)
    except _BROKEN:
        yield chunk
        raise
    yield chunk


def _decompressed(file: Any, name: str) -> Iterator[bytes]:
    stream = file
    magic = file.peek(4)[:4]
    if magic[:2] == b"\x1f\x8b":
        stream = gzip.GzipFile(fileobj=file)
    elif magic == b"PK\x03\x04" and zipfile.is_zipfile(file):
        yield from _unzipped(file, name)
        return
    elif magic == b"PK\x03\x04":  # the archive is truncated, so its directory is missing
        file.seek(26)
        file.seek(30 + int.from_bytes(file.read(2), "little") + int.from_bytes(file.read(2), "little"))
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        while not inflater.eof and (piece := file.read(2**14)):
            yield inflater.decompress(piece)
        raise EOFError
    yield from iter(lambda: stream.read1(_CHUNK), b"")


def _unzipped(file: Any, name: str) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(file)
        members = [m.filename for m in archive.infolist() if not (m.is_dir() or m.filename.startswith("__MACOSX/"))]
        if len(members) == 1:
            stream = archive.open(members[0])
            yield from iter(lambda: stream.read1(_CHUNK), b"")  # type: ignore[attr-defined]
    except Exception as error:  # zipfile and its decompressors raise many kinds
        raise zipfile.BadZipFile(str(error)) from error
    if len(members) != 1:
        some = ", ".join(map(_short, members[:5])) + (", ..." if len(members) > 5 else "")
        raise ValueError(f"{name} holds {len(members)} files ({some}): extract one and pass that.")


def _recognise(head: bytes, name: str) -> tuple[int, int, int, bool]:
    """Numbers per vector, vectors announced by the header, its length in bytes, and whether the rest is binary."""
    first, *lines = head.split(b"\n")[:100]
    if header := _HEADER.fullmatch(first):
        count, dim = map(int, header.groups())
        width, binary = _usual_width(lines), _CONTROL.search(head) is not None
        if width == dim or width != 1 or binary:  # otherwise the line is a word with one number
            if dim > _WIDEST:
                raise ValueError(f"{name}, line 1: the header announces vectors of {dim} numbers, more than {_WIDEST}.")
            return dim, count, len(first) + 1, binary and width != dim
    dim = 0 if b"\0" in head else _usual_width([first, *lines])
    if dim == 0:
        known = "text of GloVe, word2vec or fastText (.txt, .vec) or word2vec's binary (.bin), plain, gzip or zip"
        raise ValueError(f"{name} is {'not in a known format' if head.strip() else 'empty or cut off'}: pass {known}.")
    return dim, 0, 0, False


def _usual_width(lines: list[bytes]) -> int:
    """How many numbers most lines end with, not counting the first field; the largest number among ties."""
    fields = [_FIELD.findall(line.rstrip(b"\r"))[:0:-1] for line in lines]
    widths = Counter(len([*itertools.takewhile(_NUMBERS.fullmatch, backwards)]) for backwards in fields)
    del widths[0]
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _split(line: bytes, dim: int) -> tuple[bytes, bytes]:
    """Word and numbers of a line: the word may contain spaces, and is empty if the fields are too few."""
    line = line.rstrip(b" \t\r")
    if line.count(b" ") == dim and b"\t" not in line:
        word, _, numbers = line.partition(b" ")
        return word, numbers
    starts = [field.start() for field in _FIELD.finditer(line)]
    cut = starts[-dim] if len(starts) >= dim else 0
    return line[:cut].strip(b" \t"), line[cut:]


def _parse(texts: list[bytes], dim: int, binary: bool) -> np.ndarray:
    """One vector per text; NaN if a text is not `dim` numbers.

    Plain decimals are parsed as integers, which is fast, and divided by powers of ten, with a single rounding.
    """
    if binary:
        return np.frombuffer(b"".join(texts), dtype="<f4").reshape(-1, dim).astype(np.float32)
    vectors = np.full((len(texts), dim), np.nan, dtype=np.float32)
    plain = np.array([text.count(b".") == dim and not text.translate(None, b"0123456789.- ") for text in texts], bool)
    joined = b" ".join([*itertools.compress(texts, plain), b""])
    text = np.frombuffer(joined, dtype=np.uint8)
    points = np.flatnonzero(text == ord("."))
    stops = np.flatnonzero(text == ord(" "))
    exact = False
    if len(points) == len(stops) > 0:
        before, after = points - np.append(0, stops[:-1] + 1), stops - points
        signed = text[points - before] == ord("-")
        whole = before.min() >= 0 and after.min() > 0 and (before + after - signed).min() > 1
        if whole and after.max() <= len(_POWERS) and np.count_nonzero(signed) == joined.count(b"-"):
            digits = np.fromstring(joined.translate(None, b"."), dtype=np.int64, sep=" ")
            vectors[plain] = (digits / _POWERS[after - 1]).reshape(-1, dim)
            exact = -(2**53) <= digits.min() <= digits.max() <= 2**53
    with np.errstate(over="ignore"):
        for row in np.flatnonzero(~plain) if exact else range(len(texts)):
            numbers = np.fromstring(texts[row], sep=" ") if _NUMBERS.fullmatch(texts[row]) else vectors[:0]
            vectors[row] = numbers if len(numbers) == dim else np.nan
    return vectors


class _Reader:
    """Words and vectors read so far, and the problems found."""

    def __init__(self, name: str, wanted: set[bytes] | None, limit: int | None, skip: bool):
        self.name, self.wanted, self.limit, self.skip = name, wanted, limit, skip
        self.words: dict[str, None] = {}
        self.values = bytearray()  # grows in place: no vector is held twice
        self.problems: Counter[str] = Counter()
        self.n_read = 0
        self.first = 0  # line or record of the first problem
        self.ending = ""  # how the file ends, if it is truncated

    def read(self, chunks: Iterator[bytes]) -> None:
        """Read until the end, the limit or the last wanted word."""
        head = self._head(chunks)
        first = head.partition(b"\n")[0].rstrip(b"\r")
        if b"\r" in first and b"\0" not in first:
            raise ValueError(
                f"{self.name}, line 1 holds carriage returns: lines must end with a line feed. Convert the file, for "
                f"example with tr '\\r' '\\n'."
            )
        self.dim, self.count, start, self.binary = _recognise(head, self.name)
        self.unit, self.n_above = ("record", 0) if self.binary else ("line", int(start > 0))
        blocks = (self._records if self.binary else self._lines)(itertools.chain([head[start:]], chunks))
        try:
            if not any(map(self._add, blocks)) and self.n_read < self.count:
                self.ending = f"it ends after {self.n_read} of the {self.count} vectors that its header announces"
        except _BROKEN:
            self.ending = f"it breaks off or is damaged after {self.unit} {self.n_read + self.n_above}"
        if self.ending and not self.skip:
            raise ValueError(f'{self.name} is truncated, {self.ending}: download it again, or pass on_error="skip".')
        if not self.words:
            whose = "No word" if self.wanted is None else f"None of the {len(self.wanted)} words of the vocabulary"
            why = self.trouble() or "check its content, and upper and lower case"
            raise ValueError(f"{whose} was found in the {self.n_read} {self.unit}s read of {self.name}: {why}.")

    def _head(self, chunks: Iterator[bytes]) -> bytes:
        """The first line at least, without a byte order mark."""
        head = b""
        try:
            for chunk in chunks:
                head += chunk
                if b"\n" in head or len(head) >= _LONGEST:
                    break
        except _BROKEN as error:
            where = f"in its first line ({error})" if str(error) else "in its first line"
            raise ValueError(f"{self.name} is damaged or breaks off {where}: download it again.") from error
        return head.removeprefix(b"\xef\xbb\xbf")

    def _lines(self, chunks: Iterable[bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
        """Blocks of lines, split into word and numbers, without trailing blank lines or a truncated last line."""
        rest = b""
        for chunk in chunks:
            rest += chunk
            filled = rest[: rest.rfind(b"\n") + 1].rstrip(b" \t\r\n")
            if filled:
                yield [_split(line, self.dim) for line in filled.split(b"\n")]
                rest = rest[rest.index(b"\n", len(filled)) + 1 :]
            if len(rest) > _LONGEST:
                where = f"{self.name}, line {self.n_read + self.n_above + 1}"
                what = f"no word and vector were found in the next {_LONGEST} bytes"
                raise ValueError(f"{where}: {what}. Check that this is a file of word vectors.")
        if rest.rstrip(b" \t\r\n") and self.n_read + 1 >= self.count:
            yield [_split(line, self.dim) for line in rest.split(b"\n")]

    def _records(self, chunks: Iterable[bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
        """Blocks of words with the bytes of their vectors, without a truncated last record."""
        rest = b""
        for chunk in chunks:
            rest += chunk
            block = []
            start = 0
            while True:
                space = rest.find(b" ", start)
                stop = space + 1 + 4 * self.dim
                if space < 0 or stop > len(rest):
                    break
                block.append((rest[start:space].lstrip(b"\n"), rest[space + 1 : stop]))
                start = stop
            rest = rest[start:]
            if space < 0 and len(rest) > _LONGEST:
                number = self.n_read + len(block) + 1
                raise ValueError(f"{self.name}, record {number}: the word is longer than {_LONGEST} bytes.")
            yield block
        rest = rest.strip(b"\n")
        if rest and self.n_read >= self.count:
            yield [(rest[:20], bytes(4 * self.dim))]

    def trouble(self) -> str:
        """A description of the entries that were skipped."""
        kinds = ", ".join(f"{n} {kind}" for kind, n in self.problems.items())
        skipped = f"skipped {self.problems.total()} of {self.n_read} {self.unit}s: {kinds}; the first is {self.unit} "
        return "; ".join(filter(None, [kinds and f"{skipped}{self.first}", self.ending]))

    def _add(self, block: list[tuple[bytes, bytes]]) -> bool:
        """Add a block of entries; return whether reading can stop."""
        block = block if self.limit is None else block[: self.limit - self.n_read]
        wanted = self.wanted
        rows = [
            (n, word, numbers)
            for n, (word, numbers) in enumerate(block, self.n_read + 1)
            if wanted is None or word in wanted or not word
        ]
        vectors = _parse([numbers for _, _, numbers in rows], self.dim, self.binary)
        finite = np.isfinite(vectors).all(axis=1)
        self.n_read += len(block)
        kept = []
        has_all = False
        for i, (n, word, numbers) in enumerate(rows):
            if self._keep(n, word, numbers, finite[i]):
                kept.append(i)
                has_all = wanted is not None and len(self.words) == len(wanted)
            if has_all:
                self.n_read = n
                break
        self.values += vectors[kept].data
        return has_all or self.n_read == self.limit

    def _keep(self, n: int, word: bytes, numbers: bytes, finite: bool) -> bool:
        """Keep a word unless its entry is bad; return whether it was kept."""
        text = word.decode(errors="replace")
        fields = [] if finite or self.binary else _FIELD.findall(numbers)
        if 0 < self.count < n:
            kind, what = "beyond the header's count", f"the header announces {self.count} vectors"
        elif not word or 0 < len(fields) < self.dim:
            kind, what = "with too few fields", f"a word and {self.dim} numbers are required"
            text = text or b"".join(fields[:1]).decode(errors="replace")
        elif not self.binary and _ends_with_a_number(word):
            kind, what = "with too many fields", f"more than {self.dim} numbers follow the word"
        elif b"\r" in word:
            kind, what = "with a carriage return", "the word holds a carriage return, and lines end with a line feed"
        elif text.encode() != word:
            kind, what = "not UTF-8", "the word is not UTF-8"
        elif not finite:
            odd = [_short(field.decode(errors="replace")) for field in fields if not _NUMBERS.fullmatch(field)]
            what = f"{odd[0] if odd else 'a value in single precision'} is not a finite number"
            kind = "with an invalid number"
        elif text in self.words:
            kind, what = "with a duplicate word", "the word is a duplicate"
        else:
            self.words[text] = None
            return True
        if not self.skip:
            where = f"{self.name}, {self.unit} {n + self.n_above}, word {_short(text)}"
            raise ValueError(f'{where}: {what}. Correct it, or pass on_error="skip" to leave out bad {self.unit}s.')
        self.problems[kind] += 1
        self.first = self.first or n + self.n_above
        return False


def _ends_with_a_number(word: bytes) -> bool:
    """Whether the last part of a word with spaces is a number, which belongs to a longer vector."""
    _, space, last = word.replace(b"\t", b" ").rpartition(b" ")
    return bool(space) and _NUMBERS.fullmatch(last) is not None


def _short(text: str) -> str:
    """The beginning of a text, as a string of Python."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
