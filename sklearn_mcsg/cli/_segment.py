"""mcsg segment: cut a sequence of sentences where the subject changes, and describe each segment."""

from __future__ import annotations

import argparse
from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from sklearn_mcsg.cli import _terminal as terminal
from sklearn_mcsg.cli._corpus import Corpus, is_table
from sklearn_mcsg.cli._shared import count, known_texts, make_embedding, open_corpus, tell
from sklearn_mcsg.text import TextSegments, segment_texts
from sklearn_mcsg.text.sentences import sentence_spans

_MANY = 0.3  # share of lines that go on in the next one, above which they seem to be running text
_LABEL = 3  # words of a label
_ROOM = 40  # columns for a label on a terminal


def run(options: argparse.Namespace) -> None:
    """Segment a sequence of sentences."""
    if options.level is not None and options.n_segments is not None:
        raise ValueError("--level decides how many segments are found: leave it or -n out.")
    corpus = open_corpus(options, options.corpus, keep_columns=options.format == "csv")
    has_lines = options.read_as == "txt" if options.read_as else not is_table(options.corpus)
    is_split = options.sentences or len(corpus.texts) == 1
    if is_split:
        corpus = _in_sentences(corpus, has_lines)
    elif has_lines and _share_of_open_lines(corpus) > _MANY:
        tell(options, "Many sentences go on in the next line: add --sentences if this is running text.")
    known = known_texts(options, corpus)
    segments = segment_texts(
        known.texts,
        options.n_segments,
        level=options.level,
        pipeline=make_embedding(options),
        verbose=not options.quiet,
    )
    level = segments.segmenter.level_
    how = "as requested" if level is None else f"found at level {level:g}"
    corpus, last_lines = known.corpus, known.corpus.lines
    if is_split:
        if has_lines:
            last_lines = [line + text.count("\n") for line, text in zip(corpus.lines, corpus.texts, strict=True)]
        corpus = replace(corpus, texts=[" ".join(text.split()) for text in corpus.texts])
    _SHOW[options.format](corpus, segments, _described(corpus, segments, last_lines), how)


def _in_sentences(corpus: Corpus, has_lines: bool) -> Corpus:
    """The sentences of running text as they are written, each with the line in which it begins.

    Lines are one text; rows of a table are texts of their own.
    """
    if has_lines:
        kept = dict(zip(corpus.lines, corpus.texts, strict=True))
        lines = [kept.get(number, "") for number in range(1, corpus.lines[-1] + 1)]
        text, starts = "\n".join(lines), [0, *accumulate(len(line) + 1 for line in lines)]
        found = [(text[start:stop], bisect_right(starts, start)) for start, stop in sentence_spans(text)]
    else:
        rows = zip(corpus.texts, corpus.lines, strict=True)
        found = [(text[start:stop], line) for text, line in rows for start, stop in sentence_spans(text)]
    if not found:  # which is said of texts without words
        return corpus
    texts, begins = [text for text, _ in found], [line for _, line in found]
    return Corpus(corpus.name, texts, begins, fields=[{}] * len(found))


def _share_of_open_lines(corpus: Corpus) -> float:
    """Share of lines without a mark at their end that one with a small letter follows; 0 without capitals."""
    if all(text == text.lower() for text in corpus.texts):
        return 0.0
    neighbours = list(pairwise(corpus.texts))
    n_open = sum(a.rstrip()[-1] not in ".!?:;" and b.lstrip()[0].islower() for a, b in neighbours)
    return n_open / max(1, len(neighbours))


def _described(corpus: Corpus, segments: TextSegments, last_lines: list[int]) -> list[dict[str, Any]]:
    """What there is to say of each segment."""
    edges = [0, *segments.boundaries.tolist(), len(corpus.texts)]
    pvalues = [None, *segments.pvalues.tolist()]
    places = [None, *_places(corpus, segments)]
    return [
        {
            "segment": k + 1,
            "first_line": corpus.lines[begin],
            "last_line": last_lines[end - 1],
            "sentences": end - begin,
            "pvalue": pvalues[k],
            "begins_between": places[k],
            "label": ", ".join(segments.words[k][:_LABEL]),
            "words": segments.words[k],
            "text": corpus.texts[begin],
        }
        for k, (begin, end) in enumerate(pairwise(edges))
    ]


def _places(corpus: Corpus, segments: TextSegments) -> list[list[int] | None]:
    """First and last line in which the true place of each boundary may be, if a level has found them."""
    if segments.segmenter.level_ is None:
        return [None] * len(segments.boundaries)
    return [[corpus.lines[first], corpus.lines[last]] for first, last in segments.intervals]


# The formats --------------------------------------------------------------------------------------------------------


def _show_csv(corpus: Corpus, segments: TextSegments, described: list[dict[str, Any]], how: str) -> None:
    """Print the columns of the corpus, or else the sentences, with line, segment and label."""
    records = (
        corpus.record(i, {"line": corpus.lines[i]}, {name: described[k][name] for name in ("segment", "label")})
        for i, k in enumerate(segments.labels)
    )
    terminal.show_records(records, "csv")


def _show_json(corpus: Corpus, segments: TextSegments, described: list[dict[str, Any]], how: str) -> None:
    columns = corpus.lines, (segments.labels + 1).tolist(), corpus.texts
    sentences = [dict(zip(("line", "segment", "text"), row, strict=True)) for row in zip(*columns, strict=True)]
    terminal.show_json({"n_segments": len(segments), "how": how, "segments": described, "sentences": sentences})


def _show_table(corpus: Corpus, segments: TextSegments, described: list[dict[str, Any]], how: str) -> None:
    print(f"{count(len(corpus.texts), 'sentence')} in {count(len(segments), 'segment')} ({how})\n")
    level = segments.segmenter.level_
    unit = "lines"
    if described[0]["first_line"] == described[-1]["last_line"]:
        unit, described = "sentences", _by_sentences(segments, described)
    rows = [
        {
            "segment": segment["segment"],
            unit: _range([segment["first_line"], segment["last_line"]]),
            **({"sentences": segment["sentences"]} if unit == "lines" else {}),
            "p": "" if segment["pvalue"] is None else f"{segment['pvalue']:.3f}",
            **({"begins between": _range(segment["begins_between"])} if level is not None else {}),
            "words": terminal.shortened(segment["label"], _ROOM),
            "begins": segment["text"],
        }
        for segment in described
    ]
    terminal.show_records(rows, "table")
    print()
    if len(segments) == 1:
        print(terminal.faint("No boundary. -n N cuts the text into N segments in any case."))
        return
    print(terminal.faint("p: how often sentences in random order have a boundary as clear as that before the segment."))
    if level is not None:
        print(terminal.faint(f"begins between: {unit} that hold its true beginning with probability {1 - level:g}."))


def _by_sentences(segments: TextSegments, described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The segments of a text that is one line, with the numbers of sentences for those of lines."""
    edges = [0, *segments.boundaries.tolist(), len(segments.labels)]
    found = [None] * (len(described) - 1) if segments.segmenter.level_ is None else (segments.intervals + 1).tolist()
    return [
        {**segment, "first_line": begin + 1, "last_line": end, "begins_between": place}
        for segment, (begin, end), place in zip(described, pairwise(edges), [None, *found], strict=True)
    ]


def _range(lines: list[int] | None) -> str:
    return "" if lines is None else "-".join(map(str, lines))


_SHOW = {"csv": _show_csv, "json": _show_json, "table": _show_table}
