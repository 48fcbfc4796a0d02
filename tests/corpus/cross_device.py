"""A copy to another device, and nothing that tells the other device of it.

Seen: layers split over two devices that read what had not arrived: the copy is
in the order of the stream it was enqueued on, which is the sender's
(flagos-ai/Torch-FL #281; early discussion in torch/cutorch #212, memory handed
out too early in pytorch/pytorch #15568).
Missing: the receiver's stream does not wait for the sender's.
Passes by luck: the copy was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream.torch import cuda

from ._host import Host, N, rest


def _run(ordered: bool) -> None:
    host = Host()
    sender, receiver = cuda.Stream(device=0), cuda.Stream(device=1)
    activations = host.numbers(4)
    arrived, out = host.numbers(0, device=1), host.numbers(0, device=1)
    try:
        host.parse()
        arrived.copy_from(activations, sender)
        host.step()
        if ordered:
            receiver.wait_stream(sender)
        out.copy_from(arrived, receiver)
        assert out.numpy(receiver).tolist() == [4] * N
    finally:
        rest(sender, receiver)


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
