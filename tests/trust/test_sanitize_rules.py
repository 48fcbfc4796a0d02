"""What orders two accesses and what does not, rule by rule, through the calls of a program."""

from __future__ import annotations

import ctypes
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core import _current
from halstream._memory import PooledMemory, copy_blocking
from halstream.testing import Gate
from sanitize_help import Kit, Step, check, read_a, read_b, record, until, wait, write_a, write_b

LIMIT = 10.0


STREAMS: dict[str, tuple[str, tuple[Step, ...]]] = {
    "write write": ("race", (write_a, write_b)),
    "write read": ("race", (write_a, read_b)),
    "read write": ("race", (read_a, write_b)),
    "read read": ("", (read_a, read_b)),
    "same stream": ("", (write_a, read_a, write_a)),
    "record wait": ("", (write_a, record, wait, write_b)),
    "record of the reader": ("", (read_a, record, wait, write_b)),
    "no wait": ("race", (write_a, record, write_b)),
    "wait before the record": ("race", (write_a, wait, record, write_b)),
    "record before the write": ("race", (record, write_a, wait, write_b)),
    "record again behind": ("", (record, write_a, record, wait, write_b)),
    "wait binds to the record at its call": ("race", (record, wait, write_a, record, write_b)),
    "recorded again by another": ("race", (write_a, record, lambda k: k.c.record(k.event), wait, write_b)),
    "wait of another stream": ("race", (write_a, record, lambda k: k.c.wait(k.event), write_b)),
    "by way of a third": (
        "",
        (write_a, record, lambda k: k.c.wait(k.event), lambda k: k.b.wait(k.c.record()), write_b),
    ),
    "wait behind the access": ("race", (write_a, record, write_b, wait)),
    "wait for the stream": ("", (write_a, lambda k: k.b.wait_stream(k.a), write_b)),
    "wait for the stream before": ("race", (lambda k: k.b.wait_stream(k.a), write_a, write_b)),
    "host waits for the stream": ("", (write_a, lambda k: k.a.synchronize(timeout=LIMIT), write_b)),
    "host waits for the event": ("", (write_a, record, lambda k: k.event.synchronize(timeout=LIMIT), write_b)),
    "host waits for the device": ("", (write_a, lambda k: hs.synchronize(timeout=LIMIT), write_b)),
    "host waits for another device": ("race", (write_a, lambda k: hs.synchronize(device=1, timeout=LIMIT), write_b)),
    "host waits for another stream": ("race", (write_a, lambda k: k.c.synchronize(timeout=LIMIT), write_b)),
    "event closed": ("", (write_a, record, wait, lambda k: k.event.close(), write_b)),
    "query of the stream": ("query", (write_a, lambda k: until(k.a.query), write_b)),
    "query of the event": ("query", (write_a, record, lambda k: until(k.event.query), write_b)),
    "query and wait": ("", (write_a, record, lambda k: k.event.query(), wait, write_b)),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams(backend: str, name: str) -> None:
    check(STREAMS[name][0], *STREAMS[name][1])


def ordered_stream(k: Kit) -> hs.Stream:
    k.ordered = getattr(k, "ordered", None) or hs.Stream()  # type: ignore[attr-defined]
    return k.ordered  # type: ignore[attr-defined, no-any-return]


def default(k: Kit) -> hs.Stream:
    return hs.Stream.from_handle(0, 0)


DEFAULTS: dict[str, tuple[str, tuple[Step, ...]]] = {
    "default then ordered": ("", (lambda k: k.write(default(k)), lambda k: k.write(ordered_stream(k)))),
    "ordered then default": ("", (lambda k: k.write(ordered_stream(k)), lambda k: k.write(default(k)))),
    "default then non-blocking": ("race", (lambda k: k.write(default(k)), write_a)),
    "non-blocking then default": ("race", (write_a, lambda k: k.write(default(k)))),
    "ordered streams among themselves": (
        "race",
        (lambda k: k.write(ordered_stream(k)), lambda k: k.write(hs.Stream())),
    ),
    "ordered ones by way of the default": (
        "",
        (lambda k: k.write(ordered_stream(k)), lambda k: default(k).nop(), lambda k: k.write(hs.Stream())),
    ),
    "ordered ones by way of a wait on the default": (
        "",
        (
            record,
            lambda k: k.event.synchronize(timeout=LIMIT),
            lambda k: k.write(ordered_stream(k)),
            lambda k: default(k).wait_event(k.event),
            lambda k: k.write(hs.Stream()),
        ),
    ),
    "ordered ones by way of a wait without record on the default": (
        "race",
        (
            lambda k: k.write(ordered_stream(k)),
            lambda k: default(k).wait_event(hs.Event()),
            lambda k: k.write(hs.Stream()),
        ),
    ),
    "per-thread default and default": (
        "",
        (lambda k: k.write(hs.Stream.from_handle(2, 0)), lambda k: k.write(default(k))),
    ),
    "blocking copy on the default stream and a non-blocking one": (
        "race",
        (write_a, lambda k: copy_blocking(k.x.ptr, k.pinned.ctypes.data, 64, 0)),
    ),
    "blocking copy before": ("", (lambda k: copy_blocking(k.x.ptr, k.pinned.ctypes.data, 64, 0), write_a)),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_streams(backend: str, name: str) -> None:
    check(DEFAULTS[name][0], *DEFAULTS[name][1])


def views(one: slice, two: slice) -> tuple[Step, ...]:
    return (lambda k: k.x[one].fill(1, k.a), lambda k: k.x[two].fill(2, k.b))


RANGES: dict[str, tuple[str, tuple[Step, ...]]] = {
    "views that overlap": ("race", views(slice(0, 33), slice(32, 64))),
    "views side by side": ("", views(slice(0, 32), slice(32, 64))),
    "one byte": ("race", views(slice(5, 6), slice(0, 64))),
    "function, declared": (
        "race",
        (write_a, lambda k: k.b.call(lambda: None, reads=[k.x])),
    ),
    "function, declared, another part": (
        "",
        (lambda k: k.x[:32].fill(1, k.a), lambda k: k.b.call(lambda: None, writes=[k.x[32:]])),
    ),
    "function, array argument": ("race", (write_a, lambda k: k.b.call(lambda x: None, k.x))),
    "function, keyword argument": ("race", (write_a, lambda k: k.b.call(lambda x: None, x=k.x))),
    "functions that read": ("", (lambda k: k.a.call(len, k.x), lambda k: k.b.call(len, k.x))),
    "function that writes without saying so": (
        "race",
        (lambda k: k.a.call(lambda x: x.fill(9), k.x), lambda k: k.b.call(len, k.x)),
    ),
    "native function that writes without saying so": (
        "race",
        (lambda k: k.a.call_native(bump(), k.x), lambda k: k.b.call(len, k.x)),
    ),
    "native function": ("race", (write_a, lambda k: k.b.call_native(nothing(), k.x))),
    "native function, declared": ("race", (read_a, lambda k: k.b.call_native(nothing(), k.x, writes=[k.x]))),
    "kernel": ("race", (read_a, lambda k: launch(k, "out", k.x))),
    "kernel that reads": ("", (read_a, lambda k: launch(k, "in", k.x))),
    "rows of a copy": ("race", (lambda k: k.x[::1].fill(0, k.a), lambda k: rows(k))),
    "the gap between two rows": ("", (lambda k: k.x[8:32].fill(0, k.a), lambda k: rows(k))),
}


def nothing() -> Any:
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda p: None)
    _kept.append(function)
    return function


def bump() -> Any:
    function = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint8))(lambda p: p.__setitem__(0, p[0] + 1))
    _kept.append(function)
    return function


