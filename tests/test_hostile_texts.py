"""Texts that nobody meant to write: the time to read them grows with their length, and memory in proportion."""

import gc
import time
import tracemalloc

import numpy as np
import pytest

from sklearn_mcsg import EmbeddingVectorizer
from sklearn_mcsg.text import _misspellings, tokenize
from sklearn_mcsg.text._near_copies import NearCopies
from sklearn_mcsg.text._spelling import parts_of
from sklearn_mcsg.text._tokenised import Tokens
from sklearn_mcsg.text.sources import open_table
from sklearn_mcsg.text.wording import FOLDED, fold

LENGTH = 2**12  # characters of the shorter text
TIMES = 32  # as many characters in the longer one
MOST_GROWTH = TIMES**1.5  # of the time: halfway from linear (32) to quadratic (1024), far from both on a busy machine
ATTEMPTS = 8  # of which the fastest counts

KINDS = {  # what is repeated, and what stands at the end
    "a list of numbers, then a letter": ("1,", "1a"),
    "a date without end, then a letter": ("1/", "1a"),
    "times, then a letter": ("12:34:", "5p"),
    "a number of many points": ("1.", "1a"),
    "a list of numbers": ("1,", "1"),
    "a list after a word": ("x1,1,1", "a"),
    "numbers and a hyphen": ("1,1-", "a"),
    "long numbers, then a letter": ("1234567890" * 20 + ",", "1a"),
    "digits": ("1", ""),
    "digits, then a letter": ("1", "a"),
    "superscript digits": ("\u00b2", "a"),
    "fractions": ("\u00bd", ""),
    "digits and low lines": ("1_", "a"),
    "minus signs": ("-5", "a"),
    "hyphens": ("a-", "'"),
    "dashes": ("-", "a"),
    "points": (".", "a"),
    "points and spaces": (". ", ""),
    "initials": ("a.", "aa"),
    "apostrophes": ("a'", ""),
    "o'o'o": ("o'", "_"),
    "n before an apostrophe": ("n", "'"),
    "n't": ("n't", "x"),
    "don't": ("don't", "x"),
    "contractions with spaces": ("n ' t ", "x"),
    "'s'sss": ("'s'sss", ""),
    "cannot": ("'cannot ", ""),
    "a word without end": ("a", ""),
    "a word without end, then n't": ("a", "n't"),
    "a word without end, then an apostrophe": ("a", "\u2019"),
    "upper and lower case": ("aB", ""),
    "sharp s": ("\u00df", ""),
    "capital sigma": ("\u03a3.", ""),
    "capital i with a dot": ("\u0130", ""),
    "one mark on one letter": ("e\u0301", ""),
    "one letter, many marks": ("\u0301\u0323", "a"),
    "marks of three classes": ("\u0f71\u0f72\u0f74", ""),
    "marks of ideographs": ("\uff9e\u0334", "a"),
    "marks beyond the first plane": ("\U0001d165\U0001d16d", ""),
    "marks and joiners": ("\u0301\u200d\u0323", ""),
    "marks that decompose": ("\u0f73\u0344", ""),
    "crowded letters": ("a" + 40 * "\u0301\u0323", ""),
    "Vietnamese, decomposed": ("e\u0323\u0302", ""),
    "Hangul, decomposed": ("\u1112\u1161\u11ab", ""),
    "initial consonants of Hangul": ("\u1100", "\u1161"),
    "Devanagari": ("\u0915\u094d", ""),
    "Thai": ("\u0e01\u0e34", ""),
    "Chinese": ("\u732b", ""),
    "Arabic, pointed": ("\u0643\u064e", ""),
    "right to left, overridden": ("\u202e\u05d0", ""),
    "letters beyond the first plane": ("\U0001d51e", ""),
    "one character of eighteen": ("\ufdfa", ""),
    "emoji joined": ("\U0001f468\u200d", ""),
    "flags": ("\U0001f1e6", ""),
    "halves of surrogate pairs": ("\ud800", "a"),
    "surrogate pairs": ("\ud83d\udc31", "a"),
    "NUL": ("\0", "a"),
    "escape sequences": ("\x1b[2J", ""),
    "byte order marks": ("\ufeff", "a"),
    "spaces": (" ", "a"),
    "tabs and no-break spaces": ("\t\u00a0", "a"),
    "line separators": ("\u2028", "a"),
    "one letter per word": ("a ", ""),
    "addresses": ("http://a.b/c?d=e&", ""),
    "e-mail": ("a@b.", ""),
    "currency": ("-$", "5"),
    "low lines": ("_", "a"),
    "quotes within quotes": ("\"'\u201c", "a"),
    "brackets": ("([{", ""),
    "signs at the end of a word": ("#", "a"),
    "c++c++": ("c+", "a"),
    "plus signs": ("+", "a"),
    "equals signs": ("!=>", "a"),
    "tags": ("<a>", ""),
    "tags without end": ("<a x=1 ", ""),
    "attributes without end": ("y='1' ", "<"),
    "a value without end": ('<a x="', "b"),
    "spaces in tags": ("<br  ", ">"),
    "entities": ("&amp;", ""),
    "entities without end": ("&a", ""),
    "entities of numbers": ("&#1", ";"),
    "hyphens at line ends": ("aa-\n", "a"),
    "hyphens before spaces": ("aa-  ", "\n"),
    "numbers in words": ("twenty one ", ""),
    "hundreds": ("one hundred thousand ", ""),
    "products": ("1 * ", ""),
    "about": ("~", "5"),
}
WORDS = {"a": [1.0, 0.0], "cat": [0.0, 1.0]}
VECTORIZER = EmbeddingVectorizer(WORDS, weighting=None).fit(["a cat"])
SEVERAL = EmbeddingVectorizer([(list, {"c": [1.0, 0.0], "1": [0.0, 1.0]}), WORDS, "spelling"]).fit(["a cat"])
READERS = {
    "tokenize": tokenize,
    "fold": fold,
    "parts_of": parts_of,
    "transform": lambda text: VECTORIZER.transform([f"cat {text}"]),
    "transform by several tables": lambda text: SEVERAL.transform([f"cat {text}"]),
}


