"""Functions that programs give for kernels of others: operators of a library, extensions, and Triton kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .errors import RedirectError
from .patches import Patches, when_imported

__all__ = ["ExtensionKernels", "Kernels", "serve_libraries"]

#: Functions of extensions, by the name of the extension and that of the function in it.
ExtensionKernels = dict[str, dict[str, Callable[..., Any]]]

#: Operators of libraries that a program may load before it redirects torch.
_LOADED_BEFORE = ("torchvision::",)
#: Operators that torch itself brings with it, beside `aten`, and whose kernels for CUDA call the driver.
_OF_TORCH = ("quantized::", "quantization::", "fsdp::", "symm_mem::", "inductor_prims::", "c10d::check_for_nan")
#: Functions of a package for CUDA that are made of torch's operators and of the package's others.
_OF_OTHERS = {"bitsandbytes::int8_double_quant"}


class Kernels:
    """The functions that were given, by name."""

    def __init__(self) -> None:
        self._operators: dict[str, Any] = {}  #: the libraries that register them, which must be kept
        self.extensions: ExtensionKernels = {}
        self.triton: dict[str, Callable[..., Any]] = {}

    def operator(self, torch: Any, module: Any, name: str, function: Callable[..., Any]) -> None:
        """Run an operator on ``'cuda'`` tensors by a function of CPU tensors.

        Raises
        ------
        RedirectError
            If no library defines the operator.
        """
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        try:
            schema = getattr(getattr(getattr(torch.ops, space), base), overload or "default")._schema
        except AttributeError:
            raise RedirectError(f"no library defines the operator {name!r}; import what does it first") from None
        if hasattr(module, "register_kernel"):
            module.register_kernel(f"{space}::{base}", overload, function)
            return
        library = torch.library.Library(space, "IMPL")
        library.impl(rest, _on_host(torch, schema, function), "CUDA")
        self._operators[name] = library


def serve_libraries(torch: Any, module: Any, patches: Patches) -> None:
    """Let operators of compiled libraries run by their CPU kernels: those for CUDA need the driver.

    Where there is none for the CPU, those of torch and of the packages known here are refused. Kernels that a program
    registers itself stay: they may be made of torch's operators, or start Triton's kernels.
    """
    names, has = torch._C._dispatch_get_all_op_names, torch._C._dispatch_has_kernel_for_dispatch_key
    load = torch.ops.load_library

    def serve_or_refuse(spaces: tuple[str, ...]) -> None:
        for name in names():
            if not name.startswith(spaces) or name in _OF_OTHERS:
                continue
            if any(has(name, key) for key in ("CPU", "QuantizedCPU", "CompositeExplicitAutograd")):
                if any(has(name, key) for key in ("CUDA", "QuantizedCUDA")):
                    module.add_operator(name)
            elif has(name, "CUDA"):
                module.refuse_operator(name)

    def serve(wanted: Iterable[str]) -> None:
        for name in wanted:
            if has(name, "CUDA") and has(name, "CPU"):
                module.add_operator(name)

    @functools.wraps(load)
    def load_library(path: Any) -> Any:
        before = set(names())
        done = load(path)
        serve(set(names()) - before)
        return done

    serve(name for name in names() if name.startswith(_LOADED_BEFORE))
    serve_or_refuse(_OF_TORCH)
    when_imported(patches, {
        # Instead of its library for CUDA it loads the one for the CPU then, which names the functions that it lacks.
        "bitsandbytes.cuda_specs": lambda specs: patches.set(specs, "get_cuda_specs", lambda: None),
        "bitsandbytes": lambda _: serve_or_refuse(("bitsandbytes::",)),
    })  # fmt: skip
    patches.set(torch.ops, "load_library", load_library)


def _on_host(torch: Any, schema: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that waits for its arguments, runs the function on copies and copies back what it changed."""
    written = {argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write}
    names = [argument.name for argument in schema.arguments]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        device: Any = None
        copies: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, torch.Tensor) and value.is_cuda:
                device = value.device
                copies[name] = value.cpu()
            elif isinstance(value, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in value):
                device = next(one.device for one in value if isinstance(one, torch.Tensor))
                copies[name] = [one.cpu() for one in value]
        called = {**given, **copies}
        positional = [called.pop(name) for name in names[: len(args)]]
        result = function(*positional, **called)
        for name in written & copies.keys():
            if isinstance(copies[name], torch.Tensor):
                given[name].copy_(copies[name])
        back = {id(copies[name]): given[name] for name in written & copies.keys()}

        def moved(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(moved(one) for one in value)
            return back.get(id(value), value.to(device) if isinstance(value, torch.Tensor) else value)

        return moved(result)

    return kernel
