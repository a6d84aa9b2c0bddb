"""What whitening does to the spectrum of the coordinates of a corpus."""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_mcsg import make_text_embedding
from sklearn_mcsg.datasets import load_short_texts

texts = load_short_texts()
pipeline = make_text_embedding(vectors="glove-6b-50d", likelihood="diag").fit(texts.data)
variance = pipeline["embedding"].explained_variance_
components = np.arange(1, len(variance) + 1)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
for whiten, colour in ((0, "#D55E00"), (0.5, "#0072B2"), (1, "#009E73")):
    spectrum = variance ** (1 - whiten)
    left.semilogy(components, spectrum / spectrum.max(), color=colour, label=f"whiten={whiten}")
    right.plot(components, np.cumsum(spectrum) / spectrum.sum(), color=colour, label=f"whiten={whiten}")
left.set(xlabel="component", ylabel="variance, relative to the largest")
right.set(xlabel="component", ylabel="share of all variance, summed", ylim=(0, 1.02))
right.legend(frameon=False, loc="lower right")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
