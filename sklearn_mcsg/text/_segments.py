"""Segments of a sequence of texts: found in the embedding, and described by words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from sklearn_mcsg._checks import check_positive_integer, check_share
from sklearn_mcsg.segmentation import ModelComparisonSegmenter, check_one_rule, fewest_permutations
from sklearn_mcsg.text._recipes import check_embedding, make_text_embedding
from sklearn_mcsg.text._tokenised import TokenisedTexts
from sklearn_mcsg.text._vectorizer import warn_of_empty_texts
from sklearn_mcsg.text.terms import Terms

_MOST_PERMUTATIONS = 1_000_000  # that are made without being asked for: more take hours


@dataclass(frozen=True, eq=False, repr=False)
class TextSegments:
    """A sequence of texts and its segments.

    Attributes
    ----------
    texts : list of str of length n_texts
        The texts.
    labels : ndarray of shape (n_texts,)
        The segment of each text, from 0 on.
    boundaries : ndarray of shape (n_segments - 1,)
        Texts at which a new segment begins, without text 0.
    words : list of lists of str
        Words and pairs of words that distinguish each segment from the others, the most distinctive first.
    points : ndarray of shape (n_texts, n_components)
        Embeddings of the texts, at unit length.
    segmenter : ModelComparisonSegmenter
        The fitted segmenter.
    pipeline : Pipeline
        The fitted vectorizer and embedding.
    """

    texts: list[str]
    labels: np.ndarray
    boundaries: np.ndarray
    words: list[list[str]]
    points: np.ndarray
    segmenter: ModelComparisonSegmenter
    pipeline: Pipeline

    @property
    def pvalues(self) -> np.ndarray:
        """P-value of each boundary: the smallest level at which it is found. See `ModelComparisonSegmenter`."""
        return self.segmenter.pvalues_

    @property
    def intervals(self) -> np.ndarray:
        """First and last text that may be the true place of each boundary, if a level has found them."""
        return self.segmenter.intervals_

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        sizes = np.bincount(self.labels)
        lines = (f"{size:6}  {', '.join(words)}" for size, words in zip(sizes, self.words, strict=True))
        head = f"TextSegments of {len(self.texts)} texts, {len(self)} segment{'s' * (len(self) != 1)}"
        return "\n".join([head, *lines])


def segment_texts(
    texts: Iterable[str],
    n_segments: int | None = None,
    *,
    level: float | None = None,
    n_permutations: int = 199,
    pipeline: Pipeline | None = None,
    n_words: int = 6,
    random_state: int | np.random.RandomState | None = 0,
    verbose: int = 0,
) -> TextSegments:
    """Cut a sequence of texts, such as the sentences of a document, where the subject changes.

    Parameters
    ----------
    texts : iterable of str
        The texts, in their order. `split_sentences` makes them from a running text.
    n_segments : int, default=None
        Number of segments, of at least two texts each; ``None`` finds it by `level`.
    level : float, default=None
        Accepted rate of false positives: the largest probability that texts without change are cut anywhere. A
        boundary must then gain more than the same texts do in random order, in blocks that grow as long as segments are
        long: see ``block_size="growing"`` of `ModelComparisonSegmenter`. It excludes `n_segments`. ``None`` means 0.05
        if the number of segments is found.
    n_permutations : int, default=199
        Number of permutations: random orders of the texts. More are made if the level needs them, as it does in more
        than 10,000 texts at the default level.
    pipeline : Pipeline, default=None
        Pipeline for texts: an `EmbeddingVectorizer` and a `GroupEmbedding`; ``None`` means ``make_text_embedding()``.
        Its points are scaled to unit length.
    n_words : int, default=6
        Number of words or pairs of words that describe a segment.
    random_state : int, RandomState instance or None, default=0
        Determines what is random: the orders of texts.
    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    segments : TextSegments

    See Also
    --------
    split_sentences : The sentences of a running text.
    cluster_texts : Clusters of texts in any order.
    ModelComparisonSegmenter : The segments, for vectors or groups of any kind.

    Examples
    --------
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> from sklearn_mcsg.text import segment_texts
    >>> texts, topics = load_short_texts(return_X_y=True)
    >>> sequence = [texts[i] for topic in (4, 11, 0) for i in range(360) if topics[i] == topic]
    >>> segments = segment_texts(sequence, 3)
    >>> segments
    TextSegments of 90 texts, 3 segments
        30  debt, interest, shares, investors, savings, mortgage
        30  rain, snow, wind, clouds, fog, drifts
        30  asleep, kittens, hedgehogs, insects, penguins, elephants
    >>> segments.boundaries
    array([30, 60])
    """
    check_positive_integer(n_words, "n_words")
    check_positive_integer(n_permutations, "n_permutations")
    if n_segments is not None:
        check_positive_integer(n_segments, "n_segments")
    if level is not None:
        check_share(level, "level")
    check_one_rule(n_segments, level)
    tokenised = TokenisedTexts.of(texts)
    fewest = fewest_permutations(level, len(tokenised))
    if fewest > max(n_permutations, _MOST_PERMUTATIONS):
        raise ValueError(
            f"level={level} needs {fewest:,} permutations of {len(tokenised)} texts: choose a larger level, or set "
            f"n_permutations to that number."
        )
    segmenter = ModelComparisonSegmenter(
        "squared_error",
        n_segments=n_segments,
        level=level,
        block_size="growing",
        n_permutations=max(n_permutations, fewest),
        random_state=random_state,
        verbose=verbose,
    )
    pipeline = clone(make_text_embedding() if pipeline is None else check_embedding(pipeline, "segment_texts"))
    _check_length(len(tokenised), max(2, n_segments or 2), segmenter.min_size)
    groups = pipeline[0].fit_transform(tokenised)
    warn_of_empty_texts(texts, groups.sizes == 0, "and become empty groups", stacklevel=2)
    points = np.asarray(pipeline[-1].set_params(normalize=True).fit_transform(groups))
    segmenter.fit(points)
    words = Terms.of(tokenised, pipeline[0]).labels_of(segmenter.labels_, n_words)
    found = segmenter.labels_, segmenter.boundaries_
    return TextSegments(tokenised.texts, *found, words, points, segmenter, pipeline)


def _check_length(n_texts: int, n_segments: int, min_size: int) -> None:
    """Raise ValueError if there are too few texts."""
    if n_texts < n_segments * min_size:
        have = "There is only one text" if n_texts == 1 else f"There are only {n_texts} texts"
        needed = f"{n_segments} segments of at least {min_size} texts need {n_segments * min_size}"
        raise ValueError(f"{have}, but {needed}.")
