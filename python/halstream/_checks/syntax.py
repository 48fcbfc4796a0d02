"""Questions about pieces of Python syntax that the names in reports are read from."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Sequence

__all__ = [
    "FUNCTIONS", "MAKERS", "body_of", "bound", "calls_by_line", "covers", "expression_of_stream", "one_object_each",
    "stream_names", "tail",
]  # fmt: skip

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Functions that return a stream.
MAKERS = frozenset(
    {"Stream", "ExternalStream", "create_stream", "create_stream_with_config", "current_stream", "default_stream"}
)
#: Methods of arrays that take a stream, and its place among their arguments.
_ARRAY_METHODS = {"copy_from": 1, "copy_to": 1, "fill": 1, "numpy": 0}
#: Functions of AscendCL that are methods in other dialects, and the place of the stream among their arguments.
_IN_ASCENDCL = {"launch_host_func": 0}


def expression_of_stream(call: ast.Call) -> ast.expr | None:
    """Return the argument of a call that is its stream by its place, None if the call is not one of those."""
    name = tail(call.func)
    if not isinstance(call.func, ast.Attribute):
        return None
    places = _IN_ASCENDCL if tail(call.func.value) == "rt" else _ARRAY_METHODS
    place = places.get(name, len(call.args))
    if place >= len(call.args) or isinstance(call.args[place], (ast.Constant, ast.Starred, ast.IfExp)):
        return None
    return call.args[place]


def body_of(owner: ast.Module | ast.stmt) -> list[ast.stmt]:
    """Return the statements directly in a module or in another statement, in the order of the source."""
    body = [one for one in ast.iter_child_nodes(owner) if isinstance(one, ast.stmt)]
    for handler in getattr(owner, "handlers", []):
        body += handler.body
    for case in getattr(owner, "cases", []):
        body += case.body
    return sorted(body, key=lambda one: one.lineno)


def calls_by_line(tree: ast.Module) -> Counter[int]:
    """Return how many calls there are in each line, those that go on in it included."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return Counter(line for call in calls for line in range(call.lineno, (call.end_lineno or call.lineno) + 1))


def covers(node: ast.stmt, line: int, column: int) -> bool:
    """Return whether a place, its line from 1 and its column from 0, is in a statement."""
    end = (node.end_lineno or node.lineno), node.end_col_offset or 0
    return (node.lineno, node.col_offset) <= (line, column) < end


def bound(scope: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements bind, not those of functions in them."""
    found: set[str] = set()
    left: list[ast.AST] = list(scope)
    outer = True
    while left:
        node = left.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
            if not (outer and len(scope) == 1):
                continue
        outer = False
        left.extend(ast.iter_child_nodes(node))
    return found


def one_object_each(value: ast.expr) -> bool:
    """Return False for a list or comprehension whose elements are not one call each."""
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return isinstance(value.elt, ast.Call)
    if isinstance(value, (ast.List, ast.Tuple)):
        return not any(isinstance(e, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)) for e in value.elts)
    return True


def tail(node: ast.AST) -> str:
    """Return the last name of a dotted one."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@functools.lru_cache(maxsize=64)
def stream_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a file gives to streams it makes."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            made = any(isinstance(n, ast.Call) and tail(n.func) in MAKERS for n in ast.walk(value))
            if made:
                targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                found.update(filter(None, (tail(t) for t in targets)))
    return frozenset(found)
