"""Compares the declarations of cuda/ and the names of libcuda with the vendor's own headers.

Usage: python tools/headers.py [VERSION ...]   (default: all of `TOOLKITS`)

A C++ compiler reads both. Parameters, results and fields are compared by size, signedness and
indirection, not by name: handles are integers here and pointers there. A function, a field or a number
that a toolkit does not have yet is counted and left out; one that no toolkit has is an error. The headers
are those of NVIDIA's wheels on PyPI, in build/headers, which stays for the next run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "headers"
SOURCES = ROOT / "tools" / "headers"
OURS = ROOT / "cuda"
#: Seconds for one call of the compiler.
LIMIT = 120

#: The oldest and the newest toolkit whose driver is supported, with the package that has its cuda.h.
TOOLKITS = {"11.8": "nvidia-cuda-runtime-cu11==11.8.89", "13.5": "nvidia-cuda-runtime==13.5.37"}

#: Our structures: the vendor's name, and for each of our fields the vendor's; None for a field that only
#: fills the structure up.
STRUCTURES: dict[str, tuple[str, dict[str, str | None]]] = {
    "CUmemPoolProps": (
        "CUmemPoolProps",
        {
            "allocType": "allocType",
            "handleTypes": "handleTypes",
            "location.type": "location.type",
            "location.id": "location.id",
            "win32SecurityAttributes": "win32SecurityAttributes",
            "maxSize": "maxSize",
            "usage": "usage",
            "reserved": None,
        },
    ),
    "CUDA_MEMCPY2D": (
        "CUDA_MEMCPY2D",
        {
            name: name
            for side in ("src", "dst")
            for name in (side + field for field in ["XInBytes", "Y", "MemoryType", "Host", "Device", "Array", "Pitch"])
        }
        | {"WidthInBytes": "WidthInBytes", "Height": "Height"},
    ),
    "CUDA_MEMCPY3D_PEER": (
        "CUDA_MEMCPY3D_PEER",
        {
            name: name
            for side in ("src", "dst")
            for name in (
                side + field
                for field in [
                    *("XInBytes", "Y", "Z", "LOD", "MemoryType", "Host", "Device", "Array", "Context"),
                    *("Pitch", "Height"),
                ]
            )
        }
        | {"WidthInBytes": "WidthInBytes", "Height": "Height", "Depth": "Depth"},
    ),
    "CUDA_MEMCPY3D": (
        "CUDA_MEMCPY3D",
        {
            name: name
            for side in ("src", "dst")
            for name in (
                side + field
                for field in [
                    *("XInBytes", "Y", "Z", "LOD", "MemoryType", "Host", "Device", "Array"),
                    *("Pitch", "Height"),
                ]
            )
        }
        | {name: name for name in ("reserved0", "reserved1", "WidthInBytes", "Height", "Depth")},
    ),
    "CUDA_MEMSET_NODE_PARAMS": (
        "CUDA_MEMSET_NODE_PARAMS",
        {name: name for name in ("dst", "pitch", "value", "elementSize", "width", "height")},
    ),
    "CUDA_KERNEL_NODE_PARAMS": (
        "CUDA_KERNEL_NODE_PARAMS",
        {f"{kind}{axis}": f"{kind}Dim{axis}" for kind in ("grid", "block") for axis in "XYZ"}
        | {"func": "func", "sharedBytes": "sharedMemBytes", "params": "kernelParams", "extra": "extra"}
        | {"kern": "kern", "ctx": "ctx"},
    ),
    "CUgraphNodeParams": (
        "CUgraphNodeParams",
        {"type": "type", "reserved0": None, "reserved1": None, "reserved2": "reserved2"}
        | {f"conditional.{name}": f"conditional.{name}" for name in ("handle", "type", "size", "phGraph_out", "ctx")},
    ),
    "CUmemAccessDesc": (
        "CUmemAccessDesc",
        {"location.type": "location.type", "location.id": "location.id", "flags": "flags"},
    ),
    "CUlaunchConfig": (
        "CUlaunchConfig",
        {f"{kind}{axis}": f"{kind}Dim{axis}" for kind in ("grid", "block") for axis in "XYZ"}
        | {"sharedBytes": "sharedMemBytes", "stream": "hStream", "attrs": "attrs", "numAttrs": "numAttrs"},
    ),
    "CUlaunchAttribute": (
        "CUlaunchAttribute",
        {"id": "id", "pad": "pad", "value.words": None, "value.cooperative": "value.cooperative"}
        | {f"value.clusterDim.{axis}": f"value.clusterDim.{axis}" for axis in "xyz"},
    ),
    "CUstreamBatchMemOpParams": (
        "CUstreamBatchMemOpParams",
        {
            "operation": "operation",
            "word.operation": "waitValue.operation",
            "word.address": "waitValue.address",
            "word.value": "waitValue.value64",
            "word.flags": "waitValue.flags",
            "word.alias": "waitValue.alias",
            "pad": "pad",
        },
    ),
}

#: Where the two differ in text and not in what is passed: a function or field, ours, the vendor's, why.
EQUAL = [
    ("cuDeviceGetUuid", "*u8", "*s16", "the identifier is a structure of 16 bytes"),
    ("cuDeviceGetUuid_v2", "*u8", "*s16", "the identifier is a structure of 16 bytes"),
    ("CUlaunchConfig.attrs", "*void", "*s72", "the list of attributes"),
    ("cuGraphAddNode_v2", "*const void", "*const s8", "the kinds of edges, a list that is left out here"),
    ("CUDA_KERNEL_NODE_PARAMS", "size 72", "size 56", "toolkit 11's, of a function that is not used: the same start"),
]

#: Numbers that older headers have under another name, where the newer name meant something else.
RENAMED = {
    f"CU_DEVICE_ATTRIBUTE_CAN_USE_{ability}": f"CU_DEVICE_ATTRIBUTE_CAN_USE_{ability}_V2"
    for ability in ("64_BIT_STREAM_MEM_OPS", "STREAM_WAIT_VALUE_NOR")
}


class Fact(NamedTuple):
    """A line of a described header."""

    kind: str
    name: str
    text: str


class Result(NamedTuple):
    """What a comparison has found."""

    same: int
    absent: list[str]
    problems: list[str]


# -- the compiler -------------------------------------------------------------


def compiler() -> list[str]:
    """Return the command of the C++ compiler."""
    return os.environ.get("CXX", "c++").split()


def run(command: list[str | Path], what: str) -> str:
    """Return what a command prints; end with its error if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except FileNotFoundError:
        raise SystemExit(f"headers: there is no {command[0]}; install it, or name a C++ compiler in CXX") from None
    if done.returncode:
        raise SystemExit(f"headers: {what} failed:\n{done.stderr.strip()}")
    return done.stdout


