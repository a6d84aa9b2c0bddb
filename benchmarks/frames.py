"""Speakers recognised from frames of sound: groups against means, covariances, mixtures and warped series.

    python benchmarks/frames.py --data DIR [--to doc/results/frames] [--no-peers]

DIR holds `japanese_vowels/TRAIN.ts` and `TEST.ts` in the format of the UEA archive: one utterance per line, one
comma-separated list per coefficient, separated by colons, the speaker last. DTW needs tslearn and MiniRocket needs
aeon; without them, or with --no-peers, the published figure of DTW stands in its place.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from results import announce, write_results
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sklearn_mcsg import (
    LIKELIHOODS,
    GroupEmbedding,
    GroupNeighbors,
    ModelComparisonClassifier,
    ModelComparisonSimilarity,
)

LEVEL = 0.05
FEW, DRAWS = (2, 3, 4, 5, 10), 5  # utterances of each speaker in turn, where there are few
PRIOR_STRENGTH = 1.0
PUBLISHED_DTW = 0.949  # Bagnall et al. 2018, "The UEA multivariate time series classification archive", DTW_D


def read(path):
    """Utterances, one (n_frames, n_coefficients) array each, and their speakers."""
    X, y = [], []
    for line in path.read_text(encoding="utf8").splitlines():
        if line and line[0] not in "#@":
            *coefficients, speaker = line.split(":")
            X.append(np.array([[float(value) for value in values.split(",")] for values in coefficients]).T)
            y.append(speaker)
    return X, np.array(y)


def with_differences(X):
    """Frames beside their rates of change."""
    return [np.hstack([x, np.gradient(x, axis=0)]) for x in X]


# Vectors of utterances, each a function of training and test utterances ----------------------------------------------


def means(X):
    return np.stack([x.mean(axis=0) for x in X])


def means_and_deviations(X):
    return np.stack([np.concatenate([x.mean(axis=0), x.std(axis=0)]) for x in X])


def means_and_covariances(X):
    i, j = np.triu_indices(X[0].shape[1])
    return np.stack([np.concatenate([x.mean(axis=0), np.cov(x.T)[i, j]]) for x in X])


VECTORS = {"mean": means, "mean + std": means_and_deviations, "mean + covariance": means_and_covariances}


def embedded(likelihood):
    def embed(train, test):
        embedding = GroupEmbedding(likelihood, prior_strength=PRIOR_STRENGTH).fit(train)
        return embedding.transform(train), embedding.transform(test)

    return embed


def support_vectors(train, y):
    """A support vector classifier; its constant and the scaling of features are chosen by cross-validation."""
    pipeline = Pipeline([("scale", None), ("classify", SVC())])
    grid = {"scale": ["passthrough", StandardScaler()], "classify__C": [1, 10, 100]}
    folds = StratifiedKFold(min(5, *np.unique(y, return_counts=True)[1]), shuffle=True, random_state=0)
    return GridSearchCV(pipeline, grid, cv=folds).fit(train, y)


# Methods: functions of (X, y, new) that return labels -----------------------------------------------------------------


def by_vectors(vectors, classify):
    def method(X, y, new):
        train, test = vectors(X, new)
        return classify(train, y).predict(test)

    return method


def by_mixtures(**params):
    """One mixture of Gaussians per speaker; frames are counted one by one."""

    def method(X, y, new):
        speakers = np.unique(y)
        frames = [np.concatenate([x for x, own in zip(X, y, strict=True) if own == speaker]) for speaker in speakers]
        mixtures = [GaussianMixture(random_state=0, reg_covar=1e-4, **params).fit(some) for some in frames]
        scores = [[mixture.score_samples(x).sum() for mixture in mixtures] for x in new]
        return speakers[np.argmax(scores, axis=1)]

    return method


def by_dtw(X, y, new):
    from tslearn.metrics import cdist_dtw
    from tslearn.utils import to_time_series_dataset

    distances = cdist_dtw(to_time_series_dataset(new), to_time_series_dataset(X))
    return y[distances.argmin(axis=1)]


def by_rocket(X, y, new):
    from aeon.classification.convolution_based import MiniRocketClassifier

    length = max(map(len, [*X, *new]))

    def resized(series):
        times = [np.linspace(0, len(x) - 1, length) for x in series]
        return np.stack([[np.interp(t, np.arange(len(x)), c) for c in x.T] for t, x in zip(times, series, strict=True)])

    return MiniRocketClassifier(random_state=0).fit(resized(X), y).predict(resized(new))


def by_neighbours(likelihood):
    def method(X, y, new):
        similarity = ModelComparisonSimilarity(likelihood, output="divergence", prior_strength=PRIOR_STRENGTH)
        index = GroupNeighbors(similarity, n_neighbors=1).fit(X)
        return y[index.kneighbors(new, return_distance=False)[:, 0]]

    return method


def by_classes(likelihood):
    def method(X, y, new):
        return ModelComparisonClassifier(likelihood, prior_strength=PRIOR_STRENGTH).fit(X, y).predict(new)

    return method


def methods():
    nearest, table = KNeighborsClassifier(1), {}
    for name, vectors in VECTORS.items():
        pair = lambda X, new, vectors=vectors: (vectors(X), vectors(new))  # noqa: E731
        table[f"{name}, SVC"] = by_vectors(pair, support_vectors)
        table[f"{name}, 1-NN"] = by_vectors(pair, nearest.fit)
    table["one Gaussian per speaker, frame by frame"] = by_mixtures(n_components=1)
    table["mixture of 8 Gaussians per speaker, frame by frame"] = by_mixtures(n_components=8, covariance_type="diag")
    for likelihood in LIKELIHOODS:
        table[f'**`GroupEmbedding("{likelihood}")`, SVC**'] = by_vectors(embedded(likelihood), support_vectors)
        table[f'**`ModelComparisonClassifier("{likelihood}")`**'] = by_classes(likelihood)
        table[f'**`GroupNeighbors`, `"{likelihood}"`, 1-NN**'] = by_neighbours(likelihood)
    return table


def few(y, seed):
    """Indices of few training utterances, of each speaker another number."""
    order = np.random.default_rng(seed).permutation(len(y))
    chosen = [order[y[order] == name][: FEW[i % len(FEW)]] for i, name in enumerate(np.unique(y))]
    return np.concatenate(chosen)


def accuracies(train, test, peers):
    """Share of test utterances whose speaker is found: from frames, with their differences, and from few utterances."""
    (X, y), (new, truth) = train, test
    table = methods()
    if peers and find_spec("aeon"):
        table["MiniRocket (aeon), series resized"] = by_rocket
    if peers and find_spec("tslearn"):
        table["DTW (tslearn), 1-NN"] = by_dtw
    rows = {}
    for name, method in table.items():
        sets = (X, new), (with_differences(X), with_differences(new))
        scores = [np.mean(method(a, y, b) == truth) for a, b in sets]
        draws = [few(y, seed) for seed in range(DRAWS)]
        found = [np.mean(method([X[i] for i in some], y[some], new) == truth) for some in draws]
        rows[name] = [*scores, np.mean(found)]
        print(name, np.round(rows[name], 3), flush=True)
    if "DTW (tslearn), 1-NN" not in rows:
        rows["DTW, 1-NN, published"] = [PUBLISHED_DTW, np.nan, np.nan]
    return dict(sorted(rows.items(), key=lambda row: -np.nanmax(row[1][:2])))


# An unknown speaker ---------------------------------------------------------------------------------------------------


def rejected_by_classes(likelihood):
    def method(X, y, new):
        classifier = ModelComparisonClassifier(likelihood, prior_strength=PRIOR_STRENGTH, reject=True, level=LEVEL)
        return classifier.fit(X, y).predict(new) == "none"

    return method


def rejected_by_neighbour(X, y, new):
    """Too far from the nearest utterance, by mean + std, compared with the utterances of that speaker."""
    scaler = StandardScaler().fit(means_and_deviations(X))
    train, test = (scaler.transform(means_and_deviations(some)) for some in (X, new))
    thresholds = {}
    for speaker in np.unique(y):
        own = KNeighborsClassifier(1).fit(train[y == speaker], y[y == speaker])
        thresholds[speaker] = np.quantile(own.kneighbors()[0], 1 - LEVEL)
    distances, nearest = KNeighborsClassifier(1).fit(train, y).kneighbors(test)
    return distances[:, 0] > np.array([thresholds[y[i]] for i in nearest[:, 0]])


def rejected_by_density(X, y, new):
    """Too small a mean log density of frames under every speaker's Gaussian, by leave-one-out quantiles."""
    accepted = np.zeros(len(new), dtype=bool)
    for speaker in np.unique(y):
        own = [x for x, name in zip(X, y, strict=True) if name == speaker]

        def fitted(some):
            return GaussianMixture(1, reg_covar=1e-4).fit(np.concatenate(some))

        left_out = [fitted(own[:i] + own[i + 1 :]).score(x) for i, x in enumerate(own)]
        model = fitted(own)
        accepted |= np.array([model.score(x) for x in new]) >= np.quantile(left_out, LEVEL)
    return ~accepted


