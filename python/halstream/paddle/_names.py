"""Device names to places, and the expected place, by the rules of paddle 3.3."""

from __future__ import annotations

import os
import re
from typing import Any

import halstream

from .._core import _current
from ._place import Place
from ._places import CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, custom_types, is_custom

_BUILT_IN = re.compile(r"(gpu|dcu|xpu):\d+")


def selected(device_type: str) -> int:
    """Return the ordinal that a bare name means: what a launcher selected, else 0."""
    return int(os.environ.get(f"FLAGS_selected_{device_type}s", "").split(",")[0] or 0)


def default_type() -> str:
    """Return the device type of a process that chose none."""
    return "npu" if halstream.backend() == "ascend" else "gpu"


def place_of(ordinal: int, label: str = "") -> Any:
    """Return the place of a device under the name that it was chosen by."""
    if label not in ("gpu", "custom_cpu", "npu"):
        label = default_type()
    return CUDAPlace._of(ordinal) if label == "gpu" else CustomPlace._named(label, ordinal)


def expected_place() -> Any:
    """Return the current device as a place: paddle's ``_current_expected_place``."""
    label = _current.device_label()
    if label == "cpu":
        return CPUPlace()
    if label == "gpu_pinned":
        return CUDAPinnedPlace()
    ordinal = _current.current_device()
    if not label and not ordinal:
        ordinal = selected(default_type())
    return place_of(ordinal, label)


def label_of(place: Place) -> str:
    """Return the name under which the runtime keeps a place: 'cpu', 'gpu' or a custom type."""
    return place._custom or place._kind


def choose(place: object) -> None:
    """Make a place the expected one."""
    _current.choose_device(*_chosen(place))


def enter(place: object) -> None:
    """Make a place the expected one until the matching `_current.leave`."""
    _current.enter_device(*_chosen(place))


def _chosen(place: object) -> tuple[int, str]:
    if isinstance(place, Place):
        if place._kind in ("cpu", "gpu_pinned"):
            # Memory of the host: the current device of other dialects does not change.
            return _current.current_device(), place._kind
        if place._kind in ("gpu", "custom"):
            return place._index, label_of(place)
    raise ValueError(
        "(InvalidArgument) Incompatible Place Type: supports XPUPlace, CUDAPlace, CPUPlace, "
        "IPUPlace, XPUPinnedPlace and CUDAPinnedPlace, but got Unknown Type!"
    )


def no_device() -> TypeError:
    """Return the error for a place that has no streams; a CPU has none."""
    return TypeError(f"device should be gpu, xpu, {','.join(custom_types())}")


def with_streams(place: object) -> Any:
    """Return a place that has streams, or raise `TypeError`."""
    if isinstance(place, Place) and place._kind in ("gpu", "custom"):
        return place
    raise no_device()


def convert_to_place(device: Any) -> Any:
    """`paddle.device._convert_to_place`: a str becomes a place, all else comes back as it is."""
    if not isinstance(device, str):
        return device
    lower = device.lower()
    if lower.startswith("cuda"):
        device = lower = "gpu" + lower[4:]
    if is_custom(device):
        return CustomPlace(device, selected(device))
    if lower == "cpu":
        return CPUPlace()
    if lower in ("gpu", "dcu"):
        return CUDAPlace(selected("gpu"))
    if lower in ("xpu", "ipu"):
        raise ValueError(f"The device should not be {lower!r}, since PaddlePaddle is not compiled with {lower.upper()}")
    if _BUILT_IN.match(lower):
        kind, number = lower.split(":", 1)
        if kind == "xpu":
            raise ValueError(f"The device should not be {lower!r}, since PaddlePaddle is not compiled with XPU")
        return CUDAPlace(int(number))
    kind, colon, number = device.partition(":")
    if colon and (is_custom(kind) or kind == "custom_cpu"):
        return CustomPlace(kind, int(number))
    if kind == "custom_cpu":
        return CustomPlace(kind, 0)  # raises, and says which backend is in use
    names = "".join(f", '{name}', '{name}:x'" for name in _known())
    raise ValueError(f"The device must be a string which is like 'cpu'{names}")


def _known() -> list[str]:
    names = ["gpu", "dcu", "xpu", "npu"]
    return names + [name for name in custom_types() if name not in names]


def device_to_paddle(dev: Any = None) -> Any:
    """`paddle.device._device_to_paddle` of 3.3: None, int and torch-like names to paddle's."""
    if dev is None:
        return name_of(expected_place())
    if isinstance(dev, int):
        if dev < 0:
            raise ValueError(f"Device index must be non-negative, got {dev}")
        kind = label_of(expected_place())
        if kind != "cpu":
            return f"{kind}:{int(dev)}"
        if dev != 0:
            raise ValueError(f"CPU device only supports index 0, got {dev}")
        return "cpu"
    if isinstance(dev, str):
        dev = dev.strip()
        return "gpu:" + dev[5:] if dev.startswith("cuda:") else dev
    return dev


def device_to_place(device: Any = None) -> Any:
    """`paddle.device.device_to_place` of 3.3; an object that names no place comes back."""
    if device is None:
        return expected_place()
    return convert_to_place(device_to_paddle(device))


def name_of(place: Place) -> str:
    """Return the name of a place: 'cpu', 'gpu:0', 'custom_cpu:1'."""
    return "cpu" if place._kind == "cpu" else f"{label_of(place)}:{place._index}"


def extract_device_id(device: Any, op_name: str) -> int:
    """`paddle.device.extract_device_id` of 3.3; an ordinal out of range is a ValueError."""
    if device is None:
        place = with_streams(expected_place())
    elif isinstance(device, int):
        place = CUDAPlace(device)
    elif isinstance(device, str):
        kind = device.partition(":")[0]
        if kind != "gpu" and not is_custom(kind):
            raise ValueError(
                f"The current string {device} is not expected. Because {op_name} only support "
                "string which is like 'gpu:x' or '<custom_device>:x'. Please input appropriate "
                "string again!"
            )
        place = convert_to_place(device)
    else:
        place = device
    if not isinstance(place, (CUDAPlace, CustomPlace)):
        raise ValueError(
            f"The device type {device} is not expected. Because {op_name} only support int, str "
            "(format 'gpu:x' or '<custom_device>:x'), paddle.CUDAPlace or paddle.CustomPlace. "
            "Please input appropriate device again!"
        )
    return place._index
