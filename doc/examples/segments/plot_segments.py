"""
Phases of a machine
===================

When does a machine change its behaviour? Three sensors record a mixer that is filled, runs, runs unevenly because a
bearing wears out, and stops. Some changes shift a reading, others only its spread or how two readings vary together. A
model of each segment detects all of them.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_mcsg import ModelComparisonSegmenter

# %%
# Made-up readings
# ----------------

rng = np.random.default_rng(0)
phases = {"idle": 60, "filling": 40, "mixing": 110, "worn bearing": 70, "idle again": 50}


def readings(phase, n):
    """Power, temperature and vibration of one phase."""
    noise = rng.normal(size=(n, 3))
    if phase == "filling":
        return [2, 0, 0] + noise * [0.6, 0.3, 0.3]
    if phase == "mixing":
        return [2, 1, 1] + noise * [0.6, 0.3, 0.5]
    if phase == "worn bearing":
        shared = rng.normal(size=(n, 1))
        return [2, 1, 1] + shared * [1.2, 0, 1.2] + noise * [0.3, 0.3, 0.3]
    return noise * 0.3


X = pd.DataFrame(
    np.concatenate([readings(phase, n) for phase, n in phases.items()]), columns=["power", "temperature", "vibration"]
)
truth = np.cumsum(list(phases.values()))[:-1]

# %%
# The best partition of all
# -------------------------
# The number of segments follows from the criterion. ``full`` also models how readings vary together.

segmenter = ModelComparisonSegmenter("full").fit(X)
print("true boundaries", truth.tolist())
print("found          ", segmenter.boundaries_.tolist())
segmenter.plot()
plt.show()

# %%
# Means alone misplace the worn bearing
# -------------------------------------
# With the right number given, the squared error misplaces the third boundary by twenty rows.

means = ModelComparisonSegmenter("squared_error", n_segments=5).fit(X)
print("squared error  ", means.boundaries_.tolist())

# %%
# How many segments
# -----------------
# With ``n_segments=10``, ``evidence_`` holds the criterion of the best partitions into 1 to 10 segments.

evidence = ModelComparisonSegmenter("full", n_segments=10).fit(X).evidence_
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(range(1, 11), evidence, "o-")
ax.plot(segmenter.n_segments_, segmenter.evidence_[-1], "o", color="C1", label="found")
ax.set(xlabel="segments", ylabel="criterion (lower is better)")
ax.legend(frameon=False)
plt.show()

# %%
# Why there is a boundary
# -----------------------
# The rows on both sides of the third boundary, after which power and vibration rise and fall together:

explanation = segmenter.explain(2)
print(explanation)

# %%
# The boundaries found are those of the machine, without a threshold or a penalty to choose. Where only the
# means of readings change, ``likelihood="squared_error"`` has fewer parameters and is the better choice.
