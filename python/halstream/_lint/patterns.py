"""The rules about waits and streams that are right in one package and wrong in another: HS201 to HS207."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .resolve import Scope, Value, assigned, own_nodes

__all__ = ["check"]

Found = tuple[ast.AST, str, str]

# Classes of events that are made without timing unless they are told to, and the argument that tells.
_UNTIMED = ("torch.cuda.Event", "torch.Event", "torch.cpu.Event", "paddle.device.Event", "paddle.device.cuda.Event",
            "mindspore.hal.Event", "mindspore.runtime.Event")  # fmt: skip
_ALLOCATE = frozenset(("empty", "zeros", "ones", "rand", "randn", "full", "arange", "tensor", "empty_like",
                       "zeros_like", "ones_like", "randn_like"))  # fmt: skip


def check(scope: Scope) -> Iterator[Found]:
    """Yield the patterns of a scope."""
    nodes = list(own_nodes(scope.node))
    yield from _forgotten_use(scope, nodes)
    yield from _named_contexts(scope, nodes)
    yield from _priorities(scope, nodes)
    yield from _unrecorded_memory(scope, nodes)
    yield from _untimed(scope, nodes)
    yield from _set_events(scope, nodes)
    yield from _flags(scope, nodes)


def _calls(scope: Scope, nodes: list[ast.AST]) -> Iterator[tuple[ast.Call, Value]]:
    for node in nodes:
        if isinstance(node, ast.Call):
            called = scope.value(node.func)
            if called is not None:
                yield node, called


def _forgotten_use(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS201: in cupy the end of a ``with`` restores what a ``with`` around it set, not what use() did."""
    used = [node for node, called in _calls(scope, nodes) if called.name.startswith("cupy.cuda.") and
            called.name.endswith("Stream.use")]  # fmt: skip
    if not used:
        return
    for node in nodes:
        if not isinstance(node, ast.With) or node.lineno <= used[0].lineno:
            continue
        for item in node.items:
            value = scope.value(item.context_expr)
            if (
                value is not None
                and value.kind == "object"
                and value.name.startswith("cupy.cuda.")
                and "Stream" in value.name
            ):
                yield (
                    node, "HS201",
                    f"cupy forgets the use() of line {used[0].lineno} when this block ends: the default stream is "
                    "current then. torch and the other packages restore it; put the code into a with block, too",
                )  # fmt: skip


