"""The API as documented is the API as it is, and its pages work without a network and inline scripts."""

from pathlib import Path

import pytest
import yaml
from django.conf import settings as site_settings
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern

from reservations.api import errors, urls
from reservations.core.errors import DomainError
from tests import build
from tests.api.callers import Caller

COMMITTED = Path(site_settings.ROOT) / "docs" / "openapi.yaml"
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("schema") / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(path))
    return path.read_text()


def test_the_committed_schema_is_the_one_that_the_code_makes(generated: str) -> None:
    assert generated == COMMITTED.read_text(), (
        "run: python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml"
    )


def test_every_address_is_documented_once(generated: str) -> None:
    documented = set(yaml.safe_load(generated)["paths"])
    bare = {path.rstrip("/") for path in documented}
    assert len(bare) == len(documented)
    for pattern in urls.urlpatterns:
        if isinstance(pattern, URLPattern) and pattern.name and pattern.name.startswith("api-"):
            route = f"/{pattern.pattern}".replace("<key:booking_id>", "{booking_id}")
            route = route.replace("<slug:name>", "{name}")
            assert route in documented or route in {"/api/schema/", "/api/docs/"}


def test_every_error_has_a_status_and_is_documented() -> None:
    assert set(DomainError.__subclasses__()) == set(errors._DOMAIN)
    table = (Path(site_settings.ROOT) / "docs" / "api.md").read_text()
    codes = {one.code for one in errors._DOMAIN} | {code for code, _ in errors._FRAMEWORK.values()}
    # Every answer is JSON whatever is accepted, so that one is for the pages of the docs alone.
    assert {code for code in codes if f"`{code}`" not in table} == {"not_acceptable"}


@pytest.mark.parametrize(
    ("path", "component"),
    [("bookings/", "Booking"), ("devices/", "Device"), ("hosts/", "Host")],
)
def test_rows_have_exactly_the_documented_fields(generated: str, path: str, component: str) -> None:
    build.booking(build.device())
    schema = yaml.safe_load(generated)["components"]["schemas"][component]
    (row,) = Caller(build.user()).get(path).json()["results"]
    assert set(row) == set(schema["properties"])


def test_me_has_exactly_the_documented_fields(generated: str) -> None:
    schema = yaml.safe_load(generated)["components"]["schemas"]["Me"]
    assert set(Caller(build.user()).get("me").json()) == set(schema["properties"])


def test_anybody_may_read_the_schema() -> None:
    response = Client().get("/api/schema/")
    assert response.status_code == 200
    assert yaml.safe_load(response.content)["info"]["title"] == "Berth"


def test_the_docs_hold_no_inline_script_or_style_and_fetch_nothing_from_outside(settings) -> None:
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    html = page.content.decode()
    assert "<style" not in html
    assert "//cdn" not in html
    assert html.count("<script ") == html.count('<script src="') == 2
    assert " style=" not in html
    script = Client().get("/api/docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert b"SwaggerUIBundle" in script.content
    assert b"/api/schema/" in script.content
