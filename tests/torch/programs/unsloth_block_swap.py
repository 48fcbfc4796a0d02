# needs: psutil
# alone: unsloth-zoo
# module: block_swap
# without: torch.cuda.current_stream(d).wait_event(event)
"""unsloth-zoo trains adapters on layers whose frozen weights are on the host, and copied for each pass."""

import sys
from importlib.util import find_spec

from torch.utils.checkpoint import checkpoint

import torch

sys.path.append(find_spec("unsloth_zoo").submodule_search_locations[0])  # all of the package needs unsloth
from block_swap import BlockSwap

batches = torch.randn(4, 8, 32, generator=torch.Generator().manual_seed(1))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = torch.nn.Linear(32, 32).requires_grad_(False)
        self.lora_a, self.lora_b = torch.nn.Linear(32, 4, bias=False), torch.nn.Linear(4, 32, bias=False)

    def forward(self, x):
        return torch.tanh(self.frozen(x) + self.lora_b(self.lora_a(x)))


def train(device, swapped=0):
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(Layer() for _ in range(6)).to(device)
    optimizer = torch.optim.AdamW([p for p in layers.parameters() if p.requires_grad], lr=0.01)
    swap = BlockSwap(layers, swapped) if swapped else None
    losses = []
    for batch in batches:
        x = batch.to(device).requires_grad_()
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    if swap:
        swap.remove()
    return torch.tensor(losses)


expected = train("cpu")
for swapped in (3, 6):
    found = train("cuda", swapped)
    assert torch.allclose(found, expected, rtol=1e-4), (swapped, found, expected)
