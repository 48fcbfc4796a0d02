"""Which test files a change is about: those that changed, and those that import what changed, by any way."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

__all__ = ["affected", "test_files"]

#: Imports, which begin a line or a statement on it.
_IMPORT = re.compile(r"(?m)(?:^|[;:])[ \t]*import[ \t]+([^\n;#]*)")
_FROM = re.compile(r"(?m)(?:^|[;:])[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;#]*)")
_STRING = re.compile(r"""["']([\w.]+)["']""")


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
    """Return the modules that a file imports, with the packages around them, or may take from these.

    The text is searched, as the syntax trees of a large project take half a minute; what looks like an import in a
    string counts, too, and one more test runs.
    """
    try:
        text = file.read_bytes().decode(errors="replace").replace("\\\n", " ").replace("\\\r\n", " ")
    except OSError:
        return set()
    found = {_first_word(part) for names in _IMPORT.findall(text) for part in names.split(",")}
    for module, names in _FROM.findall(text):
        for base in _bases(module, own, file.name == "__init__.py"):
            found |= {base, *(f"{base}.{_first_word(part)}" for part in names.strip("()").split(","))}
    if file.name == "conftest.py":
        found.update(_STRING.findall(text))  # pytest_plugins names modules
    return {part for name in found for part in _with_packages(name)}


def _first_word(text: str) -> str:
    """Return the name of ``name as other``, behind comments of the lines before it."""
    words = re.sub(r"#[^\n]*", "", text).split()
    return words[0] if words else ""


def _bases(module: str, own: Collection[str], package: bool) -> Iterator[str]:
    """Yield the module that names are taken from, of a relative import for each name of its own file."""
    rest = module.lstrip(".")
    level = len(module) - len(rest)
    if not level:
        yield module
        return
    for name in own:
        parts = name.split(".")
        up = level - package
        parts = parts[: len(parts) - up] if up else parts
        yield ".".join([*parts, *([rest] if rest else [])])


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _add_conftests(users: Mapping[Path, set[Path]], files: Collection[Path]) -> None:
    """Let what a conftest.py is for, which does not import it, count as using it."""
    for conftest in files:
        if conftest.name == "conftest.py":
            users[conftest].update(file for file in files if file.is_relative_to(conftest.parent))