def rejections(train, test):
    """Shares rejected of a speaker left out of training, on average and at least, and of the others."""
    (X, y), (new, truth) = train, test
    table = {
        "distance of mean + std to the nearest utterance": rejected_by_neighbour,
        "density of frames, one Gaussian per speaker": rejected_by_density,
    }
    for name in LIKELIHOODS:
        table[f'**`ModelComparisonClassifier("{name}", reject=True)`**'] = rejected_by_classes(name)
    rows = {name: [] for name in table}
    for speaker in np.unique(y):
        known = [x for x, own in zip(X, y, strict=True) if own != speaker]
        for name, method in table.items():
            rejected = method(known, y[y != speaker], new)
            print(f"without {speaker}: {name}", flush=True)
            rows[name].append([rejected[truth == speaker].mean(), rejected[truth != speaker].mean()])
    shares = {name: np.array(values) for name, values in rows.items()}
    return {name: [v[:, 0].mean(), v[:, 0].min(), v[:, 1].mean()] for name, v in shares.items()}


def table(rows, columns):
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "--:|" * len(columns)]
    for name, values in rows.items():
        cells = ["" if np.isnan(v) else f"{v:.3f}" for v in values]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with japanese_vowels/TRAIN.ts and TEST.ts")
    parser.add_argument("--to", type=Path, default=Path("doc/results/frames"), help="folder of the tables")
    parser.add_argument("--no-peers", action="store_true", help="leave out DTW and MiniRocket, which take minutes")
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    folder = options.data / "japanese_vowels"
    if not (folder / "TRAIN.ts").exists():
        raise SystemExit(f"No TRAIN.ts in {folder}.")
    train, test = read(folder / "TRAIN.ts"), read(folder / "TEST.ts")
    found = accuracies(train, test, not options.no_peers)
    unknown = rejections(train, test)
    write_results(
        options.to,
        {
            "accuracy": table(found, ["frames", "with differences", "few utterances"]),
            "unknown": table(unknown, ["unknown, mean", "unknown, least", "known"]),
        },
    )


if __name__ == "__main__":
    main()
