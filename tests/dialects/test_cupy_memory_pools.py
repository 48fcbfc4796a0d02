"""cupy.cuda: pools, allocators, hooks."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import sysconfig
import threading
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda, get_default_memory_pool, get_default_pinned_memory_pool
from halstream.cupy.cuda import Device, MemoryPool, PinnedMemoryPool, Stream, memory

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]

UNIT = 512


@pytest.fixture
def pool() -> MemoryPool:
    return MemoryPool()


@pytest.fixture(autouse=True)
def same_allocators() -> Iterator[None]:
    before = cuda.get_allocator()
    yield
    cuda.set_allocator(before)
    cuda.set_pinned_memory_allocator(get_default_pinned_memory_pool().malloc)


def in_thread(function: Callable[[], Any]) -> Any:
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(function()))
    thread.start()
    thread.join(10)
    return out[0]


def address(pool: MemoryPool, stream: Any, size: int = UNIT) -> int:
    """Take memory on a stream, give it back, and return where it was."""
    with stream:
        return int(pool.malloc(size).ptr)


# -- arenas -------------------------------------------------------------------


@pytest.mark.row(78)
def test_a_freed_block_stays_its_streams(pool: MemoryPool) -> None:
    stream = Stream()
    ptr = address(pool, stream)
    assert pool.n_free_blocks() == 1
    kept = pool.malloc(UNIT)  # of the null stream
    assert kept.ptr != ptr
    assert address(pool, stream) == ptr
    # Freed while another stream is current: it still goes where it came from.
    with stream:
        mem = pool.malloc(UNIT)
    with Stream():
        del mem
    assert address(pool, stream) == ptr
    pool.free_all_blocks(stream=Stream.null)
    assert pool.n_free_blocks() == 1 and address(pool, stream) == ptr
    pool.free_all_blocks(stream=Stream())  # unknown to the pool
    assert pool.n_free_blocks() == 1
    pool.free_all_blocks()
    assert pool.n_free_blocks() == 0 and pool.total_bytes() == UNIT
    del kept


@pytest.mark.row(79)
@pytest.mark.parametrize(
    ("make", "shared"),
    [
        (lambda: Stream.null, True),
        (lambda s=Stream(): s, True),  # noqa: B008 (one stream for both threads)
        (lambda: Stream(), False),
        (lambda: Stream.ptds, False),
    ],
    ids=["null", "one stream", "a stream each", "ptds"],
)
def test_threads_share_the_arena_of_a_stream(pool: MemoryPool, make: Callable[[], Any], shared: bool) -> None:
    turn = threading.Event()
    found = []

    def first() -> None:
        stream = make()
        found.append(address(pool, stream))
        found.append(in_thread(lambda: address(pool, make())))  # while this thread lives
        turn.set()

    in_thread(first)
    assert turn.wait(10) and (found[0] == found[1]) is shared


def test_devices_have_arenas_of_their_own(pool: MemoryPool) -> None:
    first = pool.malloc(UNIT).ptr
    with Device(1):
        assert pool.n_free_blocks() == pool.total_bytes() == 0
        mem = pool.malloc(UNIT)
        assert mem.device_id == 1 and mem.ptr != first
    assert pool.n_free_blocks() == 1
    del mem
    with Device(1):
        assert pool.n_free_blocks() == 1


def test_blocks_are_split_and_joined(pool: MemoryPool) -> None:
    ptr = pool.malloc(4 * UNIT).ptr
    head, tail = pool.malloc(2 * UNIT), pool.malloc(2 * UNIT - 3)
    assert (head.ptr, tail.ptr, tail.mem.size) == (ptr, ptr + 2 * UNIT, 2 * UNIT)
    assert (pool.used_bytes(), pool.free_bytes(), pool.total_bytes()) == (2048, 0, 2048)
    del head
    pool.free_all_blocks()  # half of a block cannot go
    assert (pool.used_bytes(), pool.free_bytes(), pool.n_free_blocks()) == (1024, 1024, 1)
    del tail
    assert pool.n_free_blocks() == 1 and pool.malloc(4 * UNIT).ptr == ptr
    # The smallest that fits is taken.
    small, large = pool.malloc(UNIT), pool.malloc(8 * UNIT)
    where = large.ptr
    del small, large
    assert pool.malloc(6 * UNIT).ptr == where


def test_giving_back_twice_is_harmless(pool: MemoryPool) -> None:
    mem = pool.malloc(UNIT).mem
    mem.free()
    mem.free()
    del mem
    assert pool.n_free_blocks() == 1
    zero = pool.malloc(0)
    assert (zero.mem.ptr, zero.mem.size) == (0, 0) and isinstance(zero.mem, cuda.Memory)


def test_limits(pool: MemoryPool) -> None:
    assert pool.get_limit() == 0
    pool.set_limit(size=4 * UNIT)
    kept = pool.malloc(2 * UNIT)
    with pytest.raises(memory.OutOfMemoryError, match="limit set to: 2,048 bytes") as info:
        pool.malloc(3 * UNIT)
    assert isinstance(info.value, hs.OutOfMemoryError)
    cached = pool.malloc(2 * UNIT)
    with Stream():
        del cached
        again = pool.malloc(2 * UNIT)  # what other streams left makes room
    del kept, again
    pool.set_limit()
    assert pool.get_limit() == 0
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == Device().mem_info[1] // 2
    for wrong in ({"size": -1}, {"fraction": 1.1}, {"fraction": -0.1}, {"size": 1, "fraction": 0.5}):
        with pytest.raises(ValueError):
            pool.set_limit(**wrong)


def test_no_room_on_the_device(pool: MemoryPool) -> None:
    size = Device().mem_info[1] + UNIT
    with pytest.raises(memory.OutOfMemoryError, match=f"allocating {size:,} bytes"):
        pool.malloc(size)
    with pytest.raises(memory.OutOfMemoryError, match=f"allocating {size:,} bytes"):
        cuda.MemoryAsyncPool().malloc(size)
    assert pool.malloc(UNIT).ptr


def test_garbage_collection_at_any_point_does_not_break_a_pool(pool: MemoryPool) -> None:
    class Knot:
        def __init__(self) -> None:
            self.me, self.mem = self, pool.malloc(UNIT)

    # A free-threaded CPython has no generations: each collection looks at all objects.
    rounds = 20 if sysconfig.get_config_var("Py_GIL_DISABLED") else 200

    def churn() -> None:
        for _ in range(rounds):
            Knot()
            gc.collect(0)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    gc.collect()
    assert pool.used_bytes() == 0


# -- allocators ---------------------------------------------------------------


def test_the_allocator_of_a_thread_and_of_the_process(pool: MemoryPool) -> None:
    assert cuda.get_allocator() == get_default_memory_pool().malloc
    cuda.set_allocator(pool.malloc)
    taken = cuda.alloc(10)
    assert taken.mem.size == UNIT and pool.used_bytes() == UNIT
    with cuda.using_allocator(cuda.malloc_async):
        assert isinstance(cuda.alloc(10).mem, cuda.MemoryAsync)
        assert in_thread(cuda.get_allocator) == pool.malloc
        with pytest.raises(ValueError, match="inside `using_allocator`"):
            cuda.set_allocator(pool.malloc)
        with cuda.using_allocator():
            assert type(cuda.alloc(10).mem) is cuda.Memory
        assert cuda.get_allocator() is cuda.malloc_async
    assert cuda.get_allocator() == pool.malloc
    with cuda.using_allocator(lambda size: size), pytest.raises(TypeError, match="Cannot convert int"):
        cuda.alloc(3)
    cuda.set_allocator()
    assert type(cuda.alloc(10).mem) is cuda.Memory


def test_memory_from_python_functions() -> None:
    seen: list[Any] = []

    def take(size: int, device: int) -> int:
        seen.append(("malloc", size, device))
        return cuda.runtime.malloc(size)

    def give(ptr: int, device: int) -> None:
        seen.append(("free", device))
        cuda.runtime.free(ptr)

    source = cuda.PythonFunctionAllocator(take, give)
    mem = source.malloc(100)
    assert cuda.device.from_pointer(mem.ptr).id == 0
    del mem
    assert seen == [("malloc", 100, 0), ("free", 0)]


def test_memory_from_c_functions() -> None:
    seen: list[Any] = []
    void = ctypes.c_void_p

    @ctypes.CFUNCTYPE(void, void, ctypes.c_size_t, ctypes.c_int)
    def take(param: int, size: int, device: int) -> int:
        seen.append((param, size, device))
        return cuda.runtime.malloc(size)

    @ctypes.CFUNCTYPE(None, void, void, ctypes.c_int)
    def give(param: int, ptr: int, device: int) -> None:
        seen.append((param, device))
        cuda.runtime.free(ptr)

    addresses = (ctypes.cast(function, void).value for function in (take, give))
    mem = cuda.CFunctionAllocator(7, *addresses, (take, give)).malloc(100)
    assert cuda.device.from_pointer(mem.ptr).id == 0
    del mem
    assert seen == [(7, 100, 0), (7, 0)]


# -- pinned memory ------------------------------------------------------------


@pytest.mark.row(89)
def test_pinned_pools() -> None:
    pool = PinnedMemoryPool()
    first = pool.malloc(700)
    assert (first.mem.size, first.size()) == (1024, 1024)
    ptr, block = first.ptr, first.mem
    del first, block
    assert pool.n_free_blocks() == 1
    assert pool.malloc(300).ptr != ptr  # of another size class
    again = pool.malloc(1000)
    assert again.ptr == ptr
    again.mem.free()
    again.mem.free()
    del again
    assert pool.n_free_blocks() == 2
    pool.free_all_blocks()
    assert pool.n_free_blocks() == 0
    zero = pool.malloc(0)
    assert zero.size() == 0
    del zero
    assert pool.n_free_blocks() == 0


def test_pinned_pointers_are_buffers() -> None:
    cuda.set_pinned_memory_allocator()
    p = cuda.alloc_pinned_memory(100)
    assert isinstance(p, cuda.PinnedMemoryPointer) and type(p.mem) is cuda.PinnedMemory
    view = memoryview(p).cast("B")
    view[10:13] = b"abc"
    assert memoryview(p + 10).cast("B")[:3].tobytes() == b"abc" and not memoryview(p).readonly
    assert ((p + 10).ptr, (5 + p).ptr, (p - 5).ptr, int(p)) == (p.ptr + 10, p.ptr + 5, p.ptr - 5, p.ptr)
    assert ((p + 10).size(), memoryview(p + 10).nbytes) == (90, 90)
    assert cuda.pinned_memory.is_memory_pinned(p.ptr)
    q, before = p, p.ptr
    q += 4
    assert q is p and p.ptr == before + 4
    with pytest.raises(TypeError):
        5 - p
    cuda.set_pinned_memory_allocator(lambda size: ("p", size))
    with pytest.raises(TypeError, match="Cannot convert tuple"):
        cuda.alloc_pinned_memory(5)


# -- hooks ----------------------------------------------------------------------


class Hook(cuda.MemoryHook):
    name = "Hook"

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, int]]] = []

    def __getattribute__(self, name: str) -> Any:
        if name.endswith("process"):
            return lambda **kwargs: self.seen.append((name, kwargs))
        return super().__getattribute__(name)


@pytest.mark.row(90)
def test_hooks(pool: MemoryPool) -> None:
    hook = Hook()
    with hook:
        mem = pool.malloc(10)
        ptr, ident = mem.ptr, id(mem.mem)
        del mem
    names = [name for name, _ in hook.seen]
    assert names == [
        "malloc_preprocess", "alloc_preprocess", "alloc_postprocess", "malloc_postprocess",
        "free_preprocess", "free_postprocess",
    ]  # fmt: skip
    told = dict(hook.seen)
    asked = {"device_id": 0, "size": 10, "mem_size": UNIT}
    freed = {"device_id": 0, "mem_size": UNIT, "mem_ptr": ptr, "pmem_id": ident}
    assert told["malloc_preprocess"] == asked
    assert told["alloc_preprocess"] == {"device_id": 0, "mem_size": UNIT}
    assert told["alloc_postprocess"] == {"device_id": 0, "mem_size": UNIT, "mem_ptr": ptr}
    assert told["malloc_postprocess"] == {**asked, "mem_ptr": ptr, "pmem_id": ident}
    assert told["free_preprocess"] == told["free_postprocess"] == freed
    hook.seen.clear()
    with hook:
        pool.malloc(10)  # from what the pool keeps
        in_thread(lambda: pool.malloc(10).ptr)  # hooks are a thread's own
        cuda.malloc_async(10)  # fires none
    assert [name for name, _ in hook.seen] == [names[0], *names[3:]]
    with hook, pytest.raises(KeyError, match="memory hook Hook already exists"), hook:
        pass
    assert cuda.memory_hook.get_memory_hooks() == {}


def test_the_hook_that_prints(pool: MemoryPool) -> None:
    out = io.StringIO()
    with cuda.memory_hooks.DebugPrintHook(file=out):
        mem = pool.malloc(10)
        ptr, ident = mem.ptr, id(mem.mem)
        del mem
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    common = {"device_id": 0, "mem_size": UNIT, "mem_ptr": ptr}
    assert lines == [
        {"hook": "alloc", **common},
        {"hook": "malloc", "size": 10, **common, "pmem_id": hex(ident)},
        {"hook": "free", **common, "pmem_id": hex(ident)},
    ]


def test_memory_of_a_pool_cannot_be_made_without_one(pool: MemoryPool) -> None:
    streams = [hs.Stream() for _ in range(8)]  # whose numbers a wrong argument could be
    for wrong in streams:
        with pytest.raises(TypeError, match="MemoryPool"):
            memory.PooledMemory(wrong._id, pool)
        with pytest.raises(TypeError):
            memory.PooledMemory(pool, wrong._id, 512, 0, wrong._id)  # type: ignore[call-arg]
    gc.collect()
    hs.Stream()  # closes what the collector has left
    assert not any(stream.closed for stream in streams)
