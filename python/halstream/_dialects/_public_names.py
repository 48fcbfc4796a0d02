"""The public names that the classes of the mirrored packages have, for strict mode.

By the class of the dialect that mirrors them: torch 2.15, paddle 3.3, mindspore
2.10 and cupy 14.2. Attributes that a package sets in a constructor are among them.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PUBLIC_NAMES"]

# fmt: off
PUBLIC_NAMES: Mapping[str, str] = {
    "cupy.cuda.device.Device":
        "attributes compute_capability cublas_handle cusolver_handle cusolver_sp_handle "
        "cusparse_handle cutensor_handle from_pci_bus_id id mem_info pci_bus_id synchronize use",
    "cupy.cuda._event.Event":  # while its module is being imported
        "done ptr record synchronize",
    "cupy.cuda.stream.Event":
        "done ptr record synchronize",
    "cupy.cuda.stream.ExternalStream":
        "add_callback begin_capture device_id done end_capture is_capturing is_non_blocking "
        "launch_host_func priority ptr record synchronize use wait_event",
    "cupy.cuda.stream.Stream":
        "add_callback begin_capture device_id done end_capture from_external is_capturing "
        "is_non_blocking launch_host_func null priority ptds ptr record synchronize use wait_event",
    "cupy.cuda.stream._BaseStream":
        "add_callback begin_capture device_id done end_capture is_capturing is_non_blocking "
        "launch_host_func priority ptr record synchronize use wait_event",
    "mindspore._event.Event":
        "elapsed_time query record synchronize wait",
    "mindspore._stream.Stream":
        "device_id device_name device_stream id init_finished query record_event stream_id "
        "stream_ptr synchronize wait_event wait_stream",
    "paddle.base._events.CUDAEvent":
        "elapsed_time query record synchronize",
    "paddle.base._events.CustomDeviceEvent":
        "place query raw_event record synchronize",
    "paddle.base._streams.CUDAStream":
        "cuda_stream place query raw_stream record_event synchronize wait_event wait_stream",
    "paddle.base._streams.CustomDeviceStream":
        "cuda_stream place query raw_stream record_event synchronize wait_event wait_stream",
    "paddle.device._event.Event":
        "device elapsed_time event_base query record synchronize",
    "paddle.device._stream.Stream":
        "cuda_stream device query record_event stream_base synchronize wait_event wait_stream",
    "torch.Event":
        "device elapsed_time event_id from_ipc_handle ipc_handle query record synchronize wait",
    "torch.Stream":
        "device device_index device_type is_capturing native_handle query record_event stream_id "
        "synchronize wait_event wait_stream",
    "torch.cuda.streams.Event":
        "cuda_event device elapsed_time event_id from_ipc_handle ipc_handle query record "
        "synchronize wait",
    "torch.cuda.streams.ExternalStream":
        "cuda_stream device device_index device_type is_capturing native_handle priority "
        "priority_range query record_event stream_id synchronize wait_event wait_stream",
    "torch.cuda.streams.Stream":
        "cuda_stream device device_index device_type is_capturing native_handle priority "
        "priority_range query record_event stream_id synchronize wait_event wait_stream",
}
