"""Near-copies and look-alikes of sentences, made by rule: which methods tell them apart.

    python benchmarks/duplicates.py --data DIR [--to doc/results/duplicates] [--seed 0]

DIR holds `sts/STS*.tsv` (gold, sentence, sentence) and may hold folders of static models. The rules below make one
planted text from each sentence: a near-copy or a look-alike, by turns, or one that differs in a sign, and then the
sentence may be given a sign as well. The corpus is all sentences and all planted texts, and each method is asked
whether a sentence and its planted text are duplicates.
"""

import argparse
import html
import random
import re
import shutil
import string
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from datasketch import MinHash
from results import announce, write_results
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sts import read_tasks
from vectors import GLOVE, PUNCTUATION, static_models

from sklearn_mcsg import EmbeddingVectorizer, MeanVector, find_duplicate_texts, make_text_embedding
from sklearn_mcsg.text.sources import open_table

FEWEST_WORDS = 4  # of a sentence that is changed
TUNED_ON = ("STS12", "STS13", "STS14")
_NAMES = """
    afghanistan africa america australia bangladesh beijing boston brazil britain california cairo canada chicago china
    clinton damascus david egypt england europe florida france gaza germany india indonesia iran iraq israel italy japan
    john kenya korea lebanon libya london mali mandela mexico microsoft moscow mumbai myanmar nigeria obama pakistan
    paris philippines putin russia snowden somalia spain syria taiwan texas thailand turkey uk ukraine venezuela
    washington yemen monday tuesday wednesday thursday friday saturday sunday january february april june july september
"""
_ADVERBS = "really very just actually simply indeed truly certainly still also definitely basically"
_AUXILIARIES = "is are was were will can could should would has have does did"
_MARKS = ". , ; : ! ? ' \" ( ) - -- ... `` ''"
_OPERATORS = "= != < > + ≤ ≥ \u00d7 ÷ ± ≈"
_EMOJI = "😀 😡 😢 😂 👍 👎 ❤️ ☹️ 🔥 ✅ ❌"
_BULLETS = "• - * \u2013 · ● ▪ ► → ★ »"
_SEPARATORS = "\u2013 — -- | • · … / ★"
_ENDS = "!! !!! ?! … .... ‼ ★★★ ©"
_QUOTES = "“” „“ \u2018\u2019 «» [] () <> **"
_CURRENCIES = "$ € £ ¥ ₹"
NAMES, ADVERBS, AUXILIARIES, MARKS = (words.split() for words in (_NAMES, _ADVERBS, _AUXILIARIES, _MARKS))
OPERATORS, EMOJI, CURRENCIES = (signs.split() for signs in (_OPERATORS, _EMOJI, _CURRENCIES))
BULLETS, SEPARATORS, ENDS, QUOTES = (marks.split() for marks in (_BULLETS, _SEPARATORS, _ENDS, _QUOTES))
SHORT = [(f"{verb} not", f"{verb}n't") for verb in ("is", "are", "was", "were", "do", "does", "did", "has", "have")]
SHORT += [("it is", "it's"), ("that is", "that's"), ("there is", "there's"), ("he is", "he's"), ("she is", "she's")]
SHORT += [(f"{who} are", f"{who}'re") for who in ("we", "you", "they")] + [("i am", "i'm"), ("can not", "can't")]
SHORT += [(f"{who} have", f"{who}'ve") for who in ("i", "we", "you", "they")] + [("i will", "i'll")]
SPLIT = [(long, short.replace("'", " '")) for long, short in SHORT]  # as the sentences are tokenised
_BRITISH = """
    aeroplane:airplane ageing:aging aluminium:aluminum analyse:analyze analysed:analyzed apologise:apologize
    apologised:apologized armour:armor armoured:armored authorised:authorized behaviour:behavior cancelled:canceled
    cancelling:canceling catalogue:catalog centre:center centred:centered centres:centers cheque:check
    civilisation:civilization colour:color coloured:colored colourful:colorful colours:colors councillor:councilor
    counselling:counseling counsellor:counselor criticise:criticize criticised:criticized criticising:criticizing
    defence:defense defences:defenses dialogue:dialog draught:draft encyclopaedia:encyclopedia endeavour:endeavor
    enrol:enroll equalled:equaled favour:favor favourable:favorable favoured:favored favourite:favorite fibre:fiber
    finalise:finalize flavour:flavor foetus:fetus fuelled:fueled fulfil:fulfill grey:gray harbour:harbor honour:honor
    honoured:honored honouring:honoring humour:humor instalment:installment jewellery:jewelry judgement:judgment
    kilometre:kilometer kilometres:kilometers labelled:labeled labour:labor labourer:laborer legalise:legalize
    leukaemia:leukemia licence:license litre:liter litres:liters manoeuvre:maneuver marvellous:marvelous
    maximise:maximize memorise:memorize metre:meter metres:meters minimise:minimize mobilise:mobilize
    modelling:modeling mould:mold moustache:mustache mum:mom neighbour:neighbor neighbourhood:neighborhood
    neighbouring:neighboring neighbours:neighbors normalise:normalize offence:offense offences:offenses
    organisation:organization organisations:organizations organise:organize organised:organized organiser:organizer
    organising:organizing orthopaedic:orthopedic paediatric:pediatric paralysed:paralyzed parlour:parlor plough:plow
    practising:practicing prioritise:prioritize privatisation:privatization programme:program programmes:programs
    pyjamas:pajamas realise:realize realised:realized recognise:recognize recognised:recognized rumour:rumor
    rumours:rumors sceptical:skeptical signalled:signaled skilful:skillful specialised:specialized
    stabilise:stabilize standardised:standardized storey:story summarise:summarize
    symbolise:symbolize sympathise:sympathize theatre:theater theatres:theaters totalling:totaling
    totalled:totaled towards:toward travelled:traveled traveller:traveler travellers:travelers travelling:traveling
    tumour:tumor tyre:tire tyres:tires utilise:utilize vapour:vapor visualise:visualize whilst:while woollen:woolen
"""
SPELLINGS = dict(pair.split(":") for pair in _BRITISH.split())
SPELLINGS |= {american: british for british, american in SPELLINGS.items()}
_UNITS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
UNITS, TENS = _UNITS.split(), _TENS.split()
TAGS = ["<b>{}</b>", "<i>{}</i>", "<em>{}</em>", "<strong>{}</strong>", '<a href="https://example.org/a?b=1">{}</a>']
TAGS += ['<span class="text">{}</span>', "<u>{}</u>", "<code>{}</code>"]


