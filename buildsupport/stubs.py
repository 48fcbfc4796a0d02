"""The stubs of the extension, made from the exported functions of pybuild.

They are halstream/_halstream.pyi, and halstream/_native/_functions.pyi with the
names and types that the rest of the package uses. The build writes both.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPES = {"int64": "int", "uint64": "int", "float64": "float", "bool": "bool", "string": "str"}

HEAD = '''"""The extension, compiled from the Go package pybuild; only the package _native imports it.

Written by the build, one function a line.
"""

# fmt: off
from typing import Any

process_state: dict[str, Any]
api: Any  # a capsule with the functions of halstream.h

'''

FUNCTIONS_HEAD = '''"""The functions of the extension as the package _native gives them.

There is no such module when a program runs. Written by the build, one function a line.
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


def write(package: Path) -> None:
    """Write both stubs into a folder that is, or becomes, the package halstream."""
    (package / "_native").mkdir(parents=True, exist_ok=True)
    (package / "_halstream.pyi").write_text(stub())
    (package / "_native" / "_functions.pyi").write_text(functions_stub())
