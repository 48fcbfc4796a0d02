"""Stand-in for DeepSpeed's operator ``cpu_adam``: Adam on tensors in the host's memory."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _deepspeed, _multi_tensor

__all__ = ["adam_update", "create_adam", "destroy_adam"]


def create_adam(
    optimizer_id: int, alpha: float = 1e-3, betta1: float = 0.9, betta2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.0, adamw_mode: bool = True, should_log: bool = False,
) -> int:  # fmt: skip
    """Begin an optimizer."""
    _deepspeed.host_adams.decoupled[optimizer_id] = adamw_mode
    return 0


def adam_update(
    optimizer_id: int, step: int, lr: float, beta1: float, beta2: float, epsilon: float, weight_decay: float,
    bias_correction: bool, params: Any, grads: Any, exp_avg: Any, exp_avg_sq: Any,
) -> int:  # fmt: skip
    """Step a tensor."""
    lists = [[grads], [params], [exp_avg], [exp_avg_sq]]
    mode = int(_deepspeed.host_adams.decoupled[optimizer_id])
    _multi_tensor.adam(0, None, lists, lr, beta1, beta2, epsilon, step, mode, int(bias_correction), weight_decay)
    return 0


def destroy_adam(optimizer_id: int) -> int:
    """End an optimizer."""
    _deepspeed.host_adams.decoupled.pop(optimizer_id, None)
    return 0
