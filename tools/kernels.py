"""Hands every kernel of tests and benchmarks to NVIDIA's own assembler and compiler; needs no GPU.

Usage: python tools/kernels.py [VERSION ...]   (default: all of `TOOLKITS`)

The look-alike driver executes C functions in place of kernels, so it cannot find a mistake in their
text. ptxas assembles each PTX text, and NVRTC compiles each CUDA source, for the oldest and a recent
architecture of each toolkit. The toolkits come from PyPI into build/kernels, which stays for the next run.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from source_files import source_files

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "kernels"
#: Seconds for one call of a compiler.
LIMIT = 120

#: What begins a kernel's definition in PTX and in CUDA C++.
DEFINITION = re.compile(r"\.visible \.entry\b|__global__ void\b")
_FUNCTION = re.compile(r"(template\s*<typename \w+>\s*)?__global__ void (\w+)")
_GO = re.compile(r"(\w+)\s*=\s*(?:(\w+)\s*\+\s*)?`([^`]*)`")


class Toolkit(NamedTuple):
    """Packages of one release, and the architectures to compile for."""

    packages: tuple[str, ...]
    architectures: tuple[int, ...]


TOOLKITS = {
    "12.9": Toolkit(("nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-nvrtc-cu12==12.9.86"), (50, 90)),
    "13.5": Toolkit(("nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-nvrtc==13.5.37"), (75, 100)),
}


class Kernel(NamedTuple):
    """A program as it stands in a file."""

    path: str
    text: str

    @property
    def is_ptx(self) -> bool:
        return ".visible .entry" in self.text


#: Programs with a mistake on purpose: the file, words of the program, and words of the refusal.
REFUSED = (
    ("hal/haltest/ptx.go", "syntax_error_here", "Not a name of any known instruction"),
    ("tests/conformance/test_module.py", "y[0] = v", 'identifier "y" is undefined'),
    ("tests/dialects/test_cuda_core_kernels.py", "{ y; }", 'identifier "y" is undefined'),
    ("tests/dialects/test_cupy_raw.py", "{ x; }", 'identifier "x" is undefined'),
)

#: How many definitions of a file are no whole program, and why.
LEFT_OUT = {
    "tests/fakecuda/fakecuda_kernels.py": (1, "it is put together from parts; a GPU has loaded each of them"),
    "docs/kernels.md": (3, "they are in programs of the page, which the tests of the pages run"),
    "docs/cuda_core.md": (1, "as above"),
    "tests/libcuda/programs/runtime.h": (2, "they are in the text of a fat binary, which the tests run"),
    **dict.fromkeys(
        (
            "docs/errors/device-lost.md",
            "docs/errors/kernel-barrier.md",
            "docs/errors/kernel-bounds.md",
            "docs/errors/kernel-shared-race.md",
            "docs/errors/kernel-uninitialised.md",
        ),
        (2, "they are written from python/halstream/_explain/pages.py"),
    ),
    "hal/host/kernel_test.go": (1, "what follows its name is different in each test"),
    "libcuda/link_test.go": (2, "they are empty, and parts of programs that are linked"),
    "tests/libcuda/programs/driver.h": (1, "it is put together from lines of C; programs of the tests launch it"),
    "tests/libcuda/programs/edges.c": (1, "as above"),
    "tests/dialects/test_cupy_raw.py": (6, "they come behind variables and headers; the tests compile them"),
    "tests/conformance/test_kernel_compile.py": (1, "it is looked for in what the compiler made"),
}


# -- the kernels of the tree ------------------------------------------------


def parsed(source: str) -> ast.AST:
    """Return the tree of a program, which may be indented; of a part of one an empty tree."""
    for text in (textwrap.dedent(source), "if True:\n" + source):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    return ast.Module([], [])  # `found_in` reports what it defines


def in_python(source: str) -> Iterator[str]:
    """Yield the programs among the strings of a Python file, and of Python programs in its strings."""
    for node in ast.walk(parsed(source)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, (str, bytes)):
            continue
        text = node.value if isinstance(node.value, str) else node.value.decode(errors="replace")
        if not DEFINITION.search(text):
            continue
        if text.lstrip().startswith((".version", 'extern "C"', "template", "__global__")):
            yield text
        elif "import" in text:
            yield from in_python(text)


def in_go(source: str) -> Iterator[str]:
    """Yield the programs among the constants of a Go file, with the constant that each begins with."""
    known: dict[str, str] = {}
    for name, head, text in _GO.findall(source):
        known[name] = known.get(head, "") + text
        if DEFINITION.search(known[name]):
            yield known[name]


def found_in(path: str, source: str) -> tuple[list[Kernel], list[str]]:
    """Return the programs of a file, and what is wrong if definitions are in none of them."""
    read = {".py": in_python, ".go": in_go}.get(Path(path).suffix)
    texts = list(read(source)) if read is not None else []
    defined = len(DEFINITION.findall(source))
    seen = sum(len(DEFINITION.findall(text)) for text in texts)
    left_out = LEFT_OUT.get(path, (0, ""))[0]
    problems = []
    if defined != seen + left_out:
        problems.append(
            f"{path} defines {defined} kernels, of which {seen} are in strings that this tool can read and "
            f"{left_out} are listed in LEFT_OUT: write the program as one string, or list it with the reason"
        )
    return [Kernel(path, text) for text in texts], problems


def tracked() -> Iterator[tuple[str, str]]:
    """Yield the names and contents of the tree's text files, but for this tool and its test."""
    for path in source_files(ROOT):
        name = str(path.relative_to(ROOT))
        own = path == Path(__file__).resolve() or "kernels_tool" in name
        if path.suffix in {".py", ".go", ".c", ".h", ".md"} and not own:
            yield name, path.read_text()


