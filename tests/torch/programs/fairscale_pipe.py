# alone: fairscale
# module: fairscale.nn.pipe.copy
# without: wait_stream(next_stream, prev_stream)
"""fairscale runs a model as a pipeline over two devices, with copies on streams of their own."""

import traceback

from fairscale.nn import Pipe

import torch


def model():
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(16, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 4),
    ]
    return torch.nn.Sequential(*layers)


data = torch.randn(12, 16, generator=torch.Generator().manual_seed(1))


def train(network, to):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = network(to(data)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


expected = train(model(), lambda x: x)
for checkpoint in ("never", "always"):
    pipe = Pipe(model(), balance=[3, 2], devices=[0, 1], chunks=4, checkpoint=checkpoint)
    try:
        found = train(pipe, lambda x: x.cuda(0))
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        del pipe  # it joins its threads, which it cannot while the interpreter ends
    assert torch.allclose(found, expected, rtol=1e-5), (checkpoint, found, expected)
