"""Which tests need hardware queues of their own for their streams: tests/hardware_queues.txt.

Usage: python tools/hardware_queues.py [TESTS ...]

Runs tests on the look-alike driver, where each stream has a hardware queue of its own, and lists
those in which a stream goes on while the host holds another one, in the test's process or in one
that it starts (FAKECUDA_BESIDE). Where the two share a queue, such a test may wait for ever: with
few queues tests/conftest.py leaves these out. Without TESTS the list is written; with them, the
names are printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "hardware_queues.txt"
FOLDER = "HALSTREAM_QUEUES_FOLDER"
VARIABLE = "FAKECUDA_BESIDE"
SUITES = (
    "capi", "conformance", "dialects", "interop", "protocols", "process", "property", "signatures", "trust",
    "docs/test_examples_cuda.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Have the look-alike leave a note, from before it is loaded."""
    os.environ[VARIABLE] = str(Path(os.environ[FOLDER], f"note-{os.getpid()}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the name of a test in which a stream went on beside a held one."""
    note = Path(os.environ[VARIABLE])
    note.unlink(missing_ok=True)
    yield
    if note.exists():
        with Path(os.environ[FOLDER], f"names-{os.getpid()}").open("a") as names:
            print(item.nodeid.partition("[")[0], file=names)


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
        names = {name for path in Path(folder).glob("names-*") for name in path.read_text().splitlines()}
    if given:
        print(*sorted(names), sep="\n")
    else:
        LIST.write_text("".join(f"{name}\n" for name in sorted(names)))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
