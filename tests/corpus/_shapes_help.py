"""What the programs in `shapes` share: how they are listed, and streams that are idle at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import halstream as hs

from ._host import rest


class Shape(NamedTuple):
    """A program that has both forms in one function.

    Attributes
    ----------
    name : str
        Of the function.
    dialect : str
        Whose words it is written in; ``core`` is halstream's own.
    kind : str
        Which shape it has.
    function : Callable[[bool], None]
        Runs the program; its argument says whether the order is complete.
    found : str
        What it takes: ``always`` one sanitized run is enough; ``strict`` the run has
        to be strict, because a function may touch memory that is not known;
        ``schedules`` some orders of the device show it, and no check does: the host
        touches pinned memory without a declaration, goes on after queries that said
        no, or the operations are nodes of one launch; ``threads`` some turns of the
        host's threads do; ``stall`` it would never end.
    schedule : bool
        False if no order of the device lets the program fail.
    """

    name: str
    dialect: str
    kind: str
    function: Callable[[bool], None]
    found: str = "always"
    schedule: bool = True

    def broken(self) -> None:
        """Run the program with a part of the order missing."""
        self.function(False)

    def fixed(self) -> None:
        """Run its twin."""
        self.function(True)


Program = Callable[[bool], None]


class Shapes(list[Shape]):
    """The programs of a module, in the order of their definition."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def add(self, dialect: str, **options: Any) -> Callable[[Program], Program]:
        """Return a decorator that lists a program."""

        def listed(function: Program) -> Program:
            self.append(Shape(function.__name__, dialect, self.kind, function, **options))
            return function

        return listed


def plain() -> hs.Stream:
    """Return a stream without order with the default stream."""
    return hs.Stream(non_blocking=True)


@contextlib.contextmanager
def streams(make: Callable[[], Any] = plain, count: int = 2) -> Iterator[list[Any]]:
    """Give streams, which are idle when the block ends."""
    made = [make() for _ in range(count)]
    try:
        yield made
    finally:
        rest(*made)
