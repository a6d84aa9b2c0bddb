"""Figures of the TIC penalty against the group size, if the model is true."""

import numpy as np

from sklearn_mcsg import ModelComparisonSimilarity


def penalty_figure(path, likelihoods, sample, title, d=10, repeats=40):
    """Plot the TIC penalty against the sample size. If the model is true, it approaches the number of parameters."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    sizes = np.unique(np.geomspace(d + 2, 3000, 14).astype(int))
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for color, likelihood in zip(("C0", "C1", "C2"), likelihoods, strict=False):
        penalties = []
        for n in sizes:
            groups = sample(rng, repeats, n, d)
            tic, aic = (
                ModelComparisonSimilarity(likelihood, criterion).score_samples(groups) for criterion in ("tic", "aic")
            )
            k = ModelComparisonSimilarity(likelihood).fit(groups[:2]).likelihood_.n_parameters(d)
            penalties.append((tic - aic) / 2 + k)
        penalties = np.array(penalties)
        mean, spread = penalties.mean(axis=1), penalties.std(axis=1)
        axes.plot(sizes, mean, "o-", color=color, label=f"{likelihood}, TIC")
        axes.fill_between(sizes, mean - spread, mean + spread, color=color, alpha=0.2, lw=0)
        axes.axhline(k, color=color, ls="--", lw=1, label=f"{likelihood}, AIC: {k} parameters")
    axes.set(xscale="log", xlabel="vectors in the group", ylabel="penalty", title=f"{title}, {d} dimensions")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def on_sphere(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def write_figures(folder):
    penalty_figure(folder / "normal.png", ("diag", "spherical"), lambda r, *s: r.normal(size=s), "Standard normal")
    penalty_figure(folder / "sphere.png", ("vmf",), on_sphere, "Uniform on the sphere")
