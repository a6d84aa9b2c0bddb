"""Kinds of texts in clusters: does a cluster hold more of one kind, and does its content differ between kinds?

kinds, clusters --2 x 2 tables--> Fisher's exact test of each cluster and kind
texts of a cluster --of one kind, and of the others--> `compare_samples`, and the words that make the difference
p-values of either question --Holm--> corrected p-values
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import fisher_exact
from sklearn.base import clone

from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.parallel import progress
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.checks import is_missing
from sklearn_mcsg.samples import adjust_pvalues, compare_samples
from sklearn_mcsg.text._deciding import deciding_words
from sklearn_mcsg.text._kind_table import KindComparison, KindInCluster

_MOST_KINDS = 12
_MOST_TEXTS = 2000  # of a cluster whose content is compared; of more, a random sample
_FEWEST_TEXTS = 2  # of each side, because texts are exchanged
_PERMUTATIONS = 999, 9999  # least and most random divisions of the texts of a cluster
_PER_TEST = 100  # divisions for each test of the family, so that corrected p-values can be as small as 0.01
_N_WORDS = 6  # of each side of a difference


def check_kinds(
    by: Any, n_texts: int, name: str = "by", places: list[str] | None = None
) -> tuple[list[str], np.ndarray]:
    """The kinds, in order, and the kind of each text as a number; raise if values are missing, or have too many kinds.

    `places` says where each text is, for the error about missing values.
    """
    if isinstance(by, str) or not hasattr(by, "__iter__"):
        raise TypeError(f"{name} must hold one kind per text, such as a column of a table, got {by!r:.60}.")
    values = list(by)
    if len(values) != n_texts:
        raise ValueError(f"{name} must hold one kind per text: got {len(values)} values for {n_texts} texts.")
    missing = [i for i, value in enumerate(values) if _is_missing(value)]
    if missing:
        place = f"position {missing[0]}" if places is None else places[missing[0]]
        raise ValueError(
            f"{name} has no value for {len(missing)} of {n_texts} texts, the first at {place}: leave these texts out, "
            f"or give them a kind of their own, such as 'unknown'."
        )
    kinds, codes = np.unique([str(value) for value in values], return_inverse=True)
    if len(kinds) < 2:
        raise ValueError(f"{name} has only one kind of text, {str(kinds[0])!r}: there is nothing to compare.")
    if len(kinds) > _MOST_KINDS:
        raise ValueError(
            f"{name} has {len(kinds)} different values, and at most {_MOST_KINDS} kinds are compared: merge rare "
            f"kinds into one, such as 'other', and group numbers or dates into a few classes."
        )
    return kinds.tolist(), codes


def _is_missing(value: Any) -> bool:
    return not value.strip() if isinstance(value, str) else is_missing(value)


@dataclass(frozen=True, eq=False)
class _Contrast:
    """Texts of one kind in one cluster, and the others.

    Attributes
    ----------
    cluster, kind : int
        The cluster and the kind.
    table : ndarray of shape (2, 2)
        Texts of this kind and of others: those of the cluster in the first row, the rest in the second.
    first, second : ndarray of int
        Texts of the cluster that have words: those of this kind, and the others.
    """

    cluster: int
    kind: int
    table: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def is_tested(self) -> bool:
        """Whether there are enough texts to compare contents."""
        return min(len(self.first), len(self.second)) >= _FEWEST_TEXTS


def compare_kinds(
    labels: np.ndarray,
    titles: list[str],
    groups: Groups,
    embedding: GroupEmbedding,
    kinds: list[str],
    codes: np.ndarray,
    *,
    n_permutations: int | None,
    random_state: np.random.RandomState,
    verbose: int,
) -> KindComparison:
    """Compare the kinds of texts in clusters: see `TextClusters.compare`."""
    contrasts = list(_contrasts(labels, codes, groups.totals > 0, random_state))
    least, most = _PERMUTATIONS
    if n_permutations is None:
        n_permutations = min(most, max(least, _PER_TEST * sum(contrast.is_tested for contrast in contrasts) - 1))
    embedding = clone(embedding).set_params(n_components=None)  # a cluster may have fewer texts than components
    contents = []
    with progress(verbose, len(contrasts), "comparing contents", " tests") as advance:
        for contrast in contrasts:
            contents.append(_content(contrast, groups, embedding, n_permutations, random_state))
            advance(1)
    shares = _with_adjusted([float(fisher_exact(contrast.table).pvalue) for contrast in contrasts])
    tests = _with_adjusted([pvalue for pvalue, *_ in contents])
    rows = [
        KindInCluster(contrast.cluster, kinds[contrast.kind], *_shares(contrast.table), *share, *test, *words)
        for contrast, share, test, (_, *words) in zip(contrasts, shares, tests, contents, strict=True)
    ]
    return KindComparison(kinds, titles, rows)


def _contrasts(
    labels: np.ndarray, codes: np.ndarray, has_words: np.ndarray, random_state: np.random.RandomState
) -> Iterator[_Contrast]:
    """All kinds in all clusters; of two kinds, the one that a cluster holds more of than the others do."""
    counts = np.zeros((labels.max() + 1, codes.max() + 1), dtype=int)
    np.add.at(counts, (labels, codes), 1)
    for cluster, inside in enumerate(counts):
        members = np.flatnonzero((labels == cluster) & has_words)
        some = np.sort(random_state.permutation(members)[:_MOST_TEXTS])
        both = np.array([inside, counts.sum(axis=0) - inside])
        tables = [np.column_stack([own, both.sum(axis=1) - own]) for own in both.T]
        shown = list(range(len(tables)))
        if len(tables) == 2:
            (own, others), (own_elsewhere, others_elsewhere) = tables[0].tolist()
            shown = [0] if own * others_elsewhere >= others * own_elsewhere else [1]
        for kind in shown:
            yield _Contrast(cluster, kind, tables[kind], some[codes[some] == kind], some[codes[some] != kind])


def _shares(table: np.ndarray) -> tuple[int, float, float]:
    """Number of texts of the kind in the cluster, and its shares there and elsewhere."""
    (own, others), (own_elsewhere, others_elsewhere) = table.tolist()
    elsewhere = own_elsewhere + others_elsewhere
    return own, own / (own + others), own_elsewhere / elsewhere if elsewhere else np.nan


def _content(
    contrast: _Contrast,
    groups: Groups,
    embedding: GroupEmbedding,
    n_permutations: int,
    random_state: np.random.RandomState,
) -> tuple[float, list[str], list[str]]:
    """P-value of the difference of contents, and the words that either side has more often."""
    if not contrast.is_tested:
        return np.nan, [], []
    samples = groups[contrast.first], groups[contrast.second]
    found = compare_samples(*samples, similarity=embedding, n_permutations=n_permutations, random_state=random_state)
    words = deciding_words(found, Groups.concatenate(samples))
    more, less = ([word.word for word in words if (word.first > word.second) == is_more] for is_more in (True, False))
    return found.pvalue, more[:_N_WORDS], less[:_N_WORDS]


def _with_adjusted(pvalues: list[float]) -> list[tuple[float, float]]:
    """P-values, each with the corrected one; NaN stands for tests that were not made, which do not count."""
    values = np.array(pvalues)
    made = ~np.isnan(values)
    adjusted = np.full(len(values), np.nan)
    adjusted[made] = adjust_pvalues(values[made])
    return list(zip(values.tolist(), adjusted.tolist(), strict=True))
