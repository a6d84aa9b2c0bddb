from . import (
    base,
    baselines,
    calibration,
    classification,
    cli,
    clustering,
    communities,
    criteria,
    datasets,
    duplicates,
    embedding,
    engine,
    explanation,
    groups,
    hierarchy,
    likelihoods,
    neighbors,
    pairs,
    priors,
    report,
    segmentation,
    similarity,
    storage,
    text,
)
from ._estimator import ComparesGroups
from ._validation import validate_groups
from ._version import __version__
from .base import GroupSimilarity
from .baselines import SIF, MeanVector, WordMoversDistance
from .classification import ModelComparisonClassifier
from .clustering import ModelComparisonClustering, choose_n_clusters
from .communities import GroupClustering
from .criteria import AIC, BIC, CRITERIA, TIC, BayesFactor, Criterion
from .duplicates import find_duplicates
from .embedded import EmbeddedGroups
from .embedding import GroupEmbedding
from .explanation import Explanation, explain_texts
from .groups import Groups
from .hierarchy import ClusterTree
from .likelihoods import (
    LIKELIHOODS,
    DiagonalGaussian,
    Fit,
    FullGaussian,
    Likelihood,
    SphericalGaussian,
    Statistics,
    VonMisesFisher,
)
from .neighbors import GroupNeighbors
from .pair_explanation import PairExplanation
from .pairs import PairSimilarity, spearman_interval
from .partitions import PartitionedNeighbors
from .priors import NormalGamma, NormalWishart
from .report import cluster_report, write_report
from .segmentation import ModelComparisonSegmenter
from .similarity import ModelComparisonSimilarity, model_comparison_similarity
from .text import (
    EmbeddingVectorizer,
    TextCalibration,
    TextClusters,
    TextSearch,
    calibrate_texts,
    cluster_texts,
    find_duplicate_texts,
    load_word_vectors,
    make_text_embedding,
    make_text_similarity,
    summarize_clusters,
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
    "ClusterTree",
    "ComparesGroups",
    "Criterion",
    "DiagonalGaussian",
    "EmbeddedGroups",
    "EmbeddingVectorizer",
    "Explanation",
    "Fit",
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
    "NormalWishart",
    "PairExplanation",
    "PairSimilarity",
    "PartitionedNeighbors",
    "SphericalGaussian",
    "Statistics",
    "TextCalibration",
    "TextClusters",
    "TextSearch",
    "VonMisesFisher",
    "WordMoversDistance",
    "__version__",
    "base",
    "baselines",
    "calibrate_texts",
    "calibration",
    "choose_n_clusters",
    "classification",
    "cli",
    "cluster_report",
    "cluster_texts",
    "clustering",
    "communities",
    "criteria",
    "datasets",
    "duplicates",
    "embedding",
    "engine",
    "explain_texts",
    "explanation",
    "find_duplicate_texts",
    "find_duplicates",
    "groups",
    "hierarchy",
    "likelihoods",
    "load_word_vectors",
    "make_text_embedding",
    "make_text_similarity",
    "model_comparison_similarity",
    "neighbors",
    "pairs",
    "priors",
    "report",
    "segmentation",
    "similarity",
    "spearman_interval",
    "storage",
    "summarize_clusters",
    "text",
    "update_index",
    "validate_groups",
    "write_report",
]
