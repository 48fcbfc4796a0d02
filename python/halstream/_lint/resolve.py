"""What the names of a program stand for, as far as one look at its source tells.

A name counts only if everything that a scope binds to it is the same; else it is
unknown, and nothing is said about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from . import data

__all__ = ["Scope", "Value", "assigned", "own_nodes", "scopes"]

_PREFIX = __name__.partition(".")[0] + "."


class Value(NamedTuple):
    """What an expression stands for."""

    kind: str  #: module, class, function, method, object or super
    name: str  #: qualified; of an object that of its class

    @property
    def dialect(self) -> str:
        """The package it belongs to."""
        return self.name.partition(".")[0]


# The classes of the objects that functions and methods return.
_RESULTS = {
    "torch.cuda.current_stream": "torch.cuda.Stream",
    "torch.cuda.default_stream": "torch.cuda.Stream",
    "torch.cuda.Stream.record_event": "torch.cuda.Event",
    "paddle.device.current_stream": "paddle.device.Stream",
    "paddle.device.Stream.record_event": "paddle.device.Event",
    "mindspore.hal.current_stream": "mindspore.hal.Stream",
    "mindspore.hal.default_stream": "mindspore.hal.Stream",
    "mindspore.runtime.current_stream": "mindspore.runtime.Stream",
    "mindspore.runtime.default_stream": "mindspore.runtime.Stream",
    "cupy.cuda.get_current_stream": "cupy.cuda.Stream",
    "cupy.cuda.Stream.record": "cupy.cuda.Event",
}


def _module(name: str) -> str:
    """Return the mirrored module that an imported one is, '' for others."""
    name = name.removeprefix(_PREFIX)
    return name if name.partition(".")[0] in data.DIALECTS else ""


class Scope:
    """A module or a function, with what its names stand for."""

    def __init__(self, node: ast.AST, outer: Scope | None = None) -> None:
        self.node = node
        self.outer = outer
        self._bound: dict[str, list[Value | None]] = {}
        self._bind()

    def _add(self, name: str, value: Value | None) -> None:
        self._bound.setdefault(name, []).append(value)

    def _bind(self) -> None:
        arguments = getattr(self.node, "args", None)
        if isinstance(arguments, ast.arguments):
            for one in [
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ]:
                if one is not None:
                    self._add(one.arg, None)
        for node in own_nodes(self.node):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._import(alias)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    base = _module(node.module)
                    if not base and node.module == _PREFIX[:-1]:
                        base = _module(alias.name)
                        self._add(alias.asname or alias.name, Value("module", base) if base else None)
                    else:
                        self._add(alias.asname or alias.name, _member(base, alias.name) if base else None)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                if id(node) not in self._assigned():
                    self._add(node.id, None)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._add(node.name, None)
            elif name := _other_binding(node):
                self._add(name, None)
        for name in _set_inside(self.node):
            self._add(name, None)
        for node in own_nodes(self.node):  # in the order of the lines: what they use is bound before
            for target, value in assigned(node):
                self._add(target.id, self.value(value))
            if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
                entered = self.value(node.context_expr)
                own = entered is not None and entered.kind == "object" and entered.name.endswith("Stream")
                self._add(node.optional_vars.id, entered if own else None)

    def _assigned(self) -> set[int]:
        found: set[int] = getattr(self, "_targets", set())
        if not found:
            for node in own_nodes(self.node):
                found.update(id(target) for target, _ in assigned(node))
                if isinstance(node, ast.withitem) and node.optional_vars is not None:
                    found.add(id(node.optional_vars))
            self._targets = found
        return found

    def _import(self, alias: ast.alias) -> None:
        module = _module(alias.name)
        if not module:
            if not alias.name.startswith(_PREFIX):
                self._add((alias.asname or alias.name).partition(".")[0], None)
        elif alias.asname:
            self._add(alias.asname, Value("module", module))
        elif alias.name.startswith(_PREFIX):
            self._add(_PREFIX[:-1], Value("module", ""))
        else:
            self._add(module.partition(".")[0], Value("module", module.partition(".")[0]))

    def lookup(self, name: str) -> Value | None:
        """Return what a name stands for, None if that is not certain."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._bound:
                found = set(scope._bound[name])
                return found.pop() if len(found) == 1 else None
            scope = scope.outer
        return None

    def value(self, node: ast.AST) -> Value | None:
        """Return what an expression stands for, None if that is not certain."""
        # From the name outwards, in a loop: chains of calls are longer than Python's recursion may be deep.
        chain: list[ast.Attribute | ast.Call] = []
        while isinstance(node, (ast.Attribute, ast.Call)):
            chain.append(node)
            node = node.value if isinstance(node, ast.Attribute) else node.func
        value = self.lookup(node.id) if isinstance(node, ast.Name) else None
        while chain and value is not None:
            one = chain.pop()
            value = _attribute(value, one.attr) if isinstance(one, ast.Attribute) else _result(value)
        return value


def _attribute(base: Value, name: str) -> Value | None:
    if base.kind == "module":
        if not base.name:  # halstream itself
            return Value("module", name) if name in data.DIALECTS else None
        return _member(base.name, name)
    return Value("method", f"{base.name}.{name}") if base.kind in ("object", "class") else None


def _result(called: Value) -> Value | None:
    """Return what a call gives."""
    if called.kind == "class":
        return Value("object", called.name)
    given = _RESULTS.get(called.name)
    return Value("object", given) if given else None


def _member(module: str, name: str) -> Value | None:
    kind = data.kind(module, name)
    qualified = f"{module}.{name}"
    if kind == "modules" or (data.has(qualified) and data.kind(module, name) in ("modules", "", None)):
        return Value("module", qualified)
    if kind == "classes":
        return Value("class", qualified)
    if kind == "functions":
        return Value("function", qualified)
    return None


def _other_binding(node: ast.AST) -> str:
    """Return the name that an ``except`` or a pattern binds, '' if none."""
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return node.name or ""
    return (node.rest or "") if isinstance(node, ast.MatchMapping) else ""


def _set_inside(scope: ast.AST) -> Iterator[str]:
    """Yield the names of a scope that functions in it may set, by ``global`` or ``nonlocal``."""
    wanted = (ast.Global, ast.Nonlocal) if isinstance(scope, ast.Module) else ast.Nonlocal
    for node in ast.walk(scope):
        if isinstance(node, wanted):
            yield from node.names


def assigned(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Yield the names that an assignment binds to one expression each, also as ``a, b = x, y``."""
    if isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target, node.value
        return
    if not isinstance(node, ast.Assign):
        return
    if len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, given in zip(target.elts, value.elts, strict=True):
            if isinstance(one, ast.Name):
                yield one, given


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in the order of the source, without those of functions and classes in it."""
    # In a loop, as long sums and chains of elif are nested deeper than Python's recursion may be.
    waiting = [ast.iter_child_nodes(scope)]
    while waiting:
        for child in waiting[-1]:
            yield child
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                waiting.append(ast.iter_child_nodes(child))
                break
        else:
            waiting.pop()


def scopes(tree: ast.Module) -> Iterator[Scope]:
    """Yield the module and all functions and class bodies in it, each after what it is in."""
    waiting: list[tuple[ast.AST, Scope | None]] = [(tree, None)]
    while waiting:
        node, outer = waiting.pop(0)
        scope = Scope(node, outer)
        yield scope
        # Functions do not see the names of a class that they are in.
        around = outer if isinstance(node, ast.ClassDef) else scope
        for child in own_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                waiting.append((child, around))