_kept: list[Any] = []


def launch(k: Kit, direction: str, x: hs.Array) -> None:
    # What it does is nothing; what it may do counts.
    program = (
        ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry fill_u32("
        ".param .u64 x, .param .u32 v, .param .u32 n) { ret; }"
    )
    form = lambda grid, block, x, v, n: None  # noqa: E731
    kernel = hs.Kernel(program, form, signature=f"{direction} void *x, uint32 v, uint32 n", name="fill_u32")
    k.b.launch(kernel, 1, 1, x, 0, 0)


def rows(k: Kit) -> None:
    from halstream._memory import copy_rows

    copy_rows(k.b, k.x.ptr, 32, k.pinned.ctypes.data, 32, 8, 2)


#: Those that give a function an array of a device.
SEEN = [
    "function, array argument", "function, keyword argument", "functions that read",
    "function that writes without saying so", "native function that writes without saying so",
    "native function", "native function, declared",
]  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.needs("host")] * (name in SEEN)) for name in RANGES]
)
def test_ranges(backend: str, name: str) -> None:
    check(RANGES[name][0], *RANGES[name][1])


def pooled(k: Kit) -> PooledMemory:
    k.block = PooledMemory(256, k.a)  # type: ignore[attr-defined]
    return k.block  # type: ignore[attr-defined, no-any-return]


