"""Pages that list things list all of them."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READS = re.compile(r"""env\.\w+\(\s*["'](\w+)["']""")
HOST_READS = re.compile(r"""["'](BERTH_\w+|REDIS_URL)["']""")


def documented_variables() -> set[str]:
    return set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/operations.md").read_text(), re.MULTILINE))


def test_every_variable_of_the_control_plane_is_documented():
    read = set(READS.findall((ROOT / "webapp/settings.py").read_text()))
    assert read
    assert read <= documented_variables()


def test_every_variable_of_a_host_is_documented():
    read = set(HOST_READS.findall((ROOT / "workers/host/config.py").read_text()))
    assert read
    assert {name.removesuffix("_FILE") for name in read} <= documented_variables()


def test_no_variable_is_documented_that_nobody_reads():
    code = "".join(
        path.read_text()
        for folder in ("webapp", "workers/host")
        for path in (ROOT / folder).rglob("*.py")
    )
    assert [name for name in documented_variables() if name not in code] == []


def test_every_dependency_has_its_reason():
    text = (ROOT / "docs/dependencies.md").read_text()
    asked = set()
    for path in ROOT.glob("requirements*.in"):
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "-r")):
                asked.add(re.split(r"[\[<>=]", line)[0].strip())
    package = json.loads((ROOT / "package.json").read_text())
    asked |= set(package.get("dependencies", {})) | set(package.get("devDependencies", {}))
    assert [name for name in sorted(asked) if name not in text] == []


def test_every_page_of_the_docs_links_to_files_that_exist():
    broken = [
        f"{page.name}: {target}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\((?!https?:|#|/)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_path_that_a_page_names_exists():
    """Also those in backticks: ``NAME`` stands for what a reader adds, ``*`` for several files."""
    ours = r"`((?:reservations|workers|webapp|tests|docs|templates)/[\w./*-]+)`"
    wrong = [
        f"{page.name}: {path}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for path in re.findall(ours, page.read_text())
        if not any(ROOT.glob(path.replace("NAME", "*")))
    ]
    assert wrong == []
