"""Suppressions: what a rule fits, and what a damaged file says."""

from __future__ import annotations

from pathlib import Path

import halstream as hs
import pytest
from halstream._checks.suppress import KINDS, Rule, Rules, load, parse
from sanitize_help import run

PROGRAM = """
    import halstream as hs

    class Loader:
        def fill(self, x, s):
            x.fill(1, s)

    one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(4)
    Loader().fill(x, one)
    x.fill(2, two)
"""


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ("race:loader.py", True),
        ("any:loader.py", True),
        ("refill:loader.py", False),
        ("query:loader.py", False),
        ("race:other.py", False),
        ("race:der.py", False),
        ("race:app/loader.py", True),
        ("race:*/loader.py", True),
        ("race:app/*", True),
        ("race:[a-l]oader.py", True),
        ("race:loader.py:6", True),
        ("race:loader.py:11", True),
        ("race:loader.py:7", False),
        ("race:loader.py:Loader.fill", True),
        ("race:loader.py:*fill", True),
        ("race:loader.py:empty", False),
        ("race:loader.py # known since 1.2", True),
        ("# race:loader.py", False),
        ("", False),
    ],
)
def test_a_rule_fits_a_frame_of_either_side(backend: str, tmp_path: Path, rule: str, fits: bool) -> None:
    path = tmp_path / "app" / "loader.py"
    path.parent.mkdir()
    if "Loader.fill" in rule and not hasattr(run.__code__, "co_qualname"):
        pytest.skip("functions have no qualified names here")
    report = run(path, PROGRAM, suppressions=[rule])
    assert bool(report) is not fits
    assert report.suppressed == int(fits)
    assert ("(1 suppressed)" in report.summary) is fits


def test_rules_come_from_a_file_and_from_the_environment(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "known.txt"
    file.write_text("# what we know\n\nrace:elsewhere.py\n  race:loader.py:6   # the loader\n")
    assert not run(tmp_path / "loader.py", PROGRAM, suppressions=file)
    assert not run(tmp_path / "loader.py", PROGRAM, suppressions=str(file))
    assert run(tmp_path / "loader.py", PROGRAM)
    monkeypatch.setenv("HALSTREAM_SUPPRESSIONS", str(file))
    assert not run(tmp_path / "loader.py", PROGRAM)
    assert not run(tmp_path / "loader.py", PROGRAM, suppressions=["race:other.py"])


def test_uses_are_counted() -> None:
    rules = Rules([Rule("race", "a.py", 0, "", ""), Rule("any", "b.py", 0, "", "")])
    assert rules.suppress("race", [("/x/a.py", 3, "f")])
    assert rules.suppress("query", [("/x/c.py", 3, "f"), ("/x/b.py", 3, "f")])
    assert not rules.suppress("query", [("/x/a.py", 3, "f")])
    assert list(rules.used.values()) == [1, 1]
    assert [str(rule) for rule in rules.used] == ["race:a.py", "any:b.py"]
    assert str(parse("race:a.py:7", "")) == "race:a.py:7"
    assert str(parse("race:a.py:f", "")) == "race:a.py:f"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (b"race loader.py", 1, "there is no colon"),
        (b"race:ok.py\n\nrac:loader.py\n", 3, "'rac' is no kind of report"),
        (b"race:", 1, "there is no path"),
        (b"race:loader.py:", 1, "nothing stands behind the last colon"),
        (b"race:loader.py:3:f", 1, "there are too many colons"),
        (b"race:loader.py:0", 1, "lines are counted from 1"),
        (b"race:loader.py:-3", 1, "'-3' is neither a line's number nor a function's name"),
        (b"race:loader.py:3f", 1, "'3f' is neither a line's number nor a function's name"),
        (b"race:ok.py\nrace:\xff\xfe", 2, "the line is not UTF-8 text"),
        (b"race:a\x00b.py", 1, "there is a control character"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line_and_the_reason(
    backend: str, tmp_path: Path, text: bytes, line: int, why: str
) -> None:
    file = tmp_path / "known.txt"
    file.write_bytes(text)
    with pytest.raises(hs.InvalidValueError) as caught:
        hs.sanitize(suppressions=file)
    assert str(caught.value).startswith(f"{file}:{line}: {why}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(hs.InvalidValueError, match=f"{tmp_path}' cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(hs.InvalidValueError, match="suppression 2: there is no colon"):
        hs.sanitize(suppressions=["race:x.py", "oops"])
    assert load_text(tmp_path, "") == []
    assert "race" in KINDS


def load_text(folder: Path, text: str) -> list[Rule]:
    file = folder / "rules"
    file.write_text(text)
    return load(file)
