"""Pipelines with recommended parameters for texts."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from sklearn_mcsg.embedding.embedding import GroupEmbedding
from sklearn_mcsg.similarity.model import ModelComparisonSimilarity
from sklearn_mcsg.text.tables import is_static_model
from sklearn_mcsg.text.vectorizer import EmbeddingVectorizer

__all__ = ["make_text_embedding", "make_text_similarity"]


def make_text_similarity(**params: Any) -> Pipeline:
    """Build the pipeline recommended for texts: weighted word vectors, and `centered` similarity.

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``similarity``, a `ModelComparisonSimilarity` with
    ``prior_strength=0.5`` and ``output="centered"``. If `vectors` come with a tokenizer of their own, such as those of
    model2vec, tokens are weighted by ``"norm"`` alone, since their vectors were trained to be averaged.

    Parameters
    ----------
    **params : dict
        Parameters of the steps. A name that both steps have goes to both; ``vectorizer__name`` and
        ``similarity__name`` go to one.

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
    similarity = ModelComparisonSimilarity(prior_strength=0.5, output="centered")
    vectorizer, _ = _vectorizer(params)
    return _with_params(Pipeline([("vectorizer", vectorizer), ("similarity", similarity)]), params)


def make_text_embedding(**params: Any) -> Pipeline:
    """Build the embedding recommended for texts: weighted word vectors, and `GroupEmbedding` at unit length.

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``embedding``, a `GroupEmbedding`. Their parameters
    follow from the kind of `vectors`:

    - Raw word vectors, as of GloVe, word2vec or fastText: ``weighting=("sif", "norm")``, ``whiten=0.5``, ``spread=1``.
    - A static model, trained to be averaged, which is every kind of vectors that comes with a tokenizer (files of
      model2vec, its `StaticModel`, ``"wordllama"``, a pair of a tokenizer and a table): ``weighting="norm"``,
      ``whiten=0.125``, ``spread=0.5``.

    Both have unit vectors, the likelihood ``"diag"``, ``prior_strength=0.5`` and ``normalize=True``.

    Parameters
    ----------
    **params : dict
        Parameters of the steps, in place of the defaults. A name that both steps have goes to both;
        ``vectorizer__name`` and ``embedding__name`` go to one.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline

    Examples
    --------
    >>> from sklearn_mcsg import make_text_embedding
    >>> texts = ["A cat sat on the mat.", "A kitten lay on the rug.", "Shares fell on Monday.", "Stock markets fell."]
    >>> Z = make_text_embedding().fit_transform(texts)
    >>> (Z @ Z.T).round(1)
    array([[ 1. , -0. , -0.5, -0.5],
           [-0. ,  1. , -0.5, -0.5],
           [-0.5, -0.5,  1. ,  0. ],
           [-0.5, -0.5,  0. ,  1. ]], dtype=float32)
    """
    vectorizer, averaged = _vectorizer(params)
    recipe: Any = {"whiten": 0.125, "spread": 0.5} if averaged else {"whiten": 0.5, "spread": 1.0}
    embedding = GroupEmbedding(prior_strength=0.5, normalize=True, **recipe)
    return _with_params(Pipeline([("vectorizer", vectorizer), ("embedding", embedding)]), params)


def _vectorizer(params: dict[str, Any]) -> tuple[EmbeddingVectorizer, bool]:
    """The vectorizer for the vectors among some parameters, and whether these were trained to be averaged."""
    default = EmbeddingVectorizer()
    averaged = is_static_model(params.get("vectors", params.get("vectorizer__vectors", default.vectors)))
    return (EmbeddingVectorizer(weighting="norm") if averaged else default), averaged


def _with_params(pipeline: Pipeline, params: dict[str, Any]) -> Pipeline:
    """Set parameters of the steps of a pipeline: by their own names, in all steps that have them, or ``step__name``."""
    steps = dict(pipeline.steps)
    known = {name: set(step.get_params(deep=False)) for name, step in steps.items()}
    for name, value in params.items():
        step, _, own = name.partition("__")
        if step in steps and own:
            pipeline.set_params(**{name: value})
            continue
        having = [step for step in steps if name in known[step]]
        if not having:
            every = sorted(set.union(*known.values()))
            raise TypeError(f"Unknown parameters {[name]}: choose among {', '.join(every)}.")
        for step in having:
            steps[step].set_params(**{name: value})
    return pipeline
