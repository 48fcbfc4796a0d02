"""Building the module: private folder, one build for two processes, nothing left of a broken one, clear texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

# A module that is built in seconds stands for the real one.
SOURCE = """
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "halstream_torch_device", nullptr, -1, nullptr};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_halstream_torch_device() {
  return PyModule_Create(&definition);
}
"""
PROGRAM = """
import sys
from pathlib import Path
from halstream.torch._redirect import compiling, module, sources, wheel
sources.sources = compiling.sources = lambda: Path({folder!r})
try:
    path, new = module.build(wheel.installed())
    module.load(wheel.installed())
    print(new, path)
except module.RedirectError as exc:
    print(exc)
    sys.exit(3)
"""


class Machine:
    """A folder of sources and an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.sources, self.cache = folder / "sources", folder / "cache"
        self.sources.mkdir()
        (self.sources / "module.cpp").write_text(SOURCE)

    def start(self, stderr: int = subprocess.PIPE, **env: str) -> subprocess.Popen[str]:
        code = PROGRAM.format(folder=str(self.sources))
        settings = {**os.environ, "HALSTREAM_CACHE_DIR": str(self.cache), **env}
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=settings)

    def build(self, **env: str) -> tuple[int, str, str]:
        process = self.start(**env)
        out, err = process.communicate(timeout=240)
        return process.returncode, out, err

    def left(self) -> list[str]:
        return sorted(p.name for p in (self.cache / "torch").iterdir() if not p.name.endswith(".lock"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_build_is_kept_for_the_next_process(machine: Machine) -> None:
    code, out, err = machine.build()
    assert code == 0 and out.startswith("True "), err
    assert "building the module for torch" in err and "built in" in err
    code, out, err = machine.build()
    assert code == 0 and out.startswith("False ") and err == ""


def test_the_folder_is_private(machine: Machine) -> None:
    machine.build()
    for path in (machine.cache / "torch", *(machine.cache / "torch").rglob("*")):
        if path.name != "about.json":
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_another_source_another_build(machine: Machine) -> None:
    machine.build()
    (machine.sources / "module.cpp").write_text(SOURCE + "\n// changed\n")
    assert machine.build()[1].startswith("True ")
    assert len(machine.left()) == 2


def test_kept_objects_are_compiled_again_when_their_text_changed(machine: Machine, tmp_path: Path) -> None:
    (machine.sources / "other.cpp").write_text('#include "other.h"\nint other() { return value; }\n')
    (machine.sources / "other.h").write_text("inline int value = 1;\n")
    objects = {"HALSTREAM_TORCH_OBJECTS": str(tmp_path / "objects")}
    assert "2 of 2 units compiled" in machine.build(**objects)[2]
    (machine.sources / "other.h").write_text("inline int value = 2;\n")
    code, out, err = machine.build(**objects)
    assert code == 0 and out.startswith("True ") and "1 of 1 units compiled" in err, err
    shutil.rmtree(machine.cache)
    code, out, err = machine.build(**objects)
    assert code == 0 and out.startswith("True ") and "compiled," not in err, err


def test_a_terminal_shows_progress_in_one_line(machine: Machine) -> None:
    (machine.sources / "other.cpp").write_text("int other() { return 1; }\n")
    pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")
    ours, terminal = pty.openpty()
    process = machine.start(stderr=terminal, TERM="xterm", COLUMNS="100")
    os.close(terminal)
    limit = threading.Timer(240, process.kill)
    limit.start()
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # how the end of a pseudo-terminal reads on Linux
        pass
    finally:
        limit.cancel()
        os.close(ours)
    process.communicate(timeout=240)
    assert process.returncode == 0, shown
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()
    assert text.startswith("halstream: building") and "halstream: built in" in text, text
    assert "compiling" in text and "100%" in text and "units compiled" not in text, text


def test_two_processes_build_once(machine: Machine) -> None:
    processes = [machine.start(), machine.start()]
    found = [process.communicate(timeout=240) for process in processes]
    assert sorted(out.split()[0] for out, _ in found) == ["False", "True"], found
    assert len(machine.left()) == 1


def test_a_broken_build_leaves_nothing_and_shows_the_error(machine: Machine) -> None:
    (machine.sources / "module.cpp").write_text("#include <Python.h>\nint x = undeclared;\n")
    code, out, _ = machine.build()
    assert code == 3 and "module.cpp" in out and "undeclared" in out
    assert machine.left() == []


def test_a_killed_build_does_not_disturb_the_next(machine: Machine) -> None:
    machine.build()
    (name,) = machine.left()
    shutil.move(machine.cache / "torch" / name, machine.cache / "torch" / f"{name}.new")
    (machine.cache / "torch" / f"{name}.new" / "half").write_text("")
    code, out, err = machine.build()
    assert code == 0 and out.startswith("True "), err
    assert machine.left() == [name]


def test_a_changed_module_is_not_loaded(machine: Machine) -> None:
    path = Path(machine.build()[1].split()[1])
    path.write_bytes(path.read_bytes() + b"x")
    code, out, _ = machine.build()
    assert code == 0 and out.startswith("True ")


def test_a_folder_that_others_can_write_is_refused(machine: Machine) -> None:
    machine.build()
    (machine.cache / "torch").chmod(0o777)
    code, out, _ = machine.build()
    assert code == 3 and "open to other users (mode 777)" in out and "chmod go=" in out


def test_a_link_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.cache.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (machine.cache / "torch").symlink_to(tmp_path / "elsewhere")
    code, out, _ = machine.build()
    assert code == 3 and "is a link" in out


def test_without_a_compiler_the_text_says_what_to_install(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    code, out, _ = machine.build(PATH=str(tmp_path / "bin"))
    assert code == 3 and "no C++ compiler" in out and "apt install g++" in out and "halstream-torch" in out


def test_a_kept_build_needs_no_compiler(machine: Machine, tmp_path: Path) -> None:
    machine.build()
    (tmp_path / "bin").mkdir()
    code, out, _ = machine.build(PATH=str(tmp_path / "bin"))
    assert code == 0 and out.startswith("False ")


def refusal(folder: Path, *, alone: bool) -> str:
    """Return why torch is not redirected where the first torch on the path (`alone`: the only one) is in a folder."""
    code = textwrap.dedent(
        f"""
        import sys
        if {alone}:
            sys.path[:] = [p for p in sys.path if "site-packages" not in p]
        sys.path.insert(0, {str(folder)!r})
        from halstream.torch import RedirectError, redirect
        try:
            redirect()
        except RedirectError as exc:
            print(exc)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_torch_the_text_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()  # an empty folder of that name does not pass for it
    text = refusal(tmp_path, alone=True)
    assert "there is no torch in this environment, only a folder" in text
    assert "pip install torch" in text


def test_a_torch_that_cannot_be_imported_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "raise OSError('libcudart.so.12: cannot open shared object file')\n"
    )
    assert "torch is installed and cannot be imported: OSError: libcudart.so.12" in refusal(tmp_path, alone=False)


def test_the_module_needs_no_library_of_cuda() -> None:
    """It refers to what every build of torch has, so that one without CUDA can serve."""
    code = "from halstream.torch._redirect import module, wheel; print(module.build(wheel.installed())[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280)
    words = Path(done.stdout.strip()).read_bytes()
    assert b"libtorch_cpu.so" in words and b"libtorch_python.so" in words
    for library in (b"libtorch_cuda", b"libc10_cuda", b"libcudart", b"libcuda.so"):
        assert library not in words


def test_a_ready_made_module_is_preferred(machine: Machine, tmp_path: Path) -> None:
    path = Path(machine.build()[1].split()[1])
    package = tmp_path / "ready" / "halstream_torch"
    package.mkdir(parents=True)
    for file in path.parent.iterdir():
        shutil.copy(file, package)
    shutil.rmtree(machine.cache)
    path_of_package = os.pathsep.join([str(package.parent), os.environ["PYTHONPATH"]])
    code, out, err = machine.build(PYTHONPATH=path_of_package)
    assert code == 0 and out.split() == ["False", str(package / path.name)], err
    about = json.loads((package / "about.json").read_text())
    version, torch, python, digest = about["build"]
    for changed, text in (
        ([version, torch, "cpython-39", digest], "the installed halstream-torch is for halstream "),
        (["0.1", torch, python, digest], "is for halstream 0.1, torch "),
        ([version, "2.12.0/0123", python, digest], f"torch 2.12.0 and {python}, not for halstream {version}, torch 2."),
        ([version, torch, python, "0"], "was built from other sources of halstream; it is not used"),
    ):
        (package / "about.json").write_text(json.dumps({**about, "build": changed}))
        code, _, err = machine.build(PYTHONPATH=path_of_package)
        assert code == 0 and text in err, err
    (tmp_path / "bin").mkdir()
    shutil.rmtree(machine.cache)
    code, out, err = machine.build(PYTHONPATH=path_of_package, PATH=str(tmp_path / "bin"))
    assert code == 3 and f"a wheel halstream-torch {version}+torch" in out and "other sources" in err


def test_a_damaged_ready_made_module_is_not_loaded(machine: Machine, tmp_path: Path) -> None:
    path = Path(machine.build()[1].split()[1])
    package = tmp_path / "ready" / "halstream_torch"
    shutil.copytree(path.parent, package)
    (package / path.name).write_bytes(path.read_bytes()[:-1])
    code, out, err = machine.build(PYTHONPATH=os.pathsep.join([str(package.parent), os.environ["PYTHONPATH"]]))
    assert code == 0 and out.split() == ["False", str(path)] and "is damaged; it is not used" in err
