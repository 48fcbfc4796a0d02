"""Training over two processes with torch's own ways to share gradients and parameters, equal to one process."""

from __future__ import annotations

from pathlib import Path

import pytest
import ranks

START = """
from torch import nn
start("nccl")
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
generator = torch.Generator().manual_seed(1)
batches = [torch.randn(8, 4, generator=generator) for _ in range(4)]
def train(network, share, every=1, wait=None):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for n, batch in enumerate(batches, 1):
        if n % every and wait is not None:
            with wait():
                network(share(batch)).square().mean().backward()
            continue
        network(share(batch)).square().mean().backward()
        if n % every == 0:
            optimizer.step()
            optimizer.zero_grad()
    return network
def mine(batch):
    return batch[rank * 4:rank * 4 + 4].cuda()
def compare(found, every=1):
    alone = train(model(), lambda batch: batch, every)
    for there, here in zip(found, alone.parameters(), strict=True):
        assert torch.allclose(there.detach().cpu(), here, rtol=1e-4, atol=1e-5), (there.cpu() - here).abs().max()
"""

DATA_PARALLEL = """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
def parallel(**options):
    return nn.parallel.DistributedDataParallel(model().cuda(), device_ids=[rank], bucket_cap_mb=0.0001, **options)
def average(state, bucket):
    work = dist.all_reduce(bucket.buffer().div_(world), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])
with hs.sanitize(on="raise"):
    network = parallel()
    compare(train(network, mine, 2, network.no_sync).parameters(), 2)
    compare(train(parallel(gradient_as_bucket_view=True), mine).parameters())
    compare(train(parallel(static_graph=True), mine).parameters())
    for hook in (default_hooks.allreduce_hook, average):
        network = parallel()
        network.register_comm_hook(None, hook)
        compare(train(network, mine).parameters())
    network = parallel()
    network._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    compare(train(network, mine).parameters())
dist.destroy_process_group()
"""

FULLY_SHARDED = """
from torch.distributed.fsdp import CPUOffloadPolicy, FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
def sharded(network, prefetch=False, **options):
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in layers:
        fully_shard(layer, **options)
    fully_shard(network, **options)
    if prefetch:
        layers[0].set_modules_to_forward_prefetch([layers[1]])
        layers[2].set_modules_to_backward_prefetch([layers[1]])
    return network
with hs.sanitize(on="raise"):
    for network in (sharded(model().cuda()), sharded(model().cuda(), True, reshard_after_forward=False),
                    sharded(model(), offload_policy=CPUOffloadPolicy())):
        trained = train(network, mine)
        compare([p.detach().cuda().full_tensor() for p in trained.parameters()])
    network = FullyShardedDataParallel(
        model().cuda(), device_id=rank, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=True)
    train(network, mine)
    with FullyShardedDataParallel.summon_full_params(network):
        compare(network.parameters())
dist.destroy_process_group()
"""


@pytest.mark.parametrize("program", [DATA_PARALLEL, FULLY_SHARDED], ids=["data parallel", "fully sharded"])
def test_two_processes_train_as_one_does(tmp_path: Path, program: str) -> None:
    ranks.run(tmp_path, START + program)


#: A shard is changed on a stream that nothing waits for, and read on another.
NAMED_SHARDS = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
side = torch.cuda.Stream()
mesh = init_device_mesh("cuda", (world,))
sharded, parallel = model().cuda(), model().cuda()
fully_shard(sharded)
parallelize_module(parallel, mesh, {"0": ColwiseParallel()})
torch.cuda.synchronize()
for network in sharded, parallel:
    local = dict(network.named_parameters())["0.weight"].to_local()
    with hs.sanitize(on="collect") as report, torch.no_grad():
        with torch.cuda.stream(side):
            local.mul_(2)
        local.sum()
        torch.cuda.synchronize()
    (found,) = report
    assert found.parameter == "0.weight", found.parameter
    assert "`0.weight`" in str(report)
dist.destroy_process_group()
"""


def test_F20_shards_have_the_name_of_their_parameter(tmp_path: Path) -> None:
    ranks.run(tmp_path, START + NAMED_SHARDS)
