"""Results apart from their explanations: each table is a file, and the pages in doc/ link it.

Names of methods of this package are in bold; all others are baselines.
"""

OURS = ("Diag", "Spherical", "vMF", "Embedding", "embedding", "centered")  # how their names begin


def shown(name):
    """The name of a method, in bold if it is one of this package."""
    return f"**{name}**" if name.startswith(OURS) else name


def announce(description, folder):
    """Say what is measured and which folder is written to; nothing is written elsewhere."""
    print(f"{description.splitlines()[0]} Tables go to {folder}.", flush=True)


def write_results(folder, tables):
    """Write tables by name, and print them; those that were not measured this time stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in tables.items():
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf8")
        print(f"{name}\n\n{text}\n", flush=True)
