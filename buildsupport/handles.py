"""Compiles the base classes of events and of owners of memory into halstream/_core/_handles.abi3.so."""

import subprocess
import sysconfig

from .target import defines, goos


def compile_handles(root, compiler, target):
    """Compile the file of the tree `root` into `target`; errors of the compiler end the process."""
    source = root / "python" / "halstream" / "_core" / "_handles.c"
    include = "-I" + sysconfig.get_paths()["include"]
    flags = ["-shared", "-fPIC", "-O2", "-std=gnu17", "-fvisibility=hidden", *defines()]
    if goos() == "darwin":
        # The name is that of the file in the end, not of the one that the build writes and renames.
        flags += ["-Wl,-undefined,dynamic_lookup", "-Wl,-install_name,_handles.abi3.so"]
    command = [*compiler.split(), *flags, include, str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\nhalstream: this command failed, see above: {' '.join(command)}")
