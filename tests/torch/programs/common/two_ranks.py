"""Runs a function as two ranks of torch.distributed, one in this process and one in a process that it starts."""

import os
import tempfile
from collections.abc import Callable

import torch.distributed as dist
import torch.multiprocessing as mp

import torch

WAIT_S = 120  # for the other process to end


def start(rank: Callable[[int], None], number: int, store: str) -> None:
    """Join the group as a rank, with a device of its own, and call the function."""
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
    torch.cuda.set_device(number)
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method=f"file://{store}", rank=number, world_size=2)
    rank(number)
    dist.destroy_process_group()


def run(rank: Callable[[int], None]) -> None:
    """Call a function of the program with the numbers 0, here, and 1."""
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        other = mp.get_context("spawn").Process(target=start, args=(rank, 1, store), daemon=True)
        other.start()
        start(rank, 0, store)
        other.join(WAIT_S)
        assert other.exitcode == 0