def hostile(kind, length):
    unit, end = KINDS[kind]
    return "c" + unit * (length // len(unit)) + end


def seconds(read, text):
    start = time.process_time()
    read(text)
    return time.process_time() - start


def growth(read, kind):
    """How many times as long the longer text takes, by the fastest of several attempts."""
    texts = hostile(kind, LENGTH), hostile(kind, TIMES * LENGTH)
    shorter = longer = np.inf
    for attempt in range(ATTEMPTS):
        shorter, longer = min(shorter, seconds(read, texts[0])), min(longer, seconds(read, texts[1]))
        if attempt and longer <= MOST_GROWTH * shorter:
            break
    return longer / shorter


@pytest.mark.thread_unsafe(reason="the time of the process is that of all threads")
@pytest.mark.filterwarnings("ignore:.*scripts that put no spaces between words")
@pytest.mark.parametrize("reader", READERS)
def test_the_time_grows_with_the_length(reader):
    assert len(KINDS) >= 60
    gc.disable()
    try:
        found = {kind: growth(READERS[reader], kind) for kind in KINDS}
    finally:
        gc.enable()
    assert {kind: round(value, 1) for kind, value in found.items() if value > MOST_GROWTH} == {}


def test_texts_of_many_misspelled_words_are_read_in_linear_time(monkeypatch):
    calls = []
    original = _misspellings.errors_between
    monkeypatch.setattr(_misspellings, "errors_between", lambda *args: calls.append(1) or original(*args))
    words = [f"c{a}{b}{c}" for a in "aeiou" for b in "bdfglmnprst" for c in "aeiouklmnprst"]
    table = open_table((["said", *words], np.ones((len(words) + 1, 2))))
    for n in (500, 700):
        own, misspelled = words[:n], [f"{word[:2]}q{word[2:]}" for word in words[:n]]
        shared = [f"s{i}" for i in range(n)]
        texts = [" ".join(shared + own), " ".join(shared + misspelled), " ".join(shared + misspelled[::-1])]
        copies = NearCopies(Tokens.of(texts, FOLDED), table)
        assert [pair.tolist() for left, right, _ in copies.pairs() for pair in (left, right)] == [[0], [1]]
    assert len(calls) < 20 * 700, "all pairs of words would be 370,000"


def test_misspelled_words_have_few_readings():
    """Twenty words that may each be one of four: 4 ** 20 readings are never made."""
    right = [f"ca{letter}ado" for letter in "bdfg"]
    table = open_table((["said", *right], np.ones((5, 2))))
    texts = [" ".join([*right, *["cazado", "x"] * 20, *[f"x{i}" for i in range(60)]]), " ".join([*right, "x"])]
    copies = NearCopies(Tokens.of(texts, FOLDED), table)
    assert len(copies._readings[0]) <= 17
    assert sum(len(left) for left, _, _ in copies.pairs()) == 0


def test_long_words_are_no_misspellings():
    table = open_table((["a" * 10**5, "said"], np.ones((2, 2))))
    texts = ["x y z " + "a" * 10**5, "x y z " + "a" * (10**5 - 2) + "ba"]
    start = time.process_time()
    assert list(NearCopies(Tokens.of(texts, FOLDED), table).pairs()) == []
    assert time.process_time() - start < 2


def test_texts_of_the_same_words_in_any_order_take_little_memory():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation([f"w{i}" for i in range(30)])) for _ in range(1500)]
    copies = NearCopies(Tokens.of(texts, FOLDED))
    tracemalloc.start()
    assert sum(len(left) for left, _, _ in copies.pairs()) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20, "all pairs at once would take 1,300 MiB"


def test_long_texts_with_most_words_in_common_take_little_memory():
    rng = np.random.default_rng(0)
    texts = [" ".join([*(f"w{i}" for i in rng.permutation(5000)), f"x{k}"]) for k in range(60)]
    copies = NearCopies(Tokens.of(texts, FOLDED))
    tracemalloc.start()
    assert sum(len(left) for left, _, _ in copies.overlapping(0.9)) == 60 * 59 // 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 130 * 2**20, "the words of all pairs at once take 400 MiB"
