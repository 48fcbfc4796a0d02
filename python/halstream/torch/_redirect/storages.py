"""Storages on the device: torch makes them with an allocator of its own where it has one for CUDA."""

from __future__ import annotations

from typing import Any

from .patches import Patches

__all__ = ["patch"]


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

    patches.set(torch.UntypedStorage, "__new__", new)
    patches.set(torch.UntypedStorage, "resize_", resize)
