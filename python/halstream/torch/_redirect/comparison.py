"""`compare_compiled`: does what torch.compile makes of a function wait as the function does?"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..._errors import UnorderedAccessError
from ..._notes import point_to_page
from .errors import RedirectError
from .redirection import redirected

if TYPE_CHECKING:
    from ..._checks.report import Report

__all__ = ["compare_compiled", "eagerly"]

#: Calls before the one that is looked at: one compiles, and mode "reduce-overhead" warms up and records graphs.
_WARM = 3


def compare_compiled(
    function: Callable[..., Any], *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any
) -> None:
    """Check that a function, compiled by torch.compile, orders what it orders without that.

    The function is called as it is, and then compiled, both under the sanitizer. Both times its
    tensors are written before the call and read after it, on the current stream.

    Parameters
    ----------
    function : callable
        A function or a `torch.nn.Module`. It is called five times, so that what it changes is changed as often.
    *args, **kwargs
        What it is called with.
    options : mapping, optional
        Of `torch.compile`, for example ``{"mode": "reduce-overhead"}``.

    Raises
    ------
    UnorderedAccessError
        If accesses are unordered in the compiled function only. The text has each pair with the line of the
        code that the compiler wrote and the line of the program. Or if the function has
        unordered accesses without the compiler.
    RedirectError
        If torch is not redirected.

    Examples
    --------
    >>> halstream.torch.compare_compiled(step, batch)  # doctest: +SKIP
    """
    from ..._checks.report import LOST, LOST_BY_COMPILER, text

    if not redirected():
        raise RedirectError("torch is not redirected: call halstream.torch.redirect() before compare_compiled")
    torch = sys.modules["torch"]
    given = list(_tensors(torch, (function, args, kwargs)))
    with eagerly():
        own = _watched(torch, given, lambda: function(*args, **kwargs))
    if own:
        raise _error(
            f"the function orders these accesses without torch.compile neither:\n\n{own}", own, next(iter(own)).code
        )
    compiled = torch.compile(function, **(options or {}))
    for _ in range(_WARM):
        compiled(*args, **kwargs)
    lost = _watched(torch, given, lambda: compiled(*args, **kwargs))
    if lost:
        raise _error("\n\n".join([LOST_BY_COMPILER, *(text(finding, lost=True) for finding in lost)]), lost, LOST)


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Let compiled functions run as they were written, where torch is there."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _error(words: str, report: Report, page: str) -> UnorderedAccessError:
    error = UnorderedAccessError(words, operation="compare_compiled")
    error.report = report  # type: ignore[attr-defined]
    point_to_page(error, page)
    return error


def _watched(torch: Any, given: list[Any], call: Callable[[], Any]) -> Report:
    """Return what the sanitizer finds in a call, in what comes before it and in what uses its results."""
    from ..._checks.sanitize import sanitize

    torch.cuda.synchronize()
    with sanitize(on="collect") as report:
        with torch.no_grad():
            for tensor in given:
                tensor.copy_(tensor.clone())
        result = call()
        with torch.no_grad():
            for tensor in [*given, *_tensors(torch, result)]:
                tensor.clone()
                if tensor.is_leaf and tensor.grad is not None:
                    tensor.grad.clone()
        torch.cuda.synchronize()
    return report


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    """Return the tensors on devices in arguments, results and modules."""
    if isinstance(value, torch.Tensor):
        if value.is_cuda:
            yield value
    elif isinstance(value, torch.nn.Module):
        yield from _tensors(torch, [*value.parameters(), *value.buffers()])
    elif isinstance(value, Mapping):
        yield from _tensors(torch, list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(torch, one)
