"""Stand-in for causal_conv1d."""

from .causal_conv1d_interface import causal_conv1d_fn, causal_conv1d_update

__all__ = ["causal_conv1d_fn", "causal_conv1d_update"]

__version__ = "1.5.2"
