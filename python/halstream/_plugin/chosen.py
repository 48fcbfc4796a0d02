"""Which test files a change is about: those that changed, and those that import what changed, by any way."""

from __future__ import annotations

import ast
import fnmatch
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

__all__ = ["affected", "test_files"]


def test_files(config: pytest.Config, files: Iterable[Path]) -> list[Path]:
    """Return those of some files that a session without arguments would collect tests from."""
    patterns: list[str] = config.getini("python_files")
    skipped: list[str] = config.getini("norecursedirs")
    folders = [config.rootpath / name for name in config.getini("testpaths")] or [config.rootpath]

    def is_one(file: Path) -> bool:
        if not any(fnmatch.fnmatch(str(file) if "/" in one else file.name, one) for one in patterns):
            return False
        inside = [file.relative_to(folder).parts[:-1] for folder in folders if file.is_relative_to(folder)]
        return any(not any(fnmatch.fnmatch(part, one) for part in parts for one in skipped) for parts in inside)

    return [file for file in files if is_one(file)]


def affected(changed: Collection[Path], files: Collection[Path], top: Path) -> set[Path]:
    """Return the changed files, and those that would run otherwise with them.

    Parameters
    ----------
    changed : collection of Path
        Also files that are not there any more.
    files : collection of Path
        All Python files of the project.
    top : Path
        The folder of the project, which modules may be named from.
    """
    names = {file: _names(file, top) for file in {*files, *changed}}
    by_name: dict[str, set[Path]] = defaultdict(set)
    for file, own in names.items():
        for name in own:
            by_name[name].add(file)
    users: dict[Path, set[Path]] = defaultdict(set)
    for file in files:
        for name in _imported(file, names[file]):
            for module in by_name.get(name, ()):
                users[module].add(file)
    _add_conftests(users, files)
    found = set(changed)
    new = list(changed)
    while new:
        more = users[new.pop()] - found
        found |= more
        new += more
    return found


def _names(file: Path, top: Path) -> set[str]:
    """Return the names that a file may be imported by: from the folder above its packages, and from the top."""
    folder = file.parent
    while (folder / "__init__.py").exists() and folder != top and folder != folder.parent:
        folder = folder.parent
    names = set()
    for start in (folder, top):
        if file.is_relative_to(start):
            parts = file.relative_to(start).with_suffix("").parts
            names.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names - {""}


def _imported(file: Path, own: Collection[str]) -> set[str]:
    """Return the modules that a file imports, with the packages around them, or may take from these."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for base in _bases(node, own, file.name == "__init__.py"):
                found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif file.name == "conftest.py" and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # pytest_plugins names modules
    return {part for name in found for part in _with_packages(name)}


def _bases(node: ast.ImportFrom, own: Collection[str], package: bool) -> Iterator[str]:
    """Yield the module that names are taken from, of a relative import for each name of its own file."""
    if not node.level:
        yield node.module or ""
        return
    for name in own:
        parts = name.split(".")
        up = node.level - package
        parts = parts[: len(parts) - up] if up else parts
        yield ".".join([*parts, *([node.module] if node.module else [])])


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _add_conftests(users: Mapping[Path, set[Path]], files: Collection[Path]) -> None:
    """Let what a conftest.py is for, which does not import it, count as using it."""
    for conftest in files:
        if conftest.name == "conftest.py":
            users[conftest].update(file for file in files if file.is_relative_to(conftest.parent))
