"""What `halstream init` writes into a project, and where."""

from __future__ import annotations

import configparser
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .._checks.known import in_force
from .._lint.run import files
from . import blocks
from .blocks import Block

__all__ = ["Change", "ProjectError", "additions", "project_of", "removals", "uses_torch"]

#: Files that the folder of a project has.
_SIGNS = ("pyproject.toml", "pytest.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git")
#: Files with settings of pytest in the order in which it looks for them, and the table that it reads there.
_SETTINGS = (
    ("pytest.toml", "pytest"),
    (".pytest.toml", "pytest"),
    ("pytest.ini", "pytest"),
    (".pytest.ini", "pytest"),
    ("pyproject.toml", "tool.pytest"),
    ("pyproject.toml", "tool.pytest.ini_options"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)
_WORKFLOW = ".github/workflows/streams.yml"
_SUPPRESSIONS = "halstream-suppressions.txt"
_AGENTS = "AGENTS.md"
#: All files that may have a block.
_ALL = (*dict.fromkeys(name for name, _ in _SETTINGS), _WORKFLOW, _SUPPRESSIONS, _AGENTS)


class ProjectError(Exception):
    """The project cannot be set up, or set back; the text says why and what to do."""


class Change(NamedTuple):
    """A file, what it has and what it is to have; None where there is no such file."""

    path: Path
    before: str | None
    after: str | None


def project_of(folder: Path) -> Path:
    """Return the folder of the project that a folder is in.

    Raises
    ------
    ProjectError
        If it is in none.
    """
    for one in (folder, *folder.parents):
        if any((one / sign).exists() for sign in _SIGNS):
            return one
    raise ProjectError(
        f"no project is found in {folder}: neither there nor above is one of {', '.join(_SIGNS)}; "
        "call halstream init in the folder of a project, or make a pyproject.toml there"
    )


def uses_torch(root: Path) -> bool:
    """Return whether a file of the project imports torch."""
    imports = re.compile(r"(?m)^\s*(?:import|from) torch\b")
    return any(imports.search(Path(file).read_text(errors="replace")) for file in files([str(root)]))


def additions(root: Path, torch: bool) -> Iterator[Change]:
    """Yield what is to be added; a file that has a block already, or keys and files of these names, stays as it is.

    Raises
    ------
    ProjectError
        If a file cannot be read, or its settings have no place for lines.
    """
    yield from _settings(root, torch)
    suppressions = "".join(f"{line}\n" for line in _suppressions())
    for name, block in (
        (_WORKFLOW, Block(_workflow(root, torch))),
        (_SUPPRESSIONS, Block(suppressions)),
        (_AGENTS, Block(_agents(torch), "<!-- ", " -->")),
    ):
        path = root / name
        text = _read(path)
        if text is not None and (blocks.found(text) or name == _WORKFLOW):
            continue
        yield Change(path, text, blocks.inserted(text, block))


def removals(root: Path) -> Iterator[Change]:
    """Yield what takes the additions back.

    Raises
    ------
    ProjectError
        If the lines of a block were changed since.
    """
    for name in _ALL:
        path = root / name
        text = _read(path)
        if text is None or not blocks.found(text):
            continue
        try:
            rest = blocks.without(text)
        except blocks.ChangedBlockError as exc:
            raise ProjectError(f"{path}: {exc}; nothing is undone. Take them out by hand") from None
        yield Change(path, text, rest)


def _read(path: Path) -> str | None:
    """Return the text of a file with its own ends of lines."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise ProjectError(f"{path} cannot be read: {exc}") from None


# -- settings of pytest -------------------------------------------------------


def _settings(root: Path, torch: bool) -> Iterator[Change]:
    """Yield the change of the file that has pytest's settings."""
    name, table = _place(root)
    path = root / name
    text = _read(path)
    known = _keys(path, text or "", table)
    quoted = name.endswith(".toml") and not table.endswith("ini_options")
    values = {
        "stream_sanitize": "true",
        "stream_schedules": '"20"' if quoted else "20",
        "stream_suppressions": f'"{_SUPPRESSIONS}"' if name.endswith(".toml") else _SUPPRESSIONS,
        **({"stream_torch": "true"} if torch else {}),
    }
    lines = "".join(f"{key} = {value}\n" for key, value in values.items() if key not in (known or ()))
    if (text is not None and blocks.found(text)) or not lines:
        return
    if known is None:
        # The table is not there: it goes to the end.
        blank = "\n" if text else ""
        after = blocks.inserted(text, Block(f"{blank}[{table}]\n{lines}"))
    else:
        header = re.search(rf"(?m)^\[{re.escape(table)}\][^\n]*(?:\n|\Z)", text or "")
        if header is None:
            raise ProjectError(
                f"{path} has its table {table} in a form that is not edited here; add these lines to it:\n{lines}"
            )
        after = blocks.inserted(text, Block(lines), header.end())
    if not {key for key in values} <= set(_keys(path, after, table) or ()):
        raise ProjectError(f"{path} has no place for settings in {table}; add these lines to it:\n{lines}")
    yield Change(path, text, after)


def _place(root: Path) -> tuple[str, str]:
    """Return the file with pytest's settings, and their table: where there are none, pyproject.toml or pytest.ini."""
    for name, table in _SETTINGS:
        path = root / name
        text = _read(path)
        if text is None:
            continue
        keys = _keys(path, text, table)
        # Files of pytest's own count even without the table, and this one is no table of settings by itself.
        own = name.lstrip(".").startswith("pytest.")
        if own or (keys is not None and (table != "tool.pytest" or set(keys) - {"ini_options"})):
            return name, table
    if (root / "pyproject.toml").exists():
        return "pyproject.toml", "tool.pytest.ini_options"
    return "pytest.ini", "pytest"


def _keys(path: Path, text: str, table: str) -> list[str] | None:
    """Return the keys of a table, None where there is no such table."""
    try:
        if path.suffix == ".toml":
            found: Any = _toml().loads(text)
            for part in table.split("."):
                found = found.get(part) if isinstance(found, dict) else None
            return list(found) if isinstance(found, dict) else None
        parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
        parser.read_string(text)
        return list(parser[table]) if parser.has_section(table) else None
    except (ValueError, configparser.Error) as exc:
        said = " ".join(str(exc).split())
        raise ProjectError(f"{path} cannot be parsed: {said}; repair it, and call halstream init again") from None


def _toml() -> Any:
    """Return the reader of TOML; pytest brings one to Python 3.10."""
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


# -- files --------------------------------------------------------------------


def _suppressions() -> Iterator[str]:
    yield "# Rules for findings that are known and are to stay, one a line, for example race:loader.py:Loader.fill"
    yield "# (each report ends with the rule that suppresses it). Add yours below these lines."
    for rule in in_force():
        yield f"# In force by itself for {rule.library}, and not needed here: {rule}"
        yield f"#   {rule.reason}"


def _workflow(root: Path, torch: bool) -> str:
    own = ""
    if (root / "pyproject.toml").exists() or (root / "setup.py").exists():
        own = "      - run: pip install .\n"
    elif (root / "requirements.txt").exists():
        own = "      - run: pip install -r requirements.txt\n"
    module = """\
      - id: torch
        run: python -c "import torch; print('version=' + torch.__version__)" >> "$GITHUB_OUTPUT"
      - uses: actions/cache@v4 # the module for the real torch, which is compiled once for each torch and halstream
        with:
          path: ~/.cache/halstream
          key: halstream-${{ runner.os }}-${{ steps.torch.outputs.version }}-${{ hashFiles('wheels/halstream-*') }}
      - run: halstream build-torch
"""
    return f"""\
name: streams
on: [push, pull_request]
permissions:
  contents: read
  security-events: write
jobs:
  streams:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
{own}\
      - run: pip install "$(echo wheels/halstream-*-manylinux_2_28_x86_64.whl)[cli]" pytest
{module if torch else ""}\
      - run: pytest --stream-schedules=50 --stream-report=sarif:streams.sarif --stream-report=github
      - uses: github/codeql-action/upload-sarif@v3
        if: always()
        with:
          sarif_file: streams.sarif
          category: streams
"""


def _agents(torch: bool) -> str:
    words = " --torch" * torch
    return f"""\
## Code that uses device streams

Streams, events, pinned memory and non-blocking copies are checked without a GPU, by halstream.

- After a change call `halstream verify --json{words}`. It runs the tests that the change is about under a
  sanitizer and under 50 orders of the device. Exit code 0: nothing is wrong; 1: see `findings` and `failures`; 2: see
  `message`.
- A finding names two operations with their lines, and why nothing orders them. `halstream explain CODE` says what it
  means and how it is usually repaired. Do not repair one by a sleep or by a synchronization of the whole device.
- `patches` has lines that were tried: `git apply` them, and call `halstream verify` again.
- `replay` of a finding is the command that shows it again. A new test of streams needs no GPU either.
"""
