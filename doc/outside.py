"""What others read of the site: search engines (sitemap.xml), messages (cards) and language models (llms.txt)."""

import runpy
from pathlib import Path

_CARD = "_static/card.png"


def first_paragraph(doctree):
    """The first paragraph of a page, as one line."""
    paragraphs = doctree.findall(lambda node: node.tagname == "paragraph" and node.parent.tagname == "section")
    found = next(paragraphs, None)
    return " ".join(found.astext().split()) if found else ""


def resolved(app, page):
    """A page in which references have their texts."""
    return app.env.get_and_resolve_doctree(page, app.builder)


def add_card(app, pagename, templatename, context, doctree):
    """Say what a message that links to a page shows: title, first paragraph and a picture."""
    if doctree is None:
        return
    escape = {ord(sign): f"&{name};" for sign, name in (("&", "amp"), ('"', "quot"), ("<", "lt"), (">", "gt"))}
    fields = {
        "og:type": "website",
        "og:site_name": app.config.project,
        "og:title": app.env.titles[pagename].astext(),
        "og:description": first_paragraph(doctree)[:300],
        "og:url": f"{app.config.html_baseurl}{pagename}.html",
        "og:image": f"{app.config.html_baseurl}{_CARD}",
        "twitter:card": "summary_large_image",
    }
    tags = [f'<meta property="{name}" content="{text.translate(escape)}" />' for name, text in fields.items() if text]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def write_card(app):
    """Draw the picture of the cards."""
    import matplotlib

    matplotlib.use("Agg")
    figure = runpy.run_path(str(Path(app.srcdir) / "figures" / "card.py"))["figure"]
    figure.savefig(Path(app.outdir) / _CARD, dpi=100)


def write_lists(app):
    """List the pages: all for search engines, and those written by hand for language models."""
    address = app.config.html_baseurl
    pages = sorted(app.env.found_docs)
    entries = "".join(f"<url><loc>{address}{page}.html</loc></url>\n" for page in pages)
    sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    (Path(app.outdir) / "sitemap.xml").write_text(f'<?xml version="1.0" encoding="utf-8"?>\n{sitemap}', encoding="utf8")
    lines = [f"# {app.config.project}", "", f"> {first_paragraph(resolved(app, 'index'))}", "", "## Pages", ""]
    for page in in_order(app.env.toctree_includes, app.config.root_doc):
        title = app.env.titles[page].astext()
        about = first_paragraph(resolved(app, page)).partition(". ")[0].rstrip(".:")
        lines.append(f"- [{title}]({address}{page}.html){f': {about}' if about else ''}")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf8")


def in_order(includes, page):
    """Pages below a page, as the tables of contents have them; those of single names are left to the reference.

    >>> list(in_order({"index": ["guide", "api"], "guide": ["groups"], "api": ["generated/Groups"]}, "index"))
    ['guide', 'groups', 'api']
    """
    for child in includes.get(page, []):
        if not child.startswith("generated/"):
            yield child
            yield from in_order(includes, child)


def write_all(app, exception):
    if exception is None and app.builder.format == "html":
        write_card(app)
        write_lists(app)


def setup(app):
    app.connect("html-page-context", add_card)
    app.connect("build-finished", write_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
