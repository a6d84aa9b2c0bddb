"""Duplicates: sets in which all are near, and texts that differ in no word that matters."""

import random
import re
import shutil
import subprocess
import time
from collections import Counter
from difflib import get_close_matches
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
import sklearn
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from scipy.stats import binom
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_random_state

from sklearn_mcsg import (
    Comparison,
    GroupEmbedding,
    GroupSimilarity,
    ModelComparisonSimilarity,
    find_duplicate_texts,
    find_duplicates,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.search.duplicates import linked_sets
from sklearn_mcsg.text._misspellings import edits, errors_between, misspellings
from sklearn_mcsg.text._near_copies import NearCopies, _is_moved
from sklearn_mcsg.text._tokenised import Tokenisation, Tokens
from sklearn_mcsg.text._variants import american, in_digits
from sklearn_mcsg.text.sources import open_table
from sklearn_mcsg.text.wording import FOLDED, LIGHT_ENGLISH, NEGATIONS, fold, is_emoji

GLOVE = open_table("glove-6b-50d")


def listed(sets):
    return [members.tolist() for members in sets]


def same_pairs(copies):
    """Pairs of texts that say the same."""
    first = copies.first
    found = {(int(i), int(j)) for left, right, _ in copies.pairs() for i, j in zip(left, right, strict=True)}
    every = range(len(first))
    return {
        (i, j)
        for i in every
        for j in every
        if i < j and (first[i] == first[j] or tuple(sorted((first[i], first[j]))) in found)
    }


def same(a, b, table=GLOVE, ordered=True):
    return bool(same_pairs(NearCopies(Tokens.of([a, b], FOLDED), table, ordered)))


# Groups -------------------------------------------------------------------------------------------------------------


def near(distances, limit):
    left, right = np.nonzero(np.triu(distances <= limit, 1))
    return left, right, distances[left, right]


@pytest.mark.parametrize("seed", range(20))
def test_complete_linkage(seed):
    """The sets are those of scipy, which merges on the full matrix."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 2))
    condensed = pdist(points)
    limit = rng.uniform(0.2, 2)
    expected = fcluster(linkage(condensed, "complete"), limit, "distance")
    sets = [np.flatnonzero(expected == k).tolist() for k in np.unique(expected)]
    found = linked_sets(np.arange(40), [near(squareform(condensed), limit)])
    assert listed(found) == sorted(members for members in sets if len(members) > 1)


def test_no_chain_joins_strangers():
    X = np.arange(30.0)[:, None]
    similarity = GroupSimilarity(Difference())
    distances = np.abs(X - X.T)
    sets = find_duplicates(X[:, None], threshold=1.5, similarity=similarity)
    assert sets
    for members in sets:
        assert distances[np.ix_(members, members)].max() <= 1.5
    assert len(np.unique(np.concatenate(sets))) == sum(map(len, sets)), "sets are disjoint"


class Difference(Comparison):
    """Distance of means of one feature."""

    def summarize(self, groups):
        return groups.sum(groups.rows()) / groups.sizes[:, None]

    def compare(self, left, right, output):
        return np.abs(left - right.T)


def test_equal_groups_are_compared_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3, 2)) + 20 * np.arange(40)[:, None, None]
    doubled = np.concatenate([X, X[:7], X[:7]])
    found = find_duplicates(doubled, threshold=1e-6)
    assert listed(found) == [[i, 40 + i, 47 + i] for i in range(7)]
    doubled[40] += 1e-9
    assert listed(find_duplicates(doubled, threshold=1e-6)) == listed(found)


def test_texts_without_known_words_are_named_by_their_place():
    pipeline = make_text_embedding(vectors={"cat": [1, 0.0], "dog": [0, 1.0], "ran": [1, 1.0]}, unknown="ignore")
    texts = ["...", "cat ran", "dog", "cat, ran", "zebra", "zebra!"]
    with pytest.warns(UserWarning, match=r"2 of 6 texts have no words \(the first is text 4\)"):
        assert listed(find_duplicate_texts(texts, threshold=0.5, pipeline=pipeline)) == [[1, 3], [4, 5]]


def test_empty_groups():
    X = [np.empty((0, 2)), np.ones((3, 2)), np.empty((0, 2)), np.ones((3, 2)), np.zeros((2, 2))]
    similarity = ModelComparisonSimilarity(output="distance", prior_strength=1)
    assert listed(find_duplicates(X, threshold=1e-3, similarity=similarity)) == [[0, 2], [1, 3]]
    with pytest.raises(ValueError, match="Groups 0, 2 have no vectors"):
        find_duplicates(X, threshold=1e-3)


def test_too_many_pairs_are_refused():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with (
        sklearn.config_context(working_memory=1),
        pytest.raises(ValueError, match="More than 4,096 pairs are near: lower the threshold"),
    ):
        find_duplicates(X[:, None], threshold=1e6)


@pytest.mark.parametrize("output", ["distance", "divergence", "centered"])
def test_level_holds_on_fifty_groups(output, make_groups):
    """False pairs among iid groups are at most as many as the level allows: the binomial bound at one in a thousand."""
    level, n_runs = 1e-3, 20
    similarity = ModelComparisonSimilarity(output=output, prior_strength=0.5, random_state=0)
    n_false = 0
    for seed in range(n_runs):
        comparer = similarity.fit(make_groups(50, sizes=(2, 25), spread=0, seed=seed)).__mcsg_comparer__()
        limits = comparer.limits(comparer.calibrated(20_000, check_random_state(0)), level)
        every = slice(0, 50)
        n_false += np.count_nonzero(np.triu(comparer.compare_among(every) <= limits(every), 1))
    assert n_false <= binom.ppf(0.999, n_runs * 50 * 49 // 2, level)


def test_a_level_gives_the_same_sets_every_time():
    """Random pairs decide what is near, so they are drawn by a seed: without one, two calls found 862 and 864 sets."""
    rng = np.random.default_rng(0)
    X = Groups(rng.normal(size=(6000, 3)) + np.repeat(rng.normal(size=(3000, 3)), 2, axis=0), np.arange(0, 6001, 2))
    once, again = (find_duplicates(X, level=0.01) for _ in range(2))
    assert len(once) == len(again)
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


def test_texts_are_sent_to_the_function_for_texts():
    for texts in (["a storm", "Storm!"], ("a storm", "Storm!")):
        with pytest.raises(TypeError, match="X holds texts: call find_duplicate_texts"):
            find_duplicates(texts)


@pytest.mark.parametrize("n_groups", [2, 49])
@pytest.mark.parametrize("similarity", [None, ModelComparisonSimilarity(output="centered"), GroupEmbedding()])
def test_level_refuses_few_groups(n_groups, similarity):
    X = np.random.default_rng(0).normal(size=(n_groups, 5, 3))
    with pytest.raises(
        ValueError, match=f"needs at least 50 groups, or different texts, .*, got {n_groups}: give a thre"
    ):
        find_duplicates(X, level=1e-3, similarity=similarity)


# Words --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("They DON'T pay!", "they do not pay"),
        ("We can't, won\u2019t and shan't; you cannot", "we can not will not and shall not you can not"),
        ("don 't ca n't isn 't", "do not can not is not"),
        ("It's Anna's: they're, I've, we'll, he'd, I'm", "it anna they are i have we will he would i am"),
        ("$1,000.50, 1,000,000 and 10,00 or 3.5%", "$ 1000.50 1000000 and 10,00 or 3.5 %"),
        ("-5 degrees, 3-5 years, 20th", "-5 degrees 3 5 years 20th"),
        ("U.S. and u.s, e.g. C++, C# and #tags", "us and us eg c++ c# and tags"),
        ("x=-1, a\u2260b, a <= b == c", "x = -1 a != b a <= b == c"),
        (
            "\u22125, \u20135, (-5), -\u20ac5 and $-5; 5%-10%, 5\u20ac-10\u20ac",
            "-5 -5 -5 -\u20ac 5 and $ -5 5 % 10 % 5 \u20ac 10 \u20ac",
        ),
        ("C++11 ~5, a>b, >5 <word> > word", "c++ 11 ~5 a > b > 5 word > word"),
        ("2*3 or 2 ^ 3 *word*", "2 * 3 or 2 ^ 3 word"),
        ("ok \U0001f44d\U0001f3fd \u2764\ufe0f \u2605 \u25cf", "ok \U0001f44d \u2764"),
        ("=== a \u2192 b | c\u2122 ~ d\u00ae +++", "a b c d"),
        ("\U0001f600 $ = %", ""),
        ("well-known caf\u00e9 \u2019cafe\u0301\u2019 \uff21\uff22", "well known caf\u00e9 caf\u00e9 ab"),
        ("?! -- \u2603", ""),
    ],
)
def test_fold(text, words):
    assert " ".join(fold(text)) == words


NEAR = [
    ("A cat sat on the mat.", "THE CAT SAT ON A MAT"),
    ("He isn't here.", "he is not here"),
    ("The storm reached the coast on Monday.", "The stomr really reached the coast on Monday."),
    ("I went with them to the station.", "I went wiht them to the station."),
    ("Send an e-mail to the office.", "Send an email to the office."),
    ("Bindings for Python 3 and others", "bindings for Python3 and others"),
    ("It costs 1,000 euros.", "It costs 1000 euros."),
    (
        "When the rain stopped, children played football outside.",
        "Children played football outside when the rain stopped",
    ),
    ("We need need help today.", "We need help today"),
    ("It is.", "It is!"),
    ("cat", "the cat"),
    ("It was \u22125 outside.", "It was -5 outside!!"),
    ("Read \u201cDune\u201d \u2013 now\u2026", "\u2022 Read 'Dune' -- now."),
    ("\u2605 Buy Brand\u2122 shoes | now", "Buy Brand shoes \u2192 now"),
    ("> Ask <anna@example.org> about R&D", "Ask anna@example.org about R and D"),
    ("+++ Storm reaches coast +++", "Storm reaches coast"),
    ("I love it \U0001f602\U0001f602\U0001f602", "I love it! \U0001f602"),
    ("\U0001f602 I love it", "I love it \U0001f602"),
    ("Good \U0001f44d\U0001f3fd work", "Good \U0001f44d work"),
]
FAR = [
    ("It costs 1,000 euros.", "It costs 1,100 euros."),
    ("from 5 to 5 euros", "from 5 to 6 euros"),
    ("It was -5 degrees outside.", "It was 5 degrees outside."),
    ("They won 2-1 at home on Sunday.", "They won 21 at home on Sunday."),
    ("He is here today.", "He is not here today."),
    ("She does not say she does not know.", "She does not say she does know."),
    ("A trip with children to the coast", "A trip without children to the coast"),
    ("The Ambromycin dose is safe.", "The Zortanol dose is safe."),
    ("The Zortanil dose is safe.", "The Zortanol dose is safe."),
    ("Shares fell in Iraq.", "Shares fell in Iran."),
    ("Two dogs ran home.", "Two dog ran home."),
    ("Many Haskells are open.", "Many Haskell are open."),
    ("The storm reached the coast.", "The qtorm reached the coast."),
    ("A library for C users", "A library for C++ users"),
    ("crypto and TLS library - crypto library", "crypto and TLS library - TLS library"),
    ("dog bites man", "man bites dog"),
    ("English-French dictionary", "French-English dictionary"),
    ("It is.", "That was."),
    ("It is.", "cat"),
    ("x = 1", "x != 1"),
    ("x < 1", "x > 1"),
    ("a + b", "a - b"),
    ("5 * 3 metres", "5 - 3 metres"),
    ("temperature (-5)", "temperature (5)"),
    ("about -$5 each", "about $5 each"),
    ("price $5", "price \u20b95"),
    ("It grew by 5 %.", "It grew by 5."),
    ("I love it \U0001f600", "I love it \U0001f621"),
    ("It is \U0001f644.", "It is."),
    ("go \U0001f1ee\U0001f1f8", "go \U0001f1f8\U0001f1ee"),
    ("red cars", "blue bicycles"),
]


@pytest.mark.parametrize(("a", "b"), NEAR)
def test_what_makes_no_difference(a, b):
    assert same(a, b)
    assert same(b, a)
    assert listed(find_duplicate_texts([a, b])) == [[0, 1]]


@pytest.mark.parametrize(("a", "b"), FAR)
def test_what_makes_a_difference(a, b):
    assert not same(a, b)
    assert not same(b, a)
    assert find_duplicate_texts([a, b]) == []


def test_typing_errors_need_a_vocabulary():
    a, b = "The storm reached the coast.", "The stomr reached the coast."
    assert not same(a, b, None, False)
    assert same(a, b, open_table({"storm": [1.0]}), False)
    a, b = "The government reached the coast.", "The govrenmnet reached the coast."
    assert same(a, b), "a word with two errors is not in a large vocabulary"
    assert not same(a, b, open_table({"government": [1.0]}), False), "what a small one does not have may be a word"


def test_light_words_of_another_language():
    vectors = {word: [1.0, float(i)] for i, word in enumerate(("der", "die", "und", "nicht", "hund"))}
    a, b = "Hund und Katze schlafen", "der Hund und die Katze schlafen"
    assert same(a, b, open_table(vectors))
    assert not same(a, b, open_table(vectors), False)
    assert not same(a, f"{b} nicht", open_table(vectors))


@pytest.mark.parametrize(
    ("british", "other"),
    [
        ("colours neighbourhood favourite unfavourable", "colors neighborhood favorite unfavorable"),
        ("organise realised privatisation analysing", "organize realized privatization analyzing"),
        ("centre kilometres theatres centred manoeuvre", "center kilometers theaters centered maneuver"),
        ("travelling cancelled counsellor fuelled marvellous", "traveling canceled counselor fueled marvelous"),
        ("defence offences licence practising", "defense offenses license practicing"),
        ("catalogue dialogue leukaemia paediatric foetus", "catalog dialog leukemia pediatric fetus"),
        ("grey programme judgement fulfil towards cheque", "gray program judgment fulfill toward check"),
    ],
)
def test_british_and_american_spelling(british, other):
    assert [american(word) for word in british.split()] == [american(word) for word in other.split()]


def test_no_two_other_words_have_one_spelling():
    """Words of which one is not the other in another country."""
    pairs = (
        "four for, hour hor, tour tor, prise prize, filled filed, filling filing, tiller tiler, met meter, rear rare"
    )
    pairs += ", acre acer, story store, wise wize, devise device, contour contor, fell fel, taller taler, fore for"
    for pair in pairs.split(", "):
        one, other = pair.split()
        assert american(one) != american(other), pair
    assert american("x" * 40 + "isation") == "x" * 40 + "isation", "long words are not searched"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("seven", "7"),
        ("twenty one", "21"),
        ("twenty ten", "20 10"),
        ("twenty zero", "20 0"),
        ("one two", "1 2"),
        ("ninety nine thousand", "99000"),
        ("two hundred five", "200 5"),
        ("a hundred or 0 thousand", "a hundred or 0 thousand"),
        ("5 thousand", "5000"),
        ("19999 thousand", "19999 thousand"),
        ("no numbers", "no numbers"),
    ],
)
def test_numbers_in_words(words, expected):
    assert " ".join(in_digits(words.split())) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<p>A <b>cat</b>,<br/>a dog</p>", "a cat a dog"),
        ('H<sub>2</sub>O <a href="x?a=1&b=2" title=y>link</a>', "h2o link"),
        ("Usage: tool <file> <b and c>", "usage tool file b and c"),
        ("R&amp;D &lt;b&gt; caf&eacute; &#39;x&#39; &#x41;", "r d b caf\u00e9 x a"),
        ("a&copy=1 &nosuchentity; &#99999999999;", "a copy = 1 nosuchentity 99999999999"),
        ("exam-\nple, well-known, 3-\n5, a-\nb, Exam- \r\n  ples", "example well known 3 5 a b examples"),
    ],
)
def test_markup(text, words):
    assert " ".join(fold(text)) == words


@cache
def aligned(a, b):
    """Edits between two words, by the definition of optimal string alignment."""
    if not a or not b:
        return len(a) + len(b)
    ways = [aligned(a[:-1], b) + 1, aligned(a, b[:-1]) + 1, aligned(a[:-1], b[:-1]) + (a[-1] != b[-1])]
    if len(a) > 1 and len(b) > 1 and a[-2:] == b[-2:][::-1]:
        ways.append(aligned(a[:-2], b[:-2]) + 1)
    return min(ways)


def test_edits():
    rng = random.Random(0)
    words = ["".join(rng.choices("abc", k=rng.randrange(1, 7))) for _ in range(80)]
    assert all(edits(a, b)[1] == aligned(a, b) for a in words for b in words)


def random_errors(rng, words, n):
    """Words with up to three errors."""
    found = set()
    while len(found) < n:
        word = rng.choice(words)
        for _ in range(rng.randrange(1, 4)):
            k = rng.randrange(len(word))
            word = rng.choice(
                [word[:k] + word[k + 1 :], word[:k] + "e" + word[k:], word[:k] + word[k : k + 2][::-1] + word[k + 2 :]]
            )
        found.add(word)
    return sorted(found - set(words))


def test_misspellings_are_those_of_all_pairs():
    rng = random.Random(0)
    words = [word for word in GLOVE.words[500:30_000:90] if len(word) >= 4]
    ranks = {word: GLOVE.rows[word] for word in words}
    ranks |= {word: rng.choice([np.inf, 200_000.0]) for word in random_errors(rng, words, 600)}
    expected = {}
    for wrong, rank in ranks.items():
        if rank >= 100_000 and len(wrong) >= 4 and wrong.isalpha():
            known = [word for word in words if abs(len(word) - len(wrong)) <= 2 and len(word) >= 4 and word.isalpha()]
            meant = {word for word in known if errors_between(wrong, word, rank)}
            if meant:
                expected[wrong] = meant
    found = misspellings(ranks)
    assert {word: set(meant) for word, meant in found.items()} == expected
    assert len(expected) > 200
    for wrong, meant in found.items():
        order = [(errors_between(wrong, word, ranks[wrong]), ranks[word]) for word in meant]
        assert order == sorted(order)


class SlowCopies:
    """The rule, text by text and pair by pair."""

    def __init__(self, texts, table):
        self.light = (LIGHT_ENGLISH | set(table.words[:15])) - NEGATIONS
        self.corpus = {word for text in texts for word in text}
        spelled = {}
        for text in texts:
            for word in text:
                spelled.setdefault(american(word), word)
        self.form = {word: spelled[american(word)] for word in self.corpus}
        self.rank = dict.fromkeys(self.corpus, np.inf)
        for word in self.corpus:
            row = table.rows[word]
            self.rank[self.form[word]] = min(self.rank[self.form[word]], row if row >= 0 else np.inf)
        contents = [self.content(text) for text in texts]
        used = {word for text in contents for word in text} | (self.light & self.corpus)
        self.established = [word for word in used if self.rank[word] < 30_000 and len(word) >= 4 and word.isalpha()]
        self.readings = [self.read(text) for text in contents]

    def content(self, text):
        words = [self.form[word] for word in text if word not in self.light]
        if not words:
            return sorted(set(text))
        kept = []
        for word in [word for word in words if not is_emoji(word)] + sorted(filter(is_emoji, words)):
            if not kept or word != kept[-1] or any(map(str.isdigit, word)):
                kept.append(word)
        found = []
        while kept:
            word = kept.pop(0)
            has_digit = any(map(str.isdigit, word))
            if kept and word + kept[0] in self.corpus - self.light:
                next_has = any(map(str.isdigit, kept[0]))
                if (len(kept[0]) > 1 or next_has) and not (has_digit and next_has):
                    word = self.form[word + kept.pop(0)]
            found.append(word)
        return found

    def read(self, content):
        meant = []
        for word in content:
            may = self.rank[word] >= 100_000 and 4 <= len(word) <= 32 and word.isalpha() and word not in self.light
            near = [other for other in self.established if may and errors_between(word, other, self.rank[word])]
            meant.append(near or [word])
        n_wrong = sum(own != [word] for own, word in zip(meant, content, strict=True))
        if 2 * n_wrong > len(content):
            return [content]
        return [[word for word in reading if word not in self.light or not n_wrong] for reading in product(*meant)]

    def same(self, i, j):
        return any(moved_slowly(a, b) for a in self.readings[i] for b in self.readings[j])


def moved_slowly(a, b):
    """Whether lists are equal, or two neighbouring slices, one of three items or more, have changed places."""
    n = len(a)
    if a == b:
        return True
    return len(b) == n and any(
        a[:i] + a[j:k] + a[i:j] + a[k:] == b and max(j - i, k - j) >= 3
        for i, k in {*combinations(range(n + 1), 2)}
        for j in range(i + 1, k)
    )


_WORDS = """
    storm stomr sotrm coast reached monday colour color 3 4 not the a really realy e mail email wrld world wild
"""
WORDS = _WORDS.split()


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_those_of_the_slow_rule(seed):
    rng = random.Random(seed)
    texts = [rng.choices(WORDS, k=rng.randrange(1, 5)) for _ in range(60)]
    for text in rng.choices(texts, k=30):
        cuts = sorted(rng.choices(range(len(text) + 1), k=3))
        texts.append(text[: cuts[0]] + text[cuts[1] : cuts[2]] + text[cuts[0] : cuts[1]] + text[cuts[2] :])
    long = rng.sample(WORDS, 9)
    texts += [long[i:] + long[:i] for i in range(9)] + [[*long[:3], *long[5:], *long[3:5]], ["\U0001f602", *long]]
    texts = [text for text in texts if text]
    slow = SlowCopies(texts, GLOVE)
    fast = same_pairs(NearCopies(Tokens.of([" ".join(text) for text in texts], Tokenisation(str.split)), GLOVE, True))
    expected = {(i, j) for i, j in combinations(range(len(texts)), 2) if slow.same(i, j)}
    assert len(expected) > 50
    assert fast == expected


@pytest.mark.parametrize("seed", range(5))
def test_moved_clauses(seed):
    rng = np.random.default_rng(seed)
    for length, n_words in ((1, 1), (2, 2), (4, 4), (6, 6), (6, 3), (9, 9)):
        row = rng.permutation(length) if n_words == length else rng.integers(0, n_words, length)
        rows = np.array([row, *(rng.permutation(row) for _ in range(10)), *(np.roll(row, k) for k in range(length))])
        left, right = np.triu_indices(len(rows), 1)
        expected = [moved_slowly(rows[i].tolist(), rows[j].tolist()) for i, j in zip(left, right, strict=True)]
        found = _is_moved(rows[left], rows[right])
        if n_words == length:
            assert found.tolist() == expected
        else:  # words that return may hide where a clause begins
            assert not (found & ~np.array(expected)).any()


# Texts --------------------------------------------------------------------------------------------------------------


def test_texts_in_a_corpus():
    texts = load_short_texts().data
    copies = [texts[7].upper(), texts[100].replace(".", "!"), f"Really, {texts[200]}", texts[7] + " Not."]
    found = find_duplicate_texts([*texts, *copies])
    assert listed(found) == [[7, 360], [100, 361], [200, 362]]
    assert listed(find_duplicate_texts([*texts, *copies], level=1e-3)) == listed(found)
    assert listed(find_duplicate_texts([*texts, *copies], threshold=0.0)) == [[7, 360], [100, 361]]
    similarity = make_text_similarity(random_state=0)
    assert listed(find_duplicate_texts([*texts, *copies], threshold=0.3, pipeline=similarity)) == listed(found)
    with pytest.raises(ValueError, match="needs at least 50 groups, or different texts, .* got 4"):
        find_duplicate_texts(copies, level=1e-3)


def test_texts_without_words():
    texts = ["\u2603", "cat", "", "\u2603 ", "\u2603\u2603", "", "Cat!", "the cat"]
    assert listed(find_duplicate_texts(texts)) == [[0, 3], [1, 6, 7], [2, 5]]
    for params in ({}, {"threshold": 1.0}, {"overlap": 0.5}, {"overlap": 0.5, "threshold": 1.0}):
        assert find_duplicate_texts(["\u2603"], **params) == find_duplicate_texts([], **params) == []
        assert listed(find_duplicate_texts(["\u2603", "a", "\u2603"], **params)) == [[0, 2]]
    assert listed(find_duplicate_texts(["\U0001f600", "+", "cat", "\U0001f621", "+ "])) == [[1, 4]]


def share_slowly(a, b):
    return (Counter(a) & Counter(b)).total() / max(len(a), len(b))


@pytest.mark.parametrize("least", [0.3, 0.5, 2 / 3, 0.8, 1.0])
def test_overlap_is_that_of_all_pairs(least):
    rng = random.Random(0)
    vocabulary = [f"w{i}" for i in range(12)]
    texts = [rng.choices(vocabulary, weights=range(1, 13), k=rng.randrange(1, 9)) for _ in range(150)]
    texts = [[word for word, before in zip(text, [None, *text], strict=False) if word != before] for text in texts]
    copies = NearCopies(Tokens.of([" ".join(text) for text in texts], Tokenisation(str.split)))
    found = {}
    for left, right, distances in copies.overlapping(least):
        found |= dict(zip(zip(left.tolist(), right.tolist(), strict=True), distances.tolist(), strict=True))
    kept = np.unique(copies.first).tolist()
    expected = {(i, j): 1 - share_slowly(texts[i], texts[j]) for i, j in combinations(kept, 2)}
    expected = {pair: distance for pair, distance in expected.items() if 1 - distance >= least - 1e-9}
    assert found == pytest.approx(expected)
    assert expected


def test_texts_with_another_last_sentence():
    texts = [
        "The museum in the old harbour opens at nine. It is closed on Mondays. Tickets are sold at the door.",
        "The museum in the old harbor opens at 9. It is closed on Mondays. Children pay half.",
        "The library in the new station opens at ten. It is open on Sundays. Children pay half.",
        "dog bites man",
        "man bites dog",
    ]
    assert find_duplicate_texts(texts) == []
    assert listed(find_duplicate_texts(texts, overlap=0.7)) == [[0, 1], [3, 4]]
    assert listed(find_duplicate_texts(texts, overlap=1.0)) == [[3, 4]]
    assert listed(find_duplicate_texts(texts, overlap=0.7, threshold=2.0)) == [[0, 1], [3, 4]]
    assert find_duplicate_texts(texts, overlap=0.7, threshold=0) == []


def test_texts_of_another_collection():
    texts = ["A storm in the north", "my puppy is ill", "\u2603", "The stomr, in the north!", "", "nobody has this"]
    other = [
        "Another text",
        "the storm in the north",
        "MY PUPPY IS ILL",
        "a storm in the north",
        "\u2603 ",
        "my puppy is ill",
    ]
    expected = [[0, 1], [1, 2], [2, 4], [3, 1]]
    assert find_duplicate_texts(texts, against=other).tolist() == expected
    assert find_duplicate_texts(texts, against=iter(other), threshold=2.0).tolist() == [[0, 3], [1, 2], [2, 4], [3, 1]]
    assert find_duplicate_texts(texts, against=other, overlap=0.4).tolist() == expected
    for empty in (find_duplicate_texts(texts, against=[]), find_duplicate_texts([], against=other)):
        assert empty.shape == (0, 2)
        assert empty.dtype.kind == "i"


def test_too_many_overlapping_texts_are_refused():
    texts = [f"same {i}" for i in range(200)]
    with sklearn.config_context(working_memory=1), pytest.raises(ValueError, match="raise the overlap of texts"):
        find_duplicate_texts(texts, overlap=0.5)


def test_against_finds_the_nearest_of_all_pairs():
    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 4))) for _ in range(120)]
    n = 70
    copies = NearCopies(Tokens.of(texts, FOLDED), GLOVE, True)
    pairs = same_pairs(copies)
    expected = []
    for i in range(n):
        equal = [j for j in range(n, 120) if copies.first[i] == copies.first[j]]
        others = [j for j in range(n, 120) if (i, j) in pairs]
        if equal or others:
            expected.append([i, min(equal or others) - n])
    assert find_duplicate_texts(texts[:n], against=texts[n:]).tolist() == expected
    assert len(expected) > 10


@pytest.mark.thread_unsafe(reason="the time of the process is that of all threads")
def test_repetitive_texts_take_time_in_proportion_to_their_number():
    """Entries of changelogs, which share most of their words: for four times the entries at most six times the time."""
    words = [line.split() for line in ("add fix drop bump update remove", "build patch version symbols depends docs")]
    ends = ["", ".", " (no changes)", " (no changes needed)", " for the relaese", " for the release"]
    rng = random.Random(0)

    def entry():
        version = ".".join(str(rng.randrange(30)) for _ in range(3))
        return f"* {rng.choice(words[0]).title()} {rng.choice(words[1])} to {version}{rng.choice(ends)}"

    texts = [entry() for _ in range(24_000)]
    find_duplicate_texts(texts[:100])
    seconds = np.full(2, np.inf)
    for i, n in [(0, 6000), (1, 24_000)] * 3:  # several times, because the machine may be busy with other work
        start = time.process_time()
        assert find_duplicate_texts(texts[:n])
        seconds[i] = min(seconds[i], time.process_time() - start)
        if seconds[1] < 6 * seconds[0]:
            return
    pytest.fail(f"four times the entries take {seconds[1] / seconds[0]:.1f} times as long")


def test_texts_by_other_vectors():
    vectors = dict(zip(("cat", "dog", "sat", "ran"), np.eye(4), strict=True))
    pipeline = make_text_embedding(vectors=vectors).set_params(vectorizer__frequencies={"cat": 1})
    texts = ["cat sat", "the cat sat", "dog sat", "dog ran", "Dog ran!"]
    assert listed(find_duplicate_texts(texts, pipeline=pipeline)) == [[0, 1], [3, 4]]


@pytest.mark.parametrize(
    "kind", ["wordllama", "pieces", "ids", "pieces and spelling", "ids and spelling", "ids and words"]
)
def test_texts_by_static_models(kind):
    pieces = dict(zip("abcdefghijklmnopqrstuvwxyz", np.random.default_rng(0).normal(size=(26, 8)), strict=True))
    letters = (list, pieces)
    numbers = (lambda word: [ord(letter) % 26 for letter in word], np.array(list(pieces.values())))
    vectors = {
        "wordllama": "wordllama",
        "pieces": letters,
        "ids": numbers,
        "pieces and spelling": [letters, "spelling"],
        "ids and spelling": [numbers, "spelling"],
        "ids and words": [numbers, "glove-6b-50d"],
    }[kind]
    texts = ["The quick cats ran to the tax office", "the quick cats ran to the tax office!", "A storm in the north"]
    texts += [
        "My puppy is ill",
        "The quick cats ran to the tax ofice",
        "Shares fell by 5 percent",
        "Shares fell by 6 percent",
    ]
    found = listed(find_duplicate_texts(texts, pipeline=make_text_embedding(vectors=vectors)))
    typo = [4] if kind in ("wordllama", "ids and words") else []  # office is known to be a word
    assert found == [[0, 1, *typo]]


def test_texts_without_word_vectors():
    """Any first step that makes groups of texts will do; without a vocabulary, typing errors make a difference."""
    letters = FunctionTransformer(lambda texts: [[[float(ord(c)), 1.0] for c in text] for text in texts])
    pipeline = make_pipeline(letters, GroupEmbedding(prior_strength=0.5))
    assert listed(find_duplicate_texts(["a storm", "Storm!", "the storm", "stomr"], pipeline=pipeline)) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("texts", "params", "error", "message"),
    [
        ("one text", {}, ValueError, "put a single text into a list"),
        (["a", 3], {}, TypeError, "Text 1 is not a string but int: 3"),
        (["a", "b"], {"threshold": 1, "level": 0.1}, ValueError, "a threshold or a level, not both"),
        (["a", "b"], {"threshold": np.nan}, ValueError, "threshold must be a number"),
        (["a", "b"], {"level": 1.5}, ValueError, "between 0 and 1"),
        (["a", "b"], {"overlap": 2}, ValueError, "overlap must be a share above 0, at most 1, got 2"),
        (["a", "b"], {"overlap": 0}, ValueError, "overlap must be a share above 0, at most 1, got 0"),
        (["a", "b"], {"overlap": np.nan}, ValueError, "overlap must be a share above 0, at most 1, got nan"),
        (["a", "b"], {"overlap": "0.5"}, ValueError, "overlap must be a share above 0, at most 1, got '0.5'"),
        (["a", "b"], {"against": "one text"}, ValueError, "put a single text into a list"),
        (["a", "b"], {"against": ["c", None]}, TypeError, "Text 1 is not a string but NoneType"),
        (["a", "b"], {"pipeline": GroupEmbedding()}, TypeError, "must turn texts into groups .* got GroupEmbedding"),
    ],
)
def test_errors_of_texts(texts, params, error, message):
    with pytest.raises(error, match=message):
        find_duplicate_texts(texts, **params)


@pytest.mark.skipif(shutil.which("apt-cache") is None, reason="there are no package descriptions")
def test_package_descriptions():
    """Texts that were joined have the same numbers, and the same words but for light and misspelled ones."""
    found = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    lines = sorted(set(re.findall(r"^Description(?:-en)?: (.+)$", found, flags=re.MULTILINE)))
    if len(lines) < 3000:
        pytest.skip("there are few package descriptions")
    texts = random.Random(0).sample(lines, 3000)
    for members in find_duplicate_texts(texts):
        assert len({tuple(sorted(re.findall(r"\d+", texts[i]))) for i in members}) == 1
        words = [set(re.findall(r"[^\W\d]+", texts[i].lower())) for i in members]
        for word in set.union(*words) - LIGHT_ENGLISH:
            assert all(get_close_matches(word, other, cutoff=0.75) for other in words), [texts[i] for i in members]