# Near-copies --------------------------------------------------------------------------------------------------------


def change_case(words, rng):
    return rng.choice([str.upper, str.title, str.capitalize])(" ".join(words))


def change_punctuation(words, rng):
    kept = [word for word in words if word not in MARKS]
    if len(kept) < len(words):
        return " ".join(kept)
    return " ".join(words) + rng.choice([".", "!", " ...", ";"])


def change_typography(words, rng):
    """A bullet, a separator between words, quotation marks or brackets, a trademark sign, or marks at the end."""
    i, kind = rng.randrange(1, len(words)), rng.choice(["bullet", "separator", "end", "quotes", "trademark"])
    if kind == "bullet":
        return " ".join([rng.choice(BULLETS), *words])
    if kind == "separator":
        return " ".join([*words[:i], rng.choice(SEPARATORS), *words[i:]])
    if kind == "end":
        return " ".join(words) + rng.choice(ENDS)
    left, right = ("", rng.choice("™®")) if kind == "trademark" else rng.choice(QUOTES)
    return " ".join([*words[:i], left + words[i] + right, *words[i + 1 :]])


def reorder_clauses(words, rng):
    cuts = [i for i, word in enumerate(words) if word in {",", ";", "and", "but", "because", "when", "while", "after"}]
    cuts = [i for i in cuts if i >= 3 and len(words) - i >= 4]
    if not cuts:
        return None
    cut = rng.choice(cuts)
    first, second = words[:cut], words[cut + (not words[cut].isalpha()) :]
    end = [second.pop()] if not second[-1].isalnum() else []
    return " ".join([*second, ",", *first, *end])


