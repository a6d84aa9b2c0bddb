"""All pairs of groups against what users would pick instead, in one run: ratios, never absolute times."""

import argparse
import time

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from sklearn_mcsg import ModelComparisonSimilarity


def per_pair_loop(groups):
    """The paper's way: concatenate, fit and score, pair by pair."""

    def aic(x):
        variance = x.var(axis=0) + 1e-6
        return len(x) * (np.log(2 * np.pi * variance) + 1).sum() + 4 * x.shape[1]

    alone = [aic(x) for x in groups]
    return np.array(
        [
            [a + b - aic(np.concatenate([x, y])) for b, y in zip(alone, groups, strict=True)]
            for a, x in zip(alone, groups, strict=True)
        ]
    )


def seconds(function, repeats=3):
    """Best of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=(rng.integers(3, 21), options.features)) for _ in range(options.groups)]
    means = np.array([x.mean(axis=0) for x in groups])
    cosine = seconds(lambda: cosine_similarity(means))
    print(f"{options.groups} groups of 3 to 20 vectors, {options.features} features; cosine of the means = 1\n")
    print("| all pairs | times the cosine |\n|---|---|")
    print(f"| per-pair loop, diag AIC | {seconds(lambda: per_pair_loop(groups), 1) / cosine:,.0f} |")
    for likelihood in ("diag", "spherical", "vmf"):
        model = ModelComparisonSimilarity(likelihood)
        print(f"| {likelihood} AIC | {seconds(lambda m=model: m.pairwise(groups)) / cosine:,.0f} |")


if __name__ == "__main__":
    main()
