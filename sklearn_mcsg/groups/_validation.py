"""Input validation: the only place where user input becomes `Groups`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from sklearn_mcsg._memory import count_within
from sklearn_mcsg.groups._groups import Groups, GroupsLike, offsets_of
from sklearn_mcsg.groups.arrays import is_array, is_sequence, refuse_arrays
from sklearn_mcsg.groups.blocks import group_of
from sklearn_mcsg.groups.checks import (
    FOR_TEXTS,
    check_group,
    check_numeric,
    check_table,
    is_missing,
    refuse_masks,
    warn_of_padding,
    warn_of_rows,
)

_NO_GROUPS = "The collection is empty: at least one group is required (0 sample(s) found)."


def validate_groups(X: GroupsLike, *, allow_empty: bool = False, name: str = "X", rows: bool = False) -> Groups:
    """Turn any accepted input into validated `Groups`.

    Parameters
    ----------
    X : groups
        A list, tuple or object array of (n_i, n_features) arrays; an (n_groups, n_vectors, n_features)
        array; `Groups`; a pandas, polars or Arrow column of lists of vectors; or an
        (n_groups, n_features) array or data frame, which means groups of one vector each.
    allow_empty : bool, default=False
        Whether groups without vectors, or whose weights sum to 0, are accepted.
    name : str, default="X"
        Name of the input in error messages.
    rows : bool, default=False
        Whether the rows of an (n_groups, n_features) array or data frame are meant as groups.

    Returns
    -------
    groups : Groups

    Warns
    -----
    UserWarning
        If two or more rows of an (n_groups, n_features) array or data frame become groups, unless `rows` says that they
        are meant; or if a column of the data frame looks like the labels of groups.
        If arrays of floating-point vectors hold vectors that are zero beside others of their group that are not: they
        may be padding, which counts as vectors. `Groups` are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_mcsg import validate_groups
    >>> validate_groups([np.ones((3, 2)), np.zeros((1, 2))])
    Groups(n_groups=2, n_features=2, sizes=1..3)
    >>> validate_groups(np.zeros((4, 2)), rows=True)
    Groups(n_groups=4, n_features=2, sizes=1..1)
    """
    groups = _to_groups(X, name, rows)
    check_collection(groups, allow_empty)
    _check_finite(groups, name)
    return groups


def check_collection(groups: Any, allow_empty: bool) -> None:
    """Raise unless there are groups, with features and, if they must not be empty, with vectors."""
    if len(groups) == 0:
        raise ValueError(_NO_GROUPS)
    if groups.n_features == 0:
        raise ValueError(f"Found 0 feature(s) (shape=({groups.n_rows}, 0)) while a minimum of 1 is required.")
    void = groups.totals <= 0
    if allow_empty or not void.any():
        return
    first = np.flatnonzero(void)[:5].tolist()
    which = f"Group {first[0]}" if void.sum() == 1 else f"Groups {', '.join(map(str, first))}"
    more = f" and {void.sum() - len(first)} more" if void.sum() > len(first) else ""
    verb = "has" if void.sum() == 1 else "have"
    what = "no vectors" if not groups.sizes[first].any() else "no vectors of positive weight"
    raise ValueError(
        f"{which}{more} {verb} {what}. Remove them, or set prior_strength > 0, if there is one, and call fit: every "
        f"group then has pseudo-vectors of the corpus. For texts, you may also set pad_token in EmbeddingVectorizer."
    )


def raise_of_values(name: str, i: int, is_nan: bool) -> NoReturn:
    """Raise the error for a group that holds NaN or infinity."""
    kind = "NaN" if is_nan else "inf"
    raise ValueError(f"Input {name} contains {kind}: the first is in group {i}. Remove or replace vectors with {kind}.")


def validate_group(x: GroupsLike, *, allow_empty: bool = False, name: str = "x") -> Groups:
    """Turn one group, an (n_vectors, n_features) array or `Groups` of one group, into validated `Groups`.

    Parameters
    ----------
    x : array-like of shape (n_vectors, n_features), or Groups of one group
        The group.
    allow_empty : bool, default=False
        Whether a group without vectors, or whose weights sum to 0, is accepted.
    name : str, default="x"
        Name of the input in error messages.

    Returns
    -------
    group : Groups
    """
    if isinstance(x, str | bytes):
        raise TypeError(f"{name} is a string; a group of vectors is required. For texts call explain_texts.")
    if not isinstance(x, Groups):
        refuse_arrays(x, name)
        vectors = check_group(x, name)
        x = Groups(vectors, [0, len(vectors)])
        warn_of_padding(x.vectors, x.offsets)
    if len(x) != 1:
        raise ValueError(f"{name} holds {len(x)} groups, but must be a single group: pass one of them as groups[[i]].")
    if not allow_empty and not x.totals.any():
        what = "vectors of positive weight" if x.n_rows else "vectors"
        raise ValueError(
            f"{name} has no {what}: there is nothing to compare. Pass a group that has some. For texts, set pad_token."
        )
    return validate_groups(x, allow_empty=True, name=name)


def check_same_width(left: Groups, right: Groups, names: str = "XY") -> None:
    """Raise unless two collections of groups have the same number of features."""
    if left.n_features != right.n_features:
        raise ValueError(
            f"{names[0]} has {left.n_features} features, but {names[1]} has {right.n_features}: take the vectors of "
            f"both from one space."
        )


def check_same_length(left: Groups, right: Groups) -> None:
    """Raise unless two collections have the same number of groups."""
    if len(left) != len(right):
        raise ValueError(
            f"paired compares row by row and needs as many groups in Y as in X, got {len(left)} and {len(right)}. For "
            f"all pairs call pairwise."
        )


def _to_groups(X: Any, name: str, rows: bool) -> Groups:
    if isinstance(X, Groups):
        return X
    refuse_arrays(X, name)
    refuse_masks(X, name)
    if is_array(X):
        X = np.asarray(X)
    if sparse.issparse(X):
        raise TypeError(f"{name} is a sparse matrix, but vectors must be dense: pass {name}.toarray().")
    _refuse_other_collections(X, name)
    if hasattr(X, "to_arrow") and not hasattr(X, "columns"):
        X = X.to_arrow()
    if hasattr(X, "to_pylist"):
        return _from_arrow(X)
    if hasattr(X, "columns") and X.shape[1] == 1 and len(X) and np.ndim(next(iter(X[X.columns[0]]))) > 0:
        return _to_groups(X[X.columns[0]], name, rows)
    if hasattr(X, "iloc") and X.ndim == 1:
        X = list(X)
    if isinstance(X, np.ndarray) and X.ndim == 3:
        X = check_numeric(X, name)
        n_groups, size, width = X.shape
        groups = Groups(X.reshape(n_groups * size, width), np.arange(n_groups + 1) * size)
        warn_of_padding(groups.vectors, groups.offsets)
        return groups
    if _is_sequence_of_groups(X):
        return Groups.from_list(X)
    vectors = check_table(X, name)
    label = _label_column(X)
    if label is not None or not rows:
        warn_of_rows(len(vectors), name, label)
    return Groups(vectors, np.arange(len(vectors) + 1))


def _refuse_other_collections(X: Any, name: str) -> None:
    """Raise an error that says how to pass something that is not a collection of groups, but may hold one."""
    kind = type(X).__name__
    if isinstance(X, str | bytes):
        raise TypeError(f"{name} is a string, but groups of vectors are required. {FOR_TEXTS}")
    if isinstance(X, Mapping):
        raise TypeError(f"{name} is a {kind}: pass its groups as list({name}.values()); their names are list({name}).")
    if isinstance(X, tuple) and len(X) == 2 and isinstance(X[0], Groups) and not isinstance(X[1], Groups):
        raise TypeError(f"{name} holds the groups and their names, as Groups.from_labels returns them: pass {name}[0].")
    if hasattr(X, "collect") and not is_sequence(X):
        raise TypeError(f"{name} is a {kind}, whose values are not known yet: pass {name}.collect().")
    if hasattr(X, "schema") and hasattr(X, "to_pylist"):
        raise TypeError(f"{name} is an Arrow {kind}: pass its column of lists of vectors, or {name}.to_pandas().")
    if is_sequence(X) or any(hasattr(X, method) for method in ("__array__", "columns", "to_pylist", "to_arrow")):
        return
    if hasattr(X, "agg"):
        raise TypeError(
            f"{name} is a {kind}: pass [rows[features].to_numpy() for _, rows in {name}], where features are their "
            f"columns."
        )
    if isinstance(X, Iterable):
        raise TypeError(f"{name} is a {kind}, which has no order or can be read only once: pass list({name}).")
    raise TypeError(f"{name} is {X!r:.60}, but must be a list of groups, each an array (n_vectors, n_features).")


def _label_column(X: Any) -> Any:
    """The column of a data frame that looks like the labels of groups: the only one without floats, with repeats."""
    if not hasattr(X, "iloc") or len(X.columns) < 2:
        return None
    places = [i for i, dtype in enumerate(X.dtypes) if dtype.kind != "f"]  # names may be repeated
    return X.columns[places[0]] if len(places) == 1 and X.iloc[:, places[0]].duplicated().any() else None


def _from_arrow(column: Any) -> Groups:
    """Pack an Arrow column of lists of vectors, without copying its buffers if possible."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    try:
        vectors = column.flatten()
        widths = set(vectors.value_lengths().to_pylist())
        values = vectors.flatten().to_numpy(zero_copy_only=False)
    except (AttributeError, TypeError) as error:
        raise TypeError(f"An Arrow column of groups must hold lists of vectors, got type {column.type}.") from error
    if not len(column):
        raise ValueError(_NO_GROUPS)
    if column.null_count or None in widths:
        raise ValueError("The Arrow column holds nulls: a group without vectors is an empty list.")
    if not max(widths, default=0):
        raise ValueError("No group of the Arrow column has a vector with features, so their number is not known.")
    if len(widths) > 1:
        raise ValueError(f"All vectors must have the same number of features, found {sorted(widths)}.")
    sizes = column.value_lengths().to_numpy(zero_copy_only=False)
    groups = Groups(values.reshape(-1, max(widths)), offsets_of(sizes))
    warn_of_padding(groups.vectors, groups.offsets)
    return groups