def mistype(words, rng, n_errors=1, fewest_letters=4):
    places = [i for i, word in enumerate(words) if len(word) >= fewest_letters and word.isalpha()]
    if not places:
        return None
    i = rng.choice(places)
    wrong = words[i]
    for _ in range(n_errors):
        k = rng.randrange(len(wrong))
        letter = rng.choice(string.ascii_lowercase)
        wrong = rng.choice(
            [
                wrong[:k] + wrong[k : k + 2][::-1] + wrong[k + 2 :],
                wrong[:k] + wrong[k + 1 :],
                wrong[:k] + letter + wrong[k:],
                wrong[:k] + letter + wrong[k + 1 :],
            ]
        )
    return None if wrong == words[i] else " ".join([*words[:i], wrong, *words[i + 1 :]])


def mistype_twice(words, rng):
    return mistype(words, rng, n_errors=2, fewest_letters=8)


def change_spelling(words, rng):
    """All words that are spelled differently in British and American English."""
    return " ".join(SPELLINGS.get(word, word) for word in words)


def in_words(number):
    """A number below 100."""
    ten, unit = divmod(number, 10)
    return UNITS[number] if number < 20 else "-".join([TENS[ten - 2], *([UNITS[unit]] if unit else [])])


def change_numerals(words, rng):
    """A number in digits that was in words, or the other way round."""
    numerals = {in_words(number): str(number) for number in range(100)}
    numerals |= {digits: name for name, digits in numerals.items()}
    places = [i for i, word in enumerate(words) if word in numerals]
    if not places:
        return None
    i = rng.choice(places)
    return " ".join([*words[:i], numerals[words[i]].replace("-", rng.choice("- ")), *words[i + 1 :]])


def mark_up(words, rng):
    """Tags around a word or the whole text, a line break, or characters as entities."""
    i, kind = rng.randrange(len(words)), rng.choice(["word", "text", "break", "entities", "space"])
    if kind == "word":
        return " ".join([*words[:i], rng.choice(TAGS).format(words[i]), *words[i + 1 :]])
    if kind == "text":
        return rng.choice(["<p>{}</p>", "<div>{}</div>", "<li>{}</li>", "<td>{}</td>"]).format(" ".join(words))
    if kind == "break":
        return " ".join(words[: i + 1]) + rng.choice(["<br>", "<br/>", "<br />"]) + " ".join(words[i + 1 :])
    escaped = html.escape(" ".join(words))
    return escaped if kind == "entities" and escaped != " ".join(words) else escaped.replace(" ", "&nbsp;", 1)


def hyphenate(words, rng):
    places = [i for i, word in enumerate(words) if len(word) >= 6 and word.isalpha()]
    if not places:
        return None
    i = rng.choice(places)
    k = rng.randrange(2, len(words[i]) - 1)
    return " ".join([*words[:i], f"{words[i][:k]}-\n{words[i][k:]}", *words[i + 1 :]])


def put_in(words, rng):
    if rng.random() < 0.5:
        i, new = rng.randrange(len(words)), rng.choice(["the", "a", "an"])
    else:
        after = [i + 1 for i, word in enumerate(words) if word in AUXILIARIES]
        i, new = rng.choice(after or range(len(words))), rng.choice(ADVERBS)
    return " ".join([*words[:i], new, *words[i:]])


def write_out(words, rng):
    text = f" {' '.join(words)} "
    swaps = [
        (a, b)
        for long, short in [*SHORT, *SPLIT]
        for a, b in ((f" {long} ", f" {short} "), (f" {short} ", f" {long} "))
    ]
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


def change_sign(words, rng):
    """The sentence with two signs, or with one and without: between words, of a number put in, or an emoji."""
    i, number, (one, other) = rng.randrange(1, len(words)), rng.randrange(2, 1000), rng.sample(CURRENCIES, 2)
    numbers = [("{}", "-{}"), ("({})", "(-{})"), ("{}", "{}%"), ("{} %", "{}"), ("{}", one + "{}")]
    numbers += [(one + "{}", other + "{}"), ("+{}", "-{}"), ("{0} * {0}", "{0} / {0}")]
    found = rng.choice(["operator", "emoji", "number"])
    if found == "number":
        forms = [form.format(number) for form in rng.choice(numbers)]
    else:
        forms = rng.sample(OPERATORS if found == "operator" else EMOJI, 2)
        forms[0] = rng.choice([forms[0], ""])
        i = i if found == "operator" else len(words)
    return tuple(" ".join([*words[:i], *form.split(), *words[i:]]) for form in forms)


