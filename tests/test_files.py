import functools
import gzip
import io
import sys
import tracemalloc
import warnings
import zipfile
from itertools import pairwise

import numpy as np
import pytest
from conftest import traces_memory

from sklearn_mcsg import load_word_vectors
from sklearn_mcsg.text import _files as files

WORDS = ["the", "Straße", "a\u00a0b", "\u0085", "12", "-", "nan", "日本"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
VECTORS[0] = [0, 1, -2.5, 1e-7, 123456]


def text(words=WORDS, vectors=VECTORS, end="\n"):
    return "".join(f"{word} {' '.join(map(str, vector))}{end}" for word, vector in zip(words, vectors, strict=True))


def binary(words=WORDS, vectors=VECTORS, end=b"\n", count=None):
    header = f"{len(words) if count is None else count} {len(vectors[0])}\n".encode()
    rows = zip(words, np.asarray(vectors, dtype="<f4"), strict=True)
    return header + b"".join(word.encode() + b" " + row.tobytes() + end for word, row in rows)


FORMATS = {
    "glove": text().encode(),
    "word2vec": f"{len(WORDS)} 5\n{text()}".encode(),
    "fasttext": (f"{len(WORDS)} 5\n" + text(end=" \n")).encode(),
    "crlf": (f"{len(WORDS)} 5\r\n" + text(end="\r\n")).encode(),
    "no final newline": text().encode()[:-1],
    "blank lines at the end": text().encode() + b"\r\n\n \n",
    "tabs": text().replace(" ", "\t").encode(),
    "byte order mark": b"\xef\xbb\xbf" + text().encode(),
    "bin": binary(),
    "bin without newlines": binary(end=b""),
}


def gzipped(content):
    return gzip.compress(content, compresslevel=1)


def zipped(*contents):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i, content in enumerate(contents):
            archive.writestr(f"member{i}.txt", content)
    return file.getvalue()


COMPRESSIONS = {"plain": bytes, "gzip": gzipped, "zip": zipped}


@pytest.fixture
def write(tmp_path):
    def write(content, name="file.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_formats_agree(write, content, compress):
    path = write(compress(content), "misleading.name")
    words, vectors = load_word_vectors(path)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)
    assert vectors.dtype == np.float32
    assert vectors.flags.writeable
    words, vectors = load_word_vectors(str(path), vocabulary=iter(["日本", "a\u00a0b", "absent", "\ud800"]))
    assert words == ["a\u00a0b", "日本"]
    np.testing.assert_array_equal(vectors, VECTORS[[2, 7]])
    words, vectors = load_word_vectors(path, limit=np.int64(3), vocabulary=dict.fromkeys(WORDS))
    assert words == WORDS[:3]
    np.testing.assert_array_equal(vectors, VECTORS[:3])


def test_words_with_spaces(write):
    path = write("the 1 2\n. . . 3 4\nat name@domain.com 5 6\na  b\tc 7  8\n5 9 10\n")
    words, vectors = load_word_vectors(path)
    assert words == ["the", ". . .", "at name@domain.com", "a  b\tc", "5"]
    np.testing.assert_array_equal(vectors, np.arange(1, 11).reshape(5, 2))
    assert load_word_vectors(path, vocabulary=[". . ."])[0] == [". . ."]


def test_first_word_with_spaces(write):
    assert load_word_vectors(write("in New York 1 2\nto 3 4\n"))[0] == ["in New York", "to"]


@pytest.mark.parametrize(
    ("content", "words", "shape"),
    [
        ("5 3\n7 2.5\n", ["5", "7"], (2, 1)),  # a header would need three numbers in the next line
        ("2 1\na 3\nb 4\n", ["a", "b"], (2, 1)),
        ("1 2\n3 4 5\n", ["3"], (1, 2)),
        ("5 3 1\n7 2 8\n", ["5", "7"], (2, 2)),
    ],
    ids=["one number a word", "header of one number", "header", "too long for a header"],
)
def test_what_is_a_header(write, content, words, shape):
    found, vectors = load_word_vectors(write(content))
    assert found == words
    assert vectors.shape == shape


def test_numbers_round_like_floats(write):
    """Every way of writing numbers gives the float32 nearest to what float() gives."""
    rng = np.random.default_rng(1)
    numbers = [f"{x:{form}}" for form in (".5g", ".6f", ".9g", ".17g", ".3e", ".30f") for x in rng.normal(size=60)]
    numbers += ["-0.0", "5.", ".5", "-.25", "+1.5", "1E3", "7", "9007199254740993.0", "-99999999999999999999.0"]
    numbers += ["0" * 30 + "1.5", "1e-60", "16777217.0", "3.4028235e38", "0.1" + "0" * 25, "12345678901234567.5"] * 2
    expected = np.array([float(number) for number in numbers]).astype(np.float32)
    for dim in (1, 3):
        rows = [" ".join(numbers[i : i + dim]) for i in range(0, len(numbers), dim)]
        path = write("".join(f"w{i} {row}\n" for i, row in enumerate(rows)))
        np.testing.assert_array_equal(load_word_vectors(path)[1].ravel(), expected)


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_blocks_end_anywhere(write, monkeypatch, content, compress):
    path = write(compress(content))
    for size in range(120, 180, 7):
        monkeypatch.setattr(files, "_CHUNK", size)
        words, vectors = load_word_vectors(path)
        assert words == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)


