# needs: tensordict
# module: tensordict.base
# without: event.synchronize()
"""TensorDict captures a training step as a graph after two runs of it, and copies its tensors to the host together."""

from tensordict import TensorDict
from tensordict.nn import CudaGraphModule

import torch

batches = torch.randn(6, 8, 16, generator=torch.Generator().manual_seed(1))


def train(device, captured=False):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, capturable=captured)

    def step(batch):
        optimizer.zero_grad()
        loss = network(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    called = CudaGraphModule(step, warmup=2) if captured else step
    losses = torch.stack([called(batch.to(device)).clone() for batch in batches])
    return TensorDict({"losses": losses, "weights": TensorDict.from_module(network).data.clone()}).to(
        "cpu", non_blocking=None
    )


found, expected = train("cuda", captured=True), train("cpu")
for (name, value), (_, right) in zip(
    sorted(found.flatten_keys().items()), sorted(expected.flatten_keys().items()), strict=True
):
    assert torch.allclose(value, right, rtol=1e-4, atol=1e-6), (name, value, right)
