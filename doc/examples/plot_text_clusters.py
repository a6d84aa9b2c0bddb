"""
Clusters of short texts
=======================

Do texts fall into their topics without anybody saying what these are, and how many? Two ways: average linkage on the
distances between texts, as any scikit-learn estimator with ``metric="precomputed"`` takes them, and
:class:`~sklearn_mcsg.ModelComparisonClustering`, which fits a model to each cluster and merges by it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import SIF, EmbeddingVectorizer, MeanVector, ModelComparisonClustering, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts

texts = load_short_texts()
n_topics = len(texts.target_names)

# %%
# With the number of clusters given
# ---------------------------------
#
# How well twelve clusters agree with the twelve topics: 1 is perfect, 0 is chance.

matrices = {
    "cosine of means": make_pipeline(EmbeddingVectorizer(), MeanVector(output="distance")),
    "SIF": make_pipeline(EmbeddingVectorizer(), SIF(n_components=1, output="distance")),
    "model comparison": make_text_similarity(random_state=0),
}
for name, pipeline in matrices.items():
    average = AgglomerativeClustering(n_topics, metric="precomputed", linkage="average")
    labels = average.fit_predict(pipeline.fit_transform(texts.data))
    print(f"average linkage, {name:<18} ARI {adjusted_rand_score(texts.target, labels):.2f}")

groups = EmbeddingVectorizer().fit_transform(texts.data)
pooled = ModelComparisonClustering(observations="groups").fit(groups)
labels = pooled.cut(n_topics)
print(f"pooled linkage,  model comparison   ARI {adjusted_rand_score(texts.target, labels):.2f}")

# %%
# The tree
# --------
#
# The tree of the mergers by models, cut into twelve clusters, whose colours alternate. The height of a merger is what
# the evidence for one model has lost since the first merger; above the dashed line it speaks for two. Below are the
# topics of the texts, in the order of the tree.

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
n_texts = len(texts.data)
tree = pooled.linkage_matrix_
order = dendrogram(tree, no_plot=True)["leaves"]
cluster = list(labels)  # of each node of the tree, None above the cut
for left, right in pooled.children_:
    cluster.append(cluster[left] if cluster[left] == cluster[right] else None)
rank = {label: place for place, label in enumerate(dict.fromkeys(labels[order]))}


def colour_of(node):
    """Colour of a node's cluster, the next one along the tree for the next cluster."""
    return "0.6" if cluster[node] is None else COLOURS[rank[cluster[node]] % len(COLOURS)]


fig, (top, bottom) = plt.subplots(2, 1, figsize=(8.5, 6), height_ratios=[1.3, 1], layout="constrained")
dendrogram(tree, ax=top, no_labels=True, link_color_func=colour_of)
top.axhline(pooled.similarities_[0], color="0.2", ls="--", lw=1)
top.set(ylabel="loss of evidence")
top.spines[["top", "right", "bottom"]].set_visible(False)
for topic in range(n_topics):
    places = np.flatnonzero(texts.target[order] == topic)
    bottom.vlines(places, topic - 0.4, topic + 0.4, colors=[colour_of(order[place]) for place in places], lw=1.6)
bottom.set_yticks(range(n_topics), texts.target_names)
bottom.set(xlim=(-0.5, n_texts - 0.5), xlabel="texts in the order of the tree")
bottom.invert_yaxis()
bottom.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The number of clusters
# ----------------------
#
# ``evidence_`` is the criterion of every number of clusters, and its minimum is the number that would be chosen. It
# depends on what is drawn independently: words, the default, or texts, ``observations="groups"``.

words = ModelComparisonClustering(observations="vectors").fit(groups)
numbers = np.arange(1, 61)
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.5), layout="constrained")
for model, name, colour in ((words, "words", "#E69F00"), (pooled, "texts", "#0072B2")):
    evidence = model.evidence_ - model.evidence_.min()
    agreement = [adjusted_rand_score(texts.target, model.cut(k)) for k in numbers]
    found = model.n_clusters_
    print(f"{name} as observations: {found} clusters, ARI {agreement[found - 1]:.2f}")
    for ax, values in ((left, evidence[numbers - 1]), (right, agreement)):
        ax.plot(numbers, values, color=colour, label=f"{name} are independent")
        ax.plot(found, values[found - 1], "o", color=colour, label=f"chosen: {found} clusters")
left.set(xlabel="number of clusters", ylabel="criterion above its minimum", ylim=(-100, 2500))
right.set(xlabel="number of clusters", ylabel="agreement with the topics (ARI)", ylim=(0, 0.8))
for ax in (left, right):
    ax.axvline(n_topics, color="0.2", ls=":", lw=1, label="topics")
left.legend(frameon=False, fontsize="small")
plt.show()

# %%
# On the cosine of means, average linkage puts three quarters of the texts into one cluster: they have too much in
# common. Model comparison takes that away and finds most of the topics, either way of merging. Animals are spread over
# the texts on gardens, health and other things; the clusters of law and of finance are next to pure.
#
# The number of clusters is another matter. Words of one text hang together, and taken as independent they support 35
# clusters. Taken as one observation each, 360 texts support no more than four: of twelve topics with 30 texts each, the
# evidence tells apart only the largest families. The agreement with the topics is best between the two, at 13 to 17
# clusters. Here the tree is to be trusted more than the number.
