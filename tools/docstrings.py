"""Finds public functions of the Python core that raise and whose docstring does not say what.

A function counts if its body has a `raise` with an exception, outside of functions in it.

Usage: python tools/docstrings.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "halstream"

#: What is checked: the files and folders whose functions programs, dialects and tools call.
CHECKED = ("__init__.py", "testing.py", "_core", "_memory", "_kernel", "_native")

#: Files that are not checked, and why.
EXCEPT = {"_core/_context.py": "its functions are methods that only the dialect acl calls, which returns codes"}


def raises(function: ast.AST) -> bool:
    """Return True if the body of a function raises an exception of its own."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Raise) and child.exc is not None:
            return True
        nested = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
        if not nested and raises(child):
            return True
    return False


def functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the public functions of a module or a public class."""
    for child in ast.iter_child_nodes(node):
        name = getattr(child, "name", "")
        if isinstance(child, ast.FunctionDef) and not name.startswith("_"):
            yield child
        elif isinstance(child, (ast.If, ast.Try)) or (isinstance(child, ast.ClassDef) and not name.startswith("_")):
            yield from functions(child)


def problems(path: Path) -> list[str]:
    """Return what is wrong in one file, a line each."""
    return [
        f"{path.relative_to(ROOT)}:{function.lineno}: {function.name} raises, and its docstring has no Raises section"
        for function in functions(ast.parse(path.read_text(), str(path)))
        if raises(function) and "Raises\n" not in (ast.get_docstring(function) or "")
    ]


def check() -> list[str]:
    """Return what is wrong in the core, a line each."""
    found = []
    for name in CHECKED:
        path = PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if str(file.relative_to(PACKAGE)) not in EXCEPT:
                found += problems(file)
    return found


if __name__ == "__main__":
    wrong = check()
    print("\n".join(wrong) or "docstrings: clean")
    sys.exit(1 if wrong else 0)
