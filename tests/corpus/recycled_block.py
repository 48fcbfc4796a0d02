"""Memory goes back to the allocator while a side stream still reads it.

Seen: NaN in a recommender that stashes activations: the copy to the host ran on
a side stream, the storage was released, and the allocator gave the same memory
to the next layer at once (meta-pytorch/torchrec #4231).
Missing: `record_stream`, which tells the allocator of the side stream.
Passes by luck: the copy was enqueued on an idle stream long before the memory
is written again.
"""

from __future__ import annotations

import halstream as hs
import numpy as np
from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read, rest


def _run(ordered: bool) -> None:
    host = Host()
    main, side = cuda.Stream(), cuda.Stream()
    stash = pinned_numbers(0)
    activations = hs.empty(N, np.int32, stream=main)
    try:
        activations.fill(7, main)
        main.synchronize(timeout=LIMIT)
        host.parse()
        activations.copy_to(stash, side)
        host.step()
        if ordered:
            activations.record_stream(side)
        activations._memory.free()  # what resizing a tensor's storage to 0 does
        following = hs.empty(N, np.int32, stream=main)
        following.fill(9, main)
        main.synchronize(timeout=LIMIT)
        side.synchronize(timeout=LIMIT)
        assert read(stash) == [7] * N
    finally:
        rest(main, side)


def broken() -> None:
    """Run without `record_stream`."""
    _run(ordered=False)


def fixed() -> None:
    """Run with `record_stream`."""
    _run(ordered=True)
