"""``halstream run`` and ``halstream replay``: failures found in fresh processes, and seen again."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.needs("schedules")

RACE = """
    import sys
    import halstream as hs

    loads, uses, seen = hs.Stream(), hs.Stream(), []
    for i in range(3):
        loads.call(seen.append, i)
        if "right" in sys.argv:
            uses.wait(loads.record())
        uses.call(seen.append, -i)
        if "right" in sys.argv:
            loads.wait(uses.record())
    uses.synchronize()
    loads.synchronize()
    print("saw", seen)
    assert seen == [0, 0, 1, -1, 2, -2]
    """


@pytest.fixture(scope="module")
def raced(shared_cli: Any) -> Any:
    """What is found in `RACE`."""
    shared_cli.script(RACE)
    return shared_cli("run", "--schedules", "20", "--shrink-runs", "20", "prog.py", "two words", "--x")


def replayed(output: str) -> list[str]:
    """Return the arguments of the command that replays what was found."""
    (line,) = re.findall(r"(?m)^Replay: (.+)$", output)
    name, *args = shlex.split(line)
    assert name == "halstream"
    return args


def test_a_race_is_found_explained_and_replayed(cli: Any, raced: Any) -> None:
    cli.script(RACE)
    found = raced
    assert found.returncode == 1, found.stderr
    assert "saw [" in found.stdout, "what the failing run printed"
    assert "AssertionError" in found.stdout and "is held" in found.stdout
    assert "prog.py:7" in found.stdout and "prog.py:10" in found.stdout
    assert found.stderr == "", "progress is for terminals"
    args = replayed(found.stdout)
    assert args[0] == "replay" and args[2:] == ["prog.py", "two words", "--x"]
    for _ in range(2):
        again = cli(*args)
        assert again.returncode == 1
        assert re.match(r"saw \[", again.stdout)
        assert again.stderr.splitlines()[-1].endswith("the script failed again: AssertionError")


def test_a_program_that_is_right_passes(cli: Any) -> None:
    cli.script(RACE)
    done = cli("run", "--schedules", "12", "prog.py", "right")
    assert (done.returncode, done.stderr) == (0, "")
    passed = r"halstream: the script passed under 12 schedule\(s\) \(2 stream\(s\), \d+ steps\)\n"
    assert re.fullmatch(passed, done.stdout)


def test_equal_settings_find_equal_tokens(cli: Any, raced: Any) -> None:
    cli.script(RACE)
    again = cli("run", "--schedules", "20", "--shrink-runs", "20", "prog.py")
    assert replayed(again.stdout)[1] == replayed(raced.stdout)[1]


def test_every_schedule_is_run_in_a_fresh_process(cli: Any) -> None:
    cli.script(
        """
        import os, sys
        import halstream as hs
        with open("ids", "a") as file:
            print(os.getpid(), hash("text"), hasattr(hs, "mark"), file=file)
        hs.mark = True
        s = hs.Stream()
        s.nop()
        s.synchronize()
        """
    )
    assert cli("run", "--schedules", "6", "prog.py").returncode == 0
    lines = [line.split() for line in (cli.folder / "ids").read_text().splitlines()]
    assert len({pid for pid, _, _ in lines}) == len(lines) == 6
    assert len({text for _, text, _ in lines}) == 1, "hashes of texts do not differ from run to run"
    assert {mark for _, _, mark in lines} == {"False"}


PARENT = """
    import os, sys
    import halstream as hs
    with open(f"/proc/{os.getppid()}/cmdline") as file:
        forks = "_forks" in file.read().split("\\0")
    with open("parents", "a") as file:
        print(os.getppid(), forks, file=file)
    if forks and "kill" in sys.argv:
        os.kill(os.getppid(), 9)
    s = hs.Stream()
    s.nop()
    s.synchronize()
    """

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs are forked on Linux")


def parents(cli: Any) -> list[list[str]]:
    """Return of each run the process that started it, and whether that is the one that forks."""
    return [line.split() for line in (cli.folder / "parents").read_text().splitlines()]


def at_start(cli: Any, source: str) -> dict[str, str]:
    """Return the environment in which each new process of Python runs some code first."""
    cli.script(source, "sitecustomize.py")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(cli.folder), os.environ.get("PYTHONPATH")]))}


@linux
def test_runs_are_forked_from_one_process(cli: Any) -> None:
    cli.script(PARENT)
    assert cli("run", "--schedules", "3", "prog.py").returncode == 0
    found = parents(cli)
    assert len(found) == 3 and len({tuple(one) for one in found}) == 1, found
    assert found[0][1] == "True", found


@linux
def test_a_run_is_repeated_where_the_process_that_forks_has_ended(cli: Any) -> None:
    cli.script(PARENT)
    done = cli("run", "--schedules", "2", "prog.py", "kill")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [forks for _, forks in parents(cli)] == ["True", "False", "False"]


@linux
def test_under_a_debugger_each_run_is_started_by_itself(cli: Any) -> None:
    cli.script(PARENT)
    observed = at_start(cli, "import sys\nsys.setprofile(lambda *event: None)\n")
    done = cli("run", "--schedules", "2", "prog.py", env=observed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [forks for _, forks in parents(cli)] == ["False", "False"]


@linux
def test_what_a_run_prints_begins_with_what_was_printed_before_it_was_forked(cli: Any) -> None:
    talking = at_start(cli, "import sys\nprint('from the start', file=sys.stderr)\n")
    cli.script(
        """
        import os
        import halstream as hs
        hs.Stream().nop()
        with open(f"/proc/{os.getppid()}/cmdline") as file:
            print("forked:", "_forks" in file.read().split("\\0"))
        raise SystemExit(3)
        """
    )
    done = cli("run", "--schedules", "2", "prog.py", env=talking)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[:2] == ["from the start", "forked: True"], done.stdout


@linux
def test_numbers_of_numpy_differ_from_run_to_run(cli: Any) -> None:
    cli.script(
        """
        import numpy, os, random
        import halstream as hs
        hs.Stream().nop()
        with open(f"/proc/{os.getppid()}/cmdline") as file:
            assert "_forks" in file.read().split("\\0")
        with open("numbers", "a") as file:
            print(numpy.random.random(), random.random(), file=file)
        """
    )
    loaded = at_start(cli, "import numpy.random\n")
    done = cli("run", "--schedules", "3", "prog.py", env=loaded)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = (cli.folder / "numbers").read_text().split()
    assert len(set(numbers)) == len(numbers) == 6


def test_a_script_without_streams_is_run_once(cli: Any) -> None:
    cli.script("print('x', file=open('ran', 'a'))")
    done = cli("run", "--schedules", "9", "prog.py")
    assert (done.returncode, "uses no streams" in done.stdout) == (0, True)
    assert (cli.folder / "ran").read_text() == "x\n"


def test_an_exit_code_is_a_failure(cli: Any) -> None:
    cli.script(
        """
        import sys
        import halstream as hs
        a, b, seen = hs.Stream(), hs.Stream(), []
        a.call(seen.append, 1)
        b.call(seen.append, 2)
        b.synchronize()
        a.synchronize()
        sys.exit(0 if seen == [1, 2] else 7)
        """
    )
    done = cli("run", "--schedules", "20", "--shrink-runs", "8", "prog.py")
    assert (done.returncode, "the script failed: exit code 7" in done.stdout) == (1, True)
    again = cli(*replayed(done.stdout))
    assert again.returncode == 7, "the script's own"
    assert "failed again: exit code 7" in again.stderr


def test_a_script_that_fails_in_any_order(cli: Any) -> None:
    cli.script("import halstream as hs; hs.Stream().nop(); raise SystemExit('no file')")
    done = cli("run", "--schedules", "5", "prog.py")
    assert done.returncode == 1
    assert "no file" in done.stdout and "It fails under fifo" in done.stdout


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os._exit(5)", "exit code 5"),
    ],
)
def test_a_process_that_crashes_is_a_failure(cli: Any, body: str, text: str) -> None:
    cli.script(f"import halstream as hs\nhs.Stream().nop()\n{body}")
    done = cli("run", "--schedules", "5", "prog.py")
    assert done.returncode == 1
    assert f"the script failed: {text}" in done.stdout
    again = cli(*replayed(done.stdout))
    assert again.returncode not in (0, 2) and f"failed again: {text}" in again.stderr


def test_a_script_that_hangs_is_ended_with_its_stacks(cli: Any) -> None:
    cli.script(
        """
        def forever():
            while True:
                pass
        forever()
        """
    )
    done = cli("run", "--schedules", "5", "--timeout", "2", "prog.py")
    assert done.returncode == 1
    assert "time limit: not done after 2 s" in done.stdout and "in forever" in done.stdout


def test_a_script_that_ends_its_process_well_is_refused(cli: Any) -> None:
    cli.script("import os; os._exit(0)")
    for args in (["run", "--schedules", "5"], ["replay", "hs1-fifo-00000000-cd"]):
        done = cli(*args, "prog.py")
        assert (done.returncode, done.stdout) == (2, "")
        assert "os._exit" in done.stderr


def test_a_script_that_is_not_deterministic_is_reported_as_such(cli: Any) -> None:
    cli.script(
        """
        import os
        import halstream as hs
        with open("runs", "a") as file:
            file.write("x")
        runs = os.path.getsize("runs")
        s = hs.Stream()
        for _ in range(runs):
            s.nop()
        s.synchronize()
        assert runs != 3
        """
    )
    done = cli("run", "--schedules", "9", "prog.py")
    assert done.returncode == 1
    assert "not deterministic by itself" in done.stdout
    assert re.search(r"Call \d of the host was '\w+' .* and 'nop' ", done.stdout), "the first difference"
    assert "Replay" not in done.stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--schedules", "0"], "schedules is 0"),
        (["--schedules", "-3"], "schedules is -3"),
        (["--schedules", "100001"], "schedules is 100001"),
        (["--schedules", "5", "--depth", "0"], "depth is 0"),
        (["--schedules", "5", "--seed", "-1"], "seed is -1"),
        (["--schedules", "5", "--timeout", "0"], "timeout is 0"),
        (["--schedules", "5", "--timeout", "nan"], "timeout is nan"),
        (["--schedules", "5", "--shrink-seconds", "-1"], "shrink_seconds is -1"),
    ],
)
def test_a_budget_that_is_none(cli: Any, options: list[str], text: str) -> None:
    cli.script("open('ran', 'w')")
    done = cli("run", *options, "prog.py")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"halstream: {text}")
    assert not (cli.folder / "ran").exists()


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("hs1-latest-1a2b3c4d-00", "is damaged"),
        ("hs1-latest", "is damaged"),
        ("hs9-latest-1a2b3c4d-00", "version hs9"),
        ("nonsense", "is not a token"),
        ("", "is not a token"),
    ],
)
def test_a_damaged_token(cli: Any, token: str, text: str) -> None:
    cli.script("open('ran', 'w')")
    done = cli("replay", token, "prog.py")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert text in line
    assert not (cli.folder / "ran").exists()


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("import halstream as hs; hs.Stream().nop()", "it passed, but"),
        ("import halstream as hs; stream = hs.Stream()", "it passed, but"),
        ("import sys", "it passed, but"),
        ("import atexit; atexit.register(print); raise SystemExit(3)", "it failed, with exit code 3, but"),
    ],
)
def test_a_stale_token(cli: Any, raced: Any, body: str, ended: str) -> None:
    cli.script(f"print('saw nothing')\n{body}")
    done = cli(*replayed(raced.stdout))
    assert (done.returncode, done.stdout.strip()) == (2, "saw nothing")
    assert "is stale" in done.stderr.splitlines()[-1] and ended in done.stderr


def test_a_token_of_a_script_that_was_fixed(cli: Any, raced: Any) -> None:
    cli.script(RACE)
    done = cli(*replayed(raced.stdout), "right")
    assert (done.returncode, done.stdout.startswith("saw [0, ")) == (0, True), done.stderr
    assert "fixed: the changed program passes in the order of the token" in done.stderr.splitlines()[-1]


def test_a_token_under_which_the_script_passes(cli: Any, raced: Any) -> None:
    cli.script(RACE.replace("assert seen ==", "seen =="))
    done = cli(*replayed(raced.stdout))
    assert (done.returncode, done.stdout.startswith("saw [")) == (0, True)
    assert "the script passes" in done.stderr


def test_schedules_need_the_host_device(cli: Any) -> None:
    cli.script("import halstream as hs; hs.Stream().nop()")
    done = cli("run", "--schedules", "5", "prog.py", env={"HALSTREAM_BACKEND": "cuda"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "HALSTREAM_BACKEND=host" in done.stderr and "Traceback" not in done.stderr


def test_a_script_that_opens_another_backend_is_scheduled_there(cli: Any) -> None:
    cli.script("import halstream as hs; hs.device_count(); hs.use_backend('host')\n" + RACE.replace("\n    ", "\n"))
    done = cli("run", "--schedules", "20", "--shrink-runs", "8", "prog.py")
    assert (done.returncode, "AssertionError" in done.stdout) == (1, True)


SHARED = """
    import halstream as hs

    a, b = hs.Stream(), hs.Stream()
    x = hs.empty(4)
    x.fill(1, a)
    x.fill(2, b)
    hs.synchronize()
    print("end")
    """


def test_the_sanitizer_finds_what_no_schedule_shows(cli: Any) -> None:
    cli.script(SHARED)
    assert cli("run", "--schedules", "8", "prog.py").returncode == 0
    done = cli("run", "--schedules", "8", "--sanitize", "prog.py")
    assert done.returncode == 1
    assert "UnorderedAccessError" in done.stdout and "b.wait(a.record())" in done.stdout
    args = replayed(done.stdout)
    assert "--sanitize" in args
    again = cli(*args)
    assert (again.returncode, again.stdout) == (1, "end\n")
    assert "b.wait(a.record())" in again.stderr and "failed again: UnorderedAccessError" in again.stderr


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--sanitize"], 1)])
def test_one_plain_run(cli: Any, options: list[str], code: int) -> None:
    cli.script(SHARED)
    done = cli("run", *options, "prog.py")
    assert (done.returncode, done.stdout) == (code, "end\n")
    assert ("b.wait(a.record())" in done.stderr) == bool(code)


def test_what_only_a_query_orders_is_listed_and_changes_no_exit_code(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs

        one, two, array = hs.Stream(), hs.Stream(), hs.empty(64)
        array.fill(1, stream=one)
        while not one.query():
            pass
        array.fill(2, stream=two)
        two.synchronize()
        """
    )
    done = cli("run", "--sanitize", "prog.py")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("ordered by a query only: two operations touch the same") == 1, done.stderr
    assert "prog.py:5" in done.stderr and "prog.py:8" in done.stderr


