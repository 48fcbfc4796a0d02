"""The sources of the two libraries, and the operators that are compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ._errors import PluginError

__all__ = ["Operator", "files", "operators", "sources", "translation_units"]

_PACKAGE = Path(__file__).resolve().parents[2]


class Operator(NamedTuple):
    """An operator of ``operators.txt``."""

    name: str
    function: str
    header: str
    key: int  #: number of the input whose type chooses the kernel, -1: the first output
    templates: str = ""  #: its template arguments


def sources() -> Path:
    """Return the folder of the sources: part of an installed package, or of a tree for development.

    Raises
    ------
    PluginError
        If there is none.
    """
    for folder in (_PACKAGE / "paddle" / "_source", _PACKAGE.parents[1] / "paddle"):
        if (folder / "plugin.c").is_file():
            return folder
    raise PluginError(
        "this installation of halstream lacks the sources of its plug-in for Paddle (halstream/paddle/_source); "
        "install it again: `pip install --force-reinstall --no-deps halstream`"
    )


def files(folder: Path) -> list[Path]:
    """Return all files that a library is made of, sorted."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".cpp", ".h", ".txt"))


def operators(include: Path) -> list[Operator]:
    """Return the operators that an installed Paddle has functions for.

    Parameters
    ----------
    include : Path
        Folder of Paddle's headers.
    """
    known: dict[str, str] = {}
    found = []
    for one in _listed():
        path = include / "paddle" / "phi" / "kernels" / one.header
        if one.header not in known:
            known[one.header] = path.read_text() if path.is_file() else ""
        # Some functions are declared by macros, with a part of their name.
        parts = {one.function, one.function.removesuffix("Kernel"), one.function.removesuffix("GradKernel")}
        names = "|".join(parts | {one.function.removesuffix("Kernel").removeprefix("Logical")})
        if re.search(rf"\b(?:{names})\b", known[one.header]):
            plain = re.search(rf"template <typename Context>\s*(?:\w+ )?void {one.function}\(", known[one.header])
            found.append(one._replace(templates="phi::CPUContext" if plain else "float, phi::CPUContext"))
    return found


def _listed() -> Iterator[Operator]:
    for line in (sources() / "operators" / "operators.txt").read_text().splitlines():
        words = line.partition("#")[0].split()
        if words:
            name, function, header, *key = words
            yield Operator(name, function, f"{header}_kernel.h", int(key[0]) if key else 0)


def translation_units(found: list[Operator], parts: int) -> list[str]:
    """Return the text of C++ files that register operators, split into several."""
    texts = []
    for part in range(parts):
        mine = found[part::parts]
        headers = sorted({one.header for one in mine})
        lines = ['#include "launch.h"', *(f"#include <paddle/phi/kernels/{header}>" for header in headers)]
        lines += [f"HALSTREAM_OPERATOR({one.name}, {one.key}, {one.function}<{one.templates}>)" for one in mine]
        texts.append("\n".join([*lines, ""]))
    return texts