# -- the compilers ----------------------------------------------------------


def installed(version: str) -> Path:
    """Return the folder with a toolkit's packages, installed if they are not there."""
    place = FOLDER / version
    if not (place / "installed").exists():
        print(f"kernels: installing toolkit {version} into {place.relative_to(ROOT)}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", place]
        if subprocess.run([*pip, *TOOLKITS[version].packages]).returncode:
            raise SystemExit(f"kernels: pip could not install toolkit {version}, see above")
        (place / "installed").touch()
    return place


def assemble(place: Path, kernel: Kernel, architecture: int) -> str:
    """Return ptxas's refusal of a program, or nothing."""
    tool = next(place.glob("nvidia/*/bin/ptxas"), None)
    if tool is None:
        raise SystemExit(f"kernels: the packages in {place.relative_to(ROOT)} have no ptxas; delete the folder")
    tool.chmod(0o755)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(kernel.text.rstrip("\0"))
        command = [tool, f"--gpu-name=sm_{architecture}", "-o", Path(folder, "kernel.cubin"), source]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    return f"{done.stdout}{done.stderr}".strip() or f"exit code {done.returncode}" if done.returncode else ""


#: The package's own use of NVRTC, which takes the library from the first folder on the path. The
#: cache is not asked, so the compiler sees the text each time.
_COMPILE = """
import sys
from halstream._errors import CompileError
from halstream._kernel import _nvrtc
wanted, name, architecture = sys.argv[1:]
if ".".join(map(str, _nvrtc.version())) != wanted:
    sys.exit(f"NVRTC {_nvrtc.version()} was loaded in place of {wanted}")
try:
    _nvrtc._compile(sys.stdin.read(), (name,), architecture, ("--std=c++17",), _nvrtc.library(), f"kernel {name}")
except CompileError as exc:
    sys.exit(str(exc))
"""


def names(text: str) -> list[str]:
    """Return the kernels that a CUDA source defines; of a template the instance for float."""
    return [f"{name}<float>" if template else name for template, name in _FUNCTION.findall(text)]


def compile_source(place: Path, kernel: Kernel, architecture: int) -> str:
    """Return NVRTC's refusal of a source, or nothing."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(ROOT / "python")])}
    for name in names(kernel.text):
        command = [sys.executable, "-c", _COMPILE, place.name, name, f"sm_{architecture}"]
        done = subprocess.run(command, input=kernel.text, capture_output=True, text=True, env=env, timeout=LIMIT)
        if done.returncode:
            return f"{done.stdout}{done.stderr}".strip() or f"exit code {done.returncode}"
    return ""


def build(place: Path, kernel: Kernel, architecture: int) -> str:
    """Return a compiler's refusal of a program, or nothing."""
    return (assemble if kernel.is_ptx else compile_source)(place, kernel, architecture)


# -- the judgement ----------------------------------------------------------


def problem(kernel: Kernel, refusal: str) -> str:
    """Return what is wrong about a compiler's answer, or nothing."""
    for path, words, expected in REFUSED:
        if kernel.path == path and words in kernel.text:
            if not refusal:
                return f"it was compiled, though REFUSED lists it for {words!r}"
            return "" if expected in refusal else f"it was refused for another reason than {expected!r}: {refusal}"
    return refusal


def judge(kernels: Iterable[Kernel], label: str, compiler: Callable[[Kernel], str]) -> list[str]:
    """Return a line for each program about which a compiler's answer is wrong."""
    lines = []
    for kernel in kernels:
        wrong = problem(kernel, compiler(kernel))
        if wrong:
            first = kernel.text.strip().splitlines()[0]
            lines.append(f"{kernel.path} ({first}) with {label}: {wrong}")
    return lines


def main(wanted: list[str]) -> int:
    unknown = set(wanted) - set(TOOLKITS)
    if unknown:
        raise SystemExit(f"kernels: no toolkit {', '.join(sorted(unknown))}; there are {', '.join(TOOLKITS)}")
    kernels, problems = [], []
    for path, source in tracked():
        found, wrong = found_in(path, source)
        kernels += found
        problems += wrong
    ptx = sum(kernel.is_ptx for kernel in kernels)
    print(f"kernels: {ptx} PTX texts and {len(kernels) - ptx} CUDA sources", flush=True)
    if not ptx or ptx == len(kernels):
        problems.append("no PTX text or no CUDA source was found: the search is broken")
    for version in wanted or TOOLKITS:
        place = installed(version)
        for architecture in TOOLKITS[version].architectures:
            label = f"toolkit {version} for sm_{architecture}"
            wrong = judge(kernels, label, functools.partial(build, place, architecture=architecture))
            print(f"kernels: {label}: {len(kernels) - len(wrong)} as expected, {len(wrong)} not", flush=True)
            problems += wrong
    for line in problems:
        print(f"kernels: {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
