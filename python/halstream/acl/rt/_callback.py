"""Host functions in stream order: on a subscribed thread, or on a thread of the runtime."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ..._core._context import ReportQueue, host_function
from ..._core._declared import accesses
from .. import _codes as codes
from .. import _table
from .. import constants as c
from .._call import command
from .._table import refuse, stream


@command(
    "hh",
    not_subscribed=codes.RT_STREAM_SUBSCRIBE,
    wrong_device=codes.RT_THREAD_SUBSCRIBE,
)
def subscribe_report(thread_id: int, handle: int, /) -> int:
    """aclrtSubscribeReport: the thread will run the stream's callbacks.

    `thread_id` is `util.start_thread`'s, or `threading.get_ident` of a thread.
    """
    served = stream(handle)
    queue = _table.queues.setdefault(thread_id, ReportQueue())
    try:
        queue.subscribe(served)
    finally:
        _forget_unused(thread_id, queue)
    return 0


def _forget_unused(thread_id: int, queue: ReportQueue) -> None:
    if queue.unused and _table.queues.get(thread_id) is queue:
        del _table.queues[thread_id]


@command("hh", not_subscribed=codes.RT_STREAM_SUBSCRIBE)
def unsubscribe_report(thread_id: int, handle: int, /) -> int:
    """aclrtUnSubscribeReport: undo `subscribe_report`."""
    served = stream(handle)
    queue = _table.queues.get(thread_id)
    if queue is None:
        raise refuse(codes.RT_THREAD_SUBSCRIBE, f"thread {thread_id:#x} serves no stream")
    queue.unsubscribe(served)
    _forget_unused(thread_id, queue)
    return 0


def _declaring(place: int) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let a function that takes a callback at `place` take ``reads=`` and ``writes=``, too."""

    def decorate(enqueue: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(enqueue)
        def call(*args: Any, reads: Iterable[Any] | None = None, writes: Iterable[Any] | None = None) -> int:
            if (reads is not None or writes is not None) and len(args) > place and callable(args[place]):
                declared = accesses(args[place], reads or (), writes or ())
                args = (*args[:place], declared, *args[place + 1 :])
            return enqueue(*args)

        return call

    return decorate


@_declaring(0)
@command("foih")
def launch_callback(function: Callable[[Any], object], argument: Any, block_type: int, handle: int, /) -> int:
    """aclrtLaunchCallback: call ``function(argument)`` in stream order on the subscribed thread.

    An exception in it goes to `sys.unraisablehook`. Also takes ``reads=`` and ``writes=``.
    """
    if block_type not in (c.ACL_CALLBACK_NO_BLOCK, c.ACL_CALLBACK_BLOCK):
        raise refuse(codes.INVALID_PARAM, f"the block type is 0 or 1, not {block_type}")
    served = stream(handle)
    block = block_type == c.ACL_CALLBACK_BLOCK
    ReportQueue.of(served).launch(served, function, block, argument)
    return 0


@command("i", timeout=codes.RT_REPORT_TIMEOUT)
def process_report(timeout: int, /) -> int:
    """aclrtProcessReport: wait for callbacks of this thread's streams and run them.

    Milliseconds, -1 for ever, 0 is an error; 507012 when none came.
    """
    if timeout < -1 or timeout == 0:
        raise refuse(codes.INVALID_PARAM, f"the time limit is -1 or more than 0 milliseconds, not {timeout}")
    queue = _table.queues.get(threading.get_ident())
    if queue is None:
        raise refuse(codes.RT_THREAD_SUBSCRIBE, "this thread is subscribed to no stream")
    try:
        queue.process(None if timeout == -1 else timeout / 1000)
    finally:
        _forget_unused(threading.get_ident(), queue)
    return 0


@_declaring(1)
@command("hfo", not_subscribed=codes.RT_STREAM_SUBSCRIBE)
def launch_host_func(handle: int, function: Callable[[Any], object], argument: Any, /) -> int:
    """aclrtLaunchHostFunc (not in pyACL): call ``function(argument)`` on a runtime's thread.

    Also takes ``reads=`` and ``writes=``.
    """
    host_function(stream(handle), function, argument)
    return 0
