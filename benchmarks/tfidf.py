"""TF-IDF of stems: what every similarity of texts must beat."""

import re

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from Stemmer import Stemmer

STEMMER = Stemmer("english")


class Cosine:
    """One minus the cosine of what a transformer makes of texts or groups, with the methods of `GroupEmbedding`."""

    def __init__(self, transformer):
        self.transformer = transformer

    def fit(self, X):
        self.transformer.fit(X)
        return self

    def units(self, X):
        """Vectors at unit length, sparse if the transformer's are."""
        return normalize(self.transformer.transform(X))

    def transform(self, X):
        units = self.units(X)
        return units.toarray() if sparse.issparse(units) else units

    def paired(self, X, Y):
        left, right = self.units(X), self.units(Y)
        products = left.multiply(right) if sparse.issparse(left) else left * right
        return 1 - np.asarray(products.sum(axis=1)).ravel()

    def pairwise(self, X, Y=None):
        return cosine_distances(self.units(X), None if Y is None else self.units(Y))


class Leading(TruncatedSVD):
    """The leading components, or all where there are fewer."""

    def fit_transform(self, X, y=None):
        given = self.n_components
        try:
            self.n_components = min(given, *X.shape)
            return super().fit_transform(X)
        finally:
            self.n_components = given  # the next corpus may have more


def stems(text):
    return STEMMER.stemWords(re.findall(r"\w+", text.lower()))


def content_stems(text):
    """Stems without those of stop words and single characters."""
    words = re.findall(r"\w\w+", text.lower())
    return STEMMER.stemWords([word for word in words if word not in ENGLISH_STOP_WORDS])


def tf_idf(tokenizer=stems, longest=1, n_components=None):
    """Sublinear TF-IDF of sequences of stems up to a length; with `n_components`, their singular vectors."""
    counted = TfidfVectorizer(
        tokenizer=tokenizer,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, longest),
        sublinear_tf=True,
        dtype=np.float32,
    )
    return Cosine(make_pipeline(counted, Leading(n_components, random_state=0)) if n_components else counted)
