"""Measures a step of a program of tests/torch/programs: python -m benchmarks.torch_program_steps NAME KIND.

KIND is `cpu` for plain torch without the program's copies, `cuda` for torch on host streams, `sanitized` for that
with the sanitizer, and `memory` for what the second thousand of 2,000 steps of a small model adds to memory. Runs in
the environment of `make torch-programs`, where the libraries are, and prints the figure as one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import quiet

Step = Callable[[], Any]
WARM, STEPS = 6, 25
LONG = 2000
SETTLED = 1000  # steps after which memory is compared: until then the host gets ahead of the streams, and caches fill
#: The sizes of the models: those that are timed, and those whose memory is looked at.
LARGE, SMALL = 384, 32


def layers(torch: Any, width: int, count: int = 4) -> Any:
    """Return a stack of linear layers."""
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(count)))


def trained(torch: Any, network: Any, optimizer: Any, batch: Any, around: Any = contextlib.nullcontext) -> Step:
    """Return a training step."""

    def step() -> None:
        optimizer.zero_grad()
        with around():
            network(batch).square().mean().backward()
        optimizer.step()

    return step


def timm_prefetch_loader(torch: Any, device: str, width: int) -> Step:
    """Train on what the loader copied and normalized; on the CPU without it."""
    from timm.data.loader import PrefetchLoader  # type: ignore[import-not-found]

    side, nn = max(8, width // 8), torch.nn
    images = torch.randint(0, 256, (16, 3, side, side), dtype=torch.uint8)
    data = torch.utils.data.TensorDataset(images, torch.zeros(16, dtype=torch.long))
    plain = torch.utils.data.DataLoader(data, batch_size=16, pin_memory=device != "cpu")
    network = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten()).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loader = PrefetchLoader(plain, channels=3, device=torch.device("cuda")) if device != "cpu" else plain
    mean, std = (torch.tensor(of).mul(255).view(1, 3, 1, 1) for of in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))

    def step() -> None:
        for batch, _ in loader:
            image = batch if device != "cpu" else batch.float().sub(mean).div(std)
            trained(torch, network, optimizer, image)()

    return step


def trl_offloading(torch: Any, device: str, width: int) -> Step:
    """Train with activations that are kept on the host; on the CPU they stay where they are."""
    from trl.models.activation_offloading import OffloadActivations  # type: ignore[import-not-found]

    network = layers(torch, width).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    around: Any = contextlib.nullcontext
    if device != "cpu":

        def around() -> Any:
            return OffloadActivations(min_offload_size=64)

    return trained(torch, network, optimizer, torch.randn(256, width).to(device), around)


def torchao_cpu_optimizer(torch: Any, device: str, width: int) -> Step:
    """Train with AdamW on the host."""
    from torchao.optim import CPUOffloadOptimizer  # type: ignore[import-not-found]

    network = layers(torch, width).to(device)
    weights, options = network.parameters(), {"lr": 0.01, "fused": True}
    adamw = torch.optim.AdamW
    optimizer = adamw(weights, **options) if device == "cpu" else CPUOffloadOptimizer(weights, adamw, **options)
    return trained(torch, network, optimizer, torch.randn(256, width).to(device))


def transformers_generate(torch: Any, device: str, width: int) -> Step:
    """Generate eight tokens with a cache that is kept on the host; on the CPU with the usual one."""
    from transformers import GPT2Config, GPT2LMHeadModel  # type: ignore[import-not-found]

    config = GPT2Config(n_layer=2, n_head=2, n_embd=width, vocab_size=1000, bos_token_id=0, eos_token_id=999)
    network = GPT2LMHeadModel(config).eval().to(device)
    prompt = torch.ones(4, 32, dtype=torch.long, device=device)
    offloaded = {} if device == "cpu" else {"cache_implementation": "offloaded"}
    settings = {"min_new_tokens": 8, "max_new_tokens": 8, "do_sample": False, "pad_token_id": 999, **offloaded}

    def step() -> None:
        with torch.no_grad():
            network.generate(prompt, attention_mask=torch.ones_like(prompt), **settings)

    return step


def diffusers_group_offloading(torch: Any, device: str, width: int) -> Step:
    """Run a UNet whose layers come to the device one after the other."""
    from diffusers import UNet2DModel  # type: ignore[import-not-found]
    from diffusers.hooks import apply_group_offloading  # type: ignore[import-not-found]

    side = max(8, width // 16)
    network = UNet2DModel(
        sample_size=side, in_channels=3, out_channels=3, layers_per_block=1, norm_num_groups=4,
        block_out_channels=(max(8, width // 8), max(16, width // 4)),
        down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    ).eval()  # fmt: skip
    if device != "cpu":
        apply_group_offloading(
            network, onload_device=torch.device("cuda"), offload_type="leaf_level", use_stream=True, non_blocking=True
        )
    sample = torch.randn(4, 3, side, side).to(device)

    def step() -> None:
        with torch.no_grad():
            network(sample, 5)

    return step


def accelerate_offload(torch: Any, device: str, width: int) -> Step:
    """Run layers whose weights accelerate copies to the device for each call."""
    from accelerate import cpu_offload  # type: ignore[import-not-found]

    network, batch = layers(torch, width).eval(), torch.randn(256, width)
    if device != "cpu":
        network = cpu_offload(network, execution_device=torch.device("cuda"))

    def step() -> None:
        with torch.no_grad():
            network(batch)

    return step


def ramtorch_offload(torch: Any, device: str, width: int) -> Step:
    """Train layers through a window of two on the device."""
    from ramtorch.offload import OffloadModel  # type: ignore[import-not-found]

    batch = torch.randn(256, width).to(device)
    if device == "cpu":
        plain = layers(torch, width, 6)
        return trained(torch, plain, torch.optim.SGD(plain.parameters(), lr=0.1), batch)
    network = OffloadModel(list(layers(torch, width, 6)), device="cuda:0", window=2, pin=1, keep_activations=True)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def step() -> None:
        network.step(batch, targets=batch, loss_fn=lambda found, _: found.square().mean())
        network.flush_grads()
        optimizer.step()
        optimizer.zero_grad()

    return step


def tensordict_graphs(torch: Any, device: str, width: int) -> Step:
    """Train by replays of a captured step; on the CPU by calls."""
    from tensordict.nn import CudaGraphModule  # type: ignore[import-not-found]

    network = layers(torch, width).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, capturable=device != "cpu")
    batch = torch.randn(256, width).to(device)

    def step(inputs: Any) -> Any:
        optimizer.zero_grad()
        loss = network(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    called = step if device == "cpu" else CudaGraphModule(step, warmup=2)
    return lambda: called(batch)


PROGRAMS = (
    timm_prefetch_loader, trl_offloading, torchao_cpu_optimizer, transformers_generate,
    diffusers_group_offloading, accelerate_offload, ramtorch_offload, tensordict_graphs,
)  # fmt: skip


def resident() -> float:
    """Return the MiB of memory that the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(name: str, kind: str) -> None:
    """Measure, and print the figure."""
    if kind != "cpu":
        import halstream.torch.cuda_on_host
    import torch

    torch.set_num_threads(1)
    device = "cpu" if kind == "cpu" else "cuda"
    (make,) = (program for program in PROGRAMS if program.__name__ == name)
    scope: Any = contextlib.nullcontext()
    if kind == "sanitized":
        import halstream

        scope = halstream.sanitize(on="raise")

    def synchronize() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    with scope:
        step = make(torch, device, SMALL if kind == "memory" else LARGE)
        if kind == "memory":
            for done in range(1, LONG + 1):
                step()
                if done == SETTLED:
                    synchronize()
                    before = resident()
            synchronize()
            print(json.dumps(resident() - before), flush=True)
            return
        taken = []
        with quiet():
            for _ in range(WARM + STEPS):
                began = time.process_time()
                step()
                synchronize()
                taken.append((time.process_time() - began) * 1e3)
        print(json.dumps(statistics.median(taken[WARM:])), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
