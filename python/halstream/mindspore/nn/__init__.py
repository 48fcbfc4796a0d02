"""`mindspore.nn` of 2.10: the class that functions of tensors are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..._dialects._not_built import attribute_error, not_built

__all__ = ["Cell"]


class Cell:
    """`mindspore.nn.Cell` of 2.10: calling it calls `construct`."""

    def __init__(self, auto_prefix: bool = True, flags: Any = None) -> None:
        """Accept mindspore's settings, which change nothing here."""

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Do the work; the program's class overrides it."""
        raise AttributeError(f"For 'Cell', the method 'construct' of {type(self)} is not defined.")

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error("mindspore.nn.Cell", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `construct`."""
        return self.construct(*args, **kwargs)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
