"""Outputs: the values that can be returned for a pair of groups, with the properties of each.

Every output is a function of the criterion of the union and of the two prepared groups. The tests run over the registry
`OUTPUTS` at the end of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.engine.prepared import Prepared
from sklearn_mcsg.groups.arrays import namespace_of
from sklearn_mcsg.likelihoods import Likelihood

# Of the criteria subtracted, in double precision: smaller distances are those of equal groups. In single precision
# compiled code leaves about 1e-7 of a typical distance between equal groups.
_ROUNDING = 4e-12
NO_DIVERGENCE = 1e-9  # in squared standard deviations; smaller divergences are rounding errors


@dataclass(frozen=True)
class Output:
    """One output: how it is computed, and its properties.

    Attributes
    ----------
    name : str
        Name of the output.
    compute : callable
        ``compute(union, left, right)`` from the criterion of the union, which it may overwrite, and the two `Prepared`
        sides.
    label : str
        Label in figures and reports.
    higher_is_nearer : bool
        Whether larger values mean more similar groups; otherwise it is a distance.
    diagonal : float or None
        Value of a group compared with itself, if it is the same for all groups.
    needs_doubled : bool
        Whether it needs the criterion of each group united with itself.
    needs_references : bool
        Whether it needs the mean divergence to reference groups.
    is_kernel : bool
        Whether it compares balanced groups, relative to the median distance of the reference groups.
    can_be_embedded : bool
        Whether it depends mainly on the models of the groups, not on their sizes, so that coordinates can represent it.
    is_angle : bool
        Whether it depends on the directions of two groups only, as seen from the centre of the corpus.
    null_power : int
        For random pairs, its root of this order is close to normal: 3 for sums of squares (Wilson and Hilferty).
    """

    name: str
    compute: Callable[[np.ndarray, Prepared, Prepared], np.ndarray]
    label: str
    higher_is_nearer: bool = False
    diagonal: float | None = 0.0
    needs_doubled: bool = True
    needs_references: bool = False
    is_kernel: bool = False
    can_be_embedded: bool = False
    is_angle: bool = False
    null_power: int = 3

    @property
    def needs_corpus(self) -> bool:
        """Whether something has to be learnt from a corpus."""
        return self.needs_references or self.is_kernel

    def is_usable_for(self, likelihood: Likelihood, criterion: Criterion) -> bool:
        """Whether a likelihood under a criterion has this output: kernels need a theorem."""
        return not self.is_kernel or (likelihood.has_kernel and criterion.has_kernel)

    def as_distance(self, values: np.ndarray) -> np.ndarray:
        """Values that are smaller for nearer groups."""
        return -values if self.higher_is_nearer else values

    def clear_same(self, matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Set the values of groups compared with themselves exactly, in a part of a symmetric matrix."""
        if self.diagonal is not None:
            matrix[rows[:, None] == columns] = self.diagonal
        return matrix


def similarity(union: np.ndarray, left: Prepared, right: Prepared) -> np.ndarray:
    """Criterion of two models minus criterion of one; overwrites `union`."""
    union *= -1
    union += left.information
    union += right.information
    return union


def distance(union: np.ndarray, left: Prepared, right: Prepared) -> np.ndarray:
    """How much less similar two groups are to each other than each is to itself, on average."""
    apart = union - 0.5 * (left.doubled + right.doubled)
    return namespace_of(union).where(apart > _ROUNDING * abs(union), apart, 0.0)


def divergence(union: np.ndarray, left: Prepared, right: Prepared) -> np.ndarray:
    """Distance relative to the number of vectors."""
    return distance(union, left, right) * (1 / left.n + 1 / right.n)


def centered(union: np.ndarray, left: Prepared, right: Prepared) -> np.ndarray:
    """One minus the cosine of the angle between two groups, seen from the centre of the reference groups.

    A group that is nearer to the references than their centre has no direction: its cosine with any other group is 0,
    as that of a zero vector is in scikit-learn. Groups that do not differ are at distance 0 all the same.
    """
    apart = (union - 0.5 * (left.doubled + right.doubled)) * (1 / left.n + 1 / right.n)
    xp = namespace_of(union)
    inner = 0.5 * (left.to_references + right.to_references - left.among_references - xp.clip(apart, 0.0, None))
    squared = [xp.clip(side.to_references - 0.5 * side.among_references, 0.0, None) for side in (left, right)]
    norm = xp.sqrt(squared[0] * squared[1])
    cosine = inner / xp.where(norm > NO_DIVERGENCE, norm, float("inf"))
    return xp.where(abs(apart) > NO_DIVERGENCE, 1 - xp.clip(cosine, -1.0, 1.0), 0.0)


def kernel(union: np.ndarray, left: Prepared, right: Prepared) -> np.ndarray:
    """Exponential of the negative distance of balanced groups, in units of the median distance of the references."""
    return namespace_of(union).exp(-distance(union, left, right) / left.scale)


def choose_output(name: str, allowed: Sequence[str] | None = None) -> Output:
    """The output with a given name."""
    allowed = list(OUTPUTS) if allowed is None else allowed
    if name not in allowed:
        raise ValueError(f"output must be one of {sorted(allowed)}, got {name!r}.")
    return OUTPUTS[name]


OUTPUTS = {
    output.name: output
    for output in (
        Output("similarity", similarity, "similarity", higher_is_nearer=True, diagonal=None, needs_doubled=False),
        Output("distance", distance, "distance"),
        Output("divergence", divergence, "divergence", can_be_embedded=True),
        Output(
            "centered",
            centered,
            "centered distance, from 0 to 2",
            needs_references=True,
            can_be_embedded=True,
            is_angle=True,
            null_power=1,
        ),
        Output("kernel", kernel, "kernel, from 0 to 1", higher_is_nearer=True, diagonal=1.0, is_kernel=True),
    )
}
