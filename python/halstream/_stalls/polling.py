"""Recognize a loop that only asks, again and again, whether work of the device is done.

That such a loop does nothing else is read from its source. Loops that count, compare
times or call anything else may end by themselves, and are not recognized.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .. import _sites
from .blocked import UNKNOWN, attribute

__all__ = ["Polling", "polling"]

_PACKAGE = __name__.partition(".")[0]
_QUESTIONS = frozenset({"query", "done"})


class Polling(NamedTuple):
    """A loop that ends when the answer to a question is true, and not before."""

    question: str  #: as the program has it
    one: Any  #: the stream or the event that is asked
    ask: Callable[[], bool]


def polling(frame: FrameType | None) -> Polling | None:
    """Return the loop in which a thread is, None if it is in no such loop.

    Parameters
    ----------
    frame : frame
        The thread's innermost one.
    """
    while frame is not None and _sites.is_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    found = next((one for one in _loops(frame.f_code) if one[0] <= frame.f_lineno <= one[1]), None)
    if found is None:
        return None
    _, _, question, sleeps = found
    if any(_value(sleep, frame) is not time.sleep for sleep in sleeps):
        return None
    name = question.attr
    one = _value(question.value, frame)
    if type(one).__module__.partition(".")[0] != _PACKAGE:
        return None  # a subclass of the program may do more
    called = not isinstance(inspect.getattr_static(one, name, None), property)
    ask = (lambda: bool(getattr(one, name)())) if called else (lambda: bool(getattr(one, name)))
    return Polling(ast.unparse(question) + "()" * called, one, ask)


@functools.lru_cache(maxsize=64)
def _loops(code: CodeType) -> tuple[tuple[int, int, ast.Attribute, tuple[ast.expr, ...]], ...]:
    """Return the first and last lines of such loops of a file, innermost first, what they ask and how they sleep."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return ()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and not node.orelse and isinstance(node.test, ast.UnaryOp):
            question, sleeps = _question(node.test), _sleeps(node.body)
            if question is not None and sleeps is not None:
                found.append((node.lineno, node.end_lineno or node.lineno, question, sleeps))
    return tuple(sorted(found, key=lambda one: one[1] - one[0]))


def _question(test: ast.UnaryOp) -> ast.Attribute | None:
    """Return what is asked by ``not one.query()`` or ``not one.done``."""
    asked = test.operand
    if isinstance(asked, ast.Call):
        if asked.args or asked.keywords:
            return None
        asked = asked.func
    if isinstance(test.op, ast.Not) and isinstance(asked, ast.Attribute) and asked.attr in _QUESTIONS:
        return asked
    return None


def _sleeps(body: list[ast.stmt]) -> tuple[ast.expr, ...] | None:
    """Return the functions that a body calls; None if it does anything else."""
    called = []
    for statement in body:
        if isinstance(statement, (ast.Pass, ast.Continue)):
            continue
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant):
            continue
        if not isinstance(value, ast.Call) or value.keywords:
            return None
        if not all(isinstance(argument, (ast.Constant, ast.Name)) for argument in value.args):
            return None
        called.append(value.func)
    return tuple(called)


def _value(path: ast.expr, frame: FrameType) -> Any:
    """Return what a name with attributes stands for, without running any code of the program."""
    if isinstance(path, ast.Attribute):
        return attribute(_value(path.value, frame), path.attr)
    if not isinstance(path, ast.Name):
        return UNKNOWN
    return _sites.variables(frame).get(path.id, frame.f_globals.get(path.id, UNKNOWN))
