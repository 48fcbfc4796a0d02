"""Tensors on a device that other processes have, as torch.multiprocessing sends them."""

from __future__ import annotations

import mmap
import os
import threading
from multiprocessing.queues import Queue
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, NoReturn

from ..._core import _sharing
from ..._errors import HalError
from ..._runtime import runtime
from .classes import raising
from .patches import Patches

__all__ = ["collect", "patch"]

#: What a counter says once the process that has received a storage needs it no more.
_RELEASED = 1


class _Counters:
    """A page of the sender, in which receivers say what they have released: a byte for each storage that was sent."""

    def __init__(self) -> None:
        self.file = os.memfd_create("halstream storages that were sent", os.MFD_CLOEXEC)
        os.ftruncate(self.file, mmap.PAGESIZE)
        self.bytes = mmap.mmap(self.file, mmap.PAGESIZE)
        self.name = f"/proc/{os.getpid()}/fd/{self.file}".encode()
        self.free = list(range(mmap.PAGESIZE))


class _Sent(NamedTuple):
    """A storage that another process has, or will have: it stays as long."""

    storage: Any
    event: Any
    counters: _Counters
    place: int


_sent: list[_Sent] = runtime.keep("storages that were sent to other processes", [])
_pages: list[_Counters] = runtime.keep("counters of storages that were sent", [])
_lock = threading.Lock()


def collect() -> None:
    """Forget the storages that their receivers have released."""
    with _lock:
        over = [one for one in _sent if one.counters.bytes[one.place] == _RELEASED]
        _sent[:] = [one for one in _sent if one.counters.bytes[one.place] != _RELEASED]
        for one in over:
            one.counters.bytes[one.place] = 0
            one.counters.free.append(one.place)
    del over  # their memory is freed without the lock


def _place() -> tuple[_Counters, int]:
    with _lock:
        for page in _pages:
            if page.free:
                return page, page.free.pop()
        _pages.append(_Counters())
        return _pages[-1], _pages[-1].free.pop()


def _release(name: bytes, place: int) -> None:
    """Say to the sender of a storage that this process needs it no more."""
    try:
        file = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return  # it has ended
    try:
        with mmap.mmap(file, mmap.PAGESIZE) as page:
            page[place] = _RELEASED
    finally:
        os.close(file)


def patch(torch: Any, module: Any, patches: Patches) -> None:
    """Let `torch.UntypedStorage` share its memory as torch.multiprocessing.reductions asks for it."""

    def share(self: Any) -> tuple[Any, ...]:
        collect()
        index, size = self.device.index, self.nbytes()
        if size == 0:
            return index, None, 0, 0, b"", 0, b"", False
        address = self.data_ptr()
        try:
            handle = _sharing.memory_handle(address)
        except HalError as exc:
            if "memory of another process" in str(exc):
                raise RuntimeError(
                    "Attempted to send CUDA tensor received from another process; this is not currently supported. "
                    "Consider cloning before sending."
                ) from None
            raise torch.AcceleratorError(f"CUDA error: {exc}") from None
        event = torch.cuda.Event(interprocess=True)
        event.record(torch.cuda.current_stream(index))
        event_handle = event.ipc_handle()
        counters, place = _place()
        with _lock:
            _sent.append(_Sent(self, event, counters, place))
        offset = address - _sharing.start_of(address)
        return index, handle, size, offset, counters.name, place, event_handle, True

    def receive(
        cls: Any, index: int, handle: bytes, size: int, offset: int, name: bytes, place: int, event: bytes, waits: bool
    ) -> Any:
        torch.cuda.init()
        base = raising(torch, lambda: _sharing.open_memory(handle))

        def released() -> None:
            try:  # as torch does: the sender may use the memory for something else from then on
                torch.cuda.current_stream(index).synchronize()
            finally:
                _release(name, place)
                _sharing.close_memory(base)

        try:
            if waits:
                torch.cuda.Event.from_ipc_handle("cuda", event).wait(torch.cuda.current_stream(index))
            return module.storage_of_process(base + offset, size, index, released)
        except BaseException:
            _release(name, place)
            _sharing.close_memory(base)
            raise

    def release(cls: Any, name: bytes, place: int) -> None:
        _release(name, place)

    patches.set(torch.UntypedStorage, "_share_cuda_", share)
    patches.set(torch.UntypedStorage, "_new_shared_cuda", classmethod(receive))
    patches.set(torch.UntypedStorage, "_release_ipc_counter_cuda", classmethod(release))
    _raise_where_seen(torch, patches)


class _Feeding(threading.local):
    """Whether this thread takes what is put into a queue to its pipe."""

    on = False


_feeding = _Feeding()


def _failed(error: Exception) -> NoReturn:
    raise error


def _raise_where_seen(torch: Any, patches: Patches) -> None:
    """Let a tensor that cannot be sent raise where it is sent, or by a queue where it is received.

    A queue pickles on a thread of its own. An error there would reach nobody, and both sides would wait.
    """
    reducers: dict[type, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    share, before = torch.multiprocessing.reductions.reduce_tensor, dict(reducers)

    def reduce(tensor: Any) -> Any:
        if not (_feeding.on and tensor.device.type == "cuda"):
            return share(tensor)
        try:
            return share(tensor)
        except Exception as exc:
            return _failed, (RuntimeError(f"a tensor could not be sent by a queue: {exc}"),)

    reducers.update((kind, reduce) for kind, reducer in before.items() if reducer is share)
    patches.on_undo(lambda: reducers.update(before))
    feed = Queue._feed  # type: ignore[attr-defined]

    def feeding(*args: Any) -> None:
        _feeding.on = True
        feed(*args)

    patches.set(Queue, "_feed", staticmethod(feeding))
