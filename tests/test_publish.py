"""The published site keeps the pages of every version."""

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "doc" / "publish.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the documentation is not part of the installed package")


def publish(folder, version, text, ref_type="tag"):
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    (pages / "objects.inv").write_bytes(f"# Sphinx inventory version 2\n# Project: p\n# Version: {version}\n".encode())
    for name in ("index.html", "llms.txt", "sitemap.xml"):
        (pages / name).write_text(text)
    (folder / "site").mkdir(exist_ok=True)
    runpy.run_path(str(SCRIPT))["publish"](pages, folder / "site", ref_type)


def test_versions_stand_side_by_side(tmp_path):
    site = tmp_path / "site"
    publish(tmp_path, "0.2.0.dev0", "next")
    assert "url=dev/" in (site / "index.html").read_text()
    for version in ("0.9.0", "0.10.0", "0.9.1", "0.11.0.dev0"):
        publish(tmp_path, version, version)
    listed = json.loads((site / "versions.json").read_text())
    assert [entry["version"] for entry in listed] == ["0.10", "0.9", "dev"]
    assert [entry["url"] for entry in listed] == ["/sklearn-mcsg/0.10/", "/sklearn-mcsg/0.9/", "/sklearn-mcsg/dev/"]
    assert "url=0.10/" in (site / "index.html").read_text()
    assert (site / "llms.txt").read_text() == (site / "sitemap.xml").read_text() == "0.10.0"
    assert (site / "0.9" / "index.html").read_text() == "0.9.1"
    assert (site / "dev" / "index.html").read_text() == "0.11.0.dev0"


def test_a_branch_publishes_no_release(tmp_path):
    publish(tmp_path, "0.2.0", "not released yet", "branch")
    assert not list((tmp_path / "site").iterdir())
    publish(tmp_path, "0.3.0.dev0", "next", "branch")
    assert (tmp_path / "site" / "dev" / "index.html").read_text() == "next"


def test_pages_that_are_gone_go(tmp_path):
    publish(tmp_path, "0.1.0", "first")
    (tmp_path / "site" / "0.1" / "old.html").touch()
    publish(tmp_path, "0.1.1", "second")
    assert not (tmp_path / "site" / "0.1" / "old.html").exists()
