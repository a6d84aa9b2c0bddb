"""
Handwritten digits as groups of pixels
======================================

Can images be compared as sets of their parts, regardless of the position on the page? Here each image is a group with
one vector per inked pixel: the position of the pixel relative to the centre of the digit, and the three by three pixels
around it. The weight is the ink. The example compares nearest neighbours of these groups with nearest neighbours of
plain images, for digits in place and for digits moved at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import center_of_mass, shift
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from sklearn_mcsg import Groups, ModelComparisonSimilarity

PAGE = 16


def to_groups(pages):
    """Turn each page into a group with one vector per inked pixel, weighted by its ink."""
    vectors, weights = [], []
    for page in pages:
        places = np.argwhere(page > 0)
        around = np.lib.stride_tricks.sliding_window_view(np.pad(page, 1), (3, 3))[page > 0].reshape(-1, 9)
        vectors.append(np.hstack([(places - center_of_mass(page)) / 4, around]))
        weights.append(page[page > 0])
    return Groups.from_list(vectors, weights=weights)


# %%
# The images
# ----------
#
# scikit-learn's digits have eight by eight pixels. They are placed on pages of 16 by 16 pixels, either in the middle or
# at random.

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
chosen = rng.permutation(len(images))[:600]
images, labels = images[chosen].reshape(-1, 8, 8) / 16, labels[chosen]
corners = {"in place": np.full((600, 2), 4), "moved": rng.integers(0, PAGE - 8, size=(600, 2), endpoint=True)}
pages = {name: np.zeros((len(images), PAGE, PAGE)) for name in corners}
for name, places in corners.items():
    for page, image, (row, column) in zip(pages[name], images, places, strict=True):
        page[row : row + 8, column : column + 8] = image

# %%
# Accuracy
# --------
#
# The accuracy is that of three nearest neighbours, cross-validated. A full covariance captures which surroundings occur
# at which positions; ``reg_covar`` is the variance of the noise assumed in every vector. For a fair comparison, plain
# pixels are also tried with the centre of mass of each digit moved to the middle.


def centre(pages):
    """Move each digit's centre of mass to the middle of the page."""
    return np.array([shift(page, (PAGE - 1) / 2 - np.array(center_of_mass(page)), order=1) for page in pages])


def pixel_accuracy(pages):
    """Accuracy with the Euclidean distance between images."""
    return cross_val_score(KNeighborsClassifier(3), pages.reshape(len(pages), -1), labels).mean()


def group_accuracy(pages, likelihood):
    """Accuracy with the model comparison distance between groups."""
    model = ModelComparisonSimilarity(likelihood, output="distance", reg_covar=1e-3, n_jobs=-1)
    distances = model.pairwise(to_groups(pages))
    return cross_val_score(KNeighborsClassifier(3, metric="precomputed"), distances, labels).mean()


methods = {
    "pixels": pixel_accuracy,
    "pixels, centred": lambda pages: pixel_accuracy(centre(pages)),
    "groups, diag": lambda pages: group_accuracy(pages, "diag"),
    "groups, full": lambda pages: group_accuracy(pages, "full"),
}
accuracy = {(name, where): method(X) for name, method in methods.items() for where, X in pages.items()}
for (name, where), value in accuracy.items():
    print(f"{name:<16} {where:<9} {value:.3f}")

# %%

fig = plt.figure(figsize=(8.5, 3.6), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[1, 1.3])
shown = [np.flatnonzero(labels == digit)[0] for digit in range(8)]
for ax, page in zip(left.subplots(4, 4).flat, [*pages["in place"][shown], *pages["moved"][shown]], strict=True):
    ax.imshow(page, cmap="Greys")
    ax.set(xticks=[], yticks=[])
left.suptitle("digits in place (top) and moved (bottom)", fontsize="medium")
ax = right.subplots()
heights = np.arange(len(methods))
for offset, (where, colour) in zip((-0.2, 0.2), {"in place": "#0072B2", "moved": "#E69F00"}.items(), strict=True):
    values = [accuracy[name, where] for name in methods]
    bars = ax.barh(heights + offset, values, height=0.38, color=colour, label=where)
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize="small")
ax.set_yticks(heights, methods)
ax.invert_yaxis()
ax.set(xlim=(0, 1.1), xlabel="accuracy of three nearest neighbours")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %%
# On digits in place, groups with a full covariance do as well as plain pixels. Moving the digits does not affect them,
# because positions are relative to the centre; plain pixels then fail. However, centring the images helps plain pixels
# just as much: the gain comes from the centring, not from the comparison of models. A diagonal covariance is not enough
# here. It ignores which surroundings occur at which positions, and this is what identifies a digit.
