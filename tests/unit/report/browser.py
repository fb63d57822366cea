"""A page as a reader's Chromium sees it: what is displayed, what it asks for, what it complains of, what Tab reaches."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *(
        "--disable-sync",
        "--hide-scrollbars",
        "--remote-debugging-port=0",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ),
)
WIDTH, HEIGHT = 1280, 900
READ = """JSON.stringify({
  bottoms: Object.fromEntries([...document.querySelectorAll("#verdict, .counts")].map(
    (one) => [one.id || one.className, one.getBoundingClientRect().bottom])),
  images: [...document.images].map((one) => [one.complete && one.naturalWidth > 0, one.alt]),
  links: [...document.querySelectorAll("a[href]")].map((one) => one.getAttribute("href")),
  anchors: [...document.querySelectorAll("[id]")].map((one) => one.id),
  ground: getComputedStyle(document.body).backgroundColor,
  wide: document.documentElement.scrollWidth,
  text: document.body.innerText,
})"""
FOCUSED = "document.activeElement.getAttribute('href') ?? document.activeElement.tagName"
STARTS_S, ANSWERS_S, ENDS_S = 120, 180, 60  # on a machine that runs other tests too
# The text of the page when an element that matches the selector holds the words.
SHOWN = """new Promise((done) => {
  const look = () => [...document.querySelectorAll(%s)].some((one) => one.textContent.includes(%s))
    && (watch.disconnect(), done(document.body.innerText));
  const watch = new MutationObserver(look);
  watch.observe(document, { childList: true, subtree: true, characterData: true });
  look();
})"""


@dataclass
class Seen:
    """What a browser sees of a page; see READ. ``requests`` are all addresses but the page's own and those in it."""

    bottoms: dict[str, float]
    images: list[tuple[bool, str]]
    links: list[str]
    anchors: list[str]
    ground: str
    wide: int
    text: str
    requests: list[str]
    complaints: list[str]
    reached: list[str]
    value: Any


@dataclass(frozen=True)
class Visit:
    """A look at a ``page``, a file or an address, and the place ``anchor`` on it.

    ``picture`` gets what is on the screen as PNG. ``script`` is an expression, or a promise, whose value the look has.
    """

    page: Path | str
    scheme: str = "light"
    media: str = "screen"
    picture: Path | None = None
    script: str = "null"
    anchor: str = ""

    @property
    def url(self) -> str:
        """The address of the page."""
        address = self.page if isinstance(self.page, str) else self.page.resolve().as_uri()
        return address + (f"#{self.anchor}" if self.anchor else "")


def shown(words: str, selector: str = "body *") -> str:
    """The script of a visit whose value is the page's text, once an element that matches ``selector`` holds the ``words``."""
    return SHOWN % (json.dumps(selector), json.dumps(words))


def see(profile: Path, *visits: Visit) -> list[Seen]:
    """What one browser, started for all of them, sees at each of ``visits``."""
    return asyncio.run(_see(profile, visits))


async def _see(profile: Path, visits: Sequence[Visit]) -> list[Seen]:
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", "about:blank"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = await asyncio.wait_for(_port(browser, profile / "DevToolsActivePort"), STARTS_S)
        async with aiohttp.ClientSession() as http:
            found = []
            for visit in visits:
                async with http.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                    tab = await answer.json()
                async with http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    found.append(await _look(_Tab(socket), visit))
                async with http.get(f"http://127.0.0.1:{port}/json/close/{tab['id']}"):
                    pass
            return found
    finally:
        browser.terminate()
        try:
            browser.wait(ENDS_S)
        except subprocess.TimeoutExpired:  # how it ends is no question of any test
            browser.kill()
            browser.wait()


async def _port(browser: subprocess.Popen[bytes], file: Path) -> int:
    """The port of the debugger, which Chromium writes when it listens."""
    while browser.poll() is None:
        if file.is_file() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        await asyncio.sleep(0.05)  # Chromium tells nobody but this file
    raise RuntimeError(f"Chromium ended with {browser.returncode}")


class _Tab:
    """A tab by the DevTools protocol; ``events`` are kept as they come."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._last = socket, 0
        self.events: list[dict[str, Any]] = []

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        await self._socket.send_json({"id": self._last, "method": method, "params": parameters})
        while True:
            said = await self._socket.receive_json()
            if said.get("id") == self._last:
                return dict(said["result"])
            self.events.append(said)

    async def until(self, method: str, **expected: Any) -> None:
        """Wait for an event that has ``expected`` among its parameters."""
        while not any(event.get("method") == method and expected.items() <= event["params"].items() for event in self.events):
            self.events.append(await self._socket.receive_json())

    async def value(self, expression: str) -> Any:
        return (await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True))["result"].get("value")


async def _look(tab: _Tab, visit: Visit) -> Seen:
    """What the visit sees, or an error that says what the page shows when it has waited too long."""
    try:
        return await asyncio.wait_for(_visit(tab, visit), ANSWERS_S)
    except TimeoutError as error:
        text = await asyncio.wait_for(tab.value("document.body.innerText"), ENDS_S)
        raise TimeoutError(f"the visit to {visit.url} took more than {ANSWERS_S} s; the page shows {text!r}") from error


async def _visit(tab: _Tab, visit: Visit) -> Seen:
    ask: Callable[..., Awaitable[dict[str, Any]]] = tab.ask
    for domain in ("Page", "Runtime", "Network", "Log"):
        await ask(f"{domain}.enable")
    await ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
    features = [{"name": "prefers-color-scheme", "value": visit.scheme}]
    await ask("Emulation.setEmulatedMedia", media=visit.media, features=features)
    await ask("Page.setLifecycleEventsEnabled", enabled=True)
    page = (await ask("Page.navigate", url=visit.url))["loaderId"]
    await tab.until("Page.lifecycleEvent", name="load", loaderId=page)  # the blank page of a new tab is loaded too, maybe late
    await tab.value("Promise.all([...document.images].map((one) => one.decode().catch(() => 0))).then(() => 0)")
    value = await tab.value(visit.script)
    read = json.loads(await tab.value(READ))
    if visit.picture is not None:
        visit.picture.write_bytes(base64.b64decode((await ask("Page.captureScreenshot", format="png"))["data"]))
    reached = []
    for _ in range(len(read["links"]) * 2 + 20):
        for kind in ("rawKeyDown", "keyUp"):
            await ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        focused = await tab.value(FOCUSED)
        if focused == "BODY":
            break
        reached.append(focused)
    asked = [event["params"]["request"]["url"] for event in tab.events if event.get("method") == "Network.requestWillBeSent"]
    requests = [one for one in asked if one != visit.url.partition("#")[0] and not one.startswith(("data:", "blob:"))]
    complaints = [
        json.dumps(event["params"])
        for event in tab.events
        if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    ]
    return Seen(**read, requests=requests, complaints=complaints, reached=reached, value=value)
