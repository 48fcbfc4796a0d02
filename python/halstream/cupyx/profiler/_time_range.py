"""cupyx.profiler.time_range (cupy 14.2.0)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ...cupy.cuda import nvtx, runtime

P = ParamSpec("P")
R = TypeVar("R")


class time_range:
    """cupyx.profiler.time_range (14.2.0): a range of a trace when one is recorded, otherwise free."""

    def __init__(
        self,
        message: str | None = None,
        color_id: int | None = None,
        argb_color: int | None = None,
        sync: bool = False,
    ) -> None:
        if not nvtx.available:
            raise RuntimeError("nvtx is not installed")
        if color_id is not None and argb_color is not None:
            raise ValueError("Only either color_id or argb_color can be specified")
        self.message = message
        self.color_id: int = -1 if color_id is None else color_id
        self.argb_color = argb_color
        self.sync = sync

    def __enter__(self) -> time_range:
        if self.message is None:
            raise ValueError("when used as a context manager, the message argument cannot be None")
        if self.sync:
            runtime.deviceSynchronize()
        if self.argb_color is not None:
            nvtx.RangePushC(self.message, self.argb_color)
        else:
            nvtx.RangePush(self.message, self.color_id)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.sync:
            runtime.deviceSynchronize()
        nvtx.RangePop()

    def __call__(self, func: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function; its name is the message if there is none."""

        @functools.wraps(func)
        def inner(*args: P.args, **kwargs: P.kwargs) -> R:
            if self.message is None:
                self.message = func.__name__
            with self:
                return func(*args, **kwargs)

        return inner
