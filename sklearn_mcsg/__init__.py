"""Model comparison for groups of vectors, scikit-learn compatible.

A group is a set of vectors: the word vectors of a sentence, the frames of a sound, the items of a basket. The
similarity of two groups says whether one model generated both, or two.
"""

import lazy_loader

# The names are those of __init__.pyi, and their modules are imported when they are asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
