"""A device that fails for good, which only the look-alike driver does on purpose."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import fake_driver

PROGRAM = """
    import ctypes, os, threading, time, weakref
    import halstream as hs
    from halstream.testing import Gate

    class Argument:
        pass

    near, far = hs.Stream(0), hs.Stream(1)
    gate, ran, argument = Gate(far), [], Argument()
    kept = weakref.ref(argument)
    far.call(lambda a: ran.append(a), argument)
    del argument
    caught = []

    def wait():
        try:
            far.synchronize(timeout=20)
        except hs.DeviceLostError as exc:
            caught.append(str(exc))

    waiter = threading.Thread(target=wait)
    waiter.start()
    driver = ctypes.CDLL(os.environ["HALSTREAM_CUDA_LIBRARY"])
    driver.fakecuda_count.restype = ctypes.c_ulonglong
    assert driver.fakecuda_control(b"poison 1 700") == 0
    waiter.join(20)
    assert len(caught) == 1 and "(700)" in caught[0], caught

    before = -1
    while driver.fakecuda_count(b"total") != before:  # a look that has begun may come to the driver yet
        before = driver.fakecuda_count(b"total")
        time.sleep(0.05)
    for call in (far.nop, far.query, far.record, lambda: hs.Stream(1), lambda: far.call(print)):
        try:
            call()
        except hs.DeviceLostError as exc:
            assert "(700)" in str(exc), exc
        else:
            raise AssertionError(f"{call} did not fail")
    assert driver.fakecuda_count(b"total") == before, "the driver of a lost device was asked"

    near.call(ran.append, "near")
    near.synchronize(timeout=20)
    assert ran == ["near"], ran
    ended = threading.Event()
    near.call(ended.set)  # what dropped the function has come to an end by then
    assert ended.wait(20)
    assert kept() is None, "the argument of a dropped function is kept"
    gate.open()
    print("other devices go on")
"""


def test_D6_a_lost_device_blocks_no_wait(
    child: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = child(PROGRAM, env={"HALSTREAM_BACKEND": "cuda", "HALSTREAM_CUDA_LIBRARY": fake_driver.require()})
    assert (done.returncode, done.stdout) == (0, "other devices go on\n"), done.stderr
