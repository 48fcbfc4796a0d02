"""The base class of the streams of torch, paddle and mindspore, which have ``record_event``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core as core

__all__ = ["DialectStream"]


class DialectStream(core.Stream):
    """A stream of torch, paddle or mindspore."""

    record_event: Callable[..., Any] = core.Stream.record
