"""Fixtures of every test: the backend, gates that always open, a clean start.

Tests hold streams by gates and never by sleeping. Whatever a test leaves held
is opened after it, so that one failure does not become many.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import abilities
import fake_driver
import pytest
import queues

if TYPE_CHECKING:
    import halstream as hs

#: Seconds that a wait of a test may take before it counts as never ending.
LIMIT = 10.0

#: Seconds after which pytest-timeout, where it is installed, ends a test with its stacks; on a busy machine some
#: take a minute. No setting in pyproject.toml, which pytest refuses where the plug-in is missing.
TEST_LIMIT = 240.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        default="host",
        choices=list(abilities.LACKS),
        help="backend to test (default: host); cuda-fake and ascend-fake are on imitated libraries",
    )


@pytest.hookimpl(tryfirst=True)  # before the plug-in reads its option
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("timeout", None) is None and config.pluginmanager.hasplugin("timeout"):
        config.option.timeout = TEST_LIMIT
    config.pluginmanager.register(abilities)
    # Before the first import of halstream: the variables are read then.
    name = config.getoption("--backend")
    os.environ["HALSTREAM_BACKEND"] = name.removesuffix("-fake")
    if name in fake_driver.LIBRARIES:
        fake_driver.unavailable(name)  # builds it; where that is impossible all tests are skipped
        variable, library = fake_driver.LIBRARIES[name]
        os.environ[variable] = str(library)
    if name == "cuda-fake" and queues.SHARED:
        config.pluginmanager.register(queues)


@pytest.fixture(scope="session")
def backend(pytestconfig: pytest.Config) -> str:
    """Name of the backend under test; tests skip where it is absent.

    It is ``'cuda'`` or ``'ascend'`` on an imitated library, too, which is never absent.
    """
    import halstream as hs

    name: str = pytestconfig.getoption("--backend")
    try:
        return hs.backend()
    except hs.BackendAbsentError as exc:
        if name in (*fake_driver.LIBRARIES, os.environ.get("HAL_REQUIRE")):
            pytest.fail(f"{name} is required, but: {exc}")
        pytest.skip(f"{name}: {exc}")


@pytest.fixture
def device(backend: str) -> hs.Device:
    """Device 0 of the backend."""
    import halstream as hs

    return hs.Device(0)


@pytest.fixture
def settled_memory(backend: str) -> Iterator[None]:
    """Give back what earlier tests left, and collect no garbage of theirs during this one.

    For tests of free bytes and of which address comes back: a block that the collector
    gives back in the middle changes both.
    """
    import halstream as hs
    from halstream import _memory

    gc.collect()
    for device in hs.devices():
        device.synchronize(timeout=LIMIT)
        _memory.trim_pool(device, 0)
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def hold(backend: str) -> Iterator[Callable[[Any], Any]]:
    """Return a function that holds a stream; after the test every gate opens.

    The streams must then come to rest within `LIMIT`, or the test fails with
    the text that names what they wait for. So does one in which a call waits for
    the device inside the driver, where no limit ends it.
    """
    import halstream as hs
    from halstream.testing import Gate

    held: list[tuple[Any, Gate]] = []
    stuck: list[str] = []
    tester = threading.get_ident()

    def release() -> None:
        frames = "".join(traceback.format_stack(sys._current_frames()[tester])[-6:])
        stuck.append(f"gates were opened after {4 * LIMIT:.0f} s, while the test was here:\n{frames}")
        for _, gate in held:
            gate.open()

    watch = threading.Timer(4 * LIMIT, release)

    def hold(stream: Any) -> Gate:
        gate = Gate(stream)
        held.append((stream, gate))
        if backend != "host" and watch.ident is None:
            watch.start()
        return gate

    yield hold
    if watch.ident is not None:
        watch.cancel()
        watch.join(LIMIT)
    for _, gate in held:
        gate.open()
    for stream, _ in held:
        try:
            # The core's method: a dialect's may have another signature.
            hs.Stream.synchronize(stream, timeout=LIMIT)
        except hs.WaitTimeoutError as exc:
            stuck.append(str(exc))
        except Exception:
            # The stream was closed, or the test left its first error for nobody.
            pass
    if stuck:
        pytest.fail("streams did not come to rest: " + "; ".join(stuck))


class Unraisable(NamedTuple):
    """What reached `sys.unraisablehook`; plain values that keep no frames alive."""

    type: type[BaseException]
    message: str
    traceback: str
    text: str | None


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Unraisable]:
    """Collect what goes to `sys.unraisablehook` instead of failing the test."""
    seen: list[Unraisable] = []

    def collect(args: Any) -> None:
        trace: TracebackType | None = args.exc_traceback
        seen.append(
            Unraisable(
                args.exc_type,
                str(args.exc_value),
                "".join(traceback.format_tb(trace)),
                args.err_msg,
            )
        )

    monkeypatch.setattr(sys, "unraisablehook", collect)
    return seen


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt the test and the programs that it starts.

    A suite that was started in the background (``nohup make test &``) inherits
    an ignored SIGINT, and would pass that on to its children.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture
def nvrtc() -> None:
    """Skip the test where the compiler for CUDA kernels is not installed."""
    import halstream as hs
    from halstream._kernel import _nvrtc

    try:
        _nvrtc.supported()
    except hs.BackendAbsentError as exc:
        pytest.skip(str(exc))


@pytest.fixture(autouse=True)
def clean_runtime() -> Iterator[None]:
    """Start with the default devices and streams; end with functions still being run."""
    if "halstream" not in sys.modules:
        yield
        if "halstream" in sys.modules:
            _reset()
        return
    _reset()
    yield
    _reset()
    _check_dispatch()


def _reset() -> None:
    from halstream._core import _current

    _current.reset()


def _check_dispatch() -> None:
    """Fail the test after which functions on streams do not run any more."""
    import halstream as hs
    from halstream._core import _hostfunc

    if not _hostfunc._started:
        return
    ran = threading.Event()
    # Non-blocking: work that a test left on a default stream must not count. Where streams share
    # hardware queues, a probe may be behind a stream that something outside of the test holds.
    probes = [hs.Stream(0, non_blocking=True) for _ in range(2 * queues.QUEUES if queues.SHARED else 1)]
    with queues.in_any():
        for probe in probes:
            probe.call(ran.set)
        done = ran.wait(LIMIT)
    # The streams of the next test are to find free queues; one that is held now stays so.
    end = time.monotonic() + 1.0
    while queues.SHARED and not all(probe.query() for probe in probes) and time.monotonic() < end:
        time.sleep(0.0005)
    if not done:
        pytest.fail(f"after this test functions on streams do not run: {probes[0].describe()}")


@pytest.fixture
def settle(backend: str) -> Callable[[], None]:
    """Return a function that gives work which must not run every chance to run.

    It takes several functions through streams of their own; a stream that is
    not really held comes to rest in the meantime. Where streams share the queues
    of a device, those that share one with a held stream wait; the others suffice.
    """
    import halstream as hs

    def settle() -> None:
        # Once for all rounds: while work is held a driver may take seconds for many new streams.
        probes = [hs.Stream(0, non_blocking=True) for _ in range(1 if backend == "host" else 2 * queues.QUEUES)]
        for _ in range(5):
            ran = threading.Event()
            with queues.in_any():
                for probe in probes:
                    probe.nop()
                    probe.call(ran.set)
                if backend == "host":  # under a schedule calls let the device go on
                    probes[0].synchronize(timeout=LIMIT)
                assert ran.wait(LIMIT), f"functions on streams do not run: {probes[0].describe()}"

    return settle


@pytest.fixture
def child(backend: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a program in a process of its own.

    ``child(source, env={...}, timeout=120.0)`` gives the finished process with
    its output as text. Warnings are errors in the program. One that hangs is
    ended, with all its children, and fails the test with its stacks.
    """

    def child(
        source: str, *, env: dict[str, str] | None = None, timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(source))
        # No watchdog inside the program: it would have to survive a fork.
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-X", "faulthandler", str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)
            output, errors = process.communicate()
            pytest.fail(f"the program hangs\n{output}\n{errors}")
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    return child
