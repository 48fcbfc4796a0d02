"""Nodes of graphs, as a program sees them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._errors import InvalidValueError
from .._records import NodeRecord
from .._sites import site_line
from . import _hostfunc

__all__ = ["Node", "index_of", "indices_of", "name_of", "nodes_of"]


@dataclass(frozen=True)
class Node:
    """An operation of a graph.

    Attributes
    ----------
    index : int
        Its number in the graph, from 0.
    kind : str
        ``'empty'``, ``'call'``, ``'native'``, ``'copy'``, ``'fill'``, ``'delay'``, ``'record'``, ``'wait'``,
        ``'kernel'``, ``'if'``, ``'while'``, ``'switch'``, ``'graph'``, ``'allocate'`` or ``'free'``.
    name : str
        Of the function, the native function or the kernel; ``''`` for others.
    function : callable or None
        Of a call.
    where : str
        The line of the program that made it, ``''`` if that is not known.
    """

    index: int
    kind: str
    name: str
    function: Any
    where: str


def name_of(function: Any, arguments: tuple[Any, ...] = ()) -> str:
    """Return what a program calls a function: for a partial its function's name, for other callables their type's.

    A function of this package that runs another one has an attribute that gives the
    name for the arguments of a call.
    """
    named = getattr(function, "_halstream_name", None)
    if named is not None and arguments:
        return str(named(*arguments))
    function = getattr(function, "func", function)
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def nodes_of(records: Iterable[NodeRecord]) -> list[Node]:
    """Return the nodes of records."""
    found = []
    for i, r in enumerate(records):
        function, name, c = None, r["name"], _hostfunc._c
        if r["token"] and c is not None:
            function = c.function_of(r["token"])
            name = name_of(function, c.arguments_of(r["token"]))
        found.append(Node(i, r["kind"], name, function, site_line(r["site"])))
    return found


def indices_of(after: Iterable[int]) -> str:
    """Return the indices of nodes as the extension reads them.

    Raises
    ------
    TypeError
        For what is no iterable of integers.
    InvalidValueError
        For an index that is there twice, or that no graph has.
    """
    if isinstance(after, (str, bytes)) or not isinstance(after, Iterable):
        raise TypeError(f"after takes indices of nodes, such as [0, 2], not {after!r}")
    numbers = [index_of(number) for number in after]
    for number in numbers:
        if numbers.count(number) > 1:
            raise InvalidValueError(f"after names node {number} twice")
    return str(numbers)


def index_of(number: int) -> int:
    """Return the index of a node as the extension can read it, which refuses those of no node.

    Raises
    ------
    TypeError
        For anything but an integer.
    InvalidValueError
        For one that no graph has.
    """
    if isinstance(number, bool):
        raise TypeError(f"{number} is not the index of a node; nodes are counted from 0")
    index = operator.index(number)
    if not -(1 << 31) <= index < 1 << 31:
        raise InvalidValueError(f"no graph has a node {index}; nodes are counted from 0")
    return index
