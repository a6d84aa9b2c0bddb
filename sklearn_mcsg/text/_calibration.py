"""P-values for pairs of texts: how many random pairs of a corpus are at least as near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_mcsg._checks import check_positive_integer
from sklearn_mcsg.engine.chance import FEW_GROUPS, N_PAIRS, NullDistribution, pair_size, random_pairs
from sklearn_mcsg.engine.comparer import ComparesGroups
from sklearn_mcsg.engine.outputs import OUTPUTS
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.similarity.pvalues import HasPValues
from sklearn_mcsg.text._tokenised import TokenisedTexts


@dataclass(frozen=True, eq=False, repr=False)
class TextCalibration(HasPValues):
    """Distances of random pairs of a corpus, with which pairs of texts are compared.

    `calibrate_texts` makes it. A p-value is ``(1 + k) / (1 + n)``, if `k` of `n` random pairs of similar length are at
    least as near. It says how rare a distance is among pairs *of this corpus*: pairs of texts of another kind have
    other distances by chance.

    Attributes
    ----------
    pipeline : Pipeline
        The pipeline that compares texts.
    null : NullDistribution
        Sizes and distances of the random pairs.
    corpus : str
        What the corpus is called in sentences.
    n_texts : int
        Number of different texts that random pairs were drawn from.
    n_pairs : int
        Number of random pairs.
    """

    pipeline: Pipeline
    null: NullDistribution
    corpus: str
    n_texts: int

    @property
    def n_pairs(self) -> int:
        """Number of random pairs."""
        return len(self.null.distance)

    def pvalue(self, X: str | Sequence[str] | Groups, Y: str | Sequence[str] | Groups) -> Any:
        """Share of random pairs of similar length that are at least as near as each given pair.

        Parameters
        ----------
        X, Y : str, list of str, or Groups
            Texts, compared row by row; a single text is compared with all texts of the other side.

        Returns
        -------
        p : ndarray of shape (n_pairs,), or float for two single texts
        """
        one, other = self._read(X, "X"), self._read(Y, "Y")
        n = max(len(one), len(other))
        if not (len(one) in (1, n) and len(other) in (1, n)):
            raise ValueError(f"X and Y must have the same number of texts, got {len(one)} and {len(other)}.")
        left, right = np.arange(n) % len(one), np.arange(n) % len(other)
        groups = Groups.concatenate([one, other])
        p = self.null.pvalue(*_compare(self.pipeline[-1], groups, left, len(one) + right))
        return float(p[0]) if isinstance(X, str) and isinstance(Y, str) else p

    def _null_distribution(self) -> NullDistribution:
        return self.null

    def threshold(self, level: float = 0.01) -> float:
        """The distance that separates the nearest random pairs, a share `level` of all, from the others.

        It is for tools that take one number. `similar` is more accurate, because it compares pairs of similar length,
        and a threshold ignores length.

        Parameters
        ----------
        level : float, default=0.01
            Accepted rate of false positives: random pairs that are nearer than the threshold.

        Returns
        -------
        threshold : float
            In the output of the pipeline; for an embedding, one minus the cosine. Pairs that are nearer are called
            similar.
        """
        self.null.check_level(level)
        p_by_rank = np.arange(1, self.n_pairs + 1) / (1 + self.n_pairs)
        rank = np.searchsorted(p_by_rank, level, "right") - 1
        return float(OUTPUTS[self.null.output].as_distance(np.partition(self.null.distance, rank)[rank]))

    def sentence(self, p: float) -> str:
        """A p-value in words, with the corpus that it refers to.

        Parameters
        ----------
        p : float
            A p-value, as `pvalue` returns it.

        Returns
        -------
        sentence : str
        """
        percent = f"{100 * p:{'.2g' if p < 0.1 else '.0f'}} %"
        return f"{percent} of random pairs of similar length from {self.corpus} are at least as near"

    def __repr__(self) -> str:
        return f"TextCalibration({self.n_pairs:,} random pairs from {self.corpus}, {self.n_texts:,} texts)"

    def _read(self, texts: str | Sequence[str] | Groups, name: str) -> Groups:
        """Texts as groups, each of which must have a word."""
        groups = _look_up(self.pipeline, [texts] if isinstance(texts, str) else texts)
        if not len(groups):
            raise ValueError(f"{name} must have at least one text.")
        if not groups.totals.all():
            raise ValueError(f"Text {int(np.argmin(groups.totals))} of {name} has no words: it cannot be compared.")
        return groups


def calibrate_texts(
    pipeline: Pipeline,
    corpus: Sequence[str] | Groups,
    *,
    name: str | None = None,
    cv: int | None = None,
    n_pairs: int = N_PAIRS,
    random_state: int | np.random.RandomState | None = None,
) -> TextCalibration:
    """Compare random pairs of texts, to give p-values to pairs of texts.

    Parameters
    ----------
    pipeline : Pipeline
        Pipeline for texts: it is fitted and ends with a `GroupEmbedding` or with a similarity of groups, as
        `make_text_embedding` and `make_text_similarity` build it.
    corpus : list of str, or Groups
        Texts of the kind that will be asked about, at least 50 different ones: p-values are only right for pairs of
        texts of this kind. `Groups` that the steps before the last one made of texts are accepted, too. Texts without
        words are left out.
    name : str, default=None
        What to call the corpus in sentences, such as "headlines.txt"; ``None`` counts the texts, as in
        "the 360 texts of the corpus".
    cv : int, default=None
        Number of folds, for a corpus that the pipeline was fitted to, when *other* texts will be asked about. The texts
        of each fold are then compared as new texts are, by a copy of the last step that is fitted to the other folds.
        ``None`` compares all texts by the pipeline as it is: right for texts that it was not fitted to, and for
        questions about the fitted texts themselves. P-values of other texts are then too small in a small corpus.
    n_pairs : int, default=20_000
        Number of random pairs.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: pairs and folds. Pass an int for reproducible results.

    Returns
    -------
    calibration : TextCalibration
        With `pvalue`, `similar` and `threshold`.

    Examples
    --------
    >>> from sklearn_mcsg import calibrate_texts, make_text_embedding
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> texts = load_short_texts().data
    >>> pipeline = make_text_embedding().fit(texts)
    >>> calibration = calibrate_texts(pipeline, texts, cv=5, random_state=0)
    >>> p = calibration.pvalue("A cat slept on the sofa.", "The kitten naps in an armchair.")
    >>> p < 0.02
    True
    >>> calibration.similar("A cat slept on the sofa.", ["The kitten naps in an armchair.", "Shares fell."], level=0.05)
    array([ True, False])
    """
    last = _last_step(pipeline)
    check_positive_integer(n_pairs, "n_pairs")
    if isinstance(corpus, str):
        raise TypeError("corpus must be a list of texts, got one text.")
    groups = _look_up(
        pipeline, corpus if isinstance(corpus, Groups) else list(dict.fromkeys(TokenisedTexts.of(corpus)))
    )
    groups = groups[groups.totals > 0]
    n = len(groups)
    if n < FEW_GROUPS:
        raise ValueError(f"p-values need at least {FEW_GROUPS} different texts that have words, got {n}.")
    if cv is not None and not (isinstance(cv, Integral) and 2 <= cv <= n // 2):
        raise ValueError(f"cv must be an integer between 2 and {n // 2}, half the number of texts, got {cv!r}.")
    state = check_random_state(random_state)
    parts = []
    for fitted, some in _folds(last, groups, cv, state):
        left, right = random_pairs(len(some), -(-n_pairs // (cv or 1)), state)
        parts.append(_compare(fitted, some, left, right))
    size, distance = (np.concatenate(values) for values in zip(*parts, strict=True))
    null = NullDistribution.of(size, distance, getattr(last, "output", "distance"))
    return TextCalibration(pipeline, null, name or f"the {n:,} texts of the corpus", n)


def _last_step(pipeline: Any) -> Any:
    """The last step of a pipeline for texts."""
    if isinstance(pipeline, Pipeline) and len(pipeline) > 1:
        last = pipeline[-1]
        if isinstance(last, ComparesGroups):
            check_is_fitted(last)
            return last
    raise TypeError(
        "calibrate_texts needs a fitted pipeline that ends with a GroupEmbedding or a similarity of groups, as "
        "make_text_embedding and make_text_similarity build it."
    )


def _look_up(pipeline: Pipeline, texts: Sequence[str] | Groups) -> Groups:
    """Texts as groups; what is done with texts without words is the caller's to say."""
    return texts if isinstance(texts, Groups) else pipeline[:-1].transform(TokenisedTexts.of(texts))


def _folds(last: Any, groups: Groups, cv: int | None, state: np.random.RandomState) -> Iterator[tuple[Any, Groups]]:
    """Groups to compare, with what compares them: without `cv`, all of them, by what was fitted."""
    if cv is None:
        yield last, groups
        return
    fold = state.permutation(np.arange(len(groups)) % cv)
    for k in range(cv):
        yield clone(last).fit(groups[fold != k]), groups[fold == k]


def _compare(last: Any, groups: Groups, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and distances of pairs of groups, given by their indices."""
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    groups, (left, right) = groups[used], places.reshape(2, -1)
    comparer = last.__mcsg_comparer__(last.__mcsg_groups__(groups))
    values = comparer.compare_among_candidates(left, right[:, None])[:, 0]
    size = pair_size(groups.totals[left], groups.totals[right])
    return size, comparer.output.as_distance(values.astype(np.float64))
