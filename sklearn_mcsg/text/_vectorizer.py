"""Texts as groups of word vectors.

    text --tokenizer--> words --table--> rows of a shared array, weighted by frequency and length --> Groups

Word vectors are opened once per process and never copied whole.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import check_number
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.groups import Groups, packed
from sklearn_mcsg.storage import File, register
from sklearn_mcsg.text._english import share_of_foreign_words
from sklearn_mcsg.text._frequencies import divisor, warn_unless_in_order, zipf
from sklearn_mcsg.text._lookup import Found, look_up
from sklearn_mcsg.text._rows import LookUp
from sklearn_mcsg.text._tokenised import TokenisedTexts, Tokens, check_texts, into_words
from sklearn_mcsg.text._tokens import lacks_spaces
from sklearn_mcsg.text.sources import (
    RECOMMENDED,
    are_installed,
    files_of,
    has_order,
    has_static_model,
    open_table,
    sources_of,
    with_files,
)
from sklearn_mcsg.text.tables import StaticTable, Table, WordTable, tables_in
from sklearn_mcsg.text.words import check_vocabulary

_MANY_WITHOUT_SPACES = 0.2  # share of distinct words


@register
class EmbeddingVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn texts into groups of weighted word vectors.

    Each text becomes the group of its words' vectors, labelled by the words. The defaults are the recommended settings
    for texts in English. The settings of the paper are ``weighting=None, unit_norm=False, pad_token=".",
    unknown="ignore", punctuation=True``, with a table of words.

    Parameters
    ----------
    vectors : str, path, mapping, tuple, KeyedVectors, StaticModel, or list of those, \
            default=("wordllama", "glove-6b-50d")
        A table of words: an installed set (``"glove-6b-50d"``), a file that `load_word_vectors` reads, words mapped to
        vectors, a tuple of words and a 2-d array with one row per word, or anything with ``key_to_index`` and
        ``vectors``, such as gensim's KeyedVectors.
        Or a static model, which is vectors of pieces of words with their tokenizer. It is used as a table of all words:
        the vector of a word is the sum of the vectors of its pieces. Static models are ``"wordllama"``; the folder that
        model2vec saves, or one of its files ``tokenizer.json`` and ``.safetensors``, or a tuple of such files; a
        `StaticModel` of model2vec; or a tuple of a tokenizer (of the package tokenizers, a fast one of transformers, or
        a callable that returns pieces or ids) and a table (a 2-d array with one row per id, or pieces mapped to
        vectors).
        Or several tables, which are used as one (see Notes): a list of them, or a tuple of names of installed sets.
        The installed sets come with ``pip install "sklearn-mcsg[text]"``.
    tokenizer : callable, default=None
        Splits a text into words. ``None`` is `sklearn_mcsg.text.tokenize`. Use ``str.split`` for tokenised texts.
    lowercase : bool, default=True
        Whether to look words up in lower case. Set it to False for vectors that distinguish Turkey from turkey: a word
        is then looked up as it is written, and in lower case if it is missing. A static model sees words as they are
        written, and decides itself about case.
    pad_token : str, default=None
        A word added to every text, so that no text is empty.
    weighting : {"auto", "sif", "norm"}, callable, tuple of those or None, default="auto"
        Weight of a word. ``"sif"`` is ``a / (a + p)`` with p the frequency of the word, ``"norm"`` is the length of its
        vector over the median length in the table (of a static model, over that of its pieces), and a callable receives
        the word. Several are multiplied. ``"auto"`` is ``"norm"`` if a static model is among the vectors, and
        ``("sif", "norm")`` otherwise.
    frequencies : "zipf", mapping or None, default="zipf"
        Source of the frequencies of words that ``"sif"`` uses. ``"zipf"`` estimates p from the rank of the word in the
        table, whose words must be in order of frequency, as in the published files of GloVe, word2vec and fastText. A
        mapping gives counts, if all are whole numbers, or probabilities; missing words have p = 0. ``None`` counts
        words in the fitted texts.
    a : float, default=1e-3
        Frequency at which ``"sif"`` halves a weight.
    unit_norm : bool, default=True
        Whether vectors are scaled to unit length, after their lengths have been used as weights.
    unknown : {"spelling", "ignore", "error"}, default="spelling"
        What becomes of words that a table of words lacks. ``"spelling"`` looks up the parts of compounds, and gives
        other words a vector made from their spelling: it resembles those of words that are spelled alike, and of no
        others. ``"ignore"`` leaves them out, and ``"error"`` raises an error. In a static model every word has a
        vector.
    punctuation : bool, default=False
        Whether punctuation, bullets, rules and runs of dots count as words. Percent signs, currency signs and emoji
        always do.

    Attributes
    ----------
    oov_rate_ : float
        Share of the fitted texts' words that have no vector in the table; of several tables, in the first one of words.
    frequencies_ : dict
        Frequencies of the fitted texts' words. Only with ``frequencies=None``.

    Notes
    -----
    Several tables are used as one. The vectors of a word are scaled to unit length, put side by side, and scaled to
    unit length again. Its length, which is its weight, is that in the first static model or, without any, in the first
    table. In a table of words that lacks it, a word has the sum of the vectors of its parts, or a vector by its
    spelling. ``"spelling"`` may be the name of one of the tables, for those who have word vectors only: the spelling of
    every word, as wide as the tables beside it, and weighted without regard to length.

    The installed sets are English. `fit` warns if texts do not look English but the vectors are installed ones.

    A text without words, or without known ones if others are ignored, becomes an empty group, with a warning.
    `ModelComparisonSimilarity` accepts it with ``prior_strength > 0`` and otherwise raises an error that says which
    text it is.

    A text that was not decoded as UTF-8 may hold halves of surrogate pairs, which are not characters: tokenizers see
    U+FFFD in their place. More than 30 combining marks in a row count as 30. Only the first 1024 characters of a word
    count for its spelling and its pieces, and a text of more than half a million characters without white space is cut.

    Copies made by `sklearn.base.clone` share the word vectors. A pickled vectorizer holds the name or the path of its
    vectors, which are opened again after loading, and are refused if they have changed. Vectors given as objects are
    pickled with it, like any parameter.

    Examples
    --------
    >>> from sklearn_mcsg import EmbeddingVectorizer
    >>> vectors = {"the": [0.1, 0.1], "cat": [1.0, 0.0], "dog": [0.8, 0.6], "sat": [0.0, 2.0]}
    >>> groups = EmbeddingVectorizer(vectors).fit_transform(["The cat sat.", "the dog"])
    >>> groups
    Groups(n_groups=2, n_features=2, sizes=2..3, shared table of 4 rows, weighted, labelled)
    >>> groups[1]
    array([[0.70710678, 0.70710678],
           [0.8       , 0.6       ]])
    >>> groups.labels.tolist()
    ['the', 'cat', 'sat', 'the', 'dog']
    """

    _parameter_constraints: ClassVar[dict] = {
        "vectors": "no_validation",
        "tokenizer": [callable, None],
        "lowercase": ["boolean"],
        "pad_token": [str, None],
        "weighting": [StrOptions({"auto", "sif", "norm"}), callable, tuple, list, None],
        "frequencies": [StrOptions({"zipf"}), Mapping, None],
        "a": [Interval(Real, 0, None, closed="neither")],
        "unit_norm": ["boolean"],
        "unknown": [StrOptions({"spelling", "ignore", "error"})],
        "punctuation": ["boolean"],
    }

    def __init__(
        self,
        vectors: Any = RECOMMENDED,
        *,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
        lowercase: bool = True,
        pad_token: str | None = None,
        weighting: Any = "auto",
        frequencies: str | Mapping[str, float] | None = "zipf",
        a: float = 1e-3,
        unit_norm: bool = True,
        unknown: str = "spelling",
        punctuation: bool = False,
    ):
        self.vectors = vectors
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.pad_token = pad_token
        self.weighting = weighting
        self.frequencies = frequencies
        self.a = a
        self.unit_norm = unit_norm
        self.unknown = unknown
        self.punctuation = punctuation

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __sklearn_clone__(self) -> Self:
        light = copy(self)
        light.vectors = light.frequencies = None
        twin = BaseEstimator.__sklearn_clone__(light)
        twin.vectors, twin.frequencies = self.vectors, self.frequencies
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_table"}

    def __mcsg_state__(self) -> dict[str, Any]:
        """What is saved besides the parameters: the files of the vectors and, after `fit`, what was learnt."""
        is_fitted = hasattr(self, "oov_rate_")
        files = self._files if is_fitted else self._located()
        if not is_fitted:
            return {"files": files} if any(files) else {}
        learnt = getattr(self, "frequencies_", {})
        frequencies = np.array(list(learnt.values()), dtype=np.float64)
        return {"files": files, "oov_rate": self.oov_rate_, "words": list(learnt), "frequencies": frequencies}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Check what was stored and keep it; files are where they were found."""
        files = state["files"]
        self.vectors = with_files(self.vectors, [[file.path for file in own] for own in files])
        if "oov_rate" not in state:
            return
        if not all(own or isinstance(source, str) for source, own in zip(sources_of(self.vectors), files, strict=True)):
            self._table = open_table(self.vectors)  # arrays of the same index, which may be damaged
        if self.frequencies is None:
            check_vocabulary(state["words"])
            self.frequencies_ = dict(zip(state["words"], state["frequencies"].tolist(), strict=True))
            divisor(self.frequencies_)
        check_number(state["oov_rate"], "oov_rate")
        self._files, self._total, self.oov_rate_ = files, 1.0, state["oov_rate"]

    def get_feature_names_out(self, input_features: object = None) -> None:
        """Return None: groups have no feature names, and the next step of a pipeline makes its own.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        names : None
        """
        return None

    def set_output(self, *, transform: str | None = None) -> Self:
        """No effect: the output is always `Groups`.

        Parameters
        ----------
        transform : str, default=None
            Ignored.

        Returns
        -------
        self : EmbeddingVectorizer
        """
        return self

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Open the word vectors and, with ``frequencies=None``, count the words of the texts.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : None
            Ignored.

        Returns
        -------
        self : EmbeddingVectorizer
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Iterable[str], y: object = None) -> Groups:
        """Fit to texts and return them as groups, in one pass over the texts.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : None
            Ignored.

        Returns
        -------
        groups : Groups
        """
        return self._to_groups(self._fit(X), X)

    def transform(self, X: Iterable[str]) -> Groups:
        """Turn texts into groups of weighted vectors.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        groups : Groups
            One per text, on a shared table.
        """
        check_is_fitted(self, "oov_rate_")  # looking at all attributes fails while another thread adds one
        table = self._opened()
        return self._to_groups(self._look_up(self._tokens(X, table), table, stacklevel=2), X)

    def known_words(self, X: Iterable[str]) -> list[list[str]]:
        """Words of texts that have a vector, from the table or from their spelling.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        words : list of lists of str
            The words of each text in order, with the padding last: one word per vector of its group.
        """
        groups = self.transform(X)
        return [words.tolist() for words in groups.split(groups.labels)]

    def _fit(self, X: Iterable[str]) -> Found:
        self._validate_params()
        table = open_table(self.vectors)
        parts = self._weighting_parts(table)
        if self.pad_token is not None and not table.has(self.pad_token):
            raise ValueError(f"pad_token {self.pad_token!r} has no vector: choose a word of the table.")
        if "sif" in parts and isinstance(self.frequencies, str):
            if table.in_order is None:
                raise ValueError(
                    "weighting='sif' with frequencies='zipf' needs words in order of frequency, and a static model has "
                    "no order: pass frequencies as a mapping or None, or weighting='norm'."
                )
            warn_unless_in_order(table.in_order, stacklevel=3)
        tokens = self._tokens(X, table)
        note = self._note_on_language(tokens, table)
        if note:
            warnings.warn(note, stacklevel=3)
        total = divisor(self.frequencies) if isinstance(self.frequencies, Mapping) else 1.0
        found = self._look_up(tokens, table, stacklevel=3)
        if self.frequencies is None:
            counted, counts = np.unique(found.rows, return_counts=True)
            words = found.names(counted)
            shares = counts / max(1, counts.sum())
            self.frequencies_ = dict(zip(words.tolist(), shares.tolist(), strict=True))
        elif hasattr(self, "frequencies_"):
            del self.frequencies_
        self._total = total
        self.oov_rate_ = found.oov_rate
        self._table = table
        self._files = self._located(table)
        return found

    def _opened(self) -> Table:
        """The word vectors, opened again after unpickling or loading; raise ValueError if their files have changed."""
        if not hasattr(self, "_table"):
            table = open_table(self.vectors)
            for own, part in zip(self._files, tables_in(table), strict=True):
                for file, content in zip(own, part.contents, strict=False):  # only files that are read whole have some
                    if file.content != content:
                        raise ValueError(
                            f"{file.path} has changed since the vectorizer was fitted: put back the file, or fit again."
                        )
            self._table = table
        return self._table

    def _located(self, table: Table | None = None) -> tuple[tuple[File, ...], ...]:
        """The files of each source of vectors, where they are now, with the contents that a table was read from."""
        paths = [[os.path.abspath(file) for file in own if file.exists()] for own in files_of(self.vectors)]
        contents = [()] * len(paths) if table is None else [part.contents for part in tables_in(table)]
        return tuple(
            tuple(map(File, own, read) if read else map(File, own)) for own, read in zip(paths, contents, strict=True)
        )

    def _note_on_language(self, tokens: Tokens, table: Table) -> str:
        """A sentence if texts do not look English but the vectors are those installed, which are; otherwise nothing."""
        if not are_installed(self.vectors):
            return ""
        share = share_of_foreign_words(tokens, (lambda word: True) if table.in_order is None else table.in_order.has)
        if not share:
            return ""
        return (
            f"These texts do not look English ({share:.0%} of the words are unknown or of other languages), but the "
            f"word vectors are English, so distances mean little. Pass vectors of their language: vectors= in Python, "
            f"--vectors on the command line."
        )

    def _look_up(self, tokens: Tokens, table: Table, stacklevel: int) -> Found:
        """Rows of the words of all texts."""
        if self.tokenizer is None:
            _warn_without_spaces(tokens, stacklevel + 1)
        return look_up(tokens, table, self._how(table, self.pad_token))

    def _how(self, table: Table, pad_token: str | None) -> LookUp:
        by_length = "norm" in self._weighting_parts(table)
        return LookUp(self.unknown, self.lowercase, self.punctuation, pad_token, by_length)

    def _tokens(self, X: Iterable[str], table: Table) -> Tokens:
        """Tokens of all texts: as they are written, if there are tables that decide about case themselves."""
        how = into_words(self.tokenizer, self.lowercase and isinstance(table, WordTable))
        tokens = X.tokens(how) if isinstance(X, TokenisedTexts) else Tokens.of(check_texts(X), how)
        if not len(tokens):
            raise ValueError("There are no texts: at least one is required (0 sample(s) found).")
        return tokens

    def _to_groups(self, found: Found, X: Any) -> Groups:
        groups = self._weighted(found)
        warn_of_empty_texts(X, groups.sizes == 0, "and become empty groups", stacklevel=3)
        groups.index = X.index if hasattr(X, "iloc") else None
        return groups

    def _weighted(self, found: Found) -> Groups:
        table = found.table
        if not self._weighting_parts(self._opened()) and not self.unit_norm and not found.spelled:
            return packed(table.vectors, found.offsets, found.rows, None, table.names)
        words = _Words.of(found)
        weights = self._weights_of(words, found)
        weights = None if weights is None else weights[words.places]
        if not self.unit_norm and not found.spelled:
            return packed(table.vectors, found.offsets, found.rows, weights, table.names)
        vectors = table.unit_vectors(words.known)[0] if self.unit_norm else table.vectors[words.known]
        if found.spelled:
            made = table.spelled(found.spelled, self.unit_norm).astype(vectors.dtype, copy=False)
            vectors = np.concatenate([vectors, made])
        return packed(vectors, found.offsets, words.places, weights, words.names)

    def _weighting_parts(self, table: Table) -> tuple:
        if self.weighting is None:
            return ()
        if self.weighting == "auto":
            is_static = any(isinstance(part, StaticTable) for part in tables_in(table))
            return ("norm",) if is_static else ("sif", "norm")
        parts = tuple(self.weighting) if isinstance(self.weighting, tuple | list) else (self.weighting,)
        for part in parts:
            if part not in ("sif", "norm") and not callable(part):
                raise ValueError(f"weighting must be 'sif', 'norm', a callable or several of them, got {part!r}.")
        return parts

    def _weights_of(self, words: _Words, found: Found) -> np.ndarray | None:
        """Weights of distinct words; None if all are 1."""
        factors = [self._factor(part, words, found) for part in self._weighting_parts(self._opened())]
        return np.prod(factors, axis=0) if factors else None

    def _factor(self, part: Any, words: _Words, found: Found) -> np.ndarray:
        """One factor of the weights of distinct words."""
        if part == "norm":
            norms = found.table.norms(words.known) / found.table.median_norm
            return np.concatenate([norms, np.ones(len(words.rows) - len(norms))])
        if part == "sif":
            return self.a / (self.a + self._probabilities(words, found.table))
        weights = np.array([part(word) for word in words.names], dtype=np.float64)
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if wrong.any():
            i = int(np.argmax(wrong))
            word = words.names[i]
            raise ValueError(f"weighting gave {weights[i]} for {word!r}: weights must be finite and non-negative.")
        return weights

    def _probabilities(self, words: _Words, table: WordTable) -> np.ndarray:
        """Frequency of words, as a share of all words; by rank, an unknown word is like the last of the table."""
        if isinstance(self.frequencies, str):
            return zipf(table.ranks(words.rows), table.n_ranks)
        given: Mapping[str, float] = self.frequencies_ if self.frequencies is None else self.frequencies
        return np.array([given.get(word, given.get(word.lower(), 0)) for word in words.names]) / self._total


@dataclass(frozen=True, eq=False)
class _Words:
    """The distinct words of texts: first those in the table, then those without a row."""

    rows: np.ndarray  # in ascending order
    known: np.ndarray  # those of the table
    names: np.ndarray
    places: np.ndarray  # of all words of the texts among the distinct ones

    @classmethod
    def of(cls, found: Found) -> _Words:
        n_words = len(found.table.words)
        used = np.zeros(n_words + len(found.spelled), dtype=bool)
        used[found.rows] = True
        rows = np.flatnonzero(used)
        places = (np.cumsum(used, dtype=np.intc) - 1)[found.rows]
        return cls(rows, rows[rows < n_words], found.names(rows), places)


def _warn_without_spaces(tokens: Tokens, stacklevel: int) -> None:
    """Warn if many words are of scripts that do not separate words: whole clauses would count as words."""
    words = [token for token in tokens.distinct if any(map(str.isalpha, token))]
    share = sum(map(lacks_spaces, words)) / max(1, len(words))
    if share > _MANY_WITHOUT_SPACES:
        warnings.warn(
            f"{share:.0%} of the words are in scripts that put no spaces between words, such as Chinese, Japanese and "
            f"Thai, so whole clauses count as words. Put spaces between words, or pass tokenizer=, a function that "
            f"splits a text into words.",
            stacklevel=stacklevel + 1,
        )


def warn_of_empty_texts(texts: Any, empty: np.ndarray, fate: str, stacklevel: int) -> None:
    """Warn if texts have no words, unless they are `TokenisedTexts`; `fate` says what becomes of the `empty` ones."""
    if empty.any() and not isinstance(texts, TokenisedTexts):
        n_empty, first = np.count_nonzero(empty), np.argmax(empty)
        warnings.warn(
            f"{n_empty} of {len(empty)} texts have no words (the first is text {first}) {fate}.",
            stacklevel=stacklevel + 1,
        )


class Coverage(NamedTuple):
    """How much of some texts a vectorizer knows."""

    n_words: np.ndarray  # number of words of each text that have a vector
    oov_rate: float  # share of the tokens that have no vector in the table


def coverage_of(vectorizer: EmbeddingVectorizer, texts: Iterable[str]) -> Coverage:
    """How much of some texts a fitted vectorizer knows."""
    table = vectorizer._opened()
    found = look_up(vectorizer._tokens(texts, table), table, vectorizer._how(table, vectorizer.pad_token))
    return Coverage(np.diff(found.offsets), found.oov_rate)


def note_on_language(vectorizer: EmbeddingVectorizer, texts: Iterable[str]) -> str:
    """A sentence if texts do not look English but the vectors of a fitted vectorizer are; otherwise nothing."""
    table = vectorizer._opened()
    return vectorizer._note_on_language(vectorizer._tokens(texts, table), table)


def share_of_unknown_words(vectorizer: EmbeddingVectorizer, oov_rate: float) -> str:
    """A sentence on the share of words without a vector."""
    share = f"{oov_rate:.1%}" if oov_rate >= 0.001 else "Fewer than 0.1%"
    is_static = has_static_model(vectorizer.vectors)
    if is_static and has_order(vectorizer.vectors):
        return f"{share} of the words are not in the table of words and are compared by their pieces."
    fate = "are compared by their spelling" if vectorizer.unknown == "spelling" and not is_static else "are left out"
    return f"{share} of the words have no vector and {fate}."


class WeightedTokens(NamedTuple):
    """The tokens of texts, and the mean weight of the words of each distinct token; 1 for tokens without words."""

    tokens: Tokens
    weights: np.ndarray


def weighted_tokens(vectorizer: EmbeddingVectorizer, texts: Iterable[str]) -> WeightedTokens:
    """The tokens of texts as a fitted vectorizer reads them, with its weights."""
    table = vectorizer._opened()
    tokens = vectorizer._tokens(texts, table)
    every = np.arange(len(tokens.distinct) + 1, dtype=np.intc)
    alone = Tokens(tokens.distinct, every[:-1], every, tokens.looked_up)
    found = look_up(alone, table, vectorizer._how(table, pad_token=None))
    words = _Words.of(found)
    weights = vectorizer._weights_of(words, found)
    sizes = np.diff(found.offsets)
    means = np.ones(len(sizes))
    if weights is not None:
        filled = sizes > 0
        means[filled] = np.add.reduceat(weights[words.places], found.offsets[:-1][filled]) / sizes[filled]
    return WeightedTokens(tokens, means)
