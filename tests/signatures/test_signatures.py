"""Every mirrored name has the signature that the real package has.

``<package>.json`` holds what the package declares: kinds, parameters with kind
and default, bases, aliases, values of constants; ``generate.py`` reads them from
the installed package. ``differences.json`` lists
optional parameters that halstream adds, and by name or pattern what is different
on purpose and what is not there, each with its reason; an entry that no name
needs any more is an error, too.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from halstream._dialects._not_built import is_not_built

HERE = Path(__file__).parent
PACKAGES = ("torch", "paddle", "mindspore", "cupy", "cuda")
NAMES: dict[str, dict[str, Any]] = {
    name: entry
    for package in PACKAGES
    for name, entry in json.loads((HERE / f"{package}.json").read_text())["names"].items()
}
DECLARED: dict[str, dict[str, str]] = json.loads((HERE / "differences.json").read_text())
CALLED = {"class", "function", "method", "classmethod", "staticmethod"}
ABSENT = object()


def find(name: str) -> tuple[Any, Any]:
    """Return the mirrored object and the descriptor it comes from, or `ABSENT` twice."""
    found: Any = importlib.import_module("halstream")
    static = found
    where = "halstream"
    for part in name.split("."):
        where = f"{where}.{part}"
        static = inspect.getattr_static(found, part, ABSENT)
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = static = importlib.import_module(where)
            except ImportError:
                return ABSENT, ABSENT
    return found, static


def parameters(value: Any, static: Any) -> list[list[str | None]] | None:
    """Return [name, kind, default] of each parameter, None where none can be read."""
    if isinstance(static, classmethod):
        value = static.__func__
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    found = [
        [p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in signature.parameters.values()
    ]
    if found and found[0][0] == "self":
        # Methods written in C take the object by position only; callers never pass it by name.
        found[0][1] = inspect.Parameter.POSITIONAL_OR_KEYWORD.name
    return found


def is_special(name: str) -> bool:
    return name.rsplit(".", 1)[-1].startswith("__")


def is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    return text != "..."


def same_parameters(entry: dict[str, Any], mine: list[list[str | None]], special: bool) -> bool:
    theirs = entry["params"]
    mine = [p for p in mine if p in theirs or p[2] is None or p[0] not in DECLARED["added"]]
    if special:
        # Called by the interpreter, by position: names do not matter, and *args takes any number.
        return any(p[1] == "VAR_POSITIONAL" for p in [*theirs, *mine]) or len(theirs) == len(mine)
    if len(theirs) != len(mine):
        return False
    for (name, kind, default), (my_name, my_kind, my_default) in zip(theirs, mine, strict=True):
        if entry.get("source") == "docstring" and name.startswith("arg"):
            # pybind's invention; the caller can only pass it by position.
            name, kind = my_name, my_kind
        if default is not None and my_default is not None and not is_literal(default):
            default = my_default  # optional there, but by an expression that cannot be compared
        if [name, kind, default] != [my_name, my_kind, my_default]:
            return False
    return True


def text(params: list[list[str | None]]) -> str:
    return ", ".join(f"{n}{'' if d is None else '=' + d}<{k.lower()}>" for n, k, d in params)  # type: ignore[union-attr]


def difference(name: str) -> str | None:
    """Return how a mirrored name differs from the package's, None if it does not."""
    entry = NAMES[name]
    value, static = find(name)
    if value is ABSENT or is_not_built(value):
        return "missing"
    kind = entry["kind"]
    if (kind == "class") != inspect.isclass(value):
        return f"a {kind} there, {type(value).__name__} here"
    if kind in CALLED and not callable(value):
        return f"can be called there, is {value!r} here"
    if kind == "property" and callable(static) and not hasattr(type(static), "__get__"):
        return f"an attribute there, {static!r} here"
    if kind == "property" and inspect.isfunction(static):
        return "an attribute there, a method here"
    if kind in ("classmethod", "staticmethod") and inspect.isfunction(static):
        return f"a {kind} there, a method here"
    if "value" in entry and not entry["value"].startswith("<") and repr(value) != entry["value"]:
        return f"{entry['value']} there, {value!r} here"
    if "alias_of" in entry and find(entry["alias_of"])[0] is not value:
        return f"the same object as {entry['alias_of']} there, another one here"
    for base in entry.get("bases", []):
        above = find(base)[0]
        if not (inspect.isclass(above) and issubclass(value, above)):
            return f"a subclass of {base} there, not here"
    if "params" in entry:
        mine = parameters(value, static)
        if mine is None:
            return "no signature can be read here"
        if not same_parameters(entry, mine, is_special(name)):
            return f"({text(entry['params'])}) there, ({text(mine)}) here"
    return None


@functools.cache
def differences() -> dict[str, str]:
    """Return every name that differs, and how."""
    return {name: found for name in NAMES if (found := difference(name)) is not None}


def reason(name: str) -> str | None:
    """Return the declared reason for a name's difference."""
    group = "missing" if differences()[name] == "missing" else "different"
    for pattern, why in DECLARED[group].items():
        if fnmatch.fnmatchcase(name, pattern):
            return why
    return None


@pytest.mark.parametrize("package", PACKAGES)
def test_every_difference_is_declared(package: str) -> None:
    undeclared = [
        f"{name}: {found}"
        for name, found in differences().items()
        if name.split(".")[0] == package and not reason(name)
    ]
    assert not undeclared, "\n".join(["", *undeclared])


@pytest.mark.parametrize("group", ["different", "missing"])
def test_no_declared_difference_is_stale(group: str) -> None:
    names = [n for n, found in differences().items() if (found == "missing") == (group == "missing")]
    stale = [p for p in DECLARED[group] if not fnmatch.filter(names, p)]
    assert not stale, f"no name needs these entries of differences.json any more: {stale}"


@pytest.mark.parametrize("package", PACKAGES)
def test_most_names_are_compared(package: str) -> None:
    # A package that cannot be imported at all would only be "missing" otherwise.
    names = [n for n in NAMES if n.split(".")[0] == package]
    there = [n for n in names if differences().get(n) != "missing"]
    assert len(there) > len(names) / 2, f"{len(there)} of {len(names)} names of {package} exist"
