# needs: ramtorch
# module: ramtorch.offload
# without: compute_stream.wait_event(res.event)
"""RamTorch keeps a model's layers on the host, and trains them through a window of two on the device."""

from ramtorch.offload import OffloadModel
from torch.nn.functional import mse_loss

import torch

batches = torch.randn(4, 8, 32, generator=torch.Generator().manual_seed(1))


def layers():
    torch.manual_seed(0)
    return [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(6)]


def train():
    network, losses = torch.nn.Sequential(*layers()), []
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for batch in batches:
        loss = mse_loss(network(batch), torch.zeros_like(batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


def train_offloaded(**options):
    network, losses = OffloadModel(layers(), device="cuda:0", **options), []
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for batch in batches:
        result = network.step(batch.cuda(), targets=torch.zeros_like(batch).cuda(), loss_fn=mse_loss)
        network.flush_grads()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(result.loss))
    network.close()
    return torch.tensor(losses)


expected = train()
for options in ({}, {"grad_accum": "cpu"}, {"keep_activations": True}, {"window": 3, "pin": 2}):
    found = train_offloaded(**{"window": 2, "pin": 1, **options})
    assert torch.allclose(found, expected, rtol=1e-4), (options, found, expected)
