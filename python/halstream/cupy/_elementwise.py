"""ElementwiseKernel: a kernel for each element of arrays, of an operation in CUDA C++."""

from __future__ import annotations

import math
import warnings
from typing import Any, NoReturn

from ._operands import (
    Code,
    Kernels,
    Operand,
    argument,
    broadcast,
    check_name,
    decide_types,
    merged,
    outputs,
    parameters,
)
from .cuda._errors import unsupported

__all__ = ["CachedCodes", "ElementwiseKernel", "fuse", "types_of"]

_OPTIONS = {"options", "loop_prep", "after_loop"}


class CachedCodes:
    """The sources that a kernel was compiled from."""

    _kernels: Kernels

    @property
    def _cached_codes(self) -> dict[tuple[Any, ...], str]:
        return self._kernels.codes

    @property
    def cached_codes(self) -> dict[tuple[Any, ...], str]:
        """The sources, by the types of the arrays."""
        if not self._kernels.codes:
            warnings.warn(
                "No codes are cached because compilation is deferred until the first function call.", stacklevel=2
            )
        return dict(self._kernels.codes)

    @property
    def cached_code(self) -> str:
        """The first source."""
        codes = self._kernels.codes
        if len(codes) > 1:
            warnings.warn(
                "The input types of the kernel could not be inferred. Please use `.cached_codes` instead.", stacklevel=2
            )
        return next(iter(codes.values()))


class ElementwiseKernel(CachedCodes):
    """cupy.ElementwiseKernel (14.2.0): compiled by NVRTC for the types and forms of each call's arguments.

    It uses cupy's own headers where cupy's wheel is installed, and a few of ours otherwise.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **kwargs: Any,
    ) -> None:
        check_name(name)
        self.in_params = parameters(in_params, True)
        self.out_params = parameters(out_params, False)
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.operation = operation
        self.name = self.__name__ = name
        self.reduce_dims, self.no_return, self.return_tuple = bool(reduce_dims), bool(no_return), bool(return_tuple)
        self.preamble = preamble
        self.kwargs = kwargs
        if any(p.name == "i" for p in self.params):
            raise ValueError("Can not use 'i' as a parameter name")
        self._kernels = Kernels()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Enqueue it for the arguments, with outputs or without, and return the outputs.

        Keywords are `size`, the number of elements where all arrays are raw,
        `block_size`, the threads of a block, and `stream`, by default the current one.
        """
        size = kwargs.pop("size", -1)
        stream = kwargs.pop("stream", None)
        block_size = kwargs.pop("block_size", 128)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if block_size <= 0:
            raise ValueError("block_size must be greater than zero")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} "
                f"(with outputs), but given {len(args)}."
            )
        if unknown := self.kwargs.keys() - _OPTIONS:
            raise TypeError(f"ElementwiseKernel got an unexpected keyword argument {min(unknown)!r}")
        given = [argument(x) for x in args]
        ins, shape = broadcast(given, self.params, size != -1)
        ins, outs = ins[: self.nin], given[self.nin :]
        types = decide_types(self.in_params, self.out_params, types_of(ins), types_of(outs))
        if size != -1:
            shape = (size,)
        outs = outputs(outs, types.outs, shape, self.out_params, size != -1)
        result: Any = None
        if not self.no_return:
            found = [a.array for a in outs]
            result = found[0] if self.nout == 1 and not self.return_tuple else tuple(found)
        if 0 not in shape:
            self._launch([*ins, *outs], shape, types, block_size, stream)
        return result

    def _launch(self, args: list[Any], shape: tuple[int, ...], types: Any, block_size: int, stream: Any) -> None:
        if self.reduce_dims:
            args, shape = merged(args, self.params, shape)
        code, begin = Code(), []
        numbers = code.numbers("_shape", shape)
        code.indexer("_ind", shape, numbers)
        for p, a, dtype in zip(self.params, args, (*types.ins, *types.outs), strict=True):
            if not isinstance(a, Operand):
                code.scalar(p, a, dtype)
                continue
            code.array(p, a, numbers)
            if not p.raw:
                begin.append(f"{'const ' if p.is_const else ''}{p.ctype} &{p.name} = _raw_{p.name}[_ind.get()];")
        key = types.placeholders, *code.key
        kernel = self._kernels.find(key)
        if kernel is None:
            element = "\n    ".join([*begin, self.operation])
            before, after = (self.kwargs.get(name, "") for name in ("loop_prep", "after_loop"))
            loop = f"CUPY_FOR(i, _ind.size()) {{\n    _ind.set(i);\n    {element};\n  }}"
            body = f"  {before};\n  {loop}\n  {after};"
            source = code.source(self.name, types, self.preamble, body)
            options = tuple(self.kwargs.get("options", ()))
            kernel = self._kernels.add(key, code.types, self.name, source, options)
        kernel.linear_launch(math.prod(shape), code.values, 0, block_size, stream)


def types_of(args: list[Any]) -> tuple[Any, ...]:
    """Return the dtypes of arrays, None for each number."""
    return tuple(a.dtype if isinstance(a, Operand) else None for a in args)


def fuse(*args: Any, **kwargs: Any) -> NoReturn:
    """cupy.fuse (14.2.0): refused, with what to do."""
    raise unsupported(
        "cupy.fuse is not built: leave the decorator out, and each operation of the function is enqueued by itself, or "
        "write the function as a cupy.ElementwiseKernel or cupy.ReductionKernel"
    )


ElementwiseKernel.__module__ = fuse.__module__ = "halstream.cupy"
