"""Where libascendcl.so and its programs are, and how they are compiled."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / "build" / "ascend"
PROGRAMS = Path(__file__).parent / "programs"

#: How each kind of program is compiled.
COMPILERS = {
    "c": ["gcc", "-std=c11", "-D_GNU_SOURCE"],
    "c++": ["g++", "-std=c++11", "-x", "c++"],
    "thread": ["gcc", "-std=c11", "-D_GNU_SOURCE", "-fsanitize=thread"],
    "address": ["gcc", "-std=c11", "-D_GNU_SOURCE", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "c++ thread": ["g++", "-std=c++11", "-x", "c++", "-fsanitize=thread"],
    "c++ address": ["g++", "-std=c++11", "-x", "c++", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
}

#: Runs a program and its arguments.
Run = Callable[..., "subprocess.CompletedProcess[str]"]
#: Compiles a program, in one of the ways of `COMPILERS`.
Compiled = Callable[..., Path]
