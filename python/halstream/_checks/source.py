"""Names of streams, events and buffers in reports, read from the source line of a program.

Nothing here is certain: a report that finds no name says ``stream 3``.
"""

from __future__ import annotations

import ast
import bisect
import functools
import linecache
import re
from collections import Counter
from collections.abc import Sequence

from .._native._constants import OP_RECORD, OP_WAIT, OP_WAIT_STREAM
from .syntax import (
    FUNCTIONS,
    MAKERS,
    body_of,
    bound,
    calls_by_line,
    covers,
    expression_of_stream,
    one_object_each,
    stream_names,
    tail,
)

__all__ = ["Statement", "calls_several", "dialects", "source_line", "statement"]

#: Functions that take the function to be run as their first argument.
_TAKES_FUNCTION = {
    "call", "call_checked", "call_native", "launch", "launch_host_func", "add_callback", "launch_callback",
}  # fmt: skip
#: Methods of streams, in all dialects; their receiver is the stream.
_METHODS = {
    *(_TAKES_FUNCTION - {"launch_callback"}),
    "nop", "delay", "record", "record_event", "wait", "wait_event", "wait_stream", "synchronize", "sync", "query",
}  # fmt: skip
#: The calls that enqueue operations of which a line may have several kinds.
_CALLS_OF = {
    OP_RECORD: ("record", "record_event"),
    OP_WAIT: ("wait", "wait_event", "stream_wait_event"),
    OP_WAIT_STREAM: ("wait_stream",),
}
#: Calls that make a context in which their argument is the current stream.
_CONTEXTS = {"stream", "StreamContext", "StreamCtx", "stream_guard"}
#: Attributes under which streams give out their handles.
_HANDLES = {"ptr", "handle", "cuda_stream", "stream_base"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOKS = re.compile(r"^s\d*$|stream", re.IGNORECASE)
_DIALECTS = ("torch", "paddle", "mindspore", "cupy", "cuda", "acl")


def source_line(file: str, line: int) -> str:
    """Return a line of a file without its indentation, '' if it cannot be had."""
    return linecache.getline(file, line).strip()


class _File:
    """The syntax of a file, with what reports ask for again and again."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines  #: those of `linecache`, which makes another list where the file has changed
        self.tree = _parse("".join(lines))
        self._bodies: dict[int, tuple[list[int], list[ast.stmt]]] = {}
        self._statements: dict[tuple[int, int], Statement | None] = {}
        self._bound: dict[int, set[str]] = {}

    @functools.cached_property
    def dialects(self) -> frozenset[str]:
        """The dialects of halstream that the file imports."""
        found: set[str] = set()
        for node in ast.walk(self.tree) if self.tree else ():
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                package, _, rest = name.partition(".")
                first = rest.split(".")[0].removesuffix("x")  # cupyx is cupy's
                if package == "halstream" and first in _DIALECTS:
                    found.add(first)
        return frozenset(found)

    @functools.cached_property
    def modules(self) -> dict[str, str]:
        """What the file calls the modules that it imports, the first name of each."""
        imports = [node for node in ast.walk(self.tree) if isinstance(node, ast.Import)] if self.tree else []
        return {alias.name: alias.asname or alias.name for node in reversed(imports) for alias in reversed(node.names)}

    @functools.cached_property
    def imported(self) -> dict[str, str]:
        """What the file calls what it imports of halstream, by the full names."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree) if self.tree else ():
            if isinstance(node, ast.Import):
                found.update({alias.name: alias.asname or alias.name for alias in node.names})
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halstream"):
                found.update({f"{node.module}.{alias.name}": alias.asname or alias.name for alias in node.names})
        return found

    @functools.cached_property
    def calls(self) -> Counter[int]:
        """How many calls there are in each line."""
        return calls_by_line(self.tree) if self.tree else Counter()

    def statement(self, line: int, column: int = -1) -> Statement | None:
        """Return the innermost statement at a line, None if there is none, or more than one without a column."""
        if (line, column) not in self._statements:
            self._statements[line, column] = self._innermost(line, column) if self.tree else None
        return self._statements[line, column]

    def _innermost(self, line: int, column: int) -> Statement | None:
        assert self.tree is not None
        path: list[ast.stmt] = []
        shares = False
        owner: ast.Module | ast.stmt = self.tree
        while True:
            there = self._at(owner, line)
            shares = shares or len(there) > 1
            if column >= 0:
                there = [one for one in there if covers(one, line, column)]
            if len(there) > 1:
                return None  # several on one line: which of them is not known
            if not there:
                return Statement(self, path, line, shares) if path else None
            owner = there[0]
            path.append(owner)

    def _at(self, owner: ast.Module | ast.stmt, line: int) -> list[ast.stmt]:
        """Return the statements directly in another one that cover a line."""
        if id(owner) not in self._bodies:
            body = body_of(owner)
            self._bodies[id(owner)] = [one.lineno for one in body], body
        starts, body = self._bodies[id(owner)]
        found = []
        for place in range(bisect.bisect_right(starts, line) - 1, -1, -1):
            if line > (body[place].end_lineno or body[place].lineno):
                break  # those before end before it
            found.append(body[place])
        return found

    def bound(self, scope: ast.Module | ast.stmt) -> set[str]:
        """Return the names that are bound in the module or in a function."""
        if id(scope) not in self._bound:
            self._bound[id(scope)] = bound(scope.body if isinstance(scope, ast.Module) else [scope])
        return self._bound[id(scope)]


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=64)
def _file_of(file: str) -> list[_File]:
    """Return the place of what is known of a file."""
    return []


