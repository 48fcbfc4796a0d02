"""Two processes of a group of torch.distributed, each with a device of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PRELUDE = """
import os, sys, datetime
import halstream as hs
import halstream.torch.cuda_on_host
import torch
import torch.distributed as dist
rank, world = int(sys.argv[1]), 2
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
def start(backend="nccl", seconds=60, **options):
    dist.init_process_group(backend, init_method="file://" + sys.argv[2], rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=seconds), **options)
def own(stream):
    return hs.Stream.from_handle(stream.cuda_stream, stream.device_index)
def full(value, *size, dtype=torch.float32):
    return torch.full(size or (4,), value, device=device, dtype=dtype)
"""


def run(folder: Path, source: str, *, env: dict[str, str] | None = None, limit: float = 150.0) -> list[str]:
    """Run a program as both ranks; return what each printed, after both ended well."""
    results = endings(folder, source, env=env, limit=limit)
    for done in results:
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [done.stdout for done in results]


def endings(
    folder: Path, source: str, *, env: dict[str, str] | None = None, limit: float = 150.0
) -> list[subprocess.CompletedProcess[str]]:
    """Run a program as both ranks; return how each ended, and what it printed."""
    program = folder / "program.py"
    program.write_text(PRELUDE + source)
    store = folder / "store"
    own = {**os.environ, "PYTHONWARNINGS": "ignore", "TORCH_CPP_LOG_LEVEL": "ERROR", **(env or {})}
    children = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(store)],
            env=own, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        texts = [child.communicate(timeout=limit) for child in children]
    finally:
        for child in children:
            child.kill()
    return [
        subprocess.CompletedProcess(child.args, child.returncode, out, err)
        for child, (out, err) in zip(children, texts, strict=True)
    ]
