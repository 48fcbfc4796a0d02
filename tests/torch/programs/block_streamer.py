# needs: block-streamer
# module: memory_pool
# without: self.compute_stream.wait_event(item.ready)
"""block-streamer copies the next blocks of a model to the device while one is at work."""

from streamer import StreamedModel

import torch

torch.manual_seed(0)
blocks = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(6)))
inputs = torch.randn(3, 4, 64)
with torch.no_grad():
    expected = blocks(inputs)
with StreamedModel(blocks, prefetch_ahead=2) as streamed:
    for batch, right in zip(inputs, expected, strict=True):
        found = streamed(batch.cuda()).cpu()
        assert torch.allclose(found, right, rtol=1e-5, atol=1e-6), (found - right).abs().max()
