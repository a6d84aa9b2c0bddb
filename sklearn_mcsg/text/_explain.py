"""Explanation of the similarity of two texts by their words."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def explain_texts(pipeline: Any, a: str, b: str) -> Any:
    """Explain the similarity of two texts by their words.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted pipeline of an `EmbeddingVectorizer` and a `GroupEmbedding` or a `ModelComparisonSimilarity`, as
        `make_text_embedding` and `make_text_similarity` build it.
    a, b : str
        The two texts.

    Returns
    -------
    explanation : PairExplanation or Explanation
        The cosine of the embeddings as a sum over pairs of words, or the similarity as a sum over words. Its labels are
        the words, in the order of the texts.

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
    return pipeline[-1].explain(groups[[0]], groups[[1]])
