"""
Calibrated thresholds
=====================

How large must a cosine be for two texts to count as similar? A cosine has no natural threshold, but random pairs of a
corpus show which cosines occur by chance. :func:`~sklearn_mcsg.calibrate_texts` learns these. ``pvalue`` and
``similar`` compare a pair with random pairs of its length. :func:`~sklearn_mcsg.find_duplicates` learns a threshold for
a whole collection in the same way.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_mcsg import calibrate_texts, find_duplicates, make_text_embedding, make_text_similarity
from sklearn_mcsg.datasets import load_short_texts

# %%
# Calibration
# -----------
#
# Half of the short texts are used to fit and to calibrate. ``cv=5`` compares them in folds, as if they were new texts.
# The other half provides three kinds of pairs: random pairs, pairs on the same topic, and texts paired with a damaged
# copy of themselves, in which every other word is missing.

texts = load_short_texts()
rng = np.random.default_rng(0)
order = rng.permutation(len(texts.data))
known, asked = order[:180], order[180:]
corpus = [texts.data[i] for i in known]
pipeline = make_text_embedding().fit(corpus)
calibration = calibrate_texts(pipeline, corpus, cv=5, name="the 180 known texts", random_state=0)
print(calibration)


def damage(text):
    """Remove every other word of a text."""
    return " ".join(text.split()[::2])


left, right = np.triu_indices(len(asked), 1)
left, right = asked[left], asked[right]
same = texts.target[left] == texts.target[right]
groups, copies = (pipeline[:-1].transform(x) for x in (texts.data, [damage(text) for text in texts.data]))
pairs = {
    "random pairs": (groups[left], groups[right]),
    "pairs on one topic": (groups[left[same]], groups[right[same]]),
    "damaged copies": (groups[asked], copies[asked]),
}

# %%
# The figure shows the cosines of the pairs (left), and the share called similar at each level (right).

levels = np.array([0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
colours = dict(zip(pairs, ["#888888", "#E69F00", "#0072B2"], strict=True))
fig, (nearness, found) = plt.subplots(1, 2, figsize=(8.5, 3.7), layout="constrained")
for name, (one, other) in pairs.items():
    cosines = pipeline[-1].paired(one, other, output="similarity")
    style = {"bins": np.linspace(-0.4, 1, 57), "density": True, "alpha": 0.7}
    nearness.hist(cosines, **style, color=colours[name], label=name)
    p = calibration.pvalue(one, other)
    share = [(p <= level).mean() for level in levels]
    found.plot(levels, share, "o-", color=colours[name], label=name)
    print(f"{name:<19} called similar at level 0.01: {np.mean(calibration.similar(one, other, level=0.01)):.3f}")
found.plot(levels, levels, color="0.2", ls=":", label="nominal level")
found.set(xscale="log", yscale="log", xlabel="level", ylabel="share called similar")
nearness.set(xlabel="cosine", ylabel="density", ylim=(0, 6))
nearness.legend(frameon=False)
found.legend(frameon=False)
plt.show()

# %%
# The level holds: among random pairs of texts that were not used for calibration, the share called similar is no
# larger than the level, and at 0.01 a third smaller. It holds for texts of this kind only: to compare
# headlines, calibrate with headlines. Texts on one topic are closer than chance, but overlap with random pairs; 8 % of
# them are called similar at level 0.01. Nearly all damaged copies are found from that level on, and four of five at
# 0.005.
#
# Duplicates
# ----------
#
# Here 30 damaged copies are hidden among all the texts. The 390 texts form 75 855 pairs, so a level of 0.01 would
# accept hundreds of false duplicates. Levels of one in a million and less cannot be estimated by counting random pairs;
# they are extrapolated from the distribution of their distances.

hidden = rng.choice(len(texts.data), 30, replace=False)
collection = [*texts.data, *(damage(texts.data[i]) for i in hidden)]
for level in (1e-6, 1e-15):
    sets = find_duplicates(collection, level=level, similarity=make_text_similarity(random_state=0))
    n_found = sum(any({i, len(texts.data) + place} <= set(found) for found in sets) for place, i in enumerate(hidden))
    others = [found[found < len(texts.data)] for found in sets]
    n_others = sum(len(found) > 1 for found in others)
    print(f"level {level:.0e}: {n_found} of 30 copies found, {n_others} sets that contain different texts")

# %%
# Sets of different texts found at the last level:

for found in others:
    if len(found) > 1:
        print(*(f"- {texts.data[i]}" for i in found), sep="\n", end="\n\n")

# %%
# Copies can be separated from other texts, but the extrapolated level is not the rate of errors. It describes the tail
# of unrelated pairs. Here one pair in twelve is on one topic, and many of those are nearer than that tail allows: at
# one in a million, 56 sets contain different texts, where a tenth of a pair is to be expected. So lower the level until
# the sets are what you look for. The strictest level here finds all copies, and the different texts that it joins
# are paraphrases. Where a copy must have the same words, :func:`~sklearn_mcsg.find_duplicate_texts` compares these as
# well. It joins none of the paraphrases, and none of the copies, which lack half of their words.
