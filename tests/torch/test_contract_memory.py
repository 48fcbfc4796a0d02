"""The rules for copies and memory of the real torch on the host device."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream.testing import Gate
from stream_help import waits

Hold = Callable[[Any], Gate]


@pytest.mark.parametrize("there", [True, False])
def test_F6_a_copy_of_pinned_memory_returns_at_once(torch: Any, held: Hold, there: bool) -> None:
    pinned = torch.arange(4.0).pin_memory()
    x = torch.full((4,), 7.0, device="cuda")
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    if there:
        y = pinned.to("cuda", non_blocking=True)
        pinned.fill_(5)  # too early: the copy will see it
    else:
        y = torch.zeros(4).pin_memory()
        y.copy_(x, non_blocking=True)
        assert y.tolist() == [0, 0, 0, 0]
    gate.open()
    torch.cuda.synchronize()
    assert y.tolist() == ([5, 5, 5, 5] if there else [7, 7, 7, 7])


def test_F6_a_copy_from_pageable_memory_takes_the_values_at_the_call(torch: Any, held: Hold) -> None:
    source = torch.arange(4.0)
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    y = source.to("cuda", non_blocking=True)
    source.fill_(9)
    gate.open()
    assert y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("how", ["to pageable", "blocking to pinned", "blocking from pinned"])
def test_F6_other_copies_return_when_they_are_done(torch: Any, held: Hold, how: str) -> None:
    pinned, x = torch.zeros(4).pin_memory(), torch.ones(4, device="cuda")
    pageable = torch.zeros(4)
    copies: dict[str, Callable[[], Any]] = {
        "to pageable": lambda: pageable.copy_(x, non_blocking=True),
        "blocking to pinned": lambda: pinned.copy_(x),
        "blocking from pinned": lambda: x.copy_(pinned),
    }
    torch.cuda.synchronize()
    gate = held(torch.cuda.default_stream())
    done: list[bool] = []

    def copy() -> None:
        copies[how]()
        done.append(torch.cuda.default_stream().query())

    thread = threading.Thread(target=copy)
    thread.start()
    assert waits(thread)
    gate.open()
    thread.join(20)
    assert done == [True]


def test_F7_a_dropped_block_is_given_out_again_on_its_stream_at_once(torch: Any, held: Hold) -> None:
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    gate = held(s)
    with torch.cuda.stream(s):
        x = torch.zeros(4096, device="cuda")
        address = x.data_ptr()
        x += 1
    del x
    other = torch.zeros(4096, device="cuda")
    assert other.data_ptr() != address  # its stream has not run what used the block
    with torch.cuda.stream(s):
        y = torch.zeros(4096, device="cuda")
    assert y.data_ptr() == address
    gate.open()
    s.synchronize()
    assert float(y.sum()) == 0


def test_F7_a_recorded_stream_has_to_end_first(torch: Any, held: Hold) -> None:
    s = torch.cuda.Stream()
    x = torch.zeros(4096, device="cuda")
    torch.cuda.synchronize()
    gate = held(s)
    with torch.cuda.stream(s):
        y = x + 1
    x.record_stream(s)
    address = x.data_ptr()
    del x
    others = [torch.full((4096,), 5.0, device="cuda") for _ in range(3)]
    assert address not in [other.data_ptr() for other in others]
    gate.open()
    s.synchronize()
    assert float(y.sum()) == 4096


def test_F8_pinned_memory_in_use_by_a_copy_is_not_given_out(torch: Any, held: Hold) -> None:
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    gate = held(s)
    pinned = torch.ones(4096).pin_memory()
    address = pinned.data_ptr()
    with torch.cuda.stream(s):
        y = pinned.to("cuda", non_blocking=True)
    del pinned
    gc.collect()
    others = [torch.zeros(4096).pin_memory() for _ in range(3)]
    assert address not in [other.data_ptr() for other in others]
    gate.open()
    s.synchronize()
    assert float(y.sum()) == 4096


@pytest.mark.parametrize("held_device", [0, 1])
def test_F10_a_copy_between_devices_waits_for_both_streams(torch: Any, held: Hold, held_device: int) -> None:
    x, y = torch.ones(4, device="cuda:0"), torch.zeros(4, device="cuda:1")
    for device in (0, 1):
        torch.cuda.synchronize(device)
    gate = held(torch.cuda.default_stream(held_device))
    y.copy_(x, non_blocking=True)
    for device in (0, 1):
        with pytest.raises(hs.StallError, match="gate"):
            torch.cuda.default_stream(device).synchronize()
    gate.open()
    assert y.tolist() == [1, 1, 1, 1]
