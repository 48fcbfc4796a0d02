"""`mindspore.nn` of 2.10: the class that functions of tensors are written in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from ..._dialects._not_built import attribute_error, not_built
from ..common.parameter import Parameter

__all__ = ["Cell"]


class Cell:
    """`mindspore.nn.Cell` of 2.10: calling it calls `construct`; its attributes hold parameters."""

    def __init__(self, auto_prefix: bool = True, flags: Any = None) -> None:
        """Accept mindspore's settings, which change nothing here."""

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Do the work; the program's class overrides it."""
        raise AttributeError(f"For 'Cell', the method 'construct' of {type(self)} is not defined.")

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """`mindspore.nn.Cell.get_parameters` of 2.10; with `expand` those of cells inside, too."""
        for value in vars(self).values():
            if isinstance(value, Parameter):
                yield value
            elif isinstance(value, Cell) and expand:
                yield from value.get_parameters()

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """`mindspore.nn.Cell.trainable_params` of 2.10."""
        return [value for value in self.get_parameters(recurse) if value.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """`mindspore.nn.Cell.parameters_dict` of 2.10."""
        return OrderedDict((value.name, value) for value in self.get_parameters(recurse))

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter) and value.name.startswith("Parameter#"):
            value.name = name
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error("mindspore.nn.Cell", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `construct`."""
        return self.construct(*args, **kwargs)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
