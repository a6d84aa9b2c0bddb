"""The plane of mean and log variance: circles around the model of the corpus, and around a model far from it."""

import matplotlib.pyplot as plt
import numpy as np

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"
RADII = 0.5, 1.0, 1.5
angles = np.linspace(0, 2 * np.pi, 400)


def divergence(location, scale, centre):
    """Divergence of two groups of equal size from their coordinates around the standard normal distribution."""
    v, v0 = np.exp(np.sqrt(2) * scale), np.exp(np.sqrt(2) * centre[1])
    pooled = (v + v0) / 2 + (location - centre[0]) ** 2 / 4
    return 2 * (2 * np.log(pooled) - np.log(v) - np.log(v0))


def geodesic_circle(centre, radius):
    """Points at a Fisher distance: circles of the hyperbolic half-plane of (mean / sqrt 2, standard deviation)."""
    sd = np.exp(centre[1] / np.sqrt(2))
    x = centre[0] / np.sqrt(2) + sd * np.sinh(radius / np.sqrt(2)) * np.cos(angles)
    y = sd * (np.cosh(radius / np.sqrt(2)) + np.sinh(radius / np.sqrt(2)) * np.sin(angles))
    return np.sqrt(2) * x, np.sqrt(2) * np.log(y)


figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.1), layout="constrained", sharey=True)
titles = "around the model of the corpus", "around a model far from it"
for ax, centre, title in zip(axes, [(0.0, 0.0), (0.6, -1.2)], titles, strict=True):
    x, y = np.meshgrid(np.linspace(-3, 3, 400), np.linspace(-3.2, 2.2, 400))
    ax.contour(x, y, np.sqrt(divergence(x, y, centre)), levels=RADII, colors=BLUE, linewidths=1.6)
    for radius in RADII:
        ax.plot(centre[0] + radius * np.cos(angles), centre[1] + radius * np.sin(angles), color=ORANGE, ls="--", lw=1.3)
        ax.plot(*geodesic_circle(centre, radius), color=GREY, ls=":", lw=1.6)
    ax.plot(*centre, "o", color="0.1", ms=4)
    ax.set(title=title, xlabel=r"$(\mu - m)/\sqrt{v_0}$", xlim=(-2.6, 2.6), ylim=(-3.1, 2.1), aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel(r"$\ln(v/v_0)/\sqrt{2}$")
lines = [plt.Line2D([], [], color=c, ls=s, lw=1.6) for c, s in ((BLUE, "-"), (GREY, ":"), (ORANGE, "--"))]
labels = "root of the divergence", "Fisher distance (geodesic)", "distance of the coordinates"
figure.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False)
plt.show()
