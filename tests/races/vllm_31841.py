"""One pinned mask for all steps is rewritten while the last step's copy reads it.

Source: vllm-project/vllm#31841.
Seen: with asynchronous scheduling of models that read images, the mask of the next step was written into the
buffer that the copy of the last step was still reading. The engine crashed now and then; two buffers repair it.
Must be found: the copy to the device beside the host's next write.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    masks = [torch.zeros(256, pin_memory=True) for _ in range(2 if ordered else 1)]
    on_device = [torch.zeros(256, device="cuda") for _ in range(2)]
    torch.cuda.synchronize()
    for step in range(2):
        mask = masks[step % len(masks)]
        mask.fill_(step + 1.0)
        on_device[step].copy_(mask, non_blocking=True)
    torch.cuda.synchronize()
    assert [mask.sum().item() for mask in on_device] == [256, 512]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
