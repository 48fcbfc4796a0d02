"""The names that modules give to memory: ``layer.3.weight``, for reports."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["names"]


def names() -> list[tuple[int, int, str]]:
    """Return address, size and name of the parameters, gradients and buffers on the device, of all live modules.

    It looks at every object of the process, so it is for reports only.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    # Not isinstance: some objects run code when they are asked for their class.
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    inner = {id(child) for one in modules for child in one.children()}
    found: dict[int, tuple[int, int, str]] = {}
    for root in modules:
        if id(root) not in inner:
            for name, tensor in _tensors(root):
                if tensor.is_cuda and not torch.nn.parameter.is_lazy(tensor):
                    storage = tensor.untyped_storage()
                    found.setdefault(storage.data_ptr(), (storage.data_ptr(), storage.nbytes(), name))
    return sorted(found.values())


def _tensors(root: Any) -> Iterator[tuple[str, Any]]:
    for name, parameter in root.named_parameters():
        yield name, parameter
        if parameter.grad is not None:
            yield f"{name}.grad", parameter.grad
    yield from root.named_buffers()
