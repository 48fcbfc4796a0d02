"""The hardware queues of the look-alike driver, which streams of a priority may share.

Where they do, this is a plugin of pytest: a test in which a stream waited behind one that the host held, and nothing
else went on, is refused by name. The look-alike gives such a stream a queue of its own and says so (FAKECUDA_APART),
so that the test runs to its end. It counts as skipped if it passed. If it failed it counts as failed: the queues
were no reason any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fake_driver
import pytest

#: How many hardware queues a device of CUDA has, unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise.
QUEUES = 8
CONNECTIONS = os.environ.get("FAKECUDA_CONNECTIONS") or os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS") or str(QUEUES)
#: Whether streams share them; otherwise each has one of its own.
SHARED = os.environ.get("FAKECUDA_PROFILE") == "silicon" and CONNECTIONS != "0"

VARIABLE = "FAKECUDA_APART"
REFUSED = "refused: "


def control(command: str) -> None:
    """Give the look-alike a command."""
    ctypes.CDLL(str(fake_driver.FAKE_CUDA)).fakecuda_control(command.encode())


@contextlib.contextmanager
def in_any() -> Iterator[None]:
    """Say that nobody waits later for what is enqueued meanwhile: it is in several queues, and one suffices."""
    if not SHARED:
        yield
        return
    control("optional 1")
    try:
        yield
    finally:
        control("optional 0")


def pytest_configure(config: pytest.Config) -> None:
    """Name the look-alike's file, before it is loaded; each worker of pytest-xdist has its own."""
    folder = Path(tempfile.mkdtemp(prefix="queues-"))
    os.environ[VARIABLE] = str(folder / "apart")


def pytest_unconfigure(config: pytest.Config) -> None:
    path = Path(os.environ.pop(VARIABLE))
    path.unlink(missing_ok=True)
    path.parent.rmdir()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let the streams share the queues again, and count anew."""
    Path(os.environ[VARIABLE]).unlink(missing_ok=True)
    control("share")
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Refuse a test that has passed only since streams were moved apart."""
    outcome = yield
    report = outcome.get_result()
    path = Path(os.environ[VARIABLE])
    if report.when == "teardown" or not path.exists():
        return
    lines = path.read_text().splitlines()
    if report.passed and report.when == "call":
        report.outcome = "skipped"
        file, line, _ = item.location
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        report.longrepr = (file, (line or 0) + 1, f"{REFUSED}{lines[0]}{more}: {item.nodeid}")
    elif report.failed:
        report.sections.append(("streams that shared a hardware queue, until they were moved apart", "\n".join(lines)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were refused."""
    refused = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and report.longrepr[2].startswith(REFUSED)
    ]
    passed = len(terminalreporter.stats.get("passed", []))
    terminalreporter.write_line(f"with {CONNECTIONS} hardware queues: {passed} passed, {len(refused)} refused by name")
