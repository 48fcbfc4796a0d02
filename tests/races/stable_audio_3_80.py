"""An engine runs on a stream of its own, beside the cast that makes its input.

Source: Stability-AI/stable-audio-3#80.
Seen: inputs were cast on the current stream, and the engine started on its private one, which was synchronized
afterwards. That makes the output safe to read and does nothing for the input: wrong audio without an error.
Must be found: the cast on the default stream beside the engine's read.
"""

from __future__ import annotations

import torch


class Engine:
    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()

    def execute(self, latent: torch.Tensor, output: torch.Tensor) -> None:
        with torch.cuda.stream(self.stream):
            torch.mul(latent, 2, out=output)


def _run(ordered: bool) -> None:
    engine = Engine()
    noise, output = torch.ones(256, dtype=torch.float16, device="cuda"), torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    latent = noise.float()
    if ordered:
        engine.stream.wait_stream(torch.cuda.current_stream())
    engine.execute(latent, output)
    engine.stream.synchronize()
    assert output.sum().item() == 512
    torch.cuda.synchronize()


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
