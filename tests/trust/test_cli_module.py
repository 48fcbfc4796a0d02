"""The command line: modules by their names, and bad files of suppressions."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.needs("schedules")


def test_a_module_is_run_by_its_name(cli: Any) -> None:
    (cli.folder / "package").mkdir()
    cli.script("", "package/__init__.py")
    cli.script("def fail(): raise KeyError('own')", "package/part.py")
    cli.script(
        """
        import sys
        import halstream as hs
        from . import part
        print(sys.argv[1:], __name__, __package__, __spec__.name, sys.modules["__main__"] is sys.modules[__name__])
        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.call(seen.append, 2)
        two.synchronize()
        one.synchronize()
        if sys.argv[1:] == ["fail"]:
            part.fail()
        assert seen == [1, 2] or sys.argv[1:]
        """,
        "package/__main__.py",
    )
    done = cli("run", "-m", "package", "--own", "x")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['--own', 'x'] __main__ package package.__main__ True\n"
    done = cli("run", "-m", "package", "fail")
    assert done.returncode == 1 and "KeyError: 'own'" in done.stderr and "_cli" not in done.stderr
    done = cli("run", "--schedules", "10", "-m", "package")
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Replay: halstream replay "))
    assert line.startswith("Replay: halstream replay -m hs1-") and line.endswith(" package")
    assert cli(*line.split()[2:]).returncode == 1
    for name, code in (("absent", 2), ("package.absent", 1)):
        done = cli("run", "-m", name)
        assert done.returncode == code and name in done.stderr and "Traceback" not in done.stderr


def test_a_damaged_file_of_suppressions_is_refused_before_the_script_runs(cli: Any) -> None:
    cli.script("print('ran')")
    cli.script("race\n", "rules.txt")
    for schedules in ([], ["--schedules", "5"]):
        done = cli("run", "--sanitize", *schedules, "prog.py", env={"HALSTREAM_SUPPRESSIONS": "rules.txt"})
        assert (done.returncode, done.stdout) == (2, "")
        assert "rules.txt:1: there is no colon" in done.stderr
