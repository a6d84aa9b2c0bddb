"""
Texts in a vector database
==========================

Can a database search groups of vectors? It can if every group is one vector, in a column like any other. This example
keeps 360 short texts in `LanceDB <https://lancedb.com>`_, which runs inside the process, next to their topics. Queries
combine nearness in meaning with a condition on another column, and new texts are added without fitting again.
"""

import tempfile
from textwrap import fill

import lancedb
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

from sklearn_mcsg import make_text_embedding
from sklearn_mcsg.datasets import load_short_texts

texts = load_short_texts()
topics = np.array(texts.target_names)[texts.target]
pipeline = make_text_embedding(n_components=64)


def rows(texts, topics, points):
    """A table for the database: one row per text, with a vector of fixed length."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(points.ravel()), points.shape[1])
    return pa.table({"text": list(texts), "topic": list(topics), "vector": vectors})


# %%
# Fit once, then store
# --------------------
#
# The pipeline is fitted to 300 texts. The other 60 arrive later and are embedded by the same pipeline.

rng = np.random.default_rng(0)
first, later = np.split(rng.permutation(len(texts.data)), [300])
folder = tempfile.TemporaryDirectory()
table = lancedb.connect(folder.name).create_table(
    "texts",
    rows([texts.data[i] for i in first], topics[first], pipeline.fit_transform([texts.data[i] for i in first])),
)
table.add(rows([texts.data[i] for i in later], topics[later], pipeline.transform([texts.data[i] for i in later])))
print(f"{table.count_rows()} texts in the database")

# %%
# Ask
# ---
#
# The same query with and without a condition on the topic. Distances are one minus the cosine.

query = "A storm is coming to the coast."
point = pipeline.transform([query])[0]
answers = {}
for condition in ("", "topic = 'travel'"):
    search = table.search(point).distance_type("cosine").limit(4)
    answers[condition or "all texts"] = (search.where(condition) if condition else search).to_list()

fig, axes = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, layout="constrained")
for ax, (condition, found) in zip(axes, answers.items(), strict=True):
    ax.barh(range(len(found)), [1 - row["_distance"] for row in found], color="#9ecae9")
    for place, row in enumerate(found):
        ax.text(0.01, place, f"[{row['topic']}]  {fill(row['text'], 92)}", va="center", fontsize=8.5)
    ax.set_title(condition, loc="left", fontsize="medium", weight="bold")
    ax.set(yticks=[], xlim=(0, 1))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.invert_yaxis()
axes[-1].set_xlabel("cosine with the query")
fig.suptitle(query, style="italic")
plt.show()
folder.cleanup()

# %%
# The database knows nothing of groups or models: it stores vectors and compares them by cosine. What it offers for
# vectors, such as conditions, indexes and several machines, therefore works on groups. ``n_components=64`` keeps the
# leading components only, which makes the column smaller. All components find the same texts for this query; word
# order needs all of them (:doc:`/guide/embedding`).
