"""The rules about names and arguments: HS101, HS102 and HS103."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from . import data
from .guards import Guards
from .resolve import Scope, Value, own_nodes

__all__ = ["check"]

Found = tuple[ast.AST, str, str]


def check(scope: Scope, guards: Guards) -> Iterator[Found]:
    """Yield what of a scope's names and calls the mirrored packages do not have."""
    for node in own_nodes(scope.node):
        if guards.tried(node):
            continue
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _imported(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if not guards.known(node.attr):
                yield from _attribute(scope, node)
        elif isinstance(node, ast.Call):
            yield from _call(scope, node)


def _imported(node: ast.ImportFrom) -> Iterator[Found]:
    module = (node.module or "").removeprefix("halstream.")
    if module.partition(".")[0] not in data.DIALECTS:
        return
    for alias in node.names:
        if alias.name != "*" and _lacks(module, alias.name):
            yield node, "HS101", _no_name(module, alias.name)


def _lacks(module: str, name: str) -> bool:
    """Return whether it is certain that a module has no such name."""
    if name.startswith("_") or data.also(module, name):
        return False
    return data.kind(module, name) == "" and not data.has(f"{module}.{name}")


def _no_name(module: str, name: str) -> str:
    listed = frozenset(data.names_of(module))
    near = data.similar(name, listed)
    hint = f"; it has {near}" if near else ""
    return f"{module} has no {name} in {data.source(module.partition('.')[0])}{hint}"


def _attribute(scope: Scope, node: ast.Attribute) -> Iterator[Found]:
    base = scope.value(node.value)
    if base is None or node.attr.startswith("_"):
        return
    if base.kind == "module" and base.name:
        if _lacks(base.name, node.attr):
            yield node, "HS101", _no_name(base.name, node.attr)
    elif base.kind == "object":
        known = data.members(base.name)
        if known and node.attr not in known:
            near = data.similar(node.attr, known)
            hint = f"; it has {near}" if near else ""
            yield node, "HS102", f"{base.name} has no {node.attr} in {data.source(base.dialect)}{hint}"


def _call(scope: Scope, node: ast.Call) -> Iterator[Found]:
    called = scope.value(node.func)
    if called is None or called.kind not in ("class", "function", "method"):
        return
    known = data.parameters(called.name)
    if known is None or _unbound(scope, node, called):
        return
    named = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
    takes = f"{called.name}({known.text}) of {data.source(called.dialect)}"
    for name in named:
        if name not in known.named and not known.more_named:
            near = data.similar(name, known.named)
            hint = f"; did you mean {near}?" if near else ""
            yield node, "HS103", f"{takes} takes no {name}{hint}"
    if any(isinstance(argument, ast.Starred) for argument in node.args) or len(named) < len(node.keywords):
        return  # how many there are is not known
    if len(node.args) > len(known.positional) and not known.more_positional:
        yield node, "HS103", f"{takes} takes {len(known.positional)} argument(s) by position, not {len(node.args)}"
        return
    given = {*known.positional[: len(node.args)], *named}
    missing = sorted(known.required - given)
    if missing:
        yield node, "HS103", f"{takes} needs {', '.join(missing)}"


def _unbound(scope: Scope, node: ast.Call, called: Value) -> bool:
    """Return whether a method is called on its class, with the object among the arguments."""
    if called.kind != "method" or not isinstance(node.func, ast.Attribute):
        return False
    owner = scope.value(node.func.value)
    return owner is not None and owner.kind == "class"
