"""
Explaining a similarity
=======================

Why are two groups similar or dissimilar? The cosine of two embedded texts is a sum over pairs of words. The similarity
of a model comparison is a sum over vectors and, for a diagonal covariance, also over features. This example shows which
words of two texts match, and which features distinguish two lots of wine.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from sklearn_mcsg import ModelComparisonSimilarity, calibrate_texts, explain_texts, make_text_embedding
from sklearn_mcsg.datasets import load_short_texts

# %%
# Pairs of words
# --------------
#
# The pipeline learns from the short texts what all texts have in common. It then explains two pairs. The texts of the
# first pair share no word but "the". The texts of the second pair share a word with two meanings.

texts = load_short_texts().data
pipeline = make_text_embedding().fit(texts)
calibration = calibrate_texts(pipeline, texts, cv=5, name="the short texts", random_state=0)
pairs = [
    ("A kitten sleeps in a basket by the fire.", "The old cat dozed on the warm sofa."),
    ("The bank raised its interest rate on Monday.", "We had a picnic on the bank of the river."),
]
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, (a, b) in zip(axes, pairs, strict=True):
    explanation = explain_texts(pipeline, a, b)
    explanation.plot(ax)
    print(explanation, calibration.sentence(calibration.pvalue(a, b)), sep="\n", end="\n\n")
plt.show()

# %%
# Each square is a pair of words; blue pairs increase the cosine and orange pairs reduce it. In the first pair "kitten"
# matches "cat", and "sleeps" matches "dozed", "warm" and "sofa". In the second pair "bank" matches itself as well as
# "river", "interest" and "rate": a word has one vector, whatever it means in a text. The embedding therefore takes the
# texts for more similar than they are, and only one in 25 random pairs is at least as near. Function words have little
# weight. The squares sum to the cosine; ``order`` is the part of it that is due to word order.
#
# Features
# --------
#
# The wines of one cultivar are split alternately into two lots; a third lot is of another cultivar. The features are
# thirteen chemical measurements. Each feature gets its share of the vectors' contributions and an equal share of the
# penalty.

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
first, second = X[wine.target == 0][::2], X[wine.target == 0][1::2]
other = X[wine.target == 1][::2]
print(len(first), len(second), len(other), "wines")
model = ModelComparisonSimilarity()
explanations = {"one cultivar": model.explain(first, second), "two cultivars": model.explain(first, other)}

fig, axes = plt.subplots(1, 2, figsize=(8.5, 4.4), sharey=True, layout="constrained")
for ax, (title, explanation) in zip(axes, explanations.items(), strict=True):
    evidence = sum(part.sum(axis=0) for part in explanation.features) + explanation.penalty / X.shape[1]
    ax.barh(wine.feature_names, evidence, color=np.where(evidence > 0, "#0072B2", "#E69F00"))
    ax.axvline(0, color="0.5", lw=0.8)
    ax.set(xlabel="contribution to the similarity", title=f"{title}: similarity {explanation.similarity:.0f}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
plt.show()

# %%
# For two lots of one cultivar, nearly every feature favours one model, by at most its share of the penalty, which is 4.
# Malic acid is the exception: six of the seven wines with a high value are in the second lot. For two cultivars, every
# feature favours two models, proline and alcohol most of all.
