"""Regenerate the recorded signatures and names from the installed packages.

``<package>.json`` has signatures of a mirrored package, and ``modules.json`` the
public names of each mirrored module. Which names and modules the files have is
chosen by hand: to add one, add its key with an empty value. This program fills in
everything else from the package installed in its environment, which needs the
wheel and nothing of halstream::

    python -m venv mirror
    mirror/bin/pip install mindspore==2.10.0    # or paddlepaddle==3.3.1, cupy-cuda12x==14.2.0, torch==2.15.0,
                                                # cuda-core[cu13]==1.2.2
    mirror/bin/python tests/signatures/generate.py mindspore
    mirror/bin/python tests/signatures/generate.py --check mindspore

``--check`` writes nothing and fails if a file differs. Signatures of compiled
functions come from the first lines of their docstrings, where pybind11 puts them.
Signatures of torch, cupy and cuda.core are not generated: their compiled classes have none.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import json
import pkgutil
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

HERE = Path(__file__).parent
#: The mirrored packages: the one whose version counts, and whether signatures are generated.
PACKAGES = {
    "mindspore": ("mindspore", True),
    "paddle": ("paddle", True),
    "cupy": ("cupy", False),
    "cupyx": ("cupy", False),
    "torch": ("torch", False),
    "cuda": ("cuda.core", False),
}
#: Signatures of wrappers and of compiled functions, which say nothing.
UNKNOWN = ("(*args, **kwargs)", "(self, *args, **kwargs)", "(self, /, *args, **kwargs)")
#: The kind of a parameter that no sign marks.
ORDINARY = "POSITIONAL_OR_KEYWORD"
Parameters = list[list[Any]]


def lookup(name: str) -> Any:
    """Return the object of a dotted name; some modules are attributes of their package only."""
    first, *rest = name.split(".")
    found = importlib.import_module(first)
    path = first
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part) and isinstance(found, ModuleType):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


# -- signatures ------------------------------------------------------------------


def by_inspect(value: Any) -> Parameters | None:
    """Return the parameters that Python knows, None if it knows none."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    if str(signature.replace(return_annotation=inspect.Signature.empty)) in UNKNOWN:
        return None
    return [
        [p.name, p.kind.name, None if p.default is p.empty else written(p.default)]
        for p in signature.parameters.values()
    ]


def written(default: object) -> str:
    """Return a default value as text that is the same in every process."""
    return re.sub(r"0x[0-9a-fA-F]{4,}", "0x?", repr(default))


def by_docstring(value: Any, name: str) -> Parameters | None:
    """Return the parameters of the first signature line in a docstring, None without one."""
    lines = inspect.cleandoc(getattr(value, "__doc__", None) or "").split("\n")
    overloaded = "Overloaded function." in lines
    for line in lines if overloaded else lines[:1]:
        found = re.match(rf"(?:\d+\. )?(?:\w+\.)*{re.escape(name)}\((.*)\)(?: ->.*)?$", line.strip())
        if found and not (overloaded and found[1].endswith("*args, **kwargs")):
            return parameters(split(found[1]))
    return None


def parameters(parts: list[str]) -> Parameters:
    """Return the parameters between the parentheses of a signature."""
    found: Parameters = []
    keyword = False
    for part in parts:
        if part == "/":
            for earlier in found:
                earlier[1] = "POSITIONAL_ONLY"
        elif part == "*":
            keyword = True
        else:
            found.append(parameter(part))
            if keyword and found[-1][1] == ORDINARY:
                found[-1][1] = "KEYWORD_ONLY"
            keyword = keyword or found[-1][1] == "VAR_POSITIONAL"
    return found


