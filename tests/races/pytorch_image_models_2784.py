"""A loader's stream overwrites the batch before, which the model still reads.

Source: huggingface/pytorch-image-models#2784.
Seen: batches are made on the loader's stream and read on the model's. When the model drops one, its memory is free
for the loader's stream at once. A wait for the consumer before each batch repairs it.
Must be found: the model's read beside the next batch in the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch


def batches(ordered: bool) -> Iterator[torch.Tensor]:
    loader, consumer = torch.cuda.Stream(), torch.cuda.current_stream()
    for value in (1.0, 2.0):
        image = torch.full((4096,), value).pin_memory()
        if ordered:
            loader.wait_stream(consumer)
        with torch.cuda.stream(loader):
            batch = image.to("cuda", non_blocking=True)
        consumer.wait_stream(loader)
        yield batch
        del batch


def _run(ordered: bool) -> None:
    outputs = []
    for batch in batches(ordered):
        outputs.append(batch * 3)
        del batch
    torch.cuda.synchronize()
    assert [output.sum().item() for output in outputs] == [12288, 24576]


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
