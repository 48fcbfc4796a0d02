"""Stand-in for apex.optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from halstream.torch._standins import _multi_tensor
from halstream.torch._standins._common import refuse

import torch

__all__ = ["FusedAdagrad", "FusedAdam", "FusedLAMB", "FusedSGD"]

_CHUNK = 2048 * 32
_TYPES = (torch.float16, torch.bfloat16, torch.float32)


class _Fused(torch.optim.Optimizer):
    """What the optimizers have in common: tensors of a type are stepped together."""

    types: tuple[Any, ...] = _TYPES

    def __init__(self, params: Any, defaults: dict[str, Any], set_grad_none: bool) -> None:
        super().__init__(params, defaults)
        self.set_grad_none = set_grad_none
        device = self.param_groups[0]["params"][0].device
        self._dummy_overflow_buf = torch.zeros(1, dtype=torch.int32, device=device)

    def zero_grad(self) -> None:
        """Drop the gradients, or set them to 0 without `set_grad_none`."""
        super().zero_grad(set_to_none=self.set_grad_none)

    def _by_type(self, group: dict[str, Any]) -> Iterator[list[Any]]:
        """Yield the parameters with gradients of a group, those of one type at a time."""
        name = type(self).__name__
        given = [p for p in group["params"] if p.grad is not None]
        for p in given:
            if p.grad.is_sparse:
                raise RuntimeError(f"{name} does not support sparse gradients")
            if p.dtype not in self.types:
                raise RuntimeError(f"{name} only supports {', '.join(map(str, self.types))}, not {p.dtype}")
        for dtype in self.types:
            found = [p for p in given if p.dtype == dtype]
            if found:
                yield found

    def _states(self, params: list[Any], name: str, dtype: Any = None) -> list[Any]:
        """Return a state of each parameter, zeros at first."""
        for p in params:
            if name not in self.state[p]:
                self.state[p][name] = torch.zeros_like(p.data, dtype=dtype)
        return [self.state[p][name] for p in params]

    def _lists(self, params: list[Any], *states: list[Any]) -> list[list[Any]]:
        return [[p.grad.data for p in params], [p.data for p in params], *states]

    def _apply(self, kernel: Callable[..., Any], lists: list[list[Any]], *rest: Any) -> Any:
        return kernel(_CHUNK, self._dummy_overflow_buf, lists, *rest)


class FusedAdam(_Fused):
    """Adam and AdamW."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        adam_w_mode: bool = True,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        set_grad_none: bool = True,
        capturable: bool = False,
        master_weights: bool = False,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedAdam does not support the AMSGrad variant.")
        if capturable or master_weights:
            refuse("FusedAdam(capturable=True)", "use torch.optim.AdamW(fused=True, capturable=True)")
        defaults = {
            "lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps, "weight_decay": weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults, set_grad_none)
        self.adam_w_mode = 1 if adam_w_mode else 0

    def step(
        self, closure: Any = None, grads: Any = None, output_params: Any = None, scale: Any = None,
        grad_norms: Any = None, grad_scaler: Any = None,
    ) -> Any:  # fmt: skip
        """Step all groups."""
        if any(one is not None for one in (grads, output_params, scale, grad_norms)):
            raise RuntimeError("FusedAdam has been updated: call step() with no arguments.")
        loss = None if closure is None else closure()
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for params in self._by_type(group):
                averages = [self._states(params, name, torch.float32) for name in ("exp_avg", "exp_avg_sq")]
                self._apply(
                    _multi_tensor.adam, self._lists(params, *averages), group["lr"], *group["betas"], group["eps"],
                    group["step"], self.adam_w_mode, group["bias_correction"], group["weight_decay"],
                )  # fmt: skip
        return loss


class FusedLAMB(_Fused):
    """LAMB, with the gradients clipped by their norm."""

    types = (torch.float16, torch.float32)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        adam_w_mode: bool = True,
        grad_averaging: bool = True,
        set_grad_none: bool = True,
        max_grad_norm: float = 1.0,
        use_nvlamb: bool = False,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedLAMB does not support the AMSGrad variant.")
        defaults = {
            "lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "grad_averaging": grad_averaging, "max_grad_norm": max_grad_norm,
        }  # fmt: skip
        super().__init__(params, defaults, set_grad_none)
        self.adam_w_mode, self.use_nvlamb = 1 if adam_w_mode else 0, use_nvlamb

    def step(self, closure: Any = None) -> Any:
        """Step all groups."""
        loss = None if closure is None else closure()
        norms = [
            self._apply(_multi_tensor.l2norm, [[p.grad.data for p in params]], False)[0]
            for group in self.param_groups
            for params in self._by_type(group)
        ]
        if not norms:
            return loss
        norm = self._apply(_multi_tensor.l2norm, [norms], False)[0]
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for params in self._by_type(group):
                averages = [self._states(params, name) for name in ("exp_avg", "exp_avg_sq")]
                self._apply(
                    _multi_tensor.lamb, self._lists(params, *averages), group["lr"], *group["betas"], group["eps"],
                    group["step"], group["bias_correction"], group["weight_decay"], group["grad_averaging"],
                    self.adam_w_mode, norm, self.defaults["max_grad_norm"], self.use_nvlamb,
                )  # fmt: skip
        return loss


class FusedSGD(_Fused):
    """SGD with momentum."""

    types = (torch.float16, torch.float32)

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        wd_after_momentum: bool = False,
        materialize_master_grads: bool = True,
        set_grad_none: bool = False,
    ) -> None:
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
        }  # fmt: skip
        super().__init__(params, defaults, set_grad_none)
        self.wd_after_momentum, self.materialize_master_grads = wd_after_momentum, materialize_master_grads
        self.most_recent_scale = 1.0

    def step(self, closure: Any = None) -> Any:
        """Step all groups."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for params in self._by_type(group):
                first = "momentum_buffer" not in self.state[params[-1]]
                self._apply(
                    _multi_tensor.sgd, self._lists(params, self._states(params, "momentum_buffer")),
                    group["weight_decay"], group["momentum"], group["dampening"], group["lr"], group["nesterov"], first,
                    self.wd_after_momentum, 1.0 / self.most_recent_scale,
                )  # fmt: skip
        return loss


class FusedAdagrad(_Fused):
    """Adagrad."""

    types = (torch.float16, torch.float32)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        set_grad_none: bool = True,
        adagrad_w_mode: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "eps": eps, "weight_decay": weight_decay}, set_grad_none)
        self.adagrad_w_mode = 1 if adagrad_w_mode else 0

    def step(self, closure: Any = None) -> Any:
        """Step all groups."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for params in self._by_type(group):
                self._apply(
                    _multi_tensor.adagrad, self._lists(params, self._states(params, "sum")), group["lr"], group["eps"],
                    self.adagrad_w_mode, group["weight_decay"],
                )  # fmt: skip
        return loss
