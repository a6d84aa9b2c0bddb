from itertools import product

import numpy as np
import pytest

from sklearn_mcsg import CRITERIA, LIKELIHOODS, Groups

COMBINATIONS = [pair for pair in product(LIKELIHOODS, CRITERIA) if pair != ("vmf", "bayes")]


@pytest.fixture
def make_groups():
    """Factory of random groups around planted centres."""

    def make(n_groups=8, n_features=4, sizes=(1, 9), weighted=False, scale=1.0, spread=1.0, seed=0, dtype=float):
        rng = np.random.default_rng(seed)
        counts = rng.integers(sizes[0], sizes[1], size=n_groups)
        arrays = [
            (scale * (rng.normal(scale=spread, size=n_features) + rng.normal(size=(n, n_features)))).astype(dtype)
            for n in counts
        ]
        weights = [rng.uniform(0.1, 3, size=n) for n in counts] if weighted else None
        return Groups.from_list(arrays, weights=weights)

    return make


@pytest.fixture
def planted():
    """Ragged groups from three clusters, and the cluster of each."""
    rng = np.random.default_rng(7)
    y = np.arange(36) % 3
    centres = 8 * np.eye(3, 5)
    X = [centres[label] + rng.normal(size=(rng.integers(4, 12), 5)) for label in y]
    return X, y
