"""acl.rt (pyACL of CANN 8.5): device, context, stream, event and callback functions.

Handles are ints. Functions take positional arguments only, never raise for a
failure of the runtime, and return ``ret`` or ``(outputs..., ret)``; 0 is
success. `acl.get_recent_err_msg` has the reason. Differences from pyACL:

- every call that waits lets other Python threads run, and Ctrl-C ends it with
  `KeyboardInterrupt`;
- `launch_host_func`, `stream_wait_event_with_timeout`, `stream_get_priority`
  and `stream_get_flags` are additions, after the C functions;
- an exception in a callback goes to `sys.unraisablehook`;
- `reset_device` frees no memory;
- kernels, captures and shared memory are not built yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from . import _copy, _exception, _host, _memory, _notify, _value
from ._attribute import (
    get_stream_attribute,
    get_stream_overflow_switch,
    set_stream_attribute,
    set_stream_failure_mode,
    set_stream_overflow_switch,
)
from ._callback import (
    launch_callback,
    launch_host_func,
    process_report,
    subscribe_report,
    unsubscribe_report,
)
from ._copy import *  # noqa: F403
from ._device import (
    create_context,
    ctx_get_current_default_stream,
    destroy_context,
    device_get_stream_priority_range,
    device_task_abort,
    get_context,
    get_device,
    get_device_count,
    get_device_info,
    get_device_utilization_rate,
    get_last_error,
    get_run_mode,
    peek_at_last_error,
    query_device_status,
    reset_device,
    reset_device_force,
    set_context,
    set_device,
    set_ts_device,
    synchronize_device,
    synchronize_device_with_timeout,
)
from ._event import (
    create_event,
    create_event_ex_with_flag,
    create_event_with_flag,
    destroy_event,
    event_elapsed_time,
    event_get_timestamp,
    get_event_avail_num,
    get_event_id,
    query_event,
    query_event_status,
    query_event_wait_status,
    record_event,
    reset_event,
    synchronize_event,
    synchronize_event_with_timeout,
)
from ._exception import *  # noqa: F403
from ._host import *  # noqa: F403
from ._memory import *  # noqa: F403
from ._notify import *  # noqa: F403
from ._stream import (
    create_stream,
    create_stream_with_config,
    destroy_stream,
    destroy_stream_force,
    get_stream_available_num,
    set_op_execute_time_out,
    set_op_wait_timeout,
    stream_abort,
    stream_get_flags,
    stream_get_id,
    stream_get_priority,
    stream_query,
    stream_wait_event,
    stream_wait_event_with_timeout,
    synchronize_stream,
    synchronize_stream_with_timeout,
)
from ._value import *  # noqa: F403

__all__ = [
    *_copy.__all__,
    *_exception.__all__,
    *_host.__all__,
    *_memory.__all__,
    *_notify.__all__,
    *_value.__all__,
    "create_context",
    "create_event",
    "create_event_ex_with_flag",
    "create_event_with_flag",
    "create_stream",
    "create_stream_with_config",
    "ctx_get_current_default_stream",
    "destroy_context",
    "destroy_event",
    "destroy_stream",
    "destroy_stream_force",
    "device_get_stream_priority_range",
    "device_task_abort",
    "event_elapsed_time",
    "event_get_timestamp",
    "get_context",
    "get_device",
    "get_device_count",
    "get_device_info",
    "get_device_utilization_rate",
    "get_event_avail_num",
    "get_event_id",
    "get_last_error",
    "get_run_mode",
    "get_stream_attribute",
    "get_stream_available_num",
    "get_stream_overflow_switch",
    "launch_callback",
    "launch_host_func",
    "peek_at_last_error",
    "process_report",
    "query_device_status",
    "query_event",
    "query_event_status",
    "query_event_wait_status",
    "record_event",
    "reset_device",
    "reset_device_force",
    "reset_event",
    "set_context",
    "set_device",
    "set_op_execute_time_out",
    "set_op_wait_timeout",
    "set_stream_attribute",
    "set_stream_failure_mode",
    "set_stream_overflow_switch",
    "set_ts_device",
    "stream_abort",
    "stream_get_flags",
    "stream_get_id",
    "stream_get_priority",
    "stream_query",
    "stream_wait_event",
    "stream_wait_event_with_timeout",
    "subscribe_report",
    "synchronize_device",
    "synchronize_device_with_timeout",
    "synchronize_event",
    "synchronize_event_with_timeout",
    "synchronize_stream",
    "synchronize_stream_with_timeout",
    "unsubscribe_report",
]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
