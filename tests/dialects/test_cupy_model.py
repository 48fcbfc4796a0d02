"""cupy.cuda: any nesting of ``use`` and ``with``, against a model of the package's rules.

The model is the package's: for every device a slot with the current stream and
a stack whose bottom is the default stream; ``use`` writes the slot only, leaving
a ``with`` writes what is then on top of the stack of the device it was entered on.
"""

from __future__ import annotations

from typing import Any

import pytest
from halstream._core import _current
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Stream, get_current_stream
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.dialect("cupy")

DEVICES = 2


class Model:
    """The package's state of one thread."""

    def __init__(self) -> None:
        self.device = 0
        self.slots: list[Any] = [Stream.null] * DEVICES
        self.stacks: list[list[Any]] = [[Stream.null] for _ in range(DEVICES)]
        self.open: list[tuple[str, int]] = []  # what was entered, and what its exit needs

    def fits(self, stream: Any) -> bool:
        return stream.device_id in (-1, self.device)

    def enter_stream(self, stream: Any) -> None:
        self.stacks[self.device].append(stream)
        self.slots[self.device] = stream
        self.open.append(("stream", self.device))

    def enter_device(self, device: int) -> None:
        self.open.append(("device", self.device))
        self.device = device

    def leave(self) -> None:
        kind, value = self.open.pop()
        if kind == "device":
            self.device = value
        else:
            self.stacks[value].pop()
            self.slots[value] = self.stacks[value][-1]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["use", "with"]), st.integers(0, 5)),
        st.tuples(st.sampled_from(["use device", "with device"]), st.integers(0, DEVICES - 1)),
        st.tuples(st.just("leave"), st.just(0)),
    ),
    max_size=25,
)


@given(operations=OPERATIONS)
@settings(max_examples=300, deadline=None)
def test_current_device_and_streams_follow_the_model(
    operations: list[tuple[str, int]],
) -> None:
    _current.reset()
    streams = [Stream.null, Stream.ptds, Stream(), Stream()]
    with Device(1):
        streams += [Stream(), Stream()]
    model = Model()
    entered: list[Any] = []

    def agree() -> None:
        assert cuda.get_device_id() == model.device
        assert [get_current_stream(n) for n in range(DEVICES)] == model.slots
        assert get_current_stream() is model.slots[model.device]

    for name, number in [*operations, *[("leave", 0)] * len(operations)]:
        if name == "leave":
            if entered:
                entered.pop().__exit__()
                model.leave()
        elif name == "use device":
            Device(number).use()
            model.device = number
        elif name == "with device":
            entered.append(Device(number).__enter__())
            model.enter_device(number)
        elif not model.fits(streams[number]):
            with pytest.raises(RuntimeError):
                streams[number].use() if name == "use" else streams[number].__enter__()
        elif name == "use":
            model.slots[model.device] = streams[number].use()
        else:
            entered.append(streams[number].__enter__())
            model.enter_stream(streams[number])
        agree()
