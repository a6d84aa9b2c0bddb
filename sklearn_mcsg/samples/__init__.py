"""Samples of groups: has a stream of groups changed, and by what?

In come two collections of groups, or of texts with a pipeline; out go a p-value and the parts that make the difference.
"""

from sklearn_mcsg.samples._compare import SampleComparison, compare_samples

__all__ = ["SampleComparison", "compare_samples"]
