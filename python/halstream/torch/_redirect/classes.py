"""torch.cuda.Stream and torch.cuda.Event: torch's own source over torch.Stream and torch.Event.

torch defines the two classes in Python over base classes that only a CUDA build has.
Here that source is executed once more over bases that go through the device guard of the
module, so that texts, signatures and protocols are torch's on every kind of wheel.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ... import _core as core
from ... import _native
from ..._core._sharing import HANDLE
from ..._errors import DeviceLostError, HalError

__all__ = ["PRIORITIES", "bases", "executed", "raising"]

#: Least and greatest priority of torch's pool of streams.
PRIORITIES = (0, -3)


@functools.cache
def bases(torch: Any, module: Any) -> tuple[type, type]:
    """Return the classes that stand for torch._C._CudaStreamBase and torch._C._CudaEventBase."""

    class _CudaStreamBase(torch.Stream):  # type: ignore[misc]
        """A stream of the current device, one that exists, or one of a handle made elsewhere."""

        __module__ = "torch._C"

        def __new__(
            cls, priority: int = 0, stream_id: int = 0, device_index: int = 0, device_type: int = 0, stream_ptr: int = 0
        ) -> Any:
            if not (stream_id or device_index or device_type):
                index = module._cuda_getDevice()
                if stream_ptr:
                    if priority:
                        raise RuntimeError("Priority was explicitly set for an external stream")
                    stream_id, device_index, device_type = module._cuda_getStreamFromExternal(stream_ptr, index)
                else:
                    stream_id, device_index, device_type = module.stream_new(index, priority), index, 1
            return super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=device_type)

        @property
        def cuda_stream(self) -> int:
            return int(module.stream_handle(self.device_index, self.stream_id))

        @property
        def priority(self) -> int:
            return int(module.stream_priority(self.device_index, self.stream_id))

        @staticmethod
        def priority_range() -> tuple[int, int]:
            return PRIORITIES

        def is_capturing(self) -> bool:
            return bool(module.stream_capture(self.device_index, self.stream_id))

    class _CudaEventBase(torch.Event):  # type: ignore[misc]
        """An event of torch.cuda: its device is None until it is recorded."""

        __module__ = "torch._C"

        def __new__(cls, *, enable_timing: Any, blocking: Any, interprocess: Any, external: Any) -> Any:
            timing, sleeps, shared, outside = (
                _flag(value) for value in (enable_timing, blocking, interprocess, external)
            )
            kind: Any = cls
            if shared and not issubclass(kind, Interprocess):
                of = raising(torch, lambda: core.Event(timing=timing, blocking_sync=sleeps, interprocess=True))
                return _interprocess(torch, module, kind, of)
            new = super().__new__(cls, device="cuda", enable_timing=timing, blocking=sleeps)
            new._timing, new._external = timing, outside
            return new

        def record(self, stream: Any = None) -> None:
            if not self._external:
                super().record(stream)
                return
            where = torch.cuda.current_stream() if stream is None else stream
            module.others_record(True)
            try:
                super().record(where)
            finally:
                module.others_record(False)
            number = _number(torch, module, where)
            raising(torch, lambda: _native.stream_record_external(number, self.event_id))

        def wait(self, stream: Any = None) -> None:
            if not (self._external and self.event_id):
                super().wait(stream)
                return
            number = _number(torch, module, stream)
            raising(torch, lambda: _native.stream_wait_external(number, self.event_id))

        @property
        def device(self) -> Any:
            return super().device if self.event_id else None

        @property
        def cuda_event(self) -> int:
            return int(self.event_id)

        def elapsed_time(self, other: Any) -> float:
            if not isinstance(other, _CudaEventBase):
                raise RuntimeError("expected other to be a torch.cuda.Event object")
            # torch.Event's own takes no object of a subclass; the order of the checks is torch's.
            if not (self._timing and other._timing):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if not (self.event_id and other.event_id):
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            if not (self.query() and other.query()):
                raise RuntimeError("Both events must be completed before calculating elapsed time.")
            return float(_native.event_elapsed(self.event_id, other.event_id))

        def ipc_handle(self) -> bytes:
            raise RuntimeError("CUDA error: invalid argument: the event was made without interprocess=True")

        @classmethod
        def from_ipc_handle(cls, device: Any, handle: Any) -> Any:
            size, where = len(handle), torch.device(device).type
            if size != HANDLE:
                raise RuntimeError(f"Event.from_ipc_handle expects byte-like object of size {HANDLE}, but got {size}")
            if where != "cuda":
                raise RuntimeError(f"Event can only be created on CUDA devices, but got device type {where}")
            return _interprocess(torch, module, cls, raising(torch, lambda: core.Event.from_ipc(handle)))

    return _CudaStreamBase, _CudaEventBase


#: cudaErrorAssert: what a CUDA kernel gives that finds wrong values.
_ASSERT = 710

#: What CUDA says of its errors of kernels and captures; other texts than these are the runtime's.
_TEXTS = {
    700: "an illegal memory access was encountered",
    _ASSERT: "device-side assert triggered",
    716: "misaligned address",
    719: "unspecified launch failure",
    900: "operation not permitted when stream is capturing",
    901: "operation failed due to a previous error during capture",
    904: "capturing stream has unjoined work",
    905: "dependency created on uncaptured work in another stream",
    906: "operation would make the legacy stream depend on a capturing blocking stream",
    907: "operation not permitted on an event last recorded in a capturing stream",
    908: "attempt to terminate a thread-local capture sequence from another thread",
}


def raising(torch: Any, call: Callable[[], Any]) -> Any:
    """Call a function of the runtime; its errors become torch's."""
    try:
        return call()
    except HalError as exc:
        number = exc.code or (_ASSERT if isinstance(exc, DeviceLostError) else 0)
        text = _TEXTS.get(number, "")
        wrong = torch.AcceleratorError(f"CUDA error: {text}: {exc}" if text else f"CUDA error: {exc}")
        if number in _TEXTS:
            wrong.error_code = number
    raise wrong  # not in the handler: what the program was handling is its context, as with torch's own errors


