"""The options of pytest and of the command line that watch memory by its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream._checks.edit import apply, edits
from halstream._checks.remedy import remedy
from plugin_help import Runner, command
from sanitize_help import run

HIDDEN = """
    import halstream as hs, numpy as np
    def hidden(wait):
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(1000, np.float32)
        views = [np.asarray(x)]
        one.call(lambda: views[0].fill(1))
        if wait: two.wait(one.record())
        two.call(lambda: views[0].sum())
        one.synchronize()
        two.synchronize()
"""


@pytest.fixture
def watchable(backend: str) -> None:
    try:
        with hs.sanitize(on="collect", pages=True):
            pass
    except hs.NotSupportedError as exc:
        pytest.skip(str(exc))


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
@pytest.mark.parametrize("options", [(), ("--stream-schedules=3",)])
def test_V23_an_option_of_pytest_watches_pages(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    tests = Runner(pytester)
    source = f"""
    {HIDDEN}
    def test_unordered(): hidden(False)
    def test_ordered(): hidden(True)
    """
    tests(source, "--stream-sanitize").assert_outcomes(passed=2)
    result = tests(source, "--stream-pages", *options)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*unordered access*"])
    if options:
        assert "--stream-pages" in command(result)


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
def test_V10_lines_for_what_pages_show_are_tried_with_pages(pytester: pytest.Pytester) -> None:
    source = f"""
    {HIDDEN}
    def test_unordered(): hidden(False)
    """
    result = Runner(pytester)(source, "--stream-pages", "--stream-fix=apply", process=True)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["+*two.wait(one.record())", "*::test_unordered: silent and passes under 50 schedules"])


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
def test_V10_the_line_for_an_access_of_the_host_is_in_front_of_the_access(tmp_path: Path) -> None:
    """It is seen at the next call of the runtime, in front of which a wait would come too late."""
    source = """
    import halstream as hs, numpy as np
    def read():
        s = hs.Stream(non_blocking=True)
        pinned, x = hs.pinned_empty(1000, np.float32), hs.empty(1000, np.float32)
        x.fill(1, s)
        x.copy_to(pinned, s)
        total = float(pinned.sum())
        s.synchronize()
        return total
    read()
    """
    (found,) = run(tmp_path / "before.py", source, pages=True).races
    fix = remedy(found)
    assert fix.line == "s.synchronize()" and fix.proven, found.text
    again = run(tmp_path / "after.py", apply((tmp_path / "before.py").read_text(), edits(fix)), pages=True)
    assert not again, again


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
def test_V23_a_marker_watches_pages(pytester: pytest.Pytester) -> None:
    source = f"""
    {HIDDEN}
    @pytest.mark.streams(pages=True, schedules=1)
    def test_unordered(): hidden(False)
    """
    Runner(pytester)(source).assert_outcomes(failed=1)


def test_V25_a_test_whose_pages_cannot_be_watched_fails_with_the_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(flags: int) -> None:
        raise hs.NotSupportedError("userfaultfd is not permitted")

    monkeypatch.setattr("halstream._checks.sanitize._native.check_start", refused)
    result = Runner(pytester)("def test_it(): assert False, 'it must not run'", "--stream-pages")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*userfaultfd is not permitted*"])
    result.stdout.no_fnmatch_line("*it must not run*")


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
def test_V23_an_option_of_the_command_line_watches_pages(cli: Any) -> None:
    cli.script(HIDDEN.replace("\n    ", "\n") + "import sys\nhidden(sys.argv[1] == 'wait')\nprint('end')\n")
    assert cli("run", "--sanitize", "prog.py", "no").returncode == 0
    assert cli("run", "--sanitize", "--pages", "prog.py", "wait").returncode == 0
    done = cli("run", "--sanitize", "--pages", "prog.py", "no")
    assert (done.returncode, done.stdout) == (1, "end\n")
    assert "wait(" in done.stderr
    done = cli("run", "--schedules", "2", "--sanitize", "--pages", "prog.py", "no")
    assert done.returncode == 1 and "replay --sanitize --pages" in done.stdout


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
def test_an_access_that_no_call_follows_has_no_place_of_the_command(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs
        stream, pinned, x = hs.Stream(), hs.pinned_empty(4000, "u1"), hs.empty(4000, "u1")
        x.copy_to(pinned, stream)
        pinned[0]
        """
    )
    done = cli("run", "--sanitize", "--pages", "prog.py")
    assert done.returncode == 1
    assert "  2. the host reads (seen by its page, " in done.stderr
    assert "       (no call of the program followed it)\n  why:" in done.stderr
    assert "packages" not in done.stderr and "contextlib" not in done.stderr


def test_pages_are_for_the_sanitizer(cli: Any) -> None:
    cli.script("print('end')")
    done = cli("run", "--pages", "prog.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--pages is for --sanitize: give both" in done.stderr


@pytest.mark.needs("schedules")
@pytest.mark.usefixtures("watchable")
def test_V23_functions_run_one_at_a_time_where_pages_are_watched() -> None:
    for _ in range(20):  # NumPy gives Python's lock up within both
        with hs.sanitize(on="collect", pages=True) as report:
            one, two, x = hs.Stream(), hs.Stream(), hs.empty(1000, "f4")
            views = [x.__array__()]
            one.call(lambda views=views: views[0].fill(1))
            two.call(lambda views=views: views[0].sum())
            one.synchronize()
            two.synchronize()
        assert len(report) == 1 or report.functions.beside, str(report)
        assert report.functions.paged == 2
