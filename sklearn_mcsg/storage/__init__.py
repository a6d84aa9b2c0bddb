"""Storage: fitted estimators as folders that can be shared, because loading one cannot run code.

In comes a fitted estimator, made of arrays, plain values and instances of registered classes.
Out goes a folder of arrays and one JSON file, replaced in one step; from it, the same estimator, checked.
"""

from sklearn_mcsg.storage._encoding import ReplacedError, fingerprint, load, read_note, register, save
from sklearn_mcsg.storage._files import File
from sklearn_mcsg.storage._folder import MmapMode, check_place

__all__ = [
    "File",
    "MmapMode",
    "ReplacedError",
    "check_place",
    "fingerprint",
    "load",
    "read_note",
    "register",
    "save",
]
