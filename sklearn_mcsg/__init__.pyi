from ._version import __version__
from .classification import ModelComparisonClassifier
from .clustering import GroupClustering, ModelComparisonClustering
from .criteria import AIC, BIC, CRITERIA, TIC, BayesFactor, Criterion
from .embedding import GroupEmbedding
from .explanation import Explanation, PairExplanation, VectorExplanation
from .groups import Groups, validate_groups
from .likelihoods import (
    LIKELIHOODS,
    DiagonalGaussian,
    FullGaussian,
    Likelihood,
    NormalGamma,
    NormalGammaTrend,
    NormalWishart,
    SphericalGaussian,
    Statistics,
    TrendGaussian,
    VonMisesFisher,
)
from .report import cluster_report
from .samples import compare_samples
from .search import GroupNeighbors, PartitionedNeighbors, find_duplicates
from .segmentation import ModelComparisonSegmenter
from .similarity import (
    SIF,
    Comparison,
    GroupSimilarity,
    MeanVector,
    ModelComparisonSimilarity,
    PairSimilarity,
    WordMoversDistance,
    model_comparison_similarity,
)
from .text import (
    EmbeddingVectorizer,
    TextCalibration,
    TextClusters,
    TextSearch,
    calibrate_texts,
    cluster_texts,
    explain_texts,
    find_duplicate_texts,
    load_word_vectors,
    make_text_embedding,
    make_text_similarity,
    update_index,
)

__all__ = [
    "AIC",
    "BIC",
    "CRITERIA",
    "LIKELIHOODS",
    "SIF",
    "TIC",
    "BayesFactor",
    "Comparison",
    "Criterion",
    "DiagonalGaussian",
    "EmbeddingVectorizer",
    "Explanation",
    "FullGaussian",
    "GroupClustering",
    "GroupEmbedding",
    "GroupNeighbors",
    "GroupSimilarity",
    "Groups",
    "Likelihood",
    "MeanVector",
    "ModelComparisonClassifier",
    "ModelComparisonClustering",
    "ModelComparisonSegmenter",
    "ModelComparisonSimilarity",
    "NormalGamma",
    "NormalGammaTrend",
    "NormalWishart",
    "PairExplanation",
    "PairSimilarity",
    "PartitionedNeighbors",
    "SphericalGaussian",
    "Statistics",
    "TextCalibration",
    "TextClusters",
    "TextSearch",
    "TrendGaussian",
    "VectorExplanation",
    "VonMisesFisher",
    "WordMoversDistance",
    "__version__",
    "calibrate_texts",
    "cluster_report",
    "cluster_texts",
    "compare_samples",
    "explain_texts",
    "find_duplicate_texts",
    "find_duplicates",
    "load_word_vectors",
    "make_text_embedding",
    "make_text_similarity",
    "model_comparison_similarity",
    "update_index",
    "validate_groups",
]