def describe(source: str, include: Iterable[Path], options: Iterable[str] = ()) -> list[Fact]:
    """Compile and run a program of tools/headers, and return the lines that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        program, text = Path(folder, "describe"), Path(folder, "describe.cpp")
        text.write_text(source)
        words = [f"-I{path}" for path in (SOURCES, *include)]
        command = [*compiler(), "-std=c++17", "-O0", "-w", *words, *options, "-o", program, text]
        run([*command], "the compiler")
        lines = run([program], "the program").splitlines()
    return [Fact(*line.split(" ", 2)) for line in lines]


def fields(ours: bool, declared: Collection[str] | None = None) -> str:
    """Return the lines that describe the structures, from our side or from the vendor's: all, or those declared."""
    lines = []
    for name, (theirs, pairs) in STRUCTURES.items():
        if declared is not None and theirs not in declared:
            continue
        lines.append(f'LAYOUT("{name}", {name if ours else theirs})')
        for field, other in pairs.items():
            if other is not None:
                lines.append(f'FIELD("{name}.{field}", {name if ours else theirs}, {field if ours else other})')
    return "\n".join(lines)


def of_ours(folder: Path = OURS) -> list[Fact]:
    """Return what symbols.h in a folder declares."""
    missing = fields_without_pair((folder / "symbols.h").read_text())
    if missing:
        raise SystemExit(f"headers: STRUCTURES in {__file__} lacks {', '.join(missing)}")
    source = (SOURCES / "ours.cpp").read_text().replace("    FIELDS\n", fields(ours=True) + "\n")
    return describe(source, [folder])


def fields_without_pair(header: str) -> list[str]:
    """Return the structures and fields of our header that `STRUCTURES` does not list."""
    missing = []
    for _, body, name in re.findall(r"^typedef (struct|union) \{\n(.*?)^\} (\w+);", header, flags=re.M | re.S):
        if name == "hs_api_table":
            continue
        known = {part for path in STRUCTURES.get(name, ("", {}))[1] for part in path.split(".")}
        found = re.findall(r"(\w+)(?:\[\d+\])?\s*[,;]", body)
        missing += [f"{name}.{field}" for field in found if field not in known]
    return missing


def of_vendor(header: Path, facts: Iterable[Fact]) -> list[Fact]:
    """Return what the vendor's header declares under the names of our facts.

    Two passes, since the older forms of functions are declared only for the vendor's own use, and the
    newer ones hide them behind macros of the same name.
    """
    facts = list(facts)
    found: list[Fact] = []
    seen: set[str] = set()
    for option in (), ("-D__CUDA_API_VERSION_INTERNAL",):
        command = [*compiler(), "-std=c++17", "-E", "-dD", *option, header]
        text = run([*command], "the preprocessor")
        plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        called = set(re.findall(r"\b(cu\w+)\s*\(", plain))
        words = set(re.findall(r"\w+", text))
        lines = []
        for kind, name, _ in facts:
            if name in seen:
                continue
            if kind == "function" and name in called:
                lines.append(f"#undef {name}\nFUNCTION({name})")
                seen.add(name)
            elif kind == "number" and name in words:
                older = RENAMED.get(name, name)
                lines.append(f'NUMBER("{name}", {older if older in words else name})')
                seen.add(name)
        if not option:
            lines.append(fields(ours=False, declared=words))
        source = '#include "cuda.h"\n#include "describe.hpp"\nint main()\n{\n' + "\n".join(lines) + "\n}\n"
        found += describe(source, [header.parent], option)
    return found


