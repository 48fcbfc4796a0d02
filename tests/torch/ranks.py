"""Two processes of a group of torch.distributed, each with a device of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

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
    late, deadline = False, time.monotonic() + limit
    with ExitStack() as files:
        # What they print goes to files: a rank whose pipe is full would wait for the one that is read first.
        printed = [[files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)] for _ in range(2)]
        children = [
            subprocess.Popen([sys.executable, str(program), str(rank), str(store)], env=own, cwd=folder,
                             stdout=out, stderr=err)
            for rank, (out, err) in enumerate(printed)
        ]  # fmt: skip
        try:
            for child in children:
                child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            late = True
        finally:
            for child in children:
                child.kill()
                child.wait()
        texts = [[file.seek(0) or file.read() for file in pair] for pair in printed]
    if late:
        said = "\n".join(f"rank {rank}:\n{out}\n{err}" for rank, (out, err) in enumerate(texts))
        pytest.fail(f"the ranks did not end within {limit:.0f} s\n{said}")
    return [
        subprocess.CompletedProcess(child.args, child.returncode, out, err)
        for child, (out, err) in zip(children, texts, strict=True)
    ]
