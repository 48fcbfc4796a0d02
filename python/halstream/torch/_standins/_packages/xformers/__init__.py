"""Stand-in for xformers: attention."""

from . import ops

__all__ = ["ops"]

__version__ = "0.0.33"
