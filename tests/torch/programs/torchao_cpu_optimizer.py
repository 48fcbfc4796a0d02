# alone: torchao==0.18.0
# module: torchao.optim.cpu_offload
# without: grad_d2h_event.synchronize()
"""torchao's optimizer for the CPU copies gradients to it during the backward pass, and the weights back."""

from torchao.optim import CPUOffloadOptimizer

import torch

batches = torch.randn(4, 16, 64, generator=torch.Generator().manual_seed(1))


def train(device, make):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 64)).to(device)
    optimizer = make(network.parameters())
    losses = []
    for batch in batches:
        loss = network(batch.to(device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


expected = train("cpu", lambda weights: torch.optim.AdamW(weights, lr=0.01))
for offload_gradients in (False, True):
    options = {"lr": 0.01, "offload_gradients": offload_gradients}
    found = train("cuda", lambda weights, options=options: CPUOffloadOptimizer(weights, torch.optim.AdamW, **options))
    assert torch.allclose(found, expected, rtol=1e-5), (found, expected)
