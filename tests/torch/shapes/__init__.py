"""Programs of the real torch with a wait missing: each is one function, which also runs with it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["SHAPES"]

Program = Callable[[Any, bool], None]
SHAPES: list[Program] = []


def shape(function: Program) -> Program:
    """List a program."""
    SHAPES.append(function)
    return function


@shape
def batch_by_a_copy_stream(torch: Any, ordered: bool) -> None:
    """The next batch comes on a stream of its own."""
    copies, weight = torch.cuda.Stream(), torch.ones(64, device="cuda")
    torch.cuda.synchronize()
    batch = torch.full((64,), 3.0).pin_memory()
    with torch.cuda.stream(copies):
        inputs = batch.to("cuda", non_blocking=True)
    if ordered:
        torch.cuda.current_stream().wait_stream(copies)
    print((weight * inputs).sum().item())


@shape
def tensor_without_record_stream(torch: Any, ordered: bool) -> None:
    """A tensor of the main stream is dropped while the side stream reads it."""
    side, out = torch.cuda.Stream(), torch.zeros(1024, device="cuda")
    x = torch.ones(1024, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        out.add_(x)
    if ordered:
        x.record_stream(side)
    del x
    y = torch.full((1024,), 9.0, device="cuda")
    torch.cuda.synchronize()
    print(out.sum().item(), y.sum().item())


@shape
def loss_read_too_early(torch: Any, ordered: bool) -> None:
    """A loss is copied to the host without blocking and printed."""
    loss = torch.full((256,), 2.0, device="cuda")
    host = loss.to("cpu", non_blocking=True)
    if ordered:
        torch.cuda.synchronize()
    print(host.sum())


@shape
def pinned_batch_refilled(torch: Any, ordered: bool) -> None:
    """One pinned buffer for all batches, without a wait for the copy of the last one."""
    staging, outs = torch.empty(256).pin_memory(), []
    for step in range(3):
        if step == 2 or ordered:
            torch.cuda.synchronize()
        staging.fill_(float(step))
        outs.append(staging.to("cuda", non_blocking=True))
    print([out.sum().item() for out in outs])


@shape
def event_recorded_too_early(torch: Any, ordered: bool) -> None:
    """The event stands before the last operator."""
    one, two, event = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()
    x = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        x.add_(1)
        event.record()
        x.mul_(3)
        if ordered:
            event.record()
    two.wait_event(event)
    with torch.cuda.stream(two):
        print(x.sum().item())


@shape
def views_that_overlap(torch: Any, ordered: bool) -> None:
    """Two slices of one tensor share an element."""
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        x[:32].fill_(1)
    with torch.cuda.stream(two):
        x[32 if ordered else 31 :].fill_(2)
    torch.cuda.synchronize()


@shape
def columns_of_one_matrix(torch: Any, ordered: bool) -> None:
    """Even and odd columns, or even columns twice."""
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.zeros(8, 8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        x[:, ::2].fill_(1)
    with torch.cuda.stream(two):
        x[:, 1 if ordered else 0 :: 2].fill_(2)
    torch.cuda.synchronize()


@shape
def optimizer_on_its_own_stream(torch: Any, ordered: bool) -> None:
    """The step runs on another stream than the backward pass."""
    side, layer = torch.cuda.Stream(), torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    torch.cuda.synchronize()
    layer(torch.ones(4, 8, device="cuda")).sum().backward()
    if ordered:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        optimizer.step()
    side.synchronize()


@shape
def double_buffer_with_a_turn_missing(torch: Any, ordered: bool) -> None:
    """Two buffers; in the fourth turn the loader does not wait for the use."""
    loader, main = torch.cuda.Stream(), torch.cuda.current_stream()
    buffers = [torch.zeros(256, device="cuda") for _ in range(2)]
    sources = [torch.full((256,), float(i)).pin_memory() for i in range(5)]
    used = [torch.cuda.Event() for _ in range(2)]
    loader.wait_stream(main)
    for turn, source in enumerate(sources):
        slot = turn % 2
        with torch.cuda.stream(loader):
            if turn != 3 or ordered:
                loader.wait_event(used[slot])
            buffers[slot].copy_(source, non_blocking=True)
        main.wait_stream(loader)
        buffers[slot].sum()
        used[slot].record(main)
    torch.cuda.synchronize()


@shape
def diamond_joined_on_one_side(torch: Any, ordered: bool) -> None:
    """Two branches, and the sum waits for one."""
    main, left, right = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.ones(64, device="cuda")
    a, b = torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
    left.wait_stream(main)
    right.wait_stream(main)
    with torch.cuda.stream(left):
        a.add_(x)
    with torch.cuda.stream(right):
        b.add_(x)
    main.wait_stream(left)
    if ordered:
        main.wait_stream(right)
    print((a + b).sum().item())


@shape
def copy_to_the_second_device(torch: Any, ordered: bool) -> None:
    """A copy between devices is ordered with the current streams of both, and the work is on another one."""
    x, out = torch.zeros(64, device="cuda:0"), torch.zeros(64, device="cuda:1")
    compute = torch.cuda.Stream(device="cuda:0")
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    with torch.cuda.stream(compute):
        x.add_(2)
    if ordered:
        torch.cuda.current_stream(0).wait_stream(compute)
    out.copy_(x, non_blocking=True)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)


@shape
def queue_between_two_threads(torch: Any, ordered: bool) -> None:
    """A loader thread puts a tensor into a queue without its event."""
    items: queue.Queue[Any] = queue.Queue()
    torch.cuda.synchronize()

    def load() -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.full((64,), 5.0, device="cuda")
            event = stream.record_event()
        items.put((x, event))

    thread = threading.Thread(target=load)
    thread.start()
    x, event = items.get(timeout=20)
    thread.join(20)
    if ordered:
        torch.cuda.current_stream().wait_event(event)
    print(x.sum().item())


@shape
def in_place_under_a_reader(torch: Any, ordered: bool) -> None:
    """A running mean is updated while a stream copies the last one away."""
    side, mean = torch.cuda.Stream(), torch.ones(256, device="cuda")
    kept = torch.empty(256).pin_memory()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kept.copy_(mean, non_blocking=True)
    if ordered:
        torch.cuda.current_stream().wait_stream(side)
    mean.mul_(0.9)
    torch.cuda.synchronize()


@shape
def gradient_read_on_another_stream(torch: Any, ordered: bool) -> None:
    """The norm of a gradient is taken beside the stream that has just computed it."""
    side, layer = torch.cuda.Stream(), torch.nn.Linear(64, 64).cuda()
    torch.cuda.synchronize()
    layer(torch.ones(8, 64, device="cuda")).sum().backward()
    if ordered:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        norm = layer.weight.grad.norm()
    torch.cuda.synchronize()
    print(norm.item())
