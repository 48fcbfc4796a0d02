"""Compiles the base classes of streams and events into halstream/_core/_handles.abi3.so."""

import subprocess
import sysconfig

from .target import defines, goos


def compile_handles(root, compiler, target):
    """Compile the files of the tree `root` into `target`; errors of the compiler end the process."""
    sources = sorted((root / "python" / "halstream" / "_core").glob("_handles*.c"))
    include = [f"-I{path}" for path in (root / "pybuild", sysconfig.get_paths()["include"])]
    flags = ["-shared", "-fPIC", "-O2", "-std=gnu17", "-fvisibility=hidden", *defines()]
    if goos() == "darwin":
        # The name is that of the file in the end, not of the one that the build writes and renames.
        flags += ["-Wl,-undefined,dynamic_lookup", "-Wl,-install_name,_handles.abi3.so"]
    libraries = ["-ldl"] if goos() == "linux" else []  # a part of libc from glibc 2.34 on
    command = [*compiler.split(), *flags, *include, *map(str, sources), *libraries, "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\nhalstream: this command failed, see above: {' '.join(command)}")
