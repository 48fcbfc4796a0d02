"""Devices, contexts, and the last error of a thread."""

from __future__ import annotations

from ... import _core
from ..._core._context import Context, abort_device, release_primary
from ..._core._interop import device_facts
from ..._memory import memory_info
from .. import _codes as codes
from .. import _table
from .. import constants as c
from .._call import command, seconds
from .._session import session

# What only an Ascend chip has.
_NONE_HERE = (
    c.ACL_DEV_ATTR_AICORE_CORE_NUM,
    c.ACL_DEV_ATTR_CUBE_CORE_NUM,
    c.ACL_DEV_ATTR_VECTOR_CORE_NUM,
    c.ACL_DEV_ATTR_L2_CACHE_SIZE,
    c.ACL_DEV_ATTR_IS_VIRTUAL,
    c.ACL_DEV_ATTR_NPU_ARCH,
)


@command("i")
def set_device(device: int, /) -> int:
    """aclrtSetDevice: make the device's primary context current here, one user more."""
    Context.primary(_core.ordinal(device))
    return 0


def _release(device: int, force: bool) -> int:
    release_primary(_core.ordinal(device), force)
    _table.sweep()
    return 0


@command("i", invalid_value=codes.RT_CONTEXT_RELEASE_ERROR)
def reset_device(device: int, /) -> int:
    """aclrtResetDevice: one user less; the last waits for the work and frees the streams."""
    return _release(device, False)


@command("i", invalid_value=codes.RT_CONTEXT_RELEASE_ERROR)
def reset_device_force(device: int, /) -> int:
    """aclrtResetDeviceForce: free the primary context whatever the count."""
    return _release(device, True)


@command(failed=(0,))
def get_device(*_: object) -> tuple[int, int]:
    """aclrtGetDevice: (device of the current context, ret)."""
    return Context.current().ordinal, 0


@command(failed=(0,))
def get_device_count(*_: object) -> tuple[int, int]:
    """aclrtGetDeviceCount: (count, ret)."""
    return _core.device_count(), 0


@command(failed=(0,))
def get_run_mode(*_: object) -> tuple[int, int]:
    """aclrtGetRunMode: (``ACL_HOST``, ret); the program always runs beside the device."""
    return c.ACL_HOST, 0


@command("i")
def set_ts_device(ts: int, /) -> int:
    """aclrtSetTsDevice: accepted, without effect; there is one scheduler."""
    if ts not in (c.ACL_TS_ID_AICORE, c.ACL_TS_ID_AIVECTOR):
        raise _table.refuse(codes.RT_PARAM_INVALID, f"there is no task scheduler {ts}")
    Context.current()
    return 0


@command()
def synchronize_device(*_: object) -> int:
    """aclrtSynchronizeDevice: wait for the streams of the current context."""
    Context.current().synchronize()
    return 0


@command("i", timeout=codes.RT_STREAM_SYNC_TIMEOUT)
def synchronize_device_with_timeout(timeout: int, /) -> int:
    """aclrtSynchronizeDeviceWithTimeout: milliseconds, -1 for ever, 0 is an error."""
    Context.current().synchronize(seconds(timeout))
    return 0


@command("ii", (0,))
def get_device_info(device: int, attribute: int, /) -> tuple[int, int]:
    """aclrtGetDeviceInfo: (value modulo 2**32, ret); there are no AI cores, so those are 0."""
    ordinal = _core.ordinal(device)
    if attribute in _NONE_HERE:
        value = 0
    elif attribute == c.ACL_DEV_ATTR_AICPU_CORE_NUM:
        value = int(device_facts(ordinal)["multi_processor_count"])
    elif attribute == c.ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
        value = memory_info(ordinal)[1]
    elif attribute == c.ACL_DEV_ATTR_PHY_CHIP_ID:
        value = ordinal
    else:
        raise _table.refuse(codes.RT_PARAM_INVALID, f"there is no attribute {attribute}")
    return value & 0xFFFFFFFF, 0


@command("i", ({},))
def get_device_utilization_rate(device: int, /) -> tuple[dict[str, int], int]:
    """aclrtGetDeviceUtilizationRate: (dict, ret); -1, for nothing measures it."""
    _core.ordinal(device)
    kinds = ("cube", "vector", "aicpu", "memory")
    return {**{f"{kind}_utilization": -1 for kind in kinds}, "utilization_extend": 0}, 0


@command("i", (0,))
def query_device_status(device: int, /) -> tuple[int, int]:
    """aclrtQueryDeviceStatus: (status, ret); a device that answers is normal."""
    _core.ordinal(device)
    return c.ACL_RT_DEVICE_STATUS_NORMAL, 0


@command("iu")
def device_task_abort(device: int, timeout: int, /) -> int:
    """aclrtDeviceTaskAbort: drop the device's pending work; what runs ends, at most `timeout` ms.

    Waits that are blocked get the code of a stream abort, 107023.
    """
    ordinal = _core.ordinal(device)
    abort_device(ordinal)
    _core.synchronize(ordinal, seconds(timeout or -1))
    return 0


@command(failed=(0, 0))
def device_get_stream_priority_range(*_: object) -> tuple[int, int, int]:
    """aclrtDeviceGetStreamPriorityRange: (least 7, greatest 0, ret)."""
    return 7, 0, 0


@command("i", (0,))
def create_context(device: int, /) -> tuple[int, int]:
    """aclrtCreateContext: (context, ret); it becomes current on this thread."""
    return Context(_core.ordinal(device))._id, 0


@command("h", invalid_value=codes.RT_CONTEXT_NULL)
def destroy_context(context: int, /) -> int:
    """aclrtDestroyContext: end a context of `create_context`, and its streams."""
    _table.context(context).destroy()
    _table.sweep()
    return 0


@command("h")
def set_context(context: int, /) -> int:
    """aclrtSetCurrentContext: make a context current on this thread."""
    _table.context(context).make_current()
    return 0


@command(failed=(0,))
def get_context(*_: object) -> tuple[int, int]:
    """aclrtGetCurrentContext: (context, ret)."""
    return Context.current()._id, 0


@command(failed=(0,))
def ctx_get_current_default_stream(*_: object) -> tuple[int, int]:
    """aclrtCtxGetCurrentDefaultStream: (the handle that 0 stands for, ret)."""
    return _table.stream(0)._id, 0


def _last(level: int, forget: bool) -> int:
    if level != c.ACL_RT_THREAD_LEVEL:
        raise _table.refuse(codes.RT_PARAM_INVALID, f"the level of an error is 0, not {level}")
    return session.last_code(forget)


@command("i")
def peek_at_last_error(level: int, /) -> int:
    """aclrtPeekAtLastError: code of this thread's last failure, kept."""
    return _last(level, False)


@command("i")
def get_last_error(level: int, /) -> int:
    """aclrtGetLastError: code of this thread's last failure, which is then 0."""
    return _last(level, True)
