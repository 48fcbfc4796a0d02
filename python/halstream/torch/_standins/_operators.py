"""Operators of `torch.ops` whose kernels are functions of torch's own operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..._runtime import State, runtime
from .._redirect.errors import RedirectError

__all__ = ["register"]


class _Libraries(State):
    """The libraries of stand-ins by namespace, which are kept, since an operator goes with its library."""

    def __init__(self) -> None:
        self.kept_by: dict[tuple[str, str], Any] = {}


_libraries = runtime.add("libraries of stand-ins", _Libraries())


def register(
    standin: str, namespace: str, operators: Mapping[str, Callable[..., Any]], composite: bool = False
) -> None:
    """Define operators and give each its kernel, once in a process: they stay when the redirection is undone.

    Parameters
    ----------
    standin : str
        The name of the stand-in, for errors.
    namespace : str
    operators : mapping
        Functions by schema, such as ``"silu_and_mul(Tensor! out, Tensor input) -> ()"``. A function
        computes on tensors of ``'cuda'``, and on those without memory for the compiler.
    composite : bool
        Whether the operators have derivatives, which are those of the operators that a function
        calls, and work on tensors of the CPU, too.

    Raises
    ------
    RedirectError
        If another library has defined one of them with a kernel, or with other arguments; one
        without a kernel gets it.
    """
    if (standin, namespace) in _libraries.kept_by:
        return
    library = torch.library.Library(namespace, "FRAGMENT")
    names = {schema: schema.partition("(")[0] for schema in operators}
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    known = set(torch._C._dispatch_get_all_op_names())
    defined = {name for name in names.values() if f"{namespace}::{name}" in known}
    for name in defined:
        if has(f"{namespace}::{name}", "CUDA") or has(f"{namespace}::{name}", "CompositeImplicitAutograd"):
            raise RedirectError(
                f"another library has defined the operator {namespace}::{name}, which halstream's stand-in for "
                f"{standin} defines; leave the stand-in out by HALSTREAM_TORCH_STANDINS=-{standin}, or do not load "
                "that library"
            )
    for schema, name in names.items():
        if name in defined:
            _compare(standin, namespace, name, schema)
    for schema, function in operators.items():
        if names[schema] not in defined:
            library.define(schema)
        for key in ("CompositeImplicitAutograd",) if composite else ("CUDA", "Meta"):
            library.impl(names[schema], function, key)
    _libraries.kept_by[standin, namespace] = library


def _compare(standin: str, namespace: str, name: str, schema: str) -> None:
    """Raise an error if the operator that a library has defined takes other arguments."""
    base, _, overload = name.partition(".")
    theirs = torch._C._get_schema(f"{namespace}::{base}", overload)
    ours = torch._C.parse_schema(f"{namespace}::{schema}")
    shown = [", ".join(argument.name for argument in one.arguments) for one in (theirs, ours)]
    if shown[0] != shown[1]:
        raise RedirectError(
            f"a library has defined the operator {namespace}::{name}({shown[0]}), and halstream's stand-in for "
            f"{standin} has {name}({shown[1]}), of another version; give the operators CPU versions with "
            f"halstream.torch.register_kernel, and leave the stand-in out by HALSTREAM_TORCH_STANDINS=-{standin}"
        )
