"""Check a release: the archives are complete and hold nothing else, and all files agree on versions and dependencies.

The wheel holds the files of the package that git knows, the source archive all files but those of the workplace, whose
names begin with a dot. A final version must have a date in the changelog and no placeholder in its addresses.
"""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tracked() -> set[str]:
    """Names of the files that git knows and that exist."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def only(files: list[Path], kind: str) -> Path:
    """The one file of a kind."""
    if len(files) != 1:
        raise SystemExit(f"There must be one {kind}, found {len(files)}: run make dist.")
    return files[0]


def check_wheel(path: Path, expected: set[str]) -> tuple[list[str], str, bytes]:
    """Problems of the wheel, its version, and its metadata."""
    if not path.name.endswith("-py3-none-any.whl"):
        return [f"{path.name} is not for every Python and platform"], "", b""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")))
    return differences(path.name, names, expected), message_from_bytes(metadata)["Version"], metadata


def check_source(path: Path, expected: set[str]) -> list[str]:
    """Problems of the source archive."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    written = {name for name in names if name == "PKG-INFO" or ".egg-info/" in name}  # by setuptools
    return differences(path.name, names - written, expected)


def differences(archive: str, names: set[str], expected: set[str]) -> list[str]:
    """Files that an archive lacks, and files that it should not hold."""
    return [
        *(f"{archive} lacks {name}" for name in sorted(expected - names)),
        *(f"{archive} holds {name}, which git does not know" for name in sorted(names - expected)),
    ]


def check_version(version: str, metadata: bytes) -> list[str]:
    """Problems of a version; a development version may have no date and placeholders."""
    problems = []
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf8"), re.MULTILINE)
    if citation is None or citation[1] != version:
        problems.append(f"CITATION.cff does not say version: {version}")
    if ".dev" in version:
        return problems
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    if not re.search(rf"^## {re.escape(version)}\b.*\d{{4}}-\d\d-\d\d", changelog, re.MULTILINE):
        problems.append(f"CHANGELOG.md has no section for {version} with a date")
    if b"OWNER" in metadata:
        problems.append("the addresses in [project.urls] still say OWNER")
    return problems


def check_copies() -> list[str]:
    """Problems of files that repeat what pyproject.toml says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    required = {line.strip(" -").replace(" ", "") for line in run.splitlines() if "python_min" not in line}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf8")
    tested = re.findall(r'"([^"]+)"', re.search(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)[1])
    supported = [version for line in project["classifiers"] for version in re.findall(r"Python :: (3\.\d+)$", line)]
    problems = []
    if required != set(project["dependencies"]):
        problems.append("the recipe and pyproject.toml require different versions")
    if tested != supported or project["requires-python"] != f">={supported[0]}":
        problems.append("the workflow tests other versions of Python than pyproject.toml says are supported")
    return problems


def main(folder: Path) -> None:
    """Check the archives of a folder, and print all problems."""
    wheel = only(sorted(folder.glob("*.whl")), "wheel")
    source = only(sorted(folder.glob("*.tar.gz")), "source archive")
    files = tracked()
    problems, version, metadata = check_wheel(wheel, {name for name in files if name.startswith("sklearn_mcsg/")})
    problems += check_source(source, {name for name in files if not name.startswith(".")})
    problems += check_version(version, metadata) if version else []
    problems += check_copies()
    if problems:
        raise SystemExit("\n".join(problems))
    print(f"{wheel.name} and {source.name} are complete.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
