"""
Semantic search
===============

Which texts are closest in meaning to a question, even if they share few words with it, or none? Each text is a group of
word vectors, and :class:`~sklearn_mcsg.GroupNeighbors` finds the nearest groups. The usual alternatives are the cosine
of the mean vectors, and a search for the words themselves. This example compares them on 360 short texts on 12 topics.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_mcsg import (
    SIF,
    EmbeddingVectorizer,
    GroupNeighbors,
    MeanVector,
    TextSearch,
    make_text_embedding,
    make_text_similarity,
)
from sklearn_mcsg.datasets import load_short_texts

texts = load_short_texts()
topics = np.array(texts.target_names)[texts.target]

# %%
# Two indices
# -----------
#
# Both indices use the same weighted word vectors. The first compares their models, the second their means.

similarities = {
    "model comparison": make_text_similarity(random_state=0),
    "cosine of means": make_pipeline(EmbeddingVectorizer(), MeanVector(output="distance")),
}
indices = {name: GroupNeighbors(similarity).fit(texts.data) for name, similarity in similarities.items()}

# %%
# Four questions
# --------------
#
# The length of a bar is one minus the distance, so 1 means the same text. Blue bars are texts on the topic of the
# question.

questions = {
    "Which planets can I see tonight without a telescope?": "astronomy",
    "I have had a sore throat and a fever since Monday.": "health",
    "Our kitten sleeps all day in a basket.": "animals",
    "Can my landlord evict me from the flat without notice?": "law",
}
fig, axes = plt.subplots(len(questions), 2, figsize=(8.5, 9), sharex=True, layout="constrained")
for column, (name, index) in zip(axes.T, indices.items(), strict=True):
    column[0].set_title(name, weight="bold", pad=24)
    column[-1].set_xlabel("1 - distance")
    found = zip(*index.kneighbors(list(questions), n_neighbors=4), strict=True)
    for ax, (question, topic), (distances, hits) in zip(column, questions.items(), found, strict=True):
        ax.barh(range(4), 1 - distances, color=np.where(topics[hits] == topic, "#9ecae9", "#fdd9a0"))
        for place, hit in enumerate(hits):
            ax.text(0.01, place, fill(texts.data[hit], 52), va="center", fontsize=8.5)
        ax.text(0, 1.02, question, transform=ax.transAxes, style="italic", va="bottom")
        ax.set(xlim=(0, 1), yticks=[])
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# All texts as queries
# --------------------
#
# Four questions prove little. The next figure uses each of the 360 texts as a query, and shows how many of the nearest
# texts are on the same topic. It adds model comparison with one variance for all features; ``SIF``, which removes the
# first principal component of all means; the embedding; and :class:`~sklearn_mcsg.TextSearch`, which adds to the
# embedding how many words of the query a text has.

similarities["model comparison, spherical"] = make_text_similarity(likelihood="spherical", random_state=0)
similarities["SIF"] = make_pipeline(EmbeddingVectorizer(), SIF(n_components=1, output="distance"))
similarities["embedding"] = make_text_embedding()
similarities["embedding and words"] = TextSearch()
ranks = np.arange(1, 21)
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
styles = zip(["#0072B2", "#888888", "#E69F00", "#009E73", "#CC79A7", "#D55E00"], "os^Dv<", strict=True)
for (name, similarity), (colour, marker) in zip(similarities.items(), styles, strict=True):
    if isinstance(similarity, TextSearch):
        hits = similarity.fit(texts.data).search(n_neighbors=ranks[-1]).indices
    else:
        hits = GroupNeighbors(similarity, n_neighbors=ranks[-1]).fit(texts.data).kneighbors(return_distance=False)
    precision = (topics[hits] == topics[:, None]).mean(axis=0).cumsum() / ranks
    print(f"{name:<28} share on topic: {precision[0]:.2f} at rank 1, {precision[9]:.2f} in the first ten")
    ax.plot(ranks, precision, marker=marker, color=colour, ms=4, label=name)
ax.axhline(29 / 359, color="0.2", ls=":", lw=1, label="chance")
ax.set(xlabel="number of neighbours", ylabel="share on the same topic", ylim=(0, 1), xticks=[1, 5, 10, 15, 20])
ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 0.1), ncols=2)
plt.show()

# %%
# Words in quotes
# ---------------
#
# A text must contain what a query has in quotes.

search = TextSearch(n_neighbors=3).fit(texts.data)
for query in ("the storm at sea", '"the storm" at sea'):
    print(query)
    for hit in search.search([query]).indices[0]:
        print("   ", texts.data[hit] if hit >= 0 else "no further text")

# %%
# Both indices give the same first answers, all on the topic. A word can mislead further answers: the kitten sleeps, and
# so do a patient and six holiday guests. The cosines of means are all large, because texts share much that is not their
# topic; the output ``centered`` of model comparison removes this common part.
#
# Over all texts, the cosine of means is slightly ahead of model comparison with its default likelihood, ``diag``, which
# estimates the variances of 306 features from 11 to 20 words. One variance is enough here: ``spherical`` is better than
# the cosine of means, and ``SIF`` is better still by about 0.01. On pairs of sentences, model comparison is well ahead
# of the cosine of means (:doc:`/paper`).
#
# The embedding learns its axes from the corpus, and 360 texts are few for that. Words help little here: these texts are
# short, and two texts on one topic seldom share a word of that topic. A single common word does little harm, because
# the share of the query's words that a text has is squared. Words help much more with names or jargon, or if you look
# for one particular text: :doc:`/guide/retrieval` shows both cases.
