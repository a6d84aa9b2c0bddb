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
from sklearn_mcsg.likelihoods import LIKELIHOODS, DiagonalGaussian, Likelihood, TrendGaussian
from sklearn_mcsg.similarity import GroupSimilarity
from sklearn_mcsg.similarity.model import ModelComparisonSimilarity
from sklearn_mcsg.text._vectorizer import EmbeddingVectorizer
from sklearn_mcsg.text.sources import RECOMMENDED, SPELLING, has_static_model, open_table, sources_of
from sklearn_mcsg.text.tables import SideBySide, SpellingTable


def _recommended(vectors: Any, likelihood: Any, **given: Any) -> dict[str, Any]:
    """The given parameters; those that are ``"auto"`` follow from the kinds of tables, and from what embeds groups."""
    if has_static_model(vectors):  # trained to be averaged; alone or beside other tables
        recipe: dict[str, Any] = {"whiten": 0.25, "spread": 0.5}
    else:
        recipe = {"whiten": 0.5, "spread": _spread_of_words(vectors, likelihood)}
    if isinstance(likelihood, GroupSimilarity):  # embedded by landmarks, which have no coordinates
        recipe["spread"] = 1.0
    return {
        name: recipe[name] if isinstance(value, str) and value == "auto" else value for name, value in given.items()
    }


def _spread_of_words(vectors: Any, likelihood: Any) -> float | np.ndarray:
    """1 for tables of words, and 0 for the features of their spelling, if each feature has a scale of its own."""
    by_feature = likelihood in ("diag", "trend") or isinstance(likelihood, DiagonalGaussian | TrendGaussian)
    table = open_table(vectors) if by_feature and SPELLING in sources_of(vectors) else None
    return 1.0 - table.features_of(SpellingTable) if isinstance(table, SideBySide) else 1.0


