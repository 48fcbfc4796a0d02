# needs: psutil
# module: torch.distributed.fsdp._fully_shard._fsdp_collectives
# without: device_handle.current_stream().wait_event(all_gather_event)
"""fully_shard (FSDP2) trains over two processes, with weights kept, dropped between the passes or held by the host."""

from common import two_ranks
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

import torch

batches = torch.randn(4, 8, 16, generator=torch.Generator().manual_seed(1))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(4)))


def train(network, share):
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for batch in batches:
        optimizer.zero_grad()
        network(share(batch)).square().mean().backward()
        optimizer.step()
    return [p.detach() for p in network.parameters()]


def rank(number):
    expected = train(model(), lambda batch: batch)
    for options in ({}, {"reshard_after_forward": False}, {"offload_policy": CPUOffloadPolicy()}):
        network = model().cuda()
        for layer in network:
            fully_shard(layer, **options)
        fully_shard(network, **options)
        for shard, right in zip(train(network, lambda batch: batch[number::2].cuda()), expected, strict=True):
            found = shard.cuda().full_tensor().cpu()
            assert torch.allclose(found, right, rtol=1e-4, atol=1e-6), (options, (found - right).abs().max())


if __name__ == "__main__":
    two_ranks.run(rank)
