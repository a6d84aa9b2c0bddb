from sklearn_mcsg import __version__

project = "sklearn_mcsg"
author = "The sklearn_mcsg developers"
copyright = f"2026, {author}"
version = release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_show_sourcelink = False
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
