"""Names that scikit-learn keeps in private modules, imported in this one place."""

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints
from sklearn.utils._set_output import _get_output_config as get_output_config

__all__ = ["HasMethods", "Interval", "StrOptions", "get_output_config", "validate_parameter_constraints"]
