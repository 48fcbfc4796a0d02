"""Programs that use a means of synchronisation wrongly, each with a twin that uses it as it is meant."""

from __future__ import annotations

from . import _synchronisation_host, _synchronisation_streams
from ._shapes_help import Shape

__all__ = ["SYNCHRONISATION", "Shape"]

SYNCHRONISATION: tuple[Shape, ...] = (*_synchronisation_streams.SHAPES, *_synchronisation_host.SHAPES)
