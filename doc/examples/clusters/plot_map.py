"""
A map of texts
==============

What is a collection of texts about, at a glance? Once every text is a vector, t-SNE or UMAP draw a map of the
collection on which texts of similar meaning lie side by side. This example maps 360 short texts by
:func:`~sklearn_mcsg.make_text_embedding`, colours them by topic, and asks how many neighbours on the map share a topic.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import TSNE
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from sklearn_mcsg import make_text_embedding
from sklearn_mcsg.datasets import load_short_texts

texts = load_short_texts()
points = make_text_embedding().fit_transform(texts.data)
print(f"{len(points)} texts as vectors of {points.shape[1]} components")

# %%
# Two dimensions
# --------------
#
# The vectors have unit length, so Euclidean distances order pairs as cosines do. UMAP takes the same vectors:
# ``umap.UMAP().fit_transform(points)``.

places = TSNE(perplexity=15, init="pca", random_state=0).fit_transform(points)

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
fig, ax = plt.subplots(figsize=(8, 6.5), layout="constrained")
for topic, name in enumerate(texts.target_names):
    own = places[texts.target == topic]
    colour, marker = COLOURS[topic % len(COLOURS)], "o" if topic < len(COLOURS) else "^"
    ax.scatter(*own.T, s=18, color=colour, marker=marker, alpha=0.75, linewidths=0)
    ax.text(
        *np.median(own, axis=0),
        name,
        ha="center",
        va="center",
        weight="bold",
        color="0.1",
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
    )
ax.set(xticks=[], yticks=[], aspect="equal")
ax.spines[:].set_visible(False)
plt.show()

# %%
# What the map loses
# ------------------
#
# The topic of a text, guessed from its five nearest neighbours: among the vectors, and on the map.

for name, X in {"embedding": points, "map": places}.items():
    accuracy = cross_val_score(KNeighborsClassifier(5), X, texts.target, cv=5).mean()
    print(f"{name:<10} {accuracy:.2f}")

# %%
# Topics form islands, and some related topics lie next to each other, such as gardening and cooking. Texts on animals
# are spread over the map, because animals turn up in gardens, kitchens and on journeys. Neighbourhoods survive the step
# from 359 dimensions to two; distances between islands do not, so read a map by its neighbourhoods.
