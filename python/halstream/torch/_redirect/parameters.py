"""The names that modules give to memory: ``layer.3.weight``, for reports."""

from __future__ import annotations

import gc
import sys
from typing import Any

from ..._checks.decoration import found_by

__all__ = ["names"]


def names() -> list[tuple[int, int, str]]:
    """Return address, size and name of the parameters, gradients and buffers on the device, of all live modules.

    A tensor that wraps others, such as a shard of a DTensor, gives its name to their memory. It looks at every object
    of the process, so it is for reports only. A module or tensor that cannot be looked at has no name.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    modules = _modules(torch.nn.Module)
    inner = {id(child) for one in modules for child in found_by(_children, one)}
    found: dict[int, tuple[int, int, str]] = {}
    for root in modules:
        if id(root) in inner:
            continue
        for name, tensor in found_by(_tensors, root):
            for address, size in found_by(_memory, torch, tensor):
                found.setdefault(address, (address, size, name))
    return sorted(found.values())


def _modules(base: type) -> list[Any]:
    """Return the modules among all objects, a million where a compiler was used: each type is looked at once."""
    modules: list[Any] = []
    kinds: dict[int, bool] = {}
    for one in gc.get_objects():
        kind = type(one)  # not isinstance: some objects run code when they are asked for their class
        known = kinds.get(id(kind))
        if known is None:
            known = kinds[id(kind)] = issubclass(kind, base)
        if known:
            modules.append(one)
    return modules


def _children(module: Any) -> list[Any]:
    return list(module.children())


def _tensors(root: Any) -> list[tuple[str, Any]]:
    named = []
    for name, parameter in root.named_parameters():
        named.append((name, parameter))
        if parameter.grad is not None:
            named.append((f"{name}.grad", parameter.grad))
    return named + list(root.named_buffers())


def _memory(torch: Any, tensor: Any) -> list[tuple[int, int]]:
    """Return address and size of the memory on the device that a tensor stands for."""
    if torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor):
        # What it wraps are tensors, and from torch 2.15 on also other objects.
        wrapped = [getattr(tensor, attribute) for attribute in tensor.__tensor_flatten__()[0]]
        return [found for one in wrapped if isinstance(one, torch.Tensor) for found in _memory(torch, one)]
    if not tensor.is_cuda or torch.nn.parameter.is_lazy(tensor):
        return []
    storage = tensor.untyped_storage()
    return [(storage.data_ptr(), storage.nbytes())]
