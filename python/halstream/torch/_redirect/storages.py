"""Storages on the device: torch makes them with an allocator of its own where it has one for CUDA."""

from __future__ import annotations

import threading
from multiprocessing.queues import Queue
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

from .errors import NotBuiltError
from .patches import Patches

__all__ = ["patch"]

_NOT_SHARED = (
    "tensors on a device of halstream cannot be shared with other processes: IPC is not built yet; send a CPU tensor"
)


def patch(torch: Any, module: Any, patches: Patches) -> None:
    """Let `torch.UntypedStorage` take its memory on a device where tensors have theirs."""
    base = torch._C.StorageBase

    def new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        where = (
            None
            if device is None
            else torch.device("cuda", device)
            if isinstance(device, int)
            else torch.device(device)
        )
        if where is None or where.type != "cuda" or "allocator" in kwargs:
            return base.__new__(cls, *args, **kwargs, **({} if device is None else {"device": device}))
        (given,) = args or (kwargs.get("size", 0),)
        if isinstance(given, int):
            return torch.empty(given, dtype=torch.uint8, device=where).untyped_storage()
        return torch.tensor(list(given), dtype=torch.uint8).to(where).untyped_storage()

    def resize(self: Any, size: int) -> Any:
        return module.storage_resize(self, size) if self.device.type == "cuda" else base.resize_(self, size)

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltError(_NOT_SHARED)

    for name in ("_share_cuda_", "_new_shared_cuda", "_release_ipc_counter_cuda"):
        patches.set(torch.UntypedStorage, name, refuse)
    patches.set(torch.UntypedStorage, "__new__", new)
    patches.set(torch.UntypedStorage, "resize_", resize)
    _refuse_other_processes(torch, patches)


class _Feeding(threading.local):
    """Whether this thread takes what is put into a queue to its pipe."""

    on = False


_feeding = _Feeding()


def _refused() -> NoReturn:
    raise NotBuiltError(_NOT_SHARED)


def _refuse_other_processes(torch: Any, patches: Patches) -> None:
    """Let tensors on the device be refused where they are sent, or by a queue where they are received.

    A queue pickles on a thread of its own. An error there would reach nobody, and both sides would wait.
    """
    reducers: dict[type, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    share, before = torch.multiprocessing.reductions.reduce_tensor, dict(reducers)

    def reduce(tensor: Any) -> Any:
        if tensor.device.type != "cuda":
            return share(tensor)
        if not _feeding.on:
            raise NotBuiltError(_NOT_SHARED)
        return _refused, ()  # raised by who receives it

    reducers.update((kind, reduce) for kind, reducer in before.items() if reducer is share)
    patches.on_undo(lambda: reducers.update(before))
    feed = Queue._feed  # type: ignore[attr-defined]

    def feeding(*args: Any) -> None:
        _feeding.on = True
        feed(*args)

    patches.set(Queue, "_feed", staticmethod(feeding))
