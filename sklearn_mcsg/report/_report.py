"""The page as an object, which a notebook shows and which saves itself."""

from __future__ import annotations

import os
from html import escape

from sklearn_mcsg._disk import replace_file

_HEIGHT = 900  # pixels, in a notebook


class Report:
    """A report: one HTML page.

    ``str(report)`` is the page. A notebook shows it in a frame of its own, apart from the notebook's styles and
    scripts.

    Parameters
    ----------
    page : str
        The page.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_mcsg import cluster_report
    >>> report = cluster_report(["A cat sat.", "A kitten lay.", "Shares fell.", "Stock markets fell."])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(f"{folder}/report.html")
    ...     os.listdir(folder)
    ['report.html']
    """

    def __init__(self, page: str) -> None:
        self._page = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file in one step: the file has the old content or the new one, never a part of it.

        Parameters
        ----------
        path : str or path-like
            The file. If it exists, it is replaced and keeps its mode. A pipe or a device, such as /dev/stdout, is
            written to.
        """
        replace_file(path, self._page.encode())

    def __str__(self) -> str:
        return self._page

    def __repr__(self) -> str:
        return f"<Report: an HTML page of {len(self._page.encode()) / 1e6:.1f} MB; save(path) writes it>"

    def _repr_html_(self) -> str:
        """The page in a frame that may run its own script and download its table, and nothing else."""
        return (
            f'<iframe srcdoc="{escape(self._page)}" sandbox="allow-scripts allow-downloads" '
            f'width="100%" height="{_HEIGHT}" style="border: 0" title="Report"></iframe>'
        )
