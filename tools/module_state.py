"""Finds mutable containers at module or class level outside the Runtime object of the Python package.

State that outlives a call is registered with `runtime.add`, so that one place resets it
(`python/halstream/_core/_runtime.py`). A table in capitals that nothing changes is no state.

Usage: python tools/module_state.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "halstream"

CONTAINERS = {
    "bytearray", "defaultdict", "deque", "dict", "list", "set", "Counter", "OrderedDict",
    "WeakKeyDictionary", "WeakSet", "WeakValueDictionary",
}  # fmt: skip
CHANGES = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft",
    "remove", "setdefault", "update",
}  # fmt: skip


def container(value: ast.expr | None) -> bool:
    """Return True if an expression makes a container that can be changed."""
    if isinstance(value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
        return True
    if isinstance(value, ast.Call):
        function = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in CONTAINERS
    return False


def assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr | None, int]]:
    """Return name, value and line of each assignment of a module's or a class's body, also below `if`."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value, statement.lineno
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, statement.value, statement.lineno
        elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
            yield from assigned(statement.body)
            yield from assigned(getattr(statement, "orelse", []))
        elif isinstance(statement, ast.ClassDef):
            yield from assigned(statement.body)


def changed(tree: ast.Module) -> set[str]:
    """Return the names whose container the module changes, by a method, a subscript or `del`."""
    names = set()
    for node in ast.walk(tree):
        where: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            where = node.func.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            where = node.value
        if isinstance(where, ast.Name):
            names.add(where.id)
        elif isinstance(where, ast.Attribute) and isinstance(where.value, ast.Name):
            names |= {where.attr} if where.value.id in ("cls", "self") else set()
    return names


def problems(path: Path) -> list[str]:
    """Return what is wrong in one file, a line each."""
    tree = ast.parse(path.read_text(), str(path))
    mutated = changed(tree)
    found = []
    for name, value, line in assigned(tree.body):
        if name == "__all__" or name == "__slots__" or not container(value):
            continue
        constant = name.lstrip("_").isupper()
        if not constant or name in mutated:
            found.append(
                f"{path.relative_to(ROOT)}:{line}: {name} is a container outside the Runtime object; register it "
                "with runtime.add, or write a table that never changes in capitals"
            )
    return found


def check() -> list[str]:
    """Return what is wrong in the package, a line each."""
    return [text for path in sorted(PACKAGE.rglob("*.py")) for text in problems(path)]


if __name__ == "__main__":
    wrong = check()
    print("\n".join(wrong) or "module state: clean")
    sys.exit(1 if wrong else 0)
