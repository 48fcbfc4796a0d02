"""Owners of memory: their results, errors and lifetimes."""

from __future__ import annotations

import gc
import subprocess
import threading
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native
from halstream._core._reap import drain
from halstream._memory import PooledMemory

pytestmark = pytest.mark.usefixtures("backend")

Child = Callable[..., subprocess.CompletedProcess[str]]

#: Blocks are multiples of so many bytes.
UNIT = 512


@pytest.fixture(autouse=True)
def no_earlier_garbage() -> None:
    """Free what earlier tests left: it would count."""
    gc.collect()
    drain()


def live_blocks() -> int:
    """Return how many blocks of at most `UNIT` bytes are allocated; closes nothing."""
    return int(_native.mem_stat(0, 0)) // UNIT


def test_M7_memory_in_the_order_of_a_stream_is_made_and_freed() -> None:
    s = hs.Stream()
    first, second = PooledMemory(4096, s), PooledMemory(100, s)
    assert first.ptr % 256 == second.ptr % 256 == 0
    assert first.ptr != second.ptr
    assert (first.nbytes, first.device, first.stream) == (4096, s.device.ordinal, s)
    ptr = first.ptr
    first.free()
    assert first.ptr == 0
    first.free()  # again does nothing
    assert PooledMemory(4096, s).ptr == ptr


@pytest.mark.parametrize("size", [np.int64(256), True])
def test_M7_other_numbers_are_sizes(size: Any) -> None:
    block = PooledMemory(size, hs.Stream())
    assert block.ptr
    assert block.nbytes == int(size)


def test_M7_memory_is_freed_on_any_stream_that_is_ordered() -> None:
    s, other = hs.Stream(), hs.Stream()
    other.wait_stream(s)
    PooledMemory(64, s).free(other)
    PooledMemory(64, s).free(stream=s)


@pytest.mark.parametrize("keywords", [("nbytes", "stream"), ("stream", "nbytes")])
def test_M7_the_arguments_of_memory_have_names(keywords: tuple[str, str]) -> None:
    s = hs.Stream()
    given: dict[str, Any] = {"nbytes": 64, "stream": s}
    block = PooledMemory(**{name: given[name] for name in keywords})
    assert (block.nbytes, block.stream) == (64, s)
    for wrong in ({"nbytes": 64}, {"stream": s}, {**given, "other": 1}):
        with pytest.raises(TypeError):
            PooledMemory(**wrong)
    with pytest.raises(AttributeError):
        PooledMemory(64, object())  # type: ignore[arg-type]


def test_M2_collected_memory_goes_back_before_the_next_is_made() -> None:
    s = hs.Stream()
    PooledMemory(64, s)
    hs.synchronize()
    gc.collect()
    drain()
    blocks = live_blocks()
    for count in (1, 1, 3):
        made = [PooledMemory(64, s) for _ in range(count)]
        assert live_blocks() == blocks + count
        made.clear()
        PooledMemory(64, s).free()
        assert live_blocks() == blocks


class Named(hs.Stream):
    """A stream with attributes of a program."""


class Stored(PooledMemory):
    """Memory with attributes of a program."""


@pytest.mark.parametrize("through", ["itself", "stream"])
def test_M2_memory_in_a_cycle_goes_back_when_the_cycle_is_collected(through: str) -> None:
    s: Any = Named()
    drain()
    blocks, block = live_blocks(), PooledMemory(64, s) if through == "stream" else Stored(64, s)
    if through == "stream":
        s.block = block
    else:
        block.itself = block  # type: ignore[attr-defined]
    seen = weakref.ref(block)
    del block, s
    assert live_blocks() == blocks + 1
    gc.collect()
    assert seen() is None
    drain()
    assert live_blocks() == blocks


def test_M2_memory_that_a_finalizer_keeps_stays_valid() -> None:
    kept: list[Any] = []

    class Kept(PooledMemory):
        """Lives on once."""

        def __del__(self) -> None:
            if not kept:
                kept.append(self)

    s = hs.Stream()
    drain()
    blocks, block = live_blocks(), Kept(64, s)
    ptr = block.ptr
    del block
    drain()
    assert kept[0].ptr == ptr
    assert live_blocks() == blocks + 1
    kept[0].free()
    assert live_blocks() == blocks


def test_M2_memory_that_is_made_again_gives_its_block_back() -> None:
    s = hs.Stream()
    drain()
    blocks, block = live_blocks(), PooledMemory(64, s)
    block.__init__(128, s)  # type: ignore[misc]
    assert block.nbytes == 128
    drain()
    assert live_blocks() == blocks + 1
    with pytest.raises(hs.InvalidValueError):
        block.__init__(0, s)  # type: ignore[misc]
    assert block.ptr == 0
    drain()
    assert live_blocks() == blocks


def test_M2_memory_that_a_function_sees_is_kept_after_its_owner() -> None:
    s = hs.Stream()
    drain()
    blocks, block = live_blocks(), PooledMemory(64, s)
    ptr, view = block.ptr, block._for_functions()
    other = PooledMemory(64, s)
    other.free()
    del block
    drain()
    assert live_blocks() == blocks  # the program has freed it
    assert PooledMemory(64, s).ptr != ptr
    del view
    drain()
    assert PooledMemory(64, s).ptr == ptr


@pytest.mark.needs("host")
def test_M2_memory_that_another_library_uses_is_not_freed() -> None:
    block = PooledMemory(64, hs.Stream())
    view = np.from_dlpack(block)
    with pytest.raises(BufferError, match="still uses"):
        block.free()
    assert block.ptr
    del view
    block.free()
    assert block.ptr == 0


@pytest.mark.needs("memory-size")
def test_M16_functions_that_hold_memory_are_waited_for(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs, numpy as np
        from halstream._memory import PooledMemory
        stream, other, opened = hs.Stream(), hs.Stream(), threading.Event()
        array = hs.empty(5 << 20, np.uint8)
        stream.call(opened.wait, 10)
        stream.call(lambda kept: None, [array])
        del array
        threading.Timer(0.2, opened.set).start()
        again = PooledMemory(5 << 20, other)
        assert opened.is_set() and again.ptr and again.nbytes == 5 << 20
        stream.synchronize(timeout=10)
        try:
            PooledMemory(5 << 20, other)
        except hs.OutOfMemoryError as exc:
            assert f"out of memory. Tried to allocate {5 << 20} bytes" in str(exc), exc
        else:
            raise SystemExit("no error")
        """,
        env=dict.fromkeys(("HALSTREAM_HOST_MEMORY", "FAKECUDA_MEMORY", "FAKEACL_MEMORY"), str(8 << 20)),
    )
    assert done.returncode == 0, done.stderr


def test_M7_memory_is_made_and_freed_by_many_threads() -> None:
    s = hs.Stream()
    drain()
    blocks, failures = live_blocks(), []

    def work() -> None:
        try:
            for count in range(500):
                block = PooledMemory(64 + count, s)
                if count % 3:
                    block.free()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failures == []
    drain()
    assert live_blocks() == blocks


def test_M7_sizes_and_streams_that_do_not_exist_are_errors() -> None:
    s = hs.Stream()
    for size, kind in ((0, hs.InvalidValueError), (-1, hs.InvalidValueError), (2**63, hs.OutOfMemoryError)):
        with pytest.raises(kind):
            PooledMemory(size, s)
    with pytest.raises(hs.OutOfMemoryError):
        PooledMemory(2**62, s)
    with pytest.raises(TypeError):
        PooledMemory("1", s)  # type: ignore[arg-type]
    s.close()
    with pytest.raises(hs.ClosedError):
        PooledMemory(1, s)
