"""Each kernel has one buffer for its arguments, on whatever streams it is launched.

Seen: kernels that ran with the arguments of another launch once the same kernel
was used on two streams: the second launch copied its arguments over those that
the first was still reading (Genesis-Embodied-AI/quadrants #649).
Missing: a wait for the launch before.
Passes by luck: the first launch was enqueued first, on an idle stream.
"""

from __future__ import annotations

import halstream as hs

from ._host import LIMIT, Host, N, pinned_numbers, rest


class _Kernel:
    """Writes its argument to its result; arguments that did not change stay where they are."""

    def __init__(self, host: Host, argument: int) -> None:
        self.argument = argument
        self.buffer = host.numbers(argument)
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
    host = Host()
    kernel = _Kernel(host, 1)
    first, second = hs.Stream(), hs.Stream()
    one, two = host.numbers(0), host.numbers(0)
    try:
        host.parse()
        kernel.launch(1, one, first)
        host.step()
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
