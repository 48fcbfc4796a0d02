"""AscendCL's blocking copy waits for itself and for no stream.

Seen: a synchronization before ``aclrtMemcpy`` was taken out in the belief that
the blocking copy waits for the streams, as CUDA's does for blocking ones
(question in DeepLink-org/deeplink.framework #730).
Missing: a wait for the stream that fills the block.
Passes by luck: the fill was enqueued first, on an idle stream.
"""

from __future__ import annotations

from halstream import acl

from ._acl import begin, device_block, host_block, made, ok
from ._host import Host

SIZE = 256


def _run(ordered: bool) -> None:
    host = Host()
    begin()
    stream = made(acl.rt.create_stream())
    block = device_block(SIZE)
    back, address = host_block(SIZE)
    try:
        host.parse()
        ok(acl.rt.memset_async(block, SIZE, 3, SIZE, stream))
        host.step()
        if ordered:
            ok(acl.rt.synchronize_stream_with_timeout(stream, 10_000))
        ok(acl.rt.memcpy(address, SIZE, block, SIZE, acl.ACL_MEMCPY_DEVICE_TO_HOST))
        assert acl.util.ptr_to_bytes(address, SIZE) == bytes([3]) * SIZE == back.tobytes()
    finally:
        ok(acl.rt.destroy_stream(stream), acl.rt.free(block), acl.rt.free_host(address))


def broken() -> None:
    """Run without the wait."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the wait."""
    _run(ordered=True)
