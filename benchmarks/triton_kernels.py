"""Triton kernels of the benchmark; the file runs in torch's environment.

Triton reads the annotations: a parameter has one only if it is a constant.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, ignore-missing-imports

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

import torch


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """out = x + y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    """Softmax of a row for each program."""
    i = tl.program_id(0) * n + tl.arange(0, BLOCK)
    row = tl.load(x + i)
    raised = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + i, raised / tl.sum(raised, axis=0))


@triton.jit
def product(a, b, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """out = a @ b, a tile of M x N for each program."""
    rows = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    columns = (tl.program_id(1) * N + tl.arange(0, N))[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, n, K):
        inner = k + tl.arange(0, K)
        total += tl.dot(tl.load(a + rows * n + inner[None, :]), tl.load(b + inner[:, None] * n + columns))
    tl.store(out + rows * n + columns, total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, scale, length, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Attention of M rows of one head for each program, with a running maximum."""
    head = tl.program_id(1) * length * D
    rows = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    d = tl.arange(0, D)[None, :]
    queries = tl.load(q + head + rows * D + d)
    highest = tl.full((M,), -1e30, dtype=tl.float32)
    weight = tl.zeros((M,), dtype=tl.float32)
    total = tl.zeros((M, D), dtype=tl.float32)
    for first in range(0, length, N):
        keys = (first + tl.arange(0, N))[:, None]
        scores = tl.dot(queries, tl.trans(tl.load(k + head + keys * D + d))) * scale
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        raised = tl.exp(scores - higher[:, None])
        kept = tl.exp(highest - higher)
        weight = weight * kept + tl.sum(raised, axis=1)
        total = total * kept[:, None] + tl.dot(raised.to(tl.float16), tl.load(v + head + keys * D + d))
        highest = higher
    tl.store(out + head + rows * D + d, (total / weight[:, None]).to(tl.float16))


def cases(device: str) -> dict[str, Callable[[], object]]:
    """Return a launch of each."""
    n, side = 1 << 20, 512
    x, y, sums = torch.rand(n, device=device), torch.rand(n, device=device), torch.empty(n, device=device)
    rows, scaled = torch.randn(1024, 1024, device=device), torch.empty(1024, 1024, device=device)
    a, b, c = (torch.randn(side, side, device=device).half() for _ in range(3))
    q, k, v, o = (torch.randn(2, 256, 64, device=device).half() for _ in range(4))
    return {
        "kernel_add": lambda: add[(n // 1024,)](x, y, sums, n, BLOCK=1024),
        "kernel_softmax": lambda: softmax[(1024,)](rows, scaled, 1024, BLOCK=1024),
        "kernel_product": lambda: product[(side // 32, side // 32)](a, b, c, side, M=32, N=32, K=32),
        "kernel_attention": lambda: attention[(4, 2)](q, k, v, o, 0.125, 256, D=64, M=64, N=32),
    }


def processor_time(call: Callable[[], object], synchronize: Callable[[], Any], rounds: int) -> float:
    """Return the milliseconds of processor time that a launch takes on all threads, the least of some rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        synchronize()
        taken.append((time.process_time() - began) * 1e3)
    return min(taken)
