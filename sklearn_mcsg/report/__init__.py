"""Report: clusters of texts as one self-contained HTML page.

In come texts, or the clusters that `cluster_texts` found, with further columns; out goes the page, whose scripts cut
the tree, compare texts and explain pairs. Tests compare their numbers with Python's.
"""

from sklearn_mcsg.report._page import cluster_report
from sklearn_mcsg.report._report import Report

__all__ = ["Report", "cluster_report"]
