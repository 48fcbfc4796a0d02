"""What torch's objects are to the runtime: streams, events and memory, for reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["of"]

_CUDA = 1  # the type of device of a stream


def of(torch: Any, module: Any) -> tuple[Callable[[type], bool], Callable[[Any], tuple[str, int]]]:
    """Return whether a class is one of such objects, and what an object is with its number, '' for none.

    An event has the number 0 until it is recorded: waits for it are allowed, and pass.

    No code of the program runs for it: a subclass of the tensor, a subclass that gives the names of a stream another
    meaning, and modes, which follow what is done with tensors, may run some for Python's own names.
    """
    tensors = torch.Tensor, torch.nn.Parameter
    type_of, device_of, stream_of = (
        getattr(torch.Stream, name).__get__ for name in ("device_type", "device_index", "stream_id")
    )
    event_of = torch.Event.event_id.__get__

    def is_object(one: type) -> bool:
        return one in tensors or issubclass(one, (torch.Stream, torch.Event))

    def number_of(one: Any) -> tuple[str, int]:
        kind = type(one)
        if kind in tensors:
            address = module.address_of_tensor(one)
            return ("memory", address) if address else ("", 0)
        if issubclass(kind, torch.Stream):
            if type_of(one) != _CUDA:
                return "", 0
            return "stream", module.runtime_stream(device_of(one), stream_of(one))
        return "event", event_of(one)

    return is_object, number_of