# -- the comparison -----------------------------------------------------------


def equal(name: str, ours: str, theirs: str) -> bool:
    """Whether two texts of a declaration mean the same to a caller."""
    for place, mine, other, _ in EQUAL:
        if place == name:
            theirs = theirs.replace(other, mine)
    mine, other = split(ours), split(theirs)
    return len(mine) == len(other) and all(one_equal(a, b) for a, b in zip(mine, other, strict=True))


def split(text: str) -> list[str]:
    """Return the result and the parameters of a function's text, and any other text as it is."""
    return re.split(r", (?![^(]*\))", re.sub(r"^(\w+)\((.*)\)$", r"\1, \2", text))


def one_equal(mine: str, other: str) -> bool:
    """Whether two types have the same size, signedness and indirection.

    A handle is an unsigned integer here. An enumeration has no sign of its own there.
    """
    other = other.replace("h64", "u64")
    if "e32" in other:
        other, mine = other.replace("e32", "i32"), re.sub(r"\bu32\b", "i32", mine)
    return mine == other


def compare(ours: Iterable[Fact], theirs: Iterable[Fact]) -> Result:
    """Return what is the same, what the vendor's header lacks, and what differs."""
    known = {(fact.kind, fact.name): fact.text for fact in theirs}
    same, absent, problems = 0, [], []
    for kind, name, text in ours:
        other = known.get((kind, name))
        if other is None:
            absent.append(name)
        elif equal(name, text, other):
            same += 1
        else:
            problems.append(f"{kind} {name}: {text} here, {other} in the vendor's header")
    return Result(same, absent, problems)


def nowhere(absent: Iterable[list[str]]) -> list[str]:
    """Return what no toolkit has."""
    common = set.intersection(*map(set, absent))
    return [f"{name} is in no toolkit" for name in sorted(common)]


# -- the headers --------------------------------------------------------------


def installed(version: str) -> Path:
    """Return the cuda.h of a toolkit, whose package is installed if it is not there."""
    place = FOLDER / version
    if not (place / "installed").exists():
        print(f"headers: installing {TOOLKITS[version]} into {place.relative_to(ROOT)}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", place]
        if subprocess.run([*pip, TOOLKITS[version]]).returncode:
            raise SystemExit(f"headers: pip could not install {TOOLKITS[version]}, see above")
        (place / "installed").touch()
    header = next(place.glob("nvidia/*/include/cuda.h"), None)
    if header is None:
        raise SystemExit(f"headers: {TOOLKITS[version]} has no cuda.h; delete {place.relative_to(ROOT)}")
    return header


def libcuda_names() -> set[str]:
    """Return the functions that our libcuda.so.1 exports."""
    table = run(["go", "run", "./libcuda/names"], "the list of the functions of libcuda")
    return set(re.findall(r"FUNCTION\(\d+, (\w+)\)", table))


def not_exported(header: Path, ours: set[str]) -> list[str]:
    """Return what a header of the driver declares and our libcuda.so.1 does not export."""
    text = header.read_text()
    declared = set(re.findall(r"CUDAAPI\s+(cu\w+)\s*\(", text))
    declared |= set(re.findall(r"#\s*define\s+cu\w+\s+(cu[A-Z]\w+)", text))
    twins = re.findall(r"__CUDA_API_(PTSZ|PTDS)\((cu\w+)\)", text)
    declared |= {name for _, name in twins} | {f"{name}_{kind.lower()}" for kind, name in twins}
    inline = set(re.findall(r"static inline CUresult (cu\w+)", text))
    return sorted(declared - inline - ours)


def main(wanted: list[str]) -> int:
    unknown = set(wanted) - set(TOOLKITS)
    if unknown:
        raise SystemExit(f"headers: no toolkit {', '.join(sorted(unknown))}; there are {', '.join(TOOLKITS)}")
    ours = of_ours()
    counts = {kind: sum(fact.kind == kind for fact in ours) for kind in ("function", "number", "layout", "field")}
    print("headers: declared here: " + ", ".join(f"{n} {kind}s" for kind, n in counts.items()), flush=True)
    problems, absent, exported = [], [], libcuda_names()
    for version in wanted or TOOLKITS:
        header = installed(version)
        problems += [f"toolkit {version}: libcuda has no function {name}" for name in not_exported(header, exported)]
        result = compare(ours, of_vendor(header, ours))
        absent.append(result.absent)
        problems += [f"toolkit {version}: {line}" for line in result.problems]
        left_out = f", not in it: {', '.join(result.absent)}" if result.absent else ""
        print(
            f"headers: toolkit {version}: {result.same} the same, {len(result.problems)} differ{left_out}", flush=True
        )
    if not wanted:
        problems += nowhere(absent)
    for line in problems:
        print(f"headers: {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