def _file(file: str) -> _File | None:
    """Return a file's syntax, None if its source cannot be had."""
    lines = linecache.getlines(file)
    if not lines:
        return None
    place = _file_of(file)
    if not place or place[0].lines is not lines:
        place[:] = [_File(lines)]
    return place[0]


def dialects(file: str) -> frozenset[str]:
    """Return the dialects of halstream that a file imports."""
    found = _file(file)
    return found.dialects if found else frozenset()


def statement(file: str, line: int, column: int = -1) -> Statement | None:
    """Return the innermost statement at a line of a file, None if its source cannot be had.

    Without a column, counted from 0 in bytes, there is none where a line has several.
    """
    found = _file(file)
    return found.statement(line, column) if found else None


def calls_several(file: str, line: int) -> bool:
    """Return whether a line of a file has more than one call, of one statement or of several."""
    found = _file(file)
    return found is not None and found.calls[line] > 1


class Statement:
    """The innermost statement at a line, and what can be read off it."""

    def __init__(self, file: _File, path: list[ast.stmt], line: int, shares: bool = False) -> None:
        assert file.tree is not None
        self._file = file
        self._tree = file.tree
        self.path = path  #: the statement, behind those that it is in
        self._shares = shares
        self._line = line
        self._streams: dict[str, str] = {}

    @functools.cached_property
    def extent(self) -> tuple[int, int, bool]:
        """The first and last line of the statement without its body; whether nothing stands before it on the first."""
        here, body = self.path[-1], body_of(self.path[-1])
        last = max(here.lineno, body[0].lineno - 1) if body else here.end_lineno or here.lineno
        before = self._file.lines[here.lineno - 1].encode()[: here.col_offset]  # an `else:`, or another statement
        return here.lineno, last, not before.strip()

    @property
    def is_elif(self) -> bool:
        """Whether the statement is the ``elif`` of another one, in front of which no line can go."""
        here = self.path[-1]
        return isinstance(here, ast.If) and self._file.lines[here.lineno - 1][here.col_offset :].startswith("elif")

    @functools.cached_property
    def chosen_inside(self) -> frozenset[str]:
        """The names that comprehensions and ``:=`` bind in the statement: they mean nothing outside of it."""
        found: set[str] = set()
        for part in ast.walk(self.path[-1]) if not body_of(self.path[-1]) else ():
            targets = [one.target for one in part.generators] if isinstance(part, _COMPREHENSIONS) else []
            found.update(node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name))
        return frozenset(found)

    @property
    def shares_lines(self) -> bool:
        """Whether another statement is on the lines of this one, so that a line fits neither before nor behind it."""
        return self._shares or not self.extent[2]

    @property
    def columns(self) -> tuple[int, int]:
        """Where the statement begins on its first line, and ends on its last one: columns as text has them."""
        here, lines = self.path[-1], self._file.lines
        last = (here.end_lineno or here.lineno) - 1
        begin = len(lines[here.lineno - 1].encode()[: here.col_offset].decode())
        return begin, len(lines[last].encode()[: here.end_col_offset].decode())

    @property
    def text(self) -> str:
        """The statement in one line."""
        return ast.unparse(self.path[-1]).partition("\n")[0]

    def covers(self, line: int, column: int) -> bool:
        """Return whether a place is in the statement."""
        return covers(self.path[-1], line, column)

    def stream(self, kind: str = "") -> str:
        """Return the expression for the stream that the line enqueues on, '' if unknown.

        `kind` is that of the operation: a line may record an event on one stream and let
        another one wait for it.
        """
        if kind not in self._streams:  # asked for again and again, for each finding there
            self._streams[kind] = self._stream(kind)
        return self._streams[kind]

    def _stream(self, kind: str) -> str:
        calls = self._calls
        for call in [c for c in calls if tail(c.func) in _CALLS_OF.get(kind, ())] or calls:
            for keyword in call.keywords:
                if keyword.arg == "stream" and not isinstance(keyword.value, ast.Constant):
                    return ast.unparse(self._behind(keyword.value))
            if (by_place := expression_of_stream(call)) is not None:
                return ast.unparse(self._behind(by_place))
            if tail(call.func) in _METHODS and isinstance(call.func, ast.Attribute):
                receiver = ast.unparse(call.func.value)
                if not (tail(call.func) == "launch" and call.args and self._is_stream(call.args[0])):
                    return receiver
            for value in map(self._behind, reversed(call.args)):
                if isinstance(value, ast.IfExp) and (self._is_stream(value.body) or self._is_stream(value.orelse)):
                    return ""  # one of two
                if self._is_stream(value):
                    return ast.unparse(value)
        return self.current()

    def function(self) -> str:
        """Return the name of the function that the line gives to a stream, '' if unknown."""
        for call in self._calls:
            if tail(call.func) in _TAKES_FUNCTION and call.args:
                first = call.args[1 if expression_of_stream(call) is call.args[0] and call.args[1:] else 0]
                return "<lambda>" if isinstance(first, ast.Lambda) else ast.unparse(first)
        return ""

    def event(self) -> str:
        """Return the expression for the event that the line records, '' if unknown."""
        for call in self._calls:
            name = tail(call.func)
            if name in ("record", "record_event") and isinstance(call.func, ast.Attribute):
                if call.args and not self._is_stream(call.args[0]):
                    return ast.unparse(call.args[0])
                target = self.target(1, 0)
                if target:
                    return target
                if not self._is_stream(call.func.value):
                    return ast.unparse(call.func.value)
        return ""

    def knows(self, name: str) -> bool:
        """Return whether a name is bound where the line is: in its functions or in the module."""
        functions = (node for node in self.path if isinstance(node, FUNCTIONS))
        return any(name in self._file.bound(scope) for scope in (self._tree, *functions))

    def scope(self, name: str) -> tuple[str, int] | None:
        """Return the function that binds a name for the line, by its name and line, or ("", 0) for the module."""
        for node in reversed(self.path):
            if isinstance(node, FUNCTIONS) and name in self._file.bound(node):
                return node.name, node.lineno
        return ("", 0) if name in self._file.bound(self._tree) else None

    @property
    def function_scope(self) -> tuple[str, int] | None:
        """The innermost function that the line is in, None outside of all."""
        return next(((node.name, node.lineno) for node in reversed(self.path) if isinstance(node, FUNCTIONS)), None)

    def keeps(self, name: str, line: int) -> bool:
        """Return whether a variable that has its value here, in a loop that binds it, still has it at another line."""
        loops = (node for node in self.path if isinstance(node, (ast.For, ast.AsyncFor, ast.While)))
        return all(self._line <= line <= (loop.end_lineno or line) for loop in loops if name in self._file.bound(loop))

    def package(self, dialect: str, name: str) -> str:
        """Return what the file calls a module of a dialect, '' if it imports it in no way."""
        imported = self._file.imported
        module, package = f"halstream.{dialect}.{name}", f"halstream.{dialect}"
        return imported.get(module) or (f"{imported[package]}.{name}" if package in imported else "")

    def module(self, name: str) -> str:
        """Return what the file calls a module that it imports under another name, else its name."""
        return self._file.modules.get(name, name)

    def target(self, count: int, place: int) -> str:
        """Return the name that the line gives to the object it makes, '' if unknown.

        Of `count` objects made there it is the one with index `place`, -1 if
        that is not known.
        """
        here = self.path[-1]
        if isinstance(here, ast.Assign) and len(here.targets) == 1:
            target, value = here.targets[0], here.value
        elif isinstance(here, (ast.AnnAssign, ast.AugAssign)) and here.value is not None:
            target, value = here.target, here.value
        elif isinstance(here, (ast.With, ast.AsyncWith)) and here.items[0].optional_vars is not None:
            target, value = here.items[0].optional_vars, here.items[0].context_expr
        else:
            return ""
        if not one_object_each(value):
            return ""  # of nested lists the place in each is not known
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List, ast.GeneratorExp, ast.ListComp)):
                return ast.unparse(target.elts[place]) if place >= 0 and len(target.elts) == count else ""
            return ast.unparse(target.elts[0]) if count == 1 else ""  # the value and a code
        if isinstance(value, (ast.List, ast.ListComp, ast.Tuple)):
            return f"{ast.unparse(target)}[{place if place >= 0 else '...'}]"
        return ast.unparse(target) if count == 1 and isinstance(value, ast.Call) else ""

    @functools.cached_property
    def _calls(self) -> list[ast.Call]:
        """The calls of the statement that cover the line, without those of its body."""
        here = self.path[-1]
        parts: list[ast.AST] = [here]
        if isinstance(here, (ast.With, ast.AsyncWith)):
            parts = list(here.items)
        elif isinstance(here, (ast.For, ast.AsyncFor)):
            parts = [here.iter]
        elif isinstance(here, (ast.If, ast.While)):
            parts = [here.test]
        elif isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try)):
            parts = []
        calls = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call))
        return [call for call in calls if call.lineno <= self._line <= (call.end_lineno or call.lineno)]

    def current(self) -> str:
        """Return the stream that the enclosing contexts make current."""
        return self._current

    @functools.cached_property
    def _current(self) -> str:
        for node in reversed(self.path):
            if isinstance(node, (ast.With, ast.AsyncWith)):
                for item in reversed(node.items):
                    given = item.context_expr
                    if isinstance(given, ast.Call):
                        if tail(given.func) in _CONTEXTS and given.args:
                            return ast.unparse(given.args[0])
                        if tail(given.func) in MAKERS and item.optional_vars is not None:
                            return ast.unparse(item.optional_vars)
                    elif self._is_stream(given):
                        return ast.unparse(given)
        return ""

    def _behind(self, node: ast.expr) -> ast.expr:
        """Return the stream whose handle an expression is, or the expression."""
        if isinstance(node, ast.Attribute) and node.attr in _HANDLES and self._is_stream(node.value):
            return node.value
        return node

    def _is_stream(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Call):
            return tail(node.func) in MAKERS
        name = tail(node)
        return bool(name) and (bool(_LOOKS.search(name)) or name in stream_names(self._tree))
