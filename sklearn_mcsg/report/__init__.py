"""A page that shows clusters of texts: one HTML file with everything in it.

    page       the function, its checks, and the page filled from `templates`
    content    what the page holds, as JSON and packed numbers
    layout     where the map draws texts

The page computes nothing but its layout: whatever it shows was computed here.
"""

from sklearn_mcsg.report.page import cluster_report

__all__ = ["cluster_report"]
