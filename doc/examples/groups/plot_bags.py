"""
Bags of vectors: multiple instance learning
===========================================

How do you classify a *bag of vectors*? In multiple instance learning (MIL) a sample is a bag with one label: a molecule
is a bag of its shapes, an image a bag of its regions, a patient a bag of cells. Here a bag is a group. This example
classifies bags in three ways that need no labels of single vectors, and in the usual ways: by the mean of each bag, or
by its mean, minimum and maximum. Which of them is best depends on what makes a bag positive, so there are three kinds
of data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from sklearn_mcsg import GroupEmbedding, Groups, ModelComparisonClassifier, ModelComparisonSimilarity

FEATURES = 6


def draw_bag(rng, kind, positive):
    """Draw 5 to 30 vectors around a centre of their own."""
    size = rng.integers(5, 31)
    bag = rng.normal(size=(size, FEATURES))
    if positive and kind == "all vectors are shifted":
        bag += 0.5
    elif positive and kind == "the spread differs":
        bag *= [1.4, 1.4, 1.4, 0.8, 0.8, 0.8]
    elif positive:  # "one vector decides"
        bag[rng.integers(size), :2] += 3
    return bag + 0.5 * rng.normal(size=FEATURES)


# %%
# Three kinds of bags
# -------------------
#
# 200 bags of each kind, half of them positive. Bags have different sizes; ``Groups`` packs them into one table.

rng = np.random.default_rng(0)
y = np.arange(200) % 2
data = {
    kind: Groups.from_list([draw_bag(rng, kind, label) for label in y])
    for kind in ("all vectors are shifted", "the spread differs", "one vector decides")
}
print(data["one vector decides"])

fig, axes = plt.subplots(1, 3, figsize=(8.5, 3), sharex=True, sharey=True, layout="constrained")
for ax, (kind, bags) in zip(axes, data.items(), strict=True):
    for label, colour, name in ((0, "0.6", "negative"), (1, "#D55E00", "positive")):
        vectors = np.concatenate([bags[i] for i in np.flatnonzero(y == label)[:12]])
        ax.scatter(*vectors[:, :2].T, s=6, color=colour, label=name)
    ax.set(title=kind, xlabel="feature 0")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("feature 1")
axes[0].legend(frameon=False, markerscale=2, loc="upper left")
plt.show()

# %%
# Six classifiers
# ---------------
#
# * ``GroupEmbedding`` turns a bag into one vector, for any classifier of scikit-learn.
# * ``output="kernel"`` is a positive definite matrix of similarities, for a support vector machine with
#   ``kernel="precomputed"``.
# * ``ModelComparisonClassifier`` has one model for each class, made of all its vectors, and nothing to tune.
#
# C of the support vector machines is chosen inside the training folds.


def means(bags):
    """Compute the mean of each bag."""
    return np.stack([bag.mean(axis=0) for bag in bags])


def summaries(bags):
    """Compute the mean, minimum and maximum of each feature."""
    return np.stack([np.concatenate([bag.mean(axis=0), bag.min(axis=0), bag.max(axis=0)]) for bag in bags])


def with_svc(*steps, **params):
    """Put a support vector machine after other steps."""
    return make_pipeline(*steps, GridSearchCV(SVC(**params), {"C": [0.1, 1, 10, 100]}))


trees = ExtraTreesClassifier(200, random_state=0)
similarity = ModelComparisonSimilarity(prior_strength=1.0, output="kernel", random_state=0)
classifiers = {
    "mean, SVC": with_svc(FunctionTransformer(means), StandardScaler()),
    "mean, min, max, SVC": with_svc(FunctionTransformer(summaries), StandardScaler()),
    "mean, min, max, trees": make_pipeline(FunctionTransformer(summaries), trees),
    "GroupEmbedding, SVC": with_svc(GroupEmbedding(prior_strength=1.0)),
    'output="kernel", SVC': with_svc(similarity, kernel="precomputed"),
    "ModelComparisonClassifier": ModelComparisonClassifier(),
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
accuracy = {
    kind: [cross_val_score(classifier, bags, y, cv=folds).mean() for classifier in classifiers.values()]
    for kind, bags in data.items()
}

fig, axes = plt.subplots(1, 3, figsize=(8.5, 3), sharey=True, layout="constrained")
colours = ["0.6"] * 3 + ["#0072B2"] * 3
for ax, (kind, values) in zip(axes, accuracy.items(), strict=True):
    bars = ax.barh(list(classifiers), values, color=colours)
    ax.bar_label(bars, fmt="%.2f", padding=3)
    ax.axvline(0.5, color="0.2", ls=":", lw=1)
    ax.set(title=kind, xlim=(0, 1.15), xticks=(0, 0.5, 1), xlabel="accuracy, five folds")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
plt.show()

# %%
# Which one to take
# -----------------
#
# * If all vectors of a bag are shifted, the mean already says most of it. Five of the six classifiers are level, and
#   trees are behind.
# * If the spread differs, the mean says nothing. The embedding and the kernel compare variances. Minima and maxima see
#   the spread too, but they also grow with the number of vectors in a bag.
# * If one vector decides, means and variances of a bag hide it, and minima and maxima show it. Trees on them are the
#   best, as they are on pictures of elephants in the :doc:`measurements </bags>` on real multiple instance data.
#
# ``ModelComparisonClassifier`` is good where one model describes a class. If you do not know what makes a bag positive,
# cross-validate the embedding and the summaries side by side, as above.
