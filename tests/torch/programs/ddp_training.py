# needs: psutil
# module: torch.distributed.optim.zero_redundancy_optimizer
# without: _ = [x.wait() for x in handles]
"""DistributedDataParallel and ZeRO's sharded optimizer over NCCL's name, in this process and in one that it starts."""

import os
import tempfile

import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.optim import ZeroRedundancyOptimizer

import torch

batches = torch.randn(4, 8, 6, generator=torch.Generator().manual_seed(1))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))


def train(network, optimizer, share):
    for batch in batches:
        optimizer.zero_grad()
        network(share(batch)).square().mean().backward()
        optimizer.step()
    return [p.detach().cpu() for p in network.parameters()]


def rank(number, store):
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=number, world_size=2)
    network = torch.nn.parallel.DistributedDataParallel(model().cuda(), device_ids=[number])
    sharded = ZeroRedundancyOptimizer(network.parameters(), torch.optim.AdamW, lr=0.01)
    found = train(network, sharded, lambda batch: batch[number::2])
    here = model()
    expected = train(here, torch.optim.AdamW(here.parameters(), lr=0.01), lambda batch: batch)
    for found_one, right in zip(found, expected, strict=True):
        assert torch.allclose(found_one, right, rtol=1e-4, atol=1e-6), (found_one - right).abs().max()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        other = mp.get_context("spawn").Process(target=rank, args=(1, store), daemon=True)
        other.start()
        rank(0, store)
        other.join(60)
        assert other.exitcode == 0
