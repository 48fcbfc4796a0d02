"""Each kernel has one buffer for its arguments, on whatever streams it is launched.

Seen: kernels that ran with the arguments of another launch once the same kernel
was used on two streams: the second launch copied its arguments over those that
the first was still reading (Genesis-Embodied-AI/quadrants #649).
Missing: a wait for the launch before.
Passes by luck: the first launch was enqueued first, on an idle stream.
"""

from __future__ import annotations

import halstream as hs

from ._host import LIMIT, N, device_numbers, parse, pinned_numbers, rest


class _Kernel:
    """Writes its argument to its result; arguments that did not change stay where they are."""

    def __init__(self, argument: int) -> None:
        self.argument = argument
        self.buffer = device_numbers(argument)
        self.staged = pinned_numbers(0)

    def launch(self, argument: int, result: hs.Array, stream: hs.Stream) -> None:
        """Run on a stream."""
        if argument != self.argument:
            hs.host_access(self.staged, "w")
            self.staged[:] = argument
            self.argument = argument
            self.buffer.copy_from(self.staged, stream)
        result.copy_from(self.buffer, stream)


def _run(ordered: bool) -> None:
    kernel = _Kernel(1)
    first, second = hs.Stream(), hs.Stream()
    one, two = device_numbers(0), device_numbers(0)
    try:
        kernel.launch(1, one, first)
        parse()
        if ordered:
            second.wait(first)
        kernel.launch(2, two, second)
        second.synchronize(timeout=LIMIT)
        assert one.numpy(first).tolist() == [1] * N
        assert two.numpy(second).tolist() == [2] * N
    finally:
        rest(first, second)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
