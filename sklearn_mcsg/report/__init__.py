"""A report of clusters of texts, as one self-contained HTML file.

    page         the functions `cluster_report`, which fills the page from `templates`, and `write_report`
    content      texts, the tree with its words, and columns, as JSON and packed numbers
    vocabulary   words, vectors and the model that divides a cosine among pairs of words
    layout       the positions of texts on the map
    packing      numbers as short strings

The scripts of the page cut the tree, compare texts and explain pairs; tests compare their numbers with Python's.
"""

from sklearn_mcsg.report.page import cluster_report, write_report

__all__ = ["cluster_report", "write_report"]
