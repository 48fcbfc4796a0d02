"""Streams of other libraries, which may destroy them at any moment: a driver does not check a handle."""

from __future__ import annotations

import pytest
from cuda_help import Program

DESTROYED = """
    import gc, ctypes
    import halstream as hs, look_alike
    hs.Stream()
    driver = look_alike.Driver()
    handle = driver.stream()
    s, x = hs.Stream.from_handle(handle), hs.empty(4)
    x.fill(2.0, s)
    assert x.numpy(s).tolist() == [2.0] * 4
    {before}
    assert driver.lib.cuStreamDestroy_v2(ctypes.c_void_p(handle)) == 0
    hs.synchronize(timeout=10)
    other = hs.Stream()
    other.wait(hs.Stream().record())
    {after}
    gc.collect()
    hs.Stream()
    hs.synchronize(timeout=10)
    print("done")
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pass", "pass"),
        ("pass", "del s"),
        ("x.fill(3.0, s)", "del s, x"),
        ("e = s.record()", "e.synchronize(); del e, s"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"FAKECUDA_VERSION": "11020"}])
def test_L2_no_call_passes_the_handle_of_a_destroyed_stream(
    before: str, after: str, settings: dict[str, str], run_program: Program
) -> None:
    """The stream's object still exists while the runtime waits for the device, makes streams, and ends."""
    done = run_program(DESTROYED.format(before=before, after=after), FAKECUDA_STRICT="1", **settings)
    assert done.stdout.split() == ["done"], done.stderr


def test_D4_numbers_that_are_no_address_do_not_reach_the_driver(run_program: Program) -> None:
    run_program(
        """
        import halstream as hs, look_alike
        hs.Stream()
        driver = look_alike.Driver()
        before = driver.count("cuStreamGetCtx")
        for number in (3, 12345, 2**40 + 64, 2**62, -5):
            try:
                hs.Stream.from_handle(number)
            except (hs.InvalidHandleError, ValueError, OverflowError) as exc:
                assert "handle" in str(exc) or "stream" in str(exc), exc
            else:
                raise AssertionError(number)
        assert driver.count("cuStreamGetCtx") == before
        """,
        FAKECUDA_STRICT="1",
    )


def test_L2_work_on_a_borrowed_stream_keeps_the_runtime_open(run_program: Program) -> None:
    """The end of the process waits for it by a mark of the runtime's own."""
    done = run_program(
        """
        import threading
        import halstream as hs, look_alike
        hs.Stream()
        handle = look_alike.Driver().stream()
        s = hs.Stream.from_handle(handle)
        ran = threading.Event()
        s.call(ran.set)
        hs.synchronize(timeout=10)
        assert ran.is_set() and "idle" in hs.Stream.from_handle(handle).describe()
        print("done")
        """,
        FAKECUDA_STRICT="1",
    )
    assert done.stdout.split() == ["done"]


def test_L2_a_capture_of_the_maker_is_not_counted_as_work(run_program: Program) -> None:
    run_program(
        """
        import ctypes
        import halstream as hs, look_alike
        hs.Stream()
        driver = look_alike.Driver()
        handle = driver.stream()
        s, x = hs.Stream.from_handle(handle), hs.empty(4)
        graph = ctypes.c_void_p()
        assert driver.lib.cuStreamBeginCapture_v2(ctypes.c_void_p(handle), 2) == 0
        x.fill(1.0, s)
        assert driver.lib.cuStreamEndCapture(ctypes.c_void_p(handle), ctypes.byref(graph)) == 0
        s.synchronize(timeout=10)
        """,
        FAKECUDA_STRICT="1",
    )
