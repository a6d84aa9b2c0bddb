"""Texts: from words to groups of word vectors, and what people do with texts.

In come texts, as lists or columns, and word vectors. Out go groups, pipelines that compare or embed texts, p-values,
duplicates, clusters and segments with words that describe them, searches, and explanations by words.

    _files, _static, sources    word vectors read from files, static models with their tokenizers, either as a table
    tables, _rows, _making      tables of word vectors, rows of words in them, and vectors made from several
    _tokens, _tokenised         texts split into tokens, once, and numbered
    _lookup                     tokens as rows of a table
    _frequencies, _spelling     how frequent words are, and vectors of unknown words
    language, _english          stop words and stems, and whether texts look English
    _vectorizer, _recipes       texts as groups, and the pipelines that we recommend
    _calibration                p-values of pairs of texts
    _clusters, terms            clusters, and the words that label them
    _kinds, _kind_table         kinds of texts in clusters, tested and as a table
    _deciding                   the words that make the difference of two samples
    _segments, sentences        segments of a sequence of texts, and the sentences of a running text
    _duplicates, _near_copies   near-duplicates, and the comparison of their words
    wording, _variants          words of texts written in one way: markup, numbers, British and American spelling
    _misspellings               words with typing errors
    _queries, _search, words    queries, and search by the embedding, by BM25 of stems and by phrases
    _saved                      saved indexes, which grow with their texts
"""

from sklearn_mcsg.text._calibration import TextCalibration, calibrate_texts
from sklearn_mcsg.text._clusters import ClusterSummary, TextClusters, cluster_texts
from sklearn_mcsg.text._deciding import deciding_words
from sklearn_mcsg.text._duplicates import find_duplicate_texts
from sklearn_mcsg.text._files import load_word_vectors
from sklearn_mcsg.text._kind_table import KindComparison, KindInCluster, shown_pvalue
from sklearn_mcsg.text._kinds import check_kinds
from sklearn_mcsg.text._queries import Queries
from sklearn_mcsg.text._recipes import explain_texts, make_text_embedding, make_text_similarity
from sklearn_mcsg.text._saved import update_index
from sklearn_mcsg.text._search import TextHits, TextSearch
from sklearn_mcsg.text._segments import TextSegments, segment_texts
from sklearn_mcsg.text._tokenised import TokenisedTexts
from sklearn_mcsg.text._tokens import tokenize
from sklearn_mcsg.text._vectorizer import EmbeddingVectorizer, coverage_of, note_on_language, share_of_unknown_words
from sklearn_mcsg.text.sentences import split_sentences

__all__ = [
    "ClusterSummary",
    "EmbeddingVectorizer",
    "KindComparison",
    "KindInCluster",
    "Queries",
    "TextCalibration",
    "TextClusters",
    "TextHits",
    "TextSearch",
    "TextSegments",
    "TokenisedTexts",
    "calibrate_texts",
    "check_kinds",
    "cluster_texts",
    "coverage_of",
    "deciding_words",
    "explain_texts",
    "find_duplicate_texts",
    "load_word_vectors",
    "make_text_embedding",
    "make_text_similarity",
    "note_on_language",
    "segment_texts",
    "share_of_unknown_words",
    "shown_pvalue",
    "split_sentences",
    "tokenize",
    "update_index",
]
