# needs: cache-dit diffusers
# module: cache_dit.offload.layerwise
# without: current_stream.wait_event(event)
"""Cache-DiT brings the weights of the next layers to the device on streams of its own, and takes them back."""

from cache_dit.offload import layerwise_offload

import torch


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(8)))


inputs = torch.randn(4, 64)
with torch.no_grad():
    expected = model()(inputs)
    for options in (
        {},
        {"async_transfer": True},
        {"async_transfer": True, "transfer_buckets": 2, "prefetch_limit": True},
        {"async_transfer": True, "persistent_buckets": 2, "persistent_bins": 2},
    ):
        network = model().eval()
        layerwise_offload(
            network,
            module_filter=lambda _, module: isinstance(module, torch.nn.Linear),
            onload_device="cuda",
            **options,
        )
        for _ in range(3):
            found = network(inputs.cuda()).cpu()
            assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6), options
