"""Other ways to write the same word: British and American spelling, numbers in words and in digits."""

from __future__ import annotations

import re

_OUR = """
    arb ard arm behavi cand clam col demean enam endeav fav ferv flav harb hon hum lab misdemean neighb od parl ranc rig
    rum sav savi splend succ tum val vap vig
"""
_RE = "calib cent fib lit lust maneuv meag met mit nit och sab scept somb spect theat"
_RULES = [  # British form, American form. Words with one spelling, such as surprise, may change, but in all texts.
    (rf"^(anti|be|dis|mis|out|re|un)?({'|'.join(_OUR.split())})our", r"\1\2or"),
    (r"^manoeuv", "maneuv"),
    (rf"^((?:[ckmn]\w+?[ior]|epi|amphi)?(?:{'|'.join(_RE.split())}))r(?:e(?=s?$)|(?=ed$|ing$))", r"\1er"),
    (r"^(licen|practi)s(e|es|ed|ing)$", r"\1c\2"),
    (r"(?<=\w{3})is(e|es|ed|er|ers|ing|able|ation|ations|ational)$", r"iz\1"),
    (r"(?<=[ao]l)ys(e|ed|er|ers|ing)$", r"yz\1"),
    (r"([aeiouy]\w+[ae]|^fue|^due|^die?a|^crue)ll(ed|er|ers|ing|ings|or|ors|ous|ously)$", r"\1l\2"),
    (r"^(anal|catal|dial|epil|homol|monol|prol|travel)ogue", r"\1og"),
    (r"aem(?=i[ac])", "em"),
    (r"^(an|ur|hypo|bacter)?haem", r"\1hem"),
    (r"^(encyclo|ortho|)paed", r"\1ped"),
    (r"^(an|gyn|arch)ae(?=sth|c|o)", r"\1e"),
    (r"^oe(?=soph|str|dem)", "e"),
    (r"^foet", "fet"),
    (r"rrhoea", "rrhea"),
    (r"^(m|sm)oul(d|t)(?=$|s$|y$|e|i)", r"\1ol\2"),
    (r"^plough", "plow"),
    (r"^scept(?=ic)", "skept"),
    (r"^sulph", "sulf"),
    (r"^programme(s?)$", r"program\1"),
    (r"^(acknowledg|judg|abridg|lodg)ement", r"\1ment"),
    (r"^(de|of|pre)(f|t)ence(s|less)?$", r"\1\2ense\3"),
    (r"^(enrol|fulfil|instal|instil|distil)l?(ment|ments|s)?$", r"\1\2"),
    (r"^(ski|wi)l?lful", r"\1lful"),
    (r"^(after|back|down|for|in|on|out|to|up)wards$", r"\1ward"),
]
_PAIRS = """
    aeroplane:airplane aeroplanes:airplanes ageing:aging aluminium:aluminum amongst:among artefact:artifact
    artefacts:artifacts axe:ax burnt:burned cheque:check cheques:checks chilli:chili cosy:cozy councillor:councilor
    councillors:councilors disc:disk discs:disks doughnut:donut doughnuts:donuts draught:draft draughts:drafts
    dreamt:dreamed enquiry:inquiry enquiries:inquiries gaol:jail grey:gray greys:grays jewellery:jewelry kerb:curb
    leapt:leaped learnt:learned maths:math mediaeval:medieval moustache:mustache moustaches:mustaches mum:mom mums:moms
    omelette:omelet pyjamas:pajamas sizeable:sizable spelt:spelled spoilt:spoiled storey:story storeys:stories
    tranquillity:tranquility tyre:tire tyres:tires whilst:while woollen:woolen yoghurt:yogurt
"""
_AMERICAN = dict(pair.split(":") for pair in _PAIRS.split())
_LONGEST = 32  # letters of a word that may have two spellings
_COMPILED = [(re.compile(pattern), form) for pattern, form in _RULES]

_UNITS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS_IN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = dict(zip(_TENS_IN_WORDS.split(), range(20, 100, 10), strict=True))
_DIGITS = {name: str(number) for number, name in enumerate(_UNITS.split())}
_DIGITS |= {name: str(number) for name, number in _TENS.items()}
_ZEROS = {"hundred": "00", "thousand": "000"}


def american(word: str) -> str:
    """A word as it is spelled in America. Some words with one spelling change, too, but no two become one.

    Parameters
    ----------
    word : str
        A word in lower case.

    Returns
    -------
    word : str

    Examples
    --------
    >>> from sklearn_mcsg.text._variants import american
    >>> [american(word) for word in ["colourful", "organisers", "travelling", "kilometres", "defence", "hour"]]
    ['colorful', 'organizers', 'traveling', 'kilometers', 'defense', 'hour']
    """
    if word in _AMERICAN:
        return _AMERICAN[word]
    if len(word) > _LONGEST or not word.isalpha():
        return word
    for pattern, form in _COMPILED:
        word = pattern.sub(form, word, count=1)
    return word


def in_digits(words: list[str]) -> list[str]:
    """Words with numbers below a hundred, whole hundreds and whole thousands in digits.

    Parameters
    ----------
    words : list of str
        The words of a text in lower case; compounds are split.

    Returns
    -------
    words : list of str

    Examples
    --------
    >>> from sklearn_mcsg.text._variants import in_digits
    >>> in_digits("twenty one of two hundred or 3 thousand".split())
    ['21', 'of', '200', 'or', '3000']
    """
    if _DIGITS.keys().isdisjoint(words) and _ZEROS.keys().isdisjoint(words):
        return words
    found: list[str] = []
    before = ""
    for word in words:
        digits = _DIGITS.get(word)
        if before in _TENS and digits is not None and 0 < int(digits) < 10:
            found[-1] = str(_TENS[before] + int(digits))
        elif word in _ZEROS and found and found[-1].isdecimal() and len(found[-1]) <= 3 and found[-1] != "0":
            found[-1] += _ZEROS[word]
        else:
            found.append(word if digits is None else digits)
        before = word
    return found
