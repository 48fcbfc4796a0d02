"""paddle.base of 3.3: what programs reach of the layer below paddle.device."""

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from . import core, framework

__all__ = ["core", "framework"]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
