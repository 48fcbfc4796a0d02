"""Which parameter or buffer of a module it was that could not be moved to the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .patches import Patches

__all__ = ["patch"]


class _Named:
    """What a module applies to its tensors; where that is refused, the error says of which tensor."""

    def __init__(self, module: Any, function: Callable[[Any], Any]) -> None:
        self._module, self._function = module, function

    def __call__(self, tensor: Any) -> Any:
        try:
            return self._function(tensor)
        except NotImplementedError as refused:
            text, explanation, page = str(refused).partition("\nexplain: ")
            refused.args = (f"{text}\n({self._name(tensor)} of {type(self._module).__name__}){explanation}{page}",)
            raise

    def _name(self, tensor: Any) -> str:
        for kind, named in (
            ("the parameter", self._module.named_parameters()),
            ("the buffer", self._module.named_buffers()),
        ):
            for path, one in named:
                if one is tensor:
                    return f"{kind} {path!r}"
        return "a gradient"


def patch(torch: Any, patches: Patches) -> None:
    """Let ``module.cuda()`` and its like name the tensor that the device refuses."""
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def _apply(self: Any, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        return apply(self, fn if isinstance(fn, _Named) else _Named(self, fn), recurse)

    patches.set(torch.nn.Module, "_apply", _apply)
