# needs: psutil
# module: torch.distributed.fsdp._runtime_utils
# without: current_stream.wait_stream(state._unshard_stream)
"""FullyShardedDataParallel trains over two processes, and gathers weights in advance or keeps them on the host."""

from common import two_ranks
from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import torch

batches = torch.randn(3, 8, 16, generator=torch.Generator().manual_seed(1))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(3)))


def train(network, share):
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for batch in batches:
        optimizer.zero_grad()
        network(share(batch)).square().mean().backward()
        optimizer.step()
    return network


def rank(number):
    expected = list(train(model(), lambda batch: batch).parameters())
    strategy = ShardingStrategy.SHARD_GRAD_OP
    for options in ({"forward_prefetch": True}, {"sharding_strategy": strategy}, {"cpu_offload": CPUOffload(True)}):
        network = FullyShardedDataParallel(
            model(),
            auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}),
            device_id=number,
            use_orig_params=True,
            **options,
        )
        train(network, lambda batch: batch[number::2].cuda())
        with FullyShardedDataParallel.summon_full_params(network):
            for found, right in zip(network.parameters(), expected, strict=True):
                assert torch.allclose(found.detach().cpu(), right, rtol=1e-4, atol=1e-6), options


if __name__ == "__main__":
    two_ranks.run(rank)