@functools.cache
def large(form="text"):
    """A million bytes of words and vectors, in several blocks."""
    rng = np.random.default_rng(2)
    words, vectors = [f"word{i}" for i in range(3000)], rng.normal(size=(3000, 90)).astype(np.float32)
    if form == "text":
        vectors = vectors[:, :35].round(5)
    content = text(words, vectors).encode() if form == "text" else binary(words, vectors)
    assert len(content) > 3 * 2**18
    return content, words, vectors


@pytest.mark.parametrize("form", ["text", "bin"])
@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_many_blocks(write, form, compress):
    content, words, vectors = large(form)
    path = write(compress(content))
    found, read = load_word_vectors(path)
    assert found == words
    np.testing.assert_array_equal(read, vectors)
    found, read = load_word_vectors(path, vocabulary=words[::-500], limit=2700)
    assert found == words[499:2700:500]
    np.testing.assert_array_equal(read, vectors[499:2700:500])


def test_error_in_a_later_block_names_its_line(write):
    lines = large()[0].split(b"\n")
    lines[2321] = b"word2321 " + b"0.5 " * 34 + b"0.5x"
    with pytest.raises(ValueError, match=r"file.txt, line 2322, word 'word2321': '0.5x' is not a finite number"):
        load_word_vectors(write(b"\n".join(lines)))


def test_blank_lines_across_blocks(write, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 20)
    path = write("a 1 2\n" + "\n" * 100)
    assert load_word_vectors(path)[0] == ["a"]
    path = write("a 1 2\n" + "\n" * 100 + "b 3 4\n")
    with pytest.raises(ValueError, match="line 2, word '': a word and 2 numbers are required"):
        load_word_vectors(path)


@traces_memory
def test_memory_is_bounded_by_what_is_kept(write):
    numbers = " ".join(f"{0.001 * i:.6f}" for i in range(100))
    path = write("".join(f"word{i} {numbers}\n" for i in range(9000)))
    assert path.stat().st_size > 8e6
    tracemalloc.start()
    try:
        load_word_vectors(path, vocabulary=[f"word{i}" for i in range(0, 9000, 100)])
        filtered = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        _, vectors = load_word_vectors(path)
        full = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert filtered < 2e6
    assert full < 1.2 * vectors.nbytes + 4e6


BAD = "4 2\nthe 1 2\nof 3\nand 5 6\nto 7 8\n"


