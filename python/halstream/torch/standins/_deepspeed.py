"""DeepSpeed's builders of operators: instead of compiling at the first use they take the stand-ins."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .._redirect.patches import Patches

__all__ = ["OPERATORS", "changes"]

#: The modules that DeepSpeed's wheel would have for these operators.
OPERATORS = {
    "fused_adam": "deepspeed.ops.adam.fused_adam_op",
    "cpu_adam": "deepspeed.ops.adam.cpu_adam_op",
    "fused_lamb": "deepspeed.ops.lamb.fused_lamb_op",
}


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
