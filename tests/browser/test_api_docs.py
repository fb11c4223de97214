"""The pages of the API: offline, and under the same content security policy as every other page."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
OPERATIONS = len(
    re.findall(r"^ +operationId:", Path("docs/openapi.yaml").read_text(), re.MULTILINE)
)


def test_the_api_can_be_browsed_without_a_network(chromium: Browser, site: str) -> None:
    page = chromium.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site}/api/docs/")
    page.locator("#operations-bookings-book").click()
    page.get_by_placeholder("Idempotency-Key").wait_for(timeout=10_000)
    assert page.locator(".opblock").count() == OPERATIONS
    page.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith((site, "data:"))] == []
