"""What is known of a language: words that say nothing about a text, and the stems of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn_mcsg._extras import import_extra

_ENGLISH = """
    a an the this that these those such same other another each every either neither both all any some few many much
    more most less least several enough own only
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves one ones who whom whose which what whatever whichever
    someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
    am is are was were be been being do does did done doing has have had having can could may might must shall should
    will would ought let got get gets getting
    and or but nor yet so if then else than as because since although though while whereas unless until till whether
    about above across after against along among around at before behind below beneath beside besides between beyond by
    down during except for from in inside into like near of off on onto out outside over per through throughout to
    toward towards under up upon via with within without
    again ago almost already also always even ever far further hence here how however indeed instead just later maybe
    never no not now often once perhaps quite rather really still there therefore thus together too very well when
    whenever where wherever why
    n't 's 're 've 'll 'd 'm s t re ve ll d m don didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven
    hadn ain cannot ca wo etc eg ie e.g. i.e.
"""
STOP_WORDS = frozenset(_ENGLISH.split())  # English words that never tell what a text is about


def stop_words_of(language: str) -> frozenset[str]:
    """Words that say nothing about a text, in lower case; none for a language whose stop words are not known.

    Parameters
    ----------
    language : str
        The English name of a language, such as ``"french"``.

    Returns
    -------
    words : frozenset of str

    Examples
    --------
    >>> from sklearn_mcsg.text.language import stop_words_of
    >>> "your" in stop_words_of("english"), "nicht" in stop_words_of("german"), len(stop_words_of("basque"))
    (True, True, 0)
    """
    if language == "english":
        return STOP_WORDS
    known = import_extra("bm25s.stopwords", "A list of stop words")
    return frozenset(getattr(known, f"STOPWORDS_{language.upper()}", ()))


def stems_of(words: Sequence[str], language: str) -> list[str]:
    """The stems of words in lower case.

    Parameters
    ----------
    words : sequence of str
        The words.
    language : str
        Their language: one that PyStemmer has an algorithm for.

    Returns
    -------
    stems : list of str

    Examples
    --------
    >>> from sklearn_mcsg.text.language import stems_of
    >>> stems_of(["storms", "stormy", "coastal"], "english")
    ['storm', 'stormi', 'coastal']
    """
    check_language(language)
    return list(_stemmers().Stemmer(language).stemWords(words))  # a new one, because threads must not share it


def check_language(language: str) -> None:
    """Raise ValueError unless words of a language can be stemmed."""
    names = _stemmers().algorithms()
    if language not in names:
        raise ValueError(
            f"language={language!r} is not known: choose one of {', '.join(sorted(names))}, or None (on the command "
            f"line none) for words as they are written."
        )


def _stemmers() -> Any:
    return import_extra("Stemmer", "A search by stems", "set language=None (on the command line --language none)")
