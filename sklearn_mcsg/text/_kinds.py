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

_MOST_KINDS = 12
_MOST_TEXTS = 2000  # of a cluster whose content is compared; of more, a random sample
_FEWEST_TEXTS = 2  # of each side, because texts are exchanged
_PERMUTATIONS = 999, 9999  # least and most random divisions of the texts of a cluster
_PER_TEST = 100  # divisions for each test of the family, so that corrected p-values can be as small as 0.01
_N_WORDS = 6  # of each side of a difference
_SHOWN_WORDS = 4  # of these, in a line
_LEVEL = 0.05  # of corrected p-values, up to which the words of a difference are shown


@dataclass(frozen=True, eq=False)
class KindInCluster:
    """Texts of one kind in one cluster, compared with the other texts.

    Attributes
    ----------
    cluster : int
        The cluster's label.
    kind : str
        The kind.
    n_texts : int
        Number of texts of this kind in the cluster.
    share : float
        Share of the texts of the cluster that are of this kind.
    share_elsewhere : float
        Share of the texts of all other clusters that are of this kind; NaN if there is no other cluster.
    share_pvalue : float
        P-value of Fisher's exact test, two-sided, of whether the two shares differ.
    share_adjusted : float
        The same, corrected by Holm's method for all shares that are compared.
    content_pvalue : float
        P-value of whether texts of this kind differ from the other texts of the cluster: see `compare_samples`. NaN if
        there are fewer than two texts of either side, which have words: then nothing was tested.
    content_adjusted : float
        The same, corrected by Holm's method for all contents that are compared.
    words : list of str
        Words that make this difference and that texts of this kind have more often than the others, the most
        important first. They mean little unless `content_adjusted` is small.
    other_words : list of str
        Words that make this difference and that the other texts of the cluster have more often.
    """

    cluster: int
    kind: str
    n_texts: int
    share: float
    share_elsewhere: float
    share_pvalue: float
    share_adjusted: float
    content_pvalue: float
    content_adjusted: float
    words: list[str]
    other_words: list[str]

    @property
    def difference(self) -> str:
        """The first words that texts of the kind have more often and less often; empty without evidence at .05."""
        if not self.content_adjusted <= _LEVEL:
            return ""
        sides = (("more", self.words), ("less", self.other_words))
        return "; ".join(f"{how} {', '.join(words[:_SHOWN_WORDS])}" for how, words in sides if words)


@dataclass(frozen=True, eq=False, repr=False)
class KindComparison:
    """Kinds of texts in clusters, as `TextClusters.compare` finds them; a sequence of its rows.

    Attributes
    ----------
    kinds : list of str
        The kinds of texts, in alphabetical order.
    titles : list of str
        Names or words of the clusters.
    rows : list of KindInCluster
        One for each cluster and kind. If there are two kinds, one for each cluster, of the kind that it holds more of
        than the others do: the tests of the other kind are the same.
    """

    kinds: list[str]
    titles: list[str]
    rows: list[KindInCluster]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[KindInCluster]:
        return iter(self.rows)

    def __getitem__(self, i: int) -> KindInCluster:
        return self.rows[i]

    def __repr__(self) -> str:
        heads = "cluster", "kind", "share", "elsewhere", "p", "content p", "words"
        cells = [heads, *(self._cells(i) for i in range(len(self)))]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [f"Kinds of texts in {len(self.titles)} clusters. P-values are corrected for the number of tests."]
        for row in cells:
            left, right = zip(row[:2], widths[:2], strict=True), zip(row[2:6], widths[2:6], strict=True)
            padded = [*(f"{cell:{width}}" for cell, width in left), *(f"{cell:>{width}}" for cell, width in right)]
            lines.append("  ".join([*padded, row[6]]).rstrip())
        return "\n".join(lines)

    def _cells(self, i: int) -> tuple[str, ...]:
        row = self.rows[i]
        is_first = i == 0 or self.rows[i - 1].cluster != row.cluster
        return (
            f"{row.cluster} {self.titles[row.cluster]}" if is_first else "",
            row.kind,
            f"{100 * row.share:.0f} %",
            "-" if np.isnan(row.share_elsewhere) else f"{100 * row.share_elsewhere:.0f} %",
            shown_pvalue(row.share_adjusted),
            shown_pvalue(row.content_adjusted),
            row.difference,
        )


