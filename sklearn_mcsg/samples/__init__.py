"""Samples of groups: has a stream of groups changed, and by what?

In come two collections of groups, or of texts with a pipeline; out go a p-value and the parts that make the difference.
P-values of several tests are corrected for their number.
"""

from sklearn_mcsg.samples._adjust import adjust_pvalues
from sklearn_mcsg.samples._compare import SampleComparison, compare_samples

__all__ = ["SampleComparison", "adjust_pvalues", "compare_samples"]
