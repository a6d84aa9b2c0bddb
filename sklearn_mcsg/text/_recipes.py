"""Pipelines with recommended parameters for texts, and what they say about the words of two texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_mcsg.criteria import Criterion
from sklearn_mcsg.embedding import GroupEmbedding
from sklearn_mcsg.engine.capabilities import instance_of
from sklearn_mcsg.groups import Groups
from sklearn_mcsg.groups.regroup import condensed
from sklearn_mcsg.likelihoods import LIKELIHOODS, Likelihood
from sklearn_mcsg.similarity.model import ModelComparisonSimilarity
from sklearn_mcsg.text._vectorizer import EmbeddingVectorizer
from sklearn_mcsg.text.tables import is_static_model

_WORD_VECTORS = {"weighting": ("sif", "norm"), "whiten": 0.5, "spread": 1.0}
_STATIC_MODEL = {"weighting": "norm", "whiten": 0.125, "spread": 0.5}  # trained to be averaged


def _recommended(vectors: Any, **given: Any) -> dict[str, Any]:
    """The given parameters; those that are ``"auto"`` follow from the kind of vectors."""
    recipe = _STATIC_MODEL if is_static_model(vectors) else _WORD_VECTORS
    return {name: recipe[name] if value == "auto" else value for name, value in given.items()}


def make_text_similarity(
    *,
    vectors: Any = "glove-6b-50d",
    weighting: Any = "auto",
    unknown: str = "spelling",
    likelihood: str | Likelihood = "diag",
    criterion: str | Criterion = "aic",
    output: str = "centered",
    prior_strength: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Pipeline:
    """Build the pipeline that is recommended for comparing texts: weighted word vectors, and the output ``"centered"``.

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``similarity``, a `ModelComparisonSimilarity`. If
    `vectors` come with a tokenizer of their own, such as those of model2vec, tokens are weighted by ``"norm"`` alone,
    because their vectors were trained to be averaged; other vectors by ``("sif", "norm")``. ``set_params`` of the
    pipeline reaches all other parameters of its steps.

    Parameters
    ----------
    vectors : str, path, mapping, pair, KeyedVectors or StaticModel, default="glove-6b-50d"
        Word vectors: see `EmbeddingVectorizer`. Or a static model.
    weighting : "auto", {"sif", "norm"}, callable, tuple of those or None, default="auto"
        Weight of a word: see `EmbeddingVectorizer`. ``"auto"`` follows from `vectors`, see above.
    unknown : {"spelling", "ignore", "error"}, default="spelling"
        What becomes of words without a vector.
    likelihood : {"diag", "spherical", "full", "vmf", "trend"} or Likelihood, default="diag"
        The model of a group: here, of a text. See `ModelComparisonSimilarity`.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion: see `ModelComparisonSimilarity`.
    output : {"similarity", "distance", "divergence", "centered", "kernel"}, default="centered"
        What to return for each pair: see `ModelComparisonSimilarity`. All but the first and the last are distances.
    prior_strength : float, default=0.5
        Number of pseudo-vectors in each model. They have the mean and variance of the fitted corpus and are added to
        every text.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the reference texts. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

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
    vectorizer = EmbeddingVectorizer(vectors, unknown=unknown, **_recommended(vectors, weighting=weighting))
    similarity = ModelComparisonSimilarity(
        likelihood,
        criterion,
        output=output,
        prior_strength=prior_strength,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    return Pipeline([("vectorizer", vectorizer), ("similarity", similarity)])


def make_text_embedding(
    *,
    vectors: Any = "glove-6b-50d",
    weighting: Any = "auto",
    unknown: str = "spelling",
    likelihood: Any = "diag",
    whiten: Any = "auto",
    spread: Any = "auto",
    n_components: int | None = None,
    prior_strength: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Pipeline:
    """Build the embedding that is recommended for texts: weighted word vectors, and `GroupEmbedding` at unit length.

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``embedding``, a `GroupEmbedding`. Three of their
    parameters follow from the kind of `vectors`:

    - Raw word vectors, as of GloVe, word2vec or fastText: ``weighting=("sif", "norm")``, ``whiten=0.5``, ``spread=1``.
    - A static model, trained to be averaged, which is every kind of vectors that comes with a tokenizer (files of
      model2vec, its `StaticModel`, ``"wordllama"``, a pair of a tokenizer and a table): ``weighting="norm"``,
      ``whiten=0.125``, ``spread=0.5``.

    ``set_params`` of the pipeline reaches all other parameters of its steps.

    Parameters
    ----------
    vectors : str, path, mapping, pair, KeyedVectors or StaticModel, default="glove-6b-50d"
        Word vectors: see `EmbeddingVectorizer`. Or a static model.
    weighting : "auto", {"sif", "norm"}, callable, tuple of those or None, default="auto"
        Weight of a word: see `EmbeddingVectorizer`. ``"auto"`` follows from `vectors`, see above.
    unknown : {"spelling", "ignore", "error"}, default="spelling"
        What becomes of words without a vector.
    likelihood : {"diag", "spherical", "full", "vmf", "trend"}, Likelihood or similarity estimator, default="diag"
        The model of a group: here, of a text. See `ModelComparisonSimilarity`.
    whiten : "auto" or float, default="auto"
        Power of whitening, from 0 (none) to 1 (all components get unit variance). ``"auto"`` follows from `vectors`,
        see above.
    spread : "auto" or float, default="auto"
        Factor on the coordinates of scale, that is of log variances. ``"auto"`` follows from `vectors`, see above.
    n_components : int, default=None
        Number of leading components to keep; ``None`` keeps all.
    prior_strength : float, default=0.5
        Number of pseudo-vectors in each model. They have the mean and variance of the fitted corpus and are added to
        every text.
    random_state : int, RandomState instance or None, default=None
        Determines what is random: the landmarks. Pass an int for reproducible results.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    verbose : int, default=0
        Whether to show progress bars.

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
    vectorizer = EmbeddingVectorizer(vectors, unknown=unknown, **_recommended(vectors, weighting=weighting))
    embedding = GroupEmbedding(
        likelihood,
        n_components=n_components,
        normalize=True,
        prior_strength=prior_strength,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        **_recommended(vectors, whiten=whiten, spread=spread),
    )
    return Pipeline([("vectorizer", vectorizer), ("embedding", embedding)])


def explain_texts(pipeline: Any, a: str, b: str) -> Any:
    """Explain the similarity of two texts by their words.

    Parameters
    ----------
    pipeline : Pipeline
        Pipeline for texts: it is fitted and consists of an `EmbeddingVectorizer` and a `GroupEmbedding` or a
        `ModelComparisonSimilarity`, as `make_text_embedding` and `make_text_similarity` build it.
    a, b : str
        The two texts.

    Returns
    -------
    explanation : PairExplanation or Explanation
        The cosine of the embeddings as a sum over pairs of words, or the similarity as a sum over words. Its labels are
        the words, in the order of the texts; those of a text of several thousand words are its different words,
        with the sums of their weights. Where the order of words counts, as with ``likelihood="trend"``, an explanation
        of a cosine says how much of it is due to order.

    Examples
    --------
    >>> from sklearn_mcsg import explain_texts, make_text_embedding
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> pipeline = make_text_embedding().fit(load_short_texts().data)
    >>> explain_texts(pipeline, "A cat slept on the sofa.", "The kitten naps in an armchair.")
    Cosine 0.302 of 7 and 7 vectors
      sofa ~ armchair +0.102
      cat ~ kitten +0.063
      sofa ~ kitten +0.053
      slept ~ armchair +0.040
      slept ~ naps +0.035
    """
    if not (isinstance(pipeline, Pipeline) and len(pipeline) > 1 and hasattr(pipeline[-1], "explain")):
        raise TypeError(
            "explain_texts needs a pipeline of an EmbeddingVectorizer and a GroupEmbedding or a "
            "ModelComparisonSimilarity, as make_text_embedding and make_text_similarity build it."
        )
    for name, text in (("a", a), ("b", b)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be one text, a string, got {type(text).__name__}.")
    groups = pipeline[:-1].transform([a, b])
    return explained(pipeline[-1], groups[[0]], groups[[1]])


def explained(last: Any, a: Groups, b: Groups) -> Any:
    """Explain the similarity of two texts, given as groups, by the last step of a pipeline.

    Of texts of thousands of words each word is taken once, with the sum of its weights, unless their order matters.
    """
    likelihood = getattr(last, "likelihood", None)
    is_ordered = isinstance(likelihood, str | Likelihood) and instance_of(likelihood, LIKELIHOODS).uses_positions
    return last.explain(a, b) if is_ordered else last.explain(condensed(a), condensed(b))
