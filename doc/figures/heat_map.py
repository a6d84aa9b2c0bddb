"""The pairs of words behind the cosine of two texts."""

import matplotlib.pyplot as plt

from sklearn_mcsg import explain_texts, make_text_embedding
from sklearn_mcsg.datasets import load_short_texts

pipeline = make_text_embedding().fit(load_short_texts().data)
explain_texts(pipeline, "A cat slept on the sofa.", "The kitten naps in an armchair.").plot()
plt.show()