class ChangeWord:
    """Replaces a content word by one of the ten words whose vectors are nearest."""

    def __init__(self, n_words=20_000, n_common=200):
        table = open_table(GLOVE)
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

    def exchange(self, words, rng):
        """Two names, or else two other content words, that change places."""
        names = [i for i, word in enumerate(words) if word in NAMES]
        others = [i for i, word in enumerate(words) if word.isalpha() and self.rows.get(word, 0) >= self.n_common]
        places = names if len({words[i] for i in names}) > 1 else others
        if len({words[i] for i in places}) < 2:
            return None
        i, j = rng.sample(places, 2)
        changed = list(words)
        changed[i], changed[j] = words[j], words[i]
        return " ".join(changed)


CONTENT = ChangeWord()
NEAR_COPIES = {
    "case": change_case,
    "punctuation": change_punctuation,
    "typography": change_typography,
    "clauses reordered": reorder_clauses,
    "a typing error": mistype,
    "an article or adverb put in": put_in,
    "contraction written out, or back": write_out,
}
NEWER_COPIES = {
    "two typing errors in a word": mistype_twice,
    "British or American spelling": change_spelling,
    "a number in words or digits": change_numerals,
    "HTML": mark_up,
    "a hyphen at a line end": hyphenate,
}
LOOK_ALIKES = {
    "a number": change_number,
    "a name": change_name,
    "a negation": negate,
    "a content word": CONTENT,
}
UNSEEN = {"two words change places": CONTENT.exchange, "a sign": change_sign}  # look-alikes that most methods drop
RULES = [*NEAR_COPIES, *NEWER_COPIES, *LOOK_ALIKES, *UNSEEN]


def plant(sentences, seed):
    """Triples of a sentence, its planted text and the rule, among the rules that apply the least used so far.

    A rule that returns two texts puts the first in place of the sentence. Few sentences have a word with two spellings:
    those are kept for the rules that need them.
    """
    rng = random.Random(seed)
    planted, counts = [], dict.fromkeys(RULES, 0)
    for k, sentence in enumerate(rng.sample(sentences, len(sentences))):
        words = sentence.split()
        rules = (NEAR_COPIES, LOOK_ALIKES, NEWER_COPIES, LOOK_ALIKES, UNSEEN)[k % 5]
        rules = rules if SPELLINGS.keys().isdisjoint(words) else NEWER_COPIES
        for name in sorted(rules, key=counts.__getitem__):
            found = rules[name](words, rng) if len(words) >= FEWEST_WORDS else None
            one, other = found if isinstance(found, tuple) else (sentence, found)
            if other and other != one:
                planted.append((one, other, name))
                counts[name] += 1
                break
    return planted


# Methods: how near the texts of each pair are in a corpus, or whether they are duplicates ----------------------------


def plain_words(text):
    return re.findall(r"\w+", text.lower())


def exact_match(corpus, pairs):
    return np.array([a == b for a, b in pairs])


def same_words(corpus, pairs):
    return np.array([sorted(plain_words(a)) == sorted(plain_words(b)) for a, b in pairs])


def sketch(text):
    """The set of character 3-grams, by 128 permutations."""
    text, found = f" {' '.join(plain_words(text))} ", MinHash(128)
    found.update_batch([text[i : i + 3].encode() for i in range(max(1, len(text) - 2))])
    return found


def minhash(corpus, pairs):
    """Similarity of sets of character 3-grams."""
    return np.array([sketch(a).jaccard(sketch(b)) for a, b in pairs])


def tf_idf(corpus, pairs):
    model = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)).fit(corpus)
    left, right = (model.transform(texts) for texts in zip(*pairs, strict=True))
    return np.asarray(left.multiply(right).sum(axis=1)).ravel()