def test_reading_stops_early(write):
    assert load_word_vectors(write(BAD), vocabulary=["the"])[0] == ["the"]
    assert load_word_vectors(write(BAD), limit=1)[0] == ["the"]
    with pytest.raises(ValueError, match="line 3, word 'of'"):
        load_word_vectors(write(BAD), vocabulary=["the", "and"])
    with pytest.raises(ValueError, match="line 3, word 'of'"):
        load_word_vectors(write(BAD), limit=2)
    with pytest.warns(UserWarning, match=r"skipped 1 of 3 lines: .*; the first is line 3\.$"):
        assert load_word_vectors(write(BAD), vocabulary=["the", "and"], on_error="skip")[0] == ["the", "and"]


PROBLEMS = {
    "too many": ("x 1 2 3\n", "with too many fields", "word 'x 1': more than 2 numbers follow the word"),
    "too many tabs": ("x\t1.5\t2\t3\n", "with too many fields", "more than 2 numbers follow the word"),
    "carriage return": ("x 1 2\ry 3 4\n", "with a carriage return", "the word holds a carriage return"),
    "too few": ("x 1\n", "with too few fields", "word 'x': a word and 2 numbers are required"),
    "no word": ("1 2\n", "with too few fields", "a word and 2 numbers are required"),
    "no word but a space": (" 1 2\n", "with too few fields", "a word and 2 numbers are required"),
    "doubled space": ("x  1\n", "with too few fields", "word 'x': a word and 2 numbers are required"),
    "blank": ("\n", "with too few fields", "a word and 2 numbers are required"),
    "letters": ("x 1 y\n", "with an invalid number", "word 'x': 'y' is not a finite number"),
    "underscore": ("x 1_0 2\n", "with an invalid number", "word 'x': '1_0' is not a finite number"),
    "two points": ("x 1.2.3 2\n", "with an invalid number", "word 'x': '1.2.3' is not a finite number"),
    "minus alone": ("x 1.5. -\n", "with an invalid number", "word 'x': '1.5.' is not a finite number"),
    "point alone": ("x 1.5 .\n", "with an invalid number", "word 'x': '.' is not a finite number"),
    "minus and point": ("x -. 1.5\n", "with an invalid number", "word 'x': '-.' is not a finite number"),
    "minus between": ("x 1.5-3. 2.5\n", "with an invalid number", "'1.5-3.' is not a finite number"),
    "nan": ("x 1 nan\n", "with an invalid number", "word 'x': 'nan' is not a finite number"),
    "inf": ("x -inf 1\n", "with an invalid number", "word 'x': '-inf' is not a finite number"),
    "too large": ("x 1e39 1\n", "with an invalid number", "word 'x': a value in single precision"),
    "duplicate": ("the 1 2\n", "with a duplicate word", "word 'the': the word is a duplicate"),
    "not UTF-8": (b"x\xff 1 2\n", "not UTF-8", "word 'x\ufffd': the word is not UTF-8"),
    "number not UTF-8": (b"x 1 \xff\n", "with an invalid number", "'\ufffd' is not a finite number"),
}


@pytest.mark.parametrize("decimals", [False, True], ids=["integers", "decimals"])
@pytest.mark.parametrize(("line", "kind", "what"), PROBLEMS.values(), ids=PROBLEMS)
def test_problems_of_lines(write, line, kind, what, decimals):
    good = [b"the 1 2\n", b"of 3 4\n", b"and 5 6\n"]
    if decimals:
        good = [b"the 1.0 2.0\n", b"of 3.0 4.0\n", b"and 5.0 6.0\n"]
    line = line.encode() if isinstance(line, str) else line
    path = write(b"".join([*good[:2], line, good[2]]), "glove.txt")
    with pytest.raises(ValueError, match=f'glove.txt, line 3, .*{what}.*on_error="skip"'):
        load_word_vectors(path)
    with pytest.warns(
        UserWarning, match=f"^glove.txt: skipped 1 of 4 lines: 1 {kind}; the first is line 3.$"
    ) as caught:
        words, vectors = load_word_vectors(path, on_error="skip")
    assert [warning.filename for warning in caught] == [__file__]
    assert words == ["the", "of", "and"]
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4], [5, 6]])


