"""Finds imports of the Python package that are made inside functions or of a higher layer, and import cycles.

An import inside a function hides what a module stands on, and often a cycle. Those that
are wanted, as they keep the import of halstream or a command fast, are listed here with
the reason. A cycle counts them too, so that it cannot be hidden by one.

Usage: python tools/imports.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "halstream"

_COMMAND = "a command loads only what it needs, as its start is waited for"
_TOOL = "the tool is loaded only where it was asked for"
_MIRROR = "programs of the mirror need not load what builds and installs the module for the real torch"
_ARRAYS = "programs of streams alone need not load NumPy"
_COMPILER = "only kernels with a CUDA form need it"
_PRINTS = "a finding prints itself, and what prints it names its types"
_NOTEBOOK = "only notebooks need HTML; an object shows itself, and what shows it asks the object"

#: Imports that are made inside functions on purpose: the module, what it imports, and why.
WANTED = {
    ("halstream", "halstream._dialects._strict"): "the dialects are loaded only where they are used",
    ("halstream", "halstream._stalls.stall"): "the report is loaded at the first wait that takes long",
    ("halstream._campaign.engines", "halstream._campaign.ray_engine"): "it imports Ray, which few have",
    ("halstream._checks.finding", "halstream._checks.remedy"): _PRINTS,
    ("halstream._checks.finding", "halstream._checks.report"): _PRINTS,
    ("halstream._checks.finding", "halstream._checks.seen"): _ARRAYS,
    ("halstream._checks.finding", "halstream._checks.shared"): _ARRAYS,
    ("halstream._checks.finding", "halstream._notebook.objects"): _NOTEBOOK,
    ("halstream._checks.report", "halstream._checks.seen"): _ARRAYS,
    ("halstream._checks.report", "halstream._notebook.objects"): _NOTEBOOK,
    ("halstream._core._event", "halstream._notebook.objects"): _NOTEBOOK,
    ("halstream._core._graph", "halstream._notebook.graph"): _NOTEBOOK,
    ("halstream._core._stream", "halstream._notebook.objects"): _NOTEBOOK,
    ("halstream._notebook.objects", "halstream._core._stream"): _NOTEBOOK,
    ("halstream._notebook.objects", "halstream._core._event"): _NOTEBOOK,
    ("halstream._notebook.objects", "halstream._checks.remedy"): _NOTEBOOK,
    ("halstream._notebook.objects", "halstream._checks.report"): _NOTEBOOK,
    ("halstream._cli.checks", "halstream._cli.doctor"): _COMMAND,
    ("halstream._cli.checks", "halstream._explain.text"): _COMMAND,
    ("halstream._cli.checks", "halstream._lint.finding"): _COMMAND,
    ("halstream._cli.checks", "halstream._lint.run"): _COMMAND,
    ("halstream._cli.child", "halstream._checks.sanitize"): _TOOL,
    ("halstream._cli.child", "halstream._checks.patched"): _TOOL,
    ("halstream._cli.commands", "halstream._cli.applied"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.info"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.replaying"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.running"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.server"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.tracing"): _COMMAND,
    ("halstream._cli.commands", "halstream._schedules.search"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.children"): _COMMAND,
    ("halstream._cli.commands", "halstream._cli.redirecting"): _COMMAND,
    ("halstream._cli.commands", "halstream._driver"): _TOOL,
    ("halstream._cli.redirecting", "halstream._driver"): _TOOL,
    ("halstream._cli.redirecting", "halstream.paddle.plugin"): _TOOL,
    ("halstream._cli.started", "halstream.paddle.plugin"): _TOOL,
    ("halstream._cli.redirecting", "halstream.torch"): _TOOL,
    ("halstream._cli.started", "halstream.torch"): _TOOL,
    ("halstream._cli.redirecting", "halstream.torch._redirect.module"): _TOOL,
    ("halstream._cli.redirecting", "halstream.torch._redirect.wheel"): _TOOL,
    ("halstream._plugin.item", "halstream.torch._redirect.comparison"): _TOOL,
    ("halstream.torch._redirect.comparison", "halstream._checks.report"): _TOOL,
    ("halstream.torch._redirect.comparison", "halstream._checks.sanitize"): _TOOL,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.distributed"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.host_accesses"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.module"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.module_names"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.moves"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.parallel"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.parameters"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.processes"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.rpc"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.running"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.runtime_names"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._redirect.storages"): _MIRROR,
    ("halstream.torch._redirect.redirection", "halstream.torch._standins._finder"): _MIRROR,
    ("halstream._cli.running", "halstream._checks.sanitize"): _TOOL,
    ("halstream._kernel", "halstream._kernel._launch"): _COMPILER,
    ("halstream._kernel", "halstream._kernel._nvrtc"): _COMPILER,
    ("halstream._plugin.files", "halstream._plugin.applied"): _TOOL,
    ("halstream._plugin.plan", "halstream._schedules.search"): _TOOL,
    ("halstream._plugin.plan", "halstream._schedules.token"): _TOOL,
    ("halstream._plugin.remembered", "halstream._errors"): _TOOL,
    ("halstream._plugin.remembered", "halstream._schedules.token"): _TOOL,
    ("halstream._plugin.runs", "halstream._stalls.leaks"): _TOOL,
    ("halstream._plugin.sanitized", "halstream._checks.sanitize"): _TOOL,
    ("halstream._schedules.block", "halstream._schedules.threadhooks"): _ARRAYS,
    ("halstream._schedules.explore", "halstream._checks.sanitize"): _TOOL,
    ("halstream.cli", "halstream._cli.child"): _COMMAND,
    ("halstream.cli", "halstream._cli.serving"): _COMMAND,
    ("halstream.cli", "halstream._plugin.trial"): _COMMAND,
    ("halstream.cli", "halstream._plugin.verified"): _COMMAND,
    ("halstream.cli", "halstream._cli.commands"): "the commands need packages that are optional",
    ("halstream.cupy", "halstream.cupy._creation"): _ARRAYS,
    ("halstream.cupy", "halstream.cupy._elementwise"): _ARRAYS,
    ("halstream.cupy", "halstream.cupy._ndarray"): _ARRAYS,
    ("halstream.cupy", "halstream.cupy._raw"): _ARRAYS,
    ("halstream.cupy", "halstream.cupy._reduction"): _ARRAYS,
    ("halstream.cupyx", "halstream.cupyx._memory"): _ARRAYS,
    ("halstream.cupyx", "halstream.cupyx._runtime"): _ARRAYS,
    ("halstream.pytest_plugin", "halstream._driver"): _TOOL,
    ("halstream.pytest_plugin", "halstream._checks.formats"): _TOOL,
    ("halstream.pytest_plugin", "halstream._checks.report"): _TOOL,
    ("halstream.pytest_plugin", "halstream._plugin.faults"): _TOOL,
    ("halstream.pytest_plugin", "halstream._plugin.files"): _TOOL,
    ("halstream.pytest_plugin", "halstream._plugin.item"): _TOOL,
    ("halstream.pytest_plugin", "halstream._plugin.lost"): _TOOL,
    ("halstream.pytest_plugin", "halstream._plugin.sanitized"): _TOOL,
    ("halstream.pytest_plugin", "halstream._errors"): _TOOL,
    ("halstream.pytest_plugin", "halstream.torch"): _TOOL,
}

#: The folders and modules of the package: each imports those before it only, and what WANTED says on purpose.
LAYERS = (
    *("_compiled", "_notes", "_errors", "_explain", "_record_types", "_records", "_runtime", "_native", "_sites"),
    *("_core", "_memory", "_kernel", "_traces", "_dialects", "_stalls", "_checks", "_schedules"),
    *("_capi", "_driver", "acl", "cuda", "cupy", "cupyx", "mindspore", "paddle", "torch", "_notebook", "_lint"),
    *("_campaign", "_plugin", "testing", "pytest_plugin", "_cli", "cli", "__main__"),
)

#: Imports that may close a cycle.
CLOSING = {pair for pair, why in WANTED.items() if why in (_PRINTS, _NOTEBOOK)}


class Import(NamedTuple):
    """One import of a module of the package."""

    module: str  #: that imports
    name: str  #: of the module that is imported
    line: int
    inside: bool  #: a function


def modules(package: Path) -> dict[str, Path]:
    """Return the files of a package by the names of their modules."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _for_types(statement: ast.AST) -> bool:
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)


