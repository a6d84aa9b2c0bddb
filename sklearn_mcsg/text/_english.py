"""Whether texts look English, as the installed word vectors are.

A static model has pieces of every word, and a table of English words also has many of other languages, so neither can
tell. Words are foreign if they are in another script, are common in another language, or are missing in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from sklearn_mcsg.text._frequencies import COMMON
from sklearn_mcsg.text._tokenised import Tokens
from sklearn_mcsg.text.language import STOP_WORDS

# Frequent words of languages, beside those of `COMMON`; single letters are too often something else.
_FREQUENT = """
    ein eine im zu sich nicht dem oder für wird auch le la et un du en au il ne pas ce sont aux avec
    de el se es lo su al este di da si è nel dei em um os na ao é te op bij på av är ett om og er af til ikke
    na jest oraz je že pro nebo bir ve bu için ile ja ei tai että az és hogy nem egy și în cu nu
    yang dan untuk dengan dari ini
"""
_FOREIGN = frozenset([*_FREQUENT.split(), *(word for line in COMMON[1:] for word in line.split())]) - STOP_WORDS
_SHARED_WORDS = "an on as am so do was no per me is of we had over to he her will at under all one in re ve ll"
_ENGLISH = frozenset(word for word in STOP_WORDS if len(word) > 1 and word.isalpha()) - set(_SHARED_WORDS.split())
_OTHER_SCRIPT = re.compile(r"(?![\u0000-\u024f\u1e00-\u1eff])[^\W\d_]")

_MOST_FOREIGN = 0.3  # share of words; English texts have fewer
_FEWEST_ENGLISH = 0.1  # share of English function words; English texts have more, unless stop words were removed
_ENOUGH = 5  # foreign words; fewer may be names
_ENOUGH_OF_A_SCRIPT = 2  # words in another script, which say more


def share_of_foreign_words(tokens: Tokens, is_known: Callable[[str], bool]) -> float:
    """Share of the words of texts that are foreign if the texts do not look English; 0 if they do.

    Parameters
    ----------
    tokens : Tokens
        The tokens of the texts.
    is_known : callable
        Whether an English table has a word, given in lower case.

    Returns
    -------
    share : float
    """
    counts = np.bincount(tokens.numbers, minlength=len(tokens.distinct))
    n_words = n_english = n_foreign = n_of_script = 0
    for token, n in zip(tokens.distinct, counts.tolist(), strict=True):
        word = token.lower()
        if not any(map(str.isalpha, word)):
            continue
        n_words += n
        n_english += n * (word in _ENGLISH)
        is_of_script = _OTHER_SCRIPT.search(word) is not None
        n_of_script += n * is_of_script
        n_foreign += n * (is_of_script or word in _FOREIGN or not all(map(is_known, filter(None, word.split("-")))))
    is_foreign = n_foreign > _MOST_FOREIGN * n_words and n_english < _FEWEST_ENGLISH * n_words
    is_enough = n_foreign >= _ENOUGH or n_of_script >= _ENOUGH_OF_A_SCRIPT
    return n_foreign / n_words if is_foreign and is_enough else 0.0
