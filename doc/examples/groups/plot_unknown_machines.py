"""
Known and unknown machines from their sensors
=============================================

Which machine made a recording, and is it a known one at all? Each recording of six vibration sensors is a group,
with one vector per moment. A class is the pooled model of the recordings of one machine. The example classifies
recordings of known machines, rejects those of an unknown one, and then learns it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from sklearn_mcsg import GroupEmbedding, Groups, ModelComparisonClassifier

MACHINES = ["crusher", "fan", "lathe", "press", "pump"]
SENSORS = 6


def record(rng, mixing):
    """Simulate 20 to 80 moments: slow vibrations reach the sensors mixed, and the sensors drift between recordings."""
    moments = rng.integers(20, 80)
    sources = np.zeros((moments, SENSORS))
    for t in range(1, moments):
        sources[t] = 0.5 * sources[t - 1] + rng.normal(size=SENSORS)
    return sources @ mixing + rng.normal(scale=0.5, size=SENSORS)


# %%
# A long table
# ------------
#
# Sensors usually write one long table, with one row per moment and the number of the recording beside it.
# ``consecutive=True`` makes sure that no recording is interrupted by another.

rng = np.random.default_rng(0)
mixings = {name: np.eye(SENSORS) + 0.35 * rng.normal(size=(SENSORS, SENSORS)) for name in [*MACHINES, "mixer"]}
names = np.repeat([*MACHINES, "mixer"], 60)
recordings = [record(rng, mixings[name]) for name in names]
table = np.concatenate(recordings)
number = np.repeat(np.arange(len(recordings)), [len(recording) for recording in recordings])
print(f"{len(table)} rows of {SENSORS} sensors")

groups, _ = Groups.from_labels(table, number, consecutive=True)
print(groups)

# %%
# Which machine?
# --------------
#
# All machines vibrate around the same level, so means say nothing; what differs is how the sensors vary together. A
# full covariance sees it. A support vector classifier on the embedding is the most accurate; one model per machine is
# close to it.

known = np.flatnonzero(names != "mixer")


def summarise(groups):
    """Compute the mean and standard deviation of each sensor."""
    return np.array([[*group.mean(axis=0), *group.std(axis=0)] for group in groups])


methods = {
    "mean + std, SVC": make_pipeline(FunctionTransformer(summarise), StandardScaler(), SVC()),
    "classifier, diag": ModelComparisonClassifier("diag"),
    "classifier, full": ModelComparisonClassifier("full"),
    "embedding, full, SVC": make_pipeline(GroupEmbedding("full", prior_strength=1.0), SVC()),
}
for name, method in methods.items():
    print(f"{name:<22} {cross_val_score(method, groups[known], names[known]).mean():.2f}")

# %%
# One of these at all?
# --------------------
#
# Half of the recordings of the known machines are for training. The mixer is unknown. With ``reject=True`` a recording
# is rejected if it is farther from every machine than new recordings of that machine are, in 95 of 100 cases.

train = np.array([i for i in known if i % 2 == 0])
test = np.setdiff1d(np.arange(len(names)), train)
classifier = ModelComparisonClassifier("full", reject=True).fit(groups[train], names[train])
predicted = classifier.predict(groups[test])
beyond = np.min(-classifier.decision_function(groups[test]) - classifier.thresholds_, axis=1)
strange = names[test] == "mixer"
print(f"rejected: {np.mean(predicted[strange] == 'none'):.2f} of the mixer's recordings")
print(f"          {np.mean(predicted[~strange] == 'none'):.2f} of the others")

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), width_ratios=[1.2, 1], layout="constrained")
bins = np.linspace(beyond.min(), beyond.max(), 30)
left.hist(beyond[~strange], bins, color="#0072B2", alpha=0.8, label="known machines")
left.hist(beyond[strange], bins, color="#E69F00", alpha=0.8, label="the mixer")
left.axvline(0, color="0.2", ls="--", lw=1, label="threshold")
left.set(xlabel="least divergence from a machine beyond its threshold", ylabel="recordings")
left.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
rows, columns = [*MACHINES, "mixer"], [*MACHINES, "none"]
counts = np.array([[np.sum((names[test] == a) & (predicted == b)) for b in columns] for a in rows])
right.imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Blues", vmax=1.3)
for (i, j), count in np.ndenumerate(counts):
    if count:
        right.text(j, i, count, ha="center", va="center", fontsize="small")
right.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
right.set_yticks(range(len(rows)), rows)
right.set(xlabel="predicted", ylabel="machine")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Learning and forgetting
# -----------------------
#
# Models are additive: ``partial_fit`` adds five recordings of the mixer as a new class, and ``remove`` takes the press
# out again, without the other recordings.

mixer = test[strange]
classifier.partial_fit(groups[mixer[:5]], names[mixer[:5]])
press = train[names[train] == "press"]
classifier.remove(groups[press], names[press])
print(f"machines: {', '.join(classifier.classes_)}")
print(f"recognised: {np.mean(classifier.predict(groups[mixer[5:]]) == 'mixer'):.2f} of the mixer's other recordings")

# %%
# Rejection needs no examples of unknown machines: the divergences of left-out recordings from their own machine tell
# how far a recording of a known machine can be. Where one model describes a class, as here, a class of five recordings
# is enough to recognise it. Where it does not, an embedding with a classifier of your choice is the better tool.
