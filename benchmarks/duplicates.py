"""Near-copies and look-alikes of sentences, made by rule: which methods tell them apart.

    python benchmarks/duplicates.py --data DIR [--to doc/duplicates.md] [--seed 0]

DIR holds `sts/STS*.tsv` (gold, sentence, sentence) and may hold the folders of static models. From each sentence that a
rule applies to, one rule makes one planted text: half of them near-copies, half look-alikes. The corpus is all sentences
and all planted texts; a method is asked whether each sentence and its planted text are duplicates. Thresholds of the
baselines are chosen on STS12 to STS14; all figures are of STS15 and STS16.
"""

import argparse
import random
import re
import string
import time
from pathlib import Path

import numpy as np
from datasketch import MinHash, MinHashLSH
from sts import read_tasks

from sklearn_mcsg import (
    EmbeddingVectorizer,
    MeanVector,
    find_duplicate_texts,
    make_text_embedding,
)
from sklearn_mcsg.text.tables import is_static_model, open_table

TUNED_ON = ("STS12", "STS13", "STS14")
NAMES = (
    "afghanistan africa america australia bangladesh beijing boston brazil britain california cairo canada chicago china "
    "clinton damascus david egypt england europe florida france gaza germany india indonesia iran iraq israel italy japan "
    "john kenya korea lebanon libya london mali mandela mexico microsoft moscow mumbai myanmar nigeria obama pakistan "
    "paris philippines putin russia snowden somalia spain syria taiwan texas thailand turkey uk ukraine venezuela "
    "washington yemen monday tuesday wednesday thursday friday saturday sunday january february april june july september"
).split()
MARKS = set(". , ; : ! ? ' \" ( ) - -- ... `` ''".split())
ADVERBS = "really very just actually simply indeed truly certainly still also definitely basically".split()
AUXILIARIES = "is are was were will can could should would has have does did".split()
SHORT = [(f"{verb} not", f"{verb}n't") for verb in ("is", "are", "was", "were", "do", "does", "did", "has", "have")]
SHORT += [("it is", "it's"), ("that is", "that's"), ("there is", "there's"), ("he is", "he's"), ("she is", "she's")]
SHORT += [(f"{who} are", f"{who}'re") for who in ("we", "you", "they")] + [("i am", "i'm"), ("can not", "can't")]
SHORT += [(f"{who} have", f"{who}'ve") for who in ("i", "we", "you", "they")] + [("i will", "i'll")]
SPLIT = [(long, short.replace("'", " '")) for long, short in SHORT]  # as the sentences are tokenised


# Near-copies --------------------------------------------------------------------------------------------------------


def change_case(words, rng):
    return rng.choice([str.upper, str.title, str.capitalize])(" ".join(words))


def change_punctuation(words, rng):
    kept = [word for word in words if word not in MARKS]
    if len(kept) < len(words):
        return " ".join(kept)
    return " ".join(words) + rng.choice([".", "!", " ...", ";"])


def reorder_clauses(words, rng):
    cuts = [i for i, word in enumerate(words) if word in {",", ";", "and", "but", "because", "when", "while", "after"}]
    cuts = [i for i in cuts if i >= 3 and len(words) - i >= 4]
    if not cuts:
        return None
    cut = rng.choice(cuts)
    first, second = words[:cut], words[cut + (not words[cut].isalpha()) :]
    end = [second.pop()] if not second[-1].isalnum() else []
    return " ".join([*second, ",", *first, *end])


def mistype(words, rng):
    places = [i for i, word in enumerate(words) if len(word) >= 4 and word.isalpha()]
    if not places:
        return None
    i = rng.choice(places)
    word = words[i]
    k = rng.randrange(1, len(word) - 1)
    letter = rng.choice(string.ascii_lowercase)
    wrong = rng.choice(
        [
            word[:k] + word[k + 1] + word[k] + word[k + 2 :],
            word[:k] + word[k + 1 :],
            word[:k] + letter + word[k:],
            word[:k] + letter + word[k + 1 :],
        ]
    )
    return None if wrong == word else " ".join([*words[:i], wrong, *words[i + 1 :]])


