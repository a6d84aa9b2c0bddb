"""Search of texts by what they mean and by the words they have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import partial, reduce
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg import storage
from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg._sklearn import HasMethods, Interval
from sklearn_mcsg.engine.chance import N_PAIRS, warn_of_few_groups
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.checks import check_indices
from sklearn_mcsg.search import GroupNeighbors, groups_of, search_of
from sklearn_mcsg.search.nearest import smallest
from sklearn_mcsg.search.random_pairs import RandomPairs
from sklearn_mcsg.similarity.estimator import snapshot, split_pipeline
from sklearn_mcsg.text._queries import Queries, Query
from sklearn_mcsg.text._recipes import explained, make_text_embedding
from sklearn_mcsg.text._tokenised import TokenisedTexts
from sklearn_mcsg.text._vectorizer import warn_of_empty_texts
from sklearn_mcsg.text.language import check_language
from sklearn_mcsg.text.words import WordIndex, import_bm25s, words_of

_LEARNT = "vectorizer_", "index_", "words_", "known_", "n_texts_"
_LARGEST_WEIGHT = 1e9  # of words: scores have single precision
_TEXTS_PER_QUERY = 5  # that a random query is compared with
_ROUNDING = 16  # multiples of the precision: values that differ by less are equal


class TextHits(NamedTuple):
    """Texts that a search has found: one row per query, the best first.

    Attributes
    ----------
    indices : ndarray of shape (n_queries, n_neighbors)
        Indices of the texts; -1 if there are no more.
    scores : ndarray of shape (n_queries, n_neighbors)
        Their scores, higher for better matches: the sum for distance and words; minus the distance if words do not
        count.
    distances : ndarray of shape (n_queries, n_neighbors)
        Their distances: with an embedding, one minus the cosine.
    word_scores : ndarray of shape (n_queries, n_neighbors) or None
        Their BM25 scores; None if words do not count.
    pvalues : ndarray of shape (n_queries, n_neighbors) or None
        P-values of their distances; None unless they were asked for.
    """

    indices: np.ndarray
    scores: np.ndarray
    distances: np.ndarray
    word_scores: np.ndarray | None
    pvalues: np.ndarray | None = None


@storage.register
class TextSearch(BaseEstimator):
    """Search of texts by what they mean and by the words they have.

    The embedding finds texts that say the same in other words; BM25 finds the names and the jargon that word vectors
    know little about. Both are brought to one scale and added. A query such as ``'"storm surge" near the coast'`` only
    finds texts that contain the words in quotes.

    Parameters
    ----------
    pipeline : Pipeline, default=None
        Pipeline for texts: it turns them into groups and compares or embeds these. ``None`` means
        `make_text_embedding`.
    words : float or None, default=20.0
        How much words count: score of a text of average length that has each word of the query once, in standard
        deviations of the distances from the query. A text that has half of them, by rarity, has a quarter of that. With
        ``None``, only distances count. At most 1e9. Words need bm25s (``pip install "sklearn-mcsg[text]"``).
    language : str or None, default="english"
        Language of the texts. Words count by their stems, and stop words do not count, unless a query has no other
        words. Languages are those of PyStemmer; stop words are known for some of them. With ``None``, all words count
        as they are written.
    n_neighbors : int, default=5
        Number of neighbours: texts to find for each query.
    growth : float, default=2.0
        Factor by which the index may grow before it learns again: see `GroupNeighbors`.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    vectorizer_ : Pipeline
        The fitted steps before the last one, which turn texts into groups.
    index_ : GroupNeighbors
        The index of the texts that have words.
    words_ : WordIndex
        The words of the texts that have words.
    known_ : ndarray of int
        Indices of the texts that have words. A text without words, such as "...", is never found.
    n_texts_ : int
        Number of texts.

    See Also
    --------
    GroupNeighbors : Search by distances alone, among groups of any kind.
    update_index : Saves a search in a folder and adds new texts to it.

    Notes
    -----
    The score of a text is :math:`z + w s^2`. Here :math:`z` is minus its distance from the query, shifted and scaled to
    mean 0 and standard deviation 1 over all texts, :math:`s` is its BM25 score divided by that of a text of average
    length that has each word of the query once, and :math:`w` is `words`. Words of the query that no text has count
    among them. So the unit of the distances does not matter, and one shared word of many counts little. If no text has
    a word of the query, the distances alone decide.

    A search with words or phrases compares each query with all texts; memory is bounded. For an embedding that is a
    matrix product.

    Examples
    --------
    >>> from sklearn_mcsg import TextSearch
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> texts = load_short_texts().data
    >>> search = TextSearch(n_neighbors=2).fit(texts)
    >>> hits = search.search(["my puppy is ill"])
    >>> for i in hits.indices[0]:
    ...     print(texts[i])
    That puppy chewed both my slippers and then fell asleep on what was left of them.
    ...
    >>> search.explain("my puppy is ill", texts[hits.indices[0, 0]]).strongest(1)[0][:2]
    ('puppy', 'puppy')
    """

    _random_pairs: RandomPairs
    _parameter_constraints: ClassVar[dict] = {
        "pipeline": [HasMethods(["fit", "transform"]), None],
        "words": [Interval(Real, 0, _LARGEST_WEIGHT, closed="right"), None],
        "language": [str, None],
        **{name: GroupNeighbors._parameter_constraints[name] for name in ("n_neighbors", "growth")},
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        pipeline: Any = None,
        *,
        words: float | None = 20.0,
        language: str | None = "english",
        n_neighbors: int = 5,
        growth: float | None = 2.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.pipeline = pipeline
        self.words = words
        self.language = language
        self.n_neighbors = n_neighbors
        self.growth = growth
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Index texts.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : None
            Ignored.

        Returns
        -------
        self : TextSearch
        """
        self._validate_params()
        if self.words is not None:
            import_bm25s()
            if self.language is not None:
                check_language(self.language)
        vectorizer, last = split_pipeline(make_text_embedding() if self.pipeline is None else clone(self.pipeline))
        if vectorizer is None:
            raise TypeError("pipeline must turn texts into groups first: see make_text_embedding.")
        texts = TokenisedTexts.of(X)
        groups = vectorizer.fit_transform(texts)
        warn_of_empty_texts(X, groups.sizes == 0, "and are never found", stacklevel=2)
        known = np.flatnonzero(groups.sizes)
        if len(known) < 2:
            raise ValueError(f"A search needs at least 2 texts that have words, got {len(known)}.")
        algorithm = "auto" if self.words is None else "exact"
        index = GroupNeighbors(last, algorithm=algorithm, **self._shared_params()).fit(groups[known])
        words = WordIndex.of(words_of(texts[known], _tokenizer_of(vectorizer)), self.language)
        self._keep(vectorizer, index, words, known, len(texts))
        return self

    def partial_fit(self, X: Iterable[str], y: object = None) -> Self:
        """Add texts.

        The frequencies of words that BM25 uses are those of all texts. An embedding stays as it is until the index has
        grown by the factor `growth`, and then learns again from all texts; its vectorizer is not fitted again.

        Parameters
        ----------
        X : iterable of str
            Further texts.
        y : None
            Ignored.

        Returns
        -------
        self : TextSearch
        """
        if not hasattr(self, "index_"):
            return self.fit(X)
        texts = TokenisedTexts.of(X)
        groups = self.vectorizer_.transform(texts)
        warn_of_empty_texts(X, groups.sizes == 0, "and are never found", stacklevel=2)
        known = np.flatnonzero(groups.sizes)
        words = self.words_.extended(words_of(texts[known], _tokenizer_of(self.vectorizer_)))
        index = self.index_
        if len(known):
            index = copy(index).set_params(**self._shared_params()).partial_fit(groups[known])
        every = np.concatenate([self.known_, self.n_texts_ + known])
        self._keep(self.vectorizer_, index, words, every, self.n_texts_ + len(texts))
        return self

    def _keep(self, vectorizer: Any, index: GroupNeighbors, words: WordIndex, *others: Any) -> None:
        """Replace what was learnt in one step, once everything that can fail has succeeded."""
        learnt = zip(_LEARNT, (vectorizer, index, words, *others), strict=True)
        pairs = RandomPairs(groups_of(index), partial(_random_queries, vectorizer, words))
        self.__dict__.update(learnt, _random_pairs=pairs)

    def calibrate(
        self,
        X: Sequence[Query] | Queries | None = None,
        *,
        n_pairs: int = N_PAIRS,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """Compare random pairs of queries and texts, to give the p-values of `search` a null distribution.

        If it is not called, the first p-values that are asked for do this with the defaults. Call it where typical
        queries are known, and for small p-values: n pairs give none below 10 / n, and there are no more random pairs
        than pairs of texts, unless queries are given.

        Parameters
        ----------
        X : list of str or of lists of str, default=None
            Typical queries: each is compared with random texts. ``None`` means random excerpts of the texts, from one
            word to a whole text, each compared with random other texts. If an embedding has learnt from few texts,
            these are compared in folds: see `GroupNeighbors.calibrate`.
        n_pairs : int, default=20_000
            Number of random pairs.
        random_state : int, RandomState instance or None, default=None
            Determines what is random: queries, pairs and folds. ``None`` means the `random_state` of the
            pipeline's last step, or 0 if it has none.

        Returns
        -------
        self : TextSearch
        """
        check_is_fitted(self, "index_")
        check_positive_integer(n_pairs, "n_pairs")
        queries = None if X is None else self.look_up(X)
        if queries is not None and not queries.sizes.all():
            raise ValueError(f"Query {int(np.argmin(queries.sizes))} has no words: leave it out.")
        warn_of_few_groups(len(self.known_), stacklevel=2)
        self._random_pairs = self._random_pairs.calibrated(queries, n_pairs, random_state)
        return self

    def search(
        self,
        X: Sequence[Query] | Queries | None = None,
        n_neighbors: int | None = None,
        return_pvalue: bool = False,
    ) -> TextHits:
        """Find the texts that match queries best.

        Parameters
        ----------
        X : list of str or of lists of str, default=None
            Queries. A string finds only texts that contain what it has in quotes: the same words in the same order,
            whatever their case and the punctuation between them. A list of texts is one query, by the pooled model of
            all their words; quotes in them are part of the examples and exclude no text. ``None`` means the indexed
            texts that have words, each of which does not find itself.
        n_neighbors : int, default=None
            Overrides the parameter `n_neighbors`.
        return_pvalue : bool, default=False
            Whether to also return p-values. The random pairs that they need are drawn when they are first asked for,
            and again when texts were added; `calibrate` draws others.

        Returns
        -------
        hits : TextHits
            With `indices`, `scores`, `distances` and `word_scores`, sorted by score. If fewer texts contain what is in
            quotes, the rest of the row has indices -1 and values NaN. A query without words, or with a phrase that no
            text contains, gives a warning, and its whole row has these values. With `return_pvalue` there are `pvalues`
            of the distances, which do not depend on the words that BM25 counts: the share of random pairs of a query
            and a text, of similar length, that are at least as near. A p-value is not the chance that a text was found
            by mistake: by chance, the nearest of n texts has a p-value of about 1 / n.
        """
        self = snapshot(self)
        check_is_fitted(self, "index_")
        self._validate_params()
        k = self._check_n_neighbors(n_neighbors, available=len(self.known_) - (X is None))
        if return_pvalue:
            warn_of_few_groups(len(self.known_), stacklevel=2)
        if X is None:
            return self._find(None, None, k, return_pvalue)
        queries = Queries.of(X)
        groups = self.look_up(queries)
        asked = groups.sizes > 0
        if asked.all():
            return self._find(queries, groups, k, return_pvalue)
        if not asked.any():
            raise ValueError("No query has a word: give at least one that has.")
        first = int(np.argmin(asked))
        warnings.warn(f"Query {first} has no words: nothing is found for it, and its indices are -1.", stacklevel=2)
        return _spread(self._find(queries[asked], groups[np.flatnonzero(asked)], k, return_pvalue), asked)

    def _find(self, queries: Queries | None, groups: Groups | None, k: int, return_pvalue: bool) -> TextHits:
        """The k best texts for queries that have words."""
        index = copy(self.index_).set_params(**self._shared_params())
        pairs = self._random_pairs
        containing = {} if queries is None else self._texts_containing(queries)
        if self.words is None and not containing:
            distances, places = index.kneighbors(groups, k)
            pvalues = pairs.pvalues(groups, distances, places, stacklevel=3) if return_pvalue else None
            return TextHits(self.known_[places], -distances, distances, None, pvalues)
        parts = zip(*self._best_of_blocks(index, groups, queries, containing, k), strict=True)
        places, scores, distances, word_scores = map(np.concatenate, parts)
        found = np.isfinite(scores)
        pvalues = None
        if return_pvalue:
            pvalues = np.where(found, pairs.pvalues(groups, distances, places, stacklevel=3), np.nan)
        scores, distances, word_scores = (np.where(found, part, np.nan) for part in (scores, distances, word_scores))
        indices = np.where(found, self.known_[places], -1)
        return TextHits(indices, scores, distances, None if self.words is None else word_scores, pvalues)

    def _texts_containing(self, queries: Queries) -> dict[int, np.ndarray]:
        """Places of the texts that contain all phrases of a query, for each query that has phrases."""
        containing = {}
        for i, phrases in enumerate(queries.phrases):
            words = [words_of([phrase], _tokenizer_of(self.vectorizer_)) for phrase in phrases]
            found = [self.words_.texts_with([w.distinct[n] for n in w.numbers]) for w in words if len(w.numbers)]
            if found:
                containing[i] = reduce(np.intersect1d, found)
                if not len(containing[i]):
                    named = " and ".join(f'"{phrase:.60}"' for phrase in phrases)
                    warnings.warn(f"No text contains {named}: nothing is found for that query.", stacklevel=4)
        return containing

    def explain(self, query: Query | Groups, text: str | Groups) -> Any:
        """Explain the distance of a text to a query by pairs of their words.

        Parameters
        ----------
        query : str, list of str, or Groups
            A query, or its group as `look_up` returns it.
        text : str or Groups
            A text, such as one that was found, or its group.

        Returns
        -------
        explanation : PairExplanation, or VectorExplanation
            The second one if the pipeline compares texts without embedding them.
        """
        self = snapshot(self)
        check_is_fitted(self, "index_")
        left, right = (x if isinstance(x, Groups) else self.look_up([x]) for x in (query, text))
        return explained(split_pipeline(self.index_.similarity_)[1], left, right)

    def look_up(self, X: Sequence[Query] | Queries) -> Groups:
        """Turn queries into groups of word vectors.

        Parameters
        ----------
        X : list of str or of lists of str
            Queries. The texts of a list are pooled.

        Returns
        -------
        groups : Groups
            One group per query; those of queries without words are empty.
        """
        check_is_fitted(self, "index_")
        queries = Queries.of(X)
        groups = self.vectorizer_.transform(queries.texts)
        return groups.pooled(np.repeat(np.arange(len(queries)), np.diff(queries.offsets)))

    def __mcsg_state__(self) -> dict[str, Any]:
        """What `fit` has learnt, for storage; empty before `fit`."""
        self = snapshot(self)
        if not hasattr(self, "index_"):
            return {}
        return {**{name: getattr(self, name) for name in _LEARNT}, "random_pairs": self._random_pairs.stored()}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Keep what was stored."""
        self._keep(*(state[name] for name in _LEARNT))
        self._random_pairs = self._random_pairs.restored(state["random_pairs"])

    def __mcsg_check__(self) -> None:
        """Raise unless the search has everything that a query needs."""
        self._validate_params()
        check_is_fitted(self, "index_")
        steps = [step for _, step in getattr(self.vectorizer_, "steps", [])]
        if not steps or not all(hasattr(step, "transform") for step in steps):
            raise ValueError("the steps that turn texts into groups are missing")
        check_indices(self.known_, self.n_texts_)
        if len(self.known_) != self.index_.n_groups_:
            raise ValueError(f"{self.index_.n_groups_} texts with words are expected")
        self.words_.check(len(self.known_))
        if self.words is not None and self.words_.language is not None:
            check_language(self.words_.language)

    def _best_of_blocks(
        self,
        index: GroupNeighbors,
        groups: Groups | None,
        queries: Queries | None,
        containing: dict[int, np.ndarray],
        k: int,
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Places, scores, distances and word scores of the k best texts of each query, some queries at a time.

        Texts that are not to be found have scores of minus infinity.
        """
        terms = self._terms_of(queries)
        asked_groups = np.arange(len(self.known_)) if groups is None else groups
        start = 0
        for distances, _ in search_of(index).distance_blocks(asked_groups, self_distance=0):
            block = slice(start, start + len(distances))
            start = block.stop
            findable = np.ones(distances.shape, dtype=bool)
            if queries is None:
                findable[np.arange(len(distances)), np.arange(block.start, block.stop)] = False
            if self.words is None:
                scores, word_scores = -distances, np.zeros_like(distances)
            else:
                word_scores = self.words_.scores(terms[block])
                units = self.words_.units(terms[block])[:, None]
                scores = self.words * (word_scores / np.where(units > 0, units, 1)) ** 2 - z_scores(distances, findable)
            for row in containing.keys() & set(range(block.start, block.stop)):
                findable[row - block.start] = np.isin(np.arange(len(self.known_)), containing[row])
            values, places = smallest(np.where(findable, -scores, np.inf), k)
            yield places, -values, *(np.take_along_axis(v, places, axis=1) for v in (distances, word_scores))

    def _terms_of(self, queries: Queries | None) -> list[list[int]]:
        """Numbers of the terms of each query, or of each text; none if words do not count."""
        if self.words is None:
            return []
        if queries is None:
            return self.words_.own_numbers()
        return self.words_.numbers(queries.words(_tokenizer_of(self.vectorizer_)))

    def _shared_params(self) -> dict[str, Any]:
        """Parameters of the search that its index has, too."""
        return {"growth": self.growth, "n_jobs": self.n_jobs, "verbose": self.verbose}

    def _check_n_neighbors(self, n_neighbors: int | None, available: int) -> int:
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_positive_integer(k, "n_neighbors")
        if k > available:
            raise ValueError(f"n_neighbors={k} is more than the {available} texts that can be found.")
        return int(k)


def z_scores(rows: np.ndarray, counted: Any = True) -> np.ndarray:
    """Rows shifted and scaled to mean 0 and standard deviation 1 over their counted entries; equal entries become 0."""
    mean = rows.mean(axis=1, keepdims=True, where=counted, dtype=np.float64)
    deviation = rows.std(axis=1, keepdims=True, where=counted, dtype=np.float64)
    equal = deviation <= _ROUNDING * np.finfo(rows.dtype).eps * np.abs(rows).max(axis=1, keepdims=True)
    return (rows - mean.astype(rows.dtype)) / np.where(equal, np.inf, deviation).astype(rows.dtype)


def _random_queries(
    vectorizer: Any, words: WordIndex, n_pairs: int, random_state: np.random.RandomState
) -> tuple[Groups, np.ndarray]:
    """Random runs of words of the texts as queries, and the places of the texts they were taken from."""
    own, runs = words.random_runs(-(-n_pairs // _TEXTS_PER_QUERY), random_state)
    groups = vectorizer.transform(TokenisedTexts.of(runs))
    has_words = np.flatnonzero(groups.sizes)
    return groups[has_words], own[has_words]


def _spread(hits: TextHits, asked: np.ndarray) -> TextHits:
    """The rows of the queries that were asked; the others say that nothing was found."""

    def spread(part: Any, missing: float = np.nan) -> Any:
        rows = np.full((len(asked), *part.shape[1:]), missing, part.dtype)
        rows[asked] = part
        return rows

    word_scores, pvalues = (None if part is None else spread(part) for part in (hits.word_scores, hits.pvalues))
    return TextHits(spread(hits.indices, -1), spread(hits.scores), spread(hits.distances), word_scores, pvalues)


def _tokenizer_of(vectorizer: Any) -> Any:
    """The tokenizer of a pipeline's first step; None if it has none of its own."""
    return getattr(vectorizer[0], "tokenizer", None)
