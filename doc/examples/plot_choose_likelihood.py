"""
Choosing a likelihood without labels
====================================

Which model suits my groups, when nobody has said which of them belong together? ``score`` is minus the mean criterion
of the groups, so ``GridSearchCV`` can choose a likelihood on groups it has not seen. Here the truth is known, and we
look at when the choice can be trusted, and by which criterion.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from sklearn_mcsg import ModelComparisonSimilarity

LIKELIHOODS = ["spherical", "diag", "full"]
COLOURS = {"spherical": "#E69F00", "diag": "#0072B2", "full": "#009E73"}
N_FEATURES = 4


def draw_groups(rng, truth, n_vectors, n_groups=200):
    """Groups of normal vectors, each with a centre and a covariance of its own."""
    centres = rng.normal(scale=2, size=(n_groups, 1, N_FEATURES))
    noise = rng.normal(size=(n_groups, n_vectors, N_FEATURES))
    if truth == "diag":
        noise *= rng.uniform(0.3, 2, size=(n_groups, 1, N_FEATURES))
    elif truth == "full":
        noise = noise @ rng.normal(size=(n_groups, N_FEATURES, N_FEATURES))
    return centres + noise


# %%
# One search
# ----------
#
# Groups of 20 vectors, whose features have different variances and no correlation. The search finds the model that made
# them, without labels.

rng = np.random.default_rng(0)
search = GridSearchCV(ModelComparisonSimilarity(), {"likelihood": LIKELIHOODS}, cv=5)
search.fit(draw_groups(rng, "diag", n_vectors=20))
for likelihood, score in zip(LIKELIHOODS, search.cv_results_["mean_test_score"], strict=True):
    print(f"{likelihood:<10} mean AIC of held-out groups {-score:6.1f}")
print("chosen:   ", search.best_params_["likelihood"])

# %%
# Every truth, every size
# -----------------------
#
# Now with groups of 3 to 64 vectors from each of the three models, under AIC and under the exact evidence, ``"bayes"``.
# A curve shows how much better a likelihood describes held-out groups than the true one: whatever is above zero would
# be chosen in its place.

sizes = [3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64]
fig, axes = plt.subplots(2, 3, figsize=(8.5, 5.4), sharex=True, sharey=True, layout="constrained")
for column, truth in zip(axes.T, LIKELIHOODS, strict=True):
    samples = [draw_groups(rng, truth, n) for n in sizes]
    for ax, criterion in zip(column, ["aic", "bayes"], strict=True):
        scores = {
            name: [ModelComparisonSimilarity(name, criterion).fit(X[:100]).score(X[100:]) for X in samples]
            for name in LIKELIHOODS
        }
        ax.axhspan(0, 1e3, color="0.94", zorder=0)
        for name in LIKELIHOODS:
            gain = np.subtract(scores[name], scores[truth])
            ax.plot(sizes, gain, "o-", color=COLOURS[name], ms=4, label=f"{name} (true)" if name == truth else name)
        ax.set(xscale="log", yscale="symlog", ylim=(-500, 200))
        ax.set_xticks([3, 8, 23, 64], [3, 8, 23, 64])
        ax.minorticks_off()
        ax.set_title(f"truth: {truth}, by {criterion}", fontsize="medium")
        ax.legend(fontsize="small", frameon=False, loc="upper right")
fig.supxlabel(f"vectors in a group, of {N_FEATURES} features")
fig.supylabel("gain over the true likelihood")
plt.show()

# %%
# AIC trusts large samples. In groups of three to five vectors, hardly more than there are features, a full covariance
# explains every vector, and AIC prefers it by far, whatever the truth is. From eight vectors on it is right each time.
#
# The evidence never makes that mistake. It learns its prior from the groups it is fitted to, and a flexible model with
# such a prior behaves like a simple one where the truth is simple: in the lower left panel all three are within half a
# unit of each other, and any of them will do. With few vectors in a group, compare likelihoods under ``"bayes"``.
