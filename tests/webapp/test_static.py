"""What a browser is served: hashed names all through, and of packages only what is listed."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings

from webapp.finders import FILES


@pytest.fixture
def manifest(static_files) -> dict[str, str]:
    text = (Path(settings.STATIC_ROOT) / "staticfiles.json").read_text()
    return json.loads(text)["paths"]


def test_of_npm_packages_only_the_listed_files_are_served(manifest):
    served = {name for name in manifest if name.startswith("npm/")}
    assert served == {f"npm/{name}" for name in FILES}


def test_modules_import_each_other_by_hashed_names_only(manifest):
    hashed = set(manifest.values())
    for name, stored in manifest.items():
        if not name.startswith("webapp/js/"):
            continue
        path = Path(settings.STATIC_ROOT) / stored
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"""(?:from|import\()\s*["'](\.[^"']+)["']""", code):
            found = (
                (path.parent / target).resolve().relative_to(Path(settings.STATIC_ROOT).resolve())
            )
            assert found.as_posix() in hashed, f"{name} imports {target}"


def test_an_address_that_is_none_has_our_page(client, static_files, db):
    response = client.get("/nothing/here/")
    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()
