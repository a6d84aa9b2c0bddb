"""
Clustering short texts
======================

Can texts be clustered by topic without knowing the topics or their number? :func:`~sklearn_mcsg.cluster_texts` embeds
each text, links it to its nearest neighbours, finds clusters in this graph, and lists the words that distinguish each
cluster. The topics of these texts are known, so the result can be checked.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score, confusion_matrix
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    MeanVector,
    ModelComparisonClustering,
    cluster_texts,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts

texts = load_short_texts()
n_topics = len(texts.target_names)
clusters = cluster_texts(texts.data)
print(clusters)

# %%
# Clusters and topics
# -------------------
#
# The adjusted Rand index (ARI) measures how well clusters agree with the topics: 1 is perfect, 0 is chance.

print(f"ARI {adjusted_rand_score(texts.target, clusters.labels):.2f}")
counts = confusion_matrix(texts.target, clusters.labels)[:n_topics, : len(clusters)]
order = np.argsort(counts.argmax(axis=1), kind="stable")
fig, ax = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
ax.imshow(counts[order], cmap="Blues", aspect="auto")
for row, topic in enumerate(order):
    for k in np.flatnonzero(counts[topic]):
        tone = "white" if counts[topic, k] > counts.max() / 2 else "0.2"
        ax.text(k, row, counts[topic, k], ha="center", va="center", color=tone, fontsize=9)
ax.set_yticks(range(n_topics), np.array(texts.target_names)[order])
names = [", ".join(summary.words[:2]) for summary in clusters.summaries]
ax.set_xticks(range(len(clusters)), names, rotation=35, ha="right")
ax.set(xlabel="clusters", ylabel="topics")
plt.show()

# %%
# Every topic has a cluster of its own. That of animals is the smallest, because nearly half of the texts on animals are
# with other topics. A text near the centre of its cluster is typical of it. The texts farthest from the centre of their
# cluster fit nowhere.

for i in clusters.outliers[:3]:
    print(f"{clusters.distances[i]:.2f}  {clusters.texts[i]}")

# %%
# Another number
# --------------
#
# The number of clusters is the one on which random halves of the texts agree. ``resolution`` multiplies it, and a
# number can be given instead. ``clusters.tree`` divides and merges the clusters to any number.

for resolution in (0.5, 1, 2, 4):
    found = cluster_texts(texts.data, resolution=resolution)
    print(
        f"resolution {resolution:<4} {len(found):3} clusters, ARI {adjusted_rand_score(texts.target, found.labels):.2f}"
    )
given = cluster_texts(texts.data, n_topics)
print(f"given number    {n_topics:3} clusters, ARI {adjusted_rand_score(texts.target, given.labels):.2f}")

# %%
# Distances and evidence
# ----------------------
#
# Any scikit-learn estimator with ``metric="precomputed"`` accepts the distances between texts; average linkage on the
# cosine of means puts nearly three quarters of the texts into one cluster, because all texts have too much in common.
# :class:`~sklearn_mcsg.ModelComparisonClustering` fits a model to each cluster and merges clusters by comparing their
# models.

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
pooled = ModelComparisonClustering(balanced=True).fit(groups)
labels = pooled.cut(n_topics)
print(f"pooled linkage,  model comparison   ARI {adjusted_rand_score(texts.target, labels):.2f}")

# %%
# ``evidence_`` holds the criterion for every number of clusters; the number at the minimum is chosen. It depends on the
# unit of independent observation: words (the default) or texts (``balanced=True``).

words = ModelComparisonClustering().fit(groups)
numbers = np.arange(1, 61)
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.5), layout="constrained")
for model, name, colour in ((words, "words", "#E69F00"), (pooled, "texts", "#0072B2")):
    evidence = model.evidence_ - model.evidence_.min()
    agreement = [adjusted_rand_score(texts.target, model.cut(k)) for k in numbers]
    found = model.n_clusters_
    print(f"{name} as observations: {found} clusters, ARI {agreement[found - 1]:.2f}")
    for ax, values in ((left, evidence[numbers - 1]), (right, agreement)):
        ax.plot(numbers, values, color=colour, label=f"{name} are independent")
        ax.plot(found, values[found - 1], "o", color=colour, label=f"number chosen: {found}")
left.set(xlabel="number of clusters", ylabel="criterion above its minimum", ylim=(-1000, 25000))
right.set(xlabel="number of clusters", ylabel="agreement with the topics (ARI)", ylim=(0, 0.8))
for ax in (left, right):
    ax.axvline(n_topics, color="0.2", ls=":", lw=1, label="topics")
left.legend(frameon=False, fontsize="small")
plt.show()

# %%
# Of the distances, those of ``SIF`` make the best clusters by linkage, but the clusters above agree with the topics
# more. Words of one text are correlated; treated as independent observations, they support 17 clusters. If each text
# counts as one observation, the 360 texts support no division at all: every further cluster has 612 parameters, the
# means and variances of 306 features, which is too many for 30 texts. ``cluster_texts`` comes closest to the number of
# topics here.
