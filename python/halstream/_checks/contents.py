"""Which functions and methods certainly work on arrays as a whole, and which only look at their shape."""

from __future__ import annotations

import builtins
import types
from typing import Any

import numpy as np

__all__ = ["of_call", "of_method"]

# All others may make a view, or take a part: that they read everything would be a wrong report.
_METHODS = frozenset({
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "clip", "conj", "conjugate",
    "copy", "cumprod", "cumsum", "dot", "dump", "dumps", "fill", "flatten", "max", "mean", "min", "nonzero",
    "partition", "prod", "ptp", "repeat", "round", "sort", "std", "sum", "tobytes", "tofile", "tolist", "var",
    *(f"__{before}{name}__" for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
    ) for before in ("", "i", "r")),
    *(f"__{name}__" for name in (
        "neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge", "divmod", "contains", "copy", "deepcopy",
    )),
})  # fmt: skip
_FUNCTIONS = frozenset({
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around",
    "array", "array_equal", "array_equiv", "average", "bincount", "clip", "convolve", "copy", "copyto", "corrcoef",
    "correlate", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "diff", "digitize", "dot", "flatnonzero",
    "gradient", "histogram", "inner", "interp", "isclose", "kron", "max", "mean", "median", "min", "nan_to_num",
    "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "nonzero", "outer",
    "partition", "percentile", "prod", "ptp", "quantile", "repeat", "round", "sort", "std", "sum", "tensordot",
    "tile", "trapezoid", "unique", "var", "vdot", "where",
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "norm", "pinv", "qr", "slogdet", "solve",
    "svd",
})  # fmt: skip
_SHAPE_METHODS = frozenset({"__len__", "__sizeof__", "__hash__", "__class__"})
_SHAPE_FUNCTIONS = frozenset({
    "broadcast_shapes", "can_cast", "common_type", "empty_like", "full_like", "iscomplexobj", "isrealobj",
    "may_share_memory", "min_scalar_type", "ndim", "ones_like", "result_type", "shape", "shares_memory", "size",
    "zeros_like",
})  # fmt: skip
_SHAPE_BUILTINS = (len, id, type, isinstance, issubclass, hasattr, callable)
_WHOLE_BUILTINS = (sum, min, max, sorted, list, tuple, set, frozenset, bytes, bytearray)
# Attributes of an array that stand for other elements than all of its own.
_PARTS = frozenset({"real", "imag", "flat"})


def of_method(attributes: tuple[str, ...], keywords: object = ()) -> str:
    """Return what a method does with its array: ``whole``, ``part``, or nothing if it needs the shape only."""
    if attributes[-1] in _SHAPE_METHODS:
        return ""
    if attributes[-1] not in _METHODS or not _PARTS.isdisjoint(attributes[:-1]) or "where" in tuple(keywords):  # type: ignore[arg-type]
        return "part"
    return "whole"


def of_call(f: Any, keywords: object = ()) -> str:
    """Return what a function that is not Python's does with the arrays among its arguments."""
    if any(f is one for one in _SHAPE_BUILTINS):
        return ""
    if "where" in tuple(keywords):  # type: ignore[arg-type]
        return "part"
    if isinstance(f, np.ufunc) or any(f is one for one in _WHOLE_BUILTINS):
        return "whole"
    owner, name = getattr(f, "__self__", None), getattr(f, "__name__", "")
    if isinstance(owner, np.ndarray):
        return "whole" if name in _METHODS else "part"  # of another array: what it takes part in
    if isinstance(owner, np.ufunc):
        return "part" if name == "at" else "whole"
    if _of_numpy(f):
        return "" if name in _SHAPE_FUNCTIONS else "whole" if name in _FUNCTIONS else "part"
    return "part"


def _of_numpy(f: Any) -> bool:
    module = getattr(f, "__module__", "") or ""
    plain = isinstance(f, types.BuiltinFunctionType) and getattr(f, "__self__", None) is not builtins
    return module.partition(".")[0] == "numpy" and not isinstance(f, type) and (plain or type(f) is type(np.sum))
