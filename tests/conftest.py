from itertools import product

import numpy as np
import pytest

from sklearn_mcsg import CRITERIA, LIKELIHOODS, Groups, Likelihood, Statistics
from sklearn_mcsg.engine.outputs import OUTPUTS

COMBINATIONS = [(l, c) for l, c in product(LIKELIHOODS, CRITERIA) if not CRITERIA[c]().missing(LIKELIHOODS[l]())]


def pytest_configure(config):
    """Register the markers of pytest-run-parallel, which may not be installed."""
    config.addinivalue_line("markers", "thread_unsafe(reason): the test is not run by several threads at once")
    config.addinivalue_line("markers", "force_parallel_threads(n): the test is run by n threads at once")


# Threads that use estimators at once share tables, caches, compiled code and settings of the process.
by_several_threads = pytest.mark.force_parallel_threads(4)
by_one_thread = pytest.mark.force_parallel_threads(1)  # long tests of all products of options, and other processes
traces_memory = pytest.mark.thread_unsafe(reason="tracemalloc counts what all threads take")


def outputs_of(likelihood, criterion):
    """Outputs that a likelihood has under a criterion."""
    pair = LIKELIHOODS[likelihood](), CRITERIA[criterion]()
    return [name for name, output in OUTPUTS.items() if output.is_usable_for(*pair)]


TRIPLES = [(l, c, o) for l, c in COMBINATIONS for o in outputs_of(l, c)]


class Exponential(Likelihood):
    """A likelihood of one's own: positive features, each exponentially distributed."""

    def statistics(self, groups, *, reg_covar, order):
        return Statistics(n=groups.totals, mean=groups.sum(groups.rows()) / groups.totals[:, None])

    def pool(self, a, b):
        n = a.n + b.n
        return Statistics(n=n, mean=(a.n[:, None] * a.mean + b.n[:, None] * b.mean) / n[:, None])

    def log_likelihood(self, statistics):
        return -statistics.n * (np.log(statistics.mean) + 1).sum(axis=1)

    def n_parameters(self, n_features):
        return n_features


class Ragged:
    """A gate for tests only, before an estimator: each row of a matrix becomes a group of two to five vectors."""

    step = 1.0

    def _check_groups(self, X, name="X"):
        rows = super()._check_groups(X, name)
        vectors = rows.rows()
        sizes = 2 + np.abs(np.round(vectors[:, 0] * 7)).astype(int) % 4
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        steps = self.step * (np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes) + 0.5)
        shifted = np.repeat(vectors, sizes, axis=0) + steps[:, None] * (1 + np.arange(vectors.shape[1]) % 3)
        return Groups(shifted.astype(rows.output_dtype), offsets)


def random_groups(
    n_groups=8, n_features=4, sizes=(1, 9), weighted=False, scale=1.0, spread=1.0, deviations=None, seed=0, dtype=float
):
    """Random groups: `spread` is the deviation of their centres, `deviations` the range of those of their vectors."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(sizes[0], sizes[1], size=n_groups)
    within = np.ones(n_groups) if deviations is None else rng.uniform(*deviations, size=n_groups)
    arrays = [
        scale * (rng.normal(scale=spread, size=n_features) + deviation * rng.normal(size=(n, n_features)))
        for n, deviation in zip(counts, within, strict=True)
    ]
    weights = [rng.uniform(0.1, 3, size=n) for n in counts] if weighted else None
    return Groups.from_list([array.astype(dtype) for array in arrays], weights=weights)


@pytest.fixture
def make_groups():
    """Factory of random groups."""
    return random_groups


@pytest.fixture
def planted():
    """Ragged groups from three clusters, and the cluster of each."""
    rng = np.random.default_rng(7)
    y = np.arange(36) % 3
    centres = 8 * np.eye(3, 5)
    X = [centres[label] + rng.normal(size=(rng.integers(4, 12), 5)) for label in y]
    return X, y


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A Dask cluster of two worker processes."""
    distributed, dask = (pytest.importorskip(name) for name in ("distributed", "dask"))
    # Long after a worker was lost, a cluster gives its successor up, if that has just been lost, too.
    patience = {"distributed.deploy.lost-worker-timeout": "1 hour"}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
