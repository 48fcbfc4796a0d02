"""What torch.cuda.make_graphed_callables returns: functions that replay the work of others on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._memory._array import Array
from .._errors import dialect_errors
from ._guards import current_stream

__all__ = ["check_samples", "graphed", "leaves"]


def check_samples(samples: Any) -> None:
    """Fail unless all samples of a function are arrays."""
    if not all(isinstance(one, Array) for one in leaves(samples)):
        raise AssertionError(
            "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
        )


def graphed(replay: Callable[[], None], samples: Any, outputs: Any) -> Callable[..., Any]:
    """Return a function that copies its arguments into the samples, replays, and returns the outputs."""
    for one in leaves(outputs):
        if not isinstance(one, Array):
            raise TypeError(f"a graphed function returns arrays of halstream, not {type(one).__name__}")
    inputs = list(leaves(samples))

    def functionalized(*user_args: Any) -> Any:
        given = list(leaves(user_args))
        if len(given) != len(inputs):
            raise TypeError(f"the function was captured with {len(inputs)} arrays, and is called with {len(given)}")
        for static, one in zip(inputs, given, strict=True):
            if not isinstance(one, Array):
                raise TypeError(f"the function takes arrays of halstream, not {type(one).__name__}")
            if static.ptr != one.ptr:
                _copied(static, one)
        replay()
        return _rebuilt(outputs)

    return functionalized


@dialect_errors
def _copied(target: Array, source: Array) -> None:
    target.copy_from(source, current_stream())


def leaves(tree: Any) -> Iterator[Any]:
    """Return what is in tuples, lists and dicts, or the object itself."""
    if isinstance(tree, (tuple, list)):
        for one in tree:
            yield from leaves(one)
    elif isinstance(tree, dict):
        for one in tree.values():
            yield from leaves(one)
    else:
        yield tree


def _rebuilt(tree: Any) -> Any:
    """Return the same objects in tuples, lists and dicts of their own, which the program may change."""
    if isinstance(tree, tuple):
        parts = [_rebuilt(one) for one in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [_rebuilt(one) for one in tree]
    if isinstance(tree, dict):
        return {name: _rebuilt(one) for name, one in tree.items()}
    return tree
