"""Writes the stubs of the extension from the exported functions of pybuild.

They are python/halstream/_halstream.pyi, and _native/_functions.pyi with the
names and types that the rest of the package uses.

Usage: python tools/stubs.py [--check]

With ``--check`` nothing is written: the stubs must be up to date, and the
extension that this Python imports must have exactly the stub's functions with
exactly their parameters.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "python" / "halstream" / "_halstream.pyi"
FUNCTIONS = ROOT / "python" / "halstream" / "_native" / "_functions.pyi"
TYPES = {"int64": "int", "uint64": "int", "float64": "float", "bool": "bool", "string": "str"}

HEAD = '''"""The extension, compiled from the Go package pybuild; only the package _native imports it.

Written by tools/stubs.py, one function a line.
"""

# fmt: off
from typing import Any

process_state: dict[str, Any]
calls: Any  # a capsule with the functions that the C classes call
api: Any  # a capsule with the functions of halstream.h

'''

FUNCTIONS_HEAD = '''"""The functions of the extension as the package _native gives them.

There is no such module when a program runs. Written by tools/stubs.py, one function a line.
"""

# fmt: off

from collections.abc import Callable
from typing import Literal, overload

'''


def functions() -> dict[str, tuple[list[tuple[str, str]], str]]:
    """Return name -> ([(parameter, type)], result type) of the exported functions."""
    found = {}
    for path in sorted((ROOT / "pybuild").glob("*.go")):
        if path.name.endswith("_test.go"):
            continue
        for name, params, result in re.findall(
            r"(?m)^func ([A-Z]\w*)\(([^)]*)\) *(\([^)]*\)|\w*) *\{", path.read_text()
        ):
            found[name] = parameters(path.name, name, params), result_type(path.name, name, result)
    return dict(sorted(found.items()))


def parameters(file: str, function: str, text: str) -> list[tuple[str, str]]:
    """Split Go's ``a, b int64, text string``."""
    out: list[tuple[str, str]] = []
    names: list[str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, kind = part.partition(" ")
        names.append(name)
        if kind:
            out += [(n, python_type(file, function, kind)) for n in names]
            names = []
    return out


def result_type(file: str, function: str, text: str) -> str:
    return python_type(file, function, text.strip("()").partition(",")[0].split()[-1] if text else "")


def python_type(file: str, function: str, go: str) -> str:
    if go not in TYPES:
        raise SystemExit(f"stubs: {file}: {function}: no Python type for {go!r}")
    return TYPES[go]


def stub() -> str:
    lines = []
    for name, (params, result) in functions().items():
        arguments = ", ".join(f"{p}: {kind}" for p, kind in params)
        lines.append(f"def pybuild_{name}({arguments}{', /' if params else ''}) -> {result}: ...\n")
    return HEAD + "".join(lines)


def functions_stub() -> str:
    """Return the text of `FUNCTIONS`: what mypy knows of `_native.stream_query` and `_native.raw("stream_query")`."""
    calls, overloads = [], []
    for name, (params, result) in functions().items():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        if "".join(part.capitalize() for part in snake.split("_")) != name:
            raise SystemExit(f"stubs: {name}: _native cannot give this name; write it as words of one capital each")
        arguments = ", ".join(f"{p}: {kind}" for p, kind in params)
        kinds = ", ".join(kind for _, kind in params)
        calls.append(f"def {snake}({arguments}{', /' if params else ''}) -> {result}: ...\n")
        overloads.append(f'@overload\ndef raw(name: Literal["{snake}"]) -> Callable[[{kinds}], {result}]: ...\n')
    return FUNCTIONS_HEAD + "".join(calls) + "".join(overloads)


def compare() -> list[str]:
    """Return how the extension that Python imports differs from the stub."""
    from halstream import _halstream as extension

    wrong = []
    wanted = {f"pybuild_{name}": [p for p, _ in params] for name, (params, _) in functions().items()}
    there = {name for name in dir(extension) if name.startswith("pybuild_")}
    wrong += [f"the extension has no {name}" for name in sorted(wanted.keys() - there)]
    wrong += [f"the extension has {name}, the stub does not" for name in sorted(there - wanted.keys())]
    for name in sorted(wanted.keys() & there):
        # gopy may rename parameters; their number is what callers depend on.
        have = list(inspect.signature(getattr(extension, name)).parameters)
        if len(have) != len(wanted[name]):
            wrong.append(f"{name}{tuple(have)} in the extension, {tuple(wanted[name])} in the stub")
    return wrong


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: stubs.py [--check]")
    texts = {STUB: stub(), FUNCTIONS: functions_stub()}
    if not arguments:
        for path, text in texts.items():
            path.write_text(text)
        return 0
    wrong = compare()
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            wrong.insert(0, f"{path.relative_to(ROOT)} is out of date: run python tools/stubs.py")
    for line in wrong:
        print(f"stubs: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
