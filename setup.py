"""Compiles the Go packages into halstream/_halstream.abi3.so, and C files into halstream/_core/_handles.abi3.so.

gopy writes the Go half of the first extension, buildsupport/pybindgen.py its C
half, and one ``go build`` compiles both. The second one starts no threads, so it
may be loaded when the package is imported. All metadata is in pyproject.toml.

One file serves every CPython from 3.10 on (abi3), but for the free-threaded builds, which have no
stable interface: there both files are for that one version. With GOOS, GOARCH and CC in the
environment the same file builds for another platform (tools/wheels.py).
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # not there by itself when an installer runs this file
from build_backend import check_libc, find_c_compiler, find_go, no_go  # noqa: E402
from buildsupport import driver, stubs  # noqa: E402
from buildsupport.handles import compile_handles  # noqa: E402
from buildsupport.target import ABI3, defines, goos  # noqa: E402

# gopy wants its output inside the module. The underscore hides the folder from
# "./...", which must not compile a package that needs Python.h.
WORK = ROOT / "build" / os.environ.get("HALSTREAM_WORK", "_go")
OUTPUT = WORK / "_halstream.abi3.so"
#: What bindings/constants writes -> where it is in the package.
GENERATED = {"_constants.py": "_native", "_record_types.py": "", "_ascendcl.py": "acl"}
SUPPORT = ROOT / "buildsupport"


def inputs():
    """Yield every file that the extension is made from."""
    yield from (ROOT / name for name in ("go.mod", "go.sum", "setup.py", "pyproject.toml"))
    yield from (SUPPORT / name for name in ("Python.h", "pybindgen.py", "driver.py", "stubs.py", "target.py"))
    for folder in ("hal", "ptx", "cuda", "ascend", "bindings", "capi", "libcuda", "pybuild"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.parent.name in ("fakecuda", "fakeacl"):
                continue  # for tests: no part of a wheel
            if path.suffix in (".go", ".c", ".h", ".s", ".def", ".map") and not path.name.endswith("_test.go"):
                yield path
    yield from sorted((ROOT / "libascendcl" / "package" / "include").rglob("*.h"))
    yield ROOT / "python" / "halstream" / "include" / "halstream.h"
    yield ROOT / "python" / "halstream" / "_dialects" / "_cuda_status.py"  # errors of the CUDA runtime


def edit(go_file, cflags):
    """Adapt gopy's Go text; a part that is not found ends the build."""
    text = go_file.read_text()

    def change(pattern, replacement, expected=None):
        nonlocal text
        text, n = re.subn(pattern, replacement, text)
        if n == 0 or (expected and n != expected):
            raise SystemExit(f"halstream: gopy's output changed: {n} times {pattern!r}; adapt setup.py.")

    flags = " ".join(f'"{flag}"' for flag in cflags)
    change(r"(?m)^#cgo CFLAGS:.*$", lambda _: f"#cgo CFLAGS: {flags}", 1)
    # No libpython: the process that loads the extension has Python's symbols.
    change(r"(?m)^#cgo LDFLAGS:.*$", "#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup", 1)
    # The GIL is kept: handing it over costs tens of microseconds beside a busy
    # Python thread. pybuild releases it itself where it may block.
    change(r"(?m)^\t_saved_thread := C\.PyEval_SaveThread\(\)\n", "")
    change(r"(?m)^\t(defer )?C\.PyEval_RestoreThread\(_saved_thread\)\n", "")
    # Helpers for slices; without them a slice in a signature of pybuild fails to compile.
    change(r"(?s)\n// ---- Package: go ---\n.*\n(// ---- Package: pybuild ---\n)", r"\n\1", 1)
    head, blocks = text.split("\n// ---- Functions ---\n")
    # gopy's order changes from run to run; the same input shall give the same file.
    text = head + "".join(sorted(re.split(r"(?m)^(?=//export )", blocks)))
    source = "".join(path.read_text() for path in inputs() if path.parent.name == "pybuild")
    left_out = set(re.findall(r"(?m)^func ([A-Z]\w*)", source)) - set(re.findall(r"(?m)^//export pybuild_(\w+)$", text))
    if left_out or "PyEval_" in text:
        raise SystemExit(f"halstream: gopy cannot wrap {sorted(left_out)}; buildsupport/pybindgen.py says what it can.")
    go_file.write_text(text)


