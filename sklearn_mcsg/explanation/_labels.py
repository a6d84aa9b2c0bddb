"""Names of two groups and of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn_mcsg.groups import Groups

NAMES = "A", "B"


def pair_labels(labels: Any, groups: Sequence[Groups]) -> tuple[list[str], list[str]]:
    """Names of the vectors of two groups: the given ones, their own labels, or positions."""
    if labels is None:
        left, right = (_own_labels(name, group) for name, group in zip(NAMES, groups, strict=True))
        return left, right
    sides = [labels] if isinstance(labels, str) else list(labels)
    if len(sides) != 2 or any(isinstance(side, str) for side in sides):
        raise ValueError(f"labels must be two lists of labels, for a and for b, got {labels!r}.")
    for name, side, group in zip("ab", sides, groups, strict=True):
        if len(side) != group.n_rows:
            raise ValueError(f"{name} has {group.n_rows} vectors but {len(side)} labels.")
    left, right = ([str(label) for label in side] for side in sides)
    return left, right


def _own_labels(name: str, group: Groups) -> list[str]:
    """The labels of a group, or positions where labels are missing."""
    labels = [None] * group.n_rows if group.labels is None else group.labels
    return [f"{name}[{i}]" if label is None else str(label) for i, label in enumerate(labels)]