def imports(module: str, path: Path, known: Mapping[str, Path]) -> Iterator[Import]:
    """Yield the imports that one file makes when it runs, of modules that are `known`."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]

    def names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            return
        start = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*start, *([node.module] if node.module else [])])
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield whole if whole in known else base

    def walk(node: ast.AST, inside: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and _for_types(child):
                for statement in child.orelse:
                    yield from walk(statement, inside)
            elif isinstance(child, (ast.Import, ast.ImportFrom)):
                for name in names(child):
                    if name in known and name != module:
                        yield Import(module, name, child.lineno, inside)
            else:
                yield from walk(child, inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    yield from walk(ast.parse(path.read_text(), str(path)), False)


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, each sorted."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        left = [start]
        while left:
            for name in edges.get(left.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    left.append(name)
        reached[start] = seen
    groups = {
        tuple(sorted(other for other in reached[one] if one in reached.get(other, ())))
        for one in edges
        if one in reached[one]
    }
    return [list(group) for group in sorted(groups)]


def _layer(module: str, layers: Sequence[str]) -> int:
    """Return the number of a module's layer, -1 for one that has none, such as the package itself."""
    folder = module.partition(".")[2].partition(".")[0]
    return layers.index(folder) if folder in layers else -1


def problems(
    package: Path, wanted: Mapping[tuple[str, str], str], closing: set[tuple[str, str]], layers: Sequence[str] = ()
) -> list[str]:
    """Return what is wrong in a package, a line each."""
    known = modules(package)
    edges: dict[str, set[str]] = {module: set() for module in known}
    found, used = [], set()
    for module, path in known.items():
        for one in imports(module, path, known):
            pair = (one.module, one.name)
            if one.inside and pair not in wanted:
                where = path.relative_to(package.parent.parent)
                found.append(
                    f"{where}:{one.line}: {one.name} is imported inside a function; import it at the top, or say in "
                    "tools/imports.py why not"
                )
            if one.inside:
                used.add(pair)
            if pair in closing:
                continue
            above, below = (_layer(name, layers) for name in (one.module, one.name))
            if 0 <= above < below and not one.inside:
                where = path.relative_to(package.parent.parent)
                found.append(f"{where}:{one.line}: {one.name} is in a higher layer; see LAYERS in tools/imports.py")
            # With a module its packages are imported, but for those that are being imported.
            parts = one.name.split(".")
            for count in range(2, len(parts) + 1):
                name = ".".join(parts[:count])
                if name != module and not module.startswith(name + "."):
                    edges[module].add(name)
    found += [f"{' and '.join(group)} import each other" for group in cycles(edges)]
    found += [
        f"tools/imports.py lists {a} importing {b} in a function, which it does not" for a, b in wanted.keys() - used
    ]
    return found


def check() -> list[str]:
    """Return what is wrong in halstream, a line each."""
    folders = {name.split(".")[1] for name in modules(PACKAGE) if "." in name}
    unlisted = [f"LAYERS of tools/imports.py lacks {name}" for name in sorted(folders - set(LAYERS))]
    return problems(PACKAGE, WANTED, CLOSING, LAYERS) + unlisted


if __name__ == "__main__":
    wrong = check()
    print("\n".join(wrong) or "imports: clean")
    sys.exit(1 if wrong else 0)
