"""What the code of a Python function does with the names that it uses, read from its bytecode.

The question is which of the objects that a function can reach it works on as a
whole, and of which only a part or only the shape. The stack is followed from one
instruction to the next; where that is not certain the answer is ``part``.
"""

from __future__ import annotations

import dis
import functools
import math
import sys
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["Origin", "Use", "uses"]


class Origin(NamedTuple):
    """A name of the code, and the attributes that are taken of it, one of the other."""

    scope: str  #: ``free``, ``local`` or ``global``
    name: str
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.name, *self.attributes))


class Use(NamedTuple):
    """One use of an object.

    Attributes
    ----------
    how : str
        ``whole``: an operand, an argument of a function or the target of ``x[:]``;
        ``[5]``: indexed with that number, for its value;
        ``part``: indexed otherwise, or where it goes is not known; ``store``: changed; ``truth``: asked whether it
        is true; ``return``: returned to the caller; ``call``: it is called.
    arguments : tuple
        Of a call, in order: a pair of the keyword's name, '' without one, and the
        argument's origin, None where it has none.
    sure : bool
        Whether it happens in every run of the code that raises nothing.
    """

    origin: Origin | None
    how: str
    arguments: tuple[tuple[str, Origin | None], ...] = ()
    sure: bool = True


class _Constant(NamedTuple):
    value: Any


_FULL = _Constant(slice(None))
_NONE = _Constant(None)
_NOTHING = frozenset({
    "NOP", "RESUME", "CACHE", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG", "GEN_START", "NOT_TAKEN",
    "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD_NO_INTERRUPT", "SETUP_ANNOTATIONS", "TO_BOOL",
})  # fmt: skip
# Take the top of the stack and leave nothing; it is not worked on.
_DROPS = frozenset({"POP_TOP", "DELETE_ATTR", "POP_ITER", "END_FOR"})
_OPERATES = ("BINARY_", "INPLACE_", "UNARY_", "COMPARE_OP", "CONTAINS_OP", "GET_ITER", "FORMAT_", "CONVERT_VALUE")
_NULL_FIRST = sys.version_info < (3, 13)

_Item = Origin | _Constant | None


