"""The error tree: one class for each kind of failure the core reports."""

from __future__ import annotations

from collections.abc import Mapping

from ._notes import point_to_page

__all__ = [
    "AbortedError",
    "BackendAbsentError",
    "CallInHostFunctionError",
    "CaptureError",
    "ClosedError",
    "CompileError",
    "DeviceLostError",
    "ForkError",
    "HalError",
    "HostFunctionError",
    "InvalidDeviceError",
    "InvalidHandleError",
    "InvalidValueError",
    "KernelArgumentError",
    "NoContextError",
    "NondeterminismError",
    "NotReadyError",
    "NotSubscribedError",
    "NotSupportedError",
    "OutOfMemoryError",
    "ScheduleError",
    "StallError",
    "TimingDisabledError",
    "UnorderedAccessError",
    "UnrecordedError",
    "WaitTimeoutError",
    "WrongContextError",
    "WrongDeviceError",
]


class HalError(RuntimeError):
    """Any failure of the runtime.

    Attributes
    ----------
    kind : str
        Portable name of the failure, the key of `KINDS`.
    code : int
        The vendor's number, 0 when the failure did not come from a vendor library.
    operation : str
        What the runtime was doing.
    """

    kind: str = "unknown"
    #: The code of the page that explains it, '' without one: see `halstream explain`.
    _page: str = ""

    def __init__(self, message: str = "", *, code: int = 0, operation: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.operation = operation
        if self._page:
            point_to_page(self, self._page)


class NotReadyError(HalError):
    """The work asked about is still pending; synchronize first."""

    kind = "not_ready"


class InvalidHandleError(HalError):
    """A number that names no live object of the runtime."""

    kind = "invalid_handle"


class ClosedError(InvalidHandleError):
    """The object was closed; create a new one."""

    kind = "closed"


class InvalidValueError(HalError, ValueError):
    """An argument outside its range."""

    kind = "invalid_value"


class InvalidDeviceError(InvalidValueError):
    """No device has this ordinal."""

    kind = "invalid_device"


class WrongDeviceError(HalError):
    """Two objects that belong to different devices were mixed."""

    kind = "wrong_device"


class WrongContextError(HalError):
    """The object's context is not current on this thread."""

    kind = "wrong_context"


class NoContextError(HalError):
    """This thread has no current context."""

    kind = "no_context"


class TimingDisabledError(HalError):
    """Elapsed time was asked of an event made without timing."""

    kind = "timing_disabled"


class UnrecordedError(HalError):
    """The call needs an event that has been recorded."""

    kind = "unrecorded"


class CaptureError(HalError):
    """The call is illegal while a stream is capturing."""

    kind = "capture"


class NotSupportedError(HalError):
    """The backend, or this kind of object, cannot do this."""

    kind = "not_supported"
    _page = "not-supported"


class NotSubscribedError(HalError):
    """No thread reads the reports of this stream, or one already does."""

    kind = "not_subscribed"


class OutOfMemoryError(HalError):
    """The device or the runtime has no memory left for the request."""

    kind = "out_of_memory"


#: What CUDA's driver calls an illegal address, and a misaligned one.
_WRONG_ADDRESS = (700, 716)


class DeviceLostError(HalError):
    """The device failed.

    The process must be restarted, unless the device was lost to an operator: see `halstream.testing.recover`.
    """

    kind = "device_lost"
    _page = "device-lost"

    def __init__(self, message: str = "", *, code: int = 0, operation: str = "") -> None:
        if code in _WRONG_ADDRESS:
            self._page = "kernel-bounds"
        super().__init__(message, code=code, operation=operation)


class BackendAbsentError(HalError):
    """The backend cannot be used on this machine; the text says why."""

    kind = "backend_absent"


class HostFunctionError(HalError):
    """A checked function on a stream failed."""

    kind = "host_function"


class CallInHostFunctionError(HalError):
    """A function that runs on a stream called the runtime."""

    kind = "in_host_function"


class ForkError(HalError):
    """The process was forked after the runtime was used; use ``spawn``."""

    kind = "forked"


class AbortedError(HalError):
    """The work waited for was dropped by an abort of its stream."""

    kind = "aborted"


class CompileError(HalError):
    """A kernel's source does not compile.

    Attributes
    ----------
    log : str
        What the compiler wrote; the message has it, too.
    """

    kind = "compile"

    def __init__(self, message: str = "", *, code: int = 0, operation: str = "", log: str = "") -> None:
        super().__init__(message, code=code, operation=operation)
        self.log = log


class KernelArgumentError(InvalidValueError, TypeError):
    """An argument of a launch does not fit the kernel's declaration."""

    kind = "kernel_argument"


class WaitTimeoutError(HalError, TimeoutError):
    """A wait reached its time limit; the work goes on."""

    kind = "timeout"


#: What the text of a stall says where it is a circle.
IN_A_CIRCLE = "each of these waits for the next, and the last for an earlier one"


class StallError(HalError):
    """The wait can never end: everything it could wait for waits, too."""

    kind = "stall"
    _page = "stall-nobody-left"

    def __init__(self, message: str = "", *, code: int = 0, operation: str = "") -> None:
        if IN_A_CIRCLE in message:
            self._page = "stall-circle"
        super().__init__(message, code=code, operation=operation)


class UnorderedAccessError(HalError):
    """Two operations on the same bytes have no order between them."""

    kind = "unordered_access"


class ScheduleError(HalError):
    """A schedule cannot be used: its token is damaged or stale, or its budget is nothing."""

    kind = "schedule"


class NondeterminismError(HalError):
    """A program did not do the same twice under one schedule."""

    kind = "nondeterminism"


KINDS: Mapping[str, type[HalError]] = {
    cls.kind: cls for cls in (HalError, *(globals()[name] for name in __all__ if name != "HalError"))
}
