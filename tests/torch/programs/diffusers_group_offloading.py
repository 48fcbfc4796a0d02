# needs: diffusers accelerate
# module: diffusers.hooks.group_offloading
# without: self.stream.synchronize()
"""diffusers loads the next group of a model's layers on a stream of its own while one is at work."""

from diffusers import UNet2DModel
from diffusers.hooks import apply_group_offloading

import torch


def model():
    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    ).eval()  # fmt: skip


sample = torch.randn(1, 3, 8, 8)
with torch.no_grad():
    expected = model()(sample, 5).sample
    for use_stream in (False, True):
        offloaded = model()
        apply_group_offloading(
            offloaded, onload_device=torch.device("cuda"), offload_device=torch.device("cpu"),
            offload_type="leaf_level", use_stream=use_stream, non_blocking=use_stream,
        )  # fmt: skip
        for _ in range(2):
            found = offloaded(sample.cuda(), 5).sample.cpu()
            assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6), (found - expected).abs().max()
