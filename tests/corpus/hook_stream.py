"""A hook scales gradients on a side stream, and the communication waits for the main one.

Seen: gradients that were reduced before they were scaled: an object made inside
a stream context kept that stream, and its hook ran there in every backward pass
(NVIDIA/Megatron-LM #3670).
Missing: the communication's stream does not wait for the hook's.
Passes by luck: the hook's work was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import LIMIT, N, device_numbers, parse, rest


def _run(ordered: bool) -> None:
    main, hook, communication = cuda.Stream(), cuda.Stream(), cuda.Stream()
    gradient, scaled, reduced = device_numbers(0), device_numbers(5), device_numbers(0)
    try:
        gradient.fill(10, main)
        main.synchronize(timeout=LIMIT)  # the norm of the gradients is logged
        gradient.copy_from(scaled, hook)
        parse()
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