def _is_sequence_of_groups(X: Any) -> bool:
    """Whether X is a sequence whose samples are groups, rather than the rows of a 2-d array."""
    if not is_sequence(X):
        return False
    if isinstance(X, np.ndarray) or len(X) == 0:
        return True
    sample = next((x for x in X if not is_missing(x)), None)
    if isinstance(sample, list | tuple):
        return len(sample) == 0 or np.ndim(sample[0]) > 0
    return sample is None or isinstance(sample, str | bytes | Groups) or np.ndim(sample) > 0 or sparse.issparse(sample)


def _check_finite(groups: Groups, name: str) -> None:
    """Raise an error that names the first group with NaN or infinity; scan table or rows, whichever is shorter."""
    if groups.vectors.dtype.kind != "f":
        return
    whole_table = groups.indices is None or len(groups.vectors) <= len(groups.indices)
    n_rows = len(groups.vectors) if whole_table else groups.n_rows
    step = count_within(8 * groups.n_features)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        block = groups.vectors[rows] if whole_table else groups.vectors[groups.row_indices[rows]]
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum(dtype=np.float64)):
                continue
        wrong = start + np.flatnonzero(~np.isfinite(block).all(axis=1))
        if whole_table and groups.indices is not None:
            wrong = np.flatnonzero(np.isin(groups.indices, wrong))
        if len(wrong):
            i = group_of(groups, wrong[0])
            raise_of_values(name, i, bool(np.isnan(groups[i]).any()))
