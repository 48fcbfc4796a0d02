"""Stand-in for apex.amp, which programs import wherever apex is: its functions are refused."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._common import refuse

__all__ = ["initialize", "master_params", "scale_loss", "state_dict"]

_INSTEAD = "use torch.autocast and torch.amp.GradScaler"


def initialize(models: Any, optimizers: Any = None, **options: Any) -> Any:
    """Refuse to change models and optimizers."""
    refuse("apex.amp.initialize", _INSTEAD)


def scale_loss(loss: Any, optimizers: Any, **options: Any) -> Any:
    """Refuse to scale a loss."""
    refuse("apex.amp.scale_loss", _INSTEAD)


def master_params(optimizer: Any) -> Any:
    """Refuse to list the parameters of 32 bits."""
    refuse("apex.amp.master_params", _INSTEAD)


def state_dict(destination: Any = None) -> Any:
    """Refuse to tell the scales."""
    refuse("apex.amp.state_dict", _INSTEAD)
