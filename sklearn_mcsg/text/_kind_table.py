"""The kinds of texts in clusters as a table: shares, p-values, and the words that make a difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_SHOWN_WORDS = 4  # of each side of a difference, in a line
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
        nothing was tested, because fewer than two texts of the kind, or fewer than two others, have words.
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
        n_clusters = f"{len(self.titles)} cluster{'' if len(self.titles) == 1 else 's'}"
        lines = [f"Kinds of texts in {n_clusters}. P-values are corrected for the number of tests."]
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
