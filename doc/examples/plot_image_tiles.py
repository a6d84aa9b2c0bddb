"""
Pictures divided into regions
=============================

Which parts of a picture belong together, and how many kinds of them are there? A picture is cut into square tiles, and
a tile is a group: its vectors are pixels, with their colour and with the slope of the brightness. Tiles are merged as
long as one model explains them better than two, so the number of regions is found, not given.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_sample_image

from sklearn_mcsg import ModelComparisonClustering

SIDE = 16  # of a tile, in pixels


def cut_into_tiles(picture):
    """Tiles of pixels with red, green, blue and the two slopes of the brightness; every fourth pixel is enough."""
    slopes = np.gradient(picture.mean(axis=2))
    pixels = np.dstack([picture, *slopes])
    rows, columns = picture.shape[0] // SIDE, picture.shape[1] // SIDE
    tiles = pixels.reshape(rows, SIDE, columns, SIDE, -1).swapaxes(1, 2)
    return tiles.reshape(rows * columns, SIDE * SIDE, -1)[:, ::4], (rows, columns)


pictures = {name: load_sample_image(f"{name}.jpg")[:416] / 255 for name in ("china", "flower")}

# %%
# Regions
# -------
#
# Pixels beside each other are alike and no independent observations, so each tile counts as one:
# ``observations="groups"``. For comparison, Ward's method looks at the mean vectors of the same tiles, and is told the
# number of regions that the models have found.

regions = {}
for name, picture in pictures.items():
    tiles, shape = cut_into_tiles(picture)
    found = ModelComparisonClustering(observations="groups", reg_covar=1e-4).fit(tiles)
    by_means = AgglomerativeClustering(found.n_clusters_).fit_predict(tiles.mean(axis=1))
    regions[name] = [labels.reshape(shape) for labels in (found.labels_, by_means)]
    print(f"{name}: {len(tiles)} tiles of {tiles.shape[1]} pixels, {found.n_clusters_} regions")

# %%
# Every region is drawn in its mean colour.


def paint(picture, labels):
    """The picture with each region in its mean colour."""
    regions = np.kron(labels, np.ones((SIDE, SIDE), dtype=int))
    means = np.array([picture[regions == label].mean(axis=0) for label in range(labels.max() + 1)])
    return means[regions]


fig, axes = plt.subplots(2, 3, figsize=(8.5, 4.1), layout="constrained")
for row, (name, picture) in zip(axes, pictures.items(), strict=True):
    models, means = regions[name]
    row[0].imshow(picture)
    row[1].imshow(paint(picture, models))
    row[2].imshow(paint(picture, means))
for ax, title in zip(axes[0], ["picture", "regions by models", "regions by means, same number"], strict=True):
    ax.set_title(title, fontsize="medium")
for ax in axes.flat:
    ax.set_axis_off()
plt.show()

# %%
# A model knows how much the pixels of a tile differ, not their mean alone. What is smooth goes together: the sky with
# the lake, and all the blurred leaves behind the flower, which Ward's method divides by their brightness. Tiles across
# an outline are rougher than either side, and form regions of their own. The temple and the trees are dark and rough
# alike: the models leave them together, and the means do not part them cleanly, either. Nobody has said what the right
# regions are; the number of them, six in both pictures, is what the evidence supports.
