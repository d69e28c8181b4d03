"""Pages of `serve` in a browser: tabs that note what is fetched and complained about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import chromium
import served

expect = chromium.sync_api.expect
WAIT_S: Final = 10.0


class Tab:
    """A page in a context of its own, with what the browser fetched and complained about."""

    def __init__(self, browser: Any, server: served.Served, **context: Any) -> None:
        self.context = browser.new_context(base_url=server.url, **context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_S * 1000)
        self.fetched: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.fetched.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, address: str) -> Any:
        self.page.goto(address)
        if "/trials/" in address:
            expect(self.page.get_by_text("Reading the curves")).to_have_count(0)
        return self.page


@contextmanager
def opened(browser: Any, server: served.Served, **context: Any) -> Iterator[Tab]:
    """Open a tab that must not complain."""
    tab = Tab(browser, server, **context)
    try:
        yield tab
    finally:
        tab.context.close()
    assert tab.complaints == []
