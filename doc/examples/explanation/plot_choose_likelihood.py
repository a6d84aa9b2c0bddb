"""
Choosing a likelihood without labels
====================================

Which likelihood fits my groups best if there are no labels? ``score`` is the negative mean criterion of the groups, so
``GridSearchCV`` can choose a likelihood by its score on held-out groups. The true model is known here, so the example
can show when the choice can be trusted, and which criterion to use.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from sklearn_mcsg import ModelComparisonSimilarity

LIKELIHOODS = ["spherical", "diag", "full"]
COLOURS = {"spherical": "#E69F00", "diag": "#0072B2", "full": "#009E73"}
N_FEATURES = 4


def draw_groups(rng, truth, n_vectors, n_groups=200):
    """Draw groups of normal vectors, each group with its own centre and covariance."""
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
# Each group has 20 vectors. The features have different variances and are uncorrelated. The search finds the true model
# without labels.

rng = np.random.default_rng(0)
search = GridSearchCV(ModelComparisonSimilarity(), {"likelihood": LIKELIHOODS}, cv=5)
search.fit(draw_groups(rng, "diag", n_vectors=20))
for likelihood, score in zip(LIKELIHOODS, search.cv_results_["mean_test_score"], strict=True):
    print(f"{likelihood:<10} mean AIC of held-out groups {-score:6.1f}")
print("chosen:   ", search.best_params_["likelihood"])

# %%
# All models and group sizes
# --------------------------
#
# The next figure uses groups of 3 to 64 vectors from each of the three models, and compares AIC with the exact
# evidence, ``"bayes"``. Each curve shows how much better a likelihood scores on held-out groups than the true one. A
# likelihood above zero, in the grey area, would be chosen instead of the true one.

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
        ax.set_title(f"true: {truth}, criterion: {criterion}", fontsize="medium")
        ax.legend(fontsize="small", frameon=False, loc="upper right")
fig.supxlabel(f"vectors per group ({N_FEATURES} features)")
fig.supylabel("score minus that of the true likelihood")
plt.show()

# %%
# AIC assumes large samples. With three to five vectors per group, hardly more than the number of features, a full
# covariance overfits, and AIC strongly prefers it whatever the true model is. From eight vectors on, AIC is right
# in all panels.
#
# The evidence does not make this mistake. It learns its prior from the groups it is fitted to. With this prior, a
# flexible model behaves like a simple one if the true model is simple: in the lower left panel the three scores are
# within half a unit of each other, and any likelihood will do. With few vectors per group, use ``criterion="bayes"`` to
# compare likelihoods.
