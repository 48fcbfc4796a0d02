"""Which tests need hardware queues of their own for their streams, and how many: tests/hardware_queues.txt.

Usage: python tools/hardware_queues.py [TESTS ...]

Runs tests on the look-alike driver, where each stream has a hardware queue of its own, and lists those in
which a stream goes on while the host holds another one of its priority, in the test's process or in one that
it starts (FAKECUDA_BESIDE), with the number of streams of that priority that the test has used by then, the
default stream among them, if that is more than 2. With fewer queues two of them share one, and the test may
wait for ever: then tests/queues.py leaves it out. Without TESTS the list is written; with them, it is printed.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "build" / "fakecuda" / "libfakecuda.so"
LIST = ROOT / "tests" / "hardware_queues.txt"
FOLDER = "HALSTREAM_QUEUES_FOLDER"
VARIABLE = "FAKECUDA_BESIDE"
#: The fewest queues with which the suites run (CONNECTIONS of `make test-cuda-queues`).
FEWEST = 2
SUITES = (
    "capi", "conformance", "dialects", "interop", "protocols", "process", "property", "signatures", "trust",
    "docs/test_examples_cuda.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Have the look-alike leave notes, from before it is loaded."""
    os.environ[VARIABLE] = str(Path(os.environ[FOLDER], f"note-{os.getpid()}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the name of a test in which a stream went on beside a held one, and the queues that it needs."""
    note = Path(os.environ[VARIABLE])
    note.unlink(missing_ok=True)
    ctypes.CDLL(str(LIBRARY)).fakecuda_control(b"count uses")
    yield
    if note.exists():
        with Path(os.environ[FOLDER], f"names-{os.getpid()}").open("a") as names:
            print(item.nodeid.partition("[")[0], max(int(line) for line in note.read_text().split()), file=names)


def main() -> int:
    """Run the tests, and write or print the names; the exit code is that of pytest."""
    given = sys.argv[1:]
    tests = given or [str(ROOT / "tests" / suite) for suite in SUITES]
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {FOLDER: folder, "FAKECUDA_PROFILE": "silicon", "FAKECUDA_CONNECTIONS": "0"}
        env["PYTHONPATH"] = str(Path(__file__).parent)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
        done = subprocess.run(
            [*command, "-p", "hardware_queues", "--backend=cuda-fake", *tests], cwd=ROOT, env=env, check=False
        )
        needed: dict[str, int] = {}
        for path in Path(folder).glob("names-*"):
            for name, queues in map(str.split, path.read_text().splitlines()):
                needed[name] = max(needed.get(name, 0), int(queues))
    lines = "".join(f"{name} {queues}\n" for name, queues in sorted(needed.items()) if queues > FEWEST)
    if given:
        print(lines, end="")
    else:
        LIST.write_text(lines)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
