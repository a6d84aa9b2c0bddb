"""Arrays of other libraries, such as PyTorch, through the array API as scikit-learn dispatches it.

Only `array_api_dispatch=True` in scikit-learn's configuration makes a difference between these arrays and NumPy's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import get_config

from sklearn_mcsg._sklearn import convert_to_numpy, get_namespace, get_namespace_and_device, max_precision_float_dtype

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def is_array(x: Any) -> bool:
    """Whether x is an array of another library than NumPy: such an array tells its device."""
    return hasattr(x, "device") and hasattr(x, "shape") and not isinstance(x, np.ndarray | np.generic)


def are_dispatched(X: Any) -> bool:
    """Whether X is an array of another library, or a sequence that holds one, and dispatch is switched on."""
    if not get_config()["array_api_dispatch"]:
        return False
    return any(map(is_array, X)) if is_sequence(X) else is_array(X)


def is_sequence(X: Any) -> bool:
    """Whether X is a list, a tuple or a one-dimensional array of objects."""
    return isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object)


def namespace_of(array: Any) -> Any:
    """The functions of the library that an array belongs to."""
    return np if isinstance(array, np.ndarray | np.generic) else get_namespace(array)[0]


def to_numpy(array: Any) -> np.ndarray:
    """An array of any library as an array of NumPy."""
    return array if isinstance(array, np.ndarray) else convert_to_numpy(array, namespace_of(array))


def refuse_arrays(X: Any, name: str = "X") -> None:
    """Raise if X holds arrays of another library and dispatch is switched on: only NumPy's are taken here."""
    if are_dispatched(X):
        raise TypeError(
            f"{name} holds arrays of another library than NumPy. Only fit, partial_fit, transform, fit_transform, "
            f"pairwise and paired of ModelComparisonSimilarity, and fit, partial_fit, transform and fit_transform of "
            f"GroupEmbedding take them. Convert them, for example PyTorch tensors by .cpu().numpy()."
        )


@dataclass(frozen=True, eq=False)
class ArrayKind:
    """Library, device and precision of results.

    Attributes
    ----------
    xp : module
        Namespace of the library.
    device : object
        Device in the library's own form.
    dtype : dtype
        Precision of results, as NumPy names it.
    """

    xp: Any
    device: Any
    dtype: np.dtype

    @classmethod
    def of(cls, arrays: list[Any]) -> ArrayKind:
        """The kind of results that arrays give: float32 if all are of single or half precision, otherwise float64."""
        xp, _, device = get_namespace_and_device(*arrays)
        short = all(xp.isdtype(array.dtype, "real floating") and array.dtype != xp.float64 for array in arrays)
        return cls(xp, device, _SINGLE if short else _DOUBLE).promoted(_SINGLE)

    @property
    def working(self) -> Any:
        """The library's dtype for computations: float64, or float32 on devices without it."""
        return max_precision_float_dtype(self.xp, self.device)

    def promoted(self, dtype: np.dtype) -> ArrayKind:
        """The kind of results of these arrays with values of another precision."""
        least = _SINGLE if self.working == self.xp.float32 else _DOUBLE
        return replace(self, dtype=min(np.result_type(self.dtype, dtype), least))

    def asarray(self, values: np.ndarray) -> Any:
        """Numbers of NumPy as an array on the device, in its working precision."""
        host = _SINGLE if self.working == self.xp.float32 else _DOUBLE
        return self.xp.asarray(np.ascontiguousarray(values, host), device=self.device)

    def result(self, array: Any) -> Any:
        """Numbers in the precision of results; raise if they overflow."""
        with np.errstate(over="ignore"):
            cast = self.xp.astype(array, getattr(self.xp, self.dtype.name), copy=False)
        if cast is not array and not self.xp.all(self.xp.isfinite(cast)):
            raise ValueError("A result exceeds the range of float32, which the vectors have: pass them as float64.")
        return cast

    def __str__(self) -> str:
        return f"{self.xp.__name__.rpartition('.')[2]} arrays on {self.device}"
