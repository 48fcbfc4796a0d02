"""TorchScript's fusers for GPUs, which compile CUDA sources with the driver: switched off."""

from __future__ import annotations

from typing import Any

from .patches import Patches

__all__ = ["patch"]


def patch(torch: Any, patches: Patches) -> None:
    """Keep the fusers off; what the program chooses holds after `Patches.undo`."""
    native = torch._C
    override = native._jit_override_can_fuse_on_gpu
    chosen = native._jit_can_fuse_on_gpu()

    def choose(on: bool) -> None:
        nonlocal chosen
        chosen = bool(on)

    override(False)
    patches.on_undo(lambda: override(chosen))
    patches.set(native, "_jit_override_can_fuse_on_gpu", choose)
    patches.set(native, "_jit_can_fuse_on_gpu", lambda: chosen)
