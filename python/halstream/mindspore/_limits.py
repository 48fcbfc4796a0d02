"""Names of mindspore.runtime 2.10 whose work the backends cannot do yet."""

from __future__ import annotations

from typing import NoReturn

from .. import _core as core
from .._core import _current
from .._errors import NotSupportedError
from ._stream import check_stream


def _refuse(name: str, what: str) -> NoReturn:
    raise NotSupportedError(f"mindspore.runtime.{name}: {what}", operation=name)


_CORES = "limits of cube and vector cores are not built, on no backend"


def launch_blocking() -> None:
    """`mindspore.runtime.launch_blocking` of 2.10: operations on tensors wait from now on."""
    _current.set_blocking(True)


def get_device_limit(device: int) -> dict[str, int]:
    """`mindspore.runtime.get_device_limit` of 2.10; not supported yet."""
    _refuse("get_device_limit", _CORES)


def set_device_limit(device: int, cube_num: int = -1, vector_num: int = -1) -> None:
    """`mindspore.runtime.set_device_limit` of 2.10; not supported yet."""
    _refuse("set_device_limit", _CORES)


def get_stream_limit(stream: core.Stream) -> dict[str, int]:
    """`mindspore.runtime.get_stream_limit` of 2.10; not supported yet."""
    check_stream("get_stream_limit", "stream", stream)
    _refuse("get_stream_limit", _CORES)


def set_stream_limit(stream: core.Stream, cube_num: int = -1, vector_num: int = -1) -> None:
    """`mindspore.runtime.set_stream_limit` of 2.10; not supported yet."""
    check_stream("set_stream_limit", "stream", stream)
    _refuse("set_stream_limit", _CORES)


def reset_stream_limit(stream: core.Stream) -> None:
    """`mindspore.runtime.reset_stream_limit` of 2.10; not supported yet."""
    check_stream("reset_stream_limit", "stream", stream)
    _refuse("reset_stream_limit", _CORES)


class StreamLimitCtx:
    """`mindspore.runtime.StreamLimitCtx` of 2.10; not supported yet."""

    ctx_attr = True

    def __init__(self, stream: core.Stream, cube_num: int = -1, vector_num: int = -1) -> None:
        check_stream("StreamLimitCtx", "stream", stream)
        _refuse("StreamLimitCtx", _CORES)

    def __enter__(self) -> None:
        """Never reached: the constructor raises."""

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        """Never reached: the constructor raises."""
