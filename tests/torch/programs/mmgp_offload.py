# needs: accelerate peft safetensors optimum-quanto psutil
# alone: mmgp
# without: mmgp.offload: torch.cuda.synchronize()
"""mmgp keeps a model in pinned memory and loads its next block while one is at work."""

from mmgp import offload

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(6)
        )

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


inputs = torch.randn(4, 64)
with torch.no_grad():
    expected = Model()(inputs)
    offload.all(
        {"transformer": (network := Model())},
        pinnedMemory=True,
        quantizeTransformer=False,
        convertWeightsFloatTo=None,
        budgets={"transformer": 1, "*": 1},
        verboseLevel=0,
    )
    for _ in range(3):
        found = network(inputs.cuda()).cpu()
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6), (found - expected).abs().max()
