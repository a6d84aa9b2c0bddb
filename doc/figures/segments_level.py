"""A sequence with three segments, cut at level 0.05: intervals and p-values of the boundaries."""

import numpy as np

from sklearn_mcsg import ModelComparisonSegmenter

rng = np.random.default_rng(0)
X = np.concatenate(
    [
        rng.normal(size=(40, 3)),
        rng.normal([2, 0, 0], size=(30, 3)),
        rng.normal([2, 0, 0], [1, 4, 1], size=(50, 3)),
    ]
)
ModelComparisonSegmenter(level=0.05, random_state=0).fit(X).plot()
