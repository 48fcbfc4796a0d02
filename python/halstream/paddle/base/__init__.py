"""paddle.base of 3.3: what programs reach of the layer below paddle.device."""

from . import core, framework

__all__ = ["core", "framework"]
