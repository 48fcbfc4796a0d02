"""A hook scales gradients on a side stream, and the communication waits for the main one.

Seen: gradients that were reduced before they were scaled: an object made inside
a stream context kept that stream, and its hook ran there in every backward pass
(NVIDIA/Megatron-LM #3670).
Missing: the communication's stream does not wait for the hook's.
Passes by luck: the hook's work was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    main, hook, communication = cuda.Stream(), cuda.Stream(), cuda.Stream()
    gradient, scaled, reduced = host.numbers(0), host.numbers(5), host.numbers(0)
    try:
        gradient.fill(10, main)
        main.synchronize(timeout=LIMIT)  # the norm of the gradients is logged
        host.parse()
        gradient.copy_from(scaled, hook)
        host.step()
        communication.wait_stream(main)
        if ordered:
            communication.wait_stream(hook)
        reduced.copy_from(gradient, communication)
        assert reduced.numpy(communication).tolist() == [5] * N
    finally:
        rest(main, hook, communication)


def broken() -> None:
    """Run with a wait for the main stream only."""
    _run(ordered=False)


def fixed() -> None:
    """Run with a wait for the hook's stream, too."""
    _run(ordered=True)