def cosine(pipeline):
    def compare(corpus, pairs):
        last = pipeline[-1].fit(pipeline[:-1].fit_transform(corpus))
        left, right = (pipeline[:-1].transform(texts) for texts in zip(*pairs, strict=True))
        return np.asarray(last.paired(left, right, output="similarity"))

    return compare


def duplicates(pipeline):
    def compare(corpus, pairs):
        labels = np.arange(len(corpus))
        for members in find_duplicate_texts(corpus, pipeline=pipeline):
            labels[members] = members[0]
        places = {text: i for i, text in enumerate(corpus)}
        return np.array([labels[places[a]] == labels[places[b]] for a, b in pairs])

    return compare


def methods(data):
    """Methods by name."""
    found = {
        "exact match": exact_match,
        "same words in any order": same_words,
        "MinHash": minhash,
        "TF-IDF": tf_idf,
    }
    pipelines = {
        name: make_text_embedding(vectors=vectors, likelihood="diag")
        for name, vectors in {"GloVe 6B 50d": GLOVE, **static_models(data)}.items()
    }
    pipelines["default vectors"] = make_text_embedding()
    for name, pipeline in pipelines.items():
        raw = EmbeddingVectorizer(pipeline[0].vectors, weighting=None, unit_norm=False, **PUNCTUATION)
        found[f"cosine of means, {name}"] = cosine(make_pipeline(raw, MeanVector()))
        found[f"**cosine of embeddings**, {name}"] = cosine(pipeline)
        found[f"**find_duplicate_texts**, {name}"] = duplicates(pipeline)
    return found


# Measures -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """Sentences with their planted texts and the rules that made them; and pairs judged by people."""

    corpus: list
    pairs: list
    rules: np.ndarray
    judged: list
    gold: np.ndarray

    @classmethod
    def of(cls, tasks, seed):
        sentences = sorted({sentence for task in tasks for sentence in [*task.left, *task.right]})
        planted = plant(sentences, seed)
        corpus = list(dict.fromkeys([*sentences, *(text for *pair, _ in planted for text in pair)]))
        judged = [pair for task in tasks for pair in zip(task.left, task.right, strict=True)]
        gold = np.concatenate([task.gold for task in tasks])
        rules = np.array([rule for *_, rule in planted])
        return cls(corpus, [(a, b) for a, b, _ in planted], rules, judged, gold)

    @property
    def is_copy(self):
        return np.isin(self.rules, [*NEAR_COPIES, *NEWER_COPIES])

    @property
    def is_newer(self):
        return np.isin(self.rules, list(NEWER_COPIES))

    @property
    def counted(self):
        return ~np.isin(self.rules, list(UNSEEN))

    @property
    def ratings(self):
        return {"4.8 or more": self.gold >= 4.8, "3 to 4": (self.gold >= 3) & (self.gold <= 4)}


def precision_and_recall(joined, is_copy):
    hits = np.count_nonzero(joined & is_copy)
    return hits / max(1, np.count_nonzero(joined)), hits / max(1, np.count_nonzero(is_copy))


def precise_threshold(scores, is_copy, precision=0.95):
    """The lowest threshold from which on the precision is at least this; infinite if there is none."""
    thresholds = np.unique(np.quantile(scores, np.linspace(0, 1, 201)))
    reached = [t for t in thresholds if precision_and_recall(scores >= t, is_copy)[0] >= precision]
    return min(reached, default=np.inf)


def best_threshold(scores, is_copy):
    """The threshold with the highest F1; decisions have none."""

    def f1(threshold):
        precision, recall = precision_and_recall(scores >= threshold, is_copy)
        return 2 * precision * recall / max(1e-9, precision + recall)

    return True if scores.dtype == bool else max(np.unique(np.quantile(scores, np.linspace(0, 1, 201))), key=f1)


def recall_at_precision(scores, is_copy, precision=0.95):
    """The highest recall of any threshold with this precision."""
    thresholds = np.unique(np.quantile(scores.astype(float), np.linspace(0, 1, 1001)))
    found = [precision_and_recall(scores >= threshold, is_copy) for threshold in thresholds]
    return max((recall for reached, recall in found if reached >= precision), default=0.0)


