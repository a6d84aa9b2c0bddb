"""Storage: fitted estimators as folders that can be shared, because loading one cannot run code.

In comes a fitted estimator, made of arrays, plain values and instances of registered classes.
Out goes a folder of arrays and one JSON file, replaced in one step; from it, the same estimator, checked.
"""

from sklearn_mcsg.storage._encoding import ReplacedError, check_storable, fingerprint, load, read_note, register, save
from sklearn_mcsg.storage._files import File
from sklearn_mcsg.storage._folder import MmapMode, check_place
from sklearn_mcsg.storage._lock import LOCK, locked

__all__ = [
    "LOCK",
    "File",
    "MmapMode",
    "ReplacedError",
    "check_place",
    "check_storable",
    "fingerprint",
    "load",
    "locked",
    "read_note",
    "register",
    "save",
]
