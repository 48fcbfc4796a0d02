"""Two streams of an input pipeline work on one cache without an order.

Source: meta-pytorch/torchrec#4191.
Seen: the prefetch of a batch fills a cache of embeddings, and the distribution of the batch after it works on the
same cache on a stream of its own. Embeddings were garbage, or accesses illegal, in jobs that ran for days.
Must be found: the prefetch beside the distribution of the next batch.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    prefetch, data_dist = torch.cuda.Stream(), torch.cuda.Stream()
    cache = torch.zeros(64, 8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(prefetch):
        cache[:32].fill_(1.0)
    if ordered:
        data_dist.wait_stream(prefetch)
    with torch.cuda.stream(data_dist):
        cache.mul_(2)
    torch.cuda.synchronize()
    assert cache.sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