@dataclass(frozen=True)
class Result:
    """Precision, recall of earlier and newer kinds, the share of pairs joined by rule, and of judged pairs."""

    precision: float
    full_precision: float
    recall: float
    newer_recall: float
    strict_recall: float
    by_rule: list
    judged: list


def measure(method, tuning, test):
    learnt, counted = tuning.counted, test.counted
    threshold = best_threshold(method(tuning.corpus, tuning.pairs)[learnt], tuning.is_copy[learnt])
    n = len(test.pairs)
    scores = method(test.corpus, [*test.pairs, *test.judged])
    planted, judged = np.split(scores >= threshold, [n])
    by_rule = [planted[test.rules == rule].mean() for rule in RULES if (test.rules == rule).any()]
    is_copy = test.is_copy[counted]
    precision, _ = precision_and_recall(planted[counted], is_copy)
    recalls = [planted[chosen].mean() for chosen in (test.is_copy & ~test.is_newer, test.is_newer)]
    strict = recall_at_precision(scores[:n][counted], is_copy)
    shares = [judged[chosen].mean() if chosen.any() else np.nan for chosen in test.ratings.values()]
    full_precision, _ = precision_and_recall(planted, test.is_copy)
    return Result(precision, full_precision, *recalls, strict, by_rule, shares)


# Texts of which a part is the same --------------------------------------------------------------------------------


OVERLAPS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)


def texts_in_parts(tasks, seed):
    """Pairs of texts of three sentences: the first two are the same, or only the last one is; and which it is."""
    sentences = sorted({sentence for task in tasks for sentence in task.left if len(sentence.split()) >= FEWEST_WORDS})
    random.Random(seed).shuffle(sentences)
    pairs, is_copy = [], []
    for k, (a, b, c, d, e) in enumerate(zip(*(sentences[i::5] for i in range(5)), strict=False)):
        pairs.append((f"{a} {b} {c}", f"{a} {b} {d}" if k % 2 else f"{d} {e} {c}"))
        is_copy.append(k % 2 == 1)
    return [text for pair in pairs for text in pair], pairs, np.array(is_copy)


def overlapping(least):
    def compare(corpus, pairs):
        matches = find_duplicate_texts([a for a, _ in pairs], against=[b for _, b in pairs], overlap=least)
        found = np.zeros(len(pairs), dtype=bool)
        found[matches[matches[:, 0] == matches[:, 1], 0]] = True
        return found

    return compare


def measure_parts(method, tuning, test):
    """Precision and recall at the threshold that is best for the tuning pairs."""
    threshold = best_threshold(method(*tuning[:2]), tuning[2])
    return precision_and_recall(method(*test[:2]) >= threshold, test[2])


def parts_table(tasks, seed):
    tuning, test = (
        texts_in_parts([task for task in tasks if (task.year in TUNED_ON) == tuned], seed) for tuned in (True, False)
    )

    def f1(least):
        precision, recall = precision_and_recall(overlapping(least)(*tuning[:2]), tuning[2])
        return 2 * precision * recall / max(1e-9, precision + recall)

    best = max(OVERLAPS, key=f1)
    found = {"MinHash": minhash, "TF-IDF": tf_idf, "**find_duplicate_texts**": duplicates(None)}
    found[f"**find_duplicate_texts**, overlap {best}"] = overlapping(best)
    rows = {name: measure_parts(method, tuning, test) for name, method in found.items()}
    heading = [f"{len(test[1]):,} pairs", "precision", "recall"]
    return table(heading, [[name, *(f"{value:.3f}" for value in row)] for name, row in rows.items()])


# The page -----------------------------------------------------------------------------------------------------------


def descriptions(n, seed):
    """First lines of descriptions of Debian packages, all different; none where there is no apt."""
    if shutil.which("apt-cache") is None:
        return []
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    lines = sorted(set(re.findall(r"^Description(?:-en)?: (.+)$", listed, flags=re.MULTILINE)))
    return random.Random(seed).sample(lines, n) if len(lines) >= n else []


