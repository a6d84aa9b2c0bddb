"""Check a release: the archives are complete and hold nothing else, and all files agree on versions and dependencies.

The wheel holds the files of the package that git knows, the source archive all files but those of the workplace, whose
names begin with a dot. A final version must have a date, the same in the changelog and in the citation. Placeholders in
addresses are named; with ``--publish`` they are problems, so that no version with them reaches the package index.
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


def check_wheel(path: Path, expected: set[str]) -> tuple[list[str], str]:
    """Problems of the wheel, and its version."""
    if not path.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"{path.name} is not for every Python and platform.")
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")))
    return differences(path.name, names, expected), message_from_bytes(metadata)["Version"]


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


def check_version(version: str) -> list[str]:
    """Problems of a version; one under development needs no date."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf8")
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    problems = []
    if f"\nversion: {version}\n" not in citation:
        problems.append(f"CITATION.cff does not say version: {version}")
    if ".dev" in version:
        return problems
    if f'\n  version: "{version}"\n' not in recipe:
        problems.append(f"the recipe does not say version: {version}")
    date = re.search(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    if date is None:
        problems.append(f"CHANGELOG.md has no section for {version} with a date")
    elif f"\ndate-released: {date[1]}\n" not in citation:
        problems.append(f"CITATION.cff does not say date-released: {date[1]}")
    return problems


def placeholders() -> list[str]:
    """Files that still lack the address of the repository, or of those who keep it."""
    files = [
        "pyproject.toml",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        ".github/ISSUE_TEMPLATE/config.yml",
        ".ci/conda/recipe.yaml",
    ]
    words = "OWNER|CONTACT|MAINTAINERS"
    found = {name: sorted(set(re.findall(words, (ROOT / name).read_text(encoding="utf8")))) for name in files}
    return [f"{name} still says {' and '.join(words)}" for name, words in found.items() if words]


def check_copies() -> list[str]:
    """Problems of files that repeat what pyproject.toml says."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    project = pyproject["project"]
    recipe = (ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf8")
    host, run = (
        {line.strip(" -").replace(" ", "") for line in part.splitlines() if re.match(r" +- (?!python |pip$)", line)}
        for part in re.search(r"^  host:\n(.*?)^  run:\n(.*?)\n\n", recipe, re.MULTILINE | re.DOTALL).groups()
    )
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf8")
    tested = re.findall(r'"([^"]+)"', re.search(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)[1])
    supported = [version for line in project["classifiers"] for version in re.findall(r"Python :: (3\.\d+)$", line)]
    problems = []
    if run != set(project["dependencies"]) or host != set(pyproject["build-system"]["requires"]):
        problems.append("the recipe and pyproject.toml require different versions")
    commands = [f"      - {name} = {target}\n" for name, target in project["scripts"].items()]
    if f"    entry_points:\n{''.join(commands)}\n" not in recipe:
        problems.append("the recipe and pyproject.toml install different commands")
    if tested != supported or project["requires-python"] != f">={supported[0]}":
        problems.append("the workflow tests other versions of Python than pyproject.toml says are supported")
    return problems


def main(folder: Path, publish: bool) -> None:
    """Check the archives of a folder, and print all problems."""
    wheel = only(sorted(folder.glob("*.whl")), "wheel")
    source = only(sorted(folder.glob("*.tar.gz")), "source archive")
    files = tracked()
    problems, version = check_wheel(wheel, {name for name in files if name.startswith("sklearn_mcsg/")})
    problems += check_source(source, {name for name in files if not name.startswith(".")})
    problems += check_version(version) + check_copies()
    if publish:
        problems += placeholders()
    if problems:
        raise SystemExit("\n".join(problems))
    print(f"{wheel.name} and {source.name} are complete.")
    for line in placeholders():
        print(f"To be done before it is published: {line}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), publish="--publish" in sys.argv[2:])