def test_first_of_several_problems(write):
    path = write("3 2\nthe 1 2\nthe 3 4\nof x 2\nof 5\nof 7 8\n\xe4 9 10\n".encode("latin-1"))
    with pytest.raises(ValueError, match="line 3, word 'the'"):
        load_word_vectors(path)
    path = write(path.read_bytes().replace(b"3 2\n", b"6 2\n", 1))
    expected = "skipped 4 of 6 lines: 1 with a duplicate word, 1 with an invalid number, 1 with too few "
    with pytest.warns(UserWarning, match=f"^file.txt: {expected}fields, 1 not UTF-8; the first is line 3.$"):
        words, vectors = load_word_vectors(path, on_error="skip")
    assert words == ["the", "of"]
    np.testing.assert_array_equal(vectors, [[1, 2], [7, 8]])


def test_unwanted_words_are_not_looked_at(write):
    path = write(b"the 1 2\nx\xff 3 4\nof 5 y\nof 5 nan\nand 7 8\n")
    assert load_word_vectors(path, vocabulary=["the", "and"])[0] == ["the", "and"]


def test_problems_of_records(write):
    words, vectors = ["a", "b", "a", "c", "d"], np.arange(10.0).reshape(5, 2)
    vectors[1, 1] = np.inf
    path = write(binary(words, vectors).replace(b"c ", b"\xff "), "v.bin")
    with pytest.raises(ValueError, match=r"v.bin, record 2, word 'b': a value .* is not a finite number.*on_error"):
        load_word_vectors(path)
    with pytest.raises(ValueError, match=r"v.bin, record 3, word 'a': the word is a duplicate"):
        load_word_vectors(path, vocabulary=["a", "d"])
    expected = "1 with an invalid number, 1 with a duplicate word, 1 not UTF-8; the first is record 2"
    with pytest.warns(UserWarning, match=f"^v.bin: skipped 3 of 5 records: {expected}.$"):
        found, read = load_word_vectors(path, on_error="skip")
    assert found == ["a", "d"]
    np.testing.assert_array_equal(read, vectors[[0, 4]])


@pytest.mark.parametrize("form", ["text", "bin"])
def test_more_than_the_header_announces(write, form):
    unit, number = ("line", 8) if form == "text" else ("record", 7)
    path = write(f"6 5\n{text()}" if form == "text" else binary(count=6))
    with pytest.raises(ValueError, match=f"file.txt, {unit} {number}, word 'nan': the header announces 6 vectors"):
        load_word_vectors(path)
    with pytest.warns(UserWarning, match=f"skipped 2 of 8 {unit}s: 2 beyond .*count; the first is {unit} {number}"):
        words, vectors = load_word_vectors(path, on_error="skip")
    assert words == WORDS[:6]
    np.testing.assert_array_equal(vectors, VECTORS[:6])
    assert load_word_vectors(path, limit=6)[0] == WORDS[:6]


def test_bytes_after_the_last_record(write):
    path = write(binary() + b"rest")
    with pytest.raises(ValueError, match="record 9, word 'rest': the header announces 8 vectors"):
        load_word_vectors(path)
    with pytest.warns(UserWarning, match="skipped 1 of 9 records: 1 beyond"):
        assert load_word_vectors(path, on_error="skip")[0] == WORDS


CUT = {
    "text": (f"10 5\n{text()}".encode(), WORDS),
    "within a number": (f"8 5\n{text()}a 1 2 3 4 5.1234".encode().replace(b"8 5", b"10 5"), WORDS),
    "bin": (binary(count=10), WORDS),
    "within a vector": (binary()[:-3], WORDS[:-1]),
    "within a word": (binary(count=10) + b"wor", WORDS),
}


@pytest.mark.parametrize(("content", "words"), CUT.values(), ids=CUT)
def test_fewer_than_the_header_announces(write, content, words):
    path = write(content, "cut.vec")
    n_announced = int(content.split(b" ")[0])
    expected = f"it ends after {len(words)} of the {n_announced} vectors that its header announces"
    with pytest.raises(ValueError, match=f'cut.vec is truncated, {expected}: .*on_error="skip"'):
        load_word_vectors(path)
    with pytest.warns(UserWarning, match=f"^cut.vec: {expected}.$"):
        found, vectors = load_word_vectors(path, on_error="skip")
    assert found == words
    np.testing.assert_array_equal(vectors, VECTORS[: len(words)])
    assert load_word_vectors(path, limit=5)[0] == WORDS[:5]
    assert load_word_vectors(path, vocabulary=["the"])[0] == ["the"]