def compile_extension(go, env, version):
    """Run the tools; the first that fails ends the build with its own words."""

    def run(*command, cwd=WORK, **extra_env):
        done = subprocess.run(command, cwd=cwd, env={**env, **extra_env}, capture_output=True, text=True)
        if done.returncode:
            said = done.stdout + done.stderr
            if re.search(r"dial tcp|no such host|proxyconnect|module lookup disabled", said):
                raise SystemExit(
                    "halstream: Go could not download the modules that go.sum lists; connect to a network,"
                    " set GOPROXY to a proxy that can be reached, or fill Go's cache there (go mod download)."
                )
            raise SystemExit(f"{said}\nhalstream: this command failed, see above: {' '.join(command)}")
        return done.stdout.strip()

    def tool(name):
        """Build a program of go.mod's for this machine, whatever the extension is for, and return its path."""
        return run(go, "tool", "-n", name, cwd=ROOT, GOOS="", GOARCH="", CGO_ENABLED="0")

    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    # -std: gopy declares a type named bool, a keyword in C23.
    own = (ROOT / name for name in ("pybuild", "bindings/python", "python/halstream/include"))
    include = [f"-I{path}" for path in (SUPPORT, *own, sysconfig.get_paths()["include"])]
    cflags = [*include, *defines(), "-std=gnu17", "-O2"]
    names = ["-name=halstream", f"-output={WORK}", "halstream/pybuild"]
    run(tool("gopy"), "gen", "-no-make", "-dynamic-link=true", f"-vm={sys.executable}", *names, cwd=ROOT)
    edit(WORK / "halstream.go", cflags)
    run(tool("goimports"), "-w", "halstream.go")
    # The C half includes this header; made apart, it saves a second go build.
    run(go, "tool", "cgo", "-objdir", "cgo", "-exportheader", "halstream_go.h", "--", *cflags, "halstream.go")
    shutil.rmtree(WORK / "cgo")
    run(sys.executable, "build.py", PYTHONPATH=str(SUPPORT))
    ldflags = f"-ldflags=-s -w -X halstream/pybuild.version={version}"
    if goos() == "linux":
        exports = ROOT / "pybuild" / "exports.map"
        ldflags += f" '-extldflags=-Wl,--wrap=pthread_create \"-Wl,--version-script={exports}\"'"  # hal/ownthread
    run(go, "build", "-buildmode=c-shared", "-buildvcs=false", "-trimpath", ldflags, "-o", OUTPUT.name, ".")
    run(go, "run", "./bindings/constants", str(WORK), cwd=ROOT, GOOS="", GOARCH="")
    if goos() == "linux":
        driver.compile_driver(WORK / "driver", driver.names(go), env["CC"])


def replace(source, target):
    """Copy a file over one that a process may have mapped, and that one which starts now must not see half of."""
    os.replace(shutil.copyfile(source, f"{target}.new"), target)


class GoExtension(build_ext):
    def build_extension(self, ext):
        check_libc()
        go, compiler = find_go(), find_c_compiler()
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if ext.name.endswith("._handles"):
            compile_handles(ROOT, compiler, target.with_suffix(".new"))
            os.replace(target.with_suffix(".new"), target)
            return
        if go is None:
            raise SystemExit(no_go())
        env = {**os.environ, "CC": compiler, "CGO_ENABLED": "1"}
        version = self.distribution.get_version()
        include = sysconfig.get_paths()["include"]
        build = (go, compiler, version, sys.version, include, goos(), os.environ.get("GOARCH"))
        digest = hashlib.sha256(repr(build).encode())
        for path in inputs():
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
        stamp = WORK / "stamp"
        made = all(path.exists() for path in (OUTPUT, stamp, *(WORK / name for name in GENERATED)))
        if not (made and stamp.read_text() == digest.hexdigest()):
            compile_extension(go, env, version)
            stamp.write_text(digest.hexdigest())
        replace(OUTPUT, target)
        self.write_generated(target.parent)

    def copy_extensions_to_source(self):
        """Do the same with the generated files as with the extensions, for a build in place."""
        super().copy_extensions_to_source()
        self.write_generated(ROOT / "python" / "halstream")

    def write_generated(self, package):
        stubs.write(package)
        if goos() == "linux":
            shutil.copytree(WORK / "driver", package / "_driver", copy_function=replace, dirs_exist_ok=True)
        for name, folder in GENERATED.items():
            (package / folder).mkdir(exist_ok=True)
            shutil.copyfile(WORK / name, package / folder / name)


class WithSources(build_py):
    """Copies the sources of the modules for the real torch and the real Paddle, which the first use compiles."""

    def run(self):
        super().run()
        if self.editable_mode:
            return  # the package finds them in the tree
        for name in ("torch", "paddle"):
            target = Path(self.build_lib) / "halstream" / name / "_source"
            shutil.rmtree(target, ignore_errors=True)
            for path in sorted((ROOT / name).rglob("*")):
                if path.suffix in (".c", ".cpp", ".h", ".inc") or path.name == "operators.txt":
                    copy = target / path.relative_to(ROOT / name)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)


setup(
    ext_modules=[
        Extension(name, [], py_limited_api=ABI3) for name in ("halstream._halstream", "halstream._core._handles")
    ],
    cmdclass={"build_ext": GoExtension, "build_py": WithSources},
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if ABI3 else {},
)
