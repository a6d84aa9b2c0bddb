"""Texts as groups of word vectors.

    text --tokens--> words --tables--> rows of a shared array --vectorizer--> weighted, labelled Groups

`files` reads published word vectors and `recipes` builds the pipelines for texts. `calibration` gives p-values to pairs
of texts, `duplicates` finds texts that say the same, by the words that `wording` compares, `clusters` finds clusters of
texts, which `terms` and `summaries` describe, `search` finds texts by meaning and by `words`, and `indexes` keeps saved
indexes of texts up to date.
"""

from sklearn_mcsg.text.calibration import TextCalibration, calibrate_texts
from sklearn_mcsg.text.clusters import TextClusters, cluster_texts
from sklearn_mcsg.text.duplicates import find_duplicate_texts
from sklearn_mcsg.text.files import load_word_vectors
from sklearn_mcsg.text.indexes import update_index
from sklearn_mcsg.text.recipes import make_text_embedding, make_text_similarity
from sklearn_mcsg.text.search import TextHits, TextSearch
from sklearn_mcsg.text.summaries import ClusterSummary, summarize_clusters
from sklearn_mcsg.text.tokens import tokenize
from sklearn_mcsg.text.vectorizer import EmbeddingVectorizer

__all__ = [
    "ClusterSummary",
    "EmbeddingVectorizer",
    "TextCalibration",
    "TextClusters",
    "TextHits",
    "TextSearch",
    "calibrate_texts",
    "cluster_texts",
    "find_duplicate_texts",
    "load_word_vectors",
    "make_text_embedding",
    "make_text_similarity",
    "summarize_clusters",
    "tokenize",
    "update_index",
]