def shown_pvalue(pvalue: float) -> str:
    """A p-value with three digits, or a dash if nothing was tested."""
    if np.isnan(pvalue):
        return "-"
    return "<.001" if pvalue < 0.0005 else f"{pvalue:.3f}"


def check_kinds(
    by: Any, n_texts: int, name: str = "by", places: list[str] | None = None
) -> tuple[list[str], np.ndarray]:
    """The kinds, in order, and the kind of each text as a number; raise if values are missing, or have too many kinds.

    `places` says where each text is, for the error about missing values.
    """
    if isinstance(by, str) or not hasattr(by, "__iter__"):
        raise TypeError(f"{name} must hold one kind per text, such as a column of a table, got {by!r}.")
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
            f"{name} has {len(kinds)} different values, and at most {_MOST_KINDS} kinds are compared: join rare kinds "
            f"to one, such as 'other', or make a few classes of numbers and dates."
        )
    return kinds.tolist(), codes


def _is_missing(value: Any) -> bool:
    return not value.strip() if isinstance(value, str) else is_missing(value)


# The tests ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Side:
    """One kind in one cluster.

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
    sides = list(_sides(labels, codes, groups.totals > 0, random_state))
    least, most = _PERMUTATIONS
    if n_permutations is None:
        n_permutations = min(most, max(least, _PER_TEST * sum(side.is_tested for side in sides) - 1))
    comparer = clone(embedding).set_params(n_components=None)  # a cluster may have fewer texts than components
    contents = []
    with progress(verbose, len(sides), "comparing contents", " tests") as advance:
        for side in sides:
            contents.append(_content(side, groups, comparer, n_permutations, random_state))
            advance(1)
    shares = _with_adjusted([float(fisher_exact(side.table).pvalue) for side in sides])
    tests = _with_adjusted([pvalue for pvalue, *_ in contents])
    rows = [
        KindInCluster(side.cluster, kinds[side.kind], *_shares(side.table), *share, *test, *words)
        for side, share, test, (_, *words) in zip(sides, shares, tests, contents, strict=True)
    ]
    return KindComparison(kinds, titles, rows)


def _sides(
    labels: np.ndarray, codes: np.ndarray, has_words: np.ndarray, random_state: np.random.RandomState
) -> Iterator[_Side]:
    """All kinds in all clusters; of two kinds, the one that a cluster holds more of than the others do."""
    counts = np.zeros((labels.max() + 1, codes.max() + 1), dtype=int)
    np.add.at(counts, (labels, codes), 1)
    for cluster, inside in enumerate(counts):
        members = np.flatnonzero((labels == cluster) & has_words)
        some = np.sort(random_state.permutation(members)[:_MOST_TEXTS])
        both = np.array([inside, counts.sum(axis=0) - inside])
        tables = [np.column_stack([own, both.sum(axis=1) - own]) for own in both.T]
        shown = range(len(tables))
        if len(tables) == 2:
            (own, others), (own_elsewhere, others_elsewhere) = tables[0].tolist()
            shown = range(1) if own * others_elsewhere >= others * own_elsewhere else range(1, 2)
        for kind in shown:
            yield _Side(cluster, kind, tables[kind], some[codes[some] == kind], some[codes[some] != kind])


def _shares(table: np.ndarray) -> tuple[int, float, float]:
    """Number of texts of the kind in the cluster, and its shares there and elsewhere."""
    (own, others), (own_elsewhere, others_elsewhere) = table.tolist()
    elsewhere = own_elsewhere + others_elsewhere
    return own, own / (own + others), own_elsewhere / elsewhere if elsewhere else np.nan


def _content(
    side: _Side, groups: Groups, comparer: GroupEmbedding, n_permutations: int, random_state: np.random.RandomState
) -> tuple[float, list[str], list[str]]:
    """P-value of the difference of contents, and the words that either side has more often."""
    if not side.is_tested:
        return np.nan, [], []
    samples = groups[side.first], groups[side.second]
    found = compare_samples(*samples, similarity=comparer, n_permutations=n_permutations, random_state=random_state)
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
