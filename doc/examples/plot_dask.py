"""
All pairs on a Dask cluster
===========================

How are all pairs of many groups shared out among machines? The matrix is computed in blocks, and the blocks are joblib
tasks, so that any joblib backend takes them: threads, processes, Dask or Ray. Here a small Dask cluster does the work
inside this process. For a real one, only the address given to ``Client`` changes.
"""

import time

import joblib
import matplotlib.pyplot as plt
import numpy as np
import sklearn
from distributed import Client, LocalCluster, get_task_stream

from sklearn_mcsg import ModelComparisonSimilarity

rng = np.random.default_rng(0)
sources = np.sort(rng.integers(0, 6, size=2400))
centres = rng.normal(scale=0.3, size=(6, 60))
X = [rng.normal(centres[source], size=(rng.integers(5, 40), 60)) for source in sources]

# %%
# The same call, twice
# --------------------
#
# Threads first. ``working_memory`` bounds the size of a block, in MiB; it is set low to have many of them.

model = ModelComparisonSimilarity(output="distance", n_jobs=-1)
model.pairwise(X[:100])  # compiles, once
start = time.perf_counter()
by_threads = model.pairwise(X)
print(f"threads: {time.perf_counter() - start:.2f} s")

# %%
# On Dask the call is the same, inside ``parallel_config``. The task stream records which worker did what, and when.

with (
    LocalCluster(
        n_workers=3, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
    ) as cluster,
    Client(cluster) as client,
    get_task_stream(client) as stream,
    joblib.parallel_config(backend="dask"),
    sklearn.config_context(working_memory=4),
):
    start = time.perf_counter()
    by_dask = model.pairwise(X)
    print(f"Dask:    {time.perf_counter() - start:.2f} s")

print(f"largest relative difference: {np.max(np.abs(by_dask - by_threads) / (1 + by_threads)):.0e}")

# %%
# Who did what
# ------------

tasks = [(task["worker"], step) for task in stream.data for step in task["startstops"] if step["action"] == "compute"]
begin = min(step["start"] for _, step in tasks)
workers = sorted({worker for worker, _ in tasks})

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), width_ratios=[1.6, 1], layout="constrained")
for place, worker in enumerate(workers):
    spans = [(step["start"] - begin, step["stop"] - step["start"]) for name, step in tasks if name == worker]
    left.broken_barh(spans, (place - 0.35, 0.7), facecolor="#0072B2", edgecolor="white", lw=0.8)
left.set_yticks(range(len(workers)), [f"worker {place + 1}" for place in range(len(workers))])
left.set(xlabel="seconds since the first task", title=f"{len(tasks)} tasks of one or more blocks")
left.invert_yaxis()
left.spines[["top", "right"]].set_visible(False)
image = right.imshow(by_dask[::6, ::6], cmap="cividis", vmax=np.quantile(by_dask, 0.99), extent=(0, 2400, 2400, 0))
right.set(xlabel="group", ylabel="group", title="what they computed: distances")
fig.colorbar(image, ax=right, label="distance", shrink=0.8)
plt.show()

# %%
# The numbers are the same up to rounding, whoever computes them. A worker that is free takes the next blocks and is
# sent the groups of these only; joblib puts small blocks together into one task. The matrix shows the six sources as
# squares and the sizes of the groups as stripes, as distances grow with size. On one machine, threads need no cluster.
# Where the matrix would not fit into memory, :class:`~sklearn_mcsg.GroupNeighbors` runs on the same cluster and keeps
# the nearest groups only.
