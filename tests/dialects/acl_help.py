"""What the tests of the ACL dialect share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream import _native, _records, acl
from halstream.acl import _table

#: Milliseconds that a wait of a test may take before it counts as never ending.
LIMIT = 10_000

#: The functions that allocate on a device, each for 1 MiB.
ALLOCATE = (
    lambda: acl.rt.malloc(1 << 20, acl.ACL_MEM_MALLOC_NORMAL_ONLY | 0x1000),
    lambda: acl.rt.malloc_align32(1 << 20, 0),
    lambda: acl.rt.malloc_cached(1 << 20, 2),
    lambda: acl.rt.malloc_with_cfg(1 << 20, 0, {}),
)


@pytest.fixture(autouse=True)
def device_0(backend: str) -> Iterator[None]:
    """Make device 0 current, counted once; afterwards nothing of the test is left."""
    clean()
    ok(acl.rt.set_device(0))
    yield
    clean()


def clean() -> None:
    for handle in list(_table.objects):
        # An event gives a code. What a test left held must not hold the reset.
        acl.rt.stream_abort(handle)
    for queue in list(_table.queues.values()):
        with contextlib.suppress(hs.WaitTimeoutError):
            while True:
                queue.process(0)
    for number in (0, 1):
        acl.rt.reset_device_force(number)
    _table.objects.clear()
    _table.queues.clear()
    acl.finalize()
    acl.finalize()
    acl.rt.set_op_wait_timeout(0)
    acl.rt.get_last_error(0)
    acl.get_recent_err_msg()


def ok(result: Any) -> Any:
    """Return the outputs of a call that must have succeeded."""
    values = (result,) if isinstance(result, int) else result
    assert values[-1] == 0, acl.get_recent_err_msg()
    return values[0] if len(values) == 2 else values[:-1]


def core(handle: int) -> hs.Stream:
    """Return the stream of a handle, to put gates and functions on it."""
    if handle == 0:
        handle = ok(acl.rt.ctx_get_current_default_stream())
    # Handles of this dialect are its own numbers, on a vendor's backend, too.
    return _table.stream(handle)


def streams(count: int) -> list[int]:
    return [ok(acl.rt.create_stream()) for _ in range(count)]


def finish(handle: int) -> None:
    """Wait for a stream, with a limit."""
    ok(acl.rt.synchronize_stream_with_timeout(handle, LIMIT))


class Call:
    """A function on a thread of its own; `result` waits for it."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._value: Any = None
        self._error: BaseException | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(function, args), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            self._value = function(*args)
        except BaseException as exc:
            self._error = exc
        finally:
            self.ended.set()

    def waits(self) -> bool:
        """Return True once a thread waits for the runtime, False if the call ends without that."""
        end = time.monotonic() + LIMIT / 1000
        while not self.ended.is_set() and time.monotonic() < end:
            if _records.decode(_native.stall_waits()):
                return True
            time.sleep(0.001)
        return False

    def result(self) -> Any:
        assert self.ended.wait(LIMIT / 1000), "the call did not end"
        self._thread.join(LIMIT / 1000)
        if self._error is not None:
            raise self._error
        return self._value


def elsewhere(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function on a new thread, which has no context, and return its result."""
    return Call(function, *args).result()
