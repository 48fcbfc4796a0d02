"""A pinned buffer is refilled while a copy from it is pending.

Seen: wrong token ids, query boundaries and positions on Ascend: the host
prepared the next batch in the arrays that the copy of this one had not read
yet (vllm-project/vllm-ascend #16428; the same with HIP in
1bit-MONSTER/1bit-MONSTER #2436).
Missing: a wait for the copy before the buffer is written again.
Passes by luck: the host waits for the computing stream in between, and the
copy was ready before what it waits for.
"""

from __future__ import annotations

import halstream as hs
from halstream import acl

from ._acl import begin, device_block, host_block, made, ok
from ._host import Host

SIZE = 256


def _run(ordered: bool) -> None:
    host = Host()
    begin()
    copies, compute = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    on_device, other = device_block(SIZE), device_block(SIZE)
    ids, staging = host_block(SIZE)
    back, result = host_block(SIZE)
    try:
        hs.host_access(ids, "w")
        ids[:] = 1
        host.parse()
        ok(acl.rt.memcpy_async(on_device, SIZE, staging, SIZE, acl.ACL_MEMCPY_HOST_TO_DEVICE, copies))
        ok(acl.rt.memset_async(other, SIZE, 7, SIZE, compute))  # the step before this one
        ok(acl.rt.synchronize_stream_with_timeout(compute, 10_000))
        host.step()
        if ordered:
            ok(acl.rt.synchronize_stream_with_timeout(copies, 10_000))
        hs.host_access(ids, "w")
        ids[:] = 2  # the next batch
        ok(acl.rt.memcpy_async(result, SIZE, on_device, SIZE, acl.ACL_MEMCPY_DEVICE_TO_HOST, copies))
        ok(acl.rt.synchronize_stream_with_timeout(copies, 10_000))
        hs.host_access(back, "r")
        assert back.tolist() == [1] * SIZE
    finally:
        ok(acl.rt.destroy_stream(copies), acl.rt.destroy_stream(compute))
        ok(acl.rt.free(on_device), acl.rt.free(other))
        ok(acl.rt.free_host(staging), acl.rt.free_host(result))


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
