"""Who keeps memory alive that two libraries share, and for how long."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory
from halstream._core import _base, _reap
from halstream._memory._borrow import BorrowedMemory

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def settle() -> None:
    """Give back what was collected."""
    gc.collect()
    _base.drain()


@pytest.mark.needs("host")
def test_the_memory_lives_as_long_as_the_consumer_keeps_it() -> None:
    ours = hs.asarray(np.arange(1000))
    memory = weakref.ref(ours._memory)
    theirs = np.from_dlpack(ours)
    del ours
    settle()
    assert memory() is not None
    np.testing.assert_array_equal(theirs, np.arange(1000))
    del theirs
    settle()
    assert memory() is None


@pytest.mark.needs("host")
def test_the_producer_lives_as_long_as_the_array_and_its_views() -> None:
    class Watched(np.ndarray):
        pass

    theirs = np.arange(8.0).view(Watched)
    watched = weakref.ref(theirs)
    ours = hs.from_dlpack(theirs)
    part = ours[2:4]
    del theirs, ours
    settle()
    assert watched() is not None
    np.testing.assert_array_equal(part.numpy(), [2.0, 3.0])
    del part
    settle()
    assert watched() is None


@pytest.mark.needs("host")
def test_a_borrowed_tensor_is_released_after_the_work_on_it_and_not_before(hold: Hold) -> None:
    class Watched(np.ndarray):
        pass

    theirs = np.zeros(4).view(Watched)
    watched = weakref.ref(theirs)
    ours = hs.from_dlpack(theirs)
    target = hs.empty(4, theirs.dtype)  # of a device: a copy within host memory would wait
    s = hs.Stream()
    gate = hold(s)
    ours.copy_to(target, s)
    del theirs, ours
    settle()
    assert watched() is not None
    gate.open()
    s.synchronize(timeout=LIMIT)
    settle()
    assert watched() is None


def test_a_capsule_that_is_never_consumed_frees_the_memory() -> None:
    ours = hs.zeros(3)
    memory = weakref.ref(ours._memory)
    capsule = ours.__dlpack__()
    del ours
    settle()
    assert memory() is not None
    del capsule
    settle()
    assert memory() is None


@pytest.mark.needs("host")
def test_tensors_that_share_memory_can_be_borrowed_together() -> None:
    theirs = np.zeros(8)
    whole, part = hs.from_dlpack(theirs), hs.from_dlpack(theirs[2:6])
    part.fill(1.0)
    hs.synchronize()
    del whole
    settle()
    part.fill(2.0)
    hs.synchronize()
    np.testing.assert_array_equal(theirs, [0, 0, 2, 2, 2, 2, 0, 0])
    address = part.ptr
    assert _memory.lookup(address)[0] == _memory.PINNED
    del part
    settle()
    assert _memory.lookup(address)[0] == _memory.PAGEABLE


@pytest.mark.needs("host")
def test_a_tensor_that_sticks_out_of_borrowed_memory_is_copied() -> None:
    theirs = np.arange(8.0)
    middle = hs.from_dlpack(theirs[2:6])
    with pytest.raises(BufferError, match="overlaps memory"):
        hs.from_dlpack(theirs[4:], copy=False)
    end = hs.from_dlpack(theirs[4:])
    middle.fill(0.0)
    hs.synchronize()
    np.testing.assert_array_equal(end.numpy(), [4, 5, 6, 7])


@pytest.mark.needs("host")
def test_exported_memory_cannot_be_freed() -> None:
    for memory in (_memory.DeviceMemory(64), _memory.PinnedMemory(64), _memory.PooledMemory(64, hs.Stream())):
        view = np.from_dlpack(memory)
        assert view.dtype == np.uint8 and view.shape == (64,)
        with pytest.raises(BufferError, match="still uses"):
            memory.free()
        view[:] = 1
        del view
        gc.collect()
        memory.free()
        with pytest.raises(BufferError, match="was freed"):
            memory.__dlpack__()


@pytest.mark.needs("host")
def test_a_consumer_may_give_a_tensor_back_on_any_thread() -> None:
    arrays = [hs.zeros(16) for _ in range(64)]
    memories = [weakref.ref(array._memory) for array in arrays]
    views = [np.from_dlpack(array) for array in arrays for _ in range(4)]
    del arrays
    threads = [threading.Thread(target=lambda part=views[i::8]: part.clear()) for i in range(8)]
    for thread in threads:
        thread.start()
    views.clear()
    for thread in threads:
        thread.join(LIMIT)
    del threads, thread
    settle()
    assert not any(memory() for memory in memories) and not _reap.lent


@pytest.mark.needs("host")
def test_borrowed_memory_can_be_released_explicitly() -> None:
    class Watched(np.ndarray):
        pass

    theirs = np.zeros(4).view(Watched)
    watched = weakref.ref(theirs)
    memory = hs.from_dlpack(theirs)._memory
    assert isinstance(memory, BorrowedMemory)
    del theirs
    memory.free()
    memory.free()
    settle()
    assert watched() is None
