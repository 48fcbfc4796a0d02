"""Memory of the host that other libraries share: who keeps it registered."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory
from halstream._core import _reap

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]


def settle() -> None:
    """End the shares of arrays that were collected."""
    gc.collect()
    _reap.drain()


def pinned(address: int) -> bool:
    return _memory.lookup(address)[0] == _memory.PINNED


def test_M21_memory_is_registered_until_its_last_share_ends() -> None:
    theirs = np.zeros(8)
    address = theirs.ctypes.data
    whole, part = hs.from_dlpack(theirs), hs.from_dlpack(theirs[2:6])
    del whole
    settle()
    assert pinned(address)
    del part
    settle()
    assert not pinned(address)


def test_M21_the_program_does_not_unregister_what_is_only_shared() -> None:
    theirs = np.zeros(8)
    address = theirs.ctypes.data
    ours = hs.from_dlpack(theirs)
    with pytest.raises(hs.InvalidValueError, match="shared host memory, not memory that the program registered"):
        _memory.unregister(address)
    assert pinned(address)
    del ours
    settle()
    assert not pinned(address)


def test_M21_unregistered_memory_stays_registered_while_it_is_shared() -> None:
    theirs = np.zeros(8)
    address = theirs.ctypes.data
    _memory.register(address, theirs.nbytes)
    ours = hs.from_dlpack(theirs)
    _memory.unregister(address)
    assert pinned(address)
    with pytest.raises(hs.InvalidValueError):
        _memory.unregister(address)
    del ours
    settle()
    assert not pinned(address)


def test_M21_the_end_of_a_share_leaves_what_the_program_registered() -> None:
    theirs = np.zeros(8)
    address = theirs.ctypes.data
    ours = hs.from_dlpack(theirs)
    _memory.register(address, theirs.nbytes)
    del ours
    settle()
    assert pinned(address)
    _memory.unregister(address)
    assert not pinned(address)


def test_M21_work_that_is_enqueued_after_the_array_is_collected_ends_first(hold: Hold) -> None:
    theirs = np.full(100_000, 1, np.uint8)
    ours, target = hs.from_dlpack(theirs), hs.empty(100_000, np.uint8)
    s = hs.Stream()
    gate = hold(s)
    del ours
    gc.collect()
    target.copy_from(theirs, s)  # the share has not ended yet, so this does not wait
    settle()
    gate.open()
    s.synchronize(timeout=LIMIT)
    settle()
    assert (target.numpy(s) == 1).all()
    assert not pinned(theirs.ctypes.data)
