"""Model comparison for groups of vectors, scikit-learn compatible.

A group is a set of vectors: the word vectors of a sentence, the frames of a sound, the items of a basket. The
similarity of two groups measures whether one model generated both, or two different models did.
"""

import lazy_loader

# Public names are listed in __init__.pyi; their modules are imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
