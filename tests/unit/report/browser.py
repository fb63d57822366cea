"""A page as a reader's Chromium sees it, by Playwright: what it shows, what it asks for, what it complains of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needed = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
FLAGS = ("--no-sandbox", "--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
WIDTH, HEIGHT = 1280, 900
WAIT_MS = 120_000  # on a machine that runs other tests too


@dataclass
class View:
    """An open ``page``, with the addresses of ``requests`` but its own, and the ``complaints`` of its console."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words that are displayed."""
        return self.page.locator("body").inner_text()

    def all(self, selector: str, expression: str) -> Any:
        """The value of ``expression`` on each element ``one`` that matches."""
        return self.page.eval_on_selector_all(selector, f"(all) => all.map((one) => {expression})")

    def reached(self) -> list[str]:
        """What Tab reaches, in order: the address of a link, or the name of an element."""
        found: list[str] = []
        for _ in range(2 * self.page.locator("a[href]").count() + 20):
            self.page.keyboard.press("Tab")
            at = self.page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.tagName")
            if at == "BODY":
                break
            found.append(at)
        return found


@contextmanager
def started() -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    # Environments that collect this test, and do not run it, lack it.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=WAIT_MS)
        yield browser
        browser.close()


def look(browser: Browser, page: Path | str, anchor: str = "", **context: Any) -> View:
    """The view of a ``page``, a file or an address, at the place ``anchor``; ``context`` is that of a browser's context."""
    address = page if isinstance(page, str) else page.resolve().as_uri()
    view = View(browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, **context).new_page())
    view.page.set_default_timeout(WAIT_MS)

    def asked(url: str) -> None:
        if url != address and not url.startswith(("data:", "blob:")):
            view.requests.append(url)

    view.page.on("request", lambda request: asked(request.url))
    view.page.on("console", lambda said: view.complaints.append(said.text))
    view.page.on("pageerror", lambda error: view.complaints.append(str(error)))
    view.page.goto(address + (f"#{anchor}" if anchor else ""))
    return view
