"""A pipeline of numba-cuda on two streams, which needs no GPU: halstream run --cuda examples/cuda_numba.py.

One stream copies a batch to the device while another one works on the batch before. With the argument "broken" the
second one does not wait for the copy, and `halstream run --cuda --sanitize` names both lines.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import cuda

SIZE, BATCHES = 4096, 4
WAITS = "broken" not in sys.argv[1:]


@cuda.jit
def smooth(values, out):
    i = cuda.grid(1)
    if 0 < i < values.size - 1:
        out[i] = (values[i - 1] + values[i] + values[i + 1]) / 3


def main() -> None:
    copies, compute = cuda.stream(), cuda.stream()
    batches = [cuda.pinned_array(SIZE, np.float32) for _ in range(BATCHES)]
    for number, batch in enumerate(batches):
        batch[:] = number
    on_device = [cuda.device_array(SIZE, np.float32) for _ in range(BATCHES)]
    results = [cuda.device_array(SIZE, np.float32) for _ in range(BATCHES)]
    cuda.synchronize()
    for batch, values, out in zip(batches, on_device, results, strict=True):
        values.copy_to_device(batch, stream=copies)
        copied = cuda.event(timing=False)
        copied.record(copies)
        if WAITS:
            copied.wait(compute)
        smooth[SIZE // 128, 128, compute](values, out)
    cuda.synchronize()
    print("means:", [round(float(out.copy_to_host()[1:-1].mean()), 3) for out in results])


if __name__ == "__main__":
    main()
