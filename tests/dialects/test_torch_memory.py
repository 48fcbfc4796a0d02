"""torch.cuda.memory: the allocator, its figures, and memory that several streams use."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import halstream.torch as torch
import numpy as np
import pytest
from halstream.torch import accelerator, cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend", "settled_memory")]

LIMIT = 10.0
MIB = 1 << 20
Hold = Callable[[Any], Any]
left: dict[int, tuple[int, int]] = {}


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Start and end with nothing in the pool's cache, and peaks at what is held."""

    def clean() -> None:
        gc.collect()
        cuda.init()
        for number in range(cuda.device_count()):
            cuda.synchronize(number)
        cuda.empty_cache()
        for number in range(cuda.device_count()):
            cuda.reset_peak_memory_stats(number)

    clean()
    # What other tests left to live on in this process does not count.
    for number in range(cuda.device_count()):
        left[number] = cuda.memory_allocated(number), cuda.memory_reserved(number)
    yield
    clean()


def more(figure: Callable[[Any], int], where: Any = 0) -> int:
    """Return a figure of the allocator without what was there before the test."""
    allocated, reserved = left[torch.device(where).index or 0]
    return figure(where) - (allocated if "allocated" in figure.__name__ else reserved)


def array(stream: Any, nbytes: int = MIB) -> Any:
    return hs.empty(nbytes, np.uint8, stream=stream)


# -- record_stream ------------------------------------------------------------


@pytest.mark.row(23)
@pytest.mark.parametrize("how", ["free", "drop"])
def test_memory_that_another_stream_uses_is_not_allocated_again(how: str, hold: Hold) -> None:
    mine, other = cuda.Stream(), cuda.Stream()
    first = array(mine)
    address = first.ptr
    first.record_stream(other)
    gate = hold(other)
    if how == "free":
        first._memory.free()
    del first
    # Also to the memory's own stream, which without the call would get it at once.
    second = array(mine)
    assert second.ptr != address
    gate.open()
    other.synchronize()
    third = array(mine)
    assert third.ptr == address


def test_without_record_stream_the_own_stream_gets_it_at_once(hold: Hold) -> None:
    mine, other = cuda.Stream(), cuda.Stream()
    first = array(mine)
    address = first.ptr
    first.record_stream(mine)  # no effect
    hold(other)
    hold(mine)
    first._memory.free()
    assert array(mine).ptr == address


def test_what_counts_is_the_stream_when_the_memory_is_freed(hold: Hold) -> None:
    mine, other = cuda.Stream(), cuda.Stream()
    early, late = array(mine), array(mine)
    address, last = early.ptr, late.ptr
    early.record_stream(other)
    late.record_stream(other)
    early._memory.free()
    gate = hold(other)
    late._memory.free()
    other_block = array(mine)
    assert other_block.ptr == address
    assert array(mine, MIB).ptr != last
    gate.open()
    other.synchronize()


@pytest.mark.row(24)
def test_record_stream_of_a_view_applies_to_the_whole_block(hold: Hold) -> None:
    mine, other = cuda.Stream(), cuda.Stream()
    first = array(mine)
    address = first.ptr
    view = first[100:200]
    assert view.ptr == address + 100
    view.record_stream(other)
    gate = hold(other)
    del first, view
    second = array(mine)
    assert second.ptr != address
    gate.open()
    other.synchronize()
    assert array(mine).ptr == address


def test_several_streams_are_waited_for(hold: Hold) -> None:
    mine, others = cuda.Stream(), [cuda.Stream(), cuda.Stream()]
    first = array(mine)
    address = first.ptr
    for other in others:
        first.record_stream(other)
    gates = [hold(other) for other in others]
    del first
    gates[0].open()
    others[0].synchronize()
    second = array(mine)
    assert second.ptr != address
    gates[1].open()
    others[1].synchronize()
    assert array(mine).ptr == address


def test_memory_without_a_stream_is_kept_for_the_streams_it_names(hold: Hold) -> None:
    other = cuda.Stream()
    first = hs.empty(MIB, np.uint8, 0)
    free, _ = cuda.mem_get_info(0)
    first.record_stream(other)
    gate = hold(other)
    del first
    hs.empty(512, np.uint8, 0)  # a call that looks for what can be given back
    assert cuda.mem_get_info(0)[0] < free + MIB
    gate.open()
    other.synchronize()
    rest = hs.empty(512, np.uint8, 0)
    assert cuda.mem_get_info(0)[0] > free
    del rest
    with pytest.raises(TypeError, match="takes a Stream"):
        hs.empty(1).record_stream("s")


