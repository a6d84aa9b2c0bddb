"""
Clustering short texts
======================

Can texts be clustered by topic without knowing the topics or their number? This example compares two methods. The first
is average linkage on the distances between texts, which any scikit-learn estimator with ``metric="precomputed"``
accepts. The second is :class:`~sklearn_mcsg.ModelComparisonClustering`, which fits a model to each
cluster and merges clusters by comparing their models.
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
# Fixed number of clusters
# ------------------------
#
# The adjusted Rand index (ARI) measures how well twelve clusters agree with the twelve topics: 1 is perfect, 0 is
# chance.

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
# The tree of model comparison is cut into twelve clusters, shown in alternating colours. The height of a merge is the
# evidence for one model that has been lost since the first merge; above the dashed line, the evidence favours two
# models. The lower panel shows the topics of the texts in the order of the tree.

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
n_texts = len(texts.data)
tree = pooled.linkage_matrix_
order = dendrogram(tree, no_plot=True)["leaves"]
cluster = list(labels)  # cluster of each node of the tree, None above the cut
for left, right in pooled.children_:
    cluster.append(cluster[left] if cluster[left] == cluster[right] else None)
rank = {label: place for place, label in enumerate(dict.fromkeys(labels[order]))}


def colour_of(node):
    """Colour of a node's cluster; neighbouring clusters differ in colour."""
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
# ``evidence_`` holds the criterion for every number of clusters; the number at the minimum is chosen. It depends on the
# unit of independent observation: words (the default) or texts (``observations="groups"``).

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
# With the cosine of means, average linkage puts three quarters of the texts into one cluster, because all texts have
# too much in common. Model comparison removes the common part and finds most of the topics, with both linkages. Texts
# on animals are mixed with texts on gardening, health and other topics; the clusters of law and finance are almost
# pure.
#
# The number of clusters is harder to find. Words of one text are correlated; treated as independent observations, they
# support 35 clusters. If each text counts as one observation, the 360 texts support only four clusters: with twelve
# topics of 30 texts each, the evidence separates only the largest families of topics. The agreement with the topics is
# best in between, at 13 to 17 clusters. Here the tree is more reliable than the number.
