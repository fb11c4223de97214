"""A real Chromium, a real web process on the test database, real Redis."""

import shutil
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from reservations import clock
from reservations.models import Device, User
from tests import build, web
from tests.browser.timeline import TimelinePage

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


# Not for the whole session: its event loop would be in the way of asynchronous tests elsewhere.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a web process on the test database, as `make up` would start it."""
    call_command("collectstatic", "--noinput", "--verbosity", "0")
    with web.web_server(tmp_path_factory.mktemp("site") / "web.log") as address:
        yield address


Visit = Callable[..., Page]


@pytest.fixture
def visit(chromium: Browser, site: str, transactional_db: None) -> Iterator[Visit]:
    """Opens a page as somebody, each in a browser of their own; fails on any error in a script."""
    contexts = []
    errors: list[str] = []

    def open_page(person: User, path: str = "/", *, before: Any = None, **options: Any) -> Page:
        defaults = {"timezone_id": "Asia/Shanghai", "locale": "en-GB", "reduced_motion": "reduce"}
        size = {"viewport": {"width": 1440, "height": 900}}
        context = chromium.new_context(base_url=site, **{**defaults, **size, **options})
        contexts.append(context)
        client = Client()
        client.force_login(person)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": site}])
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        if before:
            before(page)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def people(transactional_db: None) -> dict[str, User]:
    """Alice, Bob and an operator, all in Shanghai, with accounts on every host."""
    fields = {"time_zone": "Asia/Shanghai"}
    return {
        "alice": build.person("alice", display_name="Alice Weber", **fields),
        "bob": build.person("bob", display_name="Bob Okafor", **fields),
        "admin": build.person("admin", is_operator=True, **fields),
    }


@pytest.fixture
def devices(transactional_db: None) -> list[Device]:
    """Four devices of one host."""
    host = build.host("sim-a", mode="enforce")
    return [
        build.device(host, uuid=f"SIM-{index}", index=index, model="A100 80GB")
        for index in range(4)
    ]


@pytest.fixture
def tomorrow() -> date:
    """A day that is wholly ahead in Shanghai, so that no test depends on the time of day."""
    return (clock.now().astimezone(ZoneInfo("Asia/Shanghai")) + timedelta(days=1)).date()


@pytest.fixture
def at(tomorrow: date) -> Callable[[int], datetime]:
    """The instant of a full hour of that day."""

    def instant(hour: int) -> datetime:
        midnight = datetime(
            tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=ZoneInfo("Asia/Shanghai")
        )
        return midnight + timedelta(hours=hour)

    return instant


@pytest.fixture
def timeline(visit: Visit, tomorrow: date) -> Callable[..., TimelinePage]:
    """Opens tomorrow's timeline as somebody."""

    def open_timeline(
        person: User, *, day: date | str | None = None, **options: Any
    ) -> TimelinePage:
        path = "/" if day == "today" else f"/?day={day or tomorrow}&days=1"
        page = visit(person, path, **options)
        return TimelinePage(page).ready()

    return open_timeline
