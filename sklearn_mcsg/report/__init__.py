"""A report of clusters of texts, as one self-contained HTML file.

    page       the function `cluster_report`, which fills the page from `templates`
    content    the content of the page, as JSON and packed numbers
    layout     the positions of texts on the map

The scripts of the page compute only its layout; all numbers on it are computed here.
"""

from sklearn_mcsg.report.page import cluster_report

__all__ = ["cluster_report"]
