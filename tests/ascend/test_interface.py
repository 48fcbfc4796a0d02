"""The headers of libascendcl.so against the documented interface, which interface.txt has."""

from __future__ import annotations

import re
from pathlib import Path

from ascend_help import Compiled

TABLE = Path(__file__).parent / "interface.txt"

#: The functions that the headers leave out, by the beginnings of their names, and why.
LEFT_OUT = {
    "aclrtCreateStreamConfigHandle": "one kind of chip has it, and programs look for it with dlsym",
    "aclrtDestroyStreamConfigHandle": "as aclrtCreateStreamConfigHandle",
    "aclrtSetStreamConfigOpt": "as aclrtCreateStreamConfigHandle",
    "aclrtCreateStreamV2": "as aclrtCreateStreamConfigHandle",
    "aclrtSubscribeHostFunc": "for operators of models on one kind of chip",
    "aclrtProcessHostFunc": "as aclrtSubscribeHostFunc",
    "aclrtUnSubscribeHostFunc": "as aclrtSubscribeHostFunc",
    "aclrtCntNotify": "the newest chips have counting notifies",
    "aclmdlRICaptureTask": "updates of captured kernels, and there are no kernels",
    "aclmdlRICaptureToModelRIBegin": "captures within captures",
    "aclmdlRIBuild": "models that are built task by task",
    "aclmdlRIBindStream": "as aclmdlRIBuild",
    "aclmdlRIUnbindStream": "as aclmdlRIBuild",
    "aclmdlRIEndTask": "as aclmdlRIBuild",
    "aclmdlRIAbort": "as aclmdlRIBuild",
    "aclmdlRIGetStreams": "tasks of a model one by one",
    "aclmdlRIGetTasksByStream": "as aclmdlRIGetStreams",
    "aclmdlRITask": "as aclmdlRIGetStreams",
    "aclmdlRIUpdate": "as aclmdlRIGetStreams",
}


def entries(kind: str) -> list[list[str]]:
    """Return the words behind one kind of entry of the table: the first one or two, and the rest of the line."""
    lines = [line.split(" ", 1) for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return [rest.split(" ") if kind != "function" else [rest] for found, rest in lines if found == kind]


def split_function(text: str) -> tuple[str, str, str]:
    """Return (result, name, parameters) of a function of the table."""
    found = re.fullmatch(r"(.*?) (\w+)\((.*)\)", text)
    assert found, text
    return found[1], found[2], found[3]


def headers(library: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((library / "include").rglob("*.h")))


def compile_checks(compiled: Compiled, tmp_path: Path, name: str, checks: list[str]) -> None:
    source = tmp_path / f"{name}.cc"
    lines = ["#include <acl/acl.h>", "#include <type_traits>", *checks, "int main() { return 0; }"]
    source.write_text("\n".join(lines) + "\n")
    compiled(source, "c++")


def test_N1_functions_have_the_documented_types(library: Path, compiled: Compiled, tmp_path: Path) -> None:
    functions = [split_function(words[0]) for words in entries("function")]
    text = headers(library)
    absent = {name for _, name, _ in functions if not re.search(rf"\b{name}\(", text)}
    assert len(functions) > 190
    assert absent == {name for _, name, _ in functions if name.startswith(tuple(LEFT_OUT))}
    checks = [
        f'static_assert(std::is_same<decltype(&{name}), {result} (*)({parameters})>::value, "{name}");'
        for result, name, parameters in functions
        if name not in absent
    ]
    compile_checks(compiled, tmp_path, "functions", checks)


def test_N1_numbers_are_the_documented_ones(compiled: Compiled, tmp_path: Path) -> None:
    values = entries("value")
    assert len(values) > 390
    checks = [f'static_assert(static_cast<long>({name}) == {number}L, "{name}");' for name, number in values]
    compile_checks(compiled, tmp_path, "values", checks)


def test_N1_structs_and_types_are_the_documented_ones(compiled: Compiled, tmp_path: Path) -> None:
    checks = []
    for owner, *kind, name in entries("member"):
        checks += [f'static_assert(std::is_same<decltype({owner}::{name}), {" ".join(kind)}>::value, "{owner}");']
    # That no member is missing or out of place shows in the sizes of the structs.
    owners = list(dict.fromkeys(owner for owner, *_ in entries("member")))
    for owner in owners:
        members = [(" ".join(kind), name) for found, *kind, name in entries("member") if found == owner]
        fields = " ".join(re.sub(r"^(.*?)(\[\d+\])?$", rf"\1 {name}\2;", kind) for kind, name in members)
        keyword = "union" if owner.endswith("Value") else "struct"
        checks += [f"{keyword} Documented_{owner} {{ {fields} }};"]
        same = [f"sizeof({owner}) == sizeof(Documented_{owner})"]
        same += [f"offsetof({owner}, {name}) == offsetof(Documented_{owner}, {name})" for _, name in members]
        checks += [f'static_assert({" && ".join(same)}, "{owner}");']
    for name, *kind in entries("type"):
        checks += [f'static_assert(std::is_same<{name}, {" ".join(kind)}>::value, "{name}");']
    assert len(checks) > 80
    compile_checks(compiled, tmp_path, "structs", ["#include <cstddef>", *checks])
