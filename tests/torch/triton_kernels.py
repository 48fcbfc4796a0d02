"""Triton kernels of the tests: importing this file imports Triton.

Triton reads the annotations: a parameter has one only if it is a constant.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, ignore-missing-imports

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    """x[:n] *= factor."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """out = x + y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def product(
    a, b, c, n,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """c = a @ b for tiles of a square matrix."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, n, K):
        inner = k + tl.arange(0, K)
        total += tl.dot(tl.load(a + rows[:, None] * n + inner), tl.load(b + inner[:, None] * n + columns))
    tl.store(c + rows[:, None] * n + columns, total.to(c.dtype.element_ty))


@triton.jit
def types(out, i1, small, whole, large, single, nothing):
    """Store each argument; `nothing` is None."""
    if nothing is None:
        tl.store(out, i1.to(tl.float64))
        tl.store(out + 1, small.to(tl.float64))
        tl.store(out + 2, whole.to(tl.float64))
        tl.store(out + 3, large.to(tl.float64))
        tl.store(out + 4, single.to(tl.float64))


@triton.jit
def pairs(pair, out):
    """out[0] = pair[0][0] * pair[1]."""
    tl.store(out, tl.load(pair[0]) * pair[1])


@triton.jit
def fails(x, N: tl.constexpr):
    """Assert that all values are below 3."""
    i = tl.arange(0, N)
    tl.device_assert(tl.load(x + i) < 3, "too large")


@triton.jit
def prints(x, N: tl.constexpr):
    """Print the values."""
    tl.device_print("value", tl.load(x + tl.arange(0, N)))


@triton.jit
def through_descriptor(source, out, N: tl.constexpr):
    """out = source + 1 for a tile of N x N, by a tensor descriptor of the host."""
    tile = source.load([0, 0])
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i, tile + 1)


@triton.jit
def descriptor_of_device(source, out, n, N: tl.constexpr):
    """The same by one that the kernel makes."""
    made = tl.make_tensor_descriptor(source, shape=[n, n], strides=[n, 1], block_shape=[N, N])
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i, made.load([0, 0]) + 1)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 32}, num_warps=1), triton.Config({"BLOCK": 64}, num_warps=2),
        triton.Config({"BLOCK": 128}, num_warps=4),
    ],
    key=["n"],
)  # fmt: skip
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    """Add 1 to x and count the blocks in x[n]."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


# A block of the first takes more shared memory than a device has, one of the second has more threads.
tuned_product = triton.autotune(
    configs=[
        triton.Config({"M": 256, "N": 256, "K": 128}, num_stages=4),
        triton.Config({"M": 32, "N": 32, "K": 32}, num_warps=64), triton.Config({"M": 32, "N": 32, "K": 32}),
    ],
    key=["n"],
)(product)  # fmt: skip


@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})
@triton.jit
def whole(x, n, BLOCK: tl.constexpr):
    """x[:n] = exp2(sin(x)) in one block."""
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.exp2(libdevice.sin(tl.load(x + i, mask=i < n))), mask=i < n)
