"""What the stand-ins share: how they refuse what they do not have, and how they compute."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .._redirect.errors import NotBuiltError

__all__ = ["accumulated", "check", "need_cuda", "need_half", "refuse", "without_autocast"]


def refuse(what: str, instead: str) -> None:
    """Raise the error of a call that a stand-in does not support.

    Parameters
    ----------
    what : str
        The call with the argument that is the reason: ``"flash_attn_func(dropout_p=0.1)"``.
    instead : str
        What to do.

    Raises
    ------
    NotBuiltError
        Always.
    """
    raise NotBuiltError(f"halstream's stand-in does not support {what}; {instead}")


def check(holds: bool, text: str) -> None:
    """Raise a RuntimeError with the text unless the condition holds, as the check of a C++ extension does."""
    if not holds:
        raise RuntimeError(text)


def need_cuda(package: str, **tensors: Any) -> None:
    """Refuse tensors that are not on ``'cuda'``, as the package does; None is none."""
    for name, one in tensors.items():
        if one is not None:
            check(one.is_cuda, f"{package}: {name} must be a CUDA tensor, and it is on {one.device}")


def need_half(package: str, tensor: Any) -> None:
    """Refuse what is neither float16 nor bfloat16, as the package does."""
    check(
        tensor.dtype in (torch.float16, torch.bfloat16),
        f"{package} only supports fp16 and bf16 data type, not {tensor.dtype}",
    )


def accumulated(tensor: Any) -> Any:
    """Return a floating-point tensor in the type in which kernels add: at least 32 bits."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def without_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function compute in the types that it chooses: autocast does not reach into a compiled kernel."""

    @functools.wraps(function)
    def computing(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return computing
