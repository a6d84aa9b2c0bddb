"""
All pairs on a Dask cluster
===========================

How can the comparison of all pairs be distributed over several machines? The matrix is computed in blocks. The blocks
are joblib tasks, so any joblib backend can run them: threads, processes, Dask or Ray. This example starts a small Dask
cluster inside the current process. For a real cluster, only the address passed to ``Client`` changes.
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
# The first run uses threads.

model = ModelComparisonSimilarity(output="distance", n_jobs=-1)
model.pairwise(X[:100])  # compiles the code once
start = time.perf_counter()
by_threads = model.pairwise(X)
print(f"threads: {time.perf_counter() - start:.2f} s")

# %%
# The second run uses Dask: the same call inside ``parallel_config``. ``working_memory`` limits the size of a block, in
# MiB; a low value gives many blocks. The task stream records which worker ran which task, and when.

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
# Tasks of each worker
# --------------------

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
right.set(xlabel="group", ylabel="group", title="computed distances")
fig.colorbar(image, ax=right, label="distance", shrink=0.8)
plt.show()

# %%
# Both runs give the same numbers up to rounding. A free worker takes the next blocks and receives only the groups that
# these blocks need; joblib combines small blocks into one task. In the matrix, the six sources appear as squares and
# the group sizes as stripes, because distances grow with size. On one machine, threads are enough. If the matrix does
# not fit into memory, :class:`~sklearn_mcsg.GroupNeighbors` runs on the same cluster and keeps only the nearest groups.
# If not even the groups do, :class:`~sklearn_mcsg.PartitionedNeighbors` leaves them in their files: workers read the
# files, index and search them, and save the index.
