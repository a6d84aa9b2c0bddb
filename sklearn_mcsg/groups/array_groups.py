"""Groups of arrays of other libraries: what touches much data runs where the arrays are.

    vectors --moments--> Statistics --prepare--> Prepared ------> all pairs --> matrix
    (device)             (host)                  (host)           (device)

One row per group lies between the two steps on the device. NumPy computes it in float64, like everything that is learnt
from a corpus, so that results are those of NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from sklearn_mcsg._memory import DEVICE, count_within
from sklearn_mcsg.groups._groups import Groups, offsets_of, places_in_order
from sklearn_mcsg.groups._validation import check_collection, raise_of_values
from sklearn_mcsg.groups.arrays import ArrayKind, is_array, is_sequence, to_numpy
from sklearn_mcsg.groups.checks import check_widths, warn_of_rows, warn_of_zeros


@dataclass(frozen=True, eq=False)
class ArrayGroups:
    """Groups whose vectors are arrays of another library.

    Attributes
    ----------
    arrays : array of shape (n_groups, n_vectors, n_features), or list of arrays of shape (n_i, n_features)
        The vectors.
    kind : ArrayKind
        Library, device and precision.
    sizes : ndarray of int
        Number of vectors of each group.
    n_features : int
        Width of the vectors.
    name : str
        Name of the input in error messages.
    first : int
        Number of the first group in error messages.
    """

    arrays: Any
    kind: ArrayKind
    sizes: np.ndarray
    n_features: int
    name: str = "X"
    first: int = 0

    @classmethod
    def read(cls, X: Any, *, allow_empty: bool = False, name: str = "X", rows: bool = False) -> ArrayGroups:
        """Turn an array or a list of arrays into validated groups; their values are checked when they are read."""
        if is_sequence(X):
            arrays = list(X)
            kinds = [type(array).__name__ for array in arrays]
            for i, array in enumerate(arrays):
                if is_array(array) != is_array(arrays[0]):
                    raise TypeError(f"Group {i} is of type {kinds[i]}, but group 0 of type {kinds[0]}: convert one.")
            kind = ArrayKind.of(arrays)
            shapes = [_checked_shape(array, f"Group {i}", kind, (2,)) for i, array in enumerate(arrays)]
            check_widths({i: width for i, (_, width) in enumerate(shapes)}, 0)
            groups = cls(arrays, kind, np.array([size for size, _ in shapes]), shapes[0][1], name)
        else:
            kind = ArrayKind.of([X])
            shape = _checked_shape(X, name, kind, (2, 3))
            if len(shape) == 2:
                X = X[:, None, :]
                if not rows:
                    warn_of_rows(shape[0], name)
            groups = cls(X, kind, np.full(shape[0], X.shape[1]), shape[-1], name)
        check_collection(groups, allow_empty)
        groups._warn_of_padding()
        return groups

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, key: slice) -> ArrayGroups:
        arrays = self.arrays[key] if isinstance(self.arrays, list) else self.arrays[key, ...]
        return replace(self, arrays=arrays, sizes=self.sizes[key], first=self.first + key.indices(len(self))[0])

    @property
    def totals(self) -> np.ndarray:
        """Total weight of each group: its number of vectors."""
        return self.sizes

    @property
    def n_rows(self) -> int:
        """Number of vectors of all groups."""
        return int(self.sizes.sum())

    @property
    def output_dtype(self) -> np.dtype:
        """The precision of results, as NumPy names it."""
        return self.kind.dtype

    @property
    def vectors(self) -> Any:
        """The vectors of the first group, which have the features of all."""
        return self.arrays[0] if isinstance(self.arrays, list) else self.arrays[0, ...]

    def moments(self, lines: bool = False) -> tuple[np.ndarray, ...]:
        """Sizes, means and centred sums of squares of all groups; 0 for a group without vectors.

        With `lines`, the squares are those of deviations from the line that fits a group best along the places of its
        vectors. The slope of the line, the mean of the places and their centred sum of squares follow.
        """
        xp = self.kind.xp
        mean, squares, slope = np.zeros((3, len(self), self.n_features))
        reach = np.zeros(len(self))
        for rows, stack in self._stacks():
            vectors = xp.astype(stack, self.kind.working, copy=False)
            centre = xp.mean(vectors, axis=1)
            mean[rows] = to_numpy(centre)
            deviation = vectors - centre[:, None, :]
            if lines and stack.shape[1] > 1:
                places = places_in_order(np.array([stack.shape[1]]))
                reach[rows] = places @ places
                along = self.kind.asarray(places)[None, :, None]
                rise = xp.sum(deviation * along, axis=1) / float(places @ places)
                slope[rows] = to_numpy(rise)
                deviation -= rise[:, None, :] * along
            squares[rows] = to_numpy(xp.sum(deviation**2, axis=1))
        self._check_finite(mean)
        moments = self.sizes.astype(np.float64), mean, squares
        return (*moments, slope, np.zeros(len(self)), reach) if lines else moments

    def _check_finite(self, mean: np.ndarray) -> None:
        """Raise if the mean of a group shows that its vectors hold NaN or infinity."""
        wrong = np.flatnonzero(~np.isfinite(mean).all(axis=1))
        if len(wrong):
            xp, vectors = self.kind.xp, self[wrong[0] : wrong[0] + 1].vectors
            if not xp.all(xp.isfinite(vectors)):
                raise_of_values(self.name, self.first + int(wrong[0]), bool(xp.any(xp.isnan(vectors))))

    def _stacks(self) -> Iterator[tuple[np.ndarray, Any]]:
        """Groups of equal size as one array, as many at a time as fit into the working memory, and their indices."""
        for size in np.unique(self.sizes[self.sizes > 0]):
            rows = np.flatnonzero(self.sizes == size)
            for batch in gen_batches(len(rows), count_within(32 * int(size) * self.n_features, DEVICE)):
                if isinstance(self.arrays, list):
                    working, xp = self.kind.working, self.kind.xp
                    arrays = [xp.astype(self.arrays[i], working, copy=False) for i in rows[batch]]
                    yield rows[batch], xp.stack(arrays)
                else:
                    yield rows[batch], self.arrays[batch, ...]

    def _warn_of_padding(self) -> None:
        """Warn of vectors that are zero beside others of their group, as `warn_of_padding` does."""
        if self.n_features < 2 or not self.kind.xp.isdtype(self.vectors.dtype, "real floating"):
            return
        offsets = offsets_of(self.sizes)
        found = [np.empty(0, dtype=int)]
        for rows, stack in self._stacks():
            group, vector = np.nonzero(to_numpy(self.kind.xp.all(stack == 0, axis=2)))
            found.append(offsets[rows[group]] + vector)
        warn_of_zeros(np.sort(np.concatenate(found)), offsets, stacklevel=7)


def check_same_place(left: Groups | ArrayGroups, right: Groups | ArrayGroups) -> None:
    """Raise unless two collections are of the same library and on the same device."""
    places = [(side.kind.xp, side.kind.device) if isinstance(side, ArrayGroups) else None for side in (left, right)]
    if places[0] != places[1]:
        names = [str(side.kind) if isinstance(side, ArrayGroups) else "NumPy arrays" for side in (left, right)]
        raise TypeError(f"X holds {names[0]}, but Y holds {names[1]}: pass both in one form.")


def _checked_shape(array: Any, name: str, kind: ArrayKind, n_axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array of real numbers; raise if its numbers are complex, or if it has another number of axes."""
    if len(array.shape) not in n_axes:
        expected = "3-d (n_groups, n_vectors, n_features), or 2-d" if 3 in n_axes else "2-d (n_vectors, n_features)"
        raise ValueError(f"{name} has {len(array.shape)} dimension(s), but must be {expected}.")
    if not kind.xp.isdtype(array.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}.")
    return array.shape
