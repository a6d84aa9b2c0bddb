"""Arrays and texts as short strings that the page unpacks; numbers with as many digits as there is room for."""

from __future__ import annotations

import json
from base64 import b85encode
from typing import Any
from zlib import DEFLATED, Z_RLE, compress, compressobj

import numpy as np

_SIGNS = bytes.maketrans(b"&<>", b",./")
_FINEST = 4095  # steps up to the largest number, if there is room
_DENSITY = 0.8  # bytes in a character of base 85
_COARSEST = 14.0  # binary logarithm of the coarsest step, relative to the finest
_ACCURACY = 0.05  # of the binary logarithm


def pack(numbers: np.ndarray) -> str:
    """Numbers, little-endian, as compressed text."""
    return _as_text(compress(_little_endian(numbers), 9))


def pack_positive(numbers: np.ndarray) -> dict[str, Any]:
    """Numbers from zero up, with two bytes each."""
    most = float(numbers.max(initial=0))
    return {"codes": pack(np.rint(numbers / (most or 1) * 65_535).astype(np.uint16)), "most": most}


def pack_json(value: Any) -> str:
    """Lists, dictionaries and strings as compressed text. Lone surrogates become question marks."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _as_text(compress(text.encode("utf-8", "replace"), 9))


def pack_rows(rows: np.ndarray, room: int) -> tuple[dict[str, Any], np.ndarray]:
    """Rows as whole multiples of the finest step with which they fit into `room` characters; and these multiples.

    The step is the same for all numbers, so that columns of small numbers take little room: they are packed one after
    the other. Columns of zeros at the end are left out.
    """
    finest = float(np.abs(rows).max(initial=0)) / _FINEST or 1.0
    low, high = 0.0, 0.0
    codes, packed = _packed(rows, finest)
    if len(packed) > _DENSITY * room:
        high = _COARSEST
        while high - low > _ACCURACY:
            middle = (low + high) / 2
            if len(_packed(rows, finest * 2**middle)[1]) <= _DENSITY * room:
                high = middle
            else:
                low = middle
        codes, packed = _packed(rows, finest * 2**high)
    return {
        "codes": _as_text(packed),
        "columns": codes.shape[1],
        "bytes": codes.itemsize,
        "step": finest * 2**high,
    }, codes


def _packed(rows: np.ndarray, step: float) -> tuple[np.ndarray, bytes]:
    codes = np.rint(rows / step).astype(np.int16)
    if np.abs(codes).max(initial=0) <= np.iinfo(np.int8).max:
        codes = codes.astype(np.int8)
    used = np.flatnonzero(codes.any(axis=0))
    codes = codes[:, : used[-1] + 1 if len(used) else 1]
    coder = compressobj(9, DEFLATED, 15, 9, Z_RLE)  # there is no pattern to find but runs of zeros
    return codes, coder.compress(_little_endian(codes.T)) + coder.flush()


def _little_endian(numbers: np.ndarray) -> bytes:
    return np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<")).tobytes()


def _as_text(packed: bytes) -> str:
    """Base 85, which takes less room than base 64, in signs that need no escape in a page."""
    return b85encode(packed).translate(_SIGNS).decode()
