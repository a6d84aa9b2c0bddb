"""Arrays and texts as short strings that a page unpacks."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from zlib import compress

import numpy as np


def pack(numbers: np.ndarray) -> str:
    """Numbers, little-endian, as compressed base64 text."""
    numbers = np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<"))
    return b64encode(compress(numbers.tobytes(), 9)).decode()


def pack_json(value: Any) -> str:
    """Lists, dictionaries and strings as compressed base64 text. Lone surrogates become question marks."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b64encode(compress(text.encode("utf-8", "replace"), 9)).decode()


def quantized(rows: np.ndarray, dtype: type[np.signedinteger]) -> dict[str, Any]:
    """Columns of numbers as small integers, with one factor per column."""
    factors = np.abs(rows).max(axis=0, initial=0) / np.iinfo(dtype).max
    codes = np.rint(rows / np.where(factors > 0, factors, 1)).astype(dtype)
    return {
        "codes": pack(codes),
        "factors": pack(factors.astype(np.float32)),
        "columns": rows.shape[1],
        "bytes": codes.itemsize,
    }
