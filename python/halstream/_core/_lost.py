"""Devices that were lost to the error of a function that stands for a kernel, as torch's operators do."""

from __future__ import annotations

import sys

from .. import _native, _sites
from .._records import LossRecord, decode
from . import _exit

__all__ = ["at_exit", "recover"]


def _losses() -> list[LossRecord]:
    losses: list[LossRecord] = decode(_native.device_losses()) if _native.loaded() else []
    return losses


def recover() -> list[str]:
    """Let devices work again that a function has made useless, with their streams, events and memory.

    What was enqueued and had not run is gone, and so may be what memory holds.

    Returns
    -------
    list of str
        The errors of which the program was not told, each with the device in front.

    Raises
    ------
    NotSupportedError
        If a device of a vendor's library was lost: the process must be restarted.

    Notes
    -----
    Contract D8.
    """
    found = [(loss["device"], _native.device_recover(loss["device"])) for loss in _losses()]
    return [f"{_sites.real_torch.device(device)}: {text}" for device, text in found if text]


def at_exit() -> None:
    """Say which errors the program has never looked at, and let the process end with 1 instead of 0."""
    for loss in _losses():
        if not loss["told"]:
            device = _sites.real_torch.device(loss["device"])
            print(
                f"halstream: the program ended without a look at the error of {device}: {loss['text']}", file=sys.stderr
            )
            _exit.exit_with(1)