def put_in(words, rng):
    if rng.random() < 0.5:
        i, new = rng.randrange(len(words)), rng.choice(["the", "a", "an"])
    else:
        after = [i + 1 for i, word in enumerate(words) if word in AUXILIARIES]
        i, new = rng.choice(after or range(len(words))), rng.choice(ADVERBS)
    return " ".join([*words[:i], new, *words[i:]])


def write_out(words, rng):
    text = f" {' '.join(words)} "
    swaps = [(a, b) for long, short in [*SHORT, *SPLIT] for a, b in ((f" {long} ", f" {short} "), (f" {short} ", f" {long} "))]
    possible = [(a, b) for a, b in swaps if a in text]
    if not possible:
        return None
    return text.replace(*rng.choice(possible), 1).strip()


# Look-alikes --------------------------------------------------------------------------------------------------------


def change_number(words, rng):
    places = [i for i, word in enumerate(words) if re.fullmatch(r"\d[\d.,:/]*", word)]
    if not places:
        return None
    i = rng.choice(places)
    k = rng.choice([k for k, character in enumerate(words[i]) if character.isdigit()])
    digit = rng.choice([digit for digit in "123456789" if digit != words[i][k]])
    return " ".join([*words[:i], words[i][:k] + digit + words[i][k + 1 :], *words[i + 1 :]])


def change_name(words, rng):
    places = [i for i, word in enumerate(words) if word in NAMES]
    if not places:
        return None
    i = rng.choice(places)
    other = rng.choice([name for name in NAMES if name != words[i]])
    return " ".join([*words[:i], other, *words[i + 1 :]])


def negate(words, rng):
    text = f" {' '.join(words)} "
    for found in (" not ", "n 't ", "n't "):
        if found in text:
            return text.replace(found, " ", 1).strip()
    places = [i for i, word in enumerate(words) if word in AUXILIARIES]
    if not places:
        return None
    i = rng.choice(places)
    return " ".join([*words[: i + 1], "not", *words[i + 1 :]])


class ChangeWord:
    """Replaces a content word by one of the ten words whose vectors are nearest."""

    def __init__(self, n_words=20_000, n_common=200):
        table = open_table("glove-6b-50d")
        self.words, self.n_common = table.words[:n_words], n_common
        vectors = np.asarray(table.vectors[:n_words])
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.rows = {word: row for row, word in enumerate(self.words)}

    def __call__(self, words, rng):
        places = [i for i, word in enumerate(words) if word.isalpha() and self.rows.get(word, 0) >= self.n_common]
        if not places:
            return None
        i = rng.choice(places)
        near = np.argsort(-(self.vectors @ self.vectors[self.rows[words[i]]]), kind="stable")[1:11]
        others = [self.words[row] for row in near if self.words[row].isalpha()]
        return " ".join([*words[:i], rng.choice(others), *words[i + 1 :]]) if others else None


NEAR_COPIES = {
    "case": change_case,
    "punctuation": change_punctuation,
    "clauses reordered": reorder_clauses,
    "a typing error": mistype,
    "an article or adverb put in": put_in,
    "contraction written out, or back": write_out,
}
LOOK_ALIKES = {
    "a number": change_number,
    "a name": change_name,
    "a negation": negate,
    "a content word": ChangeWord(),
}


def plant(sentences, seed):
    """Sentences, their planted texts and the rules: near-copies and look-alikes in turn, rules that rarely apply first."""
    rng = random.Random(seed)
    planted, counts = [], {name: 0 for name in [*NEAR_COPIES, *LOOK_ALIKES]}
    for k, sentence in enumerate(sentences):
        words = sentence.split()
        rules = (NEAR_COPIES, LOOK_ALIKES)[k % 2]
        for name in sorted(rules, key=counts.__getitem__):
            text = rules[name](words, rng) if len(words) >= 4 else None
            if text and text != sentence:
                planted.append((sentence, text, name))
                counts[name] += 1
                break
    return planted