def test_a_strict_run_names_functions_of_unknown_accesses(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs
        s, x = hs.Stream(), hs.zeros(4)
        views = [x._as_host()]
        s.call(lambda: views[0].sum())
        s.synchronize()
        print("end")
        """
    )
    done = cli("run", "--sanitize", "prog.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
    done = cli("run", "--sanitize", "--strict", "prog.py")
    assert (done.returncode, done.stdout) == (1, "end\n")
    assert "the accesses of 1 function are not known" in done.stderr and "it can reach `views[0]`" in done.stderr
    done = cli("run", "--schedules", "4", "--sanitize", "--strict", "prog.py")
    assert done.returncode == 1 and "it can reach `views[0]`" in done.stdout
    assert "--strict" in replayed(done.stdout)
    done = cli("run", "--strict", "prog.py")
    assert done.returncode == 2 and "--strict is for --sanitize" in done.stderr


def test_a_plain_run_has_the_scripts_exit_code_and_arguments(cli: Any) -> None:
    cli.script("import sys; print(sys.argv); sys.exit(5)")
    done = cli("run", "prog.py", "--schedules", "0", "-o")
    assert (done.returncode, done.stdout, done.stderr) == (5, "['prog.py', '--schedules', '0', '-o']\n", "")


STUCK = """
    import halstream as hs
    from halstream.testing import Gate

    stream = hs.Stream()
    gate = Gate(stream)
    stream.nop()
    stream.synchronize()
    """


def test_a_wait_that_can_never_end_is_a_failure(cli: Any) -> None:
    cli.script(STUCK)
    for args in (["run"], ["run", "--schedules", "5"]):
        done = cli(*args, "prog.py")
        assert done.returncode == 1
        assert "StallError: this wait can never end" in done.stdout + done.stderr
        assert "made at prog.py:6" in done.stdout + done.stderr


def test_without_the_stall_doctor_the_limit_ends_it(cli: Any) -> None:
    cli.script(STUCK)
    done = cli("run", "--no-stalls", "--schedules", "5", "--timeout", "2", "prog.py")
    assert (done.returncode, "time limit" in done.stdout, "StallError" in done.stdout) == (1, True, False)


def test_leaks_are_reported_on_request(cli: Any) -> None:
    cli.script("import halstream as hs\ns = hs.Stream()\nhs.Stream().close()")
    assert cli("run", "prog.py").stderr == ""
    done = cli("run", "--leaks", "prog.py")
    assert done.returncode == 1
    assert "1 thing(s) left" in done.stderr and "made at prog.py:2" in done.stderr
    assert cli("run", "--leaks", "--schedules", "5", "prog.py").returncode == 2


def test_ctrl_c_ends_the_search_and_its_process(cli: Any) -> None:
    os.mkfifo(cli.folder / "pipe")
    cli.script(
        """
        import os
        with open("pipe", "w") as file:
            print(os.getpid(), file=file)
        with open("pipe") as file:  # nobody writes
            file.read()
        """
    )
    process = cli.start("run", "--schedules", "5", "prog.py")
    with open(cli.folder / "pipe") as pipe:
        pid = int(pipe.readline())
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (130, "")
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="runs are forked on Linux only")
def test_ctrl_c_before_the_number_of_a_run_was_read_ends_the_run(
    cli: Any, child: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    os.mkfifo(cli.folder / "pipe")
    prog = cli.script(
        """
        import os
        with open("pipe", "w") as file:
            print(os.getpid(), file=file)
        with open("pipe") as file:  # nobody writes
            file.read()
        """
    )
    done = child(
        f"""
        import os, sys
        from halstream._cli import forking
        from halstream.__main__ import main
        say = forking.Forks._say
        def interrupted(self, words):
            if words == "watch":
                with open("pipe") as pipe:  # the run has begun
                    print(pipe.readline(), end="", flush=True)
                raise KeyboardInterrupt
            say(self, words)
        forking.Forks._say = interrupted
        os.chdir({str(cli.folder)!r})
        sys.argv = ["halstream", "run", "--schedules", "5", {str(prog)!r}]
        sys.exit(main())
        """
    )
    assert done.returncode == 130, done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
