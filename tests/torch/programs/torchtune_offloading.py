# needs: psutil omegaconf datasets sentencepiece tiktoken blobfile tokenizers huggingface_hub
# alone: torchtune torchao==0.10.0
# module: torchtune.training._activation_offloading
# without: self.s0.wait_stream(self.s1)
"""torchtune offloads activations to pinned memory in the forward pass and brings them back on a stream of its own."""

from torchtune.training._activation_offloading import OffloadActivations

import torch


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(6)))


batches = torch.randn(3, 32, 64, generator=torch.Generator().manual_seed(1))


def train(device, **options):
    network = model().to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        batch = batch.to(device)
        if options:
            with OffloadActivations(**options):
                loss = network(batch).square().mean()
        else:
            loss = network(batch).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu(), network[0][0].weight.detach().cpu()


expected = train("cpu")
for options in ({"use_streams": True}, {"use_streams": False}, {"use_streams": True, "max_fwd_stash_size": 2}):
    for found, right in zip(train("cuda", min_offload_size=64, **options), expected, strict=True):
        assert torch.allclose(found, right, rtol=1e-5, atol=1e-6), (options, (found - right).abs().max())
