"""The folder in which compiled libraries are kept, for torch and for Paddle."""

from __future__ import annotations

from pathlib import Path

import pytest
from halstream._compiled import Compiled, digest


class RefusedError(Exception):
    """What the folder raises here."""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """Return the folder, below one of the test's own."""
    monkeypatch.setenv("HALSTREAM_CACHE_DIR", str(tmp_path / "cache"))
    return Compiled("things", "thing for tests", RefusedError)


def make(folder: Path) -> Path:
    """Stand for a compiler, which leaves a file beside its result."""
    (folder / "object.o").write_text("left over")
    (folder / "thing.so").write_text("a library")
    return folder / "thing.so"


def test_only_the_result_is_kept_with_what_is_known_of_it(kept: Compiled) -> None:
    known: list[str] = []
    path = kept.store("key", make, beside=lambda folder, content: known.append(f"{folder.name} {content}"))
    assert path.read_text() == "a library"
    assert [one.name for one in path.parent.iterdir()] == ["thing.so"]
    assert path.stat().st_mode & 0o777 == 0o700
    assert known == [f"key {digest(path)}"]


def test_nothing_is_kept_of_a_build_that_fails(kept: Compiled) -> None:
    def fail(folder: Path) -> Path:
        make(folder)
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError):
        kept.store("key", fail)
    assert list(kept.folder().iterdir()) == []


def test_what_others_can_write_is_refused(kept: Compiled) -> None:
    folder = kept.folder()
    folder.chmod(0o770)
    with pytest.raises(RefusedError, match="open to other users"):
        kept.folder()
    folder.rmdir()
    folder.symlink_to(folder.parent)
    with pytest.raises(RefusedError, match="is a link"):
        kept.folder()


def test_another_build_is_waited_for(kept: Compiled) -> None:
    waited: list[str] = []
    with kept.locked("key", lambda: waited.append("first")):
        assert waited == []
        fcntl = pytest.importorskip("fcntl")
        with (kept.folder() / "key.lock").open("r+") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
