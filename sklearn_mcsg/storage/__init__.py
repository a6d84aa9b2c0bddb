"""Storage: fitted estimators as folders of plain arrays and JSON, which cannot run code.

In comes an estimator whose classes are registered; out goes a folder that is replaced in one step, and back again.
Nothing that was not registered is made from a file.
"""

from sklearn_mcsg.storage.encoding import check_place, encode, load, read_note, register, save
from sklearn_mcsg.storage.folder import MmapMode

__all__ = ["MmapMode", "check_place", "encode", "load", "read_note", "register", "save"]
