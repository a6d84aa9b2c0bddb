"""Names that scikit-learn keeps in private modules, imported in this one place."""

from sklearn.utils._array_api import _convert_to_numpy as convert_to_numpy
from sklearn.utils._array_api import _max_precision_float_dtype as max_precision_float_dtype
from sklearn.utils._array_api import get_namespace, get_namespace_and_device
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints
from sklearn.utils._set_output import _get_output_config as get_output_config

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "convert_to_numpy",
    "get_namespace",
    "get_namespace_and_device",
    "get_output_config",
    "max_precision_float_dtype",
    "validate_parameter_constraints",
]