def _named_contexts(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS202: mindspore's ``StreamCtx(s) as x`` makes x None."""
    for node in nodes:
        if (
            isinstance(node, ast.withitem)
            and node.optional_vars is not None
            and isinstance(node.context_expr, ast.Call)
        ):
            called = scope.value(node.context_expr.func)
            if called is not None and called.name in ("mindspore.hal.StreamCtx", "mindspore.runtime.StreamCtx"):
                yield (
                    node.context_expr,
                    "HS202",
                    f"{called.name}() binds None to the name behind 'as'; name the stream itself",
                )


def _priorities(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS203: paddle's priorities are 1 (high) and 2 (normal), those of CUDA 0 and below."""
    for node, called in _calls(scope, nodes):
        if called.kind != "class" or not called.name.endswith("Stream"):
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "priority"]
        number = _number(given[0]) if given else None
        if number is None:
            continue
        if called.dialect == "paddle" and number not in (1, 2):
            yield node, "HS203", f"paddle knows the priorities 1 (high) and 2 (normal), not {number}"
        elif called.dialect in ("torch", "cupy") and number > 0:
            yield (
                node,
                "HS203",
                (
                    f"in {called.dialect} a lower number is more urgent and 0 the least: {number} is clamped to 0. "
                    "1 for high is paddle's"
                ),
            )


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def _unrecorded_memory(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS204: torch reuses the memory of a tensor that is deleted while another stream still reads it."""
    made: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            called = node.value.func if isinstance(node.value, ast.Call) else None
            owner = scope.value(called.value) if isinstance(called, ast.Attribute) else None
            if owner == Value("module", "torch") and isinstance(called, ast.Attribute) and called.attr in _ALLOCATE:
                made[node.targets[0].id] = node.lineno
    if not made:
        return
    for block in nodes:
        if not isinstance(block, ast.With) or not _side_stream(scope, block):
            continue
        inside = {id(node) for node in ast.walk(block)}
        used = {node.id for node in ast.walk(block) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for node in nodes:
            if not isinstance(node, ast.Delete) or node.lineno < block.lineno:
                continue
            for target in node.targets:
                if (
                    not isinstance(target, ast.Name)
                    or target.id not in used
                    or made.get(target.id, 1 << 30) > block.lineno
                ):
                    continue
                if not _safe(nodes, target.id, block.lineno, node.lineno, inside):
                    yield (
                        node,
                        "HS204",
                        (
                            f"torch may give the memory of {target.id} out again at once, while the stream of line "
                            f"{block.lineno} still works on it: call {target.id}.record_stream(...) before, or wait"
                        ),
                    )


def _side_stream(scope: Scope, block: ast.With) -> bool:
    for item in block.items:
        if isinstance(item.context_expr, ast.Call):
            called = scope.value(item.context_expr.func)
            if called is not None and called.name in ("torch.cuda.stream", "torch.cuda.StreamContext"):
                return True
    return False


def _safe(nodes: list[ast.AST], name: str, begin: int, end: int, inside: set[int]) -> bool:
    """Return whether something between two lines makes a tensor's end safe."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and begin <= node.lineno <= end:
            owner = node.func.value
            if node.func.attr == "record_stream" and isinstance(owner, ast.Name) and owner.id == name:
                return True
            if node.func.attr in ("synchronize", "wait_stream", "wait_event") and id(node) not in inside:
                return True
    return False


def _untimed(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS205: cupy's events have timing unless told not to; those of the others only if they are told."""
    made: dict[str, tuple[int, bool]] = {}
    for node in nodes:
        for target, call in assigned(node) if isinstance(node, ast.Assign) else ():
            value = scope.value(call)
            if isinstance(call, ast.Call) and value is not None and value.kind == "object":
                made[target.id] = (target.lineno, _timed(call, value.name))
    for node in nodes:
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr != "elapsed_time"
        ):
            continue
        for one in (node.func.value, *node.args):
            if isinstance(one, ast.Name) and scope.lookup(one.id) is not None and not made.get(one.id, (0, True))[1]:
                cls = scope.lookup(one.id)
                yield (
                    node,
                    "HS205",
                    (
                        f"{one.id} of line {made[one.id][0]} has no timing: give {cls.name if cls else 'Event'}"
                        "(enable_timing=True). Only cupy's events have it by default"
                    ),
                )


def _timed(call: ast.Call, cls: str) -> bool:
    """Return whether an event certainly, or maybe, has timing."""
    if cls.startswith("cupy."):
        return not any(word.arg == "disable_timing" and _true(word.value) for word in call.keywords)
    if cls not in _UNTIMED:
        return True
    return bool(call.args) or any(word.arg is None or (word.arg == "enable_timing" and not _false(word.value))
                                  for word in call.keywords)  # fmt: skip


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _set_events(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS206: an event of create_event_with_flag stays set from its first record until reset_event."""
    settable = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = scope.value(node.value.func)
            target = node.targets[0]
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            if called == Value("function", "acl.rt.create_event_with_flag") and isinstance(first, ast.Name):
                settable.add(first.id)
    for loop in nodes:
        if not isinstance(loop, (ast.For, ast.While)) or not settable:
            continue
        seen: dict[str, dict[str, ast.Call]] = {}
        for node, called in _calls(scope, list(own_nodes(loop))):
            for argument in node.args:
                if isinstance(argument, ast.Name) and argument.id in settable:
                    seen.setdefault(argument.id, {})[called.name] = node
        for name, calls in seen.items():
            if {
                "acl.rt.record_event",
                "acl.rt.stream_wait_event",
            } <= calls.keys() and "acl.rt.reset_event" not in calls:
                yield (
                    calls["acl.rt.stream_wait_event"],
                    "HS206",
                    (
                        f"{name} stays set after its first record, so that nothing waits in later rounds: call "
                        "acl.rt.reset_event behind the wait. Events of CUDA, and of create_event, need none"
                    ),
                )


def _flags(scope: Scope, nodes: list[ast.AST]) -> Iterator[Found]:
    """HS207: True or False as the first argument of a stream, which is a device there."""
    for node, called in _calls(scope, nodes):
        if called.kind != "class" or not called.name.endswith("Stream") or called.dialect not in ("torch", "paddle"):
            continue
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, bool):
            text = f"the first argument of {called.name} is the device, and {first.value} stands for device"
            yield node, "HS207", f"{text} {int(first.value)}; cupy has null there"
