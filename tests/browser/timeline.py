"""What a person does on the timeline, in the words of a person."""

from playwright.sync_api import Locator, Page, expect


class TimelinePage:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.dialog = page.locator("#book")
        self.verdict = page.locator("#book-verdict")
        self.toast = page.locator("#toasts")

    def ready(self) -> "TimelinePage":
        """Drawn, and listening."""
        expect(self.page.locator("#timeline")).to_have_attribute("aria-busy", "false")
        expect(self.page.locator("[data-device]").first).to_be_visible()
        return self

    def lane(self, device: str) -> Locator:
        return self.page.locator(f'[data-device="{device}"]')

    def booking(self, device: str, name: str = "") -> Locator:
        return self.lane(device).locator("button.bk", has_text=name)

    def point(self, device: str, hour: float, hours_shown: float = 24) -> tuple[float, float]:
        """Where an hour of absolute time since the day's start stands on a row."""
        box = self.lane(device).bounding_box()
        assert box is not None
        return box["x"] + box["width"] * hour / hours_shown, box["y"] + box["height"] / 2

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
        self.page.mouse.move(*end, steps=4)
        self.page.mouse.up()

    def draw(self, device: str, start: float, end: float, *, to: str | None = None) -> None:
        """Drag on a row, or down to another one."""
        self.drag(self.point(device, start), self.point(to or device, end))
        expect(self.dialog).to_be_visible()

    def confirm(self) -> None:
        self.dialog.locator("[type=submit]").click()

    def place(self, box: Locator) -> tuple[float, float]:
        """Where a booking is drawn, in percent of its lane: left, width."""
        values = box.evaluate("one => [one.style.left, one.style.width]")
        return tuple(round(float(value.rstrip("%")), 3) for value in values)  # type: ignore[return-value]