def greatest_minhash(texts):
    """The greatest similarity of each text to another one."""
    hashes = np.array([sketch(text).hashvalues for text in texts])
    found = []
    for i, own in enumerate(hashes):
        shares = (hashes == own).mean(axis=1)
        shares[i] = 0
        found.append(shares.max())
    return np.array(found)


def greatest_tf_idf(texts):
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)).fit_transform(texts)
    cosines = (vectors @ vectors.T).toarray()
    np.fill_diagonal(cosines, 0)
    return cosines.max(axis=1)


def descriptions_table(texts, tuning):
    """Shares of different texts that are joined with another one, at two thresholds from the tuning pairs."""
    words = [" ".join(sorted(plain_words(text))) for text in texts]
    same = np.mean([words.count(own) > 1 for own in words])
    rows = [["exact match", *["0.000"] * 2], ["same words in any order", *[f"{same:.3f}"] * 2]]
    learnt = tuning.counted
    for name, method, greatest in (("MinHash", minhash, greatest_minhash), ("TF-IDF", tf_idf, greatest_tf_idf)):
        scores, is_copy = method(tuning.corpus, tuning.pairs)[learnt], tuning.is_copy[learnt]
        found = greatest(texts)
        thresholds = best_threshold(scores, is_copy), precise_threshold(scores, is_copy)
        rows.append([name, *(f"{np.mean(found >= threshold):.3f}" for threshold in thresholds)])
    joined = sum(map(len, find_duplicate_texts(texts))) / len(texts)
    rows.append(["**find_duplicate_texts**", *[f"{joined:.3f}"] * 2])
    return table([f"{len(texts):,} different descriptions", "at the highest F1", "at precision .95"], rows)


def table(heading, rows):
    lines = [f"| {' | '.join(heading)} |", "|---|" + "--:|" * (len(heading) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


FIGURES = {
    "": None,
    "precision": "precision",
    "precision with signs and places": "full_precision",
    "recall, seven earlier kinds": "recall",
    "recall, five newer kinds": "newer_recall",
    "recall at precision .95": "strict_recall",
}


def tables(results, tuning, test, parts):
    """What the page shows, from the results of all methods."""
    rules = [rule for rule in RULES if (test.rules == rule).any()]
    shown = [name for name in results if "exact" not in name and "embeddings" not in name]
    n_copies, n_counted = test.is_copy.sum(), test.counted.sum()
    by_rule = [
        [f"{rule} ({(test.rules == rule).sum():,})", *(f"{results[name].by_rule[k]:.3f}" for name in shown)]
        for k, rule in enumerate(rules)
    ]
    return {
        "counts": f"{n_copies:,} near-copies and {n_counted - n_copies:,} look-alikes, in a corpus of "
        f"{len(test.corpus):,} sentences and planted texts; thresholds are from {tuning.counted.sum():,} pairs.",
        "methods": table(
            list(FIGURES),
            [
                [name, *(f"{getattr(result, field):.3f}" for field in FIGURES.values() if field)]
                for name, result in results.items()
            ],
        ),
        "rules": table(["rule (pairs)", *shown], by_rule),
        "parts": parts,
        "judged": table(
            ["", *(f"{name} ({chosen.sum():,})" for name, chosen in test.ratings.items())],
            [[name, *(f"{share:.3f}" for share in result.judged)] for name, result in results.items()],
        ),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with sts/STS*.tsv")
    parser.add_argument("--to", type=Path, default=Path("doc/results/duplicates"), help="folder of the tables")
    parser.add_argument("--seed", type=int, default=0, help="determines the planted texts")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    tasks = read_tasks(options.data / "sts")
    tuning = Planted.of([task for task in tasks if task.year in TUNED_ON], options.seed)
    test = Planted.of([task for task in tasks if task.year not in TUNED_ON], options.seed)
    results = {}
    for name, method in methods(options.data).items():
        start = time.perf_counter()
        results[name] = measure(method, tuning, test)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print("texts in parts ...", flush=True)
    found = tables(results, tuning, test, parts_table(tasks, options.seed))
    if texts := descriptions(3000, options.seed):
        print("descriptions ...", flush=True)
        found["descriptions"] = descriptions_table(texts, tuning)
    write_results(options.to, found)


if __name__ == "__main__":
    main()
