"""The real torch, the real Paddle and CUDA programs in commands: what lets them use the host device."""

from __future__ import annotations

from collections.abc import Callable

from .._capi import get_api
from .._errors import HalError
from .started import in_children

__all__ = ["build_module", "plug_into_paddle", "provide_driver", "redirect_torch"]


def redirect_torch(failure: Callable[[str], Exception], *, sanitize: bool = False) -> None:
    """Redirect the real torch's CUDA device, here and in processes that this one starts.

    It raises a `failure` with the reason if it cannot be.
    """
    from ..torch import redirect

    try:
        redirect()
        in_children("HALSTREAM_TORCH", "redirect", sanitize=sanitize)
    except HalError as exc:
        raise failure(str(exc)) from None


def plug_into_paddle(failure: Callable[[str], Exception], *, sanitize: bool = False) -> None:
    """Let the real Paddle have the host device, here and in processes that this one starts.

    Where that is not possible, it raises a `failure` with the reason.
    """
    try:
        from ..paddle import plugin

        plugin.install()
        get_api()  # opens the backend of this process, which the variables below are not for
        in_children("HALSTREAM_PADDLE", "plugin", sanitize=sanitize)
    except HalError as exc:
        raise failure(str(exc)) from None


def provide_driver(failure: Callable[[str], Exception]) -> None:
    """Give programs the CUDA driver on the host device, here and in processes that this one starts.

    Where that is not possible, it raises a `failure` with the reason.
    """
    from .._driver import provide

    try:
        provide()
    except HalError as exc:
        raise failure(str(exc)) from None


def build_module(say: Callable[[str], object], failure: Callable[[str], Exception]) -> None:
    """Compile the module for the installed torch, unless it is there already."""
    from ..torch._redirect import module, wheel

    try:
        path, new = module.build(wheel.installed())
    except HalError as exc:
        raise failure(str(exc)) from None
    if not new:
        say(f"the module for this torch is there already: {path}")
