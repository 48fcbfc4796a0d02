"""The rules about waits that order nothing, or are missing: HS301 to HS303."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .resolve import Scope, assigned, own_nodes

__all__ = ["check"]

Found = tuple[ast.AST, str, str]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What makes a stream current in a ``with`` block.
_CONTEXTS = ("torch.cuda.stream", "torch.cuda.StreamContext", "paddle.device.stream_guard",
             "mindspore.hal.StreamCtx", "mindspore.runtime.StreamCtx")  # fmt: skip
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
    yield from _early_reads(nodes)


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
        inner = Scope(method, scope.outer)
        for node in own_nodes(method):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                bound.append(_path(node))
            for target, value in _pairs(node) if method.name == "__init__" else ():
                called = inner.value(value.func) if isinstance(value, ast.Call) else None
                if called is not None and called.name.endswith((".current_stream", ".default_stream")):
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


def _early_reads(nodes: list[ast.AST]) -> Iterator[Found]:
    """HS303: what a copy to the CPU that does not block brings is read before anything waits for it."""
    copies: dict[str, int] = {}
    for statement in nodes:
        if not isinstance(statement, ast.stmt):
            continue
        parts = list(_own_expressions(statement))
        for node in parts:
            if isinstance(node, ast.Call) and _may_wait(node, copies):
                copies.clear()
            elif line := _reads(node, copies):
                yield (
                    node,
                    "HS303",
                    f"the copy of line {line} does not block, and nothing in this function waits for it: synchronize "
                    "its stream or an event behind it before the CPU reads",
                )
                copies = {name: at for name, at in copies.items() if at != line}  # once for each copy
        for target, value in assigned(statement):
            copies.pop(target.id, None)
            if _is_copy(value):
                copies[target.id] = value.lineno


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, from the inside out, without those of statements in it."""
    order: list[ast.AST] = []
    waiting: list[ast.AST] = [one for one in ast.iter_child_nodes(statement) if not isinstance(one, ast.stmt)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.stmt, ast.Lambda)):
            continue
        order.append(node)
        waiting.extend(ast.iter_child_nodes(node))
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


def _may_wait(node: ast.Call, copies: dict[str, int]) -> bool:
    """Return whether a call may wait for a copy: it is called so, or reads something of a device."""
    name = _called(node)
    if any(part in name.lower() for part in _WAITS):
        return True
    if name in _WAIT_TOO and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return not (_path(owner) in copies or _is_copy(owner))
    return False


def _reads(node: ast.AST, copies: dict[str, int]) -> int:
    """Return the line of the copy that a node reads the result of, 0 if none."""
    read: list[ast.expr] = []
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
            read = [node.func.value]
        elif isinstance(node.func, ast.Name) and node.func.id in _READERS:
            read = list(node.args)
    elif isinstance(node, ast.BinOp):
        read = [node.left, node.right]
    elif isinstance(node, ast.Compare) and not any(isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops):
        read = [node.left, *node.comparators]
    for one in read:
        if isinstance(one, ast.Name) and one.id in copies:
            return copies[one.id]
        if _is_copy(one):
            return one.lineno
    return 0
