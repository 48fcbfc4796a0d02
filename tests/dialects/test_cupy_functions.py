"""cupy.cuda: functions on streams, add_callback and launch_host_func."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Stream, runtime

pytestmark = pytest.mark.dialect("cupy")

LIMIT = 10.0
KINDS = ("null", "ptds", "plain", "non_blocking", "external")


@pytest.fixture(params=KINDS)
def stream(request: pytest.FixtureRequest, backend: str) -> Any:
    if request.param == "external":
        handle = runtime.streamCreate()
        with pytest.warns(DeprecationWarning, match="ExternalStream is deprecated"):
            external = cuda.ExternalStream(handle)
        yield external
        runtime.streamDestroy(handle)
    elif request.param == "plain":
        yield Stream()
    else:
        yield Stream(**{request.param: True})


@pytest.mark.row(8, 9, 10, 28)
def test_add_callback_runs_in_order(stream: Any, hold: Any) -> None:
    n = 100
    seen: list[tuple[Any, int, int]] = []

    def callback(stream_object: Any, status: int, arg: int) -> None:
        seen.append((stream_object, status, arg))

    gate = hold(stream)
    for i in range(n):
        # Other work between them, where a program has its copies.
        stream.nop()
        stream.add_callback(callback, i)
    assert seen == []
    gate.open()
    stream.synchronize(timeout=LIMIT)
    assert [arg for _, _, arg in seen] == list(range(n))
    assert all(s is stream and s.ptr == stream.ptr and status == 0 for s, status, _ in seen)


@pytest.mark.row(11, 29)
def test_launch_host_func_runs_in_order(stream: Any, hold: Any) -> None:
    n = 100
    seen: list[int] = []
    gate = hold(stream)
    for i in range(n):
        stream.nop()
        stream.launch_host_func(seen.append, i)
    assert seen == []
    gate.open()
    stream.synchronize(timeout=LIMIT)
    assert seen == list(range(n))


def test_functions_run_on_another_thread(backend: str) -> None:
    s = Stream()
    idents: list[int] = []
    s.launch_host_func(lambda _: idents.append(threading.get_ident()), None)
    s.synchronize(timeout=LIMIT)
    assert idents and idents[0] != threading.get_ident()


def test_function_holds_the_stream_and_no_other(backend: str) -> None:
    s, other = Stream(), Stream()
    started, go = threading.Event(), threading.Event()
    s.launch_host_func(lambda _: (started.set(), go.wait(LIMIT)), None)
    assert started.wait(LIMIT)
    assert not s.done
    other.launch_host_func(lambda _: None, None)
    other.synchronize(timeout=LIMIT)
    go.set()
    s.synchronize(timeout=LIMIT)


def test_exception_is_reported_and_later_work_runs(backend: str, unraisable: list[Any]) -> None:
    s = Stream()
    seen: list[int] = []

    def fail(arg: Any) -> None:
        raise ValueError(f"bad {arg}")

    s.launch_host_func(fail, "copy")
    s.add_callback(lambda stream, status, arg: fail(arg), "callback")
    s.launch_host_func(seen.append, 1)
    s.synchronize(timeout=LIMIT)
    assert seen == [1]
    assert [u.type for u in unraisable] == [ValueError, ValueError]
    assert [u.message for u in unraisable] == ["bad copy", "bad callback"]
    assert "in fail" in unraisable[0].traceback


def test_calls_inside_a_function_are_refused(backend: str) -> None:
    s = Stream()
    outcome: list[Any] = []

    def inside(arg: Any) -> None:
        try:
            Stream.null.synchronize()
        except RuntimeError as exc:
            outcome.append(exc)
        outcome.append(s.done)
        outcome.append(runtime.streamQuery(0))
        # Numbers and names may be asked for.
        outcome.append((s.ptr, hash(s), repr(s), s == s))

    s.launch_host_func(inside, None)
    s.synchronize(timeout=LIMIT)
    error, done, status, names = outcome
    assert isinstance(error, runtime.CUDARuntimeError) and error.status == 800
    assert str(error).startswith("cudaErrorNotPermitted: operation not permitted (")
    assert done is False and status == 800
    assert names == (s.ptr, hash(s), repr(s), True)


def test_arguments_live_until_the_function_ran(hold: Any) -> None:
    class Arg:
        pass

    s = Stream()
    gate = hold(s)
    arg = Arg()
    ref = weakref.ref(arg)
    s.launch_host_func(lambda _: None, arg)
    del arg
    gc.collect()
    assert ref() is not None
    gate.open()
    s.synchronize(timeout=LIMIT)
    # The dispatcher drops its last reference right after it reported the end.
    probe = Stream()
    for _ in range(1000):
        if ref() is None:
            break
        probe.launch_host_func(lambda _: None, None)
        probe.synchronize(timeout=LIMIT)
        gc.collect()
    assert ref() is None


def test_add_callback_keeps_the_stream(backend: str) -> None:
    s = Stream()
    handle, seen, ran = s.ptr, [], threading.Event()

    def callback(stream: Any, status: int, arg: Any) -> None:
        seen.append(stream.ptr)
        ran.set()

    s.add_callback(callback, None)
    del s
    gc.collect()
    assert ran.wait(LIMIT)
    assert seen == [handle]


def test_both_arguments_are_required(stream: Any) -> None:
    with pytest.raises(TypeError):
        stream.add_callback(print)
    with pytest.raises(TypeError):
        stream.launch_host_func(print)
    with pytest.raises(TypeError):
        stream.launch_host_func(1, None)


def test_done_leaves_an_error_for_synchronize():
    def fail() -> None:
        raise LookupError("kept")

    s = cuda.Stream(non_blocking=True)
    s.call_checked(fail)
    e = s.record()
    e.synchronize()
    assert s.done is True
    with pytest.raises(LookupError, match="kept"):
        s.synchronize()
