"""Kernels over lists of tensors, as apex and DeepSpeed have them: scaling, norms and steps of optimizers.

Each takes what the compiled ones take: a size of chunks, which has no meaning here, a flag on the device,
which becomes 1 where values are not finite, and lists of tensors, one for each role.
"""

from __future__ import annotations

from typing import Any

import torch

from ._common import accumulated

__all__ = [
    "adagrad",
    "adam",
    "adam_capturable",
    "adam_capturable_master",
    "axpby",
    "corrections",
    "l2norm",
    "l2norm_scale",
    "lamb",
    "scale",
    "sgd",
    "unscale_l2norm",
]


def _flag(noop_flag: Any, *tensors: Any) -> None:
    """Set the flag unless all values are finite."""
    for one in tensors:
        noop_flag.masked_fill_(~torch.isfinite(one).all(), 1)


@torch.no_grad()
def scale(chunk_size: int, noop_flag: Any, tensor_lists: Any, factor: float) -> None:
    """Write each input times a factor into its output."""
    for source, target in zip(*tensor_lists, strict=True):
        _flag(noop_flag, source)
        target.copy_(accumulated(source) * factor)


@torch.no_grad()
def axpby(chunk_size: int, noop_flag: Any, tensor_lists: Any, a: float, b: float, arg_to_check: int) -> None:
    """Write ``a * x + b * y``; -1 checks both for finite values, 0 the first, 1 the second."""
    for x, y, target in zip(*tensor_lists, strict=True):
        _flag(noop_flag, *((x, y) if arg_to_check == -1 else ((x, y)[arg_to_check],)))
        target.copy_(a * accumulated(x) + b * accumulated(y))


@torch.no_grad()
def l2norm(chunk_size: int, noop_flag: Any, tensor_lists: Any, per_tensor: bool | None = None) -> tuple[Any, Any]:
    """Return the norm of all tensors together, of shape (1,), and of each if asked for."""
    return _norms(noop_flag, tensor_lists[0], per_tensor)


@torch.no_grad()
def l2norm_scale(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, factor: float, per_tensor: bool | None = None
) -> tuple[Any, Any]:
    """Write each input times a factor into its output, and return the norms of those."""
    for source, target in zip(*tensor_lists, strict=True):
        target.copy_(accumulated(source) * factor)
    return _norms(noop_flag, [accumulated(one) * factor for one in tensor_lists[0]], per_tensor)


@torch.no_grad()
def unscale_l2norm(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, inv_scale: Any, per_tensor: bool | None = None
) -> tuple[Any, Any]:
    """Return the norms of the tensors times a factor on the device; they stay as they are."""
    return _norms(noop_flag, [accumulated(one) * inv_scale for one in tensor_lists[0]], per_tensor)


def _norms(noop_flag: Any, tensors: Any, per_tensor: bool | None) -> tuple[Any, Any]:
    norms = torch.stack([torch.linalg.vector_norm(accumulated(one)) for one in tensors])
    _flag(noop_flag, norms)
    return torch.linalg.vector_norm(norms).view(1), norms if per_tensor else norms.new_empty(0)


# -- optimizers --------------------------------------------------------------------


def corrections(bias_correction: Any, beta1: float, beta2: float, step: Any) -> tuple[Any, Any]:
    """Return what the two averages of Adam are divided by."""
    return (1 - beta1**step, 1 - beta2**step) if bias_correction else (1.0, 1.0)


def _averaged(g: Any, m: Any, v: Any, beta1: float, beta2: float, beta3: float) -> tuple[Any, Any]:
    return beta1 * accumulated(m) + beta3 * g, beta2 * accumulated(v) + (1 - beta2) * g * g


