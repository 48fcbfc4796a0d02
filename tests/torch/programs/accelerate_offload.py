# needs: accelerate
# nothing to delete: its copies to the device are waited for where they are made
"""accelerate moves each layer's weights to the device for its forward, and trains with its own loop."""

from accelerate import Accelerator, cpu_offload

import torch


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


x = torch.randn(5, 8)
offloaded = cpu_offload(model(), execution_device=torch.device("cuda"))
with torch.no_grad():
    assert torch.equal(offloaded(x).cpu(), model()(x))


def train(accelerator=None):
    network = model()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(12, 8, generator=generator))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=accelerator is not None)
    if accelerator is not None:
        network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    losses = []
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = network(batch).square().mean()
        loss.backward() if accelerator is None else accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


assert str(Accelerator().device).startswith("cuda")
assert torch.allclose(torch.tensor(train(Accelerator())), torch.tensor(train()), rtol=1e-6)
