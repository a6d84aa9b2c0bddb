"""Queries with one right answer each, from packages of Debian, for `search.py`.

    python benchmarks/known_items.py --to DIR/known_items [--glosses FOLDER --definitions FILE] [--packages FILE]

FOLDER holds `index.noun` and `data.noun` of the package wordnet-base, and `--definitions` is the `gcide.dict.dz` of
dict-gcide: the gloss of a noun with one sense asks for the first definition of the same noun in Webster's of 1913.
`--packages` is a list of package descriptions in English (`Translation-en`, unpacked): a synopsis asks for the
description below it. Each file gets 1500 lines, drawn at random.
"""

import argparse
import gzip
import random
import re
from pathlib import Path

N_ITEMS = 1500
FEWEST_WORDS = 5
ENTRY = re.compile(r"^(\S[^\\\n]*?) \\[^\\]+\\[^\n]*?\bn\.(.*?)(?=^\S[^\\\n]*? \\|\Z)", re.MULTILINE | re.DOTALL)
SOURCE = "[1913 Webster]"
MARKUP = re.compile(r"\[[^\]]*\]|--[A-Z][\w. ()]*|^\d\.|\([A-Z][\w. &]*\)|[{}]")
SYNOPSIS = re.compile(r"^Description-en: (.*)\n((?: .*\n?)+)", re.MULTILINE)
PART = re.compile(r"^Package: (?:lib.*|.*-(?:dev|dbg|doc|data))$", re.MULTILINE)


def glosses(folder):
    """The glosses of nouns that have one sense, without examples."""
    lines = [line.split() for line in (folder / "index.noun").read_text().splitlines() if line[0] != " "]
    single = {word for word, _, n_senses, *_ in lines if n_senses == "1"}
    found = {}
    for line in (folder / "data.noun").read_text().splitlines():
        if line[0] != " ":
            head, gloss = line.split(" | ", 1)
            fields = head.split()
            words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            found |= {word: gloss.split('; "')[0].strip() for word in words if word.lower() in single}
    return found


def definitions(path):
    """The first definition of nouns that have one entry, which is from Webster's alone."""
    with gzip.open(path, "rt", encoding="utf8", errors="replace") as file:
        entries = {}
        for word, body in ENTRY.findall(file.read()):
            entries.setdefault(word.lower(), []).append(body)
    alone = {word: bodies[0] for word, bodies in entries.items() if len(bodies) == 1}
    return {word: cleaned(body) for word, body in alone.items() if SOURCE in body and "WordNet" not in body}


def cleaned(body):
    """A definition without plural, etymology, number, field and quotation."""
    text = " ".join(body.split(SOURCE)[0].split())
    text = re.sub(r"^[;:,]? ?(pl\. ?\{[^}]*\}\.?)?", "", text)
    text = re.sub(r"^[^\[]{0,40}\[[^\]]*\]", "", text).strip()
    return " ".join(MARKUP.sub("", text).split())


def packages(path):
    """Synopses and descriptions, each once, of packages that are not a part of another."""
    found = {}
    for block in path.read_text(encoding="utf8").split("\n\n"):
        match = SYNOPSIS.search(block)
        if match and not PART.search(block):
            lines = (line.strip() for line in match[2].splitlines())
            found.setdefault(match[1].strip(), " ".join(line for line in lines if line != "."))
    distinct = {text[:80]: (synopsis, text) for synopsis, text in reversed(found.items())}
    return list(distinct.values())


def write(path, pairs):
    """Some pairs of texts that have enough words."""
    long = sorted(pair for pair in pairs if all(len(text.split()) >= FEWEST_WORDS for text in pair))
    random.Random(0).shuffle(long)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(pair) + "\n" for pair in long[:N_ITEMS]), encoding="utf8")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, help="folder of the .tsv files")
    parser.add_argument("--glosses", type=Path, help="folder with index.noun and data.noun")
    parser.add_argument("--definitions", type=Path, help="gcide.dict.dz")
    parser.add_argument("--packages", type=Path, help="Translation-en")
    options = parser.parse_args(arguments)
    if options.glosses and options.definitions:
        by_word = definitions(options.definitions)
        pairs = [(gloss, by_word[word]) for word, gloss in glosses(options.glosses).items() if word in by_word]
        write(options.to / "dictionary.tsv", pairs)
    if options.packages:
        write(options.to / "packages.tsv", packages(options.packages))


if __name__ == "__main__":
    main()
