# module: torch.distributed.checkpoint.filesystem
# without: self.stream.synchronize()
"""torch.distributed.checkpoint saves a model in training, at once and in another thread, and loads it again."""

import tempfile

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import torch

torch.manual_seed(0)
dist.init_process_group("cpu:gloo,cuda:nccl", store=dist.HashStore(), rank=0, world_size=1)
network = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
batch = torch.randn(8, 64).cuda()
weights = []
with tempfile.TemporaryDirectory() as folder:
    for step in range(4):
        network(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        weights.append(network.weight.detach().clone())
        state, place = {"model": network.state_dict()}, f"{folder}/{step}"
        if step % 2:
            dcp.async_save(state, checkpoint_id=place).result()
        else:
            writer = dcp.FileSystemWriter(place, thread_count=1, single_file_per_rank=True)
            dcp.save(state, storage_writer=writer)
    for step, weight in enumerate(weights):
        state = {"model": {name: torch.zeros_like(value) for name, value in network.state_dict().items()}}
        dcp.load(state, checkpoint_id=f"{folder}/{step}")
        assert torch.equal(state["model"]["weight"], weight), step
dist.destroy_process_group()
