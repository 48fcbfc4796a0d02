"""Stand-in for fused_layer_norm_cuda, the compiled norms of an installed apex."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _norms
from halstream.torch._standins._common import accumulated, refuse

import torch

__all__ = [
    "backward",
    "backward_affine",
    "forward",
    "forward_affine",
    "forward_affine_mixed_dtypes",
    "rms_backward",
    "rms_backward_affine",
    "rms_forward",
    "rms_forward_affine",
    "rms_forward_affine_mixed_dtypes",
]


def _dims(normalized_shape: Any) -> tuple[int, ...]:
    return tuple(range(-len(normalized_shape), 0))


def _statistics(input: Any, normalized_shape: Any, eps: float, centered: bool) -> list[Any]:
    """Return the means, if they are taken out, and what multiplies, one for each row."""
    wide, dims = accumulated(input), _dims(normalized_shape)
    mean = wide.mean(dims, keepdim=True)
    square = (wide - mean if centered else wide).square().mean(dims)
    inverse = torch.rsqrt(square + eps).flatten()
    return [mean.flatten(), inverse] if centered else [inverse]


def forward_affine(input: Any, normalized_shape: Any, gamma: Any, beta: Any, epsilon: float) -> list[Any]:
    """Return the layer norm in the input's type, the means and what multiplies."""
    found = _norms.layer_norm(input, gamma, beta, epsilon, len(normalized_shape))
    return [found.to(input.dtype), *_statistics(input, normalized_shape, epsilon, True)]


def forward(input: Any, normalized_shape: Any, epsilon: float) -> list[Any]:
    """Return the same without weights."""
    return forward_affine(input, normalized_shape, None, None, epsilon)


def forward_affine_mixed_dtypes(input: Any, normalized_shape: Any, gamma: Any, beta: Any, epsilon: float) -> list[Any]:
    """Return the same in the weights' type."""
    found = _norms.layer_norm(input, gamma, beta, epsilon, len(normalized_shape))
    return [found.to(gamma.dtype), *_statistics(input, normalized_shape, epsilon, True)]


def rms_forward_affine(input: Any, normalized_shape: Any, gamma: Any, epsilon: float) -> list[Any]:
    """Return the RMS norm in the input's type, and what multiplies."""
    found = _norms.rms_norm(input, gamma, epsilon, len(normalized_shape))
    return [found.to(input.dtype), *_statistics(input, normalized_shape, epsilon, False)]


def rms_forward(input: Any, normalized_shape: Any, epsilon: float) -> list[Any]:
    """Return the same without a weight."""
    return rms_forward_affine(input, normalized_shape, None, epsilon)


def rms_forward_affine_mixed_dtypes(input: Any, normalized_shape: Any, gamma: Any, epsilon: float) -> list[Any]:
    """Return the same in the weight's type."""
    found = _norms.rms_norm(input, gamma, epsilon, len(normalized_shape))
    return [found.to(gamma.dtype), *_statistics(input, normalized_shape, epsilon, False)]


def _gradients(
    dout: Any, input: Any, normalized_shape: Any, gamma: Any, beta: Any, epsilon: float, centered: bool,
    memory_efficient: bool,
) -> list[Any]:  # fmt: skip
    if memory_efficient:
        refuse("a norm of apex with memory_efficient=True", "leave it out; it saves no memory here")
    wanted = [one for one in (input, gamma, beta) if one is not None]
    with torch.enable_grad():
        leaves = [accumulated(one.detach()).requires_grad_() for one in wanted]
        rest = leaves[1:] + [None] * (2 - len(leaves[1:]))
        width = len(normalized_shape)
        if centered:
            found = _norms.layer_norm(leaves[0], *rest, epsilon, width)
        else:
            found = _norms.rms_norm(leaves[0], rest[0], epsilon, width)
        gradients = torch.autograd.grad(found, leaves, accumulated(dout.detach()).view(found.shape))
    return [one.to(given.dtype) for one, given in zip(gradients, wanted, strict=True)]


def backward_affine(
    dout: Any, mean: Any, invvar: Any, input_or_output: Any, normalized_shape: Any, gamma: Any, beta: Any,
    epsilon: float, memory_efficient: bool = False,
) -> list[Any]:  # fmt: skip
    """Return the gradients of a layer norm's input, weight and bias."""
    return _gradients(dout, input_or_output, normalized_shape, gamma, beta, epsilon, True, memory_efficient)


def backward(
    dout: Any, mean: Any, invvar: Any, input_or_output: Any, normalized_shape: Any, epsilon: float,
    memory_efficient: bool = False,
) -> Any:  # fmt: skip
    """Return the gradient of a layer norm's input."""
    return _gradients(dout, input_or_output, normalized_shape, None, None, epsilon, True, memory_efficient)[0]


def rms_backward_affine(
    dout: Any, invvar: Any, input_or_output: Any, normalized_shape: Any, gamma: Any, epsilon: float,
    memory_efficient: bool = False,
) -> list[Any]:  # fmt: skip
    """Return the gradients of an RMS norm's input and weight."""
    return _gradients(dout, input_or_output, normalized_shape, gamma, None, epsilon, False, memory_efficient)


def rms_backward(
    dout: Any, invvar: Any, input_or_output: Any, normalized_shape: Any, epsilon: float, memory_efficient: bool = False
) -> Any:
    """Return the gradient of an RMS norm's input."""
    return _gradients(dout, input_or_output, normalized_shape, None, None, epsilon, False, memory_efficient)[0]
