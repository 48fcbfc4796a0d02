# needs: numpy packaging
# alone: megatron-core
# module: megatron.core.distributed.param_and_grad_buffer
# without: self.grad_reduce_handle.wait()
"""Megatron's DistributedDataParallel reduces gradients in the backward pass, and gathers weights in the forward one."""

from common import two_ranks
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.transformer import TransformerConfig

import torch

batches = torch.randn(4, 8, 32, generator=torch.Generator().manual_seed(1))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(3)))


def train():
    network, losses = model(), []
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0)
    for batch in batches:
        loss = network(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


def train_parallel(number, sharded):
    shared = {"use_distributed_optimizer": sharded, "overlap_param_gather": sharded}
    config = TransformerConfig(num_layers=1, hidden_size=32, num_attention_heads=1)
    overlapped = DistributedDataParallelConfig(overlap_grad_reduce=True, bucket_size=1500, **shared)
    network = DistributedDataParallel(config, overlapped, model().cuda())
    steps = OptimizerConfig(
        optimizer="adam", lr=0.01, min_lr=0.01, weight_decay=0, adam_eps=1e-8, clip_grad=0, **shared
    )
    optimizer, losses = get_megatron_optimizer(steps, [network]), []
    for batch in batches:
        network.zero_grad_buffer()
        optimizer.zero_grad()
        loss = network(batch[number::2].cuda()).square().mean()
        loss.backward()
        network.finish_grad_sync()
        optimizer.step()
        torch.distributed.all_reduce(mean := loss.detach() / 2)
        losses.append(mean.item())
    return torch.tensor(losses)


def rank(number):
    parallel_state.initialize_model_parallel()
    expected = train()
    for sharded in (False, True):
        found = train_parallel(number, sharded)
        assert torch.allclose(found, expected, rtol=1e-4), (sharded, found, expected)


if __name__ == "__main__":
    two_ranks.run(rank)
