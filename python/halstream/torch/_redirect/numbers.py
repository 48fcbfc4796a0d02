"""What torch's objects are to the runtime: streams, events and memory, for reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["of"]


def of(torch: Any, module: Any) -> tuple[Callable[[type], bool], Callable[[Any], tuple[str, int]]]:
    """Return whether a class is one of such objects, and what an object is with its number, '' for none."""
    tensors = torch.Tensor, torch.nn.Parameter

    def is_object(one: type) -> bool:
        # A subclass of the tensor may run code for each question.
        return one in tensors or issubclass(one, (torch.Stream, torch.Event))

    def number_of(one: Any) -> tuple[str, int]:
        if isinstance(one, torch.Stream):
            return (
                ("stream", module.runtime_stream(one.device_index, one.stream_id)) if one.device_type == 1 else ("", 0)
            )
        if isinstance(one, torch.Event):
            return ("event", one.event_id) if one.event_id else ("", 0)
        return ("memory", one.data_ptr()) if one.is_cuda or one.is_pinned() else ("", 0)

    return is_object, number_of
