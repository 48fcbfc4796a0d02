"""Every function of libascendcl.so with NULL, 0 and handles that name nothing: codes, and no crash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ascend_help import Compiled, Run

#: Functions that are left out: aclAppLog needs a format, as printf does.
LEFT_OUT = {"aclAppLog"}


def functions(library: Path) -> dict[str, tuple[str, list[str]]]:
    """Return (result, types of parameters) of each function of the headers by its name."""
    text = "\n".join(path.read_text() for path in sorted((library / "include").rglob("*.h")))
    found = {}
    for result, name, listed in re.findall(r"(?m)^ACL_FUNC_VISIBILITY ([\w *]+?)(\w+)\(([^)]*)\);", text):
        types = [re.sub(r"\w+$", "", p.strip()).strip() for p in listed.split(",")] if listed != "void" else []
        found[name] = (result.strip(), types)
    return {name: kind for name, kind in found.items() if name not in LEFT_OUT}


def argument(kind: str, *, null: bool) -> str:
    """Return an expression for a parameter: nothing, or what names nothing and outputs that exist."""
    if kind == "aclrtIpcEventHandle":
        return "(aclrtIpcEventHandle){{0}}"
    if kind in ("aclrtStream", "aclrtEvent", "aclrtContext", "aclrtNotify", "aclmdlRI", "aclrtMemPool"):
        return "NULL" if null else "(void *)0x12340"
    if kind.endswith("*") or kind.endswith("*const") or kind.endswith("Func") or kind.endswith("Callback"):
        return (
            "NULL" if null or not kind.endswith("*") or re.search("char|void|aclDataBuffer", kind) else f"({kind})room"
        )
    return f"({kind})0" if null else f"({kind})-7"


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("null", [False, True])
def test_N4_no_argument_ends_the_program(
    library: Path, compiled: Compiled, run: Run, tmp_path: Path, null: bool, begun: bool
) -> None:
    known = functions(library)
    assert len(known) > 140
    lines = [
        "#include <acl/acl.h>",
        "#include <acl/acl_lookalike.h>",
        "#include <stdio.h>",
        "long long room[64];",
        "int main(void)",
        "{",
    ]
    if begun:
        lines += ["aclInit(NULL);", "if (aclrtSetDevice(0)) return 1;"]
    for name, (result, kinds) in sorted(known.items()):
        call = f"{name}({', '.join(argument(kind, null=null) for kind in kinds)})"
        lines += [f'fprintf(stderr, "{name}\\n");', f"{'' if result == 'void' else '(void)'}{call};"]
        if begun and name in ("aclFinalize", "aclrtResetDeviceForce", "aclrtResetDevice"):
            lines += ["if (aclrtSetDevice(0)) return 1;"]
    source = tmp_path / f"arguments_{null}_{begun}.c"
    source.write_text("\n".join([*lines, 'puts("done");', "return 0;", "}"]) + "\n")
    done = run(compiled(source))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr.splitlines()[-3:]