def _adam(
    g: Any, p: Any, m: Any, v: Any, lr: Any, betas: tuple[float, float], eps: float, divisors: tuple[Any, Any],
    decoupled: Any, decay: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return parameter and averages after a step, all in the accumulating type."""
    g, p = accumulated(g), accumulated(p)
    if not decoupled:
        g = g + decay * p
    m, v = _averaged(g, m, v, *betas, 1 - betas[0])
    update = (m / divisors[0]) / ((v / divisors[1]).sqrt() + eps)
    if decoupled:
        update = update + decay * p
    return p - lr * update, m, v


@torch.no_grad()
def adam(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, lr: float, beta1: float, beta2: float, epsilon: float,
    step: int, mode: int, bias_correction: int, weight_decay: float,
) -> None:  # fmt: skip
    """Step of Adam for lists of gradients, parameters and both averages; mode 1 is AdamW."""
    divisors = corrections(bias_correction, beta1, beta2, step)
    for g, p, m, v in zip(*tensor_lists, strict=True):
        found = _adam(g, p, m, v, lr, (beta1, beta2), epsilon, divisors, mode, weight_decay)
        for target, value in zip((p, m, v), found, strict=True):
            target.copy_(value)


@torch.no_grad()
def adam_capturable(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, lr: Any, beta1: float, beta2: float, epsilon: float, step: Any,
    mode: int, bias_correction: int, weight_decay: float, inv_scale: Any,
) -> None:  # fmt: skip
    """Step of Adam whose rate, number and scale are on the device; nothing is done where the flag is 1.

    The gradients become unscaled. With a fifth list the parameters are those, and the second list gets
    copies of them.
    """
    divisors = corrections(bias_correction, beta1, beta2, step)
    stays = noop_flag == 1
    for g, p, m, v, *master in zip(*tensor_lists, strict=True):
        unscaled = accumulated(g) * inv_scale
        found = _adam(
            unscaled, master[0] if master else p, m, v, lr, (beta1, beta2), epsilon, divisors, mode, weight_decay
        )
        for target, value in zip((g, p, m, v, *master), (unscaled, *found, *found[: len(master)]), strict=True):
            target.copy_(torch.where(stays, accumulated(target), value))


adam_capturable_master = adam_capturable


@torch.no_grad()
def adagrad(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, lr: float, epsilon: float, mode: int, weight_decay: float
) -> None:
    """Step of Adagrad for lists of gradients, parameters and sums of squares; mode 1 decays apart from the gradient."""
    for gradient, p, h in zip(*tensor_lists, strict=True):
        g, wide = accumulated(gradient), accumulated(p)
        if not mode:
            g = g + weight_decay * wide
        total = accumulated(h) + g * g
        update = g / (total.sqrt() + epsilon)
        if mode:
            update = update + weight_decay * wide
        p.copy_(wide - lr * update)
        h.copy_(total)


@torch.no_grad()
def sgd(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, wd: float, momentum: float, dampening: float, lr: float,
    nesterov: bool, first_run: bool, wd_after_momentum: bool, scale: float,
) -> None:  # fmt: skip
    """Step of SGD for lists of gradients, parameters and momenta; a fourth list gets copies of the parameters.

    Nothing is done where the flag is not 0.
    """
    stays = noop_flag != 0
    for g, p, buffer, *copies in zip(*tensor_lists, strict=True):
        grad, wide = accumulated(g) * scale, accumulated(p)
        if wd and not wd_after_momentum:
            grad = grad + wd * wide
        if momentum:
            moved = grad if first_run else accumulated(buffer) * momentum + (1 - dampening) * grad
            grad = grad + momentum * moved if nesterov else moved
            buffer.copy_(torch.where(stays, accumulated(buffer), moved))
        if wd and wd_after_momentum:
            grad = grad + wd * wide
        after = torch.where(stays, wide, wide - lr * grad)
        p.copy_(after)
        for one in copies:
            one.copy_(torch.where(stays, accumulated(one), after))


@torch.no_grad()
def lamb(
    chunk_size: int, noop_flag: Any, tensor_lists: Any, lr: float, beta1: float, beta2: float, epsilon: float,
    step: int, bias_correction: int, weight_decay: float, grad_averaging: int, mode: int, global_grad_norm: Any,
    max_grad_norm: float, use_nvlamb: bool | None = None,
) -> None:  # fmt: skip
    """Step of LAMB for lists of gradients, parameters and both averages; the gradients become the updates."""
    divisors = corrections(bias_correction, beta1, beta2, step)
    norm = accumulated(global_grad_norm)
    clip = torch.where(norm > max_grad_norm, norm / max_grad_norm, 1.0)
    for g, p, m, v in zip(*tensor_lists, strict=True):
        wide, grad = accumulated(p), accumulated(g) / clip
        if mode == 0:
            grad = grad + weight_decay * wide
        first, second = _averaged(grad, m, v, beta1, beta2, 1 - beta1 if grad_averaging else 1.0)
        update = (first / divisors[0]) / ((second / divisors[1]).sqrt() + epsilon)
        if mode != 0:
            update = update + weight_decay * wide
        for target, value in ((m, first), (v, second), (g, update)):
            target.copy_(value)
        rate: Any = lr
        if use_nvlamb or weight_decay:
            of_p, of_update = torch.linalg.vector_norm(wide), torch.linalg.vector_norm(accumulated(g))
            rate = torch.where((of_p != 0) & (of_update != 0), lr * (of_p / of_update), lr)
        p.copy_(wide - rate * accumulated(g))
