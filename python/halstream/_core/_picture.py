"""Graphs as text for graphviz, and as pictures that its program draws."""

from __future__ import annotations

import json
import shutil
import subprocess

from .. import _native
from .._errors import HalError, NotSupportedError
from .._records import decode
from . import _hostfunc
from ._node import name_of

__all__ = ["dot_text", "draw"]

#: Seconds that graphviz may take for one picture.
DRAWING = 60


def dot_text(graph: int, details: bool = False) -> str:
    """Return the graph of a number in the language of graphviz, with the names of its functions."""
    c = _hostfunc._c  # None while nothing was ever enqueued
    tokens = () if c is None else set(decode(_native.graph_tokens(graph)))
    names = {str(token): name_of(_hostfunc.function_of(token), c.arguments_of(token)) for token in tokens if c}
    return str(_native.graph_dot(graph, json.dumps(names), details))


def draw(text: str) -> str:
    """Return a text for graphviz as an SVG picture.

    Raises
    ------
    NotSupportedError
        If graphviz is not installed.
    HalError
        If its program fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise NotSupportedError(
            "svg() draws with graphviz, and its program dot is not on the PATH; install graphviz "
            "(apt install graphviz, dnf install graphviz, brew install graphviz), or draw the text of dot() elsewhere"
        )
    done = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True, timeout=DRAWING, check=False)
    if done.returncode:
        raise HalError(f"graphviz cannot draw the graph: {done.stderr.strip()}")
    return done.stdout
