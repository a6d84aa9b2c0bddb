"""Figures hold together: what the README and the pages say is what the benchmarks wrote."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
RESULTS = sorted((DOC / "results").glob("*/*.md"))
INCLUDE = re.compile(r"^```\{include\} (results/\S+)\n```$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.])\d+(?:\.\d+)?(?![\w])")
PAGES = sorted(path for path in DOC.glob("*.md") if INCLUDE.search(path.read_text(encoding="utf8")))

pytestmark = pytest.mark.skipif(not RESULTS, reason="the documentation is not part of the installed package")


def text_of(page):
    """A page with its tables."""
    return INCLUDE.sub(lambda match: (DOC / match[1]).read_text(encoding="utf8"), page.read_text(encoding="utf8"))


def numbers(text):
    return NUMBER.findall(text.replace("**", ""))


def rows(text):
    """Cells of the rows of all tables, without their headings."""
    lines = text.splitlines()
    heads = {i + k for i, line in enumerate(lines) if line.startswith("|--") for k in (-1, 0)}
    return [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for i, line in enumerate(lines)
        if line.startswith("|") and i not in heads
    ]


def occurs(number, among):
    """Whether a number is one of others, which may have more digits."""
    value, digits = float(number.replace(",", "")), len(number.partition(".")[2])
    return any(
        abs(float(other.replace(",", "")) - value) <= 0.5001 * 10**-digits
        for other in among
        if len(other.partition(".")[2]) >= digits
    )


def sections_with_figures():
    """Sections of the README that have figures with decimals, and link the pages that these come from."""
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    sections = re.split(r"^## ", re.sub(r"^```.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE)
    linked = {
        section: [DOC / name for name in re.findall(r"\(doc/([\w/-]+\.(?:md|rst))\)", section)] for section in sections
    }
    return {
        section.splitlines()[0]: (section, pages)
        for section, pages in linked.items()
        if pages and re.search(r"\d\.\d", section)
    }


@pytest.mark.parametrize("title", sections_with_figures())
def test_figures_of_the_readme_are_those_of_the_pages(title):
    section, pages = sections_with_figures()[title]
    among = {number for page in pages for number in numbers(text_of(page))}
    missing = [number for number in numbers(section) if "." in number and not occurs(number, among)]
    assert not missing, f"not in {', '.join(page.name for page in pages)}"


@pytest.mark.parametrize("title", sections_with_figures())
def test_a_row_of_the_readme_is_one_method_of_the_pages(title):
    section, pages = sections_with_figures()[title]
    methods = defaultdict(set)
    for page in pages:
        for row in rows(text_of(page)):
            names = [re.sub(r" \((off|on)line\)$", "", cell).lower() for cell in row if not numbers(cell[:1])]
            for name in names:
                methods[name] |= {number for cell in row for number in numbers(cell)}
    for name, *cells in rows(section):
        figures = numbers(" ".join(cells))
        assert any(all(occurs(number, found) for number in figures) for found in methods.values()), name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_figures_in_the_text_of_a_page_are_in_its_tables(page):
    text = page.read_text(encoding="utf8")
    tables = "\n".join((DOC / name).read_text(encoding="utf8") for name in INCLUDE.findall(text))
    prose = re.sub(r"`[^`]*`", "", INCLUDE.sub("", text))
    exact = [number for number in numbers(prose) if len(number.partition(".")[2]) >= 3]
    assert [number for number in exact if not occurs(number, numbers(tables))] == KNOWN.get(page.stem, [])


KNOWN = {"frames": ["0.0027"]}  # the share of one utterance


def test_every_table_is_on_one_page():
    included = [name for page in DOC.glob("*.md") for name in INCLUDE.findall(page.read_text(encoding="utf8"))]
    assert sorted(included) == [path.relative_to(DOC).as_posix() for path in RESULTS]


def test_pages_have_no_tables_of_their_own():
    for page in PAGES:
        assert not re.search(r"^\|--", page.read_text(encoding="utf8"), re.MULTILINE), page.name


def test_the_article_cites_what_it_lists_and_says_what_the_pages_say():
    text = (DOC / "paper" / "paper.md").read_text(encoding="utf8")
    _, head, body = text.split("---\n", 2)
    keys = re.findall(r"^@\w+\{(\w+),", (DOC / "paper" / "paper.bib").read_text(encoding="utf8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+)", body)) == set(keys)
    among = {number for page in PAGES for number in numbers(text_of(page))}
    assert not [number for number in numbers(body) if re.search("[.,]", number) and not occurs(number, among)]
    assert "name: The sklearn_mcsg developers" in head
    assert 700 <= len(re.sub(r"^\|.*$", "", body, flags=re.MULTILINE).split()) <= 1000


def test_no_page_is_overwritten_by_one_that_sphinx_writes():
    assert not [path for name in ("search", "genindex", "py-modindex") for path in DOC.glob(f"{name}.*")]