@pytest.mark.parametrize("form", ["text", "bin"])
@pytest.mark.parametrize("compress", [gzipped, zipped], ids=["gzip", "zip"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_torn_archives(write, form, compress, share):
    content, words, vectors = large(form)
    content = compress(content)
    path = write(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"file.txt is truncated, it breaks off or is damaged after (line|record) \d+"):
        load_word_vectors(path)
    with pytest.warns(UserWarning, match=r"^file.txt: it breaks off or is damaged after (line|record) \d+\.$"):
        found, read = load_word_vectors(path, on_error="skip")
    assert share - 0.1 < len(found) / len(words) < share + 0.05
    assert found == words[: len(found)]
    np.testing.assert_array_equal(read, vectors[: len(found)])
    assert load_word_vectors(path, vocabulary=words[:9])[0] == words[:9]


def test_damaged_gzip(write):
    content = bytearray(gzipped(text().encode()))
    content[-5] ^= 1  # the checksum
    with pytest.raises(ValueError, match="damaged after line 8"):
        load_word_vectors(write(bytes(content)))


def test_archive_of_several_files(write):
    with pytest.raises(ValueError, match=r"a.zip holds 2 files \('member0.txt', 'member1.txt'\): extract"):
        load_word_vectors(write(zipped(text(), text()), "a.zip"))


def with_byte(data, place, value):
    return data[:place] + bytes([value]) + data[place + 1 :]


DAMAGED = {
    "start of an archive": b"PK\x03\x04",
    "start of gzip": gzipped(text().encode())[:9],
    "block of gzip": with_byte(gzipped(text().encode()), 10, 0xFF),
    "encrypted archive": with_byte(zipped(text()), zipped(text()).rindex(b"PK\x01\x02") + 8, 1),
    "method of an archive": with_byte(zipped(text()), zipped(text()).rindex(b"PK\x01\x02") + 10, 97),
    "directory of an archive": with_byte(zipped(text()), len(zipped(text())) - 4, 0xFF),
}


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_before_the_first_word(write, kind, on_error):
    with pytest.raises(ValueError, match="file.txt is damaged or breaks off in its first line.*: download it again"):
        load_word_vectors(write(DAMAGED[kind]), on_error=on_error)


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
@pytest.mark.parametrize("content", [b"", b"\n \n"], ids=["empty", "blank"])
def test_empty(write, content, compress):
    with pytest.raises(ValueError, match="file.txt is empty"):
        load_word_vectors(write(compress(content)))


@pytest.mark.parametrize(
    "content",
    [b"\xba\x16\x4f\x2f\x0c\x00\x00\x00" + bytes(100), "some prose\nin two lines\n", text().encode("utf-16")],
    ids=["fastText model", "prose", "utf-16"],
)
def test_unknown_formats(write, content):
    with pytest.raises(ValueError, match=r"file.txt is not in a known format: pass text of GloVe.*\(.bin\)"):
        load_word_vectors(write(content))


def test_carriage_returns_are_no_line_ends(write):
    path = write(text(end="\r"), "mac.txt")
    with pytest.raises(ValueError, match=r"^mac.txt, line 1 holds carriage returns: lines must end with a line feed"):
        load_word_vectors(path)
    with pytest.raises(ValueError, match=r"^mac.txt, line 1 holds carriage returns"):
        load_word_vectors(write((text(end="\r") * 9000).encode(), "mac.txt"), on_error="skip")


HOSTILE = {
    "one long line": (b"the 1 2\nx" + b"x" * 2**25, r"line 2: no word and vector were found in the next 1048576 bytes"),
    "one long first line": (b"1 " * 2**24, r"line 1: no word and vector were found in the next 1048576 bytes"),
    "digits": (b"the 1 2\nof 3 4\nx 1 " + b"1" * 10**6 + b"x\n", r"line 3, word 'x': '1{40}\.\.\.' is not a finite"),
    "long word": (b"the 1 2\nof 3 4\n" + b"x" * 10**6 + b" 1 y\n", r"line 3, word 'x{40}\.\.\.': 'y' is not"),
    "blank lines": (b"the 1 2\n" + b"\n" * 2**25, r"line 2: no word and vector were found"),
    "digits in the header": (
        b"1" * 5000 + b" 3\nthe 1 2 3\nof 1 2 3\n",
        r"line 1, word '1{40}\.\.\.': a word and 3 num",
    ),
    "wide header": (b"9 999999999999\nthe 1 2\n", r"line 1: the header announces vectors of 999999999999 numbers"),
    "word without end": (b"9 2\n\x00" + b"x" * 2**25, r"record 1: the word is longer than 1048576 bytes"),
}


@pytest.mark.parametrize(("content", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_have_short_errors_soon(write, content, message):
    path = write(content, "bad.txt")
    with pytest.raises(ValueError, match=f"^bad.txt, {message}") as caught:
        load_word_vectors(path)
    assert len(str(caught.value)) < 250


def test_a_word_with_one_number_is_no_wide_header(write):
    assert load_word_vectors(write("5 999999999\n7 2.5\n"))[0] == ["5", "7"]


def test_a_line_may_be_longer_than_a_block(write, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 50)
    vectors = np.arange(60.0).reshape(2, 30)
    words, read = load_word_vectors(write(text(["the", "of"], vectors)))
    assert words == ["the", "of"]
    np.testing.assert_array_equal(read, vectors)


def test_nothing_read(write):
    with pytest.raises(ValueError, match="No word was found in the 0 lines read of file.txt"):
        load_word_vectors(write("0 3\n"))
    with pytest.raises(ValueError, match="No word .* of file.txt: skipped 1 of 1 lines: 1 not UTF-8"):
        load_word_vectors(write(b"\xff 1 2\n"), on_error="skip")
    with pytest.raises(ValueError, match="No word .* of file.txt: it ends after 0 of the 5 vectors"):
        load_word_vectors(write("5 3\n"), on_error="skip")
    with pytest.raises(ValueError, match="None of the 2 words of the vocabulary was found in the 8 lines.*case"):
        load_word_vectors(write(text()), vocabulary={"The", "OF"})


def test_wrong_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.txt"):
        load_word_vectors(tmp_path / "absent.txt")
    with pytest.raises(IsADirectoryError, match="is a directory: pass the path of one file"):
        load_word_vectors(tmp_path)


@pytest.mark.parametrize("vocabulary", ["the", b"the", ["the", 5], [["the"]]], ids=str)
def test_wrong_vocabulary(write, vocabulary):
    with pytest.raises(TypeError, match="vocabulary must be a collection of strings, one for each word, got"):
        load_word_vectors(write(text()), vocabulary=vocabulary)


@pytest.mark.parametrize("limit", [0, -1, 2.0, True, "3"], ids=repr)
def test_wrong_limit(write, limit):
    with pytest.raises(ValueError, match="limit must be a positive integer, or None"):
        load_word_vectors(write(text()), limit=limit)


def test_wrong_on_error(write):
    with pytest.raises(ValueError, match='on_error must be "raise" or "skip", got \'ignore\''):
        load_word_vectors(write(text()), on_error="ignore")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_progress(write, monkeypatch, compress):
    path = write(compress(large()[0]))
    monkeypatch.setattr(sys, "stderr", Terminal())
    load_word_vectors(path, verbose=1)
    shown = [int(part.split("%")[0]) for part in sys.stderr.getvalue().split("reading: ")[1:]]
    assert all(a <= b for a, b in pairwise(shown))
    assert shown[-1] >= 99
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    load_word_vectors(path, verbose=1)
    assert sys.stderr.getvalue() == ""


def test_file_is_closed_after_an_error(write):
    path = write(BAD)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ValueError, match="line 3"):
            load_word_vectors(path)
    path.unlink()
