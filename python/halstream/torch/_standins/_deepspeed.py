"""DeepSpeed's builders of operators: instead of compiling at the first use they take the stand-ins."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..._runtime import State, runtime
from .._redirect.patches import Patches

__all__ = ["OPERATORS", "changes", "host_adams"]

#: The modules that DeepSpeed's wheel would have for these operators.
OPERATORS = {
    "fused_adam": "deepspeed.ops.adam.fused_adam_op",
    "cpu_adam": "deepspeed.ops.adam.cpu_adam_op",
    "fused_lamb": "deepspeed.ops.lamb.fused_lamb_op",
}


class _HostAdams(State):
    """DeepSpeed's optimizers for tensors in the host's memory, by their numbers."""

    def __init__(self) -> None:
        self.decoupled: dict[int, bool] = {}  #: whether each decays weights apart from the gradient


host_adams = runtime.add("DeepSpeed's optimizers on the host", _HostAdams())


def changes(patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with the builders' module once it is imported.

    An operator that DeepSpeed's wheel was built with is a module, which is loaded as it is.
    """

    def builders(found: ModuleType) -> None:
        load = found.OpBuilder.load

        @functools.wraps(load)
        def loading(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.name in OPERATORS:
                return importlib.import_module(OPERATORS[self.name])
            return load(self, *args, **kwargs)

        patches.set(found.OpBuilder, "load", loading)

    return {"deepspeed.ops.op_builder.builder": builders}
