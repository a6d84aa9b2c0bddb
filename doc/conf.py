"""Sphinx configuration: ``make doc`` builds the pages with nothing but what the extra ``doc`` installs, offline."""

import base64
import io
import re
import sys
import tomllib
from pathlib import Path

import ziamath
from docutils import nodes
from fontTools import subset
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx_gallery.sorting import ExplicitOrder

import sklearn_mcsg
from sklearn_mcsg.datasets import load_short_texts

sys.path.insert(0, str(Path(__file__).parent))
from publish import folder_of

project = "sklearn_mcsg"
author = "The sklearn_mcsg developers"
copyright = f"2026, {author}"
version = release = sklearn_mcsg.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
    "outside",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "examples", "figures", "paper", "results"]
autosummary_generate = True
autodoc_typehints = "none"
default_role = "autolink"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
_TASKS = ["texts", "search", "clusters", "segments", "explanation", "groups", "scaling"]
_EXAMPLES = """
    grid_search_pairs weights semantic_search thresholds vector_database text_clusters map embedding segments
    image_tiles explain choose_likelihood tic_against_aic numeric_groups bags unknown_machines images_as_groups dask
"""
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"^(?!.*plot_)",
    "subsection_order": ExplicitOrder([*(f"examples/{name}" for name in _TASKS), "*"]),
    "within_subsection_order": ExplicitOrder([*(f"plot_{name}.py" for name in _EXAMPLES.split()), "*"]),
    "image_scrapers": ("matplotlib",),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
}

plot_basedir = "figures"
plot_formats = ["svg"]
plot_html_show_formats = plot_html_show_source_link = False

html_theme = "pydata_sphinx_theme"
html_title = f"sklearn_mcsg {release}"
_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf8"))["project"]
html_baseurl = f"{_PROJECT['urls']['Documentation']}/{folder_of(release)}/"
html_theme_options = {
    "logo": {"text": html_title},
    "navbar_align": "left",
    "show_prev_next": True,
    # none beside examples, where lines of code need the room
    "secondary_sidebar_items": {place: ["page-toc"] for place in ("*", "guide/*", "generated/*")},
    "footer_start": ["copyright"],
    "footer_end": [],
}
if "dev" in release:
    html_theme_options["announcement"] = "These pages describe a version under development."
if tags.has("published"):  # noqa: F821 - Sphinx puts it there; pages opened from a disk cannot read the list of versions
    html_theme_options["switcher"] = {"json_url": "../versions.json", "version_match": folder_of(release)}
    html_theme_options["navbar_start"] = ["navbar-logo", "version-switcher"]
    html_theme_options["check_switcher"] = False
    html_theme_options["logo"] = {"text": project}
html_sidebars = {
    page: [] for page in ("index", "quickstart", "paper_to_code", "developing", "maintaining", "changelog")
}
html_static_path = ["_static"]
html_css_files = ["custom.css", "math.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"

# Formulas become MathML, which browsers draw without a script; a part of the font STIX Two Math goes with the pages.

_LETTERS = [*range(0x20, 0x7F), *range(0xA0, 0x100), 0x2C6, *range(0x300, 0x340), *range(0x370, 0x400)]
_SIGNS = [*range(0x2000, 0x2070), *range(0x2100, 0x2150), *range(0x2190, 0x2310), *range(0x239B, 0x23B9)]
_ALPHABETS = [*range(0x1D400, 0x1D468), *range(0x1D49C, 0x1D504), *range(0x1D538, 0x1D56C), *range(0x1D6A4, 0x1D800)]
_SPACING = [
    # a sign after a relation, a comma or a bracket belongs to the number that follows
    (r"(&#x(?:0003D|0002C|00028|02248|02264|02265);</mo>)<mo>(&#x02212;|&#x0002B;)", r'\1<mo form="prefix">\2'),
    (r"<mo>&#x0002F;</mo>", r'<mo lspace="0" rspace="0">&#x0002F;</mo>'),
    (r"<mi>&#x02032;</mi>", r'<mo mathsize="150%">&#x02032;</mo>'),  # a prime is made for its place already
    (r"<mo>&#x0005E;</mo></mover>", r'<mo stretchy="false">&#x002C6;</mo></mover>'),  # a hat that sits on its letter
    (r"<mo>&#x0002A;</mo>", r"<mo>&#x02217;</mo>"),  # a star in the middle of its line, not at the top
    (r"<mi>&#x0007E;</mi>", r"<mo>&#x0223C;</mo>"),
    (r'<mn mathvariant="double-struck">1</mn>', r"<mn>&#x1D7D9;</mn>"),
    (r'<mo movablelimits="true">det</mo>', r"<mi>det</mi>"),
    (r"<mi>(ln|exp|det)</mi>(?!<mo[^>]*>&#x00028;|</)", r'<mi>\1</mi><mspace width="0.167em"/>'),
    (r"(</(?:mi|mn|mfrac|msub|msup|msubsup)>)<mi>(ln|exp|det)</mi>", r'\1<mspace width="0.167em"/><mi>\2</mi>'),
    (r"<mi>(&#x003(?:9|A)[0-9A-F];)</mi>", r'<mi mathvariant="normal">\1</mi>'),  # Greek capitals stand upright
]


def mathml(tex, display):
    result = convert(tex, display=display)
    for pattern, replacement in _SPACING:
        result = re.sub(pattern, replacement, result)
    return result


def inline_math(translator, node):
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def displayed_math(translator, node):
    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def write_font(app):
    """Put the font into a style sheet, for pages opened from a disk may not load it from a file of its own."""
    if app.builder.format != "html":
        return
    options = subset.Options(flavor="woff", layout_features=[], hinting=False)
    font = subset.load_font(Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf", options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=_LETTERS + _SIGNS + _ALPHABETS)
    subsetter.subset(font)
    file = io.BytesIO()
    subset.save_font(font, file, options)
    data = base64.b64encode(file.getvalue()).decode()
    sheet = f'@font-face {{ font-family: "STIX Two Math"; src: url(data:font/woff;base64,{data}); }}\n'
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "math.css").write_text(sheet, encoding="utf8")


def write_live_report(app):
    """Make the report that the home page shows, of the texts that come with the package."""
    if app.builder.format != "html":
        return
    texts = load_short_texts()
    columns = {"topic": [texts.target_names[topic] for topic in texts.target]}
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    sklearn_mcsg.cluster_report(texts.data, columns=columns, title="360 short texts").save(folder / "report.html")


def include_tables(app, docname, source):
    """Put tables in place of the links to them, which readers of the sources follow."""
    source[0] = re.sub(r"^\[Table: .+\]\((results/\S+)\)$", r"```{include} \1\n```", source[0], flags=re.MULTILINE)


def check_reference(app):
    """Warn of public names that the reference lacks."""
    listed = re.findall(r"^(?:   |\.\. data:: )(\w+)$", (Path(app.srcdir) / "api.rst").read_text(encoding="utf8"), re.M)
    if missing := set(sklearn_mcsg.__all__).difference(listed):
        logging.getLogger(__name__).warning("api.rst lacks %s", ", ".join(sorted(missing)))


def setup(app):
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
    app.connect("source-read", include_tables)
    app.connect("builder-inited", check_reference)
    app.connect("builder-inited", write_font)
    app.connect("builder-inited", write_live_report)
    return {"parallel_read_safe": True}
