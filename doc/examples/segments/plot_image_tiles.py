"""
Segmenting images into regions
==============================

Which parts of an image belong together, and how many kinds of region are there? The image is cut into square tiles, and
each tile is a group. Its vectors are pixels, described by their colour and the gradient of the brightness. Tiles are
merged as long as one model explains them better than two, so you need not give the number of regions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_sample_image

from sklearn_mcsg import ModelComparisonClustering

SIDE = 16  # side of a tile in pixels


def cut_into_tiles(picture):
    """Cut an image into tiles of pixels with red, green, blue and brightness gradient; keep every fourth pixel."""
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
# Neighbouring pixels are similar and therefore not independent. ``balanced=True`` counts each tile as one
# observation. For comparison, Ward's method clusters the mean vectors of the same tiles, given the number of regions
# that model comparison has found.

regions = {}
for name, picture in pictures.items():
    tiles, shape = cut_into_tiles(picture)
    found = ModelComparisonClustering(balanced=True, reg_covar=1e-4).fit(tiles)
    by_means = AgglomerativeClustering(found.n_clusters_).fit_predict(tiles.mean(axis=1))
    regions[name] = [labels.reshape(shape) for labels in (found.labels_, by_means)]
    print(f"{name}: {len(tiles)} tiles of {tiles.shape[1]} pixels, {found.n_clusters_} regions")

# %%
# Each region is drawn in its mean colour.


def paint(picture, labels):
    """Paint each region in its mean colour."""
    regions = np.kron(labels, np.ones((SIDE, SIDE), dtype=int))
    means = np.array([picture[regions == label].mean(axis=0) for label in range(labels.max() + 1)])
    return means[regions]


fig, axes = plt.subplots(2, 3, figsize=(8.5, 4.1), layout="constrained")
for row, (name, picture) in zip(axes, pictures.items(), strict=True):
    models, means = regions[name]
    row[0].imshow(picture)
    row[1].imshow(paint(picture, models))
    row[2].imshow(paint(picture, means))
for ax, title in zip(axes[0], ["image", "model comparison", "Ward on means, same number"], strict=True):
    ax.set_title(title, fontsize="medium")
for ax in axes.flat:
    ax.set_axis_off()
plt.show()

# %%
# A model describes not only the mean of the pixels in a tile, but also their variation. Smooth areas are merged: the
# sky with the lake, and all the blurred leaves behind the flower, which Ward's method splits by brightness. Tiles on an
# outline vary more than the tiles on either side, and form their own regions. The temple and the trees are both dark
# and rough: model comparison leaves them together, and the means do not separate them cleanly, either. There is no
# ground truth for the regions; six is the number that the evidence supports in both images.
