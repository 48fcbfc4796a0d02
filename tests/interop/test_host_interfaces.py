"""The array interfaces, the buffer protocol and native functions on shared memory."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory
from halstream._core import _interop
from halstream._memory import _exchange

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes exports believe in another backend.

    Streams and memory stay the host's, whose handles follow the same rules.
    """
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: False)

    def pretend(name: str) -> None:
        monkeypatch.setattr(_exchange, "backend_name", lambda: name)

    return pretend


def later(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Call a function on a thread that a test can see wait."""
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(function()), daemon=True)
    thread.start()
    thread.join(0.05)
    return thread, out


@pytest.mark.needs("host")
def test_numpy_sees_an_array_of_the_host_without_a_copy() -> None:
    ours = hs.asarray(np.arange(6, dtype="i2").reshape(2, 3))
    view = np.asarray(ours)
    assert view.dtype == np.int16 and view.shape == (2, 3)
    assert view.__array_interface__["data"] == (ours.ptr, False)
    view[0, 0] = 9
    assert ours.numpy()[0, 0] == 9
    assert np.array(ours).__array_interface__["data"][0] != ours.ptr
    assert np.asarray(ours, dtype="f8").dtype == np.float64


@pytest.mark.needs("host")
@pytest.mark.parametrize(
    "show", [np.asarray, lambda a: a.__array_interface__, lambda a: a.__array__(), lambda a: a.__buffer__(0)]
)
def test_what_shows_memory_waits_for_the_work_pending_on_it(show: Callable[[Any], Any], hold: Hold) -> None:
    ours, s = hs.zeros(4), hs.Stream(non_blocking=True)
    hs.synchronize()
    gate = hold(s)
    ours.fill(1.0, s)
    thread, out = later(lambda: show(ours))
    assert not out
    gate.open()
    thread.join(LIMIT)
    assert out and ours.numpy().all()


@pytest.mark.needs("host")
def test_a_view_keeps_the_memory_alive() -> None:
    view = np.asarray(hs.asarray(np.arange(1000)))
    hs.empty(1000, "i8").fill(0)
    hs.synchronize()
    np.testing.assert_array_equal(view, np.arange(1000))


@pytest.mark.needs("host")
def test_structured_elements_keep_their_fields() -> None:
    fields = np.dtype([("x", "i4"), ("y", "f8")])
    ours = hs.empty(3, fields)
    assert np.asarray(ours).dtype == fields


@pytest.mark.needs("host")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes cannot be buffers before Python 3.12")
def test_memoryview_of_an_array() -> None:
    ours = hs.asarray(np.arange(6, dtype="i4").reshape(2, 3))
    view = memoryview(ours)
    assert (view.format, view.shape, view.tolist()) == ("i", (2, 3), [[0, 1, 2], [3, 4, 5]])


def test_pinned_arrays_are_buffers() -> None:
    pinned = hs.pinned_empty(4, "u1")
    memoryview(pinned)[:] = b"abcd"
    assert pinned.tobytes() == b"abcd"
    assert np.from_dlpack(pinned).__array_interface__["data"][0] == pinned.__array_interface__["data"][0]


@pytest.mark.needs("host")
def test_blocks_of_memory_are_bytes() -> None:
    for memory in (_memory.DeviceMemory(4), _memory.PinnedMemory(4)):
        np.asarray(memory)[:] = [1, 2, 3, 4]
        assert bytes(np.from_dlpack(memory)) == b"\1\2\3\4"
        memory.free()
        with pytest.raises(BufferError, match="was freed"):
            np.asarray(memory)


@pytest.mark.needs("host")
def test_an_array_of_the_host_is_no_cuda_array() -> None:
    assert not hasattr(hs.zeros(3), "__cuda_array_interface__")
    assert not hasattr(_memory.PinnedMemory(3), "__cuda_array_interface__")


@pytest.mark.needs("host")
def test_a_function_on_a_stream_may_not_show_memory() -> None:
    ours, s, seen = hs.zeros(3), hs.Stream(), []

    def show() -> None:
        try:
            np.asarray(ours)
        except hs.CallInHostFunctionError as exc:
            seen.append(exc)

    s.call(show)
    s.synchronize(timeout=LIMIT)
    assert len(seen) == 1


# -- what a vendor's memory shows; the memory is the host's ------------------


def test_memory_of_a_vendor_is_not_shown_to_the_host(pretend: Callable[[str], None]) -> None:
    ours = hs.zeros(3)
    pretend("cuda")
    assert not hasattr(ours, "__array_interface__")
    with pytest.raises(hs.NotSupportedError, match=r"numpy\(\)"):
        np.asarray(ours)
    with pytest.raises(BufferError):
        ours.__buffer__(0)
    pinned = _memory.PinnedMemory(3)
    assert pinned.__array_interface__["data"][0] == pinned.ptr


@pytest.mark.parametrize(
    ("backend", "device", "pinned"), [("host", 1, (1, 0)), ("cuda", 2, (3, 0)), ("ascend", 12, (1, 0))]
)
def test_device_types_of_dlpack(
    backend: str, device: int, pinned: tuple[int, int], pretend: Callable[[str], None]
) -> None:
    ours = hs.zeros(3, device=1)
    pretend(backend)
    assert ours.__dlpack_device__() == (device, 0 if backend == "host" else 1)
    assert _memory.PinnedMemory(3).__dlpack_device__() == pinned


def test_cuda_array_interface_names_a_stream_only_while_work_is_pending(
    pretend: Callable[[str], None], hold: Hold
) -> None:
    ours = hs.zeros((2, 3), "f4")
    hs.synchronize()
    pretend("cuda")
    interface = ours.__cuda_array_interface__
    assert interface == {
        "version": 3, "shape": (2, 3), "typestr": "<f4", "data": (ours.ptr, False), "strides": None, "stream": None,
    }  # fmt: skip
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    gate = hold(a)
    ours.fill(1.0, a)
    with b:
        assert ours.__cuda_array_interface__["stream"] == b.handle
    assert not b.query()  # it waits for the fill
    gate.open()
    b.synchronize(timeout=LIMIT)
    gate = hold(a)
    ours.fill(1.0, a)
    assert ours.__cuda_array_interface__["stream"] == 1  # the legacy default stream is never 0
    gate.open()
    assert hs.empty((0, 3)).__cuda_array_interface__["data"] == (0, False)


def order(hold: Hold, stream: Any) -> tuple[Any, Any]:
    """Export memory with work pending, for a consumer's stream; return the gate and the capsule."""
    ours, s = hs.zeros(4), hs.Stream(non_blocking=True)
    hs.synchronize()
    gate = hold(s)
    ours.fill(1.0, s)
    return gate, ours.__dlpack__(stream=stream)


@pytest.mark.parametrize("handle", [None, 1])
def test_none_and_1_order_the_legacy_default_stream(handle: Any, pretend: Callable[[str], None], hold: Hold) -> None:
    pretend("cuda")
    gate, _ = order(hold, handle)
    default = hs.Device(0).default_stream
    assert not default.query()
    gate.open()
    default.synchronize(timeout=LIMIT)


def test_2_orders_the_per_thread_default_stream(pretend: Callable[[str], None], hold: Hold) -> None:
    pretend("cuda")
    gate, _ = order(hold, 2)
    assert not hs.Device(0).per_thread_stream.query()
    gate.open()
    hs.Device(0).per_thread_stream.synchronize(timeout=LIMIT)


def test_a_handle_orders_its_stream_and_no_other(pretend: Callable[[str], None], hold: Hold) -> None:
    pretend("cuda")
    consumer, other = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    gate, _ = order(hold, consumer.handle)
    assert not consumer.query() and other.query() and hs.Device(0).default_stream.query()
    gate.open()
    consumer.synchronize(timeout=LIMIT)


def test_minus_1_orders_nothing(pretend: Callable[[str], None], hold: Hold) -> None:
    pretend("cuda")
    order(hold, -1)
    assert hs.Device(0).default_stream.query() and hs.Device(0).per_thread_stream.query()


def test_for_a_stream_of_others_the_export_waits_itself(pretend: Callable[[str], None], hold: Hold) -> None:
    pretend("cuda")
    ours, s = hs.zeros(4), hs.Stream(non_blocking=True)
    hs.synchronize()
    gate = hold(s)
    ours.fill(1.0, s)
    thread, out = later(lambda: ours.__dlpack__(stream=0x7F00_0000_1000))
    assert not out
    gate.open()
    thread.join(LIMIT)
    assert out


@pytest.mark.parametrize("handle", [0, -2])
def test_ambiguous_streams_are_refused(handle: int, pretend: Callable[[str], None]) -> None:
    pretend("cuda")
    with pytest.raises(BufferError, match="legacy default"):
        hs.zeros(3).__dlpack__(stream=handle)
    with pytest.raises(TypeError):
        hs.zeros(3).__dlpack__(stream="default")


def test_a_copy_for_the_cpu_or_on_the_device(pretend: Callable[[str], None]) -> None:
    ours = hs.asarray(np.arange(3.0))
    pretend("cuda")
    for capsule in (ours.__dlpack__(dl_device=(1, 0)), ours.__dlpack__(copy=True, stream=1)):
        assert "dltensor" in repr(capsule)
    with pytest.raises(BufferError):
        ours.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        ours.__dlpack__(dl_device=(2, 1))
