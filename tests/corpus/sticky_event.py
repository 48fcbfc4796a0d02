"""An event of AscendCL that stays set is used for a second round without a reset.

Seen: no report is cited here. It is the rule for events made with
``aclrtCreateEventWithFlag(ACL_EVENT_SYNC)``, which programs that come from CUDA
do not know: once recorded such an event lets every wait pass, until
``aclrtResetEvent``.
Missing: the reset after the wait of the first round.
Passes by luck: the fill of the second round was enqueued first, on an idle
stream.
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
    producer, consumer = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    event = made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    block = device_block(SIZE)
    back, address = host_block(SIZE)
    try:
        for number in (1, 2):
            host.parse()
            ok(acl.rt.memset_async(block, SIZE, number, SIZE, producer))
            ok(acl.rt.record_event(event, producer))
            host.step()
            ok(acl.rt.stream_wait_event(consumer, event))
            if ordered:
                ok(acl.rt.reset_event(event, consumer))
            ok(acl.rt.memcpy_async(address, SIZE, block, SIZE, acl.ACL_MEMCPY_DEVICE_TO_HOST, consumer))
            ok(acl.rt.synchronize_stream_with_timeout(consumer, 10_000))
            hs.host_access(back, "r")
            assert back.tolist() == [number] * SIZE
    finally:
        ok(acl.rt.destroy_stream(producer), acl.rt.destroy_stream(consumer))
        ok(acl.rt.destroy_event(event), acl.rt.free(block), acl.rt.free_host(address))


def broken() -> None:
    """Run without the reset."""
    _run(ordered=False)


def fixed() -> None:
    """Run with the reset."""
    _run(ordered=True)
