"""Changing the backend: a refused change leaves everything as it is, a done one reaches every thread."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


@pytest.mark.parametrize(
    ("name", "error"),
    [("host", "InvalidValueError"), ("ascend", "BackendAbsentError"), ("nonsense", "HalError")],
)
def test_D3_a_refused_change_changes_nothing(child: Child, name: str, error: str) -> None:
    """Rings, kept streams and what is current stay; before, the rings were emptied first."""
    check(
        child(
            f"""
    import halstream as hs
    from halstream.mindspore import hal
    from halstream.torch import cuda
    from halstream._dialects import _numbered

    first = [cuda.Stream().cuda_stream for _ in range(32)]
    kept = _numbered.communication(hs.Stream, 0).handle
    chosen = hs.Stream(1) if {name!r} == "host" else hs.Device(1).default_stream
    hs.set_device(1)
    hs.use(chosen)
    for _ in range(3):
        try:
            hs.use_backend({name!r})
        except hs.{error}:
            pass
        else:
            raise SystemExit("the change was not refused")
    assert hs.current_device() == hs.Device(1)
    assert hs.current_stream() is chosen
    assert _numbered.communication(hs.Stream, 0).handle == kept
    with hs.Device(0):
        assert [cuda.Stream().cuda_stream for _ in range(32)] == first
        for handle in first:
            hs.Stream.from_handle(handle).synchronize()
    print("done")
    """
        )
    )


def test_D3_streams_that_only_the_package_keeps_do_not_refuse_a_change(child: Child) -> None:
    check(
        child(
            """
    import halstream as hs
    from halstream.torch import cuda
    from halstream._dialects import _numbered

    used = cuda.Stream()
    handle = used.cuda_stream
    _numbered.communication(hs.Stream, 0), _numbered.transfer(0)
    try:
        hs.use_backend("host")
    except hs.InvalidValueError as exc:
        assert "1 stream" in str(exc), exc
    else:
        raise SystemExit("a stream that the program holds was closed")
    used.synchronize()
    del used
    assert hs.use_backend("host") == "host"
    try:
        hs.Stream.from_handle(handle)
    except hs.InvalidHandleError:
        pass
    else:
        raise SystemExit("a stream of the old runtime is still there")
    cuda.Stream().synchronize()
    print("done")
    """
        )
    )


def test_D3_other_threads_start_again_from_the_default_stream(child: Child) -> None:
    """A default stream that another thread made current belonged to the old runtime."""
    check(
        child(
            """
    import contextvars
    import threading

    import halstream as hs

    chosen, changed = threading.Event(), threading.Event()
    errors = []

    def work():
        try:
            hs.use(hs.Device(1).default_stream)
            with hs.Device(0).default_stream:
                with hs.Device(1):
                    chosen.set()
                    assert changed.wait(10)
                    assert hs.current_device() == hs.Device(0)
                    for device in hs.devices():
                        assert hs.current_stream(device) == device.default_stream
                        hs.current_stream(device).synchronize()
                assert hs.current_device() == hs.Device(0)
            hs.current_stream().synchronize()
            with hs.Stream(1) as new:
                assert hs.current_stream() is new
        except BaseException as exc:
            errors.append(exc)
            raise

    thread = threading.Thread(target=work)
    thread.start()
    assert chosen.wait(10)
    with hs.Device(1):
        hs.use_backend("host")
        assert hs.current_device() == hs.Device(0)
        changed.set()
        thread.join(10)
    assert not errors, errors
    print("done")
    """
        )
    )