class Interprocess:
    """An event that other processes have, too: it is the runtime's own, of which torch's class knows nothing."""

    _of: core.Event


def _interprocess(torch: Any, module: Any, cls: Any, of: core.Event) -> Any:
    """Return an event of torch's class, or of one that a program has derived from it, for an event of the runtime."""
    new = _interprocess_class(torch, module, cls)(interprocess=True)
    new._of = of
    return new


@functools.cache
def _interprocess_class(torch: Any, module: Any, cls: Any) -> Any:
    class Event(Interprocess, cls):  # type: ignore[misc]
        __doc__ = cls.__doc__

        def record(self, stream: Any = None) -> None:
            number = _number(torch, module, stream)
            raising(torch, lambda: _native.stream_record(number, self._of._id))

        def wait(self, stream: Any = None) -> None:
            number = _number(torch, module, stream)
            raising(torch, lambda: _native.stream_wait_event(number, self._of._id))

        def query(self) -> bool:
            return bool(raising(torch, self._of.query))

        def synchronize(self) -> None:
            raising(torch, self._of.synchronize)

        def ipc_handle(self) -> bytes:
            handle: bytes = raising(torch, lambda: self._of.to_ipc(module._cuda_getDevice()))
            return handle

        @property
        def event_id(self) -> int:
            return self._of._id if self._of._ordinal >= 0 else 0

        @property
        def device(self) -> Any:
            return torch.device("cuda", self._of._ordinal) if self._of._ordinal >= 0 else None

    Event.__name__, Event.__qualname__, Event.__module__ = cls.__name__, cls.__qualname__, cls.__module__
    return Event


def _number(torch: Any, module: Any, stream: Any) -> int:
    """Return the runtime's number of a stream; None is the current one."""
    where = torch.cuda.current_stream() if stream is None else stream
    return int(module.runtime_stream(where.device_index, where.stream_id))


def _flag(value: Any) -> bool:
    if not isinstance(value, int):
        raise TypeError(f"an integer is required (got type {type(value).__name__})")
    return bool(value)


@functools.cache
def executed(torch: Any, module: Any, name: str) -> ModuleType:
    """Execute the source of a module of torch over these base classes; the caller has put them into torch._C."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
