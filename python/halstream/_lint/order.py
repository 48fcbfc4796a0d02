"""The rules about waits that order nothing, or are missing: HS301 to HS303."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .resolve import Scope, assigned, own_nodes

__all__ = ["check"]

Found = tuple[ast.AST, str, str]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (ast.stmt, ast.ExceptHandler, ast.match_case)  #: what has statements of its own
#: What makes a stream current in a ``with`` block.
_CONTEXTS = ("torch.cuda.stream", "torch.cuda.StreamContext", "paddle.device.stream_guard",
             "mindspore.hal.StreamCtx", "mindspore.runtime.StreamCtx")  # fmt: skip
_ASKED = ("current_stream", "default_stream")
#: Methods of a tensor on the host that read it. Others, such as numpy() and view(), only give another name to it.
_READS = frozenset(("item", "tolist", "sum", "mean", "max", "min", "any", "all", "argmax", "argmin", "norm", "clone",
                    "float", "double", "int", "long", "bool"))  # fmt: skip
_READERS = frozenset(("float", "int", "bool", "list", "print", "str", "sum", "max", "min"))
#: A call with one of these in its name may wait for the copy; so do those that read something of the device.
_WAITS = ("sync", "wait", "query", "join", "result")
_WAIT_TOO = frozenset(("item", "tolist", "cpu", "nonzero"))


def check(scope: Scope) -> Iterator[Found]:
    """Yield the waits of a scope that order nothing, and the reads without a wait."""
    nodes = list(own_nodes(scope.node))
    yield from _own_waits(scope, nodes)
    if isinstance(scope.node, ast.ClassDef):
        yield from _cached(scope)
    yield from _early_reads(scope)


def _own_waits(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS301: a stream that waits for itself, also where it is the current one."""
    for node in nodes:
        pair = _wait_stream(node)
        if pair and _path(pair[0]) and _path(pair[0]) == _path(pair[1]):
            yield node, "HS301", f"{_path(pair[0])} waits for itself here, which orders nothing"
    for block in nodes:
        entered = _entered(scope, block) if isinstance(block, ast.With) else None
        if not isinstance(block, ast.With) or entered is None or not _path(entered):
            continue
        inside, name = list(_in_block(scope, block)), _path(entered)
        if any(_changes(node, name) for node in inside):
            continue
        for node in inside:
            pair = _wait_stream(node)
            for stream, other in (pair, pair[::-1]) if pair else ():
                if _path(stream) == name and _is_current(scope, other):
                    yield (
                        node,
                        "HS301",
                        f"inside the block of line {block.lineno} the current stream is {name} itself, so this orders "
                        "nothing: ask for the stream that it should wait for before the block",
                    )
                    break


