# needs: hjson msgpack ninja numpy packaging psutil py-cpuinfo pydantic tqdm einops
# alone: deepspeed
# module: deepspeed.runtime.zero.stage_1_and_2
# without: stream.wait_stream(producer_stream)
"""DeepSpeed's ZeRO-2 reduces gradients during the backward pass, with the optimizer on the device and on the host."""

import deepspeed
from common import two_ranks

import torch

batches = torch.randn(4, 8, 32, generator=torch.Generator().manual_seed(1))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(3)))


def train():
    network, losses = model(), []
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for batch in batches:
        loss = network(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


def train_sharded(number, zero):
    network = model().cuda()
    engine, *_ = deepspeed.initialize(
        model=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=0.01),
        config={
            "train_micro_batch_size_per_gpu": 4,
            "zero_optimization": zero,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
        },
    )
    losses = []
    for batch in batches:
        loss = engine(batch[number::2].cuda()).square().mean()
        engine.backward(loss)
        engine.step()
        torch.distributed.all_reduce(mean := loss.detach() / 2)
        losses.append(mean.item())
    return torch.tensor(losses)


def rank(number):
    expected = train()
    buckets = {"reduce_bucket_size": 2000, "allgather_bucket_size": 2000}
    for options in ({}, {"offload_optimizer": {"device": "cpu", "pin_memory": True}}):
        found = train_sharded(number, {"stage": 2, "overlap_comm": True, **buckets, **options})
        assert torch.allclose(found, expected, rtol=1e-4), (options, found, expected)


if __name__ == "__main__":
    two_ranks.run(rank)