def use(k: Kit, stream: hs.Stream) -> None:
    from halstream._memory import fill

    fill(stream, k.block.ptr, 1, 1, 256)  # type: ignore[attr-defined]


def give(k: Kit, stream: hs.Stream | None = None) -> None:
    k.block.free(stream)  # type: ignore[attr-defined]


def ready(k: Kit) -> None:
    k.b.wait(k.a.record())


def done(k: Kit) -> None:
    k.a.wait(k.b.record())


MEMORY: dict[str, tuple[str, tuple[Step, ...]]] = {
    "used where it was allocated": ("", (pooled, lambda k: use(k, k.a), give)),
    "used elsewhere before it is allocated": ("race", (pooled, lambda k: use(k, k.b))),
    "used elsewhere in order, freed in order": ("", (pooled, ready, lambda k: use(k, k.b), done, give)),
    "freed while a side stream uses it": ("race", (pooled, ready, lambda k: use(k, k.b), give)),
    "freed with record_stream": (
        "",
        (pooled, ready, lambda k: use(k, k.b), lambda k: k.block.record_stream(k.b), give),  # type: ignore[attr-defined]
    ),
    "freed on the wrong stream": ("race", (pooled, lambda k: use(k, k.a), lambda k: give(k, k.b))),
    "freed on another stream, in order": ("", (pooled, lambda k: use(k, k.a), ready, lambda k: give(k, k.b))),
    "given out again on its stream": ("", (pooled, lambda k: use(k, k.a), give, pooled, lambda k: use(k, k.a))),
    "freed by the host with work pending": ("", (lambda k: device_block(k),)),
}


def device_block(k: Kit) -> None:
    block = hs.empty(64, np.uint8)
    with Gate(k.a):
        block.fill(1, k.a)
        block._memory.free()  # completes first (M2)
    again = hs.empty(64, np.uint8)
    again.fill(2, k.b)


@pytest.mark.parametrize("name", MEMORY)
def test_the_life_of_memory(backend: str, name: str) -> None:
    check(MEMORY[name][0], *MEMORY[name][1])


def test_devices_have_no_order_between_them(backend: str) -> None:
    near, far = hs.Stream(0), hs.Stream(1)
    source, target = hs.empty(16, np.uint8, device=0), hs.empty(16, np.uint8, device=1)
    with hs.sanitize(on="collect") as report:
        source.fill(1, near)
        target.copy_from(source, far)
        near.wait(far.record())
        source.fill(2, near)
    (found,) = report
    assert found.devices and "stream" in found.text and "of device 1" in found.text
    hs.synchronize(0)
    hs.synchronize(1)


def test_ascend_events_stay_set_until_a_reset(backend: str) -> None:
    from halstream.acl import ACL_EVENT_SYNC, rt

    assert rt.set_device(0) == 0

    def program(reset: bool) -> None:
        one, two = rt.create_stream()[0], rt.create_stream()[0]
        event = rt.create_event_with_flag(ACL_EVENT_SYNC)[0]
        block = rt.malloc(256, 0)[0]
        for _ in range(2):
            rt.memset_async(block, 256, 1, 256, one)
            rt.record_event(event, one)
            rt.stream_wait_event(two, event)
            if reset:
                rt.reset_event(event, two)
            rt.memset_async(block, 256, 2, 256, two)
            rt.synchronize_stream(two)
        rt.synchronize_stream(one)
        rt.destroy_stream(one), rt.destroy_stream(two), rt.destroy_event(event), rt.free(block)

    try:
        with hs.sanitize():
            program(reset=True)
        with hs.sanitize(on="collect") as report:
            program(reset=False)
        assert report.races
    finally:
        rt.reset_device(0)
        _current.reset()
