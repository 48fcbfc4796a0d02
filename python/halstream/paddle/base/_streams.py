"""The base streams and events of paddle 3.3: what its wrappers keep in ``stream_base``.

There is one living object for each stream, so that ``is`` and ``==`` compare
streams. Objects of the wrapper classes are accepted wherever base
objects are.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from ... import _core as core
from ..._core import _current
from ..._dialects._stream import DialectStream
from .._errors import ERRORS, incompatible
from .._places import CUDAPlace, CustomPlace
from .._shared import shared
from ._events import LIBRARY, CUDAEvent, CustomDeviceEvent, take_device, wrong_operand

S = TypeVar("S", bound="BaseStream")


class BaseStream(DialectStream):
    """What the base streams share; not a name of paddle."""

    _errors = ERRORS

    def _open(self, ordinal: int, priority: int, blocking: bool = False) -> None:
        # A driver number: 1 is high and 2 is normal here, lower is more urgent there.
        self._create(ordinal, priority - 2, core.BLOCK_HOST if blocking else core.NON_BLOCKING)
        shared(type(self), self)

    @classmethod
    def _wrap(cls: type[S], other: core.Stream) -> S:
        return shared(cls, other)

    @classmethod
    def _default(cls: type[S], ordinal: int, per_thread: bool = False) -> S:
        return shared(cls, super()._default(ordinal, per_thread))

    @property
    def raw_stream(self) -> int:
        """The raw handle."""
        return self.handle

    cuda_stream = raw_stream

    @property
    def place(self) -> Any:
        """The device of the stream."""
        raise NotImplementedError

    def _wrong_type(self, operation: str, operand: object, expected: type) -> TypeError:
        return wrong_operand(self, operation, operand, expected)


class CUDAStream(BaseStream):
    """paddle.base.core.CUDAStream of 3.3."""

    _event_class = CUDAEvent

    def __init__(self, device: Any = None, priority: int = 2) -> None:
        if device is None or (isinstance(device, int) and device < 0):
            ordinal = _current.current_device()
        elif isinstance(device, int):
            ordinal = CUDAPlace(device)._index
        elif isinstance(device, CUDAPlace):
            ordinal = device._index
        else:
            form = f"{LIBRARY}CUDAStream"
            raise incompatible(
                "__init__",
                f"{form}(device: phi::GPUPlace = None, priority: int = 2); "
                f"{form}(device: int = -1, priority: int = 2); {form}()",
                device,
            )
        if not isinstance(priority, int):
            raise incompatible("__init__", f"{LIBRARY}CUDAStream(device, priority: int)", priority)
        if priority not in (1, 2):
            raise ValueError(f"(InvalidArgument) priority must be 1 (high) or 2, got {priority}")
        self._open(ordinal, priority)

    @property
    def place(self) -> Any:
        return CUDAPlace._of(self._ordinal)


class CustomDeviceStream(BaseStream):
    """paddle.base.core.CustomDeviceStream of 3.3; `priority` and `blocking` take effect."""

    _event_class = CustomDeviceEvent
    _event_flags = core.TIMING
    _custom = "custom_cpu"

    def __init__(self, device: Any, *args: Any, **kwargs: Any) -> None:
        self._custom, ordinal, args = take_device(type(self), device, args, kwargs)
        self._start(ordinal, *args, **kwargs)

    def _start(self, device: int, priority: int = 2, blocking: bool = False) -> None:
        self._open(device, 1 if priority == 1 else 2, blocking)

    @property
    def place(self) -> Any:
        return CustomPlace._named(self._custom, self._ordinal)


# What `inspect.signature` shows is the first of the two forms.
functools.update_wrapper(CustomDeviceStream.__init__, CustomDeviceStream._start)


class XPUStream:
    """paddle.base.core.XPUStream of 3.3: not compiled with XPU, so it raises RuntimeError."""

    def __init__(self, device: Any = None) -> None:
        raise RuntimeError("(Unavailable) Class XPUStream can only be initialized on XPU.")
