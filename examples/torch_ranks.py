"""Four ranks that average gradients beside the backward pass, on a machine without a GPU.

Usage:
    halstream run --torch --sanitize -m torch.distributed.run --standalone --nproc-per-node=4 \\
        examples/torch_ranks.py [FAULT]

Without FAULT all is ordered. With `wait` the optimizer does not wait for the stream that averages: each rank may use
gradients of its own, which the report says once for all ranks, with the line. With `bucket` the last rank averages its
buckets in another order, which fails in all ranks with what each of them has called.
"""

from __future__ import annotations

import sys

import torch
from torch import distributed as dist


def train(fault: str) -> float:
    """Train for three steps; return the sum of the weights, which is the same in all ranks."""
    rank = dist.get_rank()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compute, averaging = torch.cuda.current_stream(), torch.cuda.Stream()
    buckets = [list(model[2].parameters()), list(model[0].parameters())]
    if fault == "bucket" and rank == dist.get_world_size() - 1:
        buckets.reverse()
    for step in range(3):
        x = torch.randn(32, 64, device="cuda", generator=torch.Generator("cuda").manual_seed(10 * step + rank))
        optimizer.zero_grad()
        model(x).square().mean().backward()
        averaging.wait_stream(compute)
        with torch.cuda.stream(averaging):
            for bucket in buckets:
                for parameter in bucket:
                    dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
                    parameter.grad.record_stream(averaging)
        if fault != "wait":
            compute.wait_stream(averaging)
        optimizer.step()
    compute.wait_stream(averaging)
    return float(sum(parameter.detach().double().sum() for parameter in model.parameters()))


def main() -> None:
    dist.init_process_group("nccl")
    try:
        total = torch.tensor([train(sys.argv[1] if len(sys.argv) > 1 else "")], device="cuda", dtype=torch.float64)
        all_totals = [torch.empty_like(total) for _ in range(dist.get_world_size())]
        dist.all_gather(all_totals, total)
        assert all(other.item() == total.item() for other in all_totals), "the ranks have different weights"
        if dist.get_rank() == 0:
            print("all ranks have the same weights")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
