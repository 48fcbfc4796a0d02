"""The error of a plug-in that cannot be used."""

from __future__ import annotations

from ..._errors import HalError

__all__ = ["PluginError"]


class PluginError(HalError, ImportError):
    """The real Paddle cannot use halstream's device in this process; the text says why and what to do."""

    __module__ = "halstream.paddle.plugin"