@pytest.mark.row(25)
@pytest.mark.needs("memory-size")
def test_held_memory_is_found_when_there_is_no_other(child: Callable[..., Any]) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        import numpy as np
        from halstream._memory import memory_stats
        from halstream.testing import Gate
        from halstream.torch import cuda

        mine, other = cuda.Stream(), cuda.Stream()
        block = hs.empty(5 << 20, np.uint8, stream=mine)
        block.record_stream(other)
        gate = Gate(other)
        del block
        threading.Timer(0.2, gate.open).start()
        again = hs.empty(5 << 20, np.uint8, stream=mine)  # waits for the other stream
        assert gate.opened
        stats = memory_stats(0)
        assert (stats["retries"], stats["out_of_memory"]) == (1, 0), stats
        try:
            cuda.caching_allocator_alloc(5 << 20)
        except cuda.OutOfMemoryError as exc:
            assert isinstance(exc, RuntimeError) and "free" in str(exc)
        else:
            raise AssertionError("there was memory")
        assert memory_stats(0)["out_of_memory"] == 1
        """,
        env=dict.fromkeys(("HALSTREAM_HOST_MEMORY", "FAKECUDA_MEMORY", "FAKEACL_MEMORY"), str(8 * MIB)),
    )
    assert done.returncode == 0, done.stderr


def test_empty_cache_waits_for_memory_that_streams_use(hold: Hold) -> None:
    mine, other = cuda.Stream(), cuda.Stream()
    first = array(mine)
    first.record_stream(other)
    del first
    assert more(cuda.memory_reserved) == MIB
    other.synchronize()
    cuda.empty_cache()
    assert more(cuda.memory_reserved) == more(cuda.memory_allocated) == 0


# -- the allocator ------------------------------------------------------------


@pytest.mark.row(35)
def test_the_allocator_by_address() -> None:
    stream = cuda.Stream()
    for given in (stream, stream.cuda_stream, None):
        address = cuda.caching_allocator_alloc(1000, stream=given)
        assert address % 256 == 0
        assert more(cuda.memory_allocated) == 1024
        cuda.caching_allocator_delete(address)
        assert more(cuda.memory_allocated) == 0
    with pytest.raises(RuntimeError, match="freed already"):  # known until the device takes the memory back
        cuda.caching_allocator_delete(address)
    with torch.cuda.stream(stream):
        again = cuda.caching_allocator_alloc(1000)
    cuda.caching_allocator_delete(again)
    for wrong in ("0", 1.5, object()):
        with pytest.raises(TypeError, match="Invalid type for stream argument"):
            cuda.caching_allocator_alloc(8, stream=wrong)
    with pytest.raises(RuntimeError):
        cuda.caching_allocator_alloc(-8)
    with pytest.raises(cuda.OutOfMemoryError):
        cuda.caching_allocator_alloc(1 << 60)
    assert cuda.caching_allocator_alloc(0) == 0
    cuda.caching_allocator_delete(0)
    assert cuda.get_allocator_backend() == "cudaMallocAsync"


def test_memory_belongs_to_the_current_stream_of_the_device(hold: Hold) -> None:
    mine, other = cuda.Stream(1), cuda.Stream(1)
    with cuda.stream(mine):
        address = cuda.caching_allocator_alloc(MIB)
    hold(mine)
    cuda.caching_allocator_delete(address)  # on its stream, not on the current one
    assert more(cuda.memory_reserved, 1) == MIB
    elsewhere = cuda.caching_allocator_alloc(MIB, 1, other)
    assert elsewhere != address
    here = cuda.caching_allocator_alloc(MIB, "cuda:1", mine)
    assert here == address
    for used in (elsewhere, here):
        cuda.caching_allocator_delete(used)


# -- figures ------------------------------------------------------------------


def test_figures_are_0_before_the_first_use(child: Callable[..., Any]) -> None:
    done = child(
        """
        from halstream.torch import accelerator, cuda

        assert cuda.memory_allocated() == cuda.max_memory_reserved() == 0
        assert accelerator.memory_allocated() == 0
        cuda.empty_cache()
        assert not cuda.is_initialized()
        """
    )
    assert done.returncode == 0, done.stderr


def test_what_is_allocated_reserved_and_most(hold: Hold) -> None:
    mine, other = cuda.Stream(), cuda.Stream()
    first, second = array(mine), array(mine)
    assert more(cuda.memory_allocated) == more(cuda.memory_reserved) == 2 * MIB
    second._memory.free()
    assert (more(cuda.memory_allocated), more(cuda.memory_reserved)) == (MIB, 2 * MIB)
    assert more(cuda.max_memory_allocated) == more(cuda.max_memory_reserved) == 2 * MIB
    mine.synchronize()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    assert more(cuda.memory_reserved) == more(cuda.max_memory_reserved) == MIB
    assert more(cuda.max_memory_allocated, "cuda:0") == MIB
    assert more(cuda.memory_allocated, 1) == 0
    # Freed, but another stream is not past it: reserved, and no longer allocated.
    gate = hold(other)
    first.record_stream(other)
    first._memory.free()
    assert (more(cuda.memory_allocated), more(cuda.memory_reserved)) == (0, MIB)
    gate.open()
    other.synchronize()


@pytest.mark.row(57)
@pytest.mark.parametrize("device", [None, 0, "cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0")], ids=str)
def test_mem_get_info(device: Any) -> None:
    free, total = cuda.mem_get_info(device)
    assert 0 < free <= total
    keep = hs.empty(MIB, np.uint8, 0)
    now = cuda.mem_get_info(device)
    assert now == (free - MIB, total) or hs.backend() != "host"  # a driver may give earlier memory back meanwhile
    assert now[1] == total == cuda.get_device_properties(device).total_memory
    assert cuda.cudart().cudaMemGetInfo(0) == now and keep.nbytes == MIB
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.mem_get_info("cpu")
    with pytest.raises(RuntimeError):
        cuda.mem_get_info(cuda.device_count())


def test_deprecated_names_warn() -> None:
    keep = array(cuda.Stream())
    for call in (cuda.memory_cached, cuda.max_memory_cached):
        with pytest.warns(FutureWarning, match="memory_reserved"):
            assert call() == left[0][1] + MIB
    del keep
    for reset in (cuda.reset_max_memory_allocated, cuda.reset_max_memory_cached):
        with pytest.warns(FutureWarning, match="reset_peak_memory_stats"):
            reset()


def test_the_accelerator_has_the_same_figures() -> None:
    keep = array(cuda.Stream())
    assert more(accelerator.memory_allocated, "cuda:0") == more(accelerator.max_memory_allocated) == MIB
    assert more(accelerator.memory_reserved, 0) == more(accelerator.max_memory_reserved) == MIB
    assert accelerator.get_memory_info(0) == cuda.mem_get_info(0)
    with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda"):
        accelerator.memory_allocated("cpu")
    with pytest.raises(TypeError):
        accelerator.memory_allocated(device_index=0)
    accelerator.reset_peak_memory_stats()
    accelerator.empty_host_cache()
    accelerator.empty_cache()
    del keep


# -- pinned memory ------------------------------------------------------------


@pytest.mark.row(60)
def test_pinned_memory_is_not_reused_while_a_copy_is_pending(hold: Hold) -> None:
    stream = cuda.Stream()
    target = hs.zeros(MIB, np.uint8, stream=stream)
    stream.synchronize()
    early = [hs.pinned_empty(MIB, np.uint8) for _ in range(8)]  # as a driver may wait for streams that are held
    del early
    gate = hold(stream)
    source = hs.pinned_empty(MIB, np.uint8)
    source[:] = 5
    address = source.ctypes.data
    target.copy_from(source, stream)
    del source
    others = [hs.pinned_empty(MIB, np.uint8) for _ in range(4)]
    assert address not in [other.ctypes.data for other in others]
    for other in others:
        other[:] = 9
    gate.open()
    assert (target.numpy(stream) == 5).all()


def test_the_program_can_pin_its_own_memory() -> None:
    runtime = cuda.cudart()
    buffer = ctypes.create_string_buffer(4096)
    address = ctypes.addressof(buffer)
    cuda.check_error(runtime.cudaHostRegister(address, 4096, 0))
    assert runtime.cudaHostRegister(address, 4096, 0) == 1
    cuda.check_error(runtime.cudaHostUnregister(address))
    assert runtime.cudaHostUnregister(address) == 1
