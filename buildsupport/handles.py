"""Compiles the base classes of streams and events into halstream/_core/_handles.abi3.so."""

import subprocess
import sys
import sysconfig


def compile_handles(root, compiler, target):
    """Compile the files of the tree `root` into `target`; errors of the compiler end the process."""
    sources = sorted((root / "python" / "halstream" / "_core").glob("_handles*.c"))
    include = [f"-I{path}" for path in (root / "pybuild", sysconfig.get_paths()["include"])]
    flags = ["-shared", "-fPIC", "-O2", "-std=gnu17", "-fvisibility=hidden", "-DPy_LIMITED_API=0x030A0000"]
    if sys.platform == "darwin":
        flags.append("-Wl,-undefined,dynamic_lookup")
    command = [*compiler.split(), *flags, *include, *map(str, sources), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\nhalstream: this command failed, see above: {' '.join(command)}")
