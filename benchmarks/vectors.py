"""How the benchmarks read texts: by GloVe, by static models, and as the package does by default."""

from functools import lru_cache
from importlib.util import find_spec

import numpy as np

from sklearn_mcsg import EmbeddingVectorizer, make_text_embedding, make_text_similarity

GLOVE = "glove-6b-50d"
DEFAULT = EmbeddingVectorizer().vectors
DEFAULT_NAME = " beside ".join(np.atleast_1d(DEFAULT))
# Baselines, and the systems of the paper, count punctuation as words.
PUNCTUATION = {"punctuation": True}


def static_models(data):
    """Static models by name: those in a folder."""
    return {path.parent.name: path.parent for path in sorted(data.glob("*/tokenizer.json"))}


def installed_models():
    """Static models by name: WordLlama, if it is installed."""
    return {"WordLlama": "wordllama"} if find_spec("wordllama") else {}


def embedding(vectors, order=None, **params):
    """The last step of `make_text_embedding`, for texts as sets of words; with `order`, for texts as sequences."""
    likelihood = "diag" if order is None else "trend"
    pipeline = make_text_embedding(vectors=vectors, likelihood=likelihood, **params)
    return pipeline["embedding"].set_params(order=order or 0)


def centered(**params):
    """The last step of `make_text_similarity`."""
    return make_text_similarity(random_state=0, **params)["similarity"]


def whitened_mean(vectors, whiten=0.5):
    """Cosine of averages that are whitened in part: the strongest average, at the strength best for the vectors."""
    return embedding(vectors, whiten=whiten, spread=0.0)


class Reader:
    """Turn texts into groups by a recipe, the same texts once. The recipe "text" leaves them as they are."""

    def __init__(self, **recipes):
        self.recipes = recipes
        self._remembered = lru_cache(maxsize=16)(self.read)

    def __call__(self, recipe, texts):
        return list(texts) if recipe == "text" else self._remembered(recipe, tuple(texts))

    def read(self, recipe, texts):
        return EmbeddingVectorizer(**self.recipes[recipe]).fit_transform(texts)


def glove_reader():
    """For GloVe: raw vectors, with weights and with padding, or recommended."""
    plain = {"vectors": GLOVE, "weighting": None, "unit_norm": False, **PUNCTUATION}
    zipf = {**plain, "weighting": "sif"}
    return Reader(plain=plain, zipf=zipf, zipf_padded={**zipf, "pad_token": "."}, recipe={"vectors": GLOVE})


def static_reader(vectors):
    """For vectors that were trained to be averaged: unweighted as in the paper, or recommended."""
    plain = {"vectors": vectors, "weighting": None, "unit_norm": False, **PUNCTUATION}
    return Reader(paper={**plain, "pad_token": "."}, plain=plain, recipe={"vectors": vectors, "weighting": "norm"})


def default_reader():
    """For the defaults, and for means of the same vectors."""
    return Reader(plain=PUNCTUATION, recipe={})
