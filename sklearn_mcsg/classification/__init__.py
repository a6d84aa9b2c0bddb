"""Classification: a class is one model, fitted to all vectors of its groups.

In come groups and labels; out go labels of new groups, probabilities, and rejections.
"""

from sklearn_mcsg.classification._classifier import ModelComparisonClassifier

__all__ = ["ModelComparisonClassifier"]
