# module: torch.nn.parallel._functions
# without: main_stream.wait_stream(streams[i])
"""torch.nn.DataParallel copies the parts of a batch to two devices on streams of their own."""

import torch


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


batches = torch.randn(4, 12, 16, generator=torch.Generator().manual_seed(1)).pin_memory()


def train(network):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = network(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


found, expected = train(torch.nn.DataParallel(model().cuda(), device_ids=[0, 1])), train(model())
assert torch.allclose(found, expected, rtol=1e-5), (found, expected)