def make_text_similarity(
    *,
    vectors: Any = RECOMMENDED,
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

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``similarity``, a `ModelComparisonSimilarity`.
    ``set_params`` of the pipeline reaches all other parameters of its steps.

    Parameters
    ----------
    vectors : str, path, mapping, tuple, KeyedVectors, StaticModel, or list of those, \
            default=("wordllama", "glove-6b-50d")
        Word vectors, a static model, or several tables: see `EmbeddingVectorizer`.
    weighting : {"auto", "sif", "norm"}, callable, tuple of those or None, default="auto"
        Weight of a word: see `EmbeddingVectorizer`.
    unknown : {"spelling", "ignore", "error"}, default="spelling"
        What becomes of words that a table of words lacks.
    likelihood : {"diag", "spherical", "full", "vmf", "trend"} or Likelihood, default="diag"
        The model of a group: here, of a text. See `ModelComparisonSimilarity`.
    criterion : {"aic", "tic", "bic", "bayes"} or Criterion, default="aic"
        The information criterion: see `ModelComparisonSimilarity`.
    output : {"similarity", "distance", "divergence", "centered", "kernel"}, default="centered"
        What to return for each pair: see `ModelComparisonSimilarity`. All but ``"similarity"`` and ``"kernel"`` are
        distances.
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
    vectorizer = EmbeddingVectorizer(vectors, unknown=unknown, weighting=weighting)
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
    vectors: Any = RECOMMENDED,
    weighting: Any = "auto",
    unknown: str = "spelling",
    likelihood: Any = "trend",
    whiten: Any = "auto",
    spread: Any = "auto",
    order: float = 0.5,
    n_components: int | None = None,
    prior_strength: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Pipeline:
    """Build the embedding that is recommended for texts: weighted word vectors, and `GroupEmbedding` at unit length.

    Its steps are ``vectorizer``, an `EmbeddingVectorizer`, and ``embedding``, a `GroupEmbedding`. Two parameters follow
    from the kinds of `vectors`:

    - Tables of words only, as of GloVe, word2vec or fastText: ``whiten=0.5`` and ``spread=1``. The features of
      ``"spelling"`` beside them have ``spread=0``.
    - A static model, alone or beside other tables: ``whiten=0.25`` and ``spread=0.5``, because its vectors were trained
      to be averaged.

    ``set_params`` of the pipeline reaches all other parameters of its steps.

    Parameters
    ----------
    vectors : str, path, mapping, tuple, KeyedVectors, StaticModel, or list of those, \
            default=("wordllama", "glove-6b-50d")
        Word vectors, a static model, or several tables: see `EmbeddingVectorizer`.
    weighting : {"auto", "sif", "norm"}, callable, tuple of those or None, default="auto"
        Weight of a word: see `EmbeddingVectorizer`.
    unknown : {"spelling", "ignore", "error"}, default="spelling"
        What becomes of words that a table of words lacks.
    likelihood : {"diag", "spherical", "full", "vmf", "trend"}, Likelihood or similarity estimator, default="trend"
        The model of a group: here, of a text. See `ModelComparisonSimilarity`. ``"trend"`` knows the order of words.
    whiten : "auto" or float, default="auto"
        Power of whitening, from 0 (none) to 1 (all components get unit variance). ``"auto"`` follows from `vectors`,
        see above.
    spread : "auto", float or array-like of shape (n_features,), default="auto"
        Factor on the coordinates of scale, that is of log variances. ``"auto"`` follows from `vectors`, see above.
    order : float, default=0.5
        Factor on the coordinates of order, that is of slopes. With 0 a text is a set of words, up to the slope of the
        corpus.
    n_components : int, default=None
        Number of leading components to keep; ``None`` keeps all, up to 918 with the default vectors. For an index of
        millions of texts 256 are enough for meaning; the order of words needs all.
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
           [-0.5, -0.5,  1. , -0. ],
           [-0.5, -0.5, -0. ,  1. ]], dtype=float32)
    """
    vectorizer = EmbeddingVectorizer(vectors, unknown=unknown, weighting=weighting)
    embedding = GroupEmbedding(
        likelihood,
        order=order,
        n_components=n_components,
        normalize=True,
        prior_strength=prior_strength,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        **_recommended(vectors, likelihood, whiten=whiten, spread=spread),
    )
    return Pipeline([("vectorizer", vectorizer), ("embedding", embedding)])


def check_embedding(pipeline: Any, needed_by: str) -> Pipeline:
    """The pipeline, if it embeds texts; otherwise raise TypeError."""
    if not isinstance(pipeline, Pipeline) or len(pipeline) != 2 or not isinstance(pipeline[-1], GroupEmbedding):
        raise TypeError(
            f"{needed_by} needs a pipeline that ends in a GroupEmbedding, as make_text_embedding builds it."
        )
    return pipeline


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
    explanation : PairExplanation or VectorExplanation
        The cosine of the embeddings as a sum over pairs of words, or the similarity of the models as a sum over words.
        Its labels are the words, in the order of the texts. Where this order does not count, a text of several thousand
        words has each different word once, with the sum of its weights. Where it counts, as with
        ``likelihood="trend"``, a `PairExplanation` says how much of the cosine is due to order.

    Examples
    --------
    >>> from sklearn_mcsg import explain_texts, make_text_embedding
    >>> from sklearn_mcsg.datasets import load_short_texts
    >>> pipeline = make_text_embedding().fit(load_short_texts().data)
    >>> explain_texts(pipeline, "A cat slept on the sofa.", "The kitten naps in an armchair.")
    Cosine 0.347 of 6 and 6 vectors
      order -0.009 (without it: 0.356)
      cat ~ kitten +0.186
      slept ~ armchair +0.054
      sofa ~ armchair +0.049
      slept ~ naps +0.037
      sofa ~ kitten +0.036
    """
    if not (isinstance(pipeline, Pipeline) and len(pipeline) > 1 and hasattr(pipeline[-1], "explain")):
        raise TypeError(
            "explain_texts(pipeline, a, b) needs a pipeline of an EmbeddingVectorizer and a GroupEmbedding or a "
            "ModelComparisonSimilarity, as make_text_embedding and make_text_similarity build it; got "
            f"{type(pipeline).__name__}."
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
