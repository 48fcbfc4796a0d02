"""The error of a redirection that cannot be."""

from __future__ import annotations

from ..._errors import HalError

__all__ = ["NotBuiltError", "RedirectError"]


class RedirectError(HalError):
    """torch's CUDA device cannot be taken over in this process; the text says why and what to do."""

    __module__ = "halstream.torch"


class NotBuiltError(NotImplementedError, RuntimeError):
    """A part of torch.cuda that halstream does not have; the text names it and says what to do."""
