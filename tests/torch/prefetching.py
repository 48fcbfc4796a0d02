"""A training loop with a prefetcher of the kind that apex made popular, and the same with its wait deleted."""

from __future__ import annotations

from typing import Any

STEPS = 4


class Prefetcher:
    """Copies the next batch on a stream of its own while the current one is worked on."""

    def __init__(self, torch: Any, batches: list[Any], wait: bool = True) -> None:
        self.torch = torch
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.wait = wait
        self.preload()

    def preload(self) -> None:
        batch = next(self.batches, None)
        if batch is None:
            self.batch = None
            return
        with self.torch.cuda.stream(self.stream):
            self.batch = batch.cuda(non_blocking=True)
            self.batch = self.batch.float().sub_(0.5).mul_(2)

    def next(self) -> Any:
        if self.wait:
            self.torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is not None:
            batch.record_stream(self.torch.cuda.current_stream())
        self.preload()
        return batch


def batches(torch: Any, seed: int = 3) -> list[Any]:
    """Return pinned batches, the same ones every time."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(16, 8, generator=generator).pin_memory() for _ in range(STEPS)]


def train(torch: Any, wait: bool = True, device: str = "cuda", seed: int = 3) -> list[float]:
    """Return the losses of a few steps of a small network."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    if device == "cpu":
        stream = ((batch.float().sub_(0.5).mul_(2)) for batch in batches(torch, seed))
        following = lambda: next(stream, None)  # noqa: E731
    else:
        following = Prefetcher(torch, batches(torch, seed), wait).next
    while (batch := following()) is not None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]
