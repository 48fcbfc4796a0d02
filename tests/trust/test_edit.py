"""Suggested lines as changes of a source, and names that mean the same at two places."""

from __future__ import annotations

from pathlib import Path

from halstream._checks.edit import edits, lines_of
from halstream._checks.placing import means_the_same
from halstream._checks.remedy import Remedy
from halstream._sites import Frame


def test_V10_a_remedy_of_two_lines_is_two_changes(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text("for turn in range(2):\n    load()\n    use()\n")
    second = Remedy("b.wait(e)", "before", Frame(str(file), 3, "<module>"))
    first = Remedy("e = a.record()", "after", Frame(str(file), 2, "<module>"), also=second)
    assert [(one.line, one.text) for one in edits(first)] == [(3, "    e = a.record()\n"), (3, "    b.wait(e)\n")]
    assert edits(first._replace(also=second._replace(line=""))) == [], "half of it orders nothing"


def test_V10_lines_end_where_python_ends_them() -> None:
    assert lines_of("a = 1\fb\r\nc\u2028d\ne") == ["a = 1\fb\r\n", "c\u2028d\n", "e"]


def test_V10_a_name_of_one_function_means_nothing_in_another(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text("def load():\n    s = 1\n    fill(s)\ndef use():\n    s = 2\n    read(s)\n    read(s)\n")
    load = (Frame(str(file), 3, "load"),)
    use, again = (Frame(str(file), 6, "use"),), (Frame(str(file), 7, "use"),)
    assert not means_the_same("s", load, use)
    assert means_the_same("s", use, again)
