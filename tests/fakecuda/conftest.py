"""A library of their own for the tests of the look-alike driver, fresh for each."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakecuda_help import LIBRARY, LIMIT, Driver, environment
from real_driver import RealDriver
from which_driver import REAL


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the library, so that no backend in this process shares its state."""
    if REAL:
        return Path(REAL)
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not there; run make build")
    return Path(shutil.copy(LIBRARY, tmp_path_factory.mktemp("fakecuda") / "libfakecuda.so"))


@pytest.fixture(scope="session")
def loaded(library: Path) -> Driver:
    """The library, loaded once."""
    return RealDriver(Path(REAL)) if REAL else Driver(library)


@pytest.fixture
def start(loaded: Driver) -> Iterator[Callable[..., Driver]]:
    """Return a function that gives the driver as freshly loaded with a setting.

    ``start(devices=1, queue=8)`` also calls cuInit. Holds are opened and all is
    dropped after the test.
    """
    running: list[Iterator[None]] = []

    def start(*, init: bool = True, **settings: object) -> Driver:
        if REAL and settings:
            pytest.skip(f"needs the look-alike's settings {', '.join(settings)}")
        running.append(environment(**settings))
        next(running[-1])
        assert loaded.control("reset") == 0
        if init:
            assert loaded.cuInit(0) == 0
        return loaded

    # A call that waits has no limit of its own: this ends it with an error.
    watchdog = threading.Timer(2 * LIMIT, loaded.control, ["reset"])
    watchdog.daemon = True
    watchdog.start()
    yield start
    watchdog.cancel()
    for word in loaded.holds:
        if loaded.is_allocated(word.address):  # else the test gave it up
            word.value = 1
    loaded.holds.clear()
    loaded.control("faults off")
    for settings in reversed(running):
        next(settings, None)
    loaded.control("reset")
    loaded.kept.clear()


@pytest.fixture
def silicon(start: Callable[..., Driver]) -> Driver:
    """As `cuda`, with all that a driver may wait for, and without shared hardware queues."""
    driver = start() if REAL else start(profile="silicon", connections=0)
    driver.context()
    return driver


@pytest.fixture
def cuda(start: Callable[..., Driver]) -> Driver:
    """The driver as freshly loaded, with the context of device 0 current."""
    driver = start()
    driver.context()
    return driver
