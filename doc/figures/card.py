"""The picture that messages show beside a link to the pages: what the package is, and a report."""

from pathlib import Path

import matplotlib.pyplot as plt

report = Path(__file__).resolve().parents[1] / "report.png"
figure = plt.figure(figsize=(12, 6.3), facecolor="white")
figure.text(0.05, 0.74, "sklearn_mcsg", fontsize=40, fontweight="bold", color="#1f2933")
figure.text(
    0.05,
    0.42,
    "Clusters, neighbours, classes\nand segments for samples\nthat are sets of vectors",
    fontsize=24,
    linespacing=1.5,
    color="#3e4c59",
)
figure.text(0.05, 0.18, "One model for both groups, or two?", fontsize=18, style="italic", color="#0072B2")
ax = figure.add_axes((0.48, 0.05, 0.5, 0.9))
ax.imshow(plt.imread(report)[:1000])
ax.set_axis_off()
plt.show()
