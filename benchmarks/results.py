"""Results apart from their explanations: each table is a file, and the pages in doc/ include it."""


def write_results(folder, tables):
    """Write tables by name, and print them; those that were not measured this time stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in tables.items():
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf8")
        print(f"{name}\n\n{text}\n", flush=True)
