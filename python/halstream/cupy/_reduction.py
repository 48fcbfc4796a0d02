"""ReductionKernel: arrays reduced along axes by expressions in CUDA C++."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._elementwise import CachedCodes, types_of
from ._operands import (
    Argument,
    Code,
    Kernels,
    Operand,
    ParameterInfo,
    Types,
    argument,
    broadcast,
    check_name,
    decide_types,
    merged,
    outputs,
    parameters,
)

__all__ = ["ReductionKernel"]

# Threads of a block, a power of two: some share the elements of one output, the others have outputs of their own.
_THREADS = 256
# The most elements whose number in an axis is an int.
_INT = 2**31 - 1


class ReductionKernel(CachedCodes):
    """cupy.ReductionKernel (14.2.0): compiled by NVRTC for the types and forms of each call's arguments.

    Difference: the order in which elements are reduced, which shows in the last bits of sums of floats.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        check_name(name)
        self.in_params = parameters(in_params, True)
        self.out_params = parameters(out_params, False)
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.name = self.__name__ = name
        self.reduce_type = self.out_params[0].ctype if reduce_type is None else reduce_type
        self.reduce_dims = bool(reduce_dims)
        self.preamble = preamble
        self.options = options
        self._kernels = Kernels()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Enqueue it for the arguments, with outputs or without, and return the first output.

        Keywords are `out`, the output, `axis`, an int, a tuple, or None for all axes,
        `keepdims`, and `stream`, by default the current one.
        """
        out, axis = kwargs.pop("out", None), kwargs.pop("axis", None)
        keepdims, stream = kwargs.pop("keepdims", False), kwargs.pop("stream", None)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name}")
        given = list(args[self.nin :])
        if out is not None:
            if self.nout != 1:
                raise NotImplementedError("out= is for kernels with one output; give the outputs behind the inputs")
            if given:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            given = [out]
        ins, shape = broadcast([argument(x) for x in args[: self.nin]], self.in_params, False)
        outs = [argument(x) for x in given]
        types = decide_types(self.in_params, self.out_params, types_of(ins), types_of(outs))
        reduced, rest = _axes(axis, len(shape))
        result_shape = tuple(shape[i] for i in rest)
        kept = tuple(1 if i in reduced else n for i, n in enumerate(shape)) if keepdims else result_shape
        outs = outputs(outs, types.outs, kept, self.out_params, False)
        result = outs[0].array
        if 0 not in kept:
            if not self.identity and 0 in shape:
                raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
            order = reduced + rest
            moved = [_permuted(a, p, order) for a, p in zip(ins, self.in_params, strict=True)]
            self._launch(moved, outs, tuple(shape[i] for i in order), kept, types, stream)
        return result

    def _launch(
        self,
        ins: list[Argument],
        outs: list[Operand],
        shape: tuple[int, ...],
        out_shape: tuple[int, ...],
        types: Types,
        stream: Any,
    ) -> None:
        count, elements = math.prod(out_shape), math.prod(shape) // math.prod(out_shape)
        given: list[Argument] = list(outs)
        if self.reduce_dims:
            ins, shape = merged(ins, self.in_params, shape)
            given, out_shape = merged(given, self.out_params, out_shape)
        code, begin, end = Code(), [], []
        numbers, out_numbers = code.numbers("_in_shape", shape), code.numbers("_out_shape", out_shape)
        code.indexer("_in_ind", shape, numbers)
        code.indexer("_out_ind", out_shape, out_numbers)
        for p, a, dtype in zip(self.in_params, ins, types.ins, strict=True):
            if not isinstance(a, Operand):
                code.scalar(p, a, dtype)
                continue
            code.array(p, a, numbers)
            if not p.raw:
                begin.append(f"const {p.ctype} {p.name} = _raw_{p.name}[_in_ind.get()];")
        for p, a in zip(self.out_params, given, strict=True):
            code.array(p, a, out_numbers)
            if not p.raw:
                end.append(f"{p.ctype} &{p.name} = _raw_{p.name}[_out_ind.get()];")
        code.declared.append("ptrdiff_t _elements")
        code.values.append(np.int64(elements))
        wide = elements > _INT
        key = types.placeholders, wide, *code.key
        kernel = self._kernels.find(key)
        if kernel is None:
            source = code.source(self.name, types, self._preamble(wide), self._body(begin, end))
            kernel = self._kernels.add(key, code.types, self.name, source, tuple(self.options))
        sharing = min(_THREADS, 1 << max(0, elements - 1).bit_length())  # of the elements of one output
        side = _THREADS // sharing
        grid = min(-(-count // side), _INT)
        kernel((grid,), (side, sharing), tuple(code.values), 0, stream)

    def _preamble(self, wide: bool) -> str:
        # The program in front of the kernel may use both types.
        index = "long long" if wide else "int"
        return f"typedef {index} IndexT;\n{self.preamble}\ntypedef {self.reduce_type} _type_reduce;"

    def _body(self, begin: Sequence[str], end: Sequence[str]) -> str:
        """Return the function's body: threads of one x reduce the elements of one output, first each its own ones."""
        reduce = f"_type_reduce a = {{}}, b = {{}}; _s = ({self.reduce_expr});"
        return f"""
  __shared__ __align__(16) char _bytes[{_THREADS} * sizeof(_type_reduce)];
  _type_reduce *_shared = reinterpret_cast<_type_reduce *>(_bytes);
  const unsigned _x = threadIdx.x, _side = blockDim.x, _tid = threadIdx.y * _side + _x;
  const ptrdiff_t _step = (ptrdiff_t)gridDim.x * _side;
  for (ptrdiff_t _first = (ptrdiff_t)blockIdx.x * _side; _first < _out_ind.size(); _first += _step) {{
    const ptrdiff_t _i = _first + _x;
    _type_reduce _s = _type_reduce({self.identity});
    if (_i < _out_ind.size()) {{
      for (IndexT _J = threadIdx.y; _J < _elements; _J += blockDim.y) {{
        const ptrdiff_t _j = (ptrdiff_t)_J * _out_ind.size() + _i;
        _in_ind.set(_j);
        {" ".join(begin)}
        const _type_reduce _mapped = static_cast<_type_reduce>({self.map_expr});
        {{ {reduce.format("_s", "_mapped")} }}
      }}
    }}
    _shared[_tid] = _s;
    for (unsigned _half = blockDim.y / 2; _half > 0; _half /= 2) {{
      __syncthreads();
      if (threadIdx.y < _half) {{
        {{ {reduce.format("_shared[_tid]", "_shared[_tid + _half * _side]")} }}
        _shared[_tid] = _s;
      }}
    }}
    if (threadIdx.y == 0 && _i < _out_ind.size()) {{
      _out_ind.set(_i);
      {" ".join(end)}
      _type_reduce a = _s;
      {self.post_map_expr};
    }}
    __syncthreads();
  }}"""


def _axes(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes that are reduced, and the others, both in order."""
    if axis is None:
        return tuple(range(ndim)), ()
    wanted = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for i in wanted:
        if not -ndim <= i < ndim:
            raise np.exceptions.AxisError(i, ndim)
    reduced = tuple(sorted(i % ndim for i in wanted))
    if len(set(reduced)) != len(reduced):
        raise ValueError("duplicate value in 'axis'")
    return reduced, tuple(i for i in range(ndim) if i not in reduced)


def _permuted(a: Argument, p: ParameterInfo, order: tuple[int, ...]) -> Argument:
    if not isinstance(a, Operand) or p.raw:
        return a
    return a.viewed([a.shape[i] for i in order], [a.strides[i] for i in order])


ReductionKernel.__module__ = "halstream.cupy"
