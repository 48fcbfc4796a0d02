"""What torch.cuda.green_contexts calls of CUDA's driver, on halstream.

The class GreenContext and its rules are torch's own. The processors of a host device are figures only: a context that
has some of them computes as fast as one that has all, and its streams are those of the device.
"""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace
from typing import Any

from ... import _core
from .patches import Patches
from .properties import capability

__all__ = ["patch"]

_SUCCESS = SimpleNamespace(value=0)
_VERSION = 13020  #: of the driver that the names here are of
_PROCESSORS, _QUEUES = "processors", "queues"


def _resource(count: int) -> Any:
    return SimpleNamespace(
        type=_PROCESSORS, sm=SimpleNamespace(smCount=count, smCoscheduledAlignment=_alignment(), flags=0)
    )


def _alignment() -> int:
    """Return the multiple of processors that CUDA gives a context of such a device."""
    return 8 if capability()[0] >= 9 else 2


class _Pushed(threading.local):
    """The contexts that a thread has pushed, the last one current; 0 is a device's own."""

    def __init__(self) -> None:
        self.contexts = [0]


class _Driver:
    """The functions of `cuda.bindings.driver` that torch calls, each with the code of success before its result."""

    CUdevResourceType = SimpleNamespace(
        CU_DEV_RESOURCE_TYPE_SM=_PROCESSORS, CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG=_QUEUES
    )
    CUdevSmResourceGroup_flags = SimpleNamespace(
        CU_DEV_SM_RESOURCE_GROUP_BACKFILL=1, CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID=2
    )
    CUgreenCtxCreate_flags = SimpleNamespace(CU_GREEN_CTX_DEFAULT_STREAM=1)
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._numbers = itertools.count(1)
        self._pushed = _Pushed()
        self._contexts: dict[int, tuple[int, Any]] = {}  #: the device and the processors of each
        self._streams: dict[int, _core.Stream] = {}

    def CU_DEV_SM_RESOURCE_GROUP_PARAMS(self) -> Any:
        return SimpleNamespace(smCount=0, coscheduledSmCount=0, preferredCoscheduledSmCount=0, flags=0)

    def cuInit(self, flags: int) -> tuple[Any, ...]:
        return (_SUCCESS,)

    def cuDeviceGet(self, index: int) -> tuple[Any, ...]:
        return _SUCCESS, index

    def cuDeviceGetDevResource(self, device: int, kind: str) -> tuple[Any, ...]:
        count = self._torch.cuda.get_device_properties(device).multi_processor_count
        if kind == _QUEUES:
            return _SUCCESS, SimpleNamespace(
                type=_QUEUES, wqConfig=SimpleNamespace(sharingScope=0, wqConcurrencyLimit=count)
            )
        return _SUCCESS, _resource(count)

    def cuDevSmResourceSplitByCount(self, groups: int, resource: Any, flags: int, least: int) -> tuple[Any, ...]:
        alignment = _alignment()
        count = min(-(-least // alignment) * alignment, resource.sm.smCount)
        return _SUCCESS, [_resource(count)], 1, _resource(resource.sm.smCount - count)

    def cuDevSmResourceSplit(self, groups: int, resource: Any, flags: int, params: list[Any]) -> tuple[Any, ...]:
        left = resource.sm.smCount
        parts = []
        for param in params:
            count = param.smCount or left // _alignment() * _alignment()
            if count > left or (count % (param.coscheduledSmCount or _alignment()) and not param.flags & 1):
                raise RuntimeError(
                    f"CUDA error: invalid argument: no {count} of the {left} processors left, in groups of "
                    f"{param.coscheduledSmCount or _alignment()}"
                )
            parts.append(_resource(count))
            left -= count
        return _SUCCESS, parts, _resource(left)

    def cuDevResourceGenerateDesc(self, resources: list[Any], count: int) -> tuple[Any, ...]:
        return _SUCCESS, resources

    def cuGreenCtxCreate(self, description: list[Any], device: int, flags: int) -> tuple[Any, ...]:
        number = next(self._numbers)
        whole = self.cuDeviceGetDevResource(device, _PROCESSORS)[1]
        self._contexts[number] = device, next((one for one in description if one.type == _PROCESSORS), whole)
        return _SUCCESS, number

    def cuCtxFromGreenCtx(self, context: int) -> tuple[Any, ...]:
        return _SUCCESS, context

    def cuGreenCtxGetDevResource(self, context: int, kind: str) -> tuple[Any, ...]:
        return _SUCCESS, self._contexts[context][1]

    def cuGreenCtxDestroy(self, context: int) -> tuple[Any, ...]:
        del self._contexts[context]
        return (_SUCCESS,)

    def cuGreenCtxStreamCreate(self, context: int, flags: int, priority: int) -> tuple[Any, ...]:
        stream = _core.Stream(self._contexts[context][0], non_blocking=True)
        self._streams[stream.handle] = stream
        return _SUCCESS, stream.handle

    def cuStreamDestroy(self, handle: int) -> tuple[Any, ...]:
        self._streams.pop(handle).close()
        return (_SUCCESS,)

    def cuCtxGetCurrent(self) -> tuple[Any, ...]:
        return _SUCCESS, self._pushed.contexts[-1] or -1  # a device's own context is there from the start

    def cuCtxPushCurrent(self, context: int) -> tuple[Any, ...]:
        self._pushed.contexts.append(context)
        return (_SUCCESS,)

    def cuCtxPopCurrent(self) -> tuple[Any, ...]:
        return _SUCCESS, self._pushed.contexts.pop()


def patch(torch: Any, patches: Patches) -> bool:
    """Let torch's class call these; whether this torch has it in Python."""
    module = getattr(torch.cuda, "green_contexts", None)
    if not hasattr(module, "_drv"):
        return False

    def check(result: tuple[Any, ...]) -> Any:
        _, *values = result
        return None if not values else values[0] if len(values) == 1 else tuple(values)

    for name, value in (
        ("_drv", _Driver(torch)), ("_rt", SimpleNamespace()), ("_HAS_CUDA_BINDINGS", True),
        ("_check_cuda_bindings", check), ("_get_driver_version", lambda: _VERSION),
        ("_ensure_cuda_bindings_version", lambda version, message: None),
    ):  # fmt: skip
        patches.set(module, name, value)
    return True
