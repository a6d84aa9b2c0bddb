"""Figures hold together: what the README and the pages say is what the benchmarks wrote."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
RESULTS = sorted((DOC / "results").glob("*/*.md"))
LINK = re.compile(r"^\[Table: .+\]\((results/\S+)\)$", re.MULTILINE)  # doc/conf.py puts the table in its place
NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.])\d+(?:\.\d+)?(?![\w])")
PAGES = sorted(path for path in DOC.glob("*.md") if LINK.search(path.read_text(encoding="utf8")))

pytestmark = pytest.mark.skipif(not RESULTS, reason="the documentation is not part of the installed package")


def text_of(page):
    """A page with its tables."""
    return LINK.sub(lambda match: (DOC / match[1]).read_text(encoding="utf8"), page.read_text(encoding="utf8"))


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
    tables = "\n".join((DOC / name).read_text(encoding="utf8") for name in LINK.findall(text))
    prose = re.sub(r"`[^`]*`", "", LINK.sub("", text))
    exact = [number for number in numbers(prose) if len(number.partition(".")[2]) >= 3]
    assert [number for number in exact if not occurs(number, numbers(tables))] == KNOWN.get(page.stem, [])


KNOWN = {"frames": ["0.0027"]}  # the share of one utterance


def test_every_table_is_on_one_page():
    included = [name for page in DOC.glob("*.md") for name in LINK.findall(page.read_text(encoding="utf8"))]
    assert sorted(included) == [path.relative_to(DOC).as_posix() for path in RESULTS]


def test_pages_link_their_tables_and_have_none_of_their_own():
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        assert not re.search(r"^\|--", text, re.MULTILINE), page.name
        assert "{include}" not in text, f"{page.name}: readers of the sources would see nothing"
        links = re.findall(r"^\[Table: (.+)\]\(results/\w+/(\S+)\.md\)$", text, re.MULTILINE)
        assert all(title == name.replace("_", " ") for title, name in links), page.name
        assert len(links) == len(re.findall(r"\(results/\S+\.md\)", text)), f"{page.name}: a table is a line of its own"
        figures = re.findall(r"\]\((results/\S+\.png)\)", text)
        assert all((DOC / name).exists() for name in figures), page.name


OWN_SETTINGS = {  # tables without methods from outside, and a part of the sentence of their page that says why
    "certainty": {
        "kept": "The measure is the level itself",
        "broken": "how far the same tests miss their level",
        "rejected": "compares two metrics of our own",
    },
    "duplicates": {"counts": "how many pairs there are"},
    "paper": {
        "vMF with TIC and diagonal model with AIC": "compare models and criteria with each other",
        "Criteria": "compare models and criteria with each other",
        "Spherical and diagonal models": "compare models and criteria with each other",
        "TIC and AIC": "compare models and criteria with each other",
        "Ranking of systems": "repeats figures of the tables above",
    },
    "speed": {"partitions": "has no other method"},
}


def tables_of(path):
    """Titles and tables of a file of results; a table before all titles has the name of the file."""
    title, lines, found = path.stem, [], []
    for line in [*path.read_text(encoding="utf8").splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            found.append((title, lines))
            lines = []
        if line.startswith("### "):
            title = line[4:]
    return found


def methods_of(lines):
    """Names of the methods of a table, in its first columns or, if those are no methods, in its heading."""
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    names = [cell for row in split[2:] for cell in row[:2] if not re.match(r"[-+]?\d", cell.strip("*"))]
    return names if any("**" in name for name in names) else split[0][1:]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_table_has_a_baseline_or_its_page_says_why_not(path):
    (page,) = (page for page in PAGES if path.relative_to(DOC).as_posix() in page.read_text(encoding="utf8"))
    text = " ".join(page.read_text(encoding="utf8").split())
    own = OWN_SETTINGS.get(page.stem, {})
    for title, lines in tables_of(path) or [(path.stem, [])]:
        names = methods_of(lines) if lines else [path.read_text(encoding="utf8")]
        marked = ["**" in name for name in names]
        if title in own:
            assert own[title] in text, title
        else:
            assert any(marked), f"{title}: no name of a method of this package is in bold"
            assert not lines or not all(marked), f"{title}: no baseline"
        figures = [cell for line in lines for cell in line.split("|")[2:] if re.search(r"\*\*[-+\d.,]+\*\*", cell)]
        assert not figures, f"{title}: bold is for names of methods of this package"


CITED = re.compile(r":doc:`[^`]*?/?(\w+)>?`|\]\((?:doc/|\.\./)?(\w+)\.(?:md|rst)\)")
TEXTS = [ROOT / "README.md", DOC / "index.rst", DOC / "quickstart.rst", *sorted((DOC / "guide").glob("*.rst"))]
NOT_MEASURED = {
    "12,544",
    "3.7",
}  # pairs of sentences, which the pages count; GB of a million points, width times 4 bytes


def citing_blocks(text):
    """Paragraphs that name pages of results, with the tables below them; and these pages."""
    pages = {page.stem for page in PAGES}
    blocks = re.split(r"\n\s*\n", text)
    for i, block in enumerate(blocks):
        cited = {name for pair in CITED.findall(block) for name in pair if name in pages}
        if cited and ">>>" not in block:
            below = next(
                (j for j in range(i + 1, len(blocks)) if not re.match(r"[|=+]|\.\. list-table", blocks[j])), i + 1
            )
            yield "\n".join(blocks[i:below]), cited


def is_measured(number, unit, among):
    """Whether a figure of the text is in the tables, where shares are no percentages and memory is in MiB."""
    if unit == "%":
        number = f"{float(number) / 100:.{len(number.partition('.')[2]) + 2}f}"
    if unit == "GiB":
        return any(f"{float(other.replace(',', '')) / 1024:.1f}" == number for other in among)
    return occurs(number, among)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_figures_beside_the_name_of_a_page_are_in_its_tables(path):
    missing = set()
    for block, cited in citing_blocks(path.read_text(encoding="utf8")):
        cited |= {"speed"} if path.stem == "scaling" else set()
        names = [name for page in PAGES if page.stem in cited for name in LINK.findall(page.read_text(encoding="utf8"))]
        among = {number for name in names for number in numbers((DOC / name).read_text(encoding="utf8"))}
        prose = re.sub(r"(?<![\w.])\.(?=\d)", "0.", re.sub(r"``[^`]*``|`[^`]*`", "", block))
        figures = re.findall(rf"({NUMBER.pattern})(?: (%|GiB))?", prose.replace("**", ""))
        missing |= {
            f"{number} {unit}".strip()
            for number, unit in figures
            if re.search("[.,]", number) and not is_measured(number, unit, among)
        }
    assert missing <= NOT_MEASURED


def test_the_article_cites_what_it_lists_and_says_what_the_pages_say():
    text = (DOC / "paper" / "paper.md").read_text(encoding="utf8")
    _, head, body = text.split("---\n", 2)
    keys = re.findall(r"^@\w+\{(\w+),", (DOC / "paper" / "paper.bib").read_text(encoding="utf8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+)", body)) == set(keys)
    among = {number for path in RESULTS for number in numbers(path.read_text(encoding="utf8"))} | NOT_MEASURED
    assert not [number for number in numbers(body) if re.search("[.,]", number) and not occurs(number, among)]
    assert "name: The sklearn_mcsg developers" in head
    assert 700 <= len(re.sub(r"^\|.*$", "", body, flags=re.MULTILINE).split()) <= 1000


def test_no_page_is_overwritten_by_one_that_sphinx_writes():
    assert not [path for name in ("search", "genindex", "py-modindex") for path in DOC.glob(f"{name}.*")]
