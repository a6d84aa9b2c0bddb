"""Pipelines with the parameters that are recommended for texts."""

from __future__ import annotations

from itertools import chain
from typing import Any

from sklearn.pipeline import Pipeline

from sklearn_mcsg.similarity import ModelComparisonSimilarity
from sklearn_mcsg.text.vectorizer import EmbeddingVectorizer

__all__ = ["make_text_similarity"]


def make_text_similarity(**params: Any) -> Pipeline:
    """Build the pipeline recommended for texts: weighted word vectors, and `centered` similarity.

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``similarity``, a `ModelComparisonSimilarity` with
    ``prior_strength=0.5`` and ``output="centered"``.

    Parameters
    ----------
    **params : dict
        Parameters of either step, by their own names.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline

    Examples
    --------
    >>> from sklearn_mcsg import make_text_similarity
    >>> vectors = {"the": [1.0, 1.0], "cat": [3.0, 0.0], "kitten": [2.5, 0.5], "dog": [2.0, 1.0], "tax": [0.0, 4.0]}
    >>> pipeline = make_text_similarity(vectors=vectors)
    >>> pipeline.fit_transform(["the cat", "the kitten", "the tax"]).round(1)
    array([[0. , 0.1, 2. ],
           [0.1, 0. , 2. ],
           [2. , 2. , 0. ]])
    """
    vectorizer, similarity = EmbeddingVectorizer(), ModelComparisonSimilarity(prior_strength=0.5, output="centered")
    unknown = params.keys() - chain(vectorizer.get_params(), similarity.get_params())
    if unknown:
        known = sorted([*vectorizer.get_params(), *similarity.get_params()])
        raise TypeError(f"Unknown parameters {sorted(unknown)}: choose among {', '.join(known)}.")
    for step in (vectorizer, similarity):
        step.set_params(**{name: params[name] for name in params.keys() & step.get_params(deep=False).keys()})
    return Pipeline([("vectorizer", vectorizer), ("similarity", similarity)])
