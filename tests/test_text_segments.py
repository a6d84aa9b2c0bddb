"""Sentences of running text, and segments of sequences of texts."""

import re
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_mcsg import ModelComparisonSegmenter, make_text_embedding, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts
from sklearn_mcsg.text import segment_texts, split_sentences
from sklearn_mcsg.text.sentences import sentence_spans
from sklearn_mcsg.text.terms import Terms

# Sentences are separated by "|", which is removed.
RUNNING = [
    'Dr. J. Smith paid $3.50.| "Why?" she asked...| It was Jan. 5 in the U.S.| Nobody knew!',
    "He works at Apple Inc.| The firm is big.| Apple Inc. Chairman Jones left.| S. Jobs et al. began it.",
    "See Fig. 3 and No. 5.| He said no.| Five left.| Jones et al. (2001) agree, cf. Smith vs. Jones.| Yes.",
    "The cat sat.| Tom ate.| We saw the sun.| Mars is red.| In May.| June came.",
    "Plan B.| The rest.| At 5 p.m. we left.| At 6 p.m.| The train left.| In Washington, D.C. Smith won.",
    '"Go."| Then he went.| (Really.)| "What!" cried he.| \u201cNo.\u201d| \u2018Yes.\u2019| He (Mr. X.) left.',
    "Version 2.0.1 is at www.example.com.| It rose by .5 to 3.75... maybe.| Or not?!| Wait\u2026| What?| Yes.",
    "1. First.| It is good.|\n2. Second\n   goes on.| It ends|\n\n3. Third|\n- one|\n* two|\n(a) three|\nb) four",
    "A title|\n=====\nA paragraph that\ngoes on here.| It ends|\n\t\nAnother one|\n---\nLast.",
    "# Heading|\n\nText e.g. The Times, i.e. The paper.| End",
    "\u3053\u308c\u306f\u6587\u3002|\u305d\u308c\u3082\uff01|\u300c\u306f\u3044\u3002\u300d|\u672c\u5f53\uff1f|x",
    "\u092f\u0939 \u090f\u0915 \u0939\u0948\u0964| \u092f\u0939 \u0926\u0942\u0938\u0930\u093e \u0939\u0948\u0964",
    "\u00bfQu\u00e9?| \u00a1Nada!| \u00c9l vino.| \u00abOui.\u00bb| \u00c9l\u00e8ve.",
    "Small letters follow. this is one sentence.| 5 is a number.| 1990. In 1991 it ended.",
]


@pytest.mark.parametrize("text", RUNNING)
def test_sentences(text):
    without_rules = re.sub(r"\n(=+|-+)\n", "\n", text)
    assert split_sentences(text.replace("|", "")) == [" ".join(part.split()) for part in without_rules.split("|")]


def test_nothing_has_no_sentences():
    assert split_sentences("") == split_sentences(" \n\n ... \n===\n \u00a7 ") == []


@pytest.mark.parametrize("text", [*(text.replace("|", "") for text in RUNNING), "  a b.  C d. \n\n E "])
def test_spans_hold_every_letter_once_and_no_space_around(text):
    spans = list(sentence_spans(text))
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    assert all(text[start:stop] == text[start:stop].strip() for start, stop in spans)
    inside = "".join(text[start:stop] for start, stop in spans)
    assert [c for c in inside if c.isalnum()] == [c for c in text if c.isalnum()]


REPEATED = [
    ". ",
    "1. ",
    ".",
    "A. ",
    "a.b. ",
    '." ',
    "\n- ",
    "\n\n",
    "\n=",
    "= \n",
    "e.g. ",
    "((",
    "\n ",
    "\u3002",
    "x. X",
    "_\n",
]


@pytest.mark.parametrize("repeated", [*REPEATED, "\n(", "(a) ", "a", "1", "' ", "\n1", "\n#", "..."])
def test_eight_times_the_text_takes_eight_times_the_time(repeated):
    """Or nearly so: quadratic time would be 64 times as long. The machine may be busy with other work."""

    def seconds(n):
        text = repeated * (n // len(repeated)) + "a"
        start = time.process_time()
        split_sentences(text)
        return time.process_time() - start

    short = long = np.inf
    for _ in range(10):
        short, long = min(short, seconds(2**13)), min(long, seconds(2**16))
        if long < 2.8**3 * short:
            return
    pytest.fail(f"{long / short:.0f} times as long")


@pytest.fixture(scope="module")
def sequence():
    texts, topics = load_short_texts(return_X_y=True)
    return [text for k in (4, 11, 0) for text, topic in zip(texts, topics, strict=True) if topic == k]


@pytest.mark.parametrize("n_segments", [None, 1, 3, 7])
def test_segments_are_those_of_the_points(sequence, n_segments):
    found = segment_texts(sequence, n_segments, n_words=4)
    pipeline = make_text_embedding().fit(sequence)
    points = pipeline.transform(sequence)
    assert_allclose(found.points, points, atol=1e-6)
    assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5)
    segmenter = ModelComparisonSegmenter("squared_error", n_segments=n_segments, random_state=0).fit(points)
    assert found.boundaries.tolist() == segmenter.boundaries_.tolist()
    assert found.labels.tolist() == segmenter.labels_.tolist() == found.segmenter.labels_.tolist()
    assert found.words == Terms.of(sequence, pipeline[0]).labels_of(segmenter.labels_, 4)
    assert len(found) == len(found.words) == (n_segments or segmenter.n_segments_)
    assert found.texts == sequence
    assert repr(found).startswith(f"TextSegments of 90 texts, {len(found)} segment")


def test_topics_are_found(sequence):
    assert segment_texts(sequence, 3).boundaries.tolist() == [30, 60]


def test_a_pipeline_is_fitted_but_not_changed(sequence):
    pipeline = make_text_embedding(vectors="glove-6b-50d", likelihood="diag", n_components=20)
    found = segment_texts(sequence, 3, pipeline=pipeline)
    assert found.points.shape == (90, 20)
    assert not hasattr(pipeline[0], "oov_rate_")
    assert found.pipeline[0].oov_rate_ < 0.1


def test_mistakes(sequence):
    with pytest.raises(ValueError, match="only one text, but 2 segments of at least 2 texts need 4"):
        segment_texts(sequence[:1])
    with pytest.raises(ValueError, match="only 3 texts, but 2 segments of at least 2 texts need 4"):
        segment_texts(sequence[:3], 1)
    with pytest.raises(ValueError, match="only 90 texts, but 46 segments of at least 2 texts need 92"):
        segment_texts(sequence, 46)
    with pytest.raises(ValueError, match="n_segments"):
        segment_texts(sequence, 0)
    with pytest.raises(ValueError, match="n_words"):
        segment_texts(sequence, n_words=0)
    with pytest.raises(TypeError, match="segment_texts needs a pipeline that ends in a GroupEmbedding"):
        segment_texts(sequence, pipeline=make_text_similarity())
    with pytest.raises(TypeError, match="Text 1 is not a string"):
        segment_texts(["a", 1, "b", "c"])
    with pytest.warns(UserWarning, match="1 of 91 texts have no words"):
        assert len(segment_texts([*sequence, "..."], 3).texts) == 91


def test_a_level_that_takes_too_many_permutations_gets_a_sentence(sequence):
    with pytest.raises(ValueError, match="level=1e-09 needs 999,999,99. permutations of 90 texts: choose a larger"):
        segment_texts(sequence, level=1e-9)
    with pytest.raises(ValueError, match="level=5e-324 needs 999,999,999,999,999 permutations"):
        segment_texts(sequence, level=5e-324)
