"""The headers of libascendcl.so, what it exports, and its packages for build tools."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import halstream as hs
import halstream.acl.constants as constants
import pytest
from ascend_help import PROGRAMS, ROOT, Compiled, Run
from halstream.acl._codes import BY_NAME

PART = re.compile(r"ACL_LOOKALIKE_ABSENT\((\w+), ACL_LOOKALIKE_(\w+)\)")


def headers(library: Path) -> str:
    """Return the text of all headers."""
    return "\n".join(path.read_text() for path in sorted((library / "include").rglob("*.h")))


def test_N1_the_library_exports_what_its_headers_declare(library: Path) -> None:
    words = ["nm", "-D", "--defined-only", str(library / "lib" / "libascendcl.so")]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    declared = re.findall(r"(?m)^ACL_FUNC_VISIBILITY [^;(]*?(\w+)\(", headers(library))
    assert len(declared) > 100
    assert sorted(line.split()[2] for line in listed.splitlines()) == sorted(declared)


def test_N1_the_library_needs_the_c_library_only(library: Path) -> None:
    words = ["readelf", "-d", str(library / "lib" / "libascendcl.so")]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", listed)
    assert {name.partition(".so")[0].partition("-linux")[0] for name in needed} <= {"libc", "libm", "libpthread", "ld"}


def test_N1_each_header_stands_alone(library: Path, compiled: Compiled, tmp_path: Path) -> None:
    for path in sorted((library / "include").rglob("*.h")):
        name = path.relative_to(library / "include")
        source = tmp_path / f"{path.stem}.c"
        source.write_text(f"#include <{name}>\n#include <{name}>\nint main(void) {{ return 0; }}\n")
        compiled(source, "c")
        compiled(source, "c++")


def test_N1_numbers_are_those_of_the_dialect(library: Path, compiled: Compiled, tmp_path: Path) -> None:
    names = {name: getattr(constants, name) for name in dir(constants) if name.startswith("ACL_")} | BY_NAME
    text = headers(library)
    known = {name: number for name, number in names.items() if re.search(rf"\b{name}\b", text)}
    assert len(known) > 0.9 * len(names), sorted(set(names) - set(known))
    source = tmp_path / "numbers.cc"
    lines = [f'static_assert(static_cast<long>({name}) == {number}L, "");' for name, number in known.items()]
    source.write_text("#include <acl/acl.h>\n" + "\n".join(lines) + "\nint main() { return 0; }\n")
    compiled(source, "c++")


@pytest.mark.parametrize("command", ["gcc", "g++"])
def test_N2_other_parts_are_named_by_the_compiler(library: Path, tmp_path: Path, command: str) -> None:
    absent = PART.findall(headers(library))
    assert {part for _, part in absent} == {"MODELS", "MEDIA", "OPERATORS"}
    language = {"gcc": "c", "g++": "c++"}[command]
    for name, part in {part: (name, part) for name, part in absent}.values():  # one of each part
        source = tmp_path / f"{name}.{language}"
        source.write_text(f"#include <acl/acl.h>\nint main(void) {{ return {name}(0) ? 1 : 0; }}\n")
        words = [command, "-x", language, f"-I{library}/include", "-c", str(source), "-o", str(tmp_path / "out")]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode != 0
        assert f"{name} needs the part for {part.lower()}" in done.stderr, done.stderr


def test_N8_versions_are_the_packages(library: Path) -> None:
    files = ["include/acl/acl_rt_types.h", "lib/pkgconfig/ascendcl-lookalike.pc"]
    files += ["lib/cmake/ascendcl-lookalike/ascendcl-lookalike-config-version.cmake"]
    found = {
        name: re.findall(r"(?:VERSION|Version:?) \"?(\d+\.\d+\.\d+)", (library / name).read_text()) for name in files
    }
    assert found == {name: [hs.__version__] for name in files}


def test_N8_pkg_config_finds_the_library(library: Path, run: Run, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    words = ["pkg-config", "--cflags", "--libs", "ascendcl-lookalike"]
    env = {"PKG_CONFIG_PATH": str(library / "lib" / "pkgconfig")}
    flags = run(*words, env=env)
    assert flags.returncode == 0, flags.stderr
    program = tmp_path / "waits"
    compile_it = [
        "cc",
        "-D_GNU_SOURCE",
        str(PROGRAMS / "waits.c"),
        *flags.stdout.split(),
        "-pthread",
        "-o",
        str(program),
    ]
    done = subprocess.run(compile_it, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert run(program).stdout == "done\n"


def test_N8_cmake_finds_the_package(library: Path, run: Run, tmp_path: Path) -> None:
    cmake = shutil.which("cmake") or shutil.which("cmake", path=ROOT / ".venv" / "bin")
    if cmake is None:
        pytest.skip("cmake is not installed; make acl-c installs it")
    lines = [
        "cmake_minimum_required(VERSION 3.16)",
        "project(user C CXX)",
        "find_package(Threads REQUIRED)",
        "find_package(ascendcl-lookalike 0.1 REQUIRED)",
        f"add_executable(user {PROGRAMS / 'waits.c'})",
        "target_compile_definitions(user PRIVATE _GNU_SOURCE)",
        "target_link_libraries(user PRIVATE ascendcl-lookalike::ascendcl Threads::Threads)",
    ]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    build = tmp_path / "build"
    for words in ([cmake, "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={library}"], [cmake, "--build", build]):
        done = run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert run(build / "user").stdout == "done\n"
