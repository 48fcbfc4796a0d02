"""`mindspore.context` of 2.10: the settings that stream programs use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core import _current
from .._dialects._not_built import not_built
from . import _target

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "get_context", "set_context"]

GRAPH_MODE = 0
PYNATIVE_MODE = 1

# Settings of other parts of mindspore that programs pass along; they change nothing here.
_IGNORED = frozenset(
    {
        "ascend_config",
        "deterministic",
        "enable_graph_kernel",
        "gpu_config",
        "jit_config",
        "jit_level",
        "max_call_depth",
        "max_device_memory",
        "memory_optimize_level",
        "mempool_block_size",
        "save_graphs",
        "save_graphs_path",
    }
)


def set_context(**kwargs: Any) -> None:
    """`mindspore.set_context` of 2.10: target and device; the modes are both eager here."""
    for name in kwargs:
        if name not in {"mode", "device_target", "device_id", "pynative_synchronize"} | _IGNORED:
            raise ValueError(
                f"For 'context.set_context', the keyword argument {name} is not recognized here; "
                "device_target, device_id and mode are"
            )
    mode = kwargs.get("mode", PYNATIVE_MODE)
    if mode not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ValueError(
            f"For 'context.set_context', the argument 'mode' must be GRAPH_MODE (0) or "
            f"PYNATIVE_MODE (1), but got {mode}."
        )
    if "pynative_synchronize" in kwargs:
        _current.set_blocking(bool(kwargs["pynative_synchronize"]))
    if "device_target" in kwargs or "device_id" in kwargs:
        name = kwargs.get("device_target", _target.target())
        ident = kwargs.get("device_id", _current.current_device())
        _target.check_device(name, ident, "set_context")
        _target.choose(name, ident, "set_context")


def get_context(attr_key: str) -> Any:
    """`mindspore.get_context` of 2.10 for ``device_target``, ``device_id`` and ``mode``."""
    if attr_key == "device_target":
        return _target.target()
    if attr_key == "device_id":
        return _current.current_device()
    if attr_key == "mode":
        return PYNATIVE_MODE
    raise ValueError(
        f"For 'context.get_context', the argument {attr_key} is not found here; device_target, device_id and mode are"
    )


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