class _Scan:
    """Follows the stack through one code object."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.found: list[Use] = []
        self.stack: list[_Item] = []
        self.aliases: dict[str, Origin] = {}
        self.keywords: tuple[str, ...] = ()
        self.instructions = list(dis.get_instructions(code))
        self.stores = Counter(name for i in self.instructions if "STORE_FAST" in i.opname for name in _names(i))
        self.cells = {*code.co_cellvars, *code.co_freevars}
        # What lies before this place does not happen in every run.
        self.until: float = 0
        self.offset = 0

    def run(self) -> list[Use]:
        for one in self.instructions:
            if one.is_jump_target:
                while self.stack:  # what lies there depends on where the jump came from
                    self.use(self.pop(), "part")
            self.offset = one.offset
            self.step(one)
            if "JUMP" in one.opname and "_IF_" in one.opname:
                self.until = max(self.until, one.argval)
            elif one.opname.startswith("RETURN_") and one.offset < self.until:
                self.until = math.inf
        for constant in self.code.co_consts:
            if isinstance(constant, CodeType):  # a function, a class or a comprehension in this one
                self.found += self.inner(constant)
        return self.found

    def inner(self, code: CodeType) -> Iterator[Use]:
        runs = code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
        for use in uses(code):
            use = use._replace(sure=use.sure and runs, how="part" if use.how == "return" else use.how)
            arguments = tuple((name, o if o is None or o.scope != "local" else None) for name, o in use.arguments)
            if use.origin is None or use.origin.scope != "local":
                yield use._replace(arguments=arguments)
            elif any(o is not None for _, o in arguments):
                yield use._replace(origin=None, arguments=arguments)

    def pop(self) -> _Item:
        return self.stack.pop() if self.stack else None

    def pop_many(self, count: int) -> list[_Item]:
        return [self.pop() for _ in range(count)][::-1]

    def use(self, item: _Item, how: str, arguments: tuple[tuple[str, Origin | None], ...] = ()) -> None:
        origin = item if isinstance(item, Origin) else None
        if origin is not None or any(o is not None for _, o in arguments):
            self.found.append(Use(origin, how, arguments, self.offset >= self.until))

    def step(self, one: dis.Instruction) -> None:
        name = one.opname
        if name in _NOTHING:
            return
        handler = getattr(self, name.lower(), None) if not name.startswith("_") else None
        if handler is not None:
            handler(one)
        elif "FAST" in name:
            self.fast(one)
        elif name in _DROPS:
            self.pop()
        elif name == "RETURN_VALUE":
            self.use(self.pop(), "return")
        elif name.startswith("STORE_") or name.startswith("POP_JUMP") or name.startswith("JUMP_IF"):
            self.use(self.pop(), "part" if name.startswith("STORE_") else "truth")
        else:
            self.other(one)

    def other(self, one: dis.Instruction) -> None:
        """Follow an instruction of which only the effect on the stack's height is known."""
        effect = dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        how = "whole" if one.opname.startswith(_OPERATES) else "part"
        if effect > 0:
            self.stack += [None] * effect
            return
        for item in self.pop_many(1 - effect):
            self.use(item, how)
        self.stack.append(None)

    # Names.

    def fast(self, one: dis.Instruction) -> None:
        names, name = list(_names(one)), one.opname
        if name == "STORE_FAST_LOAD_FAST":
            self.store(names[0])
            self.load(names[1])
        else:
            for each in names:
                if name.startswith("STORE"):
                    self.store(each)
                elif name.startswith("LOAD"):
                    self.load(each)

    def load(self, name: str) -> None:
        if name in self.cells:
            self.stack.append(None)  # the cell itself, for a function in this one
        else:
            self.stack.append(self.aliases.get(name, Origin("local", name)))

    def store(self, name: str) -> None:
        item = self.pop()
        if (
            isinstance(item, Origin)
            and self.stores[name] == 1
            and name not in self.code.co_varnames[: _parameters(self.code)]
        ):
            self.aliases[name] = item
        else:
            self.use(item, "part")
            self.aliases[name] = Origin("lost", name)

    def load_deref(self, one: dis.Instruction) -> None:
        self.stack.append(Origin("free", str(one.argval)))

    load_classderef = load_from_dict_or_deref = load_deref

    def load_global(self, one: dis.Instruction) -> None:
        origin = Origin("global", str(one.argval))
        if dis.stack_effect(one.opcode, one.arg) == 1:
            self.stack.append(origin)
        else:
            self.stack += [None, origin] if _NULL_FIRST else [origin, None]

    load_name = load_global

    def load_const(self, one: dis.Instruction) -> None:
        value = one.argval
        if value is None:
            self.stack.append(_NONE)
        elif value is ... or (isinstance(value, slice) and value == slice(None)):
            self.stack.append(_FULL)
        else:
            self.stack.append(_Constant(value))

    load_small_int = load_const

    def load_attr(self, one: dis.Instruction) -> None:
        item = self.pop()
        name = str(one.argval)
        self.stack.append(item._replace(attributes=(*item.attributes, name)) if isinstance(item, Origin) else None)
        if dis.stack_effect(one.opcode, one.arg) == 1:  # of a method that is called next
            self.stack.append(None)

    load_method = load_attr

    def store_attr(self, one: dis.Instruction) -> None:
        value, _ = self.pop_many(2)
        self.use(value, "part")

    def is_op(self, one: dis.Instruction) -> None:
        self.pop_many(2)
        self.stack.append(None)

    # The stack itself.

    def copy(self, one: dis.Instruction) -> None:
        depth = one.arg or 1
        self.stack.append(self.stack[-depth] if len(self.stack) >= depth else None)

    def dup_top(self, one: dis.Instruction) -> None:
        self.stack.append(self.stack[-1] if self.stack else None)

    def dup_top_two(self, one: dis.Instruction) -> None:
        two = self.pop_many(2)
        self.stack += [*two, *two]

    def swap(self, one: dis.Instruction) -> None:
        depth = one.arg or 1
        items = self.pop_many(depth)
        items[0], items[-1] = items[-1], items[0]
        self.stack += items

    def rot_two(self, one: dis.Instruction) -> None:
        self._rotate(2)

    def rot_three(self, one: dis.Instruction) -> None:
        self._rotate(3)

    def rot_four(self, one: dis.Instruction) -> None:
        self._rotate(4)

    def _rotate(self, count: int) -> None:
        items = self.pop_many(count)
        self.stack += [items[-1], *items[:-1]]

    # Indices.

    def build_slice(self, one: dis.Instruction) -> None:
        parts = self.pop_many(one.arg or 2)
        for part in parts:
            self.use(part, "part")
        self.stack.append(_FULL if all(part == _NONE for part in parts) else None)

    def _index(self, container: _Item, full: bool) -> None:
        self.use(container, "whole" if full else "part")

    def binary_subscr(self, one: dis.Instruction) -> None:
        container, key = self.pop_many(2)
        if isinstance(key, _Constant) and type(key.value) is int:
            self.use(container, f"[{key.value}]")
        else:
            self._index(container, key == _FULL)
        self.use(key, "whole")
        self.stack.append(None)

    def binary_op(self, one: dis.Instruction) -> None:
        if one.argrepr == "[]":
            self.binary_subscr(one)
            return
        if one.argrepr.endswith("=") and len(self.stack) > 1:
            self.use(self.stack[-2], "store")
        self.other(one)

    def inplace_add(self, one: dis.Instruction) -> None:
        if len(self.stack) > 1:
            self.use(self.stack[-2], "store")
        self.other(one)

    def store_subscr(self, one: dis.Instruction) -> None:
        value, container, key = self.pop_many(3)
        self._index(container, key == _FULL)
        self.use(container, "store")
        self.use(key, "whole")
        self.use(value, "whole")

    def delete_subscr(self, one: dis.Instruction) -> None:
        container, _ = self.pop_many(2)
        self._index(container, False)
        self.use(container, "store")

    def binary_slice(self, one: dis.Instruction) -> None:
        container, start, stop = self.pop_many(3)
        self._index(container, start == _NONE and stop == _NONE)
        self.stack.append(None)

    def store_slice(self, one: dis.Instruction) -> None:
        value, container, start, stop = self.pop_many(4)
        self._index(container, start == _NONE and stop == _NONE)
        self.use(container, "store")
        self.use(value, "whole")

    # Calls.

    def kw_names(self, one: dis.Instruction) -> None:
        self.keywords = tuple(one.argval) if isinstance(one.argval, tuple) else self.code.co_consts[one.arg or 0]

    def _call(self, before: int, count: int, keywords: tuple[str, ...] = ()) -> None:
        given = self.pop_many(count)
        callee = next((item for item in self.pop_many(before) if isinstance(item, Origin)), None)
        names = ("",) * (count - len(keywords)) + keywords
        self.use(
            callee, "call", tuple((n, v if isinstance(v, Origin) else None) for n, v in zip(names, given, strict=True))
        )
        self.stack.append(None)

    def call(self, one: dis.Instruction) -> None:
        keywords, self.keywords = self.keywords, ()
        self._call(2, one.arg or 0, keywords)

    def call_kw(self, one: dis.Instruction) -> None:
        names = self.pop()
        self._call(2, one.arg or 0, names.value if isinstance(names, _Constant) else ())

    def call_function(self, one: dis.Instruction) -> None:
        self._call(1, one.arg or 0)

    def call_method(self, one: dis.Instruction) -> None:
        self._call(2, one.arg or 0)

    def call_function_kw(self, one: dis.Instruction) -> None:
        names = self.pop()
        self._call(1, one.arg or 0, names.value if isinstance(names, _Constant) else ())

    def call_function_ex(self, one: dis.Instruction) -> None:
        effect = dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None)
        items = self.pop_many(1 - effect)
        callee = next((item for item in items if isinstance(item, Origin)), None)
        for item in items:
            if item is not callee:
                self.use(item, "part")
        self.use(callee, "call")
        self.stack.append(None)


def _names(one: dis.Instruction) -> Iterator[str]:
    value = one.argval
    yield from (value if isinstance(value, tuple) else (str(value),))


def _parameters(code: CodeType) -> int:
    flags = bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args and **kwargs
    return code.co_argcount + code.co_kwonlyargcount + flags


@functools.lru_cache(maxsize=4096)
def uses(code: CodeType) -> tuple[Use, ...]:
    """Return what a code object, with those in it, does with the names that it uses, each use once."""
    return tuple(dict.fromkeys(_Scan(code).run()))
