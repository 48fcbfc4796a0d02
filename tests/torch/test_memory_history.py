"""torch.cuda.memory._record_memory_history: events, stacks and metadata in snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Child

SIZE = 311 * 411 * 4


@pytest.fixture
def record(torch: Any) -> Iterator[Callable[..., None]]:
    """Return the function that switches recording on; it is off after the test."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    yield torch.cuda.memory._record_memory_history
    torch.cuda.memory._record_memory_history(None)


def test_F18_a_block_in_use_has_the_stack_of_its_allocation(torch: Any, record: Callable[..., None]) -> None:
    record("state", stacks="python")
    x = torch.rand(311, 411, device="cuda")
    blocks = [b for s in torch.cuda.memory._snapshot()["segments"] for b in s["blocks"] if b["requested_size"] == SIZE]
    (block,) = blocks
    assert block["address"] == x.untyped_storage().data_ptr()
    assert block["frames"][0]["filename"] == __file__
    assert block["frames"][0]["name"] == "test_F18_a_block_in_use_has_the_stack_of_its_allocation"
    assert torch._C._cuda_allocationTraceback(block["address"]) == block["frames"]


@pytest.mark.parametrize("context", ["state", "alloc", "all", None])
def test_F18_the_context_says_which_events_have_a_stack(torch: Any, record: Callable[..., None], context: Any) -> None:
    def make() -> Any:
        return torch.rand(3110, 4110, device="cuda")  # a segment of its own, which empty_cache can free

    def drop(tensors: list[Any]) -> None:
        tensors.clear()

    record(context=context)
    drop([make()])
    torch.cuda.synchronize()  # memory that pending work uses is not given back
    torch.cuda.empty_cache()
    (events, _) = torch.cuda.memory._snapshot()["device_traces"]
    text = json.dumps(events)
    events = [event for event in events if event["action"] != "segment_alloc"]
    assert [event["action"] for event in events[:3]] == ["alloc", "free_requested", "free_completed"]
    assert {event["action"] for event in events[3:]} <= {"segment_free"}
    assert {event["size"] for event in events[:3]} == {SIZE * 100}
    assert ('"make"' in text) == (context in ("alloc", "all"))
    assert ('"drop"' in text) == ('"empty_cache"' in text) == (context == "all")


def test_F18_a_segment_that_an_allocation_adds_is_an_event_before_it(torch: Any, record: Callable[..., None]) -> None:
    record(context="alloc")

    def grow() -> Any:
        return torch.rand(4096, 4096, device="cuda")

    large = grow()
    del large
    again = grow()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    (segment,) = [event for event in events if event["action"] == "segment_alloc"]
    assert events.index(segment) < min(i for i, event in enumerate(events) if event["action"] == "alloc")
    assert segment["addr"] <= again.data_ptr() < segment["addr"] + segment["size"]
    assert segment["frames"][0]["name"] == "grow"


def test_a_profiler_sees_the_memory_of_the_device(program: Child) -> None:
    # In a process of its own: the profiler leaves a thread that looks for requests for ever.
    done = program(
        """
        import halstream.torch.cuda_on_host, torch

        with torch.profiler.profile(profile_memory=True) as profiled:
            x = torch.zeros(1000, device="cuda")
            del x
        events = profiled.profiler.kineto_results.events()
        changes = [event for event in events if event.name() == "[memory]" and event.device_type().name == "CUDA"]
        assert [event.nbytes() for event in changes] == [4096, -4096], changes
        assert sum(event.device_memory_usage for event in profiled.events() if event.name == "aten::empty") == 4096
        """
    )
    assert done.returncode == 0, done.stderr


def test_F18_actions_metadata_and_the_number_of_events(torch: Any, record: Callable[..., None]) -> None:
    torch.rand(8, device="cuda")  # the memory of the events below is there
    record(skip_actions=["free_requested"], max_entries=3)
    torch._C._cuda_setMemoryMetadata("a step")
    try:
        for _ in range(4):
            torch.rand(8, device="cuda")
    finally:
        torch._C._cuda_setMemoryMetadata("")
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    assert [event["action"] for event in events] == ["free_completed", "alloc", "free_completed"]
    assert {event["user_metadata"] for event in events} == {"a step"}
    assert torch._C._cuda_isHistoryEnabled()


def test_F18_recording_ends(torch: Any, record: Callable[..., None]) -> None:
    record()
    torch.rand(8, device="cuda")
    record(None)
    torch.rand(8, device="cuda")
    assert torch.cuda.memory._snapshot()["device_traces"] == [[], []]
    assert not torch._C._cuda_isHistoryEnabled()
    with pytest.raises(RuntimeError, match="expected state to be"):
        record("everything")
