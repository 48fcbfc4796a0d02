"""The error of a redirection that cannot be."""

from __future__ import annotations

from ..._errors import HalError
from ..._notes import point_to_page

__all__ = ["NotBuiltError", "RedirectError"]


class RedirectError(HalError):
    """torch's CUDA device cannot be taken over in this process; the text says why and what to do."""

    __module__ = "halstream.torch"


class NotBuiltError(NotImplementedError, RuntimeError):
    """A part of torch.cuda that halstream does not have; the text names it and says what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        point_to_page(self, "not-supported")
