"""Reads by the host of tensors that streams copy from and to, while a sanitizer is on.

CPU operators are looked at by the module. What reads a tensor's memory without an
operator is replaced here. A view of it that is handed out reads nothing: what is done
through it later is seen by the pages of memory, and else the views are counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import _native, _sites
from .patches import Patches

__all__ = ["HostAccesses"]

#: Methods of a tensor that hand out views of its memory.
_VIEWS = ("numpy", "__dlpack__")

_host_access = _native.raw("host_access")


class HostAccesses:
    """Declares them, while it is switched on."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch = torch
        self._module = module
        self._patches = Patches()
        self._on = False

    def switch(self, on: bool) -> None:
        """Begin or end declaring them."""
        if on == self._on:
            return
        self._on = on
        self._module.watch_host_accesses(on)
        if not on:
            self._patches.undo()
            return
        tensor = self._torch.Tensor
        self._patches.set(tensor, "tolist", self._reading(tensor.tolist))
        for name in _VIEWS:
            self._patches.set(tensor, name, self._viewing(getattr(tensor, name)))
        self._patches.set(tensor, "__array__", self._converting(tensor.__array__))
        storage = self._torch.UntypedStorage
        for name in ("tolist", "_write_file"):
            self._patches.set(storage, name, self._reading(getattr(storage, name)))
        save = self._torch.serialization._save

        @functools.wraps(save)
        def saving(obj: Any, archive: Any, *args: Any, **kwargs: Any) -> Any:
            return save(obj, _Archive(archive, self._read), *args, **kwargs)

        self._patches.set(self._torch.serialization, "_save", saving)

    def _reading(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def read(self_: Any, *args: Any, **kwargs: Any) -> Any:
            self._read(self_)
            return method(self_, *args, **kwargs)

        return read

    def _viewing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def view(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if self._range(self_) is not None:
                _sites.real_torch.views += 1
            return method(self_, *args, **kwargs)

        return view

    def _converting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def array(self_: Any, *args: Any, **kwargs: Any) -> Any:
            made = method(self_, *args, **kwargs)  # by `numpy`
            if made.ctypes.data != self_.data_ptr():
                self._read(self_)  # another type was asked for: a copy
            return made

        return array

    def _read(self, value: Any) -> None:
        """Declare that the host reads a tensor or a storage, if streams may copy from or to it."""
        where = self._range(value)
        if where is not None:
            _host_access(*where, 0)

    def _range(self, value: Any) -> tuple[int, int] | None:
        """Return the address and the size of a tensor or a storage that streams may copy from or to."""
        if value.device.type != "cpu":
            return None
        if not isinstance(value, self._torch.Tensor):
            start, nbytes = value.data_ptr(), value.nbytes()
        elif value.layout is not self._torch.strided or not value.numel():
            return None
        else:
            last = sum((n - 1) * step for n, step in zip(value.shape, value.stride(), strict=True))
            start, nbytes = value.data_ptr(), (last + 1) * value.element_size()
        return (start, nbytes) if nbytes and self._module.is_used_by_copies(start) else None


class _Archive:
    """An archive of torch.save, with a look at the storages that are written to it."""

    def __init__(self, archive: Any, read: Callable[[Any], None]) -> None:
        self._archive = archive
        self._read = read

    def write_record(self, name: str, data: Any, *args: Any) -> Any:
        if hasattr(data, "data_ptr"):
            self._read(data)
        return self._archive.write_record(name, data, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)
