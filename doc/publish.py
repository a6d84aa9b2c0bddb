"""Put built pages into the published site, which keeps the pages of every version: ``publish.py pages site branch``.

The site has a folder for each minor version and one for the version under development. ``versions.json`` fills the
menu of versions on all pages, and the entry leads to the newest release, whose lists of pages are those of the site. A
version is released by its tag (``publish.py pages site tag``); a branch publishes the version under development only.
"""

import json
import re
import shutil
import sys
from pathlib import Path

_ROOT = "/sklearn-mcsg"  # of the site, in its address
_ENTRY = '<!DOCTYPE html>\n<meta http-equiv="refresh" content="0; url={0}/">\n<a href="{0}/">Version {0}</a>\n'


def folder_of(version):
    """Folder of the pages of a version.

    >>> folder_of("0.1.2"), folder_of("1.10.0"), folder_of("0.2.0.dev0")
    ('0.1', '1.10', 'dev')
    """
    release = re.fullmatch(r"(\d+\.\d+)[.\d]*", version)
    return release[1] if release else "dev"


def publish(pages, site, ref_type):
    """Replace the pages of a version, which the pages themselves name, and list all versions again."""
    version = re.search(rb"^# Version: (\S+)$", (pages / "objects.inv").read_bytes(), re.MULTILINE)[1].decode()
    if ref_type != "tag" and folder_of(version) != "dev":
        print(f"Version {version} is published when it is tagged.")
        return
    folder = site / folder_of(version)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pages, folder)
    releases = [path.name for path in site.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    names = [*releases, *(path.name for path in site.glob("dev"))]
    (site / "versions.json").write_text(
        json.dumps([{"version": name, "url": f"{_ROOT}/{name}/"} for name in names], indent=1), encoding="utf8"
    )
    (site / "index.html").write_text(_ENTRY.format(names[0]), encoding="utf8")
    for name in ("llms.txt", "sitemap.xml"):
        if (site / names[0] / name).exists():
            shutil.copy(site / names[0] / name, site)
    (site / ".nojekyll").touch()  # or the server leaves out folders such as _static


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
