"""A headless Chromium for tests of pages."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
LIMIT = 30.0


class Browser:
    """A Chromium that is driven through its pipe for debuggers."""

    def __init__(self, folder: Path) -> None:
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        words += [f"--user-data-dir={folder}", "about:blank"]
        shell = ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *words]
        self._process = subprocess.Popen(
            shell, pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._left, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT)
        os.close(self._in)
        os.close(self._out)

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._in, 1 << 16) if ready else b""
            assert data, "Chromium does not answer"
            self._left += data
        one, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(one))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def open(self, file: Path, width: int, dark: bool = False) -> None:
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=media)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        deadline = time.monotonic() + LIMIT
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read(deadline))

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
