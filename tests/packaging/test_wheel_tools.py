"""What the tools for wheels read and choose, without building any."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOLS)


def command(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<2I", kind, 8 + len(body)) + body


def dylib(kind: int, name: str) -> bytes:
    return command(kind, struct.pack("<4I", 24, 0, 0, 0) + name.encode() + b"\0")


def test_the_head_of_a_mach_o_file_is_read(tools: None) -> None:
    import wheels_macos as tool

    parts = [
        dylib(tool.ID_DYLIB, "a.so"), dylib(tool.LOAD_DYLIB, "/usr/lib/b.dylib"),
        command(tool.BUILD_VERSION, struct.pack("<4I", 1, 11 << 16 | 2 << 8, 0, 0)),
        command(tool.SIGNATURE, struct.pack("<2I", 0, 0)), command(tool.SYMTAB, bytes(16)),
    ]  # fmt: skip
    size = sum(map(len, parts))
    names = b"\0_PyInit_a\0_undefined\0"
    symbols = struct.pack("<IBBHQ", 1, 0x0F, 1, 0, 0) + struct.pack("<IBBHQ", 11, 0x01, 0, 0, 0)
    place = struct.pack("<4I", 32 + size, 2, 32 + size + len(symbols), len(names))
    parts[-1] = command(tool.SYMTAB, place)
    head = struct.pack("<8I", tool.MAGIC, tool.CPU["arm64"], 0, 6, len(parts), size, 0, 0)
    found = tool.read(head + b"".join(parts) + symbols + names)
    assert found == tool.Library(tool.CPU["arm64"], "a.so", ["/usr/lib/b.dylib"], (11, 2), True, {"_PyInit_a"})
    with pytest.raises(ValueError, match="no Mach-O"):
        tool.read(b"\x7fELF" + bytes(60))


def test_the_words_after_the_dashes_are_pytests(tools: None) -> None:
    import versions

    assert versions.parted(["a.whl", "--only", "3.14", "--", "-n", "2"]) == (["a.whl", "--only", "3.14"], ["-n", "2"])
    assert versions.parted(["a.whl"]) == (["a.whl"], [])


def test_a_free_threaded_version_takes_a_wheel_of_its_own(
    tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import versions

    monkeypatch.setattr(versions, "FREE_THREADED_WHEELS", tmp_path)
    stable = tmp_path / "h-1-cp310-abi3-linux_x86_64.whl"
    assert versions.wheel_for("3.14", stable) == stable.resolve()
    assert versions.wheel_for("3.14t", stable) is None
    (own := tmp_path / "h-1-cp314-cp314t-linux_x86_64.whl").touch()
    assert versions.wheel_for("3.14t", stable) == own
    assert versions.wheel_for("3.13t", stable) is None


def test_an_interpreter_is_found_under_its_own_name_only(
    tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import smoke

    here: Any = "{}.{}".format(*sys.version_info[:2])
    for name in (f"python{here}", f"python{here}t"):
        (tmp_path / name).symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    both = [smoke.find(here), smoke.find(f"{here}t")]
    assert both.count(None) == 1  # the one whose build this is not
