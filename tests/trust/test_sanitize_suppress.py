"""Suppressions: what a rule fits, and what a damaged file says."""

from __future__ import annotations

import sys
from pathlib import Path

import halstream as hs
import pytest
from halstream._checks import known
from halstream._checks.suppress import KINDS, Place, Rule, Rules, load, parse
from halstream._sites import Frame
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
    rules = Rules([Rule("race", ((Place("a.py"),),)), Rule("any", ((Place("b.py"),),))])
    a, b, c = ((Frame(f"/x/{name}.py", 3, "f"),) for name in "abc")
    assert rules.suppress("race", (a, ()))
    assert rules.suppress("query", (c, b))
    assert not rules.suppress("query", (a, a))
    assert list(rules.used.values()) == [1, 1]
    for text in ("race:a.py", "race:a.py:7", "race:a.py:f", "race:a.py:7 < b.py:f < c.py + d.py:1"):
        assert str(parse(text, "")) == text


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ("race:loader.py:6 < loader.py:10", True),
        ("race:loader.py:10 < loader.py:6", False),
        ("race:loader.py:6 + loader.py:11", True),
        ("race:loader.py:11 + loader.py:fill < loader.py:10", False),
        ("race:loader.py:11 + loader.py:*fill < loader.py:10", True),
        ("race:loader.py:6 + loader.py:10", False),
        ("race:loader.py:11 + loader.py:11", False),
    ],
)
def test_a_rule_with_more_than_one_place_needs_all_of_them(backend: str, tmp_path: Path, rule: str, fits: bool) -> None:
    assert bool(run(tmp_path / "loader.py", PROGRAM, suppressions=[rule])) is not fits


SIMILAR = """
    import halstream as hs

    def fill(x, s):
        x.fill(1, s)

    one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, y, z = hs.empty(4), hs.empty(4), hs.empty(4)
    fill(x, one)
    fill(x, two)
    fill(y, one)
    y.fill(2, two)
    for stream in (one, two): z.fill(3, stream)
    for stream in (one, two): fill(z, stream)
    a, b = hs.pinned_empty(4), hs.empty(4)
    a[:] = 1
    b.copy_from(a, one)
    a[:] = 2
    one.synchronize()
    two.synchronize()
"""


def test_V46_the_rule_of_a_report_suppresses_it_and_no_other(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "so [1] #2" / "it:is + 1.py"  # what means something in rules
    path.parent.mkdir()
    rules, file = [""], tmp_path / "known.txt"
    for rule in rules:
        file.write_text(rule + "\n")
        report = run(path, SIMILAR, suppressions=file)  # in one line: a rule may have that of the caller
        if not rule:
            rules += [found.suppression for found in report.all]
            assert [found.text.splitlines()[-1] for found in report.all] == [f"  suppress: {one}" for one in rules[1:]]
            assert len(set(rules)) == len(rules), rules
            assert {found.category for found in report.all} == {"race", "refill"}
        else:
            assert [found.suppression for found in report.all] == [one for one in rules if one not in ("", rule)]
            assert report.suppressed == report.suppressed_by[rule] == 1
            assert "(1 suppressed)" in report.summary


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (b"race loader.py", 1, "there is no colon"),
        (b"race:ok.py\n\nrac:loader.py\n", 3, "'rac' is no kind of report"),
        (b"race:", 1, "there is no path"),
        (b"race:loader.py:", 1, "nothing stands behind the last colon"),
        (b"race:loader.py:3:f", 1, "there are too many colons"),
        (b"race:a.py + b.py + c.py", 1, "there are more than two operations"),
        (b"race:a.py:3 <  < b.py", 1, "there is no path"),
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


LIBRARY = """
def twice(x, y, one, two):
    x.fill(1, one)
    x.fill(2, two)
    y.fill(3, one)
    y.fill(4, two)
"""


@pytest.fixture
def loaderlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install version 1.4.2 of a library, and return a program that calls it."""
    folder = tmp_path / "site-packages"
    for name, text in (
        ("loaderlib/__init__.py", LIBRARY),
        ("loaderlib-1.4.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: loaderlib\nVersion: 1.4.2+cu132\n"),
    ):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "loaderlib", raising=False)
    return """
        import halstream as hs
        from loaderlib import twice
        one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        twice(hs.empty(4), hs.empty(4), one, two)
        """


def test_reports_of_one_line_that_calls_a_package_have_rules_of_their_own(
    backend: str, tmp_path: Path, loaderlib: str
) -> None:
    program = tmp_path / "app.py"
    first, second = (found.suppression for found in run(program, loaderlib))
    assert first == "race:loaderlib/__init__.py:3 + loaderlib/__init__.py:4"
    assert [found.suppression for found in run(program, loaderlib, suppressions=[first])] == [second]
    for rule, left in (("loaderlib/*:twice", 0), ("loaderlib/__init__.py:4", 1), ("__init__.py", 2), ("*.py:4", 2)):
        assert len(run(program, loaderlib, suppressions=[f"race:{rule}"])) == left, rule


@pytest.mark.parametrize(
    ("first", "before", "counts"),
    [
        ("1.4", "1.5", True),
        ("1.4.2", "1.4.3", True),
        ("1.4.3", "2", False),
        ("1.0", "1.4.2", False),
        ("1.4", "1.10", True),
    ],
)
def test_V46_a_rule_for_a_library_counts_for_its_versions_only(
    backend: str, tmp_path: Path, loaderlib: str, monkeypatch: pytest.MonkeyPatch, first: str, before: str, counts: bool
) -> None:
    rule = known.Known("loaderlib", first, before, "race:loaderlib/*:4", "both write the same")
    monkeypatch.setattr(known, "KNOWN", (rule, rule._replace(library="not-installed", rule="any:*")))
    report = run(tmp_path / "app.py", loaderlib)
    assert len(report) == 2 - counts
    said = "1 finding in loaderlib 1.4.2+cu132 suppressed: both write the same"
    assert (said in str(report).splitlines()) is ("(1 suppressed)" in report.summary) is counts
    monkeypatch.setenv("HALSTREAM_KNOWN_LIBRARIES", "0")
    assert len(run(tmp_path / "app.py", loaderlib)) == 2


def test_the_rules_that_ship_are_rules_with_a_range_and_a_reason(backend: str) -> None:
    for one in known.KNOWN:
        assert parse(one.rule, "") is not None and one.reason and one.first and one.before, one
