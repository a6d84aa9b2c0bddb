"""Multiple-instance data, bags with one label each: groups against vectors made of means, minima and maxima.

    python benchmarks/bags.py --data DIR [--to doc/results/bags] [--repeats 5] [--folds 10] [--trees 300]

DIR holds `bags/musk1.npz` and `bags/elephant.npz`, with `vectors`, `offsets` and `labels` (0 or 1 for each bag).
"""

import argparse
from pathlib import Path

import numpy as np
from results import announce, write_results
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from sklearn_mcsg import GroupEmbedding, Groups, ModelComparisonClassifier, ModelComparisonSimilarity

DATA = {"musk1": "Musk 1 (92 molecules, 166 features)", "elephant": "Elephant (200 images, 230 features)"}
PUBLISHED = {  # ten-fold accuracies in the literature
    "MI-SVM, published": (0.78, 0.81),
    "mi-graph, published": (0.89, 0.87),
    "miFV, published": (0.91, 0.85),
}
C = [1, 10, 100]


def read(path):
    """Bags, and their labels."""
    data = np.load(path)
    return Groups(data["vectors"].astype(np.float64), data["offsets"]), data["labels"]


def standardized(X):
    """Groups whose features have mean 0 and standard deviation 1 over all vectors; constant features are left out."""
    rows = X.rows()
    varies = rows.std(axis=0) > 0
    return Groups(StandardScaler().fit_transform(rows[:, varies]), X.offsets)


def means(X):
    return np.stack([X[i].mean(axis=0) for i in range(len(X))])


def summaries(X):
    """Mean, minimum and maximum of each feature."""
    bags = [X[i] for i in range(len(X))]
    return np.stack([np.concatenate([bag.mean(axis=0), bag.min(axis=0), bag.max(axis=0)]) for bag in bags])


def svc(*steps):
    """A support vector machine after other steps, with C chosen inside the training folds."""
    return GridSearchCV(make_pipeline(*steps, SVC()), {"svc__C": C}, cv=inner())


def inner():
    return StratifiedKFold(5, shuffle=True, random_state=0)


def forest(n_trees):
    return ExtraTreesClassifier(n_trees, random_state=0)


def embedding(**params):
    return GroupEmbedding(prior_strength=1.0, **params)


def chosen(n_trees):
    """The best of three pipelines, chosen inside the training folds."""
    pipeline = Pipeline([("embedding", embedding()), ("scaler", None), ("classifier", SVC())])
    grid = [
        {"classifier__C": C},
        {"embedding__rotate": [False], "scaler": [StandardScaler()], "classifier__C": C},
        {"embedding__rotate": [False], "classifier": [forest(n_trees)]},
    ]
    return GridSearchCV(pipeline, grid, cv=inner())


def systems(n_trees):
    kernel = ModelComparisonSimilarity(prior_strength=1.0, output="kernel", random_state=0)
    yield "mean, SVC", svc(FunctionTransformer(means), StandardScaler())
    yield "mean, minimum and maximum, SVC", svc(FunctionTransformer(summaries), StandardScaler())
    yield "mean, minimum and maximum, trees", make_pipeline(FunctionTransformer(summaries), forest(n_trees))
    yield "**`GroupEmbedding`, SVC**", svc(embedding())
    yield "**`GroupEmbedding`, scaler, SVC**", svc(embedding(), StandardScaler())
    yield "**`GroupEmbedding`, trees**", make_pipeline(embedding(), forest(n_trees))
    yield "**`GroupEmbedding(rotate=False)`, scaler, SVC**", svc(embedding(rotate=False), StandardScaler())
    yield "**`GroupEmbedding(rotate=False)`, trees**", make_pipeline(embedding(rotate=False), forest(n_trees))
    yield "**the best of three pipelines, chosen inside the training folds**", chosen(n_trees)
    yield (
        '**`output="kernel"`, SVC**',
        GridSearchCV(make_pipeline(kernel, SVC(kernel="precomputed")), {"svc__C": C}, cv=inner()),
    )
    yield "**`ModelComparisonClassifier`**", ModelComparisonClassifier()


def measured(folder, repeats, n_folds, n_trees):
    """Accuracies of all systems on all data, by name."""
    found = {}
    for name in DATA:
        X, y = read(folder / "bags" / f"{name}.npz")
        X = standardized(X)
        folds = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=repeats, random_state=0)
        for system, estimator in systems(n_trees):
            scores = cross_val_score(estimator, X, y, cv=folds).reshape(repeats, n_folds).mean(axis=1)
            found.setdefault(system, []).append(f"{scores.mean():.3f} ± {scores.std():.3f}")
            print(name, system, found[system][-1], flush=True)
    return found


def table(found):
    every = found | {name: [f"{value:.2f}" for value in values] for name, values in PUBLISHED.items()}
    lines = [f"| | {' | '.join(DATA.values())} |", "|---|" + "--:|" * len(DATA)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(values)} |" for name, values in every.items())])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, default=Path("doc/results/bags"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--trees", type=int, default=300)
    options = parser.parse_args(arguments)
    announce(__doc__, options.to)
    found = measured(options.data, options.repeats, options.folds, options.trees)
    write_results(options.to, {"accuracy": table(found)})


if __name__ == "__main__":
    main()
