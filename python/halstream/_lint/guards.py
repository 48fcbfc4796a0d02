"""Where a program says itself that a name or an argument may be absent."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

__all__ = ["Guards"]

# What is raised where a name or an argument is absent, and the classes of these.
_ABSENT = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"})
_ANY = frozenset({"Exception", "BaseException"})


class Guards:
    """The places of a file that run only where their names exist, and the names that it asks for or sets itself."""

    def __init__(self, tree: ast.Module) -> None:
        self._tried: set[int] = set()
        self._known: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Try) and any(_catches(one.type, len(node.body) == 1) for one in node.handlers):
                self._skip(node.body)
            elif isinstance(node, (ast.If, ast.IfExp)) and _asks_version(node.test):
                self._skip([*_listed(node.body), *_listed(node.orelse)])
            elif isinstance(node, ast.Call):
                self._known.update(_asked(node))
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self._known.add(node.attr)
            elif isinstance(node, ast.Import):
                self._known.update(part for alias in node.names for part in alias.name.split(".")[1:])

    def _skip(self, nodes: Sequence[ast.AST]) -> None:
        self._tried.update(id(inner) for node in nodes for inner in ast.walk(node))

    def tried(self, node: ast.AST) -> bool:
        """Return whether the program goes on where what a node names is absent."""
        return id(node) in self._tried

    def known(self, name: str) -> bool:
        """Return whether the program asks whether there is such a name, imports it as a module or sets it."""
        return name in self._known


def _listed(body: list[ast.stmt] | ast.expr) -> list[ast.AST]:
    return list(body) if isinstance(body, list) else [body]


def _catches(raised: ast.expr | None, alone: bool) -> bool:
    """Return whether a handler is for names that are absent.

    One for any exception is, where it is about a single statement: behind more of them it is for other reasons.
    """
    if raised is None:
        return alone
    names = {name.id for name in ast.walk(raised) if isinstance(name, ast.Name)}
    return bool(names & _ABSENT) or (alone and bool(names & _ANY))


def _asks_version(test: ast.expr) -> bool:
    """Return whether a condition is about a version."""
    for node in ast.walk(test):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if "version" in name.lower():
            return True
    return False


def _asked(call: ast.Call) -> Iterator[str]:
    """Yield the name that ``hasattr``, ``getattr`` or ``setattr`` is given."""
    if isinstance(call.func, ast.Name) and call.func.id in ("hasattr", "getattr", "setattr") and len(call.args) > 1:
        name = call.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value