def _wait_stream(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the stream that waits and the one that it waits for."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "wait_stream":
        given = [*node.args, *(word.value for word in node.keywords)]
        if len(given) == 1:
            return node.func.value, given[0]
    return None


def _path(node: ast.AST) -> str:
    """Return a name, or a name with attributes, as it is written, '' for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _called(node: ast.Call) -> str:
    """Return the name of a function or method, without that of its module or object."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else _path(node.func)


def _entered(scope: Scope, block: ast.With) -> ast.expr | None:
    """Return the stream that a block makes the current one."""
    for item in reversed(block.items):
        context = item.context_expr
        if isinstance(context, ast.Call) and len(context.args) == 1:
            called = scope.value(context.func)
            if called is not None and called.name in _CONTEXTS:
                return context.args[0]
    return None


def _in_block(scope: Scope, block: ast.With) -> Iterator[ast.AST]:
    """Yield the nodes of a block in which its stream is the current one."""
    waiting: list[ast.AST] = list(reversed(block.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.With) and _entered(scope, node) is not None:
            continue
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _changes(node: ast.AST, name: str) -> bool:
    """Return whether a node binds the name anew, or makes another stream current."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return name == _path(node) or name.startswith(f"{_path(node)}.")
    return isinstance(node, ast.Call) and "set_stream" in _called(node)


def _is_current(scope: Scope, node: ast.expr) -> bool:
    """Return whether an expression asks for the current stream, of no device in particular."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    called = scope.value(node.func)
    return called is not None and called.name.endswith(".current_stream")


def _cached(scope: Scope) -> Iterator[Found]:
    """HS302: a method waits for the stream that was current, or the default one, when the object was made."""
    assert isinstance(scope.node, ast.ClassDef)
    methods = [one for one in scope.node.body if isinstance(one, _FUNCTIONS)]
    made: dict[str, tuple[int, str]] = {}
    bound: list[str] = []
    for method in methods:
        for node in own_nodes(method):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                bound.append(_path(node))
            for target, value in _pairs(node) if method.name == "__init__" else ():
                if not isinstance(value, ast.Call) or _called(value) not in _ASKED:
                    continue
                called = Scope(method, scope.outer).value(value.func)
                if called is not None and called.name.rpartition(".")[2] in _ASKED:
                    made[_path(target)] = (target.lineno, called.name)
    for method in methods:
        for node in own_nodes(method) if method.name != "__init__" else ():
            pair = _wait_stream(node)
            name = _path(pair[1]) if pair else ""
            if name.startswith("self.") and name in made and bound.count(name) == 1:
                line, asked = made[name]
                yield (
                    node,
                    "HS302",
                    f"{name} is what {asked}() gave in line {line}, when the object was made; the work may be on "
                    "another stream by now: ask for the current stream here",
                )


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with their values, also of ``a, b = x, y``."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value


def _early_reads(scope: Scope) -> Iterator[Found]:
    """HS303: what a copy to the CPU that does not block brings is read before anything waits for it."""
    for statements in _sequences(scope.node):
        for number, statement in enumerate(statements):
            read = [(node, node.lineno) for node in _expressions(statement) if any(map(_is_copy, _read_by(node)))]
            for target, value in assigned(statement):
                if _is_copy(value) and (node := _first_read(statements[number + 1 :], target.id)) is not None:
                    read.append((node, value.lineno))
            for node, line in read:
                yield (
                    node,
                    "HS303",
                    f"the copy of line {line} does not block, and nothing in this function waits for it: synchronize "
                    "its stream or an event behind it before the CPU reads",
                )


def _sequences(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the statements of a scope in lists of which each runs behind the ones before it.

    A branch or a loop has lists of its own; what is in a ``with`` block stands in the list around it.
    """
    waiting = list(_bodies(scope))
    while waiting:
        found: list[ast.stmt] = []
        left = list(reversed(waiting.pop()))
        while left:
            statement = left.pop()
            found.append(statement)
            if isinstance(statement, (ast.With, ast.AsyncWith)):
                left.extend(reversed(statement.body))
            elif not isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
                waiting.extend(_bodies(statement))
        yield found


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that a node has."""
    for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(part, field, None)
            if isinstance(body, list) and body:
                yield body


def _first_read(statements: list[ast.stmt], name: str) -> ast.expr | None:
    """Return the first expression that reads a tensor by its name, None if a wait or another value may come first."""
    left = list(reversed(statements))
    while left:
        statement = left.pop()
        parts = list(_expressions(statement))
        for node in parts:
            if isinstance(node, ast.Call) and _may_wait(node, name):
                return None
            if any(isinstance(one, ast.Name) and one.id == name for one in _read_by(node)):
                return node
        if any(isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load) for one in parts):
            return None
        # What is in a with block comes anyway, and a function's body not here.
        if not isinstance(statement, (ast.With, ast.AsyncWith, *_FUNCTIONS, ast.ClassDef)):
            left.extend(one for body in reversed(list(_bodies(statement))) for one in reversed(body))
    return None


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement, from the inside out, without those of statements in it."""
    order: list[ast.expr] = []
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr):
            order.append(node)
        if not isinstance(node, (ast.Lambda, *_FUNCTIONS, ast.ClassDef)):
            waiting.extend(one for one in ast.iter_child_nodes(node) if not isinstance(one, _INNER))
    return reversed(order)


def _is_copy(node: ast.AST) -> bool:
    """Return whether a call is ``.to("cpu", non_blocking=True)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
        return False
    words = {word.arg: word.value for word in node.keywords}
    blocking, place = words.get("non_blocking"), words.get("device") or (node.args[0] if node.args else None)
    if isinstance(place, ast.Call) and _path(place.func) == "torch.device" and place.args:
        place = place.args[0]
    asynchronous = isinstance(blocking, ast.Constant) and blocking.value is True
    return asynchronous and isinstance(place, ast.Constant) and place.value == "cpu"


def _may_wait(node: ast.Call, name: str) -> bool:
    """Return whether a call may wait for a copy: it is called so, or reads something else of a device."""
    called = _called(node)
    if any(part in called.lower() for part in _WAITS):
        return True
    if called in _WAIT_TOO and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return _path(owner) != name and not _is_copy(owner)
    return False


def _read_by(node: ast.expr) -> list[ast.expr]:
    """Return the expressions whose values a node certainly reads, if they are tensors."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
            return [node.func.value]
        return list(node.args) if isinstance(node.func, ast.Name) and node.func.id in _READERS else []
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare) and not any(isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops):
        return [node.left, *node.comparators]
    return []
