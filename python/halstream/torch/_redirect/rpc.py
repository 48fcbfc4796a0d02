"""torch.distributed.rpc: device maps are refused, since TensorPipe carries CUDA tensors by the driver only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .errors import NotBuiltError
from .patches import Patches

__all__ = ["changes"]

_NO_MAPS = (
    "device maps of torch.distributed.rpc are not built in halstream: leave {} out, send x.cpu() and call cuda() on "
    "what arrives; RPC with CPU tensors works"
)


def changes(patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with the module of RPC's options once it is imported."""

    def change(options: ModuleType) -> None:
        given = options.TensorPipeRpcBackendOptions
        construct = given.__init__

        @functools.wraps(construct)
        def checked(self: Any, *, device_maps: Any = None, **others: Any) -> None:
            if device_maps:
                raise NotBuiltError(_NO_MAPS.format("device_maps"))
            construct(self, **others)

        @functools.wraps(given.set_device_map)
        def refused(self: Any, to: str, device_map: Any) -> None:
            raise NotBuiltError(_NO_MAPS.format("set_device_map"))

        patches.set(given, "__init__", checked)
        patches.set(given, "set_device_map", refused)

    return {"torch.distributed.rpc.options": change}
