"""A real browser for tests: Chromium without a window, driven over its debugging pipe, with no library in between."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import missing

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


def find_chromium() -> str:
    """The browser's path; without one the test is skipped, or fails where browsers are required."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    missing("browser", "no Chromium on the path")
    raise AssertionError("missing() does not return")


@dataclass
class Browser:
    """A page in a browser, and everything it reported since it was opened."""

    to_browser: int
    from_browser: int
    session: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    unread: bytes = b""
    last: int = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self.last += 1
        message: dict[str, Any] = {"id": self.last, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self.last:
                assert "error" not in heard, f"{method}: {heard['error']}"
                return dict(heard["result"])

    def wait(self, event: str) -> None:
        """Wait until the page reports an event."""
        while not any(one["method"] == event for one in self.events):
            self._hear()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def open(self, page: Path, *, width: int, height: int = 900) -> None:
        """Open a file as on a screen of that width."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait("Page.loadEventFired")

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(found["data"])

    def press(self, key: str, code: int) -> None:
        """Press a key; Enter also sends its character."""
        extra = {"text": "\r"} if key == "Enter" else {}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **extra
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """Whatever the browser's console would show."""
        loud = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Audits.issueAdded")
        return [one for one in self.events if one["method"] in loud]

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        return [
            one["params"]["request"]["url"]
            for one in self.events
            if one["method"] == "Network.requestWillBeSent"
        ]

    def _hear(self) -> dict[str, Any]:
        """The next message; events are kept."""
        limit = time.monotonic() + PATIENCE
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.from_browser], [], [], max(0.0, limit - time.monotonic()))
            assert ready, "the browser did not answer"
            chunk = os.read(self.from_browser, 1 << 20)
            assert chunk, "the browser closed its pipe"
            self.unread += chunk
        text, _, self.unread = self.unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, its page listening for console, network and page events."""
    command = [find_chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    (read_theirs, write_ours), (read_ours, write_theirs) = _pipe(), _pipe()

    def wire() -> None:
        os.dup2(read_theirs, 3)
        os.dup2(write_theirs, 4)

    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False, preexec_fn=wire
    )
    os.close(read_theirs)
    os.close(write_theirs)
    try:
        browser = Browser(write_ours, read_ours)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            browser.call(f"{domain}.enable")
        yield browser
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(write_ours)
        os.close(read_ours)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are far from 3 and 4, which the browser will use."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