def split(text: str) -> list[str]:
    """Return the parts between the commas that stand outside all brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def parameter(text: str) -> list[Any]:
    """Return name, kind and default of a parameter written as pybind11 does."""
    declared, _, default = text.partition(" = ")
    name = declared.partition(":")[0].strip()
    kind = "VAR_KEYWORD" if name.startswith("**") else "VAR_POSITIONAL" if name.startswith("*") else ORDINARY
    return [name.lstrip("*"), kind, default or None]


def signature(value: Any, name: str) -> dict[str, Any]:
    """Return the entries `params` and `source` of a function or method."""
    found = by_inspect(value)
    if found is not None:
        return {"params": found}
    found = by_docstring(value, name)
    return {} if found is None else {"params": found, "source": "docstring"}


def constructor(cls: type) -> dict[str, Any]:
    """Return the entries `params` and `source` of a class: its constructor without `self`."""
    found = by_inspect(cls)
    if found is not None:
        return {"params": found}
    for owner in cls.__mro__[:-1]:
        for name in ("__init__", "__new__"):
            found = by_docstring(vars(owner)[name], name) if name in vars(owner) else None
            if found is not None:
                return {"params": found[1:], "source": "docstring"}
    return {"params": []}


def describe(path: str) -> dict[str, Any]:
    """Return the entry of a name in ``<package>.json``."""
    above, _, name = path.rpartition(".")
    owner = lookup(above)
    value = getattr(owner, name)
    if inspect.isclass(value):
        return {"kind": "class", **constructor(value)}
    if not inspect.isclass(owner):
        return {"kind": "function", **signature(value, name)} if callable(value) else constant(value)
    raw = inspect.getattr_static(owner, name)
    if isinstance(raw, (GetSetDescriptorType, MemberDescriptorType)) or "property" in type(raw).__name__:
        return {"kind": "property"}
    if not callable(value):
        return constant(value)
    kind = (
        "classmethod"
        if isinstance(raw, classmethod)
        else "staticmethod"
        if isinstance(raw, (staticmethod, BuiltinFunctionType))
        else "method"
    )
    return {"kind": kind, **signature(getattr(raw, "__func__", raw), name)}


def constant(value: object) -> dict[str, Any]:
    plain = value is None or isinstance(value, (bool, int, float, str))
    return {"kind": "constant", "value": repr(value) if plain else f"<{type(value).__name__}>"}


def signatures(package: str) -> str:
    """Return what ``<package>.json`` should contain."""
    recorded: dict[str, Any] = json.loads((HERE / f"{package}.json").read_text())["names"]
    names: dict[str, Any] = {}
    described: dict[int, str] = {}
    # Of several names of one object the one in its definition comes first; the others are aliases.
    for path in sorted(recorded, key=lambda path: (not is_defined_as(path), path)):
        try:
            entry = describe(path)
        except (AttributeError, ImportError) as exc:
            print(f"{path} is kept as recorded, as this build lacks it: {exc}", file=sys.stderr)
            entry = recorded[path]
        else:
            value = lookup(path)
            first = described.setdefault(id(value), path) if entry["kind"] in ("class", "function") else path
            if first != path:
                entry["alias_of"] = first
        names[path] = entry
    head = {"package": package, "version": version(package), "python": platform.python_version()}
    lines = [f"    {json.dumps(path)}: {json.dumps(names[path])}" for path in sorted(names)]
    start = json.dumps(head, indent=2)[:-2]
    return start + ',\n  "names": {\n' + ",\n".join(lines) + "\n  }\n}\n"


def is_defined_as(path: str) -> bool:
    """Return whether the last part of a name is the one in the object's definition."""
    try:
        return getattr(lookup(path), "__name__", "") == path.rpartition(".")[2]
    except (AttributeError, ImportError):
        return False


# -- names of modules --------------------------------------------------------------


def module(name: str) -> Any:
    """Return a module; a few are attributes of their package only, others are hidden by a function of their name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return lookup(name)


def modules(package: str) -> str:
    """Return what ``modules.json`` should contain after the entries of a package are read."""
    recorded: dict[str, Any] = json.loads((HERE / "modules.json").read_text())
    own = [name for name in recorded["names"] if name.split(".")[0] == package]
    found = {name: module(name) for name in own}  # all imported before any is read
    # Modules inside of a module that dir() has only when something imports them.
    recorded["modules"] = {n: v for n, v in recorded.get("modules", {}).items() if n.split(".")[0] != package}
    for name, value in found.items():
        names = {*dir(value), *getattr(value, "__all__", ())}
        # Mirrored modules inside this one, which dir() has after their import only.
        names |= {n.removeprefix(f"{name}.").split(".")[0] for n in own if n.startswith(f"{name}.")}
        recorded["names"][name] = joined(names)
        inside = {info.name for info in pkgutil.iter_modules(getattr(value, "__path__", None) or ())}
        if hidden := joined(inside - names):
            recorded["modules"][name] = hidden
    recorded["packages"][package] = version(package)
    for part in ("names", "modules"):
        recorded[part] = dict(sorted(recorded[part].items()))
    return json.dumps(recorded, indent=1) + "\n"


def joined(names: Iterable[str]) -> str:
    """Return the public ones of names, in order."""
    return " ".join(sorted(n for n in names if n.isidentifier() and not n.startswith("_")))


def version(package: str) -> str:
    # Without the local part, which names the CUDA version of a wheel.
    return str(importlib.import_module(PACKAGES[package][0]).__version__).partition("+")[0]


def main() -> int:
    """Run the command line; return 1 if `--check` found a file that differs."""
    parser = argparse.ArgumentParser(description="Regenerate the recorded signatures and names of a mirrored package.")
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a file differs")
    args = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # packages print while they are imported
        wanted = {"modules.json": modules(args.package)}
        if PACKAGES[args.package][1]:
            wanted[f"{args.package}.json"] = signatures(args.package)
    different = [name for name, text in wanted.items() if (HERE / name).read_text() != text]
    for name in different:
        if not args.check:
            (HERE / name).write_text(wanted[name])
        print(f"tests/signatures/{name} {'differs' if args.check else 'is rewritten'}")
    return 1 if args.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
