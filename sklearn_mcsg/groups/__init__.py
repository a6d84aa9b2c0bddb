"""Groups: what a sample is, and the one door through which all input passes.

In come lists, arrays, columns and arrays of other libraries; out go `Groups` (or `ArrayGroups`), validated and packed.
`Groups` is the only form that the rest of the library knows.
"""

from sklearn_mcsg.groups._groups import Groups, GroupsLike, Rows, offsets_of, packed, placed, united
from sklearn_mcsg.groups._validation import check_same_length, check_same_width, validate_group, validate_groups

__all__ = [
    "Groups",
    "GroupsLike",
    "Rows",
    "check_same_length",
    "check_same_width",
    "offsets_of",
    "packed",
    "placed",
    "united",
    "validate_group",
    "validate_groups",
]
