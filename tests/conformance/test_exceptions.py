"""What reaches the caller when a function of the program fails: the exception as it was raised."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0

pytestmark = pytest.mark.usefixtures("backend")


def explicit() -> None:
    """Raise an exception with a cause."""
    try:
        raise KeyError("the cause")
    except KeyError as exc:
        raise LookupError("with a cause") from exc


def implicit() -> None:
    """Raise an exception with a context and no cause."""
    try:
        raise KeyError("the context")
    except KeyError:
        raise LookupError("with a context")  # noqa: B904


def check(exc: BaseException) -> None:
    if "cause" in str(exc):
        assert isinstance(exc.__cause__, KeyError)
    else:
        assert exc.__cause__ is None
        assert isinstance(exc.__context__, KeyError)
        assert not exc.__suppress_context__


WAYS: dict[str, Callable[[hs.Stream], object]] = {
    "synchronize": lambda s: s.synchronize(),
    "synchronize with a limit": lambda s: s.synchronize(timeout=LIMIT),
}


@pytest.mark.parametrize("function", [explicit, implicit], ids=["cause", "context"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("dialect", ["core", "torch", "paddle", "mindspore", "cupy"])
def test_S4_a_checked_exception_keeps_its_cause_and_its_context(
    dialect: str, way: Callable[[hs.Stream], object], function: Callable[[], None]
) -> None:
    s = make(dialect)
    s.call_checked(function)
    with pytest.raises(LookupError) as caught:
        way(s)
    check(caught.value)


def make(dialect: str) -> Any:
    if dialect == "torch":
        from halstream.torch import cuda

        return cuda.Stream()
    if dialect == "paddle":
        from halstream.paddle import device

        return device.Stream("custom_cpu" if hs.backend() == "host" else "npu")
    if dialect == "mindspore":
        from halstream.mindspore import hal

        return hal.Stream()
    if dialect == "cupy":
        from halstream.cupy import cuda as cupy

        return cupy.Stream()
    return hs.Stream()


class Interrupted(RuntimeError):
    """What the signal handler of a test raises."""


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
@pytest.mark.parametrize("timeout", [None, LIMIT], ids=["no limit", "limit"])
def test_S4_an_exception_of_a_signal_handler_keeps_its_cause(hold: Callable[[Any], Any], timeout: float | None) -> None:
    waits = False

    def handler(number: int, frame: object) -> None:
        nonlocal waits
        if not waits:  # it comes again and again, as it may come too early
            return
        waits = False
        try:
            raise KeyError("the cause")
        except KeyError as exc:
            raise Interrupted("with a cause") from exc

    s = hs.Stream()
    hold(s)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(Interrupted) as caught:
            waits = True
            s.synchronize(timeout=timeout)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    check(caught.value)


def test_S4_the_cause_of_a_wrong_cuda_stream_protocol_is_kept() -> None:
    class Broken:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, Bad()  # type: ignore[return-value]

    class Bad:
        def __index__(self) -> int:
            raise TypeError("the program's own reason")

    with pytest.raises(hs.InvalidValueError) as caught:
        hs.Stream.from_cuda_stream(Broken())
    assert "the program's own reason" in str(caught.value.__cause__)
